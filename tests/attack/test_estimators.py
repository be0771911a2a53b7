"""Wrong and extreme parameters, rows, labels and calls of the public classes.

Each ends in a ValueError that says what is wrong, or in finite predictions.
"""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils._param_validation import InvalidParameterError

import klr_bench
from klr_bench import fit_many, l1_path, lambda_max
from klr_bench.estimators.core.classifier import checked_fit
from tests.estimators.one_pass import OSKL, Forgetron, KernelPegasos

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

CLASSES = {name: getattr(klr_bench, name) for name in klr_bench.__all__ if name[0].isupper()}
INCREMENTAL = [name for name in CLASSES if hasattr(CLASSES[name], "partial_fit")]
SMALL = {"random_state": 0, "n_components": 10, "max_iter": 20, "max_import_vectors": 5, "memory_limit": 100}
"""Values of parameters that keep a fit short."""
SELECTING = ("SOFS", "SparDCA", "SparseBatchConfidenceWeighted", "FeatureGeneratingMachine")
"""Learners that break ties by the number of a column."""
RANDOM = np.random.RandomState(0)
X = RANDOM.standard_normal((24, 4))
Y = np.where((X[:, 0] + 0.3 * RANDOM.standard_normal(24) > 0) ^ (np.arange(24) == 1), 1, -1)
FITS, REFUSED, EITHER = "fits", "refused", "either"


def having(parameter: str) -> list[str]:
    """Return the names of the classes with a parameter."""
    return [name for name in CLASSES if parameter in CLASSES[name]().get_params()]


def made(name: str, **options: Any) -> Any:
    """Return an unfitted estimator whose fit is short."""
    known = CLASSES[name]().get_params()
    return CLASSES[name](**{key: value for key, value in SMALL.items() if key in known} | options)


def check_fitted(model: Any, X: Any, classes: Any) -> None:
    assert model.classes_.tolist() == sorted(set(classes))
    if hasattr(model, "decision_function"):
        assert np.isfinite(model.decision_function(X)).all()
    assert set(model.predict(X).tolist()) <= set(model.classes_.tolist())
    if hasattr(model, "predict_proba"):
        P = model.predict_proba(X)
        assert P.shape[1] == len(model.classes_)
        assert ((P >= 0) & (P <= 1)).all()
        np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-6)


def answer(model: Any, X: Any, y: Any) -> str:
    """Fit, and predict the same rows; return "fits", or the message of the ValueError; no warning of numpy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            check_fitted(model.fit(X, y), X, np.ravel(y).tolist())
        except ValueError as error:
            message = str(error)
            assert 10 < len(message) < 3000
            return message
    return "fits"


@pytest.mark.parametrize("name", CLASSES)
def test_no_parameter_may_be_nonsense(name: str) -> None:
    for parameter in CLASSES[name]().get_params():
        declared = CLASSES[name]._parameter_constraints[parameter]
        switch = "boolean" in [one for one in declared if isinstance(one, str)]
        wrong: list[Any] = [math.nan, -math.inf, "", "nonsense", [], object()]
        wrong += (
            [-1] if parameter == "verbose" else [5] if switch else [True] if parameter not in ("q", "variant") else [3]
        )
        wrong += [] if None in declared else [None]
        for value in wrong:
            with pytest.raises(InvalidParameterError, match=f"The '{parameter}' parameter of {name} must be .* Got "):
                made(name, **{parameter: value}).fit(X, Y)


COUNTS = ("budget", "n_epochs", "batch_size", "n_components", "max_iter", "n_prototypes", "n_features_to_select")


@pytest.mark.parametrize("parameter", COUNTS)
def test_a_count_is_a_whole_number_that_libraries_can_hold(parameter: str) -> None:
    for name in having(parameter):
        for value in (10**12, 2**31, True, 2.5, 0, -1):
            if (name, parameter, value) != ("L1KLR", "n_epochs", 2.5):  # whose passes need not be whole
                with pytest.raises(InvalidParameterError, match=parameter):
                    made(name, **{parameter: value}).fit(X, Y)


def test_numbers_of_numpy_are_numbers() -> None:
    for number in (np.int64(1), np.float32(1), np.float64(1), 1):
        assert answer(made("OSKL", G=number, gamma=number), X, Y) == "fits"
    for count in (np.int64(3), np.int8(127), np.uint8(255)):
        assert answer(made("Forgetron", budget=count), X, Y) == "fits"
        assert answer(made("SparseBatchConfidenceWeighted", n_features_to_select=count), X, Y) == "fits"


def odd_data() -> Iterator[tuple[str, Any, Any, str]]:
    """Yield names, rows, labels, and what must come of them."""
    for exponent in (30, 38, -38, -320, 160, 300):
        for precision in (np.float32, np.float64):
            with np.errstate(all="ignore"):
                scaled = (X * float(f"1e{exponent}")).astype(precision)
            expected = REFUSED if precision is np.float32 and exponent > 38 else EITHER
            yield f"1e{exponent} {precision.__name__}", scaled, Y, expected
            yield f"1e{exponent} {precision.__name__} csr", sp.csr_matrix(scaled), Y, expected
    for name, column, expected in (("huge", 1e30, EITHER), ("constant", 3.0, FITS)):
        changed = X.copy()
        changed[:, 1] = column
        yield f"{name} column", changed, Y, expected
    yield "zeros", np.zeros(X.shape), Y, FITS
    yield "empty csr", sp.csr_matrix(X.shape), Y, FITS
    yield "each row often", np.repeat(X[:2], 12, axis=0), Y, FITS
    yield "one row", X[:1], Y[:1], REFUSED
    yield "two rows", X[:2], Y[:2], FITS
    yield "wide csr", sp.random(24, 20_000, 0.001, format="csr", random_state=0), Y, EITHER
    yield "no columns", X[:, :0], Y, REFUSED
    yield "sorted by class", X[np.argsort(Y)], np.sort(Y), FITS
    yield "infinite", np.where(np.arange(96).reshape(24, 4) == 3, math.inf, X), Y, REFUSED
    yield "words", np.full(X.shape, "x"), Y, REFUSED
    yield "complex", X + 1j, Y, REFUSED
    yield "one axis", X[:, 0], Y, REFUSED
    yield "lists", X.tolist(), Y.tolist(), FITS
    yield "bools", X > 0, Y, FITS
    yield "int8", (10 * X).astype(np.int8), Y, FITS
    yield "float16", X.astype(np.float16), Y, FITS
    for form in ("coo", "csc", "dia", "lil", "dok", "bsr"):
        yield form, sp.csr_matrix(X).asformat(form), Y, FITS
    yield "csr array", sp.csr_array(X), Y, FITS
    yield "csr of bools", sp.csr_matrix(X > 0), Y, FITS
    yield "frame", pd.DataFrame(X, columns=["a", "[/b]", "", "\u202e"]), pd.Series(Y), FITS
    yield "frame of categories", pd.DataFrame({"a": pd.Categorical(list("xy") * 12)}), Y, REFUSED
    words = np.where(Y > 0, "b", "a")
    labels = [
        *(("a column", Y[:, None], FITS), ("two columns", np.c_[Y, Y], REFUSED), ("whole floats", 1.0 * Y, FITS)),
        *(("fractions", Y + 0.5, REFUSED), ("bools", Y > 0, FITS), ("words", words, FITS), ("none", [], REFUSED)),
        *(("objects", words.astype(object), FITS), ("None", None, REFUSED), ("too few", Y[:5], REFUSED)),
        *(("one class", np.ones(24), REFUSED), ("real numbers", X[:, 0], REFUSED)),
        ("words and None", np.where(np.arange(24) == 3, None, words.astype(object)), REFUSED),
        ("NaN", np.where(np.arange(24) == 3, math.nan, Y), REFUSED),
        ("beyond int64", np.where(Y > 0, 2**63, 1).astype(np.uint64), FITS),
        ("a class per row", np.arange(24), EITHER),
    ]
    yield from ((f"labels: {name}", X, y, outcome) for name, y, outcome in labels)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_odd_rows_and_labels_are_learned_or_refused(name: str) -> None:
    for case, data, labels, outcome in odd_data():
        found = answer(made(name), data, labels)
        assert outcome == EITHER or (found == "fits") == (outcome == FITS), (case, found)


def test_the_message_about_one_class_names_it() -> None:
    for name in CLASSES:
        assert "got one class: 0.0." in answer(made(name), X, np.zeros(24))
        assert "got one class: 'a'." in answer(made(name), X, np.full(24, "a"))


def test_many_classes_are_learned() -> None:
    data, labels = np.random.RandomState(0).standard_normal((600, 3)), np.arange(600) % 300
    for name in ("KernelPegasos", "AROW", "NonConservativeKLR", "DualCDKLR", "Forgetron"):
        assert answer(made(name), data, labels) == "fits"


@pytest.mark.parametrize("name", CLASSES)
def test_rows_to_predict_are_refused_or_decided(name: str) -> None:
    model = made(name).fit(X.astype(np.float32), Y)
    for wrong in (X[:, :3], X[0], None, "x", X * math.inf, X + 1j, np.zeros((0, 4))):
        with pytest.raises(ValueError, match=r"\w"):
            model.predict(wrong)
    for scale in (1e30, 1e-40, 0.0):
        try:
            check_fitted(model, (scale * X).astype(np.float32), (-1, 1))
        except ValueError as error:
            assert "finite" in str(error)  # noqa: PT017 - either is right


@pytest.mark.parametrize("name", having("lam"))
def test_a_tiny_lam_is_learned_or_refused(name: str) -> None:
    for lam in (1e-300, 1e-320):
        found = answer(made(name, lam=lam), 3 * X, Y)
        assert found == "fits" or "finite" in found or "objective is" in found or "f(x) =" in found


@pytest.mark.parametrize("name", having("kernel"))
def test_huge_rows_parameters_and_powers_are_learned_or_refused(name: str) -> None:
    for kernel in ("rbf", "poly", "linear"):
        for size in (1e30, 1e150):
            answer(made(name, kernel=kernel), size * X, Y)
            answer(made(name, kernel=kernel, gamma=size**2), X, Y)
    if name != "PrototypeKLR":
        answer(made(name, kernel="poly", degree=1e12), X, Y)


@pytest.mark.parametrize("name", CLASSES)
def test_numbers_learned_that_are_not_finite_are_refused(name: str) -> None:
    class Overflowing(CLASSES[name]):  # type: ignore[misc]
        @checked_fit
        def fit(self, X: Any, y: Any) -> Any:
            super().fit(X, y)
            self.dual_coef_ = np.array([1.0, math.nan])
            return self

    with pytest.raises(ValueError, match=r"Overflowing: dual_coef_ is not finite: .*; scale X, "):
        Overflowing(**made(name).get_params()).fit(X, Y)


@pytest.mark.exhaustive
@pytest.mark.drawn(0.02)
def test_the_order_of_columns_changes_no_decision(draw: Random) -> None:
    random = np.random.RandomState(draw.randrange(10**6))
    data, labels = random.randint(-3, 4, (20, 6)).astype(float), np.where(np.arange(20) % 3, 1, -1)
    name = draw.choice([name for name in CLASSES if name not in (*SELECTING, *having("n_components"), "PrototypeKLR")])
    options = {"gamma": 0.5} if "gamma" in CLASSES[name]().get_params() else {}
    order = random.permutation(6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = made(name, **options).fit(data, labels).decision_function(data)
        found = made(name, **options).fit(data[:, order], labels).decision_function(data[:, order])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def mapped(model: Any, folder: Path) -> Any:
    """Return an estimator stored and loaded with memory maps, which are read-only."""
    joblib.dump(model, folder / "model")
    return joblib.load(folder / "model", mmap_mode="r")


@pytest.mark.parametrize("name", INCREMENTAL)
def test_learning_goes_on_after_a_state_was_stored(name: str, tmp_path: Path) -> None:
    wide = sp.csr_matrix(np.hstack([X * (np.abs(X) > 0.7), np.zeros((24, 300))]))
    for rows in (X.astype(np.float32), wide):
        model = made(name, **({"budget": 5} if name in having("budget") else {}))
        model.partial_fit(rows[:12], Y[:12], classes=[-1, 1])
        copies = [mapped(model, tmp_path), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
        expected = model.partial_fit(rows[12:], Y[12:]).decision_function(rows)
        for other in copies:
            found = other.partial_fit(rows[12:], Y[12:]).decision_function(rows)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CLASSES)
def test_a_stored_model_predicts_the_same_and_can_be_fitted_again(name: str, tmp_path: Path) -> None:
    model = made(name).fit(X, Y)
    for other in (pickle.loads(pickle.dumps(model)), mapped(model, tmp_path)):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        np.testing.assert_array_equal(other.fit(X, Y).predict(X), model.predict(X))
        np.testing.assert_array_equal(clone(other).fit(X, Y).predict(X), model.predict(X))


def test_a_state_of_another_version_is_refused() -> None:
    state = made("OSKL").fit(X, Y).__getstate__()
    del state["G"]
    with pytest.raises(ValueError, match="OSKL: the stored state lacks G: "):
        OSKL().__setstate__(state)


BAD_CLASSES: list[Any] = [[], [1, 1], [-1, math.nan], [1, "a"], [[-1, 1]], 3, "ab", [5, 6], ["-1", "1"], [1j, 2]]


@pytest.mark.parametrize("name", INCREMENTAL)
def test_classes_rows_and_labels_of_later_calls_are_those_of_the_first(name: str) -> None:
    for classes in BAD_CLASSES:
        first = made(name)
        with pytest.raises(ValueError, match=r"label|class"):
            first.partial_fit(X, Y, classes=classes)
        first.partial_fit(X, Y)
        with pytest.raises(ValueError, match=r"label|class"):
            first.partial_fit(X, Y, classes=classes)
    for good in (None, [1, -1], [1, 1, -1], np.array([-1.0, 1.0])):
        model = made(name).partial_fit(X, Y, classes=good).partial_fit(X, Y, classes=good)
        assert model.classes_.tolist() == [-1, 1]
    with pytest.raises(ValueError, match="needs two classes; got one class: 1"):
        made(name).partial_fit(X[:1], np.ones(1))
    for labels in (np.where(Y > 0, 1, 7), np.where(Y > 0, "a", "b"), Y.astype(str)):
        with pytest.raises(ValueError, match="which are not among the classes"):
            model.partial_fit(X, labels)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :2], Y)


CHANGED = {
    **{"kernel": "poly", "gamma": 3.0, "degree": 2, "coef0": 0.5, "dtype": "float32", "budget": 3, "a": 3.0},
    **{"covariance": "diagonal", "safeguard": False, "n_features_to_select": 2, "maintenance": "merging"},
    **{"n_components": 7, "rank": 2},
}
"""Parameters that define the state of a learner."""


@pytest.mark.parametrize("name", INCREMENTAL)
def test_what_defines_the_state_cannot_change_between_two_calls(name: str) -> None:
    for parameter in CHANGED.keys() & set(made(name).get_params()):
        model = made(name).partial_fit(X, Y)
        before = model.get_params()[parameter]
        model.set_params(**{parameter: CHANGED[parameter]})
        with pytest.raises(ValueError, match=f"The '{parameter}' parameter of {name} was .* cannot change"):
            model.partial_fit(X, Y)
        model.set_params(**{parameter: before}).partial_fit(X, Y)
        model.set_params(**{parameter: CHANGED[parameter]}).fit(X, Y)
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


@pytest.mark.parametrize(
    "learners",
    [[], OSKL(), [SVC()], [Forgetron()], [LEARNER, LEARNER], [OSKL(), OSKL(gamma=3.0)], [OSKL], [OSKL(G=-1)]],
    ids=str,
)
def test_fit_many_refuses_what_cannot_share_a_pass(learners: Any) -> None:
    with pytest.raises(ValueError, match=r"(?i)learners|'G'"):
        fit_many(learners, X, Y)


@pytest.mark.parametrize("labels", [None, np.ones(24), np.c_[Y, Y], Y[:3], []])
def test_fit_many_refuses_wrong_labels(labels: Any) -> None:
    with pytest.raises(ValueError, match=r"label|class|y |shape|samples"):
        fit_many([OSKL(), KernelPegasos()], X, labels)


@pytest.mark.parametrize("lams", [[], -1, [0], [0.1, -1], math.nan, math.inf, "abc", None, [True]], ids=str)
def test_a_path_is_of_numbers_above_0(lams: Any) -> None:
    with pytest.raises(ValueError, match="lams: expected numbers above 0, got "):
        l1_path(X, Y, lams)


@pytest.mark.parametrize("lams", [0.1, [0.5, 0.1, 0.1], (1e300,), np.array([0.2])], ids=str)
def test_a_path_is_fitted_in_decreasing_order(lams: Any) -> None:
    models = l1_path(X, Y, lams)
    assert [model.lam for model in models] == sorted(np.ravel(lams).tolist(), reverse=True)


def test_the_largest_lambda_is_finite_or_refused() -> None:
    for data, options in ((1e200 * X, {"kernel": "linear"}), (X, {"kernel": "poly", "degree": 0.5, "coef0": -3.0})):
        with pytest.raises(ValueError, match="features z_i of some rows are not finite"):
            lambda_max(data, Y, **options)
