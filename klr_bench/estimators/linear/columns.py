"""The columns of a sparse matrix that have entries: a set of rows uses few of millions of features."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from klr_bench.estimators.core.rows import without_duplicates


def occurring(X):
    """Return the numbers (c,) of the columns with a stored entry, ascending, and their CSR matrix (n, c).

    X (n, d) is a CSR matrix, or an array, of which all columns are taken.
    """
    if not sp.issparse(X):
        return np.arange(X.shape[1]), sp.csr_matrix(X)
    X = without_duplicates(X)
    there = np.zeros(X.shape[1], dtype=bool)
    there[X.indices] = True
    columns = np.flatnonzero(there)
    renumbered = np.cumsum(there, dtype=X.indices.dtype) - 1
    return columns, sp.csr_matrix((X.data, renumbered[X.indices], X.indptr), shape=(X.shape[0], len(columns)))
