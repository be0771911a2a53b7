"""Kernel logistic regression on learned prototypes."""
