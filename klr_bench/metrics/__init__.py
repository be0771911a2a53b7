"""Metrics of fits: their definitions, computation and measurement."""
