"""The number of passes is chosen by validation if a class is rare."""

import numpy as np
import pytest
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel

from klr_bench import OSKL, AuxiliaryKLR, MarginKLR, NonConservativeKLR

N = 3000
LEARNERS = [
    OSKL(random_state=0),
    AuxiliaryKLR(random_state=0),
    MarginKLR(random_state=0),
    NonConservativeKLR(random_state=0),
]


def noisy_rows(intercept: float, n_classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose log-odds are linear in a few features; the second class is rare if the intercept is low."""
    random = np.random.RandomState(0)
    X = random.standard_normal((2 * N, 12))
    y = (random.rand(2 * N) < 1 / (1 + np.exp(-(intercept + X[:, :4].sum(axis=1) / 2)))).astype(int)
    return X, np.where((y == 0) & (X[:, 5] > 0), n_classes - 1, y) if n_classes > 2 else y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_a_rare_class_is_not_fitted_too_closely(learner: OSKL, n_classes: int) -> None:
    X, y = noisy_rows(-3.5, n_classes)
    losses = [
        log_loss(y[N:], learner.set_params(n_epochs=passes).fit(X[:N], y[:N]).predict_proba(X[N:]))
        for passes in (None, 1, learner._most_passes)
    ]
    assert losses[0] < losses[1] + 0.01
    assert losses[0] < losses[2] - (0.01 if n_classes == 2 else 0.0)


def test_without_a_rare_class_nothing_is_validated() -> None:
    X, y = noisy_rows(-1.0)
    model = OSKL(random_state=0).fit(X[:N], y[:N])
    losses = model.cumulative_loss_ * 0.9 / N / np.log(2)
    assert 4 < losses < 5
    assert OSKL(random_state=0).fit(X[: N // 10], np.arange(N // 10) < 5).t_ == 20 * (N // 10)  # a class of 5 rows


def test_weights_of_1_and_a_precomputed_kernel_change_nothing_that_they_should_not() -> None:
    X, y = noisy_rows(-3.5)
    X, y = X[:N], y[:N]
    plain, weighted = OSKL(random_state=0).fit(X, y), OSKL(random_state=0).fit(X, y, sample_weight=np.ones(N))
    assert plain.t_ == weighted.t_
    doubled = OSKL(random_state=0, feature_weights=np.full(X.shape[1], 2.0), gamma=0.05 / 4).fit(X, y)
    assert doubled.t_ == OSKL(random_state=0, gamma=0.05).fit(X, y).t_
    model = OSKL(random_state=0, kernel="precomputed").fit(rbf_kernel(X[:500]), y[:500])
    assert model.t_ >= 1000


@pytest.mark.parametrize("gamma", ["scale", "median"])
@pytest.mark.parametrize(
    "feature_weights", [np.ones(12), np.linspace(0.0, 3.0, 12), "auto"], ids=["ones", "some", "auto"]
)
def test_the_origin_of_weighted_features_changes_nothing(gamma: str, feature_weights: np.ndarray | str) -> None:
    X, y = noisy_rows(-3.5)
    rows = slice(N if isinstance(feature_weights, np.ndarray) else 600)
    X, y = np.round(X[rows] * 2**10) / 2**10, y[rows]  # exact after the shift
    near, far = (
        OSKL(gamma=gamma, feature_weights=feature_weights, random_state=0).fit(X + mean, y) for mean in (0, 2**10)
    )
    assert near.t_ == far.t_
    np.testing.assert_allclose(far.predict_proba(X + 2**10), near.predict_proba(X), atol=1e-3)
