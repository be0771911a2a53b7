"""ALMA: equal to the reference, and with the margin that it promises."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls

from klr_bench.estimators.online import strategies
from tests.cover import cover
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
    K = reference.kernel_matrix(X, X, **kernel)
    last, mean, inserted = reference.alma(K, y, alpha, B or 2 * ROOT / alpha, C or ROOT)
    support = learner.support_vectors_.toarray() if sp.issparse(learner.support_vectors_) else learner.support_vectors_
    np.testing.assert_array_equal(support, X[inserted])
    expected = (mean if average else last)[inserted]
    np.testing.assert_allclose(learner.dual_coef_, expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max())
    assert learner.n_updates_ == learner.n_support_ == inserted.sum() > 10


@pytest.mark.parametrize("alpha", [0.5, 0.9])
def test_with_a_linear_kernel_it_is_the_linear_algorithm(alpha):
    X, y = toy(n=300, empty_rows=False)
    w, k = np.zeros(X.shape[1]), 1
    for x, label in zip(X / np.linalg.norm(X, axis=1)[:, None], y, strict=True):
        if label * (w @ x) <= (1 - alpha) * np.sqrt(8) / alpha / np.sqrt(k):
            w += np.sqrt(2 / k) * label * x
            w /= max(1, np.linalg.norm(w))
            k += 1
    learner = ALMA(alpha, kernel="linear").fit(X, y)
    assert learner.n_updates_ == k - 1
    np.testing.assert_allclose(learner.dual_coef_ @ learner.support_vectors_, w, rtol=1e-9)


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
    K = reference.kernel_matrix(learner.support_vectors_, learner.support_vectors_, gamma=20.0)
    norm = np.sqrt(learner.dual_coef_ @ K @ learner.dual_coef_)
    assert norm <= 1 + 1e-9
    signed = y[:, None] * y * reference.kernel_matrix(X, X, gamma=20.0)
    L = np.linalg.cholesky(signed + 1e-10 * np.eye(len(y)))
    a, _ = nnls(L.T, np.linalg.solve(L, np.ones(len(y))))  # the dual problem of the SVM, without slack and intercept
    largest = 1 / np.sqrt(a @ signed @ a)
    assert np.min(y * learner.decision_function(X)) / norm >= (1 - alpha) * largest
