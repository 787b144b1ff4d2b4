"""Measurements -> ranked bottlenecks."""
