"""Tests of SparDCA against a reference implementation and liblinear."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from klr_bench import SparDCA
from tests.estimators.linear.samples import toy
from tests.reference import sparse_linear as reference


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_spardca_equals_the_reference(C, q):
    X, y = toy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SparDCA(C, 3.0, q=q, max_iter=3, tol=0.0, random_state=7).fit(X, y)
    random = np.random.RandomState(7)
    w, a = reference.spardca(X, y, C, 3.0, q, [random.permutation(len(y)) for _ in range(3)])
    np.testing.assert_allclose(model.coef_, w, rtol=1e-8, atol=1e-10)
    primal = 0.5 * w @ w + 3.0 * np.abs(w).sum() + C * np.sum(np.maximum(0, 1 - y * (X @ w)) ** q)
    dual = a.sum() - (q == 2) * a @ a / (4 * C) - 0.5 * w @ w
    assert model.objective_ == pytest.approx(primal)
    assert model.duality_gap_ == pytest.approx((primal - dual) / primal)


def test_spardca_without_l1_equals_the_svm_of_liblinear():
    X, y = toy()
    ours = SparDCA(0.5, 0.0, q=2, tol=1e-9, max_iter=10_000, random_state=0).fit(X, y)
    theirs = LinearSVC(C=0.5, loss="squared_hinge", fit_intercept=False, tol=1e-10, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_[0], atol=1e-4)


def test_spardca_with_a_small_squared_norm_approximates_the_l1_svm():
    """With s/2 ||w||^2 added, ||w||_1 + C sum of squared losses is at most s/2 ||w||^2 above liblinear's minimum."""
    X, y = toy(200, 12)
    s, C = 0.01, 0.05
    theirs = LinearSVC(penalty="l1", C=C, dual=False, fit_intercept=False, tol=1e-8, max_iter=100_000).fit(X, y)
    ours = SparDCA(C / s, 1.0 / s, q=2, tol=1e-7, max_iter=20_000, random_state=0).fit(X, y)
    w = theirs.coef_[0]
    best, found = (np.abs(u).sum() + C * np.sum(np.maximum(0, 1 - y * (X @ u)) ** 2) for u in (w, ours.coef_))
    assert best * (1 - 1e-6) <= found <= best * (1 + 1e-6) + 0.5 * s * w @ w
    assert 0 < np.count_nonzero(ours.coef_) < 12


@pytest.mark.parametrize("q", [1, 2])
def test_l1_relative_of_1_gives_zero_weights(q):
    X, y = toy()
    assert not SparDCA(2.0, 1.001, l1_relative=True, q=q).fit(X, y).coef_.any()
    assert SparDCA(2.0, 0.8, l1_relative=True, q=q, tol=1e-6, max_iter=2000).fit(X, y).coef_.any()
