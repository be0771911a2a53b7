"""What online learners share: labels, calls that go on, callbacks, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tests.estimators.one_pass import OSKL, AuxiliaryKLR, KernelPegasos, KernelPerceptron, MarginKLR, NonConservativeKLR
from tests.estimators.samples import toy


def test_an_error_leaves_a_learner_as_it_says():
    X, y = toy()
    learner = OSKL(random_state=0)
    with pytest.raises(ValueError, match="not among the classes"):
        learner.partial_fit(X, np.where(y > 0, 7, 8), classes=[0, 1])
    with pytest.raises(ValueError, match="not among the classes"):
        learner.partial_fit(X, y, classes=[0, 1])
    learner = OSKL(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="one class"):
        learner.fit(X, np.ones(len(y)))
    assert not hasattr(learner, "dual_coef_")
    np.testing.assert_array_equal(learner.partial_fit(X, y).dual_coef_, OSKL(random_state=0).fit(X, y).dual_coef_)


def test_partial_fit_refuses_other_classes_and_parameters():
    X, y = toy()
    learner = MarginKLR().partial_fit(X, y)
    with pytest.raises(ValueError, match=r"classes=\[3, 4\]: the first call was with \[-1, 1\]"):
        learner.partial_fit(X, y, classes=[3, 4])
    with pytest.raises(ValueError, match="'eta' parameter"):
        learner.set_params(eta=5.0).partial_fit(X, y)


def test_a_fitted_learner_keeps_its_kernel():
    X, y = toy()
    learner = OSKL(gamma=0.7, random_state=0).fit(X, y)
    before = learner.decision_function(X)
    np.testing.assert_array_equal(learner.set_params(gamma=50.0).decision_function(X), before)


def test_refuses_one_class_and_new_labels():
    X, y = toy()
    with pytest.raises(ValueError, match="needs two classes; got one class"):
        OSKL().fit(X, np.ones(len(X)))
    learner = OSKL().partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y has labels \[7\], which are not among the classes \[-1, 1\]"):
        learner.partial_fit(X[:1], [7])


@pytest.mark.parametrize("labels", [(0, 1), (1, 2), (2, 4), ("g", "h"), (False, True), (-1.0, 1.0)])
def test_labels_of_any_kind(labels):
    X, y = toy()
    words = np.where(y > 0, labels[1], labels[0])
    learner = OSKL(random_state=0).fit(X, words)
    assert learner.classes_.tolist() == list(labels)
    np.testing.assert_array_equal(learner.predict(X) == labels[1], learner.decision_function(X) > 0)
    np.testing.assert_allclose(learner.dual_coef_, OSKL(random_state=0).fit(X, y).dual_coef_)


def test_a_decision_value_of_zero_goes_to_the_first_class():
    learner = KernelPerceptron().fit([[1.0], [2.0]], ["a", "b"])
    learner.dual_coef_ = np.zeros_like(learner.dual_coef_)
    assert learner.predict([[1.0]]).tolist() == ["a"]


def test_callback_sees_a_fitted_learner_and_stops_it():
    X, y = toy(n=2000)
    seen = []

    def callback(learner, t):
        seen.append((t, learner.t_, learner.n_support_, learner.score(X[:50], y[:50])))
        return t >= 512

    learner = NonConservativeKLR(n_epochs=3).fit(X, y, callback=callback)
    assert [t for t, *_ in seen] == [256, 512]
    assert all(t == t_ == n_support for t, t_, n_support, _ in seen)
    np.testing.assert_array_equal(learner.dual_coef_, NonConservativeKLR().fit(X[:512], y[:512]).dual_coef_)


def test_gamma_defaults_to_one_over_the_number_of_features():
    X, y = toy()
    default, given = OSKL(random_state=0).fit(X, y), OSKL(gamma=0.25, random_state=0).fit(X, y)
    np.testing.assert_array_equal(default.dual_coef_, given.dual_coef_)


def test_going_on_leaves_what_was_read_before_alone():
    X, y = toy()
    for average in (False, True):
        learner = KernelPegasos(average=average).partial_fit(X, y)
        before = learner.dual_coef_
        copy = before.copy()
        learner.partial_fit(X, y)
        np.testing.assert_array_equal(before, copy)


def test_fit_forgets_and_pickle_goes_on():
    X, y = toy()
    learner = AuxiliaryKLR(random_state=0).fit(X, y)
    first = learner.dual_coef_.copy()
    np.testing.assert_array_equal(learner.fit(X, y).dual_coef_, first)
    half = AuxiliaryKLR(random_state=0).partial_fit(X[:150], y[:150])
    half = pickle.loads(pickle.dumps(half)).partial_fit(X[150:], y[150:])
    np.testing.assert_array_equal(half.support_vectors_, learner.support_vectors_)
    np.testing.assert_allclose(half.dual_coef_, first, rtol=1e-5)
