"""What online learners share: labels, calls that go on, callbacks, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.estimators.one_pass import OSKL, KernelPegasos, KernelPerceptron, NonConservativeKLR
from tests.estimators.samples import toy


def test_a_fitted_learner_keeps_its_kernel():
    X, y = toy()
    learner = OSKL(gamma=0.7, random_state=0).fit(X, y)
    before = learner.decision_function(X)
    np.testing.assert_array_equal(learner.set_params(gamma=50.0).decision_function(X), before)


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


def test_going_on_leaves_what_was_read_before_alone():
    X, y = toy()
    for average in (False, True):
        learner = KernelPegasos(average=average).partial_fit(X, y)
        before = learner.dual_coef_
        copy = before.copy()
        learner.partial_fit(X, y)
        np.testing.assert_array_equal(before, copy)
