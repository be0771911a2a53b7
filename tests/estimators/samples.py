"""Kernels, layouts, rows and random numbers that the tests of several learners share."""

from __future__ import annotations

import numpy as np

KERNELS = {
    "rbf": {"kernel": "rbf", "gamma": 0.7},
    "poly": {"kernel": "poly", "gamma": 0.2, "degree": 2, "coef0": 1.0},
    "linear": {"kernel": "linear"},
}
LAYOUTS = ["dense", "csr made dense", "csr by index"]
"""How rows come, and how the kernel values of sparse ones are computed."""


def draws(n, seed=0):
    """Return the numbers in [0, 1) that a learner with random_state=seed draws in its first n examples, (n,)."""
    return np.random.RandomState(seed).random_sample(n)


def toy(n=300, d=4, seed=1, *, empty_rows=True):
    """Overlapping classes, so that every method has something to correct until the end; some features are 0.

    Of a row without any feature f may be 0 but for rounding, which then decides whether it is a mistake.
    """
    random = np.random.RandomState(seed)
    X = random.standard_normal((n, d)) * (random.random_sample((n, d)) < 0.7)
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * random.standard_normal(n) > 0, 1, -1)
    if not empty_rows:
        X[~X.any(axis=1), 0] = 1.0
    return X / np.sqrt(d), y
