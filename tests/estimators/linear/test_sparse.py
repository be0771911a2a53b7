"""What the learners that select features share: layouts, memory, callbacks, and what is refused."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from klr_bench import SOFS, FeatureGeneratingMachine, SparDCA, SparseBatchConfidenceWeighted
from klr_bench.estimators.core.rows import occurring
from tests.estimators.linear.samples import toy

ALL = [SOFS(), SparDCA(), SparseBatchConfidenceWeighted(), FeatureGeneratingMachine()]
URL_FEATURES = 3_231_961


@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: type(estimator).__name__)
def test_layouts_and_precisions_agree(estimator):
    X, y = toy(80, 20)
    X = X.astype(np.float32).astype(np.float64)
    if isinstance(estimator, SparDCA):
        estimator = SparDCA(random_state=0)
    dense = pickle.loads(pickle.dumps(estimator)).fit(X, y)
    for other in (sp.csr_matrix(X), sp.csr_matrix(X.astype(np.float32)), sp.csc_matrix(X), X.astype(np.float32)):
        found = pickle.loads(pickle.dumps(estimator)).fit(other, y)
        rtol = 1e-10 if other.dtype == np.float64 else 2e-3
        np.testing.assert_allclose(found.coef_, dense.coef_, rtol=rtol, atol=rtol * np.abs(dense.coef_).max())
        np.testing.assert_allclose(found.decision_function(other), other @ found.coef_, rtol=1e-5, atol=1e-5)
    doubled = sp.csr_matrix(X)
    doubled = sp.csr_matrix(
        (np.repeat(doubled.data / 2, 2), np.repeat(doubled.indices, 2), 2 * doubled.indptr), shape=X.shape
    )
    np.testing.assert_allclose(pickle.loads(pickle.dumps(estimator)).fit(doubled, y).coef_, dense.coef_, rtol=1e-9)


def test_columns_that_occur():
    X = sp.csr_matrix([[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 0.0, 3.0]])
    columns, there = occurring(X)
    assert columns.tolist() == [1, 3]
    np.testing.assert_array_equal(there.toarray(), [[2.0, 1.0], [0.0, 3.0]])
    columns, there = occurring(X.toarray())
    assert columns.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(there.toarray(), X.toarray())


@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: type(estimator).__name__)
def test_memory_grows_with_the_non_zeros(estimator):
    """Of as many features as url has: vectors of them, never a square."""
    random = np.random.RandomState(0)
    columns = np.column_stack([np.zeros(300, dtype=int), 1 + random.randint(0, URL_FEATURES - 1, (300, 100))])
    values, rows = random.standard_normal(columns.size).astype(np.float32), np.repeat(np.arange(300), 101)
    X = sp.csr_matrix((values, (rows, columns.ravel())), shape=(300, URL_FEATURES))
    y = np.where(X[:, [0]].toarray().ravel() > 0, 1, -1)
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 8 * URL_FEATURES
    assert estimator.coef_.shape == (URL_FEATURES,)
    assert estimator.score(X, y) > 0.7


@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: type(estimator).__name__)
def test_the_callback_ends_the_fit(estimator):
    X, y = toy()
    seen = []

    def callback(model, t):
        seen.append((t, model.score(X, y)))
        return True

    estimator.fit(X, y, callback=callback)
    assert len(seen) == 1
    assert seen[0][1] > 0.5


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (SparseBatchConfidenceWeighted(C=0.0), "'C' parameter"),
        (SparseBatchConfidenceWeighted(q=3), "'q' parameter"),
        (FeatureGeneratingMachine(n_features_to_select=0), "'n_features_to_select' parameter"),
        (FeatureGeneratingMachine(sigma=0.0), "'sigma' parameter"),
        (SOFS(r=-1.0), "'r' parameter"),
        (SparDCA(l1=-1.0), "'l1' parameter"),
    ],
)
def test_refuses_parameters(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(*toy(20))
