"""Metrics of fits: computation, names, comparison and formatting."""
