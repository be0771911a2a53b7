"""scikit-learn's classifiers as peers: what the configurations build is what one would write by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from klr_bench import ApproximateKernelLR
from klr_bench.config import locations as config_files
from klr_bench.runner.bandwidth import kernel_of
from klr_bench.runner.selection import make

CONFIGS = config_files.config_dir()
RANDOM = np.random.RandomState(0)
X = RANDOM.standard_normal((200, 4))
Y = np.where(np.sin(2 * X[:, 0]) + 0.5 * RANDOM.standard_normal(200) > 0, 1, -1)
SHARED = {"kernel": "rbf", "percentile": None, "gamma": 0.3, "degree": 3.0, "coef0": 1.0}

BY_HAND = {
    "svc": SVC(C=5.0, gamma=0.3, random_state=7),
    "lr_nystroem": make_pipeline(
        Nystroem(gamma=0.3, n_components=200, random_state=7),
        LogisticRegression(C=5.0, max_iter=1000, random_state=7),
    ),
    "lr_fourier": make_pipeline(
        RBFSampler(gamma=0.3, n_components=500, random_state=7),
        LogisticRegression(C=5.0, max_iter=1000, random_state=7),
    ),
    "sgd_fourier": make_pipeline(
        RBFSampler(gamma=0.3, n_components=500, random_state=7),
        SGDClassifier(loss="log_loss", alpha=1 / (200 * 5.0), max_iter=1000, random_state=7),
    ),
}


def configured(stem, shared=SHARED, **parameters):
    """Return the estimator that a run with this shared kernel builds."""
    spec = config_files.read(CONFIGS / "algorithm" / f"{stem}.yaml")["estimator"] | parameters
    return make(spec, kernel_of(spec, shared), seed=7)


@pytest.mark.parametrize("stem", BY_HAND)
def test_a_configuration_builds_what_one_would_write_by_hand(stem):
    fitted, expected = configured(stem, C=5.0).fit(X, Y), BY_HAND[stem].fit(X, Y)
    np.testing.assert_allclose(fitted.decision_function(X), expected.decision_function(X))
    np.testing.assert_array_equal(fitted.predict(X), expected.predict(X))
    if stem == "svc":
        assert not hasattr(fitted, "predict_proba")
    else:
        np.testing.assert_allclose(fitted.predict_proba(X), expected.predict_proba(X))


def test_the_kernel_reaches_the_features():
    poly = {**SHARED, "kernel": "poly", "gamma": 0.5, "degree": 2.0}
    fitted = configured("lr_nystroem", poly).fit(X, Y)
    features = fitted.pipeline_[0].transform(X)
    np.testing.assert_allclose(features @ features.T, (0.5 * X @ X.T + 1) ** 2, atol=1e-6)
    linear = configured("lr_nystroem", {**SHARED, "kernel": "linear"}).fit(X, Y)
    assert linear.predict(X).shape == (200,)
    with pytest.raises(ValueError, match=r"features='fourier' is for kernel='rbf', got kernel='poly'"):
        configured("lr_fourier", poly).fit(X, Y)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_the_kernel_error_is_that_of_the_worst_pair(kernel, layout):
    model = ApproximateKernelLR("nystroem", n_components=3, kernel=kernel, gamma=0.3, degree=2, random_state=0)
    Z = model.fit(layout(X), Y).pipeline_[0].transform(layout(X[:20]))
    values = {
        "rbf": lambda x, z: np.exp(-0.3 * np.sum((x - z) ** 2)),
        "poly": lambda x, z: (0.3 * x @ z + 1) ** 2,
        "linear": lambda x, z: x @ z,
    }[kernel]
    worst = max(abs(Z[i] @ Z[j] - values(X[i], X[j])) for i in range(20) for j in range(20))
    assert model.kernel_error(layout(X[:20])) == pytest.approx(worst)
    assert worst > 1e-3


def test_more_fourier_features_are_nearer_to_the_kernel():
    errors = [
        np.mean(
            [
                ApproximateKernelLR("fourier", n_components=D, gamma=0.3, random_state=seed).fit(X, Y).kernel_error(X)
                for seed in range(5)
            ]
        )
        for D in (20, 80, 320, 1280)
    ]
    assert all(0.3 < later / before < 0.7 for before, later in itertools.pairwise(errors))  # 1 / sqrt(D)
