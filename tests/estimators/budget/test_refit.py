"""The second pass of OSKL with a budget: the best coefficients of its support vectors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from klr_bench import BudgetOSKL, DualCDKLR
from klr_bench.estimators.budget.oskl import best_coefficients
from tests.cover import cover
from tests.estimators.samples import KERNELS, LAYOUTS, laid_out, suited, toy
from tests.reference import kernel as reference


def dense(rows):
    return (rows.toarray() if hasattr(rows, "toarray") else rows).astype(np.float64)


@cover(2, kernel=KERNELS, layout=LAYOUTS, lam=[None, 1e-3, 0.1], average=[False, True])
def test_the_gradient_vanishes_in_the_span_of_the_support_vectors(kernel, layout, lam, average, monkeypatch):
    X, y = toy(n=200)
    X = suited(X, layout)
    rows = laid_out(X, layout, monkeypatch)
    learner = BudgetOSKL(budget=25, refit=True, lam=lam, average=average, random_state=0, **kernel).fit(rows, y)
    S, a, lam = dense(learner.support_vectors_), learner.dual_coef_, lam or 1 / (10 * len(y))
    K, G = reference.kernel_matrix(X, S, **kernel), reference.kernel_matrix(S, S, **kernel)
    gradient = K.T @ (-y * expit(-y * (K @ a))) / len(y) + lam * G @ a
    scale = np.abs(K).mean(axis=0).max()
    assert np.abs(gradient).max() <= 2e-5 * scale
    np.testing.assert_array_equal(learner.last_classifier().dual_coef_, a)


def test_no_other_coefficients_have_a_lower_objective():
    X, y = toy(n=120)
    learner = BudgetOSKL(budget=6, gamma=2.0, refit=True, lam=0.02, random_state=0).fit(X, y)
    S = learner.support_vectors_
    K, G = (reference.kernel_matrix(rows, S, gamma=2.0) for rows in (X, S))

    def objective(a):
        return 0.01 * a @ G @ a + np.logaddexp(0, -y * (K @ a)).mean()

    found = minimize(objective, np.zeros(6), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(learner.dual_coef_, found.x, rtol=1e-3, atol=1e-4)
    assert objective(BudgetOSKL(budget=6, gamma=2.0, random_state=0).fit(X, y).dual_coef_) > found.fun


def test_with_all_rows_it_is_batch_kernel_logistic_regression():
    X, y = toy(n=80)
    batch = DualCDKLR(lam=0.01, gamma=2.0, tol=1e-10).fit(X, y)
    coef = best_coefficients(batch._operands, X, X, y, 0.01)
    np.testing.assert_allclose(reference.kernel_matrix(X, X, gamma=2.0) @ coef, batch.decision_function(X), atol=1e-4)


def test_equal_support_vectors_share_their_coefficient():
    X, y = toy(n=40)
    X, y = np.repeat(X, 5, axis=0), np.repeat(y, 5)
    learner = BudgetOSKL(budget=60, gamma=2.0, refit=True, random_state=0).fit(X, y)
    assert len(np.unique(learner.support_vectors_, axis=0)) < 60
    assert np.isfinite(learner.dual_coef_).all()
    assert np.abs(learner.dual_coef_).max() < 1e3


def test_going_on_leaves_it_out():
    X, y = toy(n=100)
    learners = [BudgetOSKL(budget=10, gamma=2.0, refit=refit, random_state=0).fit(X, y) for refit in (True, False)]
    assert np.abs(learners[0].dual_coef_ - learners[1].dual_coef_).max() > 0.01
    for learner in learners:
        learner.partial_fit(X[:7], y[:7])
    np.testing.assert_array_equal(learners[0].dual_coef_, learners[1].dual_coef_)


def test_a_fit_that_is_ended_has_none():
    X, y = toy(n=400)
    learners = [BudgetOSKL(budget=10, gamma=2.0, refit=refit, random_state=0) for refit in (True, False)]
    for learner in learners:
        learner.fit(X, y, callback=lambda _, t: t > 100)
    np.testing.assert_array_equal(learners[0].dual_coef_, learners[1].dual_coef_)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_three_classes(layout, monkeypatch):
    X, y = toy(n=300)
    labels = np.where(X[:, 0] > 0.5, "c", np.where(y > 0, "b", "a"))
    rows = laid_out(X, layout, monkeypatch)
    learner = BudgetOSKL(budget=20, gamma=2.0, refit=True, random_state=0).fit(rows, labels)
    plain = BudgetOSKL(budget=20, gamma=2.0, random_state=0).fit(rows, labels)
    assert learner.score(rows, labels) > plain.score(rows, labels)


@pytest.mark.parametrize("loss", ["exponential", "square"])
def test_it_is_for_the_logit_loss(loss):
    X, y = toy(n=20)
    with pytest.raises(ValueError, match=rf"is for loss='logit'; use refit=False\. Got loss='{loss}'\."):
        BudgetOSKL(G=30.0, loss=loss, refit=True).fit(X, y)
