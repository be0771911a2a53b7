"""Solvers, feature maps and rows that the tests of L1KLR share."""

import numpy as np

from tests.reference import kernel as reference

EXACT = {
    "prox_newton": {"solver": "prox_newton"},
    "cgd": {"solver": "cgd"},
    "cgd, fixed threshold": {"solver": "cgd", "threshold": 0.9},
    "cgd, greedy": {"solver": "cgd", "threshold": "greedy"},
    "multiscale_fista (7)": {"solver": "multiscale_fista"},
    "multiscale_fista (8)": {"solver": "multiscale_fista", "hessian": "current"},
    "multiscale_fista, growing steps": {"solver": "multiscale_fista", "growth": 1.25},
    "fista": {"solver": "fista"},
}
MAPS = {
    "kernel": {"features": "kernel", "gamma": 0.7},
    "fourier": {"features": "fourier", "gamma": 0.7, "n_components": 40, "random_state": 0},
    "linear": {"features": "linear"},
}


def toy(n=120, d=4, seed=1):
    random = np.random.RandomState(seed)
    X = random.standard_normal((n, d)) * (random.random_sample((n, d)) < 0.7)
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * random.standard_normal(n) > 0.4, 1, -1)
    return X, y


def features_of(model, X):
    """Return the features of the rows of X in float64, computed independently of the fitted model."""
    if model.features == "linear":
        return X
    if model.features == "kernel":
        return reference.kernel_matrix(X, X, gamma=model.gamma)
    drawn = model._map
    return drawn.scale * np.cos(X @ drawn.omega.astype(np.float64) + drawn.b)
