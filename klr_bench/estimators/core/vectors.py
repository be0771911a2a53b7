"""Compiled operations on vectors."""

from __future__ import annotations

from klr_bench.estimators.core.jit import compiled


@compiled(fastmath={"contract"})
def add_scaled(sums, c, values):
    """Add c times values (n,) to sums (n,).

    For a part of a matrix's row, slices are to be handed over: a loop over ``matrix[i, j]`` with j from i + 1 on is not
    vectorised, and takes 3 to 7 times as long.
    """
    for j in range(len(sums)):
        sums[j] += c * values[j]
