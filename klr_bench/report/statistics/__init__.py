"""Statistics of comparisons, as functions of arrays: repeats on one data set, several data sets, times of solvers.

What they assume, and when a report says nothing, is told in docs/reports/statistics.md.
"""
