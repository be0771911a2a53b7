"""Kernel logistic regression with learned prototypes."""
