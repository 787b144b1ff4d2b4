"""Time -> exclusive classes."""
