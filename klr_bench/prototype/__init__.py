"""Kernel logistic regression on learned prototypes."""

from klr_bench.prototype.estimator import PrototypeKLR

__all__ = ["PrototypeKLR"]
