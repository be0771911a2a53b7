"""What is learned depends on the sequence of rows only: `partial_fit` in any chunks equals `fit`."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from klr_bench import SOFS, PassiveAggressive
from klr_bench.estimators.linear import confidence
from tests.estimators.budget.test_budget import CASES as BUDGET
from tests.estimators.budget.test_budget import PROJECTING
from tests.estimators.linear.test_engine import LEARNERS as LINEAR
from tests.estimators.linear.test_engine import toy as linear_toy
from tests.estimators.one_pass import ALMA, BSGD, DUOL, FOGD, NOGD
from tests.estimators.online.cases import CASES as ONLINE
from tests.estimators.online.cases import SOFTMAX
from tests.estimators.samples import CLASSIFIERS, small, toy

OTHERS = {
    "alma": ALMA(),
    "duol": DUOL(),
    "bsgd merging": BSGD(20, 0.02, maintenance="merging"),
    **{f"fogd {loss}": FOGD(30, loss=loss, random_state=0) for loss in ("logit", "hinge", "square")},
    **{f"nogd {loss}": NOGD(60, loss=loss) for loss in ("logit", "hinge", "square")},
    "sofs": SOFS(3),
    "pa": PassiveAggressive(),
}
LEARNERS = (
    {f"online {name}": learner for name, learner in ONLINE.items()}
    | {f"budget {name}": learner for name, learner in BUDGET.items()}
    | {f"linear {i}": learner for i, learner in enumerate(LINEAR)}
    | SOFTMAX
    | OTHERS
)


def test_every_learner_is_here():
    of_rows = {
        name for name, cls in CLASSIFIERS.items() if hasattr(cls, "partial_fit") and "n_batches_" not in cls.__doc__
    }
    assert {type(learner).__name__ for learner in LEARNERS.values()} == of_rows, "others learn in batches"


def prepared(name, n_classes, budget, average):
    """Return an unfitted learner, and rows of as many classes."""
    X, y = linear_toy(n=400) if name.startswith("linear") else toy(n=400, empty_rows=False)
    y = y if n_classes == 2 else np.digitize(X[:, 0], [-0.3, 0.4])
    given = {"gamma": 0.7, "dtype": "float64", "random_state": 0, "budget": budget, "average": average}
    return small(clone(LEARNERS[name]), **given), X, y


def assert_same(parts, whole, X, tolerance):
    f = whole.decision_function(X)
    np.testing.assert_allclose(parts.decision_function(X), f, rtol=0, atol=max(1e-12, tolerance * np.abs(f).max()))
    for name in ("t_", "n_mistakes_", "n_updates_"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
    if hasattr(whole, "support_vectors_"):
        np.testing.assert_allclose(parts.support_vectors_, whole.support_vectors_, rtol=1e-6, atol=1e-8)


@settings(max_examples=250)
@given(
    name=st.sampled_from(sorted(LEARNERS)), cuts=st.lists(st.integers(1, 399), unique=True, max_size=5),
    budget=st.integers(1, 50), average=st.booleans(), blocks=st.booleans(), stored=st.booleans(),
)  # fmt: skip
def test_any_chunks_equal_fit(name, cuts, budget, average, blocks, stored):
    learner, X, y = prepared(name, 3 if name.startswith("softmax") else 2, budget, average)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confidence, "IN_CACHE", 0 if blocks else 256)  # a full covariance in blocks, or not
        whole, parts = clone(learner).fit(X, y), learner
        for rows in np.split(np.arange(400), sorted(cuts)):
            parts = pickle.loads(pickle.dumps(parts)) if stored else parts
            parts.partial_fit(X[rows], y[rows], classes=np.unique(y))
    loose = name.removeprefix("budget ") in PROJECTING or name in ("bsgd merging", "duol")
    assert_same(parts, whole, X, 1e-6 if loose else 1e-9)
