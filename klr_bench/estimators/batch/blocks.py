"""Kernel values of the training rows with each other, in blocks of rows that fit a memory limit."""

from __future__ import annotations

import warnings

import numpy as np

from klr_bench.estimators.core.expansion import evaluate
from klr_bench.estimators.core.threads import parallel_map

LARGEST = 1024
"""Rows per block if memory allows; larger blocks save no time."""
SMALL = 256
"""Blocks with fewer rows make the matrix products slow."""
TILE = 512
"""Rows per product when a block's values are computed: a product of this size is still in the cache when it is used."""


class KernelBlocks:
    """The kernel matrix of the rows X (n, d), which fit the operands, in blocks of rows that fit in `limit` MB.

    Attributes: `n`; `whole`, the matrix (n, n) if it fits, else None; `size`, the rows per block.

    Warns once if the limit makes the blocks so small that the fit is slower.
    """

    def __init__(self, operands, X, limit):
        self.operands, self.n = operands, X.shape[0]
        self._rows = operands.rows(X)
        fitting = int(float(limit) * 1e6 / (self.n * X.dtype.itemsize))
        self.whole = None
        if fitting >= self.n:
            self.size = self.n
            self.whole, _ = self.block(np.arange(self.n))
            return
        self.size = min(max(fitting, 1), LARGEST)
        if self.size < SMALL:
            message = (
                f"cache_size={limit:g} MB holds the kernel values of {fitting} of {self.n} rows; "
                f"blocks of {self.size} instead of up to {LARGEST} rows are used, which is slower."
            )
            warnings.warn(message, stacklevel=5)

    def left(self, rows):
        return self.operands.left(self._rows[rows])

    def right(self, rows):
        return self.operands.right(self._rows[rows])

    def block(self, rows):
        """Return a matrix (m, n) of kernel values with all rows, and the places in it, (k,), of the k given rows."""
        if self.whole is not None:
            return self.whole, rows
        left, block = self.left(rows), np.empty((len(rows), self.n), dtype=self._rows.dtype)

        def fill(tile):
            block[:, tile] = self.operands.values(left, self.right(tile))

        parallel_map(fill, slices(self.n, TILE))
        return block, np.arange(len(rows))

    def times(self, b):
        """Return the products of the kernel matrix and the rows of b (m, n), float64 (m, n)."""
        b = b.astype(self._rows.dtype)
        if self.whole is not None:
            return (b @ self.whole).astype(np.float64)
        return evaluate(self.operands, self.left(slice(None)), b, self._rows)


def slices(n, size):
    """Return the slices that cut n rows into runs of `size`."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
