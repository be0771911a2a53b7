"""Conversion of rows to the operands from which kernel values are computed.

A tile of kernel values is one product of prepared operands and one elementwise function:

    rbf     2^(-rate ||x - z||^2)        [s(x-o), -rate||x-o||^2, 1] . [s(z-o), 1, -rate||z-o||^2],  s = sqrt(2 rate)
    poly    (gamma x'z + coef0)^degree   [gamma x, coef0] . [z, 1]
    linear  x'z

Other kernels are computed by a function of two blocks of rows (`Pairwise`) or taken from a matrix (`Precomputed`).

The kernel does not depend on the origin o, the median of some training rows, but without it the squared distances of
rows far from 0 would be lost in float32.

All kinds of operands have the same methods:  `left` and `right` prepare rows, `values` and `sums` return kernel values
and weighted sums of them, `diagonal` returns k(x, x), and `fitting` returns the operands that some rows need.
`operands_of` chooses the kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from klr_bench.estimators.core import bits, tiles
from klr_bench.estimators.core.bits import WORDS, PackedRows, TwoValued, two_valued
from klr_bench.estimators.core.inverted import CompactIndex, sparse_products
from klr_bench.estimators.core.kernels import KERNELS, PRECOMPUTED, Kernel, squared_norms
from klr_bench.estimators.core.rows import growing_like, in_layout, restricted, slices
from klr_bench.estimators.core.vectors import augment

TILE = 1024
"""Maximum number of rows whose weighted kernel values are added in the precision of the kernel."""
DIAGONAL_ROWS = 32
"""Number of rows per call of a kernel function if only k(x, x) is needed."""
ORIGIN_ROWS = 256
"""Number of rows that determine the origin (their median) and the kind of operands."""
DENSE_AT_MOST = 8192
"""CSR rows with more features are never converted to dense rows."""
FEATURES_PER_ENTRY = 16
"""With more features per entry, the inverted index has lists only for features that occur."""
FEATURE_NS, BEGIN_BITS_NS, WORD_NS = 0.017, 0.15, 0.1
BEGIN_INDEX_NS, MEETING_NS, ENTRY_NS = 0.5, 0.9, 0.01
"""Nanoseconds per kernel value: per feature of a dense row; with bits, in any case and per word of 32; with the
inverted index, in any case, per pair of matching entries, and per entry looked up. Measured in float32 by
scripts/benchmark/sparse.py and bits.py.
"""


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


class _Plain:
    """Base class of the operands that do not store features as bits.

    `_arguments` of a subclass returns the arguments of the elementwise function.
    """

    left_is_rows = False
    """True if the left operand is the rows themselves, so that one store serves both."""
    plain = property(lambda self: self)
    """The operands without bits."""

    def store(self, X):
        """Return an empty store for rows with the layout and the number of columns of X."""
        return growing_like(X)

    def both(self, X):
        """Return the left and the right operand of the rows of X."""
        return self.left(X), self.right(X)

    def fitting(self, X):
        """Return self, because these operands can represent the rows of any X."""
        del X
        return self

    def values(self, left, right):
        """Return the matrix of kernel values of a left and a right operand."""
        return self.kernel.finish(self._arguments(left, right))

    def sums(self, left, weights, right, size=TILE):
        """Return weighted sums of kernel values over the rows of the left operand.

        The result (k, m), float64, is sum_i weights[:, i] k(x_i, z_j), for weights (k, n).  Sums of `size` rows are
        added in float64.
        """
        return _added(lambda tile, of_tile: of_tile @ self.values(tile, right), left, weights, right, size)

    def diagonal(self, X):
        """Return the kernel value k(x, x) for each row x of X, as float64."""
        return self.kernel.diagonal(X)


@dataclass(frozen=True)
class Dense(_Plain):
    """Dense operands, for which kernel values are computed by a matrix product."""

    kernel: Kernel
    origin: np.ndarray
    """A point (d,) near the training rows, used only by the rbf kernel."""

    def rows(self, X):
        """Convert X to the layout, dense or CSR, that `left` and `right` process fastest."""
        return in_layout(X, sparse=False)

    def left(self, X):
        """Convert the rows of X to the left operand of kernel products."""
        X = self.rows(X)
        if self.kernel.name == "linear":
            return X
        if self.kernel.name == "poly":
            return np.hstack([self.kernel.gamma * X, np.full((len(X), 1), self.kernel.coef0)], dtype=X.dtype)
        return self._augmented(X)

    def both(self, X):
        """Return the left and the right operand of the rows of X."""
        left = self.left(X)
        return left, _mirrored(left) if self.kernel.name == "rbf" else self.right(X)

    def right(self, X):
        """Convert the rows of X to the right operand, which has one column for each row."""
        X = self.rows(X)
        if self.kernel.name == "linear":
            return X.T
        if self.kernel.name == "poly":
            return np.hstack([X, np.ones((len(X), 1))], dtype=X.dtype).T
        return _mirrored(self._augmented(X))

    def packing(self, dtype):
        """Return the `Packing` for operands whose features are not stored as bits."""
        del dtype
        return Packing(0, False, 0.0, 0.0)

    def values(self, left, right):
        """Return the matrix of kernel values of a left and a right operand."""
        return tiles.values_of(left, right) if in_tiles(self.kernel, right) else super().values(left, right)

    def sums(self, left, weights, right, size=TILE):
        """Return weighted sums of kernel values over the rows of the left operand, as in `_Plain`."""
        if len(weights) == 1 and in_tiles(self.kernel, right):
            return tiles.sums_of(left, weights[0], right, size)[None]
        return super().sums(left, weights, right, size)

    def _arguments(self, left, right):
        return left @ right

    def _augmented(self, X):
        """Return the shifted and scaled rows of X, with the two columns that the rbf kernel needs.

        The rows are sqrt(2 rate) (x - o); the last two columns contain -rate ||x - o||^2 and 1.
        """
        operand = np.empty((len(X), X.shape[1] + 2), dtype=X.dtype)
        augment(
            np.ascontiguousarray(X), self.origin.astype(X.dtype, copy=False), np.sqrt(2 * self.kernel.rate), operand
        )
        return operand


@dataclass(frozen=True)
class Indexed(_Plain):
    """Sparse operands: the left one is a CSR matrix, and the right one is an inverted index."""

    kernel: Kernel
    left_is_rows = True

    def rows(self, X):
        """Convert X to the layout, dense or CSR, that `left` and `right` process fastest."""
        return in_layout(X, sparse=True)

    left = rows
    """The left operand consists of the rows themselves."""

    def right(self, X):
        """Convert the rows of X to an inverted index: a transposed CSR matrix or a `CompactIndex`."""
        rows = self.rows(X)
        return CompactIndex.of(rows) if rows.shape[1] > FEATURES_PER_ENTRY * rows.nnz else rows.T.tocsr()

    def _arguments(self, left, right):
        kernel, entries = self.kernel, left
        if isinstance(right, CompactIndex):
            entries, right = restricted(left, right.columns), right.lists
        products = sparse_products(entries, right)
        if kernel.name == "linear":
            return products
        products *= kernel.gamma if kernel.name == "poly" else 2 * kernel.rate
        if kernel.name == "poly":
            products += products.dtype.type(kernel.coef0)
        else:
            products -= kernel.rate * squared_norms(left)[:, None]
            products -= kernel.rate * squared_norms(right.T)
        return products


@dataclass(frozen=True)
class Pairwise(_Plain):
    """Rows as operands, for kernels that are computed by a function of two blocks of rows."""

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

    def values(self, left, right):
        """Return the matrix of kernel values of a left and a right operand."""
        name, Z = self.kernel.name, right.T
        if callable(name):
            values = name(left, Z)
        else:
            from sklearn.metrics.pairwise import pairwise_kernels  # a slow import

            parameters = {"gamma": self.kernel.gamma, "coef0": self.kernel.coef0}
            values = pairwise_kernels(left, Z, name, filter_params=True, **parameters)
        expected = left.shape[0], Z.shape[0]
        if np.shape(values) != expected:
            message = f"kernel: expected an array of shape {expected} from {name!r}, got {np.shape(values)}."
            raise ValueError(message)
        return np.ascontiguousarray(in_layout(values, sparse=False), dtype=left.dtype)

    def diagonal(self, X):
        """Return the kernel value k(x, x) for each row x of X, as float64."""
        parts = [X[part] for part in slices(X.shape[0], DIAGONAL_ROWS)]
        values = [self.values(self.left(part), self.right(part)).diagonal() for part in parts]
        return np.concatenate(values).astype(np.float64)


@dataclass(frozen=True)
class Precomputed(Pairwise):
    """Indices of training rows (n, 1) as operands, for a matrix of kernel values.

    Other rows are given by their kernel values (m, n_train) with the training rows.
    """

    def right(self, X):
        """Return the kernel values (n_train, m) of m rows with the training rows."""
        if X.shape[1] == 1:
            X = self.kernel.matrix[X[:, 0].astype(int)]
        return in_layout(X, sparse=False).T

    def values(self, left, right):
        """Return the matrix of kernel values of a left and a right operand."""
        return np.ascontiguousarray(right[left[:, 0].astype(int)], dtype=left.dtype)


@dataclass(frozen=True)
class Packed:
    """Operands that store two-valued features as bits, and the other features as in `Dense`.

    The words are as wide as the other numbers, so that an operand is one array.  `others` are the operands of the
    features without bits, or None.
    """

    kernel: Kernel
    features: TwoValued
    others: Dense | None
    plain: Dense | Indexed
    """Operands without bits, used for rows with too few two-valued features."""
    left_is_rows = False

    @classmethod
    def of(cls, kernel, features, plain, X):
        """Create operands that store the given two-valued features of X as bits."""
        others = None if features.is_all else Dense(kernel, origin_of(X)[features.rest])
        return cls(kernel, features, others, plain)

    def fitting(self, X):
        """Return operands that can represent the rows of X.

        These are the current ones, or others with bits for fewer features or none.
        """
        misfits = self.features.misfits(X)
        if not misfits.any():
            return self
        features, few = self.features.without(misfits), self.plain.rows(X[:ORIGIN_ROWS])
        cheaper = packed_ns(features) < plain_ns(self.plain, few)
        return self.of(self.kernel, features, self.plain, few) if cheaper else self.plain

    def rows(self, X):
        """Convert X to the layout, dense or CSR, that `left` and `right` process fastest."""
        return X if self.features.in_csr else in_layout(X, sparse=False)

    def store(self, X):
        """Return an empty store that keeps the two-valued features of its rows as bits."""
        return PackedRows(self.features, X)

    def left(self, X):
        """Convert the rows of X to the left operand of kernel products."""
        return self.both(X)[0]

    def right(self, X):
        """Convert the rows of X to the right operand, which has one column for each row."""
        return self.both(X)[1]

    def both(self, X):
        """Return the left and the right operand of the rows of X."""
        X = self.rows(X)
        words = self.features.pack(X).view(X.dtype)
        if self.others is None:
            return words, words.T.copy()
        left, right = self.others.both(X[:, self.features.rest])
        operands = np.hstack([words, left]), np.vstack([words.T, right])
        return tuple(map(np.ascontiguousarray, operands))

    def packing(self, dtype):
        """Return the `Packing` for operands with the given floating-point type."""
        kernel = self.kernel
        factor = {"rbf": -kernel.rate, "poly": kernel.gamma, "linear": 1.0}[kernel.name]
        base = kernel.coef0 if kernel.name == "poly" else 0.0
        return Packing(self.features.n_words(dtype), kernel.name == "rbf", factor * self.features.step**2, base)

    def values(self, left, right):
        """Return the matrix of kernel values of a left and a right operand."""
        packing, words = self._words(left, right)
        n_words, differ, per_bit, _ = packing
        if in_tiles(self.kernel, right):
            return tiles.values_of(left, right, n_words, per_bit)
        if self.others is not None:
            products = left[:, n_words:] @ right[n_words:]
            bits.add_counts(products, *words, n_words, differ, per_bit)
            return self.kernel.finish(products)
        values = np.empty((len(left), right.shape[1]), dtype=left.dtype)
        bits.tabulate(*words, n_words, differ, self._table(packing, left.dtype), values)
        return values

    def sums(self, left, weights, right, size=TILE):
        """Return weighted sums of kernel values over the rows of the left operand, as in `_Plain`."""
        if len(weights) == 1 and in_tiles(self.kernel, right):
            n_words, _, per_bit, _ = self.packing(left.dtype)
            return tiles.sums_of(left, weights[0], right, size, n_words, per_bit)[None]

        def of_tile(tile, weights):
            if len(weights) > 1 or self.others is not None:
                return weights @ self.values(tile, right)
            packing, words = self._words(tile, right)
            n_words, differ, *_ = packing
            return bits.sum_tabulated(*words, n_words, differ, self._table(packing, tile.dtype), weights[0])

        return _added(of_tile, left, weights, right, size)

    def diagonal(self, X):
        """Return the kernel value k(x, x) for each row x of X, as float64."""
        return self.kernel.diagonal(X)

    def _words(self, left, right):
        word = WORDS[left.dtype]
        return self.packing(left.dtype), (left.view(word), right.view(word))

    def _table(self, packing, dtype):
        """Return the kernel value for each possible bit count, if all features are two-valued."""
        counts = np.arange(len(self.features.columns) + 1.0)
        return self.kernel.finish(packing.base + packing.per_bit * counts).astype(dtype)


def _added(of_tile, left, weights, right, size):
    """Return the sum of of_tile(left, weights) over tiles of `size` rows, as float64."""
    sums = np.zeros((len(weights), right.shape[1]))
    for start in range(0, weights.shape[1], size):
        tile = slice(start, start + size)
        sums += of_tile(left[tile], weights[:, tile])
    return sums


def _mirrored(left):
    """Return the right operand of the rows whose left operand of the rbf kernel is given."""
    right = left.T.copy()
    right[[-2, -1]] = right[[-1, -2]]
    return right


def in_tiles(kernel, right):
    """Return True if kernel values for a right operand can be computed in tiles."""
    return kernel.name == "rbf" and right.dtype == np.float32


def nonnegative_diagonal(operands, X):
    """Return k(x, x) for each row x of X; raise ValueError if one is negative."""
    diagonal = operands.diagonal(X)
    if diagonal.min(initial=0.0) < 0:
        refuse_indefinite(operands.kernel, f"k(x, x) of a row is {diagonal.min():g}")
    return diagonal


def refuse_indefinite(kernel, reason):
    """Raise ValueError because a solver needs a positive semi-definite kernel matrix."""
    matrix = "this solver needs a positive semi-definite kernel matrix"
    message = f"kernel={kernel.name!r}: {matrix}, but {reason}; use another kernel, gamma or coef0."
    raise ValueError(message)


def operands_of(kernel, X):
    """Choose the operand type that computes a kernel fastest on data like X.

    The kind is chosen from the first rows.
    """
    if kernel.name not in KERNELS:
        return (Precomputed if kernel.name == PRECOMPUTED else Pairwise)(kernel, sp.issparse(X))
    wide = X.shape[1] > DENSE_AT_MOST
    if sp.issparse(X) and wide:
        return Indexed(kernel)
    plain = Dense(kernel, origin_of(X))
    if wide:
        return plain
    if sp.issparse(X) and plain_ns(plain, X) >= plain_ns(Indexed(kernel), X):
        plain = Indexed(kernel)
    features = two_valued(X, from_zero=kernel.name != "rbf")
    return Packed.of(kernel, features, plain, X) if packed_ns(features) < plain_ns(plain, X) else plain


def plain_ns(plain, X):
    """Estimate the nanoseconds per kernel value on data like X if nothing is stored as bits."""
    sample = X[:ORIGIN_ROWS]
    n, d = sample.shape
    if isinstance(plain, Dense):
        return FEATURE_NS * (d + 2)
    meeting = np.sum((np.bincount(sample.indices, minlength=d) / n) ** 2)
    return BEGIN_INDEX_NS + MEETING_NS * meeting + ENTRY_NS * sample.nnz / n


def packed_ns(features):
    """Estimate the nanoseconds per kernel value if the given features are stored as bits."""
    dense = 0 if features.is_all else FEATURE_NS * (len(features.rest) + 2)
    return np.inf if len(features.columns) == 0 else dense + BEGIN_BITS_NS + WORD_NS * len(features.columns) / 32


def origin_of(X):
    """Return the median of the first rows of X, which dense rbf operands use as the origin."""
    rows = X[:ORIGIN_ROWS]
    return np.median(rows.toarray() if sp.issparse(rows) else rows, axis=0).astype(X.dtype)
