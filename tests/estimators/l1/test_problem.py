"""The problem that the solvers share: its duality gap and the feature matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klr_bench.estimators.core.features import LinearFeatures
from klr_bench.estimators.l1 import matrix
from klr_bench.estimators.l1.matrix import FeatureMatrix
from klr_bench.estimators.l1.problem import Problem
from tests.reference import kernel as reference


def problem_of(Z, y, lam, intercept=True):
    return Problem(FeatureMatrix(LinearFeatures.of(Z), Z), y.astype(float), lam, intercept=intercept)


@settings(max_examples=100)
@given(
    n=st.integers(2, 30),
    D=st.integers(1, 8),
    seed=st.integers(0, 2**31),
    size=st.sampled_from([0.0, 1e-3, 1.0, 30.0, 1e3]),
    lam=st.sampled_from([1e-6, 0.1, 1.0, 100.0]),
    intercept=st.booleans(),
)
def test_the_gap_is_never_negative(n, D, seed, size, lam, intercept):
    random = np.random.RandomState(seed)
    Z, y = random.standard_normal((n, D)), np.where(random.random_sample(n) < 0.3, 1, -1)
    y[:2] = 1, -1
    x = size * random.standard_normal(D + intercept) * (random.random_sample(D + intercept) < 0.7)
    gap = problem_of(Z, y, lam, intercept).gap(x)
    assert gap >= 0
    if size < 1e3:
        b = x[-1] if intercept else 0.0
        objective = reference.l1_objective(x[:D], b, Z, y, lam)
        expected = reference.l1_gap(x[:D], b, Z, y, lam, intercept)
        assert expected >= -1e-10 * objective
        assert gap == pytest.approx(max(expected, 0), rel=1e-8, abs=1e-10 * objective)


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("limit", [np.inf, 0.15, 1e-9])
def test_sums_over_the_matrix(real, by_rows, limit, monkeypatch):
    monkeypatch.setattr(matrix, "BLOCK", 490)
    random = np.random.RandomState(0)
    Z = random.standard_normal((5000 if limit > 1e-3 else 333, 7)).astype(real)
    Z64, h = Z.astype(np.float64), random.random_sample(len(Z))
    whole = FeatureMatrix(LinearFeatures.of(Z), Z, by_rows=by_rows, memory_limit=limit)
    if limit == 0.15:  # room for the matrix, and for nothing that is taken from it
        whole = FeatureMatrix(LinearFeatures.of(Z[::-1]), Z[::-1], by_rows=by_rows, memory_limit=Z.nbytes / 1e6)
        assert whole.stored is not None
        assert whole.take(np.array([0])).stored is None
        Z64 = Z64[::-1]
    J = np.array([5, 1, 2])
    for part, expected in ((whole, Z64), (whole.take(J), Z64[:, J]), (whole.take(J[:0]), Z64[:, :0])):
        w = random.standard_normal(expected.shape[1])
        np.testing.assert_allclose(part.times(w), expected @ w, rtol=1e-11, atol=1e-12)
        V = random.standard_normal((2, len(Z)))
        sums, squares = part.sums(V, h)
        np.testing.assert_allclose(sums, V @ expected, rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(squares, h @ expected**2, rtol=1e-11)
        np.testing.assert_allclose(part.gram(h), expected.T @ (h[:, None] * expected), rtol=1e-3, atol=1e-3)
        np.testing.assert_array_equal(part.rows(np.array([3, 1])), expected[[3, 1]])
