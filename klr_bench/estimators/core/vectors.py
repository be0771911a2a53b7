"""Vector operations compiled by numba."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, float64, int32, int64, typeof

from klr_bench.estimators.core.jit import compiled, instructions

TIE = 1e-9
"""Relative difference up to which numbers count as tied; among tied support vectors the oldest is chosen."""
SINGLE_TIE = 2e-5
"""`TIE` for numbers computed from float32 kernel values: four times the largest measured relative error (5e-6)."""
CHUNK = 64
"""Number of values that are searched at once for the first of the largest."""


@compiled()
def tie(values):
    """Return the relative tolerance for ties, which depends on the precision of `values`."""
    return SINGLE_TIE if values.itemsize == 4 else TIE


@compiled()
def tie_of_sums(values):
    """Return the relative tolerance for ties of sums of `values`; rounding errors partly cancel."""
    return 0.1 * tie(values)


@compiled()
def settled(f, tolerance):
    """Return -1, 0 or 1 if f differs from it by at most the tolerance, otherwise f.

    Update rules compare f(x) with these numbers, and rounding errors must not decide.
    """
    nearest = 0.0 if abs(f) < 0.5 else math.copysign(1.0, f)
    return nearest if abs(f - nearest) <= tolerance else f


_SAME_BITS = {float32: int32, int32: float32, float64: int64, int64: float64}


def _viewed(number):
    return number.view(str(_SAME_BITS[typeof(number)]))


@instructions(_viewed)
def same_bits(typing, number):
    """Reinterpret the bits of a floating-point number as an integer, or the reverse."""
    result = _SAME_BITS[number]

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(result))

    return result(number), generate


@compiled()
def _largest(values, scales):
    largest = same_bits(values.dtype.type(0.0))
    for place in range(len(values)):  # compare bits as integers (same order for numbers >= 0), which is vectorized
        largest = max(largest, same_bits(abs(values[place]) * scales[place]))
    return same_bits(largest)


@compiled()
def first_of_largest(values, scales):
    """Return the first index at which abs(values) * scales is largest, up to rounding.

    The result is -1 if all products are 0.

    values (m,) are kernel values, float32 or float64; scales (m,), of the same type, are >= 0.
    """
    least = values.dtype.type(_largest(values, scales) * (1.0 - tie(values)))
    for start in range(0, len(values) if least > 0.0 else 0, CHUNK):
        some, factors, n_largest = values[start : start + CHUNK], scales[start : start + CHUNK], 0
        for place in range(len(some)):  # no early exit, so that the compiler vectorizes the loop
            n_largest += abs(some[place]) * factors[place] >= least
        if n_largest:
            for place in range(len(some)):
                if abs(some[place]) * factors[place] >= least:
                    return start + place
    return -1


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
