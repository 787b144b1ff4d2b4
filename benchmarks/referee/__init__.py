"""Simulated training jobs whose what-ifs are known, because they can be simulated, too."""
