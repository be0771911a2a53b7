"""NOGD: equal to the reference, the same however the rows are cut, and kernel gradient descent within its span."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from klr_bench.estimators.features import nogd as module
from tests.cover import cover
from tests.estimators.features.test_fogd import LOSSES, weights_of
from tests.estimators.one_pass import NOGD, KernelOGD
from tests.estimators.samples import KERNELS, LAYOUTS, laid_out, suited, toy
from tests.reference import kernel as reference
from tests.reference.descent import nogd


def assert_same_learner(learner, X, y, f, *, tolerance):
    """Compare with the reference: the support vectors, every coefficient, and the counts."""
    places, last, mean, mistakes, updates = f
    support = learner.support_vectors_
    np.testing.assert_array_equal(support.toarray() if sp.issparse(support) else support, X[places])
    expected = mean if learner.average else last
    np.testing.assert_allclose(
        np.atleast_2d(learner.dual_coef_), expected, rtol=tolerance, atol=tolerance * np.abs(expected).max()
    )
    assert learner.n_support_ == len(places) <= learner.budget
    assert (learner.n_mistakes_, learner.n_updates_, learner.t_) == (mistakes, updates, len(y))


@cover(
    3,
    loss=LOSSES,
    budget_rank=[(1, 1), (2, 1), (20, 4), (40, 9), (200, 9)],
    kernel=KERNELS,
    layout=LAYOUTS,
    block=[1, 7, 64, 1024],
    average=[False, True],
    weighted=[False, True],
)
def test_equals_the_reference(loss, budget_rank, kernel, layout, block, average, weighted, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", block)
    monkeypatch.setattr(module, "BLOCK", block)
    X, y = toy(n=150, d=12, empty_rows=False)
    X, weights = suited(X, layout), weights_of(150, weighted=weighted)
    eta = 0.3 if loss == "hinge" and "bits" not in layout else 0.02  # of bits f may be 0 but for rounding
    learner = NOGD(*budget_rank, eta=eta, loss=loss, average=average, **kernel)
    learner.fit(laid_out(X, layout, monkeypatch), y, sample_weight=weights if weighted else None)
    K = reference.kernel_matrix(X, X, **kernel)
    f = nogd(K, y[None], *budget_rank, eta, loss, weights)
    assert_same_learner(learner, X, y, f, tolerance=1e-7)
    expected = np.atleast_2d(learner.dual_coef_) @ K[f[0]]
    np.testing.assert_allclose(learner.decision_function(X), expected[0], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_many_classes_have_the_same_support_vectors(loss, average, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 70)
    X, _ = toy(n=300)
    labels = np.digitize(X[:, 0] + X[:, 1], [-0.4, 0.4])
    Y = np.where(labels == np.arange(3)[:, None], 1, -1)
    learner = NOGD(40, 9, eta=0.3, loss=loss, average=average, gamma=0.7).fit(X, labels)
    K = reference.kernel_matrix(X, X, gamma=0.7)
    f = nogd(K, Y, 40, 9, 0.3, loss, np.ones(300))
    assert_same_learner(learner, X, labels, f, tolerance=1e-7)
    assert learner.decision_function(X).shape == (300, 3)
    np.testing.assert_allclose(learner.decision_function(X), K[:, f[0]] @ learner.dual_coef_.T, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("average", [False, True])
def test_in_single_precision_up_to_rounding(average):
    X, y = toy(n=400)
    learner = NOGD(30, average=average, gamma=0.7).fit(X.astype(np.float32), y)
    assert learner.support_vectors_.dtype == np.float32
    exact = clone(learner).fit(X, y)
    np.testing.assert_allclose(learner.decision_function(X), exact.decision_function(X), rtol=0, atol=1e-3)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_budget_for_all_is_kernel_gradient_descent(loss, average):
    X, y = toy(n=300)
    learner = NOGD(301, eta=0.3, loss=loss, gamma=2.0, average=average).fit(X, y)
    exact = KernelOGD(eta=0.3, loss=loss, gamma=2.0, average=average).fit(X, y)
    np.testing.assert_array_equal(learner.support_vectors_, exact.support_vectors_)
    np.testing.assert_allclose(learner.dual_coef_, exact.dual_coef_, rtol=1e-10)
    np.testing.assert_allclose(learner.decision_function(X), exact.decision_function(X), rtol=1e-10)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_with_all_features_it_is_kernel_gradient_descent_within_the_span(loss, average):
    """Rows that come again lie in the span of the support vectors, and so does each gradient."""
    X, y = toy(n=60, empty_rows=False)
    X, y = np.vstack([X, X, X]), np.r_[y, -y, y]
    budget = NOGD(1000, eta=0.3, loss=loss, gamma=8.0).fit(X[:60], y[:60]).n_support_
    learner = NOGD(budget, budget, eta=0.3, loss=loss, gamma=8.0, average=average).fit(X, y)
    seen = np.isin(X, learner.support_vectors_).all(axis=1)
    X, y = X[seen], y[seen]
    learner = clone(learner).fit(X, y)
    assert learner.n_support_ == budget < learner.n_updates_
    exact = KernelOGD(eta=0.3, loss=loss, gamma=8.0, average=average).fit(X, y)
    np.testing.assert_allclose(learner.decision_function(X), exact.decision_function(X), rtol=1e-7, atol=1e-9)


def test_the_projection_is_the_nearest_function_on_the_features():
    """At the moment when there is no more room f becomes its projection: what is left is orthogonal to the features."""
    X, y = toy(n=40)
    free, projected = (NOGD(budget, 9, eta=0.3, gamma=0.7).fit(X, y) for budget in (41, 40))
    K = reference.kernel_matrix(X, X, gamma=0.7)
    left = free.dual_coef_ - projected.dual_coef_
    vectors = np.linalg.eigh(K)[1]
    np.testing.assert_allclose(vectors[:, -9:].T @ K @ left, 0, atol=1e-10)
    np.testing.assert_allclose(vectors[:, :-9].T @ projected.dual_coef_, 0, atol=1e-10)
    assert left @ K @ left > 1e-4


def test_more_features_than_the_kernel_has_change_nothing():
    """A linear kernel of 4 columns has rank 4; the other eigenvalues are 0 but for rounding."""
    X, y = toy(n=300)
    few, many = (NOGD(60, rank, eta=0.1, kernel="linear").fit(X, y) for rank in (4, 60))
    np.testing.assert_allclose(many.decision_function(X), few.decision_function(X), rtol=1e-6, atol=1e-9)
    single = NOGD(60, 60, eta=0.1, kernel="linear").fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.decision_function(X), few.decision_function(X), rtol=0, atol=1e-3)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_eigenvalues_that_are_zero_but_for_rounding_give_no_features(precision):
    X, y = toy(n=60)
    learner = NOGD(60, 60, eta=0.1, kernel="linear").fit(X.astype(precision), y)
    P = learner._state.projection[:, learner._state.projection.any(axis=0)]
    assert P.shape == (60, 4)
    np.testing.assert_allclose(P.T @ (X @ X.T) @ P, np.eye(4), atol=1e-5)


@pytest.mark.parametrize("layout", ["bits", "csr as bits"])
@pytest.mark.parametrize("budget", [30, 80, 200])
def test_some_rows_have_other_values_than_bits(budget, layout, monkeypatch):
    X, y = toy(n=150, d=12, empty_rows=False)
    X = suited(X, layout)
    X[60:70] += 0.1 * np.random.RandomState(0).standard_normal((10, X.shape[1]))
    rows = laid_out(X, layout, monkeypatch)
    learner = NOGD(budget, 9, eta=0.3, gamma=0.2)
    for part in np.split(np.arange(150), [60, 70]):
        learner.partial_fit(rows[part], y[part])
    f = nogd(reference.kernel_matrix(X, X, gamma=0.2), y[None], budget, 9, 0.3, "logit", np.ones(150))
    assert_same_learner(learner, X, y, f, tolerance=1e-7)


def test_equal_rows_are_one_direction():
    X, y = toy(n=10)
    X, y = np.tile(X[:2], (50, 1)), np.repeat(y, 10)
    learner = NOGD(20, 20, gamma=0.7).fit(X, y)
    assert np.isfinite(learner.decision_function(X)).all()
    exact = KernelOGD(loss="logit", gamma=0.7).fit(X, y)
    np.testing.assert_allclose(learner.decision_function(X), exact.decision_function(X), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("budget", [30, 150, 250, 1000])
def test_the_average_of_several_passes_is_that_of_the_last_one(budget, average):
    X, y = toy(n=200)
    twice = NOGD(budget, 9, gamma=0.7, average=average, n_epochs=2).fit(X, y)
    X, y, K = np.vstack([X, X]), np.r_[y, y], reference.kernel_matrix(np.vstack([X, X]), np.vstack([X, X]), gamma=0.7)
    places, last, both, *_ = nogd(K, y[None], budget, 9, 0.5, "logit", np.ones(400))
    first, _, of_first, *_ = nogd(K[:200, :200], y[None, :200], budget, 9, 0.5, "logit", np.ones(200))
    expected = 2 * both
    expected[:, : len(first)] -= of_first
    np.testing.assert_allclose(twice.dual_coef_, (expected if average else last)[0], rtol=1e-6, atol=1e-9)
    assert twice.n_support_ == len(places)
    assert twice.summary()["sparsity"] == 1 - len(places) / 200


@pytest.mark.parametrize("budget", [4, 200])
def test_values_that_overflow_are_refused(budget):
    X, y = toy(n=100)
    X[:7] *= 1e-3
    X[7:] *= 1e200
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"at example 8, .* is not finite"):
        NOGD(budget, kernel="poly", gamma=1.0, degree=3).fit(X, y)


def test_a_kernel_matrix_that_overflows_is_refused():
    """f is finite at all examples, but not the product of the last one with itself."""
    X, y = toy(n=8, empty_rows=False)
    X[7:] *= 1e200
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"at example 8, .* is not finite"):
        NOGD(8, loss="square", kernel="linear").fit(X, y)


def test_the_rank_is_at_most_the_budget():
    X, y = toy(n=20)
    with pytest.raises(ValueError, match=r"rank of NOGD: expected at most budget=10, .*; got 11"):
        NOGD(10, 11).fit(X, y)
