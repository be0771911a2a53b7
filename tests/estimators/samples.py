"""Kernels, layouts, rows and random numbers that the tests of several learners share."""

from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import ClassifierMixin

import klr_bench
from klr_bench.estimators.kernel_values import operands
from klr_bench.estimators.peers.approximate import ApproximateKernelLR
from klr_bench.estimators.peers.l1 import L1Peer
from tests.conftest import OPTIONAL

CLASSIFIERS = {
    name: thing
    for name in klr_bench.__all__
    if isinstance(thing := getattr(klr_bench, name), type) and issubclass(thing, ClassifierMixin)
} | {cls.__name__: cls for cls in (ApproximateKernelLR, L1Peer)}
"""The public classifiers, and the peers with the same parameters and checks, by name."""

KERNELS = {
    "rbf": {"kernel": "rbf", "gamma": 0.7},
    "poly": {"kernel": "poly", "gamma": 0.2, "degree": 2, "coef0": 1.0},
    "linear": {"kernel": "linear"},
    "laplacian": {"kernel": "laplacian", "gamma": 0.7},
}
ALL_KERNELS = KERNELS | {"sigmoid": {"kernel": "sigmoid", "gamma": 0.2, "coef0": 0.5}}
LAYOUTS = ["dense", "csr made dense", "csr by index", "bits", "csr as bits", "bits and others"]
"""Layouts of rows, with the way in which their kernel values are computed."""


def laid_out(X, layout, monkeypatch):
    """Return X (n, d) in one of the LAYOUTS, and force the computation of kernel values that it names."""
    bits, kind = "bits" in layout, operands.Indexed if layout == "csr by index" else operands.Dense
    monkeypatch.setattr(operands, "plain_ns", lambda plain, X: 1.0 if isinstance(plain, kind) else 2.0)
    monkeypatch.setattr(operands, "packed_ns", lambda features: 0.0 if bits and len(features.columns) else 3.0)
    return sp.csr_matrix(X) if layout.startswith("csr") else X


def suited(X, layout):
    """Return rows (n, d) suitable for a layout: X itself or, for bits, comparisons of its elements with thresholds.

    Each row has at least one bit that is 1.
    """
    if "bits" not in layout:
        return X
    with_bits = X[:, : X.shape[1] // 2] if layout == "bits and others" else X
    values = np.array([-9, *np.linspace(-0.5, 0.5, 10)])
    bits = 0.25 * (with_bits[:, :, None] > values).reshape(len(X), -1).astype(X.dtype)
    return np.hstack([bits, X[:, X.shape[1] // 2 :]]) if layout == "bits and others" else bits


def spread_out(X, d=10_000, seed=0):
    """Move the columns of X (n, k), in their order, to random columns of a CSR matrix (n, d)."""
    places = np.sort(np.random.RandomState(seed).permutation(d)[: X.shape[1]])
    X = sp.csr_matrix(X)
    return sp.csr_matrix((X.data, places[X.indices], X.indptr), shape=(X.shape[0], d))


def draws(n, seed=0):
    """Return the numbers in [0, 1) that a learner with random_state=seed draws in its first n examples, (n,)."""
    return np.random.RandomState(seed).random_sample(n)


def toy(n=300, d=4, seed=1, *, empty_rows=True):
    """Return rows of two overlapping classes, so that every method makes updates until the end; some features are 0.

    With `empty_rows`, all features of some rows are 0; there f may be 0 up to rounding, which decides about mistakes.
    """
    random = np.random.RandomState(seed)
    X = random.standard_normal((n, d)) * (random.random_sample((n, d)) < 0.7)
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * random.standard_normal(n) > 0, 1, -1)
    if not empty_rows:
        X[~X.any(axis=1), 0] = 1.0
    return X / np.sqrt(d), y


def skip_if_not_installed(solver):
    if solver in OPTIONAL and find_spec(solver) is None:
        pytest.skip(f"{solver} is not installed: pip install klr-bench[peers]")


FEW = {"lams": [1e-3], "etas": [0.9], "Gs": [1.0], "Rs": [1e3], "cv": 2, "max_rounds": 1}
"""Grids, folds and rounds that keep the fits of classes with cross-validation short."""


def small(model, **parameters):
    """Set those of the given parameters that a model has, to keep its fit short; return the model."""
    defaults = model.get_params()
    return model.set_params(**{name: value for name, value in parameters.items() if name in defaults})
