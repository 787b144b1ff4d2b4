"""torch-ceiling: what a multi-GPU run's traces say about its speed, and what to attack first."""

__version__ = "0.1.0"
