"""ALMA: equal to the reference, and with the margin that it promises."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from klr_bench.estimators.online import strategies
from tests.cover import cover
from tests.estimators.budget.test_budget import assert_same_learner, kernel_matrix
from tests.estimators.one_pass import ALMA
from tests.estimators.samples import KERNELS, LAYOUTS, laid_out, suited, toy
from tests.reference import kernel as reference

ROOT = np.sqrt(2)


@cover(
    2,
    kernel=KERNELS,
    layout=[layout for layout in LAYOUTS if layout not in ("bits", "csr as bits")],  # where f is 0 but for rounding
    block=[1, 7, 64],
    average=[False, True],
    alpha=[0.3, 0.9, 1.0],
    B=[None, 1.0],
    C=[None, 0.4],
)
def test_equals_the_reference(kernel, layout, block, average, alpha, B, C, monkeypatch):
    monkeypatch.setattr(strategies, "SHORT", block)
    X, y = toy(n=150)
    X = suited(X, layout)
    learner = ALMA(alpha, B, C, average=average, **kernel).fit(laid_out(X, layout, monkeypatch), y)
    f = reference.alma(kernel_matrix(X, kernel), y, alpha, B or 2 * ROOT / alpha, C or ROOT)
    assert_same_learner(learner, X, f, rtol=1e-9, atol=1e-10 * np.abs(f.coef).max())
    assert learner.n_updates_ > 10


@pytest.mark.parametrize("alpha", [0.3, 0.6, 0.9])
def test_where_it_makes_no_errors_the_margin_is_that_of_the_theorem(alpha):
    """Passes until there is no update: the margin is at least 1 - alpha of the largest, by an SVM without slack."""
    X, y = toy(n=40)
    learner = ALMA(alpha, kernel="rbf", gamma=20.0)
    for _ in range(1000):
        before = getattr(learner, "n_updates_", -1)
        learner.partial_fit(X, y, classes=[-1, 1])
        if learner.n_updates_ == before:
            break
    assert learner.n_updates_ == before
    K = kernel_matrix(learner.support_vectors_, {"gamma": 20.0})
    norm = np.sqrt(learner.dual_coef_ @ K @ learner.dual_coef_)
    assert norm <= 1 + 1e-9
    signed = y[:, None] * y * kernel_matrix(X, {"gamma": 20.0})
    L = np.linalg.cholesky(signed + 1e-10 * np.eye(len(y)))
    a, _ = nnls(L.T, np.linalg.solve(L, np.ones(len(y))))  # the dual problem of the SVM, without slack and intercept
    largest = 1 / np.sqrt(a @ signed @ a)
    assert np.min(y * learner.decision_function(X)) / norm >= (1 - alpha) * largest
