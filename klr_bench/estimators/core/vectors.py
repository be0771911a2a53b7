"""Vector operations compiled by numba."""

from __future__ import annotations

import numpy as np
from numba import float32, float64, types, void

from klr_bench.estimators.core.jit import compiled

TIE = 1e-9
"""Relative difference up to which numbers count as tied; among tied support vectors the oldest is chosen."""
SINGLE_TIE = 2e-5
"""`TIE` for numbers computed from float32 kernel values: four times the largest measured relative error (5e-6)."""
LANES = 64
"""Number of values compared at once, each with the maximum of its lane, so that the loop is vectorized."""


@compiled()
def tie(values):
    """Return the relative tolerance for ties, which depends on the precision of `values`."""
    return SINGLE_TIE if values.itemsize == 4 else TIE


@compiled()
def first_of_largest(values, scales):
    """Return the first index at which abs(values) * scales is largest, up to rounding.

    The result is -1 if all products are 0.

    values (m,) are kernel values, float32 or float64; scales (m,) are >= 0.
    """
    m, best = len(values), np.zeros(LANES, dtype=values.dtype)  # in that precision, twice as many are compared at once
    for start in range(0, m - m % LANES, LANES):
        some, factors = values[start : start + LANES], scales[start : start + LANES]
        for lane in range(LANES):
            product = abs(some[lane]) * factors[lane]
            best[lane] = product if product > best[lane] else best[lane]
    for place in range(m - m % LANES, m):
        best[place % LANES] = max(best[place % LANES], abs(values[place]) * scales[place])
    least, first = best.max() * (1.0 - tie(values)), -1
    for lane in range(LANES if least > 0.0 else 0):
        if best[lane] >= least:
            place = lane
            while abs(values[place]) * scales[place] < least:
                place += LANES
            first = place if first < 0 else min(first, place)
    return first


def _augment(real):
    return void(
        types.Array(real, 2, "C", readonly=True), types.Array(real, 1, "C", readonly=True), float64, real[:, ::1]
    )


@compiled([_augment(float32), _augment(float64)])
def augment(X, origin, factor, operand):
    """Set the rows of `operand` (n, d + 2) to v = factor (x - origin), -||v||^2 / 2 and 1, for the rows x of X."""
    d = X.shape[1]
    for i in range(len(X)):
        squared = 0.0
        for j in range(d):
            operand[i, j] = (X[i, j] - origin[j]) * factor
            squared += float64(operand[i, j]) ** 2
        operand[i, d], operand[i, d + 1] = -0.5 * squared, 1.0


@compiled(fastmath={"reassoc", "contract"})
def dot(coef, values, m):
    """Return the dot product of the first m elements of two vectors."""
    total = 0.0
    for j in range(m):
        total += coef[j] * values[j]
    return total


@compiled(fastmath={"contract"})
def add_scaled(sums, c, values):
    """Add the vector c * values to the vector `sums`, in place.

    Pass slices for a part of a matrix's row: a loop over ``matrix[i, j]`` with j from i + 1 on is not
    vectorized, and takes 3 to 7 times as long.
    """
    for j in range(len(sums)):
        sums[j] += c * values[j]


def highest(scores, r):
    """Return the indices of the r largest positive scores, in ascending order.

    Among scores that are equal up to rounding the first places are taken.
    """
    least = np.partition(scores, -r)[-r] if 0 < r < len(scores) else 0.0 if r else np.inf
    above = np.flatnonzero(scores > least * (1.0 + TIE))
    near = np.flatnonzero(scores >= least * (1.0 - TIE)) if least > 0.0 else above
    equal = np.setdiff1d(near, above)[: r - len(above)]
    return np.sort(np.append(above, equal))
