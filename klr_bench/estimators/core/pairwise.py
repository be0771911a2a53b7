"""Operands of callable and precomputed kernels, and of scikit-learn's pairwise kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klr_bench.estimators.core.kernels import Kernel
from klr_bench.estimators.core.operand_base import PlainOperands
from klr_bench.estimators.core.rows import in_layout, slices

DIAGONAL_ROWS = 32
"""Number of rows per call of a kernel function if only k(x, x) is needed."""


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
        if callable(name):
            values = name(left, Z)
        else:
            from sklearn.metrics.pairwise import pairwise_kernels  # a slow import

            parameters = {"gamma": self.kernel.gamma, "coef0": self.kernel.coef0}
            values = pairwise_kernels(left, Z, name, filter_params=True, **parameters)
        expected = left.shape[0], Z.shape[0]
        if np.shape(values) != expected:
            message = f"kernel: expected {name!r} to return an array of shape {expected}, got shape {np.shape(values)}."
            raise ValueError(message)
        return np.ascontiguousarray(in_layout(values, sparse=False), dtype=left.dtype)

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
