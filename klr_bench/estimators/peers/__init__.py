"""Classifiers of other libraries for comparison: the same kernel, features or problem."""
