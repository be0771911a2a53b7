"""FOGD: equal to the reference, the same however the rows are cut, and kernel gradient descent with many features."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

from klr_bench import protocols
from klr_bench.estimators.features import fogd
from tests.cover import cover
from tests.estimators.one_pass import FOGD, KernelOGD
from tests.estimators.samples import toy
from tests.reference.descent import descent, fourier_features

LOSSES = ["logit", "hinge", "square"]
LAYOUTS = {"dense": np.asarray, "csr": sp.csr_matrix}


def weights_of(n, *, weighted):
    """Return weights (n,) of rows, some of them 0, or 1 for all."""
    return np.random.RandomState(7).choice([0.0, 0.5, 1.0, 2.5], n) if weighted else np.ones(n)


@cover(
    3,
    loss=LOSSES,
    layout=LAYOUTS,
    n_components=[1, 7, 60],
    chunk=[1, 5, 64, 1000],
    average=[False, True],
    weighted=[False, True],
)
def test_equals_the_reference(loss, layout, n_components, chunk, average, weighted, monkeypatch):
    monkeypatch.setattr(fogd, "rows_of_chunk", lambda D: chunk)
    X, y = toy(n=150)
    weights = weights_of(150, weighted=weighted)
    learner = FOGD(n_components, eta=0.4, loss=loss, average=average, gamma=0.7, random_state=3)
    learner.fit(layout(X), y, sample_weight=weights if weighted else None)
    Z = fourier_features(X, n_components, 0.7, 3)
    last, mean, mistakes, updates = descent(Z, y, 0.4, loss, weights)
    np.testing.assert_allclose(learner.coef_, mean if average else last, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(learner.decision_function(X), Z @ learner.coef_, rtol=1e-9, atol=1e-11)
    assert (learner.n_mistakes_, learner.n_updates_, learner.t_) == (mistakes, updates, 150)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_in_single_precision_up_to_rounding(loss, average):
    X, y = toy(n=400)
    learner = FOGD(80, eta=0.4, loss=loss, average=average, gamma=0.7, random_state=3).fit(X.astype(np.float32), y)
    last, mean, *_ = descent(fourier_features(X, 80, 0.7, 3), y, 0.4, loss, np.ones(400))
    np.testing.assert_allclose(learner.coef_, mean if average else last, rtol=0, atol=1e-4)
    assert learner.decision_function(X.astype(np.float32)).dtype == np.float64


@pytest.mark.parametrize("loss", LOSSES)
def test_with_more_features_it_comes_closer_to_kernel_gradient_descent(loss):
    X, y = toy(n=200)
    exact = KernelOGD(eta=0.3, loss=loss, gamma=0.7, average=True).fit(X, y).decision_function(X)

    def distance(n_components):
        seeds = [FOGD(n_components, 0.3, loss, average=True, gamma=0.7, random_state=seed) for seed in range(5)]
        return np.mean([np.abs(learner.fit(X, y).decision_function(X) - exact).mean() for learner in seeds])

    few, many = distance(50), distance(20_000)
    assert many < 0.1 * few  # it falls with the root of their number, by 20
    assert many < 0.05 * np.abs(exact).mean()


@pytest.mark.parametrize("average", [False, True])
def test_the_average_of_several_passes_is_that_of_the_last_one(average):
    X, y = toy(n=200)
    twice = FOGD(30, gamma=0.7, random_state=0, average=average, n_epochs=2).fit(X, y)
    Z = fourier_features(X, 30, 0.7, 0)
    last, _, mistakes, _ = descent(np.vstack([Z, Z]), np.r_[y, y], 0.5, "logit", np.ones(400))
    both = descent(np.vstack([Z, Z]), np.r_[y, y], 0.5, "logit", np.ones(400))[1]
    first = descent(Z, y, 0.5, "logit", np.ones(200))[1]
    np.testing.assert_allclose(twice.coef_, 2 * both - first if average else last, rtol=1e-9, atol=1e-12)
    assert (twice.t_, twice.n_mistakes_) == (400, mistakes)


def test_many_classes_share_the_features(monkeypatch):
    monkeypatch.setattr(fogd, "rows_of_chunk", lambda D: 70)
    X, _ = toy(n=200)
    labels = np.digitize(X[:, 0] + X[:, 1], [-0.4, 0.4])
    learner = FOGD(30, gamma=0.7, random_state=0).fit(X, labels)
    Z = fourier_features(X, 30, 0.7, 0)
    each = [descent(Z, np.where(labels == k, 1, -1), 0.5, "logit", np.ones(200)) for k in range(3)]
    np.testing.assert_allclose(learner.coef_, [last for last, *_ in each], rtol=1e-9, atol=1e-12)
    assert learner.n_mistakes_ == sum(mistakes for _, _, mistakes, _ in each)
    assert learner.n_updates_ == 600


def test_probabilities_are_those_of_the_logistic_loss():
    X, y = toy(n=100)
    learner = FOGD(30, gamma=0.7, random_state=0).fit(X, y)
    np.testing.assert_allclose(learner.predict_proba(X)[:, 1], expit(learner.decision_function(X)))
    assert not hasattr(FOGD(loss="hinge"), "predict_proba")


def test_what_an_experiment_is_told():
    X, y = toy(n=100)
    learner = FOGD(4, gamma=0.7, random_state=0).fit(X, y)  # as many features as columns of X
    rate = learner.n_mistakes_ / 100
    assert protocols.summary(learner, 100) == {"nonzero_fraction": 1.0, "n_updates": 100, "mistake_rate": rate}
    assert protocols.selected_features(learner) is None


def test_a_step_that_is_too_large_is_refused():
    X, y = toy(n=300)
    with pytest.raises(ValueError, match=r"FOGD: f\(x\) = .* at example \d+, .* is not finite; use a smaller step"):
        FOGD(30, eta=1e4, loss="square", gamma=0.7, random_state=0).fit(X, y)
