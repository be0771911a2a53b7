"""Statistical comparisons of methods, as functions of arrays.

docs/reports/statistics.md explains their assumptions.
"""
