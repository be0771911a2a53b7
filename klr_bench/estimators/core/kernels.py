"""Kernels of dense or CSR rows: operands that are prepared once, and tiles of values by one matrix product.

The operands contain everything a tile needs besides the products x'z, so that a tile is one product and one
elementwise function:

    rbf     exp(-gamma ||x - z||^2)      [s(x-o), -gamma||x-o||^2, 1] . [s(z-o), 1, -gamma||z-o||^2],  s = sqrt(2 gamma)
    poly    (gamma x'z + coef0)^degree   [gamma x, coef0] . [z, 1]
    linear  x'z

The origin o of a dense rbf kernel is the median of some training rows.  The kernel does not depend on it, but without
it the squared distances of rows far from 0 would be lost in float32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from llvmlite import ir
from numba import float32, float64, int32, int64, types, void
from numba.extending import intrinsic, overload

from klr_bench.estimators.core.jit import compiled

KERNELS = ("rbf", "poly", "linear")
RBF, POLY, LINEAR = range(3)
"""The codes of the kernels in compiled code."""
ORIGIN_ROWS = 256
"""Number of rows whose median is the origin of distances."""
MULTIPLIED = 64
"""The largest power that is computed by multiplication."""
WIDTHS = ("scale", "median")
"""Names of a gamma that the training rows tell."""
MEDIAN_ROWS = 1000
"""Rows whose distances have the median."""
DENSE_AT_MOST = 8192
"""With more features, CSR rows are never made dense."""


@dataclass(frozen=True)
class Kernel:
    """A kernel function; parameters and names as in scikit-learn."""

    name: str = "rbf"
    gamma: float = 1.0
    degree: float = 3
    coef0: float = 1.0

    def left(self, X, origin=None):
        """Prepare rows X (n, d) as the left operand: an (n, d') array, or the CSR rows unchanged.

        `origin` is a point (d,) near dense training data, the same for both operands; only rbf uses it.
        """
        if sp.issparse(X) or self.name == "linear":
            return X
        if self.name == "poly":
            return np.hstack([self.gamma * X, np.full((len(X), 1), self.coef0)], dtype=X.dtype)
        return self._augmented(X, origin, [-1, -2])

    def right(self, X, origin=None):
        """Prepare rows X (n, d) as the right operand, already transposed: (d', n)."""
        if sp.issparse(X):
            return X.T.tocsr()
        if self.name == "linear":
            return X.T
        if self.name == "poly":
            return np.hstack([X, np.ones((len(X), 1))], dtype=X.dtype).T
        return self._augmented(X, origin, [-2, -1]).T

    def _augmented(self, X, origin, columns):
        """Return rows [sqrt(2 gamma) (x - o), ...] with 1 and -gamma ||x - o||^2 in the two given columns."""
        operand = np.empty((len(X), X.shape[1] + 2), dtype=X.dtype)
        rows = operand[:, :-2]
        np.subtract(X, 0 if origin is None else origin, out=rows)
        rows *= np.sqrt(2 * self.gamma)
        operand[:, columns[0]] = 1
        operand[:, columns[1]] = -0.5 * np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        return operand

    def values(self, left, right):
        """Return kernel values (n, m) of a left operand (n, d') and a right operand (d', m), in their precision."""
        values = self._products(left, right)
        if self.name == "rbf":
            if values.dtype == np.float32:
                exp_negative(values)
            else:
                np.exp(np.minimum(values, 0, out=values), out=values)
        elif self.name == "poly":
            raise_to(values, self.degree)
        return values

    def sums(self, left, weights, right):
        """Return sum_i weights[:, i] k(x_i, z_j), (k, m), for weights (k, n) and operands (n, d') and (d', m)."""
        if self.name == "rbf" and len(weights) == 1 and right.dtype == np.float32:
            return sum_exp_negative(self._products(left, right), weights[0])[None]
        return weights @ self.values(left, right)

    def _products(self, left, right):
        return self._sparse_products(left, right) if sp.issparse(left) else left @ right

    def _sparse_products(self, left, right):
        products = sparse_products(left, right)
        if self.name == "linear":
            return products
        products *= self.gamma if self.name == "poly" else 2 * self.gamma
        if self.name == "poly":
            products += products.dtype.type(self.coef0)
        else:
            products -= self.gamma * _squared_norms(left)[:, None]
            products -= self.gamma * _squared_norms(right.T)
        return products

    def diagonal(self, X):
        """Return k(x, x) for the rows X (n, d), float64 (n,)."""
        if self.name == "rbf":
            return np.ones(X.shape[0])
        squared = _squared_norms(X).astype(np.float64)
        return squared if self.name == "linear" else (self.gamma * squared + self.coef0) ** self.degree


def gamma_of(gamma, X):
    """Return gamma as a number, for training rows X (n, d), dense or CSR.

    None is 1 / d, "scale" 1 / (d v) with the variance v of all elements of X (1 where it is 0), as in scikit-learn;
    "median" is 1 / (2 m^2) with the median m of the distances of at most MEDIAN_ROWS rows, evenly spaced (where it is
    0, all as for "scale").
    """
    if gamma not in (None, *WIDTHS):
        return gamma
    n, d = X.shape
    if gamma is None:
        return 1.0 / d
    if gamma == "median":
        from sklearn.metrics.pairwise import euclidean_distances  # which takes a good part of a second to import

        rows = X[np.linspace(0, n - 1, min(n, MEDIAN_ROWS)).astype(int)].astype(np.float64)
        distances = euclidean_distances(rows)[np.triu_indices(rows.shape[0], k=1)]
        if len(distances) and (median := float(np.median(distances))) > 0:
            return 1.0 / (2.0 * median**2)
    values = (X.data if sp.issparse(X) else X).astype(np.float64, copy=False)
    mean = values.sum() / (n * d)
    variance = (values**2).sum() / (n * d) - mean**2 if sp.issparse(X) else values.var()
    return 1.0 / (d * variance) if 0 < variance < math.inf else 1.0 / d


def origin_of(X):
    """Return the median (d,) of the first rows of X, dense or CSR, as the origin of a dense rbf kernel."""
    rows = X[:ORIGIN_ROWS]
    return np.median(rows.toarray() if sp.issparse(rows) else rows, axis=0).astype(X.dtype)


def dense_is_cheaper(X):
    """Tell whether CSR rows like those of X are multiplied faster as dense rows, judged by the first rows.

    A dense product costs a fixed time per feature.  The inverted index costs time per pair of matching entries, and a
    little for each entry looked up.  The constants are nanoseconds measured in float32 by scripts/benchmark/sparse.py.
    """
    sample = X[:256]
    n, d = sample.shape
    if d > DENSE_AT_MOST:
        return False
    meeting = np.sum((np.bincount(sample.indices, minlength=d) / n) ** 2)
    return 0.017 * (d + 2) < 0.5 + 0.9 * meeting + 0.01 * sample.nnz / n


def sparse_products(left, right):
    """Return the dense products (n, m) of CSR rows (n, d) with the columns of a CSR matrix (d, m).

    The rows of `right` are an inverted index of its columns: only matching entries cost time.
    """
    out = np.zeros((left.shape[0], right.shape[1]), dtype=left.dtype)
    arrays = [left.data, right.data]
    for matrix in (left, right):
        arrays += [matrix.indptr.astype(np.int32, copy=False), matrix.indices.astype(np.int32, copy=False)]
    _inverted_index_products(*arrays, out)
    return out


def _index_signature(real):
    values, places = (types.Array(of, 1, "C", readonly=True) for of in (real, int32))
    return void(values, values, places, places, places, places, real[:, ::1])


@compiled([_index_signature(float32), _index_signature(float64)])
def _inverted_index_products(data, posted, indptr, indices, lists, rows, out):
    """Add to out (n, m), for each entry of a row, its products with the entries listed under its feature."""
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            value, feature = data[p], indices[p]
            for q in range(lists[feature], lists[feature + 1]):
                out[i, rows[q]] += value * posted[q]


def raise_to(values, degree):
    """Raise each value to a power, in place; a small whole power by multiplication."""
    if degree > MULTIPLIED or degree != int(degree):
        np.power(values, degree, out=values)
    elif degree == 2:
        np.multiply(values, values, out=values)
    else:
        base = values.copy()
        for _ in range(int(degree) - 1):
            values *= base


def _squared_norms(X):
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel().astype(X.dtype)
    return np.einsum("ij,ij->i", X, X)


@intrinsic
def _bits_as_float(typing, bits):
    """Interpret 32 bits as a float32."""
    del typing, bits

    def generate(context, builder, signature, arguments):
        del context, signature
        return builder.bitcast(arguments[0], ir.FloatType())

    return float32(int32), generate


_LOG2_E = np.float32(1 / math.log(2))
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(math.log(2) - 0.693359375)  # k HIGH is exact


@compiled(float32(float32), fastmath=True)
def _exp_negative(x):
    """Return e^min(x, 0) to 3e-7 relative, 0 or about 1e-38 below -87.

    Plain arithmetic, so that loops over it vectorise: e^x = 2^k e^r with abs(r) <= ln(2) / 2, and e^r by its Taylor
    polynomial of degree 7.
    """
    x = max(min(x, np.float32(0)), np.float32(-87))
    k = np.floor(x * _LOG2_E + np.float32(0.5))
    r = x - k * _LN2_HIGH - k * _LN2_LOW
    e = np.float32(1 / 5040)
    e = e * r + np.float32(1 / 720)
    e = e * r + np.float32(1 / 120)
    e = e * r + np.float32(1 / 24)
    e = e * r + np.float32(1 / 6)
    e = e * r + np.float32(1 / 2)
    e = e * r + np.float32(1)
    e = e * r + np.float32(1)
    return e * _bits_as_float((np.int32(k) + np.int32(127)) << np.int32(23))


@compiled(void(float32[:, ::1]), fastmath=True)
def exp_negative(values):
    """Replace each value x of a matrix (n, m) by e^min(x, 0), in place."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[i, j] = _exp_negative(values[i, j])


@compiled(float32[::1](float32[:, ::1], float32[:]), fastmath=True)
def sum_exp_negative(exponents, weights):
    """Return sum_i weights[i] e^min(x_ij, 0), (m,), for exponents (n, m), which stay unchanged."""
    n, m = exponents.shape
    sums = np.zeros(m, dtype=np.float32)
    for i in range(n):
        for j in range(m):
            sums[j] += weights[i] * _exp_negative(exponents[i, j])
    return sums


def _exp_at_most_one(x):
    """Return e^min(x, 0) in the precision of x, in compiled code."""


@overload(_exp_at_most_one)
def _exp_by_precision(x):
    return (lambda x: _exp_negative(x)) if x == float32 else (lambda x: math.exp(min(x, 0.0)))


@compiled([void(float32[:, ::1], int64, float64), void(float64[:, ::1], int64, float64)], fastmath=True)
def finish(products, kernel, degree):
    """Turn the products (n, m) of two operands into kernel values, in place; `kernel` is an index into KERNELS."""
    power = int(min(degree, MULTIPLIED))
    for i in range(products.shape[0]):
        row = products[i]
        if kernel == RBF:
            for j in range(len(row)):
                row[j] = _exp_at_most_one(row[j])
        elif kernel == POLY and power == degree:
            for j in range(len(row)):
                base = row[j]
                for _ in range(power - 1):
                    row[j] *= base
        elif kernel == POLY:
            for j in range(len(row)):
                row[j] = row[j] ** degree
