"""Kernel values of dense operands, computed in compiled code: `dense_values`.

Outside of compiled code `klr_bench.estimators.kernel_values.operands` computes them.
"""

from __future__ import annotations

import numpy as np
from numba import float32
from numba.extending import overload

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.kernels import LAPLACIAN, RBF, finish
from klr_bench.estimators.kernel_values.bits import add_counts
from klr_bench.estimators.kernel_values.minima import set_exponents
from klr_bench.estimators.kernel_values.tiles import set_values


def _as_words(array):
    """Reinterpret an array of floating-point numbers as unsigned integers of the same size."""
    return array.view(f"u{array.itemsize}")


@overload(_as_words)
def _as_words_by_precision(array):
    if array.dtype == float32:
        return lambda array: array.view(np.uint32)
    return lambda array: array.view(np.uint64)


def _set_in_tiles(rows, columns, n_words, per_bit, kernel, values):
    """Set `values` and return True if the kernel is one of distances in float32."""
    return False


@overload(_set_in_tiles)
def _set_in_tiles_by_precision(rows, columns, n_words, per_bit, kernel, values):
    if rows.dtype != float32:
        return lambda rows, columns, n_words, per_bit, kernel, values: False

    def single(rows, columns, n_words, per_bit, kernel, values):
        is_of_distances = kernel in (RBF, LAPLACIAN)
        if is_of_distances:
            set_values(rows, columns, n_words, per_bit, kernel, values)
        return is_of_distances

    return single


@compiled()
def dense_values(rows, columns, n_words, differ, per_bit, base, kernel, degree):
    """Return the matrix of kernel values between two sets of prepared points.

    `rows` (n, d') is the left operand, and `columns` (d', m) the right one; the result has the shape (n, m).  n_words,
    ..., base are those of their `Packing`.
    """
    values = np.empty((len(rows), columns.shape[1]), rows.dtype)
    if _set_in_tiles(rows, columns, n_words, per_bit, kernel, values):
        return values
    if n_words < len(columns) and kernel == LAPLACIAN:
        set_exponents(rows, columns, n_words, values)
    elif n_words < len(columns):
        values = np.dot(rows[:, n_words:].copy(), columns[n_words:])
    else:
        values[:] = base
    if n_words > 0:
        add_counts(values, _as_words(rows), _as_words(columns)[:n_words], n_words, differ, per_bit)
    finish(values, kernel, degree)
    return values
