"""Tables -> windows and sets of time."""
