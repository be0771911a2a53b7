"""Gradient boosting for sparse rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier

from klr_bench.estimators.peers import boosting
from klr_bench.estimators.peers.boosting import GradientBoosting
from tests.estimators.samples import spread_out, toy


def test_sparse_rows_give_what_dense_ones_give():
    X, y = toy(n=400)
    dense = HistGradientBoostingClassifier(random_state=0, max_iter=20).fit(X, y)
    sparse = GradientBoosting(random_state=0, max_iter=20).fit(sp.csr_matrix(X), y)
    for rows in (X, sp.csr_matrix(X)):
        np.testing.assert_array_equal(sparse.predict(rows), dense.predict(X))
        np.testing.assert_array_equal(sparse.predict_proba(rows), dense.predict_proba(X))
        np.testing.assert_array_equal(sparse.decision_function(rows), dense.decision_function(X))


def test_only_columns_that_occur_in_the_fit_are_made_dense(monkeypatch):
    monkeypatch.setattr(boosting, "LARGEST", 400 * 4)
    X, y = toy(n=400)
    few = GradientBoosting(random_state=0, max_iter=20).fit(sp.csr_matrix(X), y)
    many = GradientBoosting(random_state=0, max_iter=20).fit(spread_out(X), y)
    np.testing.assert_array_equal(many.predict_proba(spread_out(X)), few.predict_proba(X))
    with pytest.raises(ValueError, match="9999 features"):
        many.predict(spread_out(X)[:, :9999])


def test_rows_that_are_too_many_are_refused(monkeypatch):
    monkeypatch.setattr(boosting, "LARGEST", 1000)
    X, y = toy(n=400)
    with pytest.raises(ValueError, match="400 sparse rows of 4 features are too many"):
        GradientBoosting().fit(sp.csr_matrix(X), y)
