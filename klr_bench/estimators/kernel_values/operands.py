"""Conversion of rows to the operands from which kernel values are computed.

A tile of kernel values is one product of prepared operands and one elementwise function:

    rbf        2^(-rate ||x - z||^2)        [s(x-o), -rate||x-o||^2, 1] . [s(z-o), 1, -rate||z-o||^2],  s = sqrt(2 rate)
    poly       (gamma x'z + coef0)^degree   [gamma x, coef0] . [z, 1]
    linear     x'z
    laplacian  2^(-rate sum_j |x_j - z_j|)  [v, -sum_j v_j / 2, 1] . [w, 1, -sum_j w_j / 2],  v = 2 rate (x-o)

For the laplacian kernel, with w = 2 rate (z-o), the minimum of v_j and w_j takes the place of their product.  Other
kernels are computed by a function of two blocks of rows (`Pairwise`) or taken from a matrix (`Precomputed`).

The kernel does not depend on the origin o, the median of some training rows, but without it the squared distances of
rows far from 0 would be lost in float32.

All kinds of operands have the same methods:  `left` and `right` prepare rows, `values` and `sums` return kernel values
and weighted sums of them, `diagonal` returns k(x, x), and `fitting` returns the operands that some rows need.
`operands_of` chooses the kind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numba import boolean, float64, void

from klr_bench.estimators.core.checks import LearningFailed
from klr_bench.estimators.core.jit import compiled, read_only
from klr_bench.estimators.core.kernels import KERNELS, OF_DISTANCES, Kernel, squared_norms
from klr_bench.estimators.core.parameters import PRECOMPUTED
from klr_bench.estimators.core.rows import check_size, in_layout, restricted
from klr_bench.estimators.kernel_values import bits
from klr_bench.estimators.kernel_values.bits import WORDS, PackedRows, TwoValued, two_valued
from klr_bench.estimators.kernel_values.inverted import CompactIndex, sparse_products
from klr_bench.estimators.kernel_values.minima import set_exponents
from klr_bench.estimators.kernel_values.operand_base import Operands, Packing, Pairwise, PlainOperands, Precomputed

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


def _augment(real):
    return void(read_only(real, 2), read_only(real, 1), float64, boolean, real[:, ::1])


@compiled(_augment)
def augment(X, origin, factor, is_squared, operand):
    """Set rows of `operand` (n, d + 2): v = factor (x - origin), -||v||^2/2 or -sum v_j/2, 1."""
    d = X.shape[1]
    for i in range(len(X)):
        total = 0.0
        for j in range(d):
            operand[i, j] = (X[i, j] - origin[j]) * factor
            value = float64(operand[i, j])
            total += value**2 if is_squared else value
        operand[i, d], operand[i, d + 1] = -0.5 * total, 1.0


@dataclass(frozen=True)
class Dense(PlainOperands):
    """Dense operands, for which kernel values are computed by a matrix product."""

    kernel: Kernel
    origin: np.ndarray
    """A point (d,) near the training rows, used only by kernels of distances."""

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
        """Prepare the rows of X both as a left and as a right operand."""
        left = self.left(X)
        return left, _mirrored(left) if self.kernel.name in OF_DISTANCES else self.right(X)

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
        return Packing(0, False, 0.0, 0.0)

    def _values(self, left, right):
        return self.kernel.finish(combined(self.kernel, left, right))

    def _augmented(self, X):
        """Shift and scale the rows of X, and append the two columns that kernels of distances need."""
        operand, factor = np.empty((len(X), X.shape[1] + 2), dtype=X.dtype), 2 * self.kernel.rate
        is_squared, origin = self.kernel.name == "rbf", self.origin.astype(X.dtype, copy=False)
        check_size("an origin", len(origin), X.shape[1])
        augment(np.ascontiguousarray(X), origin, math.sqrt(factor) if is_squared else factor, is_squared, operand)
        return operand


@dataclass(frozen=True)
class Indexed(PlainOperands):
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

    def _values(self, left, right):
        kernel, entries = self.kernel, left
        if isinstance(right, CompactIndex):
            entries, right = restricted(left, right.columns), right.lists
        products = sparse_products(entries, right, are_distances=kernel.name == "laplacian")
        if kernel.name == "linear":
            return products
        if kernel.name == "laplacian":
            products -= abs(left).sum(axis=1).reshape(-1, 1)
            products -= abs(right).sum(axis=0).reshape(1, -1)
            products *= kernel.rate
            return kernel.finish(products)
        products *= kernel.gamma if kernel.name == "poly" else 2 * kernel.rate
        if kernel.name == "poly":
            products += products.dtype.type(kernel.coef0)
        else:
            products -= kernel.rate * squared_norms(left)[:, None]
            products -= kernel.rate * squared_norms(right.T)
        return kernel.finish(products)


@dataclass(frozen=True)
class Packed(Operands):
    """Operands that store two-valued features as bits, and the other features as in `Dense`.

    The words are as wide as the other numbers, so that an operand is one array.  `others` are the operands of the
    features without bits, or None.
    """

    kernel: Kernel
    features: TwoValued
    others: Dense | None
    plain: Dense | Indexed
    """Operands without bits, used for rows with too few two-valued features."""

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
        check_size("features", len(self.features.columns) + len(self.features.rest), X.shape[1])
        return X if self.features.in_csr else in_layout(X, sparse=False)

    def store(self, X):
        """Return an empty store that keeps the two-valued features of its rows as bits."""
        return PackedRows(self.features, X)

    def left(self, X):
        """Convert the rows of X to the left operand of kernel products."""
        X = self.rows(X)
        others = [] if self.others is None else [self.others.left(X[:, self.features.rest])]
        return np.ascontiguousarray(np.hstack([self.features.pack(X).view(X.dtype), *others]))

    def right(self, X):
        """Convert the rows of X to the right operand, which has one column for each row."""
        X = self.rows(X)
        others = [] if self.others is None else [self.others.right(X[:, self.features.rest])]
        return np.ascontiguousarray(np.vstack([self.features.pack(X).view(X.dtype).T, *others]))

    def both(self, X):
        """Prepare the rows of X both as a left and as a right operand."""
        left = self.left(X)
        if self.others is None:
            return left, left.T.copy()
        return left, _mirrored(left) if self.kernel.name in OF_DISTANCES else self.right(X)

    def packing(self, dtype):
        """Return the `Packing` for operands with the given floating-point type."""
        kernel = self.kernel
        step, base = self.features.step, kernel.coef0 if kernel.name == "poly" else 0.0
        of_distances = {"rbf": -kernel.rate * step**2, "laplacian": -kernel.rate * step}
        per_bit = {"poly": kernel.gamma * step**2, "linear": step**2, **of_distances}[kernel.name]
        return Packing(self.features.n_words(dtype), kernel.name in OF_DISTANCES, per_bit, base)

    def _values(self, left, right):
        packing, words = self._words(left, right)
        n_words, differ, per_bit, _ = packing
        if self.others is not None:
            products = combined(self.kernel, left, right, n_words)
            bits.add_counts(products, *words, n_words, differ, per_bit)
            return self.kernel.finish(products)
        values = np.empty((len(left), right.shape[1]), dtype=left.dtype)
        bits.tabulate(*words, n_words, differ, self._table(packing, left.dtype), values)
        return values

    def _tile_sums(self, left, weights, right):
        if len(weights) > 1 or self.others is not None:
            return super()._tile_sums(left, weights, right)
        packing, words = self._words(left, right)
        n_words, differ, *_ = packing
        return bits.sum_tabulated(*words, n_words, differ, self._table(packing, left.dtype), weights[0])

    def _words(self, left, right):
        word = WORDS[left.dtype]
        return self.packing(left.dtype), (left.view(word), right.view(word))

    def _table(self, packing, dtype):
        """Return the kernel value for each bit count of the words, if all features are two-valued."""
        counts = np.arange(8.0 * packing.n_words * dtype.itemsize + 1)
        return self.kernel.finish(packing.base + packing.per_bit * counts).astype(dtype)


def combined(kernel, left, right, n_words=0):
    """Return the products (n, m) without words, or the exponents of the laplacian kernel."""
    if kernel.name != "laplacian":
        return left[:, n_words:] @ right[n_words:]
    exponents = np.empty((len(left), right.shape[1]), dtype=left.dtype)
    set_exponents(*map(np.ascontiguousarray, (left, right)), n_words, exponents)
    return exponents


def _mirrored(left):
    """Return the right operand of a kernel of distances for rows whose left operand is given."""
    right = left.T.copy()
    right[-2], right[-1] = left[:, -1], left[:, -2]
    return right


def nonnegative_diagonal(operands, X):
    """Return k(x, x) for each row x of X; raise LearningFailed if one is negative."""
    return nonnegative(operands.diagonal(X), operands.kernel)


def nonnegative(diagonal, kernel):
    """Return the values k(x, x) unchanged; raise LearningFailed if one is negative."""
    if diagonal.min(initial=0.0) < 0:
        refuse_indefinite(kernel, f"k(x, x) of a row is {diagonal.min():g}")
    return diagonal


def refuse_indefinite(kernel, reason):
    """Raise LearningFailed because a solver needs a positive semi-definite kernel matrix."""
    advice = "use another kernel, gamma or coef0"
    message = f"kernel={kernel.name!r}: this solver needs a positive semi-definite matrix, but {reason}; {advice}."
    raise LearningFailed(message)


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
    features = two_valued(X, from_zero=kernel.name not in OF_DISTANCES)
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
    """Return the median of the first rows of X, the origin of dense operands."""
    rows = X[:ORIGIN_ROWS]
    return np.median(rows.toarray() if sp.issparse(rows) else rows, axis=0).astype(X.dtype)
