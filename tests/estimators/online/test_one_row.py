"""`partial_fit` with one row repeats no checks, and learns what it would learn from all rows at once."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from klr_bench import ALMA, BSGD, FOGD, OSKL, BudgetOSKL, KernelOGD, KernelPegasos, MarginKLR, NonConservativeKLR
from klr_bench.estimators.online.classifier import OnlineClassifier
from tests.estimators.samples import CLASSIFIERS, small, toy

LEARNERS = {
    "oskl": OSKL(),
    "oskl poly": OSKL(kernel="poly", degree=2, gamma=0.3, average=False),
    "oskl laplacian": OSKL(kernel="laplacian"),
    "nc": NonConservativeKLR(),
    "margin": MarginKLR(),
    "pegasos": KernelPegasos(lam=1e-2),
    "ogd": KernelOGD(average=True),
    "budget oskl": BudgetOSKL(budget=20),
    "budget oskl, last": BudgetOSKL(budget=20, average=False),
    "alma": ALMA(),
    "bsgd": BSGD(budget=20, maintenance="merging"),
    "fogd": FOGD(n_components=30),
}
LEARNERS |= {
    name: small(cls(), budget=20)
    for name, cls in CLASSIFIERS.items()
    if issubclass(cls, OnlineClassifier) and cls not in {type(learner) for learner in LEARNERS.values()}
}
CHANGES = {"oskl": {"eta": 0.3}, "nc": {"eta": 0.3}, "budget oskl": {"eta": 0.3}, "alma": {"average": True}}
NEARLY_SINGULAR = ("DUOL", "Projectron", "ProjectronPlusPlus")
"""Learners that solve linear systems, which enlarge rounding."""
RTOL = {
    "float32": dict.fromkeys(NEARLY_SINGULAR, 1e-3),
    "float64": {**dict.fromkeys(NEARLY_SINGULAR, 1e-6), "bsgd": 1e-4},
}
"""Tolerances other than 1e-4 in float32 and 1e-9 in float64."""
COUNTS = ("t_", "n_mistakes_", "n_updates_", "n_support_", "cumulative_loss_")
FIRST = 30


def begun(name, dtype="float64", **parameters):
    """Return a learner of the first rows, one alone, and all rows with their classes "no" and "yes"."""
    X, y = toy(n=150, empty_rows=False)
    learner = clone(LEARNERS[name]).set_params(random_state=0, **parameters)
    X, y = X.astype(dtype), np.where(y > 0, "yes", "no")
    return one_by_one(learner.partial_fit(X[:FIRST], y[:FIRST]), X, y, FIRST, FIRST + 1), X, y


def one_by_one(learner, X, y, start, stop):
    for i in range(start, stop):
        learner.partial_fit(X[i : i + 1], y[i : i + 1])
    return learner


def assert_same(learner, other, X, rtol=1e-9):
    f = other.decision_function(X)
    np.testing.assert_allclose(learner.decision_function(X), f, rtol=0, atol=rtol * np.abs(f).max())
    for name in COUNTS:
        assert getattr(learner, name, 0) == pytest.approx(getattr(other, name, 0), rel=rtol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LEARNERS)
def test_rows_one_by_one_equal_one_call(name, dtype):
    learner, X, y = begun(name, dtype)
    whole, changes = begun(name, dtype)[0], CHANGES.get(name, {})
    learner = one_by_one(learner, X, y, FIRST + 1, 80).set_params(**changes)
    learner = pickle.loads(pickle.dumps(one_by_one(learner, X, y, 80, 110)))
    whole.partial_fit(X[FIRST + 1 : 80], y[FIRST + 1 : 80]).set_params(**changes).partial_fit(X[80:], y[80:])
    rtol = RTOL[dtype].get(name, 1e-4 if dtype == "float32" else 1e-9)
    assert_same(one_by_one(learner, X, y, 110, 150), whole, X, rtol=rtol)


@pytest.mark.parametrize("name", LEARNERS)
def test_checks_are_not_repeated(name, monkeypatch):
    learner, X, y = begun(name)
    monkeypatch.setattr(type(learner), "_next_rows", None)
    one_by_one(learner, X, y, FIRST + 1, 150)
    assert learner.t_ == 150


ROW = np.full((1, 4), 0.5)
REFUSED = {
    "features": (np.zeros((1, 5)), ["yes"], "X has 5 features"),
    "class": (ROW, ["maybe"], r"labels \['maybe'\]"),
    "nan": (np.full((1, 4), np.nan), ["yes"], "contains NaN"),
    "infinity": (np.full((1, 4), np.inf), ["yes"], "contains infinity"),
    "lengths": (ROW, ["yes", "no"], "inconsistent numbers of samples"),
}


@pytest.mark.parametrize("name", ["oskl", "budget oskl"])
@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_row_changes_nothing(name, case):
    learner, X, y = begun(name)
    row, label, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        learner.partial_fit(row, np.array(label))
    assert_same(one_by_one(learner, X, y, FIRST + 1, 150), one_by_one(begun(name)[0], X, y, FIRST + 1, 150), X, rtol=0)


@pytest.mark.parametrize("name", ["oskl", "budget oskl"])
def test_other_kinds_of_rows_give_the_same(name):
    learner, X, y = begun(name, dtype="float32")
    expected = one_by_one(begun(name, dtype="float32")[0], X, y, FIRST + 1, 60)
    kinds = [np.ndarray.tolist, np.asfortranarray, lambda rows: rows.astype(np.float64)]
    for i in range(FIRST + 1, 60):
        label = y[i : i + 1].astype(object) if i % 2 else y[i : i + 1].tolist()
        learner.partial_fit(kinds[i % 3](X[i : i + 1]), label, classes=["no", "yes"])
    assert_same(learner, expected, X, rtol=0)


def test_unusual_calls_take_effect():
    learner, X, y = begun("nc")
    one_by_one(learner, X, y, FIRST + 1, 40)
    learner.set_params(class_weight={"no": 0.0, "yes": 0.0})
    assert one_by_one(learner, X, y, 40, 41).n_support_ == 40
    learner.set_params(class_weight=None).partial_fit(X[40:41], y[40:41], sample_weight=[1e-9])
    assert abs(learner.dual_coef_[-1]) < 1e-8
    with pytest.raises(ValueError, match="classes: expected"):
        learner.partial_fit(X[41:42], y[41:42], classes=["no", "maybe"])
    with pytest.raises(ValueError, match="'gamma' parameter"):
        learner.set_params(gamma=9.0).partial_fit(X[41:42], y[41:42])
    with pytest.raises(ValueError, match="'eta' parameter"):
        learner.set_params(gamma="scale", eta=-1.0).partial_fit(X[41:42], y[41:42])
    one_by_one(learner.set_params(eta=2.0), X, y, 41, 43)
    assert learner.set_params(n_epochs=5).fit(X[:20], y[:20]).t_ == 20 * 5
    assert one_by_one(learner, X, y, 20, 23).t_ == 20 * 5 + 3


def test_the_number_of_rows_may_change_the_step():
    learner, X, y = begun("nc", eta="R/sqrt(T)", average=False)
    learner.for_rows(10**6).partial_fit(X[40:41], y[40:41])
    assert abs(learner.dual_coef_[-1]) <= 1e3 / 10**3 < abs(learner.dual_coef_[0])


def test_attributes_are_those_after_the_last_row():
    learner, X, y = begun("oskl")
    one_by_one(learner, X, y, FIRST + 1, 60)
    average = pickle.loads(pickle.dumps(learner)).dual_coef_
    learner.set_params(average=False)
    np.testing.assert_array_equal(learner.dual_coef_, average)
    one_by_one(learner, X, y, 60, 61).partial_fit(X[61:62], y[61:62])
    assert learner.t_ == 62
    np.testing.assert_array_equal(learner.dual_coef_, learner._state.coefficients(average=False)[0])


@pytest.mark.parametrize("classes", [[-1, 1], [-1, 1, 2]])
@pytest.mark.parametrize("cls", [OSKL, BudgetOSKL])
def test_a_row_of_too_steep_a_loss_ends_the_learning_until_it_begins_again(cls, classes):
    learner = cls(loss="square", G=2.0, gamma=1.0, random_state=0)
    X, y = np.zeros((3, 1)), np.array([1, 1, -1])
    one_by_one(learner.partial_fit(X[:1], y[:1], classes=classes), X, y, 1, 2)
    with pytest.raises(ValueError, match=r"the derivative of the square loss exceeds G = 2 .* at example number 3"):
        one_by_one(learner, X, y, 2, 3)
    with pytest.raises(NotFittedError):
        learner.predict(X)
    learner.set_params(G=30.0).partial_fit(X[:1], y[:1], classes=classes)
    assert one_by_one(learner, X, y, 1, 3).t_ == 3
