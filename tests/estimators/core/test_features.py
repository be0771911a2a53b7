"""Feature maps: what they estimate, a part of one, and the cosine."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.estimators.core import features
from klr_bench.estimators.core.features import LARGEST_ANGLE, DrawnRows, FourierFeatures, KernelFeatures, cosine
from klr_bench.estimators.core.kernels import Kernel
from tests.estimators.l1.samples import toy
from tests.reference import kernel as reference


def test_fourier_features_estimate_the_kernel():
    X, _ = toy()
    Z = FourierFeatures.of(X, 20_000, 0.7, np.random.RandomState(0)).transform(X)
    np.testing.assert_allclose(Z @ Z.T, reference.kernel_matrix(X, X, gamma=0.7), atol=0.05)


def test_maps_take_features():
    X, _ = toy()
    J = np.array([7, 2, 3])
    kernel = KernelFeatures.of(X, Kernel("rbf", 0.7))
    for drawn in (kernel, FourierFeatures.of(X, 20, 0.7, np.random.RandomState(0))):
        np.testing.assert_allclose(drawn.take(J).transform(X), drawn.transform(X)[:, J], rtol=1e-10)
    np.testing.assert_allclose(kernel.transform(X), reference.kernel_matrix(X, X, gamma=0.7), rtol=1e-9)


@pytest.mark.parametrize("at_once", [1, 60, 2**18])
def test_rows_of_omega_can_be_drawn_when_needed(at_once, monkeypatch):
    monkeypatch.setattr(features, "MOST_STORED", 0)
    monkeypatch.setattr(features, "DRAWN_AT_ONCE", at_once)
    X, _ = toy()
    X = sp.csr_matrix(X)
    drawn = FourierFeatures.of(X, 2000 if at_once > 60 else 60, 0.7, np.random.RandomState(0))
    assert isinstance(drawn.omega, DrawnRows)
    Z, J = drawn.transform(X), np.array([7, 2, 3])
    if at_once > 60:
        np.testing.assert_allclose(Z @ Z.T, reference.kernel_matrix(X.toarray(), X.toarray(), gamma=0.7), atol=0.15)
    np.testing.assert_allclose(drawn.take(J).transform(X), Z[:, J], rtol=1e-12, atol=1e-15)
    for rows in (X[:5], X[:5].toarray()):
        np.testing.assert_allclose(drawn.transform(rows), Z[:5], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(drawn.transform(X.astype(np.float32)), Z, atol=1e-5)


def test_a_map_may_have_no_features():
    X, _ = toy()
    none = FourierFeatures.of(X, 20, 0.7, np.random.RandomState(0)).take(np.array([], dtype=np.intp))
    assert none.transform(X).shape == (len(X), 0)


def cosine_of(values):
    """Return the cosines of a list of numbers."""
    matrix = np.array([values], dtype=np.float64)
    cosine(matrix)
    return matrix[0]


@given(st.lists(st.floats(-2 * LARGEST_ANGLE, 2 * LARGEST_ANGLE), min_size=1, max_size=20))
def test_the_cosine_equals_that_of_numpy(values):
    np.testing.assert_allclose(cosine_of(values), np.cos(values), rtol=0, atol=3e-16)


@pytest.mark.parametrize("k", [0, 1, -1, 2, 1000, -99_999, 300_000])
def test_the_cosine_around_the_zeros_and_the_extremes(k):
    near = [float(np.nextafter(k * math.pi / 2, side)) for side in (-math.inf, math.inf)]
    values = [k * math.pi / 2, *near, k * math.pi / 2 + 1e-9]
    np.testing.assert_allclose(cosine_of(values), np.cos(values), rtol=0, atol=3e-16)


def test_the_cosine_leaves_the_rest_to_numpy():
    assert np.isnan(cosine_of([1.0, math.nan])[1])
    assert cosine_of([1e300])[0] == math.cos(1e300)
    single = np.linspace(-9, 9, 40, dtype=np.float32).reshape(4, 10)
    expected = np.cos(single)
    cosine(single)
    np.testing.assert_array_equal(single, expected)
    cosine(np.empty((0, 3)))
    with np.errstate(invalid="ignore"):
        assert np.isnan(cosine_of([math.inf])[0])
