"""Weights of rows and classes in batch kernel logistic regression: those of repeated rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight

from klr_bench import DualCDKLR, PrimalCDKLR
from tests.estimators.samples import toy
from tests.reference import kernel as reference

LEARNERS = [DualCDKLR(tol=1e-9, random_state=0), PrimalCDKLR(tol=1e-9, random_state=0)]


@pytest.fixture(params=LEARNERS, ids=str)
def learner(request):
    return clone(request.param).set_params(lam=1e-2, gamma=0.7)


def test_a_whole_weight_is_as_many_rows(learner):
    X, y = toy(n=120)
    counts = np.random.RandomState(2).randint(0, 4, len(y))
    weighted = clone(learner).fit(X, y, counts)
    repeated = clone(learner).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-3, atol=1e-4)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    assert not weighted.dual_coef_[counts == 0].any() or isinstance(learner, PrimalCDKLR)


@pytest.mark.parametrize("cache_size", [200, 0.05])
@pytest.mark.filterwarnings("ignore:cache_size")
def test_the_objective_is_that_of_the_weighted_loss(learner, cache_size):
    X, y = toy(n=150)
    w = np.random.RandomState(1).random_sample(len(y)) * 3
    fitted = clone(learner).set_params(cache_size=cache_size).fit(X, y, w)
    K = reference.kernel_matrix(X, X, gamma=0.7)
    f = K @ fitted.dual_coef_
    loss = np.sum(w / w.sum() * np.logaddexp(0, -y * f))
    assert fitted.objective_ == pytest.approx(1e-2 / 2 * fitted.dual_coef_ @ f + loss, rel=1e-9)
    slope = 1e-2 * fitted.dual_coef_ - w / w.sum() * y / (1 + np.exp(y * f))
    assert abs(K @ slope).max() < 1e-4, "the gradient vanishes"
    assert 0 <= fitted.duality_gap_ <= 1e-9


def test_weights_scale_out(learner):
    X, y = toy(n=100)
    w = np.random.RandomState(1).random_sample(len(y))
    one, many = clone(learner).fit(X, y, w), clone(learner).fit(X, y, 1000 * w)
    np.testing.assert_allclose(one.dual_coef_, many.dual_coef_, rtol=1e-6, atol=1e-12)
    equal = clone(learner).fit(X, y, np.full(len(y), 7.0))
    np.testing.assert_allclose(equal.dual_coef_, clone(learner).fit(X, y).dual_coef_, rtol=1e-6, atol=1e-12)


def test_weights_of_classes_are_those_of_their_rows(learner):
    X, y = toy(n=150)
    X, y = X[(y < 0) | (np.arange(150) % 3 == 0)], y[(y < 0) | (np.arange(150) % 3 == 0)]
    for class_weight in ("balanced", {1: 2.5}):
        by_class = clone(learner).set_params(class_weight=class_weight).fit(X, y)
        expected = clone(learner).fit(X, y, compute_sample_weight(class_weight, y))
        np.testing.assert_allclose(by_class.dual_coef_, expected.dual_coef_, rtol=1e-6, atol=1e-12)


def test_a_warm_start_knows_the_weights(learner):
    X, y = toy(n=100)
    w = np.random.RandomState(1).random_sample(len(y)) * (np.arange(100) % 5 > 0)
    fitted = clone(learner).set_params(warm_start=True).fit(X, y, w)
    before = fitted.n_iter_
    assert fitted.fit(X, y, w).n_iter_ < before


def test_no_weight_above_0_is_refused(learner):
    X, y = toy(n=50)
    with pytest.raises(ValueError, match=r"at least one non-zero|some weights above 0"):
        clone(learner).fit(X, y, np.zeros(50))
    with pytest.raises(ValueError, match="Negative values"):
        clone(learner).fit(X, y, -np.ones(50))
