"""Time of gradient descent on features, compared with compiled loops over single features.

For NOGD only the rows after the budget is full are timed, without the eigendecomposition.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from timing import ONE_PASS, best, paper_data

from klr_bench import FOGD, NOGD


@njit(fastmath=True)
def slope_of(y, f):
    return -y / (1.0 + math.exp(y * f))


@njit(fastmath=True)
def fogd(X, y, omega, b, eta):
    """Return w (D,) after one pass over rows X (n, d) with frequencies omega (D, d)."""
    D = len(b)
    w, z, scale = np.zeros(D), np.zeros(D), math.sqrt(2.0 / D)
    for t in range(len(y)):
        f = 0.0
        for j in range(D):
            angle = b[j]
            for k in range(X.shape[1]):
                angle += X[t, k] * omega[j, k]
            z[j] = scale * math.cos(angle)
            f += w[j] * z[j]
        step = -eta * slope_of(y[t], f)
        for j in range(D):
            w[j] += step * z[j]
    return w


@njit(fastmath=True)
def nogd(X, y, gamma, support, w, projection, eta):
    """Update w (k,) with rows X (n, d), support vectors (B, d) and transposed projection (k, B)."""
    rank, budget = projection.shape
    row, z = np.zeros(budget, X.dtype), np.zeros(rank)
    for t in range(len(y)):
        for j in range(budget):
            distance = row[0] - row[0]  # in the precision of the row
            for k in range(X.shape[1]):
                distance += (X[t, k] - support[j, k]) ** 2
            row[j] = math.exp(-gamma * distance)
        f = 0.0
        for i in range(rank):
            total = row[0] - row[0]
            for j in range(budget):
                total += projection[i, j] * row[j]
            z[i] = total
            f += w[i] * total
        step = -eta * slope_of(y[t], f)
        for i in range(rank):
            w[i] += step * z[i]


def measure(output):
    X, y, gamma = paper_data("magic")
    signs = y.astype(np.float64)
    for real in ("float32", "float64"):
        rows, width = X.astype(real), np.dtype(real).type(gamma)
        for D in (100, 500, 4000):
            learner = FOGD(D, eta=0.5, gamma=gamma, random_state=0, **ONE_PASS)
            ours = best(lambda learner=learner, r=rows: learner.fit(r, y), 3)
            drawn = learner._state.features
            omega = np.ascontiguousarray(drawn.omega.T)
            plain = best(lambda r=rows, o=omega, b=drawn.b: fogd(r, signs, o, b, 0.5), 3)
            change = _change(learner.coef_, fogd(rows, signs, omega, drawn.b, 0.5))
            yield _row("fogd", D, real, len(y), plain, ours, change)
        for B in (100, 500, 1000):
            learner = NOGD(B, eta=0.5, gamma=gamma, random_state=0, **ONE_PASS).fit(rows[:B], y[:B])
            state, later = learner._state, rows[B:]
            projection, w = np.ascontiguousarray(state.projection.T), state.descent.weights[0].copy()
            learner.partial_fit(later, y[B:])
            rest = width, rows[:B], w, projection, 0.5
            nogd(later, signs[B:], *rest)
            change = _change(learner.dual_coef_, w @ projection)
            ours = best(lambda learner=learner, r=later, B=B: learner.partial_fit(r, y[B:]), 3)
            plain = best(lambda r=later, B=B, rest=rest: nogd(r, signs[B:], *rest), 3)
            yield _row("nogd", B, real, len(later), plain, ours, change)


def _change(result, expected):
    return float(np.abs(result - expected).max() / np.abs(expected).max())


def _row(method, size, real, n, plain, ours, change):
    return {
        "method": method,
        "size": size,
        "dtype": real,
        "loop_s": plain,
        "engine_s": ours,
        "rows_per_s": n / ours,
        "ratio": plain / ours,
        "target": 3.0,
        "coef_change": change,
    }
