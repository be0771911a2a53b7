"""Kernels of dense or CSR rows: operands that are prepared once, and tiles of values by one matrix product.

Everything a tile needs besides the products x'z is folded into the operands, so that a tile is one product and one
elementwise function:

    rbf     exp(-gamma ||x - z||^2)      [s(x-o), -gamma||x-o||^2, 1] . [s(z-o), 1, -gamma||z-o||^2],  s = sqrt(2 gamma)
    poly    (gamma x'z + coef0)^degree   [gamma x, coef0] . [z, 1]
    linear  x'z

The origin o of a dense rbf kernel is a training row: the kernel does not depend on it, but in float32 the squared
distances of rows that lie far from 0 would be lost without it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

KERNELS = ("rbf", "poly", "linear")


@dataclass(frozen=True)
class Kernel:
    """A kernel function; parameters and names as in scikit-learn."""

    name: str = "rbf"
    gamma: float = 1.0
    degree: float = 3
    coef0: float = 1.0

    def left(self, X, origin=None):
        """Prepare rows X (n, d) as the left operand: (n, d') array, or the CSR rows as they are.

        `origin` is a row (d,) of dense training data, the same for both operands; only rbf uses it.
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
        """Rows [sqrt(2 gamma) (x - o), ...] with 1 and -gamma ||x - o||^2 in the two given columns."""
        operand = np.empty((len(X), X.shape[1] + 2), dtype=X.dtype)
        rows = operand[:, :-2]
        np.subtract(X, 0 if origin is None else origin, out=rows)
        rows *= np.sqrt(2 * self.gamma)
        operand[:, columns[0]] = 1
        operand[:, columns[1]] = -0.5 * np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        return operand

    def values(self, left, right):
        """Kernel values (n, m) of a left operand (n, d') and a right operand (d', m), in their precision."""
        values = self._sparse_products(left, right) if sp.issparse(left) else left @ right
        if self.name == "rbf":
            np.minimum(values, 0, out=values)
            np.exp(values, out=values)
        elif self.name == "poly":
            np.power(values, self.degree, out=values)
        return values

    def _sparse_products(self, left, right):
        products = (left @ right).toarray()
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
        """k(x, x) of the rows X (n, d), as a float64 array (n,)."""
        if self.name == "rbf":
            return np.ones(X.shape[0])
        squared = _squared_norms(X).astype(np.float64)
        return squared if self.name == "linear" else (self.gamma * squared + self.coef0) ** self.degree


def _squared_norms(X):
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel().astype(X.dtype)
    return np.einsum("ij,ij->i", X, X)
