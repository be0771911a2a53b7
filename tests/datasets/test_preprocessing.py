"""Feature scaling fitted on the training rows, with ranks only for long tails."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.datasets.preprocessing import long_tailed, needs_float64, scaling_by


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


@given(exponents=st.lists(st.integers(-300, 17), min_size=6, max_size=6), sign=st.sampled_from([-1, 1]))
def test_no_unit_changes_anything_in_float64(exponents, sign):
    X = rows(300).astype(np.float64)
    X_moved = X * (sign * 10.0 ** np.array(exponents) / np.abs(X).max(axis=0))
    for kind in ("auto", "standard", "minmax"):
        expected = scaled(kind, sign * X, sign * X)[0]
        np.testing.assert_allclose(scaled(kind, X_moved, X_moved)[0], expected, rtol=1e-5, atol=1e-5)


@given(exponents=st.lists(st.integers(-30, 17), min_size=6, max_size=6))
def test_no_unit_changes_anything_in_float32(exponents):
    X = rows(300)
    units = np.ldexp(np.float32(1), exponents)
    for kind in ("auto", "standard", "minmax"):
        np.testing.assert_array_equal(scaled(kind, X * units, X * units)[0][:, :5], scaled(kind, X, X)[0][:, :5])


@pytest.mark.parametrize("kind", ["auto", "standard", "minmax"])
@pytest.mark.parametrize("offset", [0, 1e3, 1e6, 1.7e9, 1e12])
def test_numbers_far_from_0_keep_their_digits(kind, offset):
    """Times in seconds since 1970, within a minute, are no constant; their ranks are those of the seconds."""
    seconds = np.random.default_rng(0).random((400, 2)) * 60
    seconds[:, 1] = np.exp(seconds[:, 1] / 10)
    moved = seconds + offset
    assert needs_float64(moved) == (offset >= 1e6)
    expected, found = scaled(kind, seconds, seconds)[0], scaled(kind, moved, moved)[0]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5 + 1e-15 * offset)
    assert len(np.unique(found[:, 0])) == 400


@pytest.mark.parametrize("kind", ["auto", "standard", "minmax"])
@pytest.mark.parametrize("base", [2.0**53, -(2.0**53), 1.7e18, 1e12, 1e6])
def test_what_varies_beyond_the_last_digits_is_scaled(kind, base):
    """Whole numbers beyond 2^53, and times in nanoseconds, are no constant, although StandardScaler says so."""
    steps = np.spacing(abs(base)) * (np.arange(400)[:, None] * 7 % 400)
    expected, found = (scaled(kind, X, X)[0] for X in (steps, base + steps))
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e6 + 0.1, 123.456, -1e-5, 1e17, 5e-324, 0.0])
def test_a_constant_needs_no_digits_and_has_no_scale(value):
    for jitter in (0, 2.3e-16, 1e-15):
        X = np.full((1000, 1), value) * (1 + jitter * (np.arange(1000)[:, None] % 2))
        assert not needs_float64(X)
        for kind in ("auto", "standard", "minmax"):
            for same in (X, X.astype(np.float32)):
                assert np.abs(scaled(kind, same, same)[0]).max() < 1e-6


@pytest.mark.parametrize(
    ("x", "needed"),
    [
        (np.arange(2000.0) % 97, False),
        (1990 + np.arange(2000) % 35, False),
        (1.7e9 + np.arange(2000.0), True),
        (1.7e9 + 86400.0 * np.arange(2000), False),
        (273.15 + np.random.default_rng(0).normal(size=2000), True),
        (np.exp(5 * np.random.default_rng(0).normal(size=2000)), False),
        (np.where(np.arange(2000) % 50, 1.7e9 + np.arange(2000.0), -999999), True),
        (np.where(np.arange(2000) % 3, np.nan, 1.7e9 + np.arange(2000.0)), True),
        (np.where(np.arange(2000) % 3, 0, np.random.default_rng(0).random(2000)), False),
        (1e-100 * np.random.default_rng(0).normal(size=2000), True),
        (np.full(2000, np.nan), False),
    ],
)
def test_float64_is_needed_where_rounding_is_large_beside_the_spread(x, needed):
    assert needs_float64(np.asarray(x, dtype=float)[:, None]) == needed
    assert not needs_float64(np.asarray(x, dtype=np.float32)[:, None])
