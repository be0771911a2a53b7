"""`partial_fit_scores`: the decision value of each row before the classifier learns from it."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_classification

from klr_bench import AROW, FOGD, NAROW, BudgetOSKL
from tests.estimators.samples import CLASSIFIERS, small

LEARNERS = [
    BudgetOSKL(10, G=2.0, average=False, gamma=0.5, random_state=0),
    FOGD(30, gamma=0.5, random_state=0),
    AROW(),
    AROW(covariance="diagonal"),
    NAROW(),
]
LAYOUTS = {"float64": np.array, "float32": lambda X: X.astype(np.float32), "csr": sp.csr_matrix}


def test_every_class_with_scores_is_here():
    last = {name: small(CLASSIFIERS[name](), average=False) for name in CLASSIFIERS}
    with_scores = {name for name in last if hasattr(last[name], "partial_fit_scores")}
    assert {type(learner).__name__ for learner in LEARNERS} == with_scores


def rows(d=5):
    X, y = make_classification(300, d, n_informative=3, n_redundant=0, flip_y=0.2, random_state=0)
    return X, np.where(y == 1, "yes", "no")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_scores_are_decision_values_before_each_row(learner, layout):
    X, y = rows()
    X = LAYOUTS[layout](X)
    scored, one_by_one, learned = clone(learner), clone(learner), clone(learner)
    for model in (scored, one_by_one, learned):
        model.partial_fit(X[:150], y[:150], classes=["no", "yes"])
    mistakes = scored.n_mistakes_
    parts = slice(150, 163), slice(163, 300)
    scores = np.concatenate([scored.partial_fit_scores(X[part], y[part]) for part in parts])
    assert scored.n_mistakes_ - mistakes == np.count_nonzero(np.where(y[150:] == "yes", scores, -scores) <= 0)
    expected = []
    for i in range(150, 300):
        expected.append(one_by_one.decision_function(X[i : i + 1])[0])
        one_by_one.partial_fit(X[i : i + 1], y[i : i + 1])
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    learned.partial_fit(X[150:163], y[150:163]).partial_fit(X[163:], y[163:])
    np.testing.assert_array_equal(scored.decision_function(X), learned.decision_function(X))


def test_a_covariance_in_blocks_scores_the_same():
    X, y = rows(300)  # with more features than fit into the cache
    scored, learned = AROW(), AROW()
    scores = scored.partial_fit_scores(X, y, classes=["no", "yes"])
    for i in range(300):
        assert scores[i] == pytest.approx(learned.decision_function(X[i : i + 1])[0] if i else 0.0, rel=1e-6, abs=1e-8)
        learned.partial_fit(X[i : i + 1], y[i : i + 1], classes=["no", "yes"])


def test_what_has_no_such_scores():
    X, y = rows()
    assert not hasattr(BudgetOSKL(average=True), "partial_fit_scores")
    assert not hasattr(FOGD(average=True), "partial_fit_scores")
    three = np.arange(300) % 3
    for learner in LEARNERS:
        with pytest.raises(ValueError, match="requires two classes"):
            clone(learner).partial_fit_scores(X, three)
    refused = AROW(class_weight={"no": 0.0})
    with pytest.raises(ValueError, match="give each class a positive weight"):
        refused.partial_fit_scores(X, y)
    assert not hasattr(refused, "t_")
    only = y == "no"
    with pytest.raises(ValueError, match="positive weight"):
        AROW(class_weight={"no": 0.0}).partial_fit(X, y).partial_fit_scores(X[only], y[only])
