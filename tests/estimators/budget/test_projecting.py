"""Budgeted SGD that projects: each projection is the nearest there is, and the factor is that of the kernel matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klr_bench.estimators.budget import projecting
from tests.estimators.one_pass import BSGD, KernelPegasos
from tests.estimators.samples import toy
from tests.reference import kernel as reference


def learner_of(budget, lam=0.02, **parameters):
    return BSGD(budget, lam, maintenance="projection", **({"gamma": 2.0} | parameters))


@settings(max_examples=100)
@given(st.integers(1, 30), st.data())
def test_a_row_less_of_a_matrix_has_the_factor_that_it_should_have(m, data):
    p, seed = data.draw(st.integers(0, m - 1)), data.draw(st.integers(0, 1000))
    A = np.random.RandomState(seed).standard_normal((m, m + 2))
    factor, stay = np.linalg.cholesky(A @ A.T).T.copy(), np.delete(np.arange(m), p)
    projecting.without(factor, p, m)
    expected = np.linalg.cholesky((A @ A.T)[np.ix_(stay, stay)]).T
    np.testing.assert_allclose(np.triu(factor[: m - 1, : m - 1]), expected, rtol=1e-8, atol=1e-8)


@settings(max_examples=50)
@given(st.integers(1, 30), st.integers(0, 1000))
def test_triangular_systems_are_solved(m, seed):
    random = np.random.RandomState(seed)
    U, x = np.triu(random.standard_normal((m, m)) * 0.3) + 2 * np.eye(m), random.standard_normal(m)
    first = m // 2
    x[:first] = 0
    z = x.copy()
    projecting.forward(U, first, m, z)
    np.testing.assert_allclose(U.T @ z, x, atol=1e-10)
    projecting.backward(U, m, z)
    np.testing.assert_allclose(U.T @ U @ z, x, atol=1e-10)


@pytest.mark.parametrize("kernel", [{"kernel": "rbf", "gamma": 2.0}, {"kernel": "poly", "gamma": 0.5, "degree": 3}])
def test_what_leaves_is_the_least_and_the_others_stay_right_where_they_are(kernel):
    """f is as it was at the support vectors that stay: of their span it is then the nearest to f."""
    X, y = toy(n=160, empty_rows=False)
    n_removed = 0
    for n in range(100, 160):
        before, after = (learner_of(10, loss="logit", **kernel).fit(X[:m], y[:m]) for m in (n, n + 1))
        slope = -y[n] / (1 + np.exp(y[n] * before.decision_function(X[n : n + 1])[0]))
        rows = np.vstack([before.support_vectors_, X[n]])
        coef = np.r_[before.dual_coef_ * n / (n + 1), -slope / (0.02 * (n + 1))]
        K = reference.kernel_matrix(rows, rows, **kernel)
        least = np.argmin(np.abs(coef) * np.sqrt(np.diag(K)))
        stay = np.delete(np.arange(11), least)
        np.testing.assert_array_equal(after.support_vectors_, rows[stay])
        np.testing.assert_allclose(after.decision_function(rows[stay]), (K @ coef)[stay], rtol=1e-6, atol=1e-6)
        n_removed += least < 10
    assert n_removed > 5


@pytest.mark.parametrize("average", [False, True])
def test_merging_with_a_budget_for_all_is_pegasos(average):
    X, y = toy(n=300)
    learner = BSGD(300, 0.02, maintenance="merging", gamma=2.0, average=average).fit(X, y)
    free = KernelPegasos(lam=0.02, project=False, gamma=2.0, average=average).fit(X, y)
    np.testing.assert_array_equal(learner.support_vectors_, free.support_vectors_)
    np.testing.assert_allclose(learner.dual_coef_, free.dual_coef_, rtol=1e-9)


@pytest.mark.parametrize("average", [False, True])
def test_a_budget_for_all_is_pegasos(average):
    X, y = toy(n=300)
    X, y = np.vstack([X, X[:50]]), np.r_[y, -y[:50]]
    learner = learner_of(350, average=average).fit(X, y)
    free = KernelPegasos(lam=0.02, project=False, gamma=2.0, average=average).fit(X, y)
    assert learner.n_support_ < free.n_support_  # what is there already takes no room
    np.testing.assert_allclose(learner.decision_function(X), free.decision_function(X), rtol=1e-6, atol=1e-6)


def test_projection_and_merging_keep_more_than_removal():
    X, y = toy(n=2000)
    whole = KernelPegasos(lam=0.002, project=False, gamma=2.0, average=True).fit(X, y).decision_function(X)

    def distance(maintenance):
        learner = BSGD(20, 0.002, maintenance=maintenance, gamma=2.0, average=True).fit(X, y)
        return np.linalg.norm(learner.decision_function(X) - whole)

    assert distance("projection") < 0.5 * distance("removal")
    assert distance("merging") < 0.7 * distance("removal")


def test_after_many_replacements_the_factor_is_still_that_of_the_kernel_matrix():
    X, y = toy(n=3000)
    learner = learner_of(40, gamma=0.3).fit(X, y)
    assert learner.n_updates_ > 300
    rows, factor = learner.support_vectors_, np.triu(learner._state.factor[:40, :40])
    K = reference.kernel_matrix(rows, rows, gamma=0.3)
    np.testing.assert_allclose(factor.T @ factor, K, atol=1e-12)
