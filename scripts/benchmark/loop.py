"""Time of one pass of NC, compared with a compiled loop over single kernel values."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from timing import ONE_PASS, best, paper_data

from klr_bench import NonConservativeKLR


@njit(fastmath=True)
def plain_loop(X, y, gamma, eta, radius):
    n, d = X.shape
    coef = np.zeros(n, dtype=np.float32)
    squared, scale = 0.0, 1.0
    for t in range(n):
        f = np.float32(0)
        for i in range(t):
            distance = np.float32(0)
            for k in range(d):
                distance += (X[t, k] - X[i, k]) ** 2
            f += coef[i] * math.exp(-gamma * distance)
        f *= scale
        c = eta * y[t] / (1.0 + math.exp(y[t] * f))
        coef[t] = c / scale
        squared += 2.0 * c * f + c * c
        if squared > radius * radius:
            scale *= radius / math.sqrt(squared)
            squared = radius * radius
    return coef


def measure(output):
    for name, target in (("magic", 6.0), ("adult", 5.0)):
        X, y, gamma = paper_data(name)
        signs = y.astype(np.float64)
        learner = NonConservativeKLR(eta=1.0, gamma=gamma, average=False, **ONE_PASS)
        plain = best(lambda X=X, s=signs, g=np.float32(gamma): plain_loop(X, s, g, 1.0, 1e3), 3)
        ours = best(lambda X=X, y=y, learner=learner: learner.fit(X, y), 3)
        difference = np.max(np.abs(plain_loop(X, signs, np.float32(gamma), 1.0, 1e3) - learner.dual_coef_))
        yield {
            "dataset": name,
            "n": len(y),
            "features": X.shape[1],
            "loop_s": plain,
            "engine_s": ours,
            "ratio": plain / ours,
            "target": target,
            "largest_difference": float(difference),
        }
