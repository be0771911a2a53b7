"""Attacks on fitted classes: stored, damaged and read-only states, changes between two calls, learners in groups."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from klr_bench import fit_many, l1_path, lambda_max
from tests.attack.test_estimators import CLASSES, X, Y, made
from tests.estimators.one_pass import OSKL, Forgetron, KernelPegasos

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

INCREMENTAL = [name for name in CLASSES if hasattr(CLASSES[name], "partial_fit")]
WIDE = sp.csr_matrix(np.hstack([X * (np.abs(X) > 0.7), np.zeros((24, 300))]))
ROWS = {"float32": X.astype(np.float32), "wide csr": WIDE}
HALF = 12


def small(name: str) -> Any:
    """Return an unfitted learner, whose budget is soon used up."""
    return made(name, **({"budget": 5} if "budget" in CLASSES[name]().get_params() else {}))


def frozen(model: Any) -> Any:
    """Make all arrays of a fitted estimator read-only."""
    for value in vars(model).values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        elif type(value).__module__.startswith("klr_bench"):
            frozen(value)
    return model


def mapped(model: Any, folder: Path) -> Any:
    """Return an estimator stored and loaded with memory maps."""
    joblib.dump(model, folder / "model")
    return joblib.load(folder / "model", mmap_mode="r")


COPIES = {
    "mapped": mapped,
    "pickled": lambda model, _: pickle.loads(pickle.dumps(model)),
    "deep copy": lambda model, _: copy.deepcopy(model),
    "copy": lambda model, _: copy.copy(model),
    "frozen": lambda model, _: frozen(pickle.loads(pickle.dumps(model))),
}


@pytest.mark.parametrize("kept", COPIES)
@pytest.mark.parametrize("layout", ROWS)
@pytest.mark.parametrize("name", INCREMENTAL)
def test_learning_goes_on_after_a_state_was_kept(name: str, layout: str, kept: str, tmp_path: Path) -> None:
    rows = ROWS[layout]
    model = small(name).partial_fit(rows[:HALF], Y[:HALF], classes=[-1, 1])
    other = COPIES[kept](model, tmp_path)
    np.testing.assert_array_equal(other.predict(rows), model.predict(rows))
    if kept == "copy":
        model = pickle.loads(pickle.dumps(model))  # a copy shares its state
    expected = model.partial_fit(rows[HALF:], Y[HALF:]).decision_function(rows)
    found = other.partial_fit(rows[HALF:], Y[HALF:]).decision_function(rows)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CLASSES)
def test_a_stored_model_predicts_the_same_and_can_be_fitted_again(name: str, tmp_path: Path) -> None:
    model = made(name).fit(X, Y)
    for other in (pickle.loads(pickle.dumps(model)), mapped(model, tmp_path), frozen(copy.deepcopy(model))):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        np.testing.assert_array_equal(other.fit(X, Y).predict(X), model.predict(X))


@pytest.mark.parametrize("name", CLASSES)
def test_a_damaged_state_is_refused(name: str) -> None:
    state = made(name).fit(X, Y).__getstate__()
    for parameter in CLASSES[name]().get_params():
        lacking = {key: value for key, value in state.items() if key != parameter}
        with pytest.raises(ValueError, match=f"{name}: the stored state lacks {parameter}: "):
            CLASSES[name]().__setstate__(lacking)
    for empty in ({}, None):
        with pytest.raises(ValueError, match="the stored state lacks "):
            CLASSES[name]().__setstate__(empty)


BAD_CLASSES: dict[str, Any] = {
    "none": [],
    "one": [1],
    "one often": [1, 1],
    "NaN": [-1, math.nan],
    "infinite": [-1, math.inf],
    "None": [None, 1],
    "mixed": [1, "a"],
    "two axes": [[-1, 1]],
    "no rows": np.zeros((0, 2)),
    "a number": 3,
    "a word": "ab",
    "other labels": [5, 6],
    "words": ["-1", "1"],
    "bytes": [b"a", b"b"],
    "complex": [1j, 2],
    "a set": {-1, 1},
}
GOOD_CLASSES: dict[str, Any] = {
    "None": None,
    "in order": [-1, 1],
    "not in order": [1, -1],
    "often": [1, 1, -1],
    "floats": np.array([-1.0, 1.0]),
    "a tuple": (-1, 1),
}


@pytest.mark.parametrize("classes", BAD_CLASSES.values(), ids=BAD_CLASSES)
@pytest.mark.parametrize("name", INCREMENTAL)
def test_wrong_classes_are_refused(name: str, classes: Any) -> None:
    first = made(name)
    with pytest.raises(ValueError, match=r"label|class"):
        first.partial_fit(X, Y, classes=classes)
    first.partial_fit(X, Y)
    with pytest.raises(ValueError, match=r"label|class"):
        first.partial_fit(X, Y, classes=classes)


@pytest.mark.parametrize("classes", GOOD_CLASSES.values(), ids=GOOD_CLASSES)
@pytest.mark.parametrize("name", INCREMENTAL)
def test_classes_may_be_named_in_many_ways(name: str, classes: Any) -> None:
    model = made(name).partial_fit(X, Y, classes=classes).partial_fit(X, Y, classes=classes)
    assert model.classes_.tolist() == [-1, 1]
    assert set(model.predict(X)) <= {-1, 1}


@pytest.mark.parametrize("name", INCREMENTAL)
def test_later_rows_have_the_classes_and_columns_of_the_first(name: str) -> None:
    with pytest.raises(ValueError, match="needs two classes; got one class: 1"):
        made(name).partial_fit(X[:1], np.ones(1))
    model = made(name).partial_fit(X, Y)
    for labels in (np.where(Y > 0, 1, 7), np.where(Y > 0, "a", "b"), Y.astype(str)):
        with pytest.raises(ValueError, match="which are not among the classes"):
            model.partial_fit(X, labels)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :2], Y)


CHANGED = {
    "kernel": "poly",
    "gamma": 3.0,
    "degree": 2,
    "coef0": 0.5,
    "dtype": "float32",
    "budget": 3,
    "covariance": "diagonal",
    "safeguard": False,
    "n_features_to_select": 2,
    "a": 3.0,
}
"""Parameters that define the state of a learner."""


@pytest.mark.parametrize("parameter", CHANGED)
@pytest.mark.parametrize("name", INCREMENTAL)
def test_what_defines_the_state_cannot_change_between_two_calls(name: str, parameter: str) -> None:
    if parameter not in made(name).get_params():
        return
    for model in (made(name).partial_fit(X, Y), made(name).fit(X, Y)):
        before = model.get_params()[parameter]
        model.set_params(**{parameter: CHANGED[parameter]})
        with pytest.raises(ValueError, match=f"The '{parameter}' parameter of {name} was .* cannot change"):
            model.partial_fit(X, Y)
        model.set_params(**{parameter: before}).partial_fit(X, Y)
        model.set_params(**{parameter: CHANGED[parameter]}).fit(X, Y)


@pytest.mark.parametrize("name", INCREMENTAL)
def test_other_parameters_may_change_between_two_calls(name: str) -> None:
    model = made(name).partial_fit(X, Y)
    for parameter, value in {"eta": 0.3, "average": True, "random_state": 5, "C": 2.0, "R": 7.0}.items():
        if parameter in model.get_params():
            model.set_params(**{parameter: value}).partial_fit(X, Y)
    assert np.isfinite(model.decision_function(X)).all()


def test_with_three_classes_a_loss_cannot_follow_another() -> None:
    for losses in (("logit", "square"), ("square", "logit")):
        model = OSKL(loss=losses[0], G=9.0, R=1.0).partial_fit(X, np.arange(24) % 3).set_params(loss=losses[1])
        with pytest.raises(ValueError, match=f"loss='{losses[1]}' cannot follow the loss of the first call"):
            model.partial_fit(X, np.arange(24) % 3)


LEARNER = OSKL()
BAD_LEARNERS: dict[str, Any] = {
    "none": [],
    "no list": OSKL(),
    "None": None,
    "a set": {OSKL()},
    "another library": [SVC()],
    "a budget": [Forgetron()],
    "one twice": [LEARNER, LEARNER],
    "two kernels": [OSKL(), OSKL(gamma=3.0)],
    "a class": [OSKL],
    "a number": [OSKL(), 3],
    "a bad parameter": [OSKL(G=-1)],
    "a bool": [OSKL(n_epochs=True)],
}


@pytest.mark.parametrize("learners", BAD_LEARNERS.values(), ids=BAD_LEARNERS)
def test_fit_many_refuses_what_cannot_share_a_pass(learners: Any) -> None:
    with pytest.raises(ValueError, match=r"(?i)learners|'G'|'n_epochs'"):
        fit_many(learners, X, Y)


@pytest.mark.parametrize("labels", [None, np.ones(24), np.array([None, 1] * 12), np.c_[Y, Y], Y[:3], []])
def test_fit_many_refuses_wrong_labels(labels: Any) -> None:
    with pytest.raises(ValueError, match=r"label|class|y |shape|samples"):
        fit_many([OSKL(), KernelPegasos()], X, labels)


BAD_LAMS: list[Any] = [
    *(
        [],
        -1,
        [0],
        [0.1, -1],
        math.nan,
        math.inf,
        1e400,
        10**400,
        "abc",
        None,
        [None],
        [True],
        1j,
        len,
        {},
        ["0.1"],
    ),
]


@pytest.mark.parametrize("lams", BAD_LAMS, ids=str)
def test_a_path_is_of_numbers_above_0(lams: Any) -> None:
    with pytest.raises(ValueError, match="lams: expected numbers above 0, got "):
        l1_path(X, Y, lams)


@pytest.mark.parametrize("lams", [0.1, [0.1, 0.5], [0.5, 0.1, 0.1], (1e300,), np.array([0.2]), np.array(0.2)], ids=str)
def test_a_path_is_fitted_in_decreasing_order(lams: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        models = l1_path(X, Y, lams)
    assert [model.lam for model in models] == sorted(np.ravel(lams).tolist(), reverse=True)


def test_the_largest_lambda_is_finite_or_refused() -> None:
    for data, options in ((1e200 * X, {"kernel": "linear"}), (X, {"kernel": "poly", "degree": 0.5, "coef0": -3.0})):
        with pytest.raises(ValueError, match="features z_i of some rows are not finite"):
            lambda_max(data, Y, **options)
    with pytest.raises(ValueError, match="got one class"):
        lambda_max(X, np.ones(24))
