"""Compiled operations on vectors."""

from __future__ import annotations

import numpy as np

from klr_bench.estimators.core.jit import compiled

TIE = 1e-9
"""Numbers that differ by this share at most are equal up to rounding; of equal support vectors the oldest is taken."""
SINGLE_TIE = 2e-5
"""`TIE` for numbers computed from float32 kernel values: four times the largest relative error measured, 5e-6."""
LANES = 64
"""Numbers that are compared at once, each with the largest of its lane, so that the loop over them vectorises."""


@compiled()
def tie(values):
    """Return the `TIE` for numbers computed from these kernel values."""
    return SINGLE_TIE if values.itemsize == 4 else TIE


@compiled()
def first_of_largest(values, scales):
    """Return the first place where abs(values) * scales is within a `tie` of the largest; -1 if all products are 0.

    values (m,) are kernel values, float32 or float64; scales (m,) are >= 0.
    """
    m, best = len(values), np.zeros(LANES)
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


@compiled(fastmath={"reassoc", "contract"})
def dot(coef, values, m):
    """Return the sum of the first m products."""
    total = 0.0
    for j in range(m):
        total += coef[j] * values[j]
    return total


@compiled(fastmath={"contract"})
def add_scaled(sums, c, values):
    """Add c times values (n,) to sums (n,).

    Pass slices for a part of a matrix's row: a loop over ``matrix[i, j]`` with j from i + 1 on is not
    vectorised, and takes 3 to 7 times as long.
    """
    for j in range(len(sums)):
        sums[j] += c * values[j]


def highest(scores, r):
    """Return the places of the r highest positive scores (d,), in ascending order; fewer if fewer are positive.

    Among scores that are equal up to rounding the first places are taken.
    """
    least = np.partition(scores, -r)[-r] if 0 < r < len(scores) else 0.0 if r else np.inf
    above = np.flatnonzero(scores > least * (1.0 + TIE))
    near = np.flatnonzero(scores >= least * (1.0 - TIE)) if least > 0.0 else above
    equal = np.setdiff1d(near, above)[: r - len(above)]
    return np.sort(np.append(above, equal))
