"""Kernels between rows and prototypes, with derivatives for learning the prototypes.

With X a block of rows (m, d), U the prototypes, here as columns (d, J), and gamma = exp(theta),

    rbf     k = exp(-gamma D),  D = ||x - u||^2    dk/du = 2 gamma (x - u) k          dk/dtheta = -gamma D k
    poly    k = (gamma x'u + c)^p                  dk/du = p (gamma x'u + c)^(p-1) gamma x
                                                   dk/dtheta = p (gamma x'u + c)^(p-1) gamma x'u
    linear  k = x'u                                dk/du = x                          dk/dtheta = 0

The lazy form of rbf, for sparse data, sums the distance over the non-zero features of x only, so that only these
features of u change.  prototype_klr, "Learning the reference vectors" and "Implementation details".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numba import float32, float64, int32, void

from klr_bench.estimators.core.jit import compiled, read_only
from klr_bench.estimators.core.kernels import exp2_negative
from klr_bench.estimators.core.rows import check_size, csr_places


@dataclass(frozen=True)
class PrototypeKernel:
    """Kernel between rows and prototypes; its methods take the learned gamma as an argument."""

    name: str
    degree: int = 3
    coef0: float = 1.0
    lazy: bool = False

    def values(self, X, U, theta):
        """Return the kernel values between the rows of X and the prototypes U.

        X is (m, d), U (d, J) and the values (m, J).  The second return value is an intermediate result for `slopes`.
        """
        gamma = U.dtype.type(np.exp(theta))
        if self.name == "rbf":
            D = self.distances(X, U)
            if D.dtype == np.float32:
                K = -gamma / np.float32(np.log(2)) * D
                exp2_negative(K)
            else:
                K = np.exp(-gamma * D)
            return K, D
        products = X @ U
        if self.name == "linear":
            return products, None
        base = gamma * products + U.dtype.type(self.coef0)
        return base**self.degree, base

    def slopes(self, X, U, theta, K, part, W, parts):
        """Return the gradient of a weighted kernel sum with respect to the prototypes and theta.

        The sum is sum_ij W_ij k(x_i, u_j) with the weights W (m, J); only the derivatives by `parts` are computed.
        """
        gamma = U.dtype.type(np.exp(theta))
        by_U, by_theta = None, 0.0
        if self.name == "rbf":
            A = W * K
            if "u" in parts and self.lazy:  # skip the features that are 0 in x_i
                by_U = np.zeros_like(U)
                _lazy_sums(*_parts(X), U, A, by_U)
                by_U *= 2 * gamma
            elif "u" in parts:
                by_U = X.T @ A - U * A.sum(axis=0)
                by_U *= 2 * gamma
            if "theta" in parts:
                by_theta = -float(gamma) * float(np.vdot(A, part))
        else:
            A = W if self.name == "linear" else W * (self.degree * gamma * part ** (self.degree - 1))
            if "u" in parts:
                by_U = X.T @ A
            if "theta" in parts and self.name == "poly":
                by_theta = float(np.vdot(A, part - self.coef0)) / float(gamma)
        return by_U, by_theta

    def distances(self, X, U):
        """Return the squared distances of the rows of X to the prototypes, of shape (m, J)."""
        if self.lazy:
            check_size("prototypes", U.shape[0], X.shape[1])
            D = np.empty((X.shape[0], U.shape[1]), dtype=U.dtype)
            _lazy_distances(*_parts(X), U, D)
            return D
        D = X @ U
        D *= -2
        D += _squared_norms(X)[:, None]
        D += np.einsum("dj,dj->j", U, U)
        return np.maximum(D, 0, out=D)


def _squared_norms(X):
    if sp.issparse(X):
        return np.bincount(np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.data**2, X.shape[0]).astype(X.dtype)
    return np.einsum("ij,ij->i", X, X)


def _parts(X):
    indptr, indices = csr_places(X)
    return X.data, indices, indptr


def _csr_signatures(n_matrices):
    block = [read_only(int32, 1)] * 2
    return [
        void(read_only(real, 1), *block, read_only(real, 2), *[real[:, ::1]] * n_matrices)
        for real in (float32, float64)
    ]


@compiled(_csr_signatures(1))
def _lazy_distances(data, indices, indptr, U, D):
    """Set D to squared distances between CSR rows and prototypes, using only the stored entries."""
    for i in range(len(indptr) - 1):
        D[i] = 0
        for p in range(indptr[i], indptr[i + 1]):
            value, u = data[p], U[indices[p]]
            for j in range(D.shape[1]):
                D[i, j] += (value - u[j]) * (value - u[j])


@compiled(_csr_signatures(2))
def _lazy_sums(data, indices, indptr, U, A, total):
    """Add sum_i A_ij (x_ik - u_kj) to total[k, j], for the stored entries x_ik of CSR rows."""
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            value, u, out = data[p], U[indices[p]], total[indices[p]]
            for j in range(A.shape[1]):
                out[j] += A[i, j] * (value - u[j])
