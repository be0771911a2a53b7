"""Feature maps: what they estimate, and a part of one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from klr_bench.estimators.core import features
from klr_bench.estimators.core.features import DrawnRows, FourierFeatures, KernelFeatures
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
