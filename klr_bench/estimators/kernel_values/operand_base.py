"""Base classes of operands, and operands of kernels that are not compiled; see `operands`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from klr_bench.estimators.core.checks import LearningFailed
from klr_bench.estimators.core.kernels import KERNELS, OF_DISTANCES, Kernel
from klr_bench.estimators.core.rows import check_size, growing_like, in_layout, slices
from klr_bench.estimators.core.threads import n_threads, parallel_map
from klr_bench.estimators.kernel_values import tiles

TILE = 1024
"""Maximum number of rows whose weighted kernel values are added in the precision of the kernel."""
DIAGONAL_ROWS = 32
"""Number of rows per call of a kernel function if only k(x, x) is needed."""


class Packing(NamedTuple):
    """Layout of the bits in an operand, in the form that compiled code uses."""

    n_words: int
    """Number of words at the beginning of each row of an operand."""
    differ: bool
    """True to count differing bits (for a distance), False to count common bits (for a product)."""
    per_bit: float
    """Amount by which each counted bit changes the argument of the elementwise function."""
    base: float
    """Argument of the elementwise function if no bit is counted and all features have two values."""


class Operands:
    """Base class of operands, which prepare rows for the fast computation of kernel values.

    A subclass has `kernel`, `rows`, `left` and `right`, and `_values`, which returns kernel values.  If `left_is_rows`
    is False, it also has `packing`; then values of kernels of distances in float32 are computed in tiles.
    """

    left_is_rows = False
    """True if the left operand is the rows themselves, so that one store serves both."""

    def both(self, X):
        """Prepare the rows of X both as a left and as a right operand."""
        return self.left(X), self.right(X)

    def values(self, left, right):
        """Return the matrix of kernel values of a left and a right operand."""
        self._check(left, right)
        if not self.in_tiles(right):
            return self._values(left, right)
        return tiles.values_of(left, right, *self.layout(left))

    def fill(self, left, right, values):
        """Write the kernel values of a left and a right operand into a contiguous matrix."""
        if self.in_tiles(right):
            tiles.set_values(*map(np.ascontiguousarray, (left, right)), *self.layout(left), values)
        else:
            values[:] = self._values(left, right)

    def sums(self, left, weights, right, size=TILE):
        """Return weighted sums of kernel values over the rows of the left operand.

        The result (k, m), float64, is sum_i weights[:, i] k(x_i, z_j), for weights (k, n).  Sums of `size` rows are
        added in float64.
        """
        if len(weights) == 1 and self.in_tiles(right):
            return tiles.sums_of(left, weights[0], right, size, *self.layout(left))[None]
        sums = np.zeros((len(weights), right.shape[1]))
        for start in range(0, weights.shape[1], size):
            tile = slice(start, start + size)
            sums += self._tile_sums(left[tile], weights[:, tile], right)
        return sums

    def expand(self, left, weights, right):
        """Compute sum_i weights[:, i] k(x_i, z_j) for every row z_j, tile by tile.

        left and right are operands of n rows x_i and m rows z_j; weights (n_learners, n) are in the kernel's precision.
        The tiles are added in their order, so that the result does not depend on the number of threads.
        """
        n = weights.shape[1]
        check_size("coefficients", n, left.shape[0])
        self._check(left, right)
        n_tiles = 1 if n <= TILE else 2 * math.ceil(n / (2 * TILE))  # an even number, which two threads can share
        size = max(math.ceil(n / n_tiles), 1)
        if n_tiles == 1 or n_threads(n_tiles) == 1:
            return self.sums(left, weights, right, size)

        def sums(start):
            tile = slice(start, start + size)
            return self.sums(left[tile], weights[:, tile], right)

        f = np.zeros((len(weights), right.shape[1]))
        for of_tile in parallel_map(sums, range(0, n, size)):
            f += of_tile
        return f

    def diagonal(self, X):
        """Return the kernel value k(x, x) for each row x of X, as float64."""
        return self.kernel.diagonal(X)

    def in_tiles(self, right):
        """Return True if kernel values for the right operand are computed by `tiles`."""
        return not self.left_is_rows and self.kernel.name in OF_DISTANCES and right.dtype == np.float32

    def layout(self, left):
        """Return the arguments of `tiles` that describe operands: n_words, per_bit and the kernel."""
        n_words, _, per_bit, _ = self.packing(left.dtype)
        return n_words, per_bit, KERNELS.index(self.kernel.name)

    def _check(self, left, right):
        if not self.left_is_rows:
            check_size("operands", left.shape[1], right.shape[0])

    def _tile_sums(self, left, weights, right):
        if self.in_tiles(right) and right.shape[1] >= tiles.WIDTH:
            return tiles.products_of(weights, left, right, *self.layout(left))
        return weights @ self.values(left, right)


class PlainOperands(Operands):
    """Base class of the operands that do not store features as bits."""

    plain = property(lambda self: self)
    """The operands without bits."""

    store = staticmethod(growing_like)
    """Function that returns an empty store for rows with the layout and the number of columns of X."""

    def fitting(self, X):
        """Return self, because these operands can represent the rows of any X."""
        del X
        return self


@dataclass(frozen=True)
class Pairwise(PlainOperands):
    """Operands of kernels that a Python function computes from two blocks of rows."""

    kernel: Kernel
    sparse: bool
    """True if the function gets CSR matrices."""
    left_is_rows = True

    def rows(self, X):
        """Convert X to the layout of the training rows."""
        return in_layout(X, self.sparse)

    left = rows
    """The left operand consists of the rows themselves."""

    def right(self, X):
        """Transpose the rows of X."""
        return self.rows(X).T

    def _values(self, left, right):
        name, Z = self.kernel.name, right.T
        try:
            if callable(name):
                values = name(left, Z)
            else:
                from sklearn.metrics.pairwise import pairwise_kernels  # a slow import

                parameters = {"gamma": self.kernel.gamma, "coef0": self.kernel.coef0}
                values = pairwise_kernels(left, Z, name, filter_params=True, **parameters)
            values = np.asarray(in_layout(values, sparse=False), dtype=left.dtype)
        except (TypeError, ValueError) as error:  # not a refusal of arguments: earlier rows have been learned
            message = f"kernel: {name!r} failed: {error}"
            raise LearningFailed(message) from error
        expected = left.shape[0], Z.shape[0]
        if values.shape != expected:
            message = f"kernel: expected {name!r} to return an array of shape {expected}, got shape {values.shape}."
            raise LearningFailed(message)
        return np.require(values, requirements=["C", "W"])  # compiled code accepts no other

    def diagonal(self, X):
        """Return the kernel value k(x, x) for each row x of X, as float64."""
        parts = [X[part] for part in slices(X.shape[0], DIAGONAL_ROWS)]
        values = [self.values(self.left(part), self.right(part)).diagonal() for part in parts]
        return np.concatenate(values).astype(np.float64)


@dataclass(frozen=True)
class Precomputed(Pairwise):
    """Operands of a precomputed kernel: the indices of training rows, of shape (n, 1).

    Other rows are given by their kernel values (m, n_train) with the training rows.
    """

    def right(self, X):
        """Return the kernel values (n_train, m) of m rows with the training rows."""
        if X.shape[1] == 1:
            X = self.kernel.matrix[X[:, 0].astype(int)]
        return in_layout(X, sparse=False).T

    def _values(self, left, right):
        return np.ascontiguousarray(right[left[:, 0].astype(int)], dtype=left.dtype)
