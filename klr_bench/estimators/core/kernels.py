"""Kernel functions, the choice of gamma, and conversion of inner products to kernel values.

    rbf          exp(-gamma ||x - z||^2) = 2^(-rate ||x - z||^2),  rate = gamma / log(2)
    poly         (gamma x'z + coef0)^degree
    linear       x'z
    laplacian    exp(-gamma sum_j |x_j - z_j|) = 2^(-rate sum_j |x_j - z_j|)
    sigmoid      tanh(gamma x'z + coef0), which is not positive semi-definite
    f            f(X, Z), a function of the user that is called with blocks of rows
    precomputed  elements of a matrix that is given in place of the rows, which are known by their indices

All estimators but `PrototypeKLR` accept the first four, which have compiled code; the rbf and the laplacian kernel are
powers of 2, which are faster than those of e.  `klr_bench.estimators.kernel_values.operands` has the products.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import float32, float64, int64, void
from numba.extending import overload
from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.parameters import PRECOMPUTED
from klr_bench.estimators.core.rows import ROUNDING, largest_of, slices, weighted_median, weighted_sample
from klr_bench.estimators.core.vectors import same_bits

KERNELS = ("rbf", "poly", "linear", "laplacian")
"""Kernels with compiled code, which all estimators but `PrototypeKLR` accept."""
OF_DISTANCES = ("rbf", "laplacian")
"""Kernels that are powers of a distance, with k(x, x) = 1."""
MORE_KERNELS = ("sigmoid", PRECOMPUTED)
"""Kernels that batch solvers and online learners without a budget accept, besides functions."""
ANY_KERNEL = [StrOptions({*KERNELS, *MORE_KERNELS}), callable]
"""Constraints of `kernel`, for classes that accept all kernels."""
RBF, POLY, LINEAR, LAPLACIAN = range(4)
"""Codes of the kernels in compiled code."""
MULTIPLIED = 64
"""Largest integer degree for which powers are computed by multiplication."""
WIDTHS = ("scale", "auto", "median")
"""Values of gamma that are computed from the training rows."""
VARIANCE_VALUES = 2**22
"""Number of values that are converted to float64 at a time to compute their variance."""
CANCELED = 1e-9
"""Squared median distance, as a share of the largest squared norm, below which it is computed from differences."""
MEDIAN_ROWS = 1000
"""Number of rows from which the median distance is computed."""


@dataclass(frozen=True)
class Kernel:
    """A kernel function and its parameters, named as in scikit-learn."""

    name: str | Callable[..., Any] = "rbf"
    """Name of the kernel, or a function f(X, Z)."""
    gamma: float = 1.0
    degree: float = 3
    coef0: float = 1.0
    matrix: Any = field(default=None, compare=False, repr=False)
    """Precomputed kernel values (n, n) of the training rows, dense or CSR."""

    def __getstate__(self):
        return vars(self) | {"matrix": None}  # only fit needs the matrix

    @property
    def rate(self):
        """The rate in base 2 of a kernel of distances: k(x, z) = 2^(-rate ||x - z||^2) for rbf."""
        return self.gamma / math.log(2)

    def finish(self, values):
        """Convert inner products, or exponents of 2 of distances, to kernel values in place."""
        if self.name in OF_DISTANCES:
            if values.dtype == np.float32:
                exp2_negative(values)
            else:
                np.exp2(np.minimum(values, 0, out=values), out=values)
        elif self.name == "poly":
            raise_to(values, self.degree)
        return values

    def diagonal(self, X):
        """Return k(x, x) for each row x of X, as float64, if the kernel is one of KERNELS."""
        if self.name in OF_DISTANCES:
            return np.ones(X.shape[0])
        squared = squared_norms(X).astype(np.float64)
        return squared if self.name == "linear" else (self.gamma * squared + self.coef0) ** self.degree


def kernel_of(estimator, X, weights=None):
    """Return the kernel of an estimator for training rows.

    A gamma given by name is computed from the rows X (n, d), which have the weights (n,), or None for 1.  Features
    whose weight is 0 do not count, and the others are centered first if features have weights.
    """
    if estimator.kernel == PRECOMPUTED:
        return Kernel(PRECOMPUTED, matrix=X)
    center, of_features = 0.0, vars(estimator).get("feature_weights_")
    if of_features is not None:
        X = X if of_features.all() else X[:, np.flatnonzero(of_features)]
        center = (np.full(X.shape[0], 1 / X.shape[0]) if weights is None else weights / weights.sum()) @ X
        X, center = (X, center) if sp.issparse(X) else (X - center, 0.0)
    gamma = gamma_of(estimator.gamma, X, weights, center)
    return Kernel(estimator.kernel, gamma, estimator.degree, estimator.coef0)


def rows_of(estimator, X):
    """Return X, or a column of the indices of its rows if it is a precomputed kernel matrix.

    Raises ValueError if such a matrix is not square.
    """
    if estimator.kernel != PRECOMPUTED:
        return X
    n, n_columns = X.shape
    if n != n_columns:
        message = f"kernel='precomputed': expected a square matrix of the training rows, got shape {X.shape}."
        raise ValueError(message)
    return np.arange(n, dtype=X.dtype)[:, None]


def gamma_of(gamma, X, weights=None, center=0.0):
    """Convert the parameter gamma to a number, computed from the training rows X if necessary.

    None and "auto" are 1 / d, "scale" 1 / (d v) with the variance v of all elements of X (1 where it is 0, as in
    scikit-learn); "median" is 1 / (2 m^2) with the `median_distance` m (where it is 0, all as for "scale").  Variance
    and median count a row as often as its weight in `weights` (n,) says, unlike scikit-learn.  If X is CSR, `center`
    (d,) is subtracted from its rows for the variance.
    """
    if gamma not in (None, *WIDTHS):
        return gamma
    n, d = X.shape
    if gamma in (None, "auto"):
        return 1.0 / d
    if gamma == "median":
        median = median_distance(X, weights)
        if median:
            return 1.0 / (2.0 * median**2)
    variance = variance_of(X, np.ones(n) if weights is None else weights, center)
    return 1.0 / (d * variance) if variance > 0 else 1.0 / d


def median_distance(X, weights=None):
    """Return the median distance of at most MEDIAN_ROWS rows of X (n, d), or 0 up to rounding.

    The rows are a `weighted_sample` for their `weights` (n,).
    """
    from scipy.spatial.distance import pdist  # slow imports
    from sklearn.metrics.pairwise import euclidean_distances

    places, w = weighted_sample(X.shape[0], MEDIAN_ROWS, weights, np.random.RandomState(0))
    rows, pairs = X[places].astype(np.float64), np.triu_indices(len(places), k=1)

    def median(distances):
        if w is None:
            return float(np.median(distances)) if len(distances) else 0.0
        counts = np.outer(w, w)[pairs]  # a row of weight w stands for w rows, with w (w - 1) / 2 pairs at distance 0
        return weighted_median(np.append(distances, 0.0), np.append(counts, np.maximum(w * (w - 1) / 2, 0).sum()))

    m, largest = median(euclidean_distances(rows)[pairs]), squared_norms(rows).max()
    if sp.issparse(rows):
        return m if m**2 > 4 * ROUNDING * largest else 0.0
    if m**2 <= CANCELED * largest:
        m = median(pdist(rows))  # slower, but differences do not cancel
    return m if m > ROUNDING * largest_of(X) else 0.0


def variance_of(X, weights, center):
    """Return the variance of all elements of X (n, d); 0 if they are equal up to rounding.

    `weights` (n,) are those of the rows.  If X is CSR, `center` (d,) is subtracted from its rows.
    """
    d, total = X.shape[1], weights.sum() * X.shape[1]
    if not sp.issparse(X):
        if X.max() - X.min() <= ROUNDING * largest_of(X):
            return 0.0
        parts = slices(len(X), max(VARIANCE_VALUES // d, 1))
        sums = squares = 0.0
        for part in parts:
            sums += weights[part] @ X[part].sum(axis=1, dtype=np.float64)
        for part in parts:
            squares += weights[part] @ squared_norms(X[part].astype(np.float64) - sums / total)
        return squares / total
    counts, values = np.repeat(weights, np.diff(X.indptr)), X.data.astype(np.float64)  # of the stored elements
    mean = counts @ values / total - np.mean(center)
    if np.any(center):
        squares = (weights.sum() - np.bincount(X.indices, counts, d)) @ (center + mean) ** 2
        values -= center[X.indices]
    else:
        squares = (total - counts.sum()) * mean**2
    squares += counts @ (values - mean) ** 2
    return squares / total if squares > total * (ROUNDING * largest_of(X)) ** 2 else 0.0


def raise_to(values, degree):
    """Raise each element of an array to the power `degree`, in place."""
    if degree > MULTIPLIED or degree != int(degree):
        np.power(values, degree, out=values)
    elif degree == 2:
        np.multiply(values, values, out=values)
    else:
        base = values.copy()
        for _ in range(int(degree) - 1):
            values *= base


def squared_norms(X):
    """Return the squared Euclidean norm of each row of a dense or CSR matrix X."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel().astype(X.dtype)
    return np.einsum("ij,ij->i", X, X)


EXP2 = (0.0013264731, 0.009671513, 0.055507336, 0.24022242, 0.693147, 1.0)
"""Coefficients of a polynomial for 2^r with abs(r) <= 1/2 in float32, highest power first.

It minimizes the largest relative error among the polynomials with 2^0 = 1.
"""
_E5, _E4, _E3, _E2, _E1, _E0 = map(np.float32, EXP2)
LOWEST = np.float32(-126)
"""Smallest exponent of 2; smaller ones are replaced by it, because their powers would be subnormal."""


@compiled(float32(float32), fastmath=True)
def exp2_of_negative(x):
    """Return 2^min(x, 0) with a relative error of at most 2e-7.

    Plain arithmetic, so that loops over it vectorize: 2^x = 2^k 2^r with an integer k and abs(r) <= 1/2.
    """
    x = max(min(x, np.float32(0)), LOWEST)
    k = np.floor(x + np.float32(0.5))
    r = x - k
    e = ((((_E5 * r + _E4) * r + _E3) * r + _E2) * r + _E1) * r + _E0
    return e * same_bits(np.int32((np.int32(k) + np.int32(127)) << np.int32(23)))


@compiled(void(float32[:, ::1]), fastmath=True)
def exp2_negative(values):
    """Replace each element x of a matrix by 2^min(x, 0), in place."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[i, j] = exp2_of_negative(values[i, j])


def _exp2_at_most_one(x):
    """Return 2^min(x, 0) in the precision of x."""
    return exp2_of_negative(x) if x.dtype == np.float32 else 2.0 ** min(x, 0.0)


@overload(_exp2_at_most_one)
def _exp2_by_precision(x):
    return (lambda x: exp2_of_negative(x)) if x == float32 else (lambda x: 2.0 ** min(x, 0.0))


@compiled(lambda real: void(real[:, ::1], int64, float64), fastmath=True)
def finish(products, kernel, degree):
    """Convert the matrix product of two operands to kernel values, in place.

    `kernel` is an index into KERNELS.
    """
    power = int(min(degree, MULTIPLIED))
    for i in range(products.shape[0]):
        row = products[i]
        if kernel in (RBF, LAPLACIAN):
            for j in range(len(row)):
                row[j] = _exp2_at_most_one(row[j])
        elif kernel == POLY and power == degree:
            for j in range(len(row)):
                base = row[j]
                for _ in range(power - 1):
                    row[j] *= base
        elif kernel == POLY:
            for j in range(len(row)):
                row[j] = row[j] ** degree
