"""Feature scaling fitted on the training rows, with ranks only for long tails."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.datasets.preprocessing import long_tailed, scaling_by


def scaled(kind, X, X_test):
    scaling = scaling_by(X, kind)
    return scaling.transform(X), scaling.transform(X_test)


def rows(n=2000, seed=0):
    """Return features: normal, long-tailed, binary and rare, uniform, long-tailed on both sides, constant."""
    random = np.random.RandomState(seed)
    tail = np.exp(2 * random.standard_normal(n)) * 1e4
    columns = [random.standard_normal(n), tail, random.random_sample(n) < 0.01, random.random_sample(n)]
    return np.column_stack([*columns, random.standard_t(1.5, n), np.full(n, 0.1)]).astype(np.float32)


def test_long_tails_are_detected():
    np.testing.assert_array_equal(long_tailed(rows()), [1, 4])


def test_long_tails_become_ranks_and_other_features_are_standardized():
    X, X_test = rows(), rows(500, seed=1)
    train, test = scaled("auto", X, X_test)
    plain, plain_test = scaled("standard", X, X_test)
    others = [0, 2, 3, 5]
    np.testing.assert_array_equal(train[:, others], plain[:, others])
    np.testing.assert_array_equal(test[:, others], plain_test[:, others])
    for column in (1, 4):
        order = np.argsort(X[:, column])
        assert (np.diff(train[order, column]) >= 0).all()
        ranks = np.arange(len(X)) / (len(X) - 1)
        np.testing.assert_allclose(train[order, column], (ranks - 0.5) * np.sqrt(12), atol=0.01)
    assert np.abs(test[:, [1, 4]]).max() < 1.8  # a test value beyond all training values counts as the largest
    assert train.dtype == test.dtype == np.float32
    np.testing.assert_array_equal(X, rows())  # the input is not modified


@given(exponent=st.integers(-20, 20), shift=st.sampled_from([0.0, 1.0]))
def test_the_unit_of_a_feature_changes_nothing(exponent, shift):
    X = rows(300)[:, [0, 1]]
    moved = (X.astype(np.float64) * 2.0**exponent + shift * 2.0**exponent).astype(np.float32)
    np.testing.assert_array_equal(long_tailed(moved), [1])
    np.testing.assert_allclose(scaled("auto", moved, moved)[0], scaled("auto", X, X)[0], atol=2e-3)
