"""Weights of rows and of classes: each update is that of the weighted loss, exactly or in expectation."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import has_fit_parameter

from klr_bench import fit_many
from tests.estimators.one_pass import OSKL, AuxiliaryKLR, Forgetron, KernelPerceptron, NonConservativeKLR
from tests.estimators.online.cases import CASES
from tests.estimators.online.test_engine import assert_same_learner
from tests.estimators.samples import toy

LEARNERS = [NonConservativeKLR(eta=0.5), OSKL(G=2.0), AuxiliaryKLR(), KernelPerceptron()]


def weights_of(n, *, largest=1.0, seed=0):
    """Return weights in [0, largest], a tenth of them 0."""
    random = np.random.RandomState(seed)
    return largest * random.random_sample(n) * (random.random_sample(n) > 0.1)


@pytest.mark.parametrize("case", CASES)
def test_weighted_updates_are_those_of_the_reference(case):
    learner, step, radius = CASES[case]
    X, y = toy(empty_rows=False)
    sampled = isinstance(learner, OSKL)
    w = weights_of(len(y), largest=1.0 if (sampled and learner.G < 2) or (sampled and learner.loss != "logit") else 1.9)

    def weighted(label, f, u, t):
        weight = w[t - 1]
        insert, shrink, c = step(label, f, u / weight if sampled and weight else u, t)
        return insert and weight > 0, shrink, c if sampled else c * weight

    fitted = clone(learner).set_params(random_state=0, dtype="float64", gamma=0.7).fit(X, y, w)
    assert_same_learner(fitted, X, y, weighted, radius, rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_of_weight_0_are_not_there(n_classes):
    X, y = toy()
    y = y if n_classes == 2 else np.digitize(X[:, 0], [-0.3, 0.4])
    w = (np.random.RandomState(1).random_sample(len(y)) < 0.6).astype(float)
    learner = NonConservativeKLR(average=False, gamma=0.7)
    fitted, without = clone(learner).fit(X, y, w), clone(learner).fit(X[w > 0], y[w > 0])
    np.testing.assert_array_equal(fitted.support_vectors_, without.support_vectors_)
    np.testing.assert_allclose(fitted.dual_coef_, without.dual_coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_equal_weights_scale_the_step(n_classes):
    X, y = toy()
    y = y if n_classes == 2 else np.digitize(X[:, 0], [-0.3, 0.4])
    twice = NonConservativeKLR(eta=0.5, gamma=0.7).fit(X, y, np.full(len(y), 2.0))
    np.testing.assert_allclose(twice.dual_coef_, NonConservativeKLR(eta=1.0, gamma=0.7).fit(X, y).dual_coef_, rtol=1e-9)


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_weights_of_classes_are_weights_of_their_rows(learner):
    X, y = toy()
    labels = np.where(y > 0, "rare", "usual")
    rows = np.flatnonzero((labels == "usual") | (np.arange(300) % 3 == 0))
    X, labels = X[rows], labels[rows]
    learner = clone(learner).set_params(random_state=0)
    own = weights_of(len(labels))
    for class_weight in ({"rare": 1.7, "usual": 0.4}, "balanced"):
        w = compute_sample_weight(class_weight, labels)
        by_class = clone(learner).set_params(class_weight=class_weight)
        expected = clone(learner).fit(X, labels, w)
        np.testing.assert_allclose(by_class.fit(X, labels).dual_coef_, expected.dual_coef_, rtol=1e-12)
        expected = clone(learner).fit(X, labels, w * own)
        np.testing.assert_allclose(by_class.fit(X, labels, own).dual_coef_, expected.dual_coef_, rtol=1e-12)
    by_class = clone(learner).set_params(class_weight={"rare": 1.7}).partial_fit(X, labels)
    expected = clone(learner).partial_fit(X, labels, None, np.where(labels == "rare", 1.7, 1.0))
    np.testing.assert_allclose(by_class.dual_coef_, expected.dual_coef_, rtol=1e-12)


@pytest.mark.parametrize("eta", [None, pytest.param(0.2, marks=pytest.mark.exhaustive)])
def test_oskl_is_unbiased_where_weights_exceed_g(eta):
    inserted, coefficients = 0, set()
    for seed in range(2000):
        learner = OSKL(G=1.0, eta=eta, average=False, random_state=seed)
        learner.partial_fit([[1.0]], [1], classes=[0, 1], sample_weight=[3.0])
        inserted += learner.n_support_
        coefficients |= {round(float(c), 12) for c in learner.dual_coef_}
    assert 0.45 < inserted / 2000 < 0.55, "w |l'| / G with G = 3"
    assert coefficients == {0.9 if eta is None else 0.6}, "eta G"


def test_learners_with_weights_share_a_pass():
    X, y = toy()
    learners = [clone(learner).set_params(random_state=0, class_weight="balanced") for learner in LEARNERS]
    w = weights_of(len(y), largest=1.5)
    for together, learner in zip(fit_many([clone(one) for one in learners], X, y, w), learners, strict=True):
        np.testing.assert_allclose(together.dual_coef_, learner.fit(X, y, w).dual_coef_, rtol=1e-9, atol=1e-14)
    other = clone(learners[0]).set_params(class_weight=None)
    assert learners[0].pass_key(2) != other.pass_key(2)


def test_balanced_classes_raise_the_balanced_accuracy():
    random = np.random.RandomState(0)
    X = random.standard_normal((4000, 2))
    y = (X[:, 0] * X[:, 1] + 0.3 * random.standard_normal(4000) > 1.9).astype(int)
    assert 0.01 < y.mean() < 0.06
    for learner in (NonConservativeKLR(gamma=1.0), OSKL(gamma=1.0, random_state=0)):
        usual, balanced = (
            balanced_accuracy_score(y[2000:], one.fit(X[:2000], y[:2000]).predict(X[2000:]))
            for one in (clone(learner), clone(learner).set_params(class_weight="balanced"))
        )
        assert usual + 0.1 < balanced > 0.8


def test_what_makes_no_sense_is_refused():
    X, y = toy()
    with pytest.raises(ValueError, match="class_weight='balanced' needs the numbers of all rows"):
        OSKL(class_weight="balanced").partial_fit(X, y)
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        OSKL().fit(X, y, -np.ones(len(y)))
    with pytest.raises(ValueError, match="weights above 1, here 2, are for loss='logit'"):
        OSKL(loss="square", G=50).fit(X, y, np.full(len(y), 2.0))
    with pytest.raises(ValueError, match="'class_weight' parameter of OSKL must be"):
        OSKL(class_weight="equal").fit(X, y)
    assert not has_fit_parameter(Forgetron(), "sample_weight")
    assert "class_weight" not in Forgetron().get_params()
