"""Sums over all rows that Newton's method needs, computed block by block.

All values that belong to single rows stay in their block, so that blocks can be in several processes: they receive
coefficients of the centers, and return sums with one value per center.
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
from scipy.special import expit

from klr_bench.estimators.core.rows import slices
from klr_bench.estimators.core.threads import parallel_map
from klr_bench.estimators.kernel_values.tiles import LANES

VALUES = 2**19
"""Number of kernel values per block of rows; they take 2 MB in float32."""


@contextmanager
def in_this_process(make, X, signs, shares, block_rows):
    """Provide a function that computes sums over all rows in this process.

    call(name, *arguments) returns an iterable of the sums of the results of a method of all blocks, as does
    `Rows.sums`.  make(X, signs, shares, first) makes the `Rows` of a part of the rows that begins with the block with
    the number `first`; each block has `block_rows` rows.
    """
    yield make(X, signs, shares, 0).sums


class Centers:
    """Centers, with flags for whether kernel values or operands of all rows fit in memory."""

    def __init__(self, operands, X, n, limit):
        rows = operands.rows(X)
        self.operands, (self.left, self.right) = operands, operands.both(rows)
        self.B, self.dtype = rows.shape[0], X.dtype
        self.block_rows = min(max(VALUES // self.B // LANES, 1) * LANES, 4096)
        fitting = limit * 1e6 / (n * self.dtype.itemsize)
        self.values_fit = fitting >= self.B
        self.operands_fit = not operands.left_is_rows and self.left.shape[1] <= fitting

    def values(self, rows):
        """Return the kernel values (m, B) of some rows with the centers."""
        return self.operands.values(self.operands.left(rows), self.right)

    def gram(self):
        """Return the kernel values (B, B) of the centers in float64."""
        G = self.operands.values(self.left, self.right).astype(np.float64)
        return (G + G.T) / 2


class Rows:
    """Consecutive blocks of rows, starting with block number `first`."""

    def __init__(self, centers, X, signs, shares, first):
        X, self._first = centers.operands.rows(X), first
        blocks = slices(X.shape[0], centers.block_rows)
        self._blocks = parallel_map(lambda rows: Block(centers, X, rows, signs[:, rows], shares[rows]), blocks)

    def sums(self, name, *arguments):
        """Call a method of each block; return sums of the results as built by `add_neighbors`."""
        sums = []
        for part in slices(len(self._blocks), 64):  # keep only 64 results in memory at a time
            results = parallel_map(lambda block: getattr(block, name)(*arguments), self._blocks[part])
            for place, result in enumerate(results, self._first + part.start):
                add_neighbors(sums, 0, place, result)
        return sums


def add_neighbors(sums, level, place, value):
    """Append the sum over 2**level blocks to a list, adding it to a neighbor where possible.

    Blocks are added in pairs, pairs in fours, and so on, so that the rounding does not depend on which parts of the
    rows are added first.  `place` is the number of the first block divided by 2**level.
    """
    while sums and place % 2 and sums[-1][:2] == (level, place - 1):
        value = sums.pop()[2] + value
        level, place = level + 1, place // 2
    sums.append((level, place, value))


class Block:
    """A block of rows, with the label, weight share and decision value of each row."""

    def __init__(self, centers, X, rows, signs, shares):
        self._centers, self._X, self._rows, self._signs, self._shares = centers, X, rows, signs, shares
        self._values = centers.values(X[rows]) if centers.values_fit else None
        self._operand = self._left() if centers.operands_fit and not centers.values_fit else None

    def _left(self):
        return self._centers.operands.left(self._X[self._rows])

    def _products(self, a, weights_of):
        """Return the decision values f, and the sums of kernel values weighted by weights_of(f).

        If a has one more column than there are centers, it is the intercept, with the kernel value 1.
        """
        centers = self._centers
        intercept, a = a[:, centers.B :], a[:, : centers.B].astype(centers.dtype)
        if self._values is not None:
            K = self._values
        else:
            K = centers.operands.values(self._left() if self._operand is None else self._operand, centers.right)
        f = (K @ a.T).T.astype(np.float64) + intercept.sum(axis=1, keepdims=True)
        weights = weights_of(f)
        sums = (K.T @ weights.T.astype(centers.dtype)).T.astype(np.float64)
        return f, np.column_stack([sums, weights.sum(axis=1)]) if intercept.size else sums

    def gradient(self, a):
        """Return the gradient of the loss at coefficients a, with the loss as the last column."""
        signs, shares = self._signs, self._shares
        self._f, sums = self._products(a, lambda f: loss_slopes(f, signs, shares))
        self._curvatures = loss_curvatures(self._f, signs, shares)
        self._last = self._change = 0.0
        return np.column_stack([sums, np.logaddexp(0, -signs * self._f) @ shares])

    def hessian(self, a, step):
        """Multiply the Hessian of the loss, without the penalty, by the coefficients a.

        Before, `step` (k,) times K a of the last call is added to the change of f.
        """
        self._add(step)
        self._last, sums = self._products(a, lambda f: self._curvatures * f)
        return sums

    def slopes(self, sizes, step):
        """Return the directional derivatives (s, k) of the loss for step sizes (s, k).

        `step` is as in `hessian`.
        """
        self._add(step)
        slopes = loss_slopes(self._f - sizes[:, :, None] * self._change, self._signs, self._shares)
        return -np.sum(slopes * self._change, axis=2)

    def _add(self, step):
        self._change = self._change + step[:, None] * self._last
        self._last = 0.0


def loss_slopes(f, signs, shares):
    """Return the derivative of each row's weighted loss with respect to f."""
    return -shares * signs * expit(-signs * f)


def loss_curvatures(f, signs, shares):
    """Return the second derivative of each row's weighted loss with respect to f."""
    s = expit(signs * f)
    return shares * s * (1 - s)
