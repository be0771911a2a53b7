"""Inverted index of sparse rows, for matrix products that visit only matching entries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numba import boolean, int32, void

from klr_bench.estimators.core.jit import compiled, read_only
from klr_bench.estimators.core.rows import check_size, csr_places


@dataclass(frozen=True)
class CompactIndex:
    """Inverted index that covers only the features in `columns`.

    `lists` is a CSR matrix (k, m), and `columns` is ascending.
    """

    columns: np.ndarray
    lists: sp.csr_matrix

    @classmethod
    def of(cls, X):
        """Create an index of the rows of the CSR matrix X."""
        columns, places = np.unique(X.indices, return_inverse=True)
        shape = X.shape[0], len(columns)
        return cls(columns, sp.csr_matrix((X.data, places.astype(np.int32), X.indptr), shape=shape).T.tocsr())

    @property
    def shape(self):
        return self.lists.shape

    @property
    def dtype(self):
        return self.lists.dtype


def sparse_products(left, right, *, are_distances=False):
    """Return the product of two CSR matrices as a dense array.

    The rows of `right` are an inverted index of its columns: only matching entries cost time.  If `are_distances`, the
    products of entries a and b are replaced by |a| + |b| - |a - b|.
    """
    check_size("an index", right.shape[0], left.shape[1])
    out = np.zeros((left.shape[0], right.shape[1]), dtype=left.dtype)
    _inverted_index_products(left.data, right.data, *csr_places(left), *csr_places(right), are_distances, out)
    return out


def _index_signature(real):
    values, places = (read_only(of, 1) for of in (real, int32))
    return void(values, values, places, places, places, places, boolean, real[:, ::1])


@compiled(_index_signature)
def _inverted_index_products(data, posted, indptr, indices, lists, rows, are_distances, out):
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            value, feature = data[p], indices[p]
            for q in range(lists[feature], lists[feature + 1]):
                other = posted[q]
                term = abs(value) + abs(other) - abs(value - other) if are_distances else value * other
                out[i, rows[q]] += term
