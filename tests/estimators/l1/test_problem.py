"""The problem that the solvers share: its duality gap and the feature matrix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klr_bench.estimators.kernel_values.features import LinearFeatures
from klr_bench.estimators.l1.matrix import FeatureMatrix
from klr_bench.estimators.l1.problem import Problem
from tests.reference import kernel as reference


def test_column_major_features_are_not_copied():
    X = np.asfortranarray(np.ones((30, 4), np.float32))
    assert np.shares_memory(FeatureMatrix(LinearFeatures.of(X), X).stored, X)


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
