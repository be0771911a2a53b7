"""Every public classifier takes sparse rows with a million features in memory that grows with their entries."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import klr_bench

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:lam=:UserWarning")

D = 1_000_000
MB = 8
"""What a fit, or predictions, may take: 2,400 kB of rows, and models of some hundred rows."""
MB_WITH_COEF = 40
"""The same for a learner with coefficients, variances or counts per feature."""

EVERY = [name for name in klr_bench.__all__ if hasattr(getattr(klr_bench, name), "fit")]
FULL = ["AROW", "BatchConfidenceWeighted", "ConfidenceWeighted", "NAROW", "SoftConfidenceWeighted"]
"""Classifiers with a full covariance, which refuse so many features."""
PER_FEATURE = [
    "FeatureGeneratingMachine",
    "PassiveAggressive",
    "SOFS",
    "SparDCA",
    "SparseBatchConfidenceWeighted",
    *FULL,
]
VARIANTS = [
    ("ApproximateKernelLR", {"solver": "sgd"}),
    ("BSGD", {"maintenance": "projection"}),
    ("KernelOGD", {"kernel": "linear"}),
    ("KernelPegasos", {"kernel": "poly", "degree": 2}),
    ("L1KLR", {"features": "fourier", "n_components": 50}),
    ("L1KLR", {"features": "linear"}),
    ("L1KLR", {"features": "linear", "solver": "sgd_c"}),
    ("L1Peer", {"features": "linear"}),
    ("OSKL", {"gamma": "median"}),
    ("PrototypeKLR", {"solver": "adam"}),
    ("PrototypeKLR", {"lazy": True}),
    ("PrototypeKLR", {"init": "kmeans"}),
    *((name, {"covariance": "diagonal"}) for name in FULL if name != "BatchConfidenceWeighted"),
]
CASES = [(name, {}) for name in EVERY if name not in (*FULL, "SecondOrderPerceptron")] + VARIANTS
IDS = ["-".join([name, *map(str, options.values())]) for name, options in CASES]


def wide(n, d):
    """Return CSR rows (n, d) with 20 entries, half of them in 40 features that many rows have, and labels (n,)."""
    random = np.random.RandomState(0)
    common = np.array([random.permutation(40)[:10] for _ in range(n)]) * (d // 40)
    indices = np.hstack([common, random.randint(d, size=(n, 10))])
    y = np.where(np.arange(n) % 2, 1, -1)
    values = random.standard_normal(indices.shape) + 0.5 * y[:, None]
    X = sp.csr_matrix((values.ravel(), indices.ravel(), 20 * np.arange(n + 1)), shape=(n, d))
    X.sum_duplicates()
    return X, y


def made(name, options):
    model = getattr(klr_bench, name)(**options)
    small = {"random_state": 0, "max_iter": 5}
    return model.set_params(**{key: value for key, value in small.items() if key in model.get_params()})


def learn_and_predict(model, X, y):
    model.fit(X, y)
    model.predict(X)
    if hasattr(model, "decision_function"):
        model.decision_function(X)
    if hasattr(model, "partial_fit"):
        model.partial_fit(X, y)


def peak_mb(name, options, X, y):
    """Return the most memory that learning from rows and predicting them takes."""
    learn_and_predict(made(name, options), wide(30, 60)[0], y[:30])  # imports and compiled code take memory, too
    tracemalloc.start()
    try:
        learn_and_predict(made(name, options), X, y)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_memory_grows_with_the_entries(name, options):
    allowed = MB_WITH_COEF if name in PER_FEATURE or options.get("features") == "linear" else MB
    assert peak_mb(name, options, *wide(200, D)) <= allowed


@pytest.mark.parametrize("name", ["OSKL", "BudgetOSKL", "DualCDKLR"])
def test_memory_of_more_than_two_classes_grows_with_the_entries(name):
    X, _ = wide(200, D)
    assert peak_mb(name, {}, X, np.arange(200) % 3) <= MB


@pytest.mark.parametrize("name", [*FULL, "SecondOrderPerceptron"])
def test_a_full_covariance_of_many_features_is_refused(name):
    X, y = wide(20, D)
    with pytest.raises(ValueError, match=f"{name}: .* 1,000,000 features .*memory_limit=4000"):
        made(name, {}).fit(X, y)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ApproximateKernelLR", {"features": "fourier"}, "n_components=500 .* 4,000 MB.* features='nystroem'"),
        ("BSGD", {"maintenance": "merging"}, ".* 3,872 MB.* maintenance='removal'"),
    ],
)
def test_what_needs_dense_rows_of_many_features_is_refused(name, options, message):
    X, y = wide(20, D)
    with pytest.raises(ValueError, match=f"{name}: {message}"):
        made(name, options).fit(X, y)
