"""Feature maps: what they estimate, and a part of one."""

from __future__ import annotations

import numpy as np

from klr_bench.estimators.core.features import FourierFeatures, KernelFeatures
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
