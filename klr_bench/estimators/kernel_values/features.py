"""Feature maps z(x): kernel values at centers, random Fourier features, or columns of x.

A map is made once from training rows.  `transform(X)` gives features (n, D); `take(J)` gives the map of the features J
alone, so that a sparse classifier computes only what it needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numba import float32, float64, types, void

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.rows import check_size, in_layout
from klr_bench.estimators.kernel_values.operands import operands_of

DENSE = 0.05
"""Fraction of nonzeros above which sparse rows are multiplied as dense rows."""
MOST_STORED = 2**24
"""Number of elements of omega above which each row has its own seed, and is redrawn when needed if X is sparse."""
DRAWN_AT_ONCE = 2**18
"""Number of elements of omega drawn at a time."""
_SINE = {
    real: tuple(real((-1) ** k * (2 * math.pi) ** (2 * k + 1) / math.factorial(2 * k + 1)) for k in reversed(range(n)))
    for real, n in ((np.float32, 6), (np.float64, 11))
}
"""Taylor coefficients of sin(2 pi s), from the highest power to the lowest; for |s| <= 1/4 the error is below eps."""


@dataclass(frozen=True)
class KernelFeatures:
    """Feature map whose features are the kernel values k(x, c_j) with the centers c_j.

    `centers` (D, d) are training rows, dense or CSR; see Qin et al. (2011), equation 3.
    """

    operands: object
    centers: object

    @classmethod
    def of(cls, X, kernel):
        """Create a feature map whose centers are the rows of X."""
        return cls(operands_of(kernel, X).fitting(X), X.copy())

    @property
    def n_features(self):
        return self.centers.shape[0]

    def take(self, J):
        return replace(self, centers=self.centers[J])

    def transform(self, X):
        """Return the kernel values between the rows of X and the centers."""
        if self.n_features == 0:
            return np.zeros((X.shape[0], 0), dtype=X.dtype)
        X = X.astype(self.centers.dtype, copy=False)
        operands = self.operands.fitting(X)
        return operands.values(operands.left(X), operands.right(self.centers))


@dataclass(frozen=True)
class DrawnRows:
    """Random matrix omega, for many features, with rows that are drawn only when needed.

    Its shape is (d, D). Row j depends only on `seed` and j. The numbers are normal with the standard deviation
    `scale`; `taken` (k,) are the columns in use, None for all D.
    """

    shape: tuple[int, int]
    scale: float
    seed: int
    dtype: np.dtype
    taken: np.ndarray | None = None

    def rows(self, numbers):
        """Return the rows of omega with the given indices."""
        rows = np.empty((len(numbers), self.shape[1]))
        for row, j in zip(rows, numbers, strict=True):
            row[:] = np.random.RandomState(np.random.Philox(key=[self.seed, j])).standard_normal(self.shape[1])
        rows *= self.scale
        return (rows if self.taken is None else rows[:, self.taken]).astype(self.dtype)

    def product(self, X):
        """Return the matrix product of X and omega, in the precision of X."""
        X = in_layout(X, sparse=True)
        columns, places = np.unique(X.indices, return_inverse=True)
        X = sp.csr_matrix((X.data, places, X.indptr), shape=(X.shape[0], len(columns))).tocsc()
        out = np.zeros((X.shape[0], self.shape[1] if self.taken is None else len(self.taken)), dtype=X.dtype)
        size = max(DRAWN_AT_ONCE // self.shape[1], 1)
        for start in range(0, len(columns), size):
            part = slice(start, start + size)
            out += X[:, part] @ self.rows(columns[part]).astype(X.dtype, copy=False)
        return out


@dataclass(frozen=True)
class FourierFeatures:
    """Feature map of D random Fourier features of the rbf kernel.

    The features are z_j(x) = sqrt(2/D) cos(omega_j'x + b_j).

    Qin et al. (2011), equation 14, with gamma = 1/sigma^2: omega_j ~ N(0, 2 gamma I), b_j ~ U(0, 2 pi).  omega (d, D),
    b (D,); scale is sqrt(2/D) of the D that was drawn.
    """

    omega: np.ndarray | DrawnRows
    b: np.ndarray
    scale: float

    @classmethod
    def of(cls, X, n_components, gamma, random):
        """Draw a random feature map for data with the number of columns and the precision of X."""
        if X.shape[1] * n_components > MOST_STORED:
            shape, seed = (X.shape[1], n_components), random.randint(2**63 - 1, dtype=np.int64)
            omega = DrawnRows(shape, np.sqrt(2 * gamma), int(seed), X.dtype)
            omega = omega if sp.issparse(X) else omega.rows(np.arange(X.shape[1]))
        else:
            omega = (np.sqrt(2 * gamma) * random.standard_normal((X.shape[1], n_components))).astype(X.dtype)
        b = random.uniform(0, 2 * np.pi, n_components)
        return cls(omega, b.astype(X.dtype), np.sqrt(2 / n_components))

    @property
    def n_features(self):
        return len(self.b)

    def take(self, J):
        if isinstance(self.omega, DrawnRows):
            omega = replace(self.omega, taken=J if self.omega.taken is None else self.omega.taken[J])
        else:
            omega = self.omega[:, J]
        return replace(self, omega=omega, b=self.b[J])

    def transform(self, X):
        """Return the D random Fourier features of each row of X."""
        if isinstance(self.omega, DrawnRows):
            z = self.omega.product(X)
        else:
            if sp.issparse(X) and X.nnz > DENSE * X.shape[0] * X.shape[1]:
                X = X.toarray()  # BLAS is faster
            z = X @ self.omega.astype(X.dtype, copy=False)
        scaled_cosine(z, self.b, self.scale)
        return z


@dataclass(frozen=True)
class LinearFeatures:
    """Feature map that selects the given columns of the data."""

    columns: np.ndarray

    @classmethod
    def of(cls, X):
        """Create a feature map that selects all columns of X."""
        return cls(np.arange(X.shape[1]))

    @property
    def n_features(self):
        return len(self.columns)

    def take(self, J):
        return LinearFeatures(self.columns[J])

    def is_all_of(self, X):
        """Return True if the map selects all columns of X in their original order."""
        return np.array_equal(self.columns, np.arange(X.shape[1]))

    def transform(self, X):
        """Return the selected columns of X as a dense array."""
        Z = X if self.is_all_of(X) else X[:, self.columns]
        return Z.toarray() if sp.issparse(Z) else Z


def scaled_cosine(values, b, scale):
    """Replace each row x of a matrix by scale * cos(x + b).

    The error is at most scale * eps * (2 + |x| + |b|); rounding x and b has the effect of an error of half of that.
    """
    check_size("shifts", np.shape(b), values.shape[1:])
    real = values.dtype.type
    _set_cosine(values, (0.5 / math.pi * b).astype(real), real(0.5 / math.pi), real(0.25), real(scale), _SINE[real])


def _signature(real, sine):
    return void(real[:, ::1], real[::1], real, real, real, types.UniTuple(real, len(sine)))


@compiled([_signature(float32, _SINE[np.float32]), _signature(float64, _SINE[np.float64])], fastmath={"contract"})
def _set_cosine(values, shifts, turns, quarter, scale, sine):
    """Replace each element x of a matrix by scale * cos(x + b).

    It is scale * sin(2 pi s) with s in [-1/4, 1/4], computed by a Taylor polynomial.
    """
    for i in range(values.shape[0]):
        row = values[i]
        for j in range(len(row)):
            turn = turns * row[j] + shifts[j]
            s = quarter - abs(turn - np.rint(turn))
            square, total = s * s, sine[0]
            for coefficient in sine[1:]:
                total = total * square + coefficient
            row[j] = total * (scale * s)
