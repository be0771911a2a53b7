"""The columns of a sparse matrix that occur in it: of millions of features a set of rows has few."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from klr_bench.estimators.core.rows import without_duplicates


def occurring(X):
    """Return the numbers of the columns (c,) with a stored entry, ascending, and the CSR matrix of them (n, c).

    X (n, d) is an array, of which all columns occur, or a CSR matrix.
    """
    if not sp.issparse(X):
        return np.arange(X.shape[1]), sp.csr_matrix(X)
    X = without_duplicates(X)
    there = np.zeros(X.shape[1], dtype=bool)
    there[X.indices] = True
    columns = np.flatnonzero(there)
    renumbered = np.cumsum(there, dtype=X.indices.dtype) - 1
    return columns, sp.csr_matrix((X.data, renumbered[X.indices], X.indptr), shape=(X.shape[0], len(columns)))
