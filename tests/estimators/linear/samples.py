"""Data with many features, few of them relevant."""

import numpy as np


def toy(n=120, d=30, density=0.4, seed=0, relevant=6):
    """Return rows with features of different scales, some of which are only jointly relevant, and labels."""
    random = np.random.RandomState(seed)
    X = random.standard_normal((n, d)) * (random.random_sample((n, d)) < density)
    X[:, 1] += 2 * X[:, 0]
    X *= 2.0 ** random.randint(-2, 3, d)
    y = np.where(X[:, :relevant] @ random.standard_normal(relevant) + 0.3 * random.standard_normal(n) > 0, 1.0, -1.0)
    return X, y
