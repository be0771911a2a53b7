"""Wrong and extreme parameters, rows, labels and calls of the public classes.

Each ends in a ValueError that says what is wrong, or in finite predictions.  What scikit-learn's own checks demand of
rows and labels is in tests/estimators/test_check_estimator.py.
"""

import copy
import math
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.utils._param_validation import InvalidParameterError

from klr_bench.estimators.core.checks import checked_fit
from tests.estimators.one_pass import OSKL
from tests.estimators.samples import CLASSIFIERS

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

INCREMENTAL = [name for name in CLASSIFIERS if hasattr(CLASSIFIERS[name], "partial_fit")]
SMALL = {"random_state": 0, "n_components": 10, "max_iter": 20, "max_import_vectors": 5, "memory_limit": 100}
"""Values of parameters that keep a fit short."""
COUNTS = ("budget", "n_epochs", "batch_size", "n_components", "max_iter", "n_prototypes", "n_features_to_select")
RANDOM = np.random.RandomState(0)
X = RANDOM.standard_normal((24, 4))
Y = np.where((X[:, 0] + 0.3 * RANDOM.standard_normal(24) > 0) ^ (np.arange(24) == 1), 1, -1)
FITS, REFUSED, EITHER = "fits", "refused", "either"


def having(parameter: str) -> list[str]:
    """Return the names of the classes with a parameter."""
    return [name for name in CLASSIFIERS if parameter in CLASSIFIERS[name]().get_params()]


def small(name: str, **options: Any) -> Any:
    """Return an unfitted estimator whose fit is short."""
    defaults = CLASSIFIERS[name]().get_params()
    return CLASSIFIERS[name](**{key: value for key, value in SMALL.items() if key in defaults} | options)


def outcome(model: Any, X: Any, y: Any) -> str:
    """Fit, and predict the same rows; return "fits", or the message of the ValueError; numpy must not warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            model.fit(X, y)
            assert model.classes_.tolist() == sorted(set(np.ravel(y).tolist()))
            assert np.isfinite(model.decision_function(X)).all()
            assert set(model.predict(X).tolist()) <= set(model.classes_.tolist())
            if hasattr(model, "predict_proba"):
                P = model.predict_proba(X)
                assert ((P >= 0) & (P <= 1)).all()
                np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-6)
        except ValueError as error:
            message = str(error)
            assert 10 < len(message) < 3000
            return message
    return FITS


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_no_parameter_may_be_nonsense(name: str) -> None:
    for parameter in CLASSIFIERS[name]().get_params():
        declared = CLASSIFIERS[name]._parameter_constraints[parameter]
        wrong: list[Any] = [math.nan, -math.inf, "", "nonsense", [], object()]
        wrong += [-1] if parameter == "verbose" else [5] if "boolean" in map(str, declared) else []
        wrong += [] if None in declared else [None]
        if parameter in COUNTS:  # the passes of L1KLR need not be whole
            wrong += [10**12, True, 0, -1] + [2.5] * ((name, parameter) != ("L1KLR", "n_epochs"))
        for value in wrong:
            with pytest.raises(InvalidParameterError, match=f"The '{parameter}' parameter of {name} must be .* Got "):
                small(name, **{parameter: value}).fit(X, Y)


def test_numbers_of_numpy_are_numbers() -> None:
    for number in (np.int64(1), np.float32(1)):
        assert outcome(small("OSKL", G=number, gamma=number), X, Y) == FITS
    for count in (np.int64(3), np.uint8(255)):
        assert outcome(small("Forgetron", budget=count), X, Y) == FITS
        assert outcome(small("SparseBatchConfidenceWeighted", n_features_to_select=count), X, Y) == FITS


def odd_data() -> Iterator[tuple[str, Any, Any, str]]:
    """Yield names, rows, labels, and what must come of them, beyond what scikit-learn's checks have."""
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
    yield "wide csr", sp.random(24, 20_000, 0.001, format="csr", random_state=0), Y, EITHER
    yield "sorted by class", X[np.argsort(Y)], np.sort(Y), FITS
    yield "frame", pd.DataFrame(X, columns=["a", "[/b]", "", "\u202e"]), pd.Series(Y), FITS
    yield "frame of categories", pd.DataFrame({"a": pd.Categorical(list("xy") * 12)}), Y, REFUSED
    words = np.where(Y > 0, "b", "a").astype(object)
    yield "fractions as labels", X, Y + 0.5, REFUSED
    yield "words and None as labels", X, np.where(np.arange(24) == 3, None, words), REFUSED
    yield "labels beyond int64", X, np.where(Y > 0, 2**63, 1).astype(np.uint64), FITS
    yield "a class per row", X, np.arange(24), EITHER


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_odd_rows_and_labels_are_learned_or_refused(name: str) -> None:
    for case, data, labels, expected in odd_data():
        actual = outcome(small(name), data, labels)
        assert expected == EITHER or (actual == FITS) == (expected == FITS), (case, actual)


TOO_LARGE = re.compile(r"finite|[Ss]cale X|objective is|NaN|infinity|infs|converge|frozen fit")
"""Reasons to refuse rows and valid parameters that are too large."""


@pytest.mark.parametrize("name", having("kernel"))
def test_extreme_parameters_are_learned_or_refused(name: str) -> None:
    def check(rows: Any, **options: Any) -> None:
        actual = outcome(small(name, **options), rows, Y)
        assert actual == FITS or TOO_LARGE.search(actual), (options, actual)
        assert not re.search(r"The '\w+' parameter", actual), (options, actual)

    for kernel in ("rbf", "poly", "linear"):
        for size in (1e30, 1e150):
            check(size * X, kernel=kernel)
            width = {"gamma": size**2} if name in having("gamma") else {"gammas": [size**2]}
            check(X, kernel=kernel, **width)
    if name != "PrototypeKLR":
        check(X, kernel="poly", degree=1e12)
    for lam in (1e-300, 1e-320) if name in having("lam") else ():
        actual = outcome(small(name, lam=lam), 3 * X, Y)
        assert actual == FITS or "finite" in actual or "objective is" in actual or "f(x) =" in actual


def test_numbers_learned_that_are_not_finite_are_refused() -> None:
    class Overflowing(OSKL):  # type: ignore[misc,valid-type]
        @checked_fit
        def fit(self, X: Any, y: Any) -> Any:
            super().fit(X, y)
            self.dual_coef_ = np.array([1.0, math.nan])
            return self

    with pytest.raises(ValueError, match=r"Overflowing: dual_coef_ is not finite: .*; scale X, "):
        Overflowing().fit(X, Y)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_model_stored_and_mapped_read_only_predicts_the_same_and_learns_on(name: str, tmp_path: Path) -> None:
    model = small(name).fit(X, Y)
    joblib.dump(model, tmp_path / "model")
    other = joblib.load(tmp_path / "model", mmap_mode="r")
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    if name in INCREMENTAL:
        expected = copy.deepcopy(model).partial_fit(X, Y).decision_function(X)
        np.testing.assert_allclose(other.partial_fit(X, Y).decision_function(X), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(other.fit(X, Y).predict(X), model.predict(X))


def test_a_state_of_another_version_is_refused() -> None:
    state = small("OSKL").fit(X, Y).__getstate__()
    del state["G"]
    with pytest.raises(ValueError, match="OSKL: the stored state is from another version and lacks G;"):
        OSKL().__setstate__(state)


@pytest.mark.parametrize("name", INCREMENTAL)
def test_classes_rows_and_labels_of_later_calls_are_those_of_the_first(name: str) -> None:
    shape = "classes: expected a list of labels, got an array of shape"
    unknown, other = "y has labels [-1, 1], but the classes are", "classes: expected [-1, 1] as in the first call, got"
    for classes, at_first, later in (
        ([], f"{shape} (0,)", f"{shape} (0,)"),
        ([1, 1], f"{name} needs two classes; got one class: 1.", f"{other} [1]."),
        ([1, "a"], f"{unknown} ['1', 'a'].", f"{other} ['1', 'a']."),
        ([[-1, 1]], f"{shape} (1, 2)", f"{shape} (1, 2)"),
        ("ab", f"{shape} ()", f"{shape} ()"),
        ([5, 6], f"{unknown} [5, 6].", f"{other} [5, 6]."),
    ):
        first = small(name)
        with pytest.raises(ValueError, match=re.escape(at_first)):
            first.partial_fit(X, Y, classes=classes)
        first.partial_fit(X, Y)
        with pytest.raises(ValueError, match=re.escape(later)):
            first.partial_fit(X, Y, classes=classes)
    for good in (None, [1, -1], np.array([-1.0, 1.0])):
        model = small(name).partial_fit(X, Y, classes=good).partial_fit(X, Y, classes=good)
        assert model.classes_.tolist() == [-1, 1]
    with pytest.raises(ValueError, match="needs two classes; got one class: 1"):
        small(name).partial_fit(X[:1], np.ones(1))
    for labels in (np.where(Y > 0, 1, 7), Y.astype(str)):
        with pytest.raises(ValueError, match="but the classes are"):
            model.partial_fit(X, labels)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :2], Y)


CHANGED = {
    **{"kernel": "poly", "gamma": 3.0, "degree": 2, "coef0": 0.5, "dtype": "float32", "budget": 3, "a": 3.0},
    **{"covariance": "diagonal", "safeguard": False, "n_features_to_select": 2, "maintenance": "merging"},
    **{"n_components": 7, "rank": 2, "n_group": 2, "feature_weights": [2.0, 1.0, 1.0, 1.0]},
}
"""Parameters that define the state of a learner."""


def test_all_that_defines_a_state_is_changed() -> None:
    assert {parameter for name in INCREMENTAL for parameter in CLASSIFIERS[name]._fixed} == {*CHANGED}


@pytest.mark.parametrize("name", INCREMENTAL)
def test_what_defines_the_state_cannot_change_between_two_calls(name: str) -> None:
    for parameter in CHANGED.keys() & set(small(name).get_params()):
        model = small(name).partial_fit(X, Y)
        before = model.get_params()[parameter]
        model.set_params(**{parameter: CHANGED[parameter]})
        with pytest.raises(ValueError, match=f"The '{parameter}' parameter of {name} was .* cannot change"):
            model.partial_fit(X, Y)
        model.set_params(**{parameter: before}).partial_fit(X, Y)
        model.set_params(**{parameter: CHANGED[parameter]}).fit(X, Y)
    model = small(name).partial_fit(X, Y)
    for parameter, value in {"eta": 0.3, "average": True, "random_state": 5, "C": 2.0, "R": 7.0}.items():
        if parameter in model.get_params():
            model.set_params(**{parameter: value}).partial_fit(X, Y)
    assert np.isfinite(model.decision_function(X)).all()


def test_with_three_classes_a_loss_cannot_follow_another() -> None:
    for losses in (("logit", "square"), ("square", "logit")):
        model = OSKL(loss=losses[0], G=9.0, R=1.0).partial_fit(X, np.arange(24) % 3).set_params(loss=losses[1])
        with pytest.raises(ValueError, match=f"loss='{losses[1]}' differs from the loss of the first call"):
            model.partial_fit(X, np.arange(24) % 3)
