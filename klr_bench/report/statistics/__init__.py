"""Statistics of comparisons, as functions of arrays.  docs/reports/statistics.md explains what they assume."""
