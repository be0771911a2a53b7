"""Test that budgeted SGD equals the reference and that merging and projection are optimal."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from klr_bench.estimators.budget import bsgd_projection, merging
from klr_bench.estimators.online import state
from tests.estimators.one_pass import BSGD, KernelPegasos
from tests.estimators.samples import toy
from tests.reference import kernel as reference


def merging_learner(budget, lam=0.02, loss="hinge", **parameters):
    return BSGD(budget, lam, loss, "merging", gamma=2.0, **parameters)


def assert_same_points(learner, X, f, *, tolerance):
    """Assert that points and coefficients equal those of the reference."""
    ever = np.arange(len(f.rows)) if learner.average else np.array(sorted(f.places))
    coefs = np.array(f.total) / len(X) if learner.average else np.array(f.coefs)
    assert learner.n_support_ == len(ever)
    assert learner.n_updates_ == sum(example >= 0 for example in f.examples)
    np.testing.assert_allclose(learner.support_vectors_, np.array(f.rows)[ever], rtol=0, atol=tolerance)
    largest = np.abs(coefs).max()
    np.testing.assert_allclose(learner.dual_coef_, coefs[ever], rtol=tolerance, atol=tolerance * largest)


@settings(max_examples=40)
@given(
    budget=st.integers(1, 40), n=st.integers(2, 150), seed=st.integers(0, 50), loss=st.sampled_from(["hinge", "logit"]),
    average=st.booleans(), sparse=st.booleans(), block=st.sampled_from([1, 7, 64, 128]),
)  # fmt: skip
@example(budget=9, n=150, seed=0, loss="logit", average=True, sparse=False, block=64)
def test_equals_the_reference(budget, n, seed, loss, average, sparse, block):
    X, y = toy(n=n, seed=seed, empty_rows=False)
    y[0] = -y[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "BLOCK", block)
        learner = merging_learner(budget, loss=loss, average=average).fit(sp.csr_matrix(X) if sparse else X, y)
    expected = reference.bsgd_merging(X, y, budget, 0.02, loss, 2.0)
    assume(not expected.is_unclear)
    assert_same_points(learner, X, expected, tolerance=1e-4)


@settings(max_examples=300)
@given(st.floats(1e-6, 1e6), st.floats(1, 1e5), st.one_of(st.floats(0, 6), st.floats(0, 800)))
def test_merging_minimizes_the_residual(a, share, distance):
    b = a * share
    h, weight, left = merging.merged(a, b, distance)
    expected = reference.merge(a, b, distance)
    assert 0 <= h <= 0.5
    assert weight == pytest.approx(expected[1], rel=1e-12)
    assert left == pytest.approx(expected[2], abs=1e-9 * b * b)
    assert left <= a * a * (1 + 1e-12)  # removal leaves a larger residual


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.floats(1, 100), st.floats(0, 20), st.sampled_from([-1, 1, 1])), min_size=1, max_size=30),
    st.floats(1e-3, 1e3),
)
def test_partner_has_the_smallest_residual(others, a):
    coef = a * np.array([-1.0, *(sign * share for share, _, sign in others)])
    distances = np.array([0.0, *(distance for _, distance, _ in others)])
    best, h, weight = merging.partner(coef, distances, np.arange(len(coef)), 0)
    left = {j: merging.merged(a, -coef[j], distances[j])[2] for j in range(1, len(coef)) if coef[j] < 0}
    assert (best >= 0) == bool(left)
    if left:
        assert left[best] <= min(left.values()) + 2e-12 * a * a
        assert (h, weight) == merging.merged(a, -coef[best], distances[best])[:2]


@pytest.mark.parametrize("average", [False, True])
def test_each_class_has_separate_points(average):
    X, _ = toy(n=400, empty_rows=False)
    y = np.digitize(X[:, 0], [-0.2, 0.3])
    learner = merging_learner(15, average=average).fit(X, y)
    values = np.column_stack([estimator.decision_function(X) for estimator in learner.estimators_])
    np.testing.assert_allclose(learner.decision_function(X), values, rtol=1e-9, atol=1e-9)
    points = sum(int(np.sum(estimator._numbers < 0)) for estimator in learner.estimators_)
    examples = {number for estimator in learner.estimators_ for number in estimator._numbers if number >= 0}
    assert points > 10
    assert learner.n_support_ == points + len(examples)
    last = learner.last_classifier()
    assert all(estimator.n_support_ <= 15 for estimator in last.estimators_)


def test_merging_requires_the_gaussian_kernel_and_cannot_change_later():
    X, y = toy(n=40)
    with pytest.raises(ValueError, match=r"The 'kernel' parameter of BSGD must be 'rbf' for merging\. Got 'poly'"):
        merging_learner(10, kernel="poly").fit(X, y)
    learner = merging_learner(10).partial_fit(X, y)
    with pytest.raises(ValueError, match="maintenance"):
        learner.set_params(maintenance="removal").partial_fit(X, y)


def learner_of(budget, lam=0.02, **parameters):
    return BSGD(budget, lam, maintenance="projection", **({"gamma": 2.0} | parameters))


@settings(max_examples=100)
@given(st.integers(1, 30), st.data())
def test_without_equals_the_factor_of_the_smaller_matrix(m, data):
    p, seed = data.draw(st.integers(0, m - 1)), data.draw(st.integers(0, 1000))
    A = np.random.RandomState(seed).standard_normal((m, m + 2))
    factor, stay = np.linalg.cholesky(A @ A.T).T.copy(), np.delete(np.arange(m), p)
    bsgd_projection.without(factor, p, m)
    expected = np.linalg.cholesky((A @ A.T)[np.ix_(stay, stay)]).T
    np.testing.assert_allclose(np.triu(factor[: m - 1, : m - 1]), expected, rtol=1e-8, atol=1e-8)


def test_projection_and_merging_are_more_accurate_than_removal():
    X, y = toy(n=2000)
    whole = KernelPegasos(lam=0.002, project=False, gamma=2.0, average=True).fit(X, y).decision_function(X)

    def distance(maintenance):
        learner = BSGD(20, 0.002, maintenance=maintenance, gamma=2.0, average=True).fit(X, y)
        return np.linalg.norm(learner.decision_function(X) - whole)

    assert distance("projection") < 0.5 * distance("removal")
    assert distance("merging") < 0.7 * distance("removal")


def test_factor_is_accurate_after_many_replacements():
    X, y = toy(n=3000)
    learner = learner_of(40, gamma=0.3).fit(X, y)
    assert learner.n_updates_ > 300
    rows, factor = learner.support_vectors_, np.triu(learner._state.factor[:40, :40])
    K = reference.kernel_matrix(rows, rows, gamma=0.3)
    np.testing.assert_allclose(factor.T @ factor, K, atol=1e-12)
