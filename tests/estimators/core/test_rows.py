"""Rows: the columns that have entries."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from klr_bench.estimators.core.rows import occurring


def test_columns_that_occur():
    X = sp.csr_matrix([[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 0.0, 3.0]])
    columns, there = occurring(X)
    assert columns.tolist() == [1, 3]
    np.testing.assert_array_equal(there.toarray(), [[2.0, 1.0], [0.0, 3.0]])
    columns, there = occurring(X.toarray())
    assert columns.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(there.toarray(), X.toarray())
