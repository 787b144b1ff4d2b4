"""Everything known about a run, as one document."""
