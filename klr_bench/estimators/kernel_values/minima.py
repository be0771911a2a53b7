"""Exponents of the laplacian kernel as sums of minima, in any precision.

Operands are those of `klr_bench.estimators.kernel_values.operands`.  A minimum and a sum are two instructions per
feature, where the absolute value of a difference and a sum are three.
"""

from __future__ import annotations

from numba import int64, void

from klr_bench.estimators.core.jit import compiled, read_only

COLUMNS = 256
"""Number of columns whose right operands stay in the cache."""


def _signature(real):
    operand = read_only(real, 2)
    return void(operand, operand, int64, real[:, ::1])


@compiled(_signature, fastmath={"contract", "reassoc", "nnan", "nsz"})
def set_exponents(left, right, n_words, exponents):
    """Set `exponents` (n, m) for a left and a right operand, from column n_words on."""
    last = left.shape[1] - 2
    whole = last - (last - n_words) % 4
    for start in range(0, right.shape[1], COLUMNS):
        part = slice(start, start + COLUMNS)
        for i in range(len(left)):
            x, sums, halves = left[i], exponents[i, part], right[last + 1, part]
            for j in range(len(sums)):
                sums[j] = x[last] + halves[j]
            for k in range(n_words, whole, 4):  # four features at a time, so that sums are read and written less often
                x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
                z0, z1, z2, z3 = right[k, part], right[k + 1, part], right[k + 2, part], right[k + 3, part]
                for j in range(len(sums)):
                    sums[j] += (min(x0, z0[j]) + min(x1, z1[j])) + (min(x2, z2[j]) + min(x3, z3[j]))
            for k in range(whole, last):
                value, z = x[k], right[k, part]
                for j in range(len(sums)):
                    sums[j] += min(value, z[j])
