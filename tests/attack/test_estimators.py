"""Attacks on the public classes: parameters, rows and labels that are wrong or extreme.

Each ends in a ValueError that says what is wrong, or in finite predictions.
"""

from __future__ import annotations

import math
import pickle
import warnings
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import InvalidParameterError, make_constraint

import klr_bench
from klr_bench import ApproximateKernelLR, PrototypeKLR
from klr_bench.estimators.core.classifier import learns

CLASSES = {name: getattr(klr_bench, name) for name in klr_bench.__all__ if name[0].isupper()}
SMALL = {"random_state": 0, "n_components": 10, "max_iter": 20, "max_import_vectors": 5}
"""Values of parameters that keep a fit short."""
LARGEST = {**dict.fromkeys(("n_epochs", "n_passes"), 3), "max_iter": 20, "n_components": 20, "n_prototypes": 3}
"""Counts of rounds and of features are drawn up to these, so that a fit is short."""
SELECTING = ("SOFS", "SparDCA", "SparseBatchConfidenceWeighted", "FeatureGeneratingMachine")
"""Learners that break ties by the number of a column."""
NEVER = [
    *(math.nan, -math.inf, "", "nonsense", b"x", [], {}, object(), np.array([1]), 1j, Decimal(1), Fraction(1, 2)),
    *(2**70, -(2**70), 10**400, 10**5000, range(3), np.bool_(True), np.datetime64("2020-01-01")),
]
"""What no parameter of any class may be."""


def made(name: str, **options: Any) -> Any:
    """Return an unfitted estimator whose fit is short."""
    known = CLASSES[name]().get_params()
    return CLASSES[name](**{key: value for key, value in SMALL.items() if key in known} | options)


def rows(n: int = 24, d: int = 4) -> tuple[Any, Any]:
    """Return rows (n, d) of two overlapping classes, and the classes -1 and 1."""
    random = np.random.RandomState(0)
    X = random.standard_normal((n, d))
    return X, np.where((X[:, 0] + 0.3 * random.standard_normal(n) > 0) ^ (np.arange(n) == 1), 1, -1)


X, Y = rows()


def check_fitted(model: Any, X: Any, classes: Any) -> None:
    """Hold the predictions of a fitted model for some rows against the promise."""
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


def parameters() -> Iterator[Any]:
    """Yield each class with each of its parameters."""
    for name, estimator_class in CLASSES.items():
        for parameter in estimator_class().get_params():
            yield pytest.param(name, parameter, id=f"{name}-{parameter}")


@pytest.mark.parametrize(("name", "parameter"), parameters())
def test_no_parameter_may_be_nonsense(name: str, parameter: str) -> None:
    declared = CLASSES[name]._parameter_constraints[parameter]
    switch = "boolean" in [one for one in declared if isinstance(one, str)]
    wrong = [value for value in NEVER if not (switch and isinstance(value, np.bool_))]
    wrong = [value for value in wrong if not (dict in declared and isinstance(value, dict))]
    wrong += [0.5, -1] if parameter == "verbose" else [1, 0.5] if switch else [True, False]
    if None not in declared:
        wrong.append(None)
    for value in wrong:
        with pytest.raises(InvalidParameterError, match=f"The '{parameter}' parameter of {name} must be .* Got "):
            made(name, **{parameter: value}).fit(X, Y)


COUNTS = ("budget", "n_epochs", "batch_size", "n_components", "max_iter", "n_prototypes", "n_features_to_select")


@pytest.mark.parametrize("value", [2**70, 10**30, 2**63, 2**31, True, False, 1.0, 0, -1])
@pytest.mark.parametrize("parameter", COUNTS)
def test_a_count_is_a_whole_number_that_libraries_can_hold(parameter: str, value: Any) -> None:
    for name, estimator_class in CLASSES.items():
        if (name, parameter, value) == ("L1KLR", "n_epochs", 1.0) and not isinstance(value, int):
            continue  # its passes need not be whole
        if parameter in estimator_class().get_params():
            with pytest.raises(InvalidParameterError, match=parameter):
                made(name, **{parameter: value}).fit(X, Y)


@pytest.mark.parametrize("value", [-1, 2**32, 2**40, "x", True, 1.0])
@pytest.mark.parametrize("name", [name for name in CLASSES if "random_state" in CLASSES[name]().get_params()])
def test_a_seed_is_one_of_numpy(name: str, value: Any) -> None:
    with pytest.raises(InvalidParameterError, match="'random_state' parameter"):
        made(name, random_state=value).fit(X, Y)


@pytest.mark.parametrize("name", ["L1KLR", "L1Peer", "ApproximateKernelLR"])
def test_there_are_at_most_a_million_fourier_features(name: str) -> None:
    with pytest.raises(ValueError, match="n_components: expected at most 1,000,000 Fourier features, got "):
        made(name, features="fourier", n_components=2_000_000_000).fit(X, Y)


def test_numbers_of_numpy_are_numbers() -> None:
    for number in (np.int64(1), np.float32(1), np.float64(1), 1):
        assert answer(made("OSKL", G=number, gamma=number), X, Y) == "fits"
    for count in (np.int64(3), np.int8(127), np.uint8(255)):
        assert answer(made("Forgetron", budget=count), X, Y) == "fits"
        assert answer(made("SparseBatchConfidenceWeighted", n_features_to_select=count), X, Y) == "fits"


@pytest.mark.parametrize("degree", [65, 1e12, 1e300, 2**62 - 1])
@pytest.mark.parametrize("name", [name for name in CLASSES if "degree" in CLASSES[name]().get_params()])
def test_a_large_degree_takes_no_longer(name: str, degree: Any) -> None:
    if name != "PrototypeKLR":
        answer(made(name, kernel="poly", degree=degree), X, Y)


FITS, REFUSED, EITHER = "fits", "refused", "either"


def odd_data() -> Iterator[tuple[str, Any, Any, str]]:
    """Yield names, rows, labels, and what must come of them."""
    for exponent in (30, 38, -38, -320, 160, 300):
        for precision in (np.float32, np.float64):
            with np.errstate(all="ignore"):
                scaled = (X * float(f"1e{exponent}")).astype(precision)
            too_large = precision is np.float32 and exponent > 38
            for layout, lay in (("dense", np.asarray), ("csr", sp.csr_matrix)):
                yield f"1e{exponent} {precision.__name__} {layout}", lay(scaled), Y, REFUSED if too_large else EITHER
    for name, column in (("huge", 1e30), ("constant", 3.0)):
        changed = X.copy()
        changed[:, 1] = column
        yield f"{name} column", changed, Y, EITHER if name == "huge" else FITS
    changed = X.copy()
    changed[3, 1] = 1e200
    yield "huge number", changed, Y, EITHER
    yield "zeros", np.zeros(X.shape), Y, FITS
    yield "empty csr", sp.csr_matrix(X.shape), Y, FITS
    yield "each row often", np.repeat(X[:2], 12, axis=0), Y, FITS
    yield "one row", X[:1], Y[:1], REFUSED
    yield "two rows", X[:2], Y[:2], FITS
    yield "one column", X[:, :1], Y, EITHER
    yield "wide csr", sp.random(24, 20_000, 0.001, format="csr", random_state=0), Y, EITHER
    yield "no rows", X[:0], Y[:0], REFUSED
    yield "no columns", X[:, :0], Y, REFUSED
    yield "sorted by class", X[np.argsort(Y)], np.sort(Y), FITS
    for bad in (math.nan, math.inf, -math.inf):
        changed = X.copy()
        changed[0, 0] = bad
        yield f"{bad}", changed, Y, REFUSED
    yield "words", np.full(X.shape, "x"), Y, REFUSED
    yield "numbers as words", X.astype(str), Y, EITHER
    yield "objects", X.astype(object), Y, FITS
    yield "nothing as objects", np.full(X.shape, None), Y, REFUSED
    yield "complex", X + 1j, Y, REFUSED
    yield "three axes", X[None], Y, REFUSED
    yield "one axis", X[:, 0], Y, REFUSED
    yield "a number", 3, Y, REFUSED
    yield "None", None, Y, REFUSED
    yield "lists", X.tolist(), Y.tolist(), FITS
    yield "bools", X > 0, Y, FITS
    yield "int8", (10 * X).astype(np.int8), Y, FITS
    yield "float16", X.astype(np.float16), Y, FITS
    for form in ("coo", "csc", "dia", "lil", "dok", "bsr"):
        yield form, sp.csr_matrix(X).asformat(form), Y, FITS
    yield "csr array", sp.csr_array(X), Y, FITS
    yield "csr of bools", sp.csr_matrix(X > 0), Y, FITS
    yield "csr of whole numbers", sp.csr_matrix(X > 0).astype(int), Y, FITS
    yield "frame", pd.DataFrame(X, columns=["a", "[/b]", "", "\u202e"]), pd.Series(Y), FITS
    yield "frame of categories", pd.DataFrame({"a": pd.Categorical(list("xy") * 12)}), Y, REFUSED
    yield from ((f"labels: {name}", X, labels, outcome) for name, labels, outcome in odd_labels())


def odd_labels() -> Iterator[tuple[str, Any, str]]:
    """Yield names, labels, and what must come of them."""
    words = np.where(Y > 0, "b", "a")
    yield "a column", Y[:, None], FITS
    yield "two columns", np.c_[Y, Y], REFUSED
    yield "whole floats", 1.0 * Y, FITS
    yield "fractions", Y + 0.5, REFUSED
    yield "bools", Y > 0, FITS
    yield "words", words, FITS
    yield "words as objects", words.astype(object), FITS
    yield "bytes", words.astype("S1"), REFUSED
    for name, one in (("None", None), ("another type", 5), ("NaN", math.nan)):
        mixed = words.astype(object)
        mixed[3] = one
        yield f"words and {name}", mixed, REFUSED
    yield "NaN", np.where(np.arange(24) == 3, math.nan, Y), REFUSED
    yield "one class", np.ones(24), REFUSED
    yield "none at all", [], REFUSED
    yield "None", None, REFUSED
    yield "too few", Y[:5], REFUSED
    yield "complex", Y + 0j, REFUSED
    yield "real numbers", X[:, 0], REFUSED
    yield "pairs", [(1, 2)] * 24, REFUSED
    yield "beyond int64", np.where(Y > 0, 2**63, 1).astype(np.uint64), FITS
    yield "a class per row", np.arange(24), EITHER


ODD = list(odd_data())


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize(("data", "labels", "outcome"), [case[1:] for case in ODD], ids=[case[0] for case in ODD])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_odd_rows_and_labels_are_learned_or_refused(data: Any, labels: Any, outcome: str, name: str) -> None:
    given = {"memory_limit": 100} if "memory_limit" in CLASSES[name]().get_params() else {}
    found = answer(made(name, **given), data, labels)
    assert outcome == EITHER or (found == "fits") == (outcome == FITS), found


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


@pytest.mark.parametrize("lam", [1e-300, 1e-310, 1e-320])
@pytest.mark.parametrize("name", [name for name in CLASSES if "lam" in CLASSES[name]().get_params()])
def test_a_tiny_lam_is_learned_or_refused(name: str, lam: float) -> None:
    found = answer(made(name, lam=lam), 3 * X, Y)
    assert found == "fits" or "finite" in found or "objective is" in found or "f(x) =" in found


@pytest.mark.parametrize("size", [1e30, 1e150])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("name", [name for name in CLASSES if "kernel" in CLASSES[name]().get_params()])
def test_huge_rows_and_a_huge_gamma_are_learned_or_refused(name: str, kernel: str, size: float) -> None:
    answer(made(name, kernel=kernel), size * X, Y)
    answer(made(name, kernel=kernel, gamma=size**2), X, Y)


@pytest.mark.parametrize("name", CLASSES)
def test_numbers_learned_that_are_not_finite_are_refused(name: str) -> None:
    class Overflowing(CLASSES[name]):  # type: ignore[misc]
        @learns
        def fit(self, X: Any, y: Any) -> Any:
            super().fit(X, y)
            self.dual_coef_ = np.array([1.0, math.nan])
            return self

    with pytest.raises(ValueError, match=r"Overflowing: dual_coef_ is not finite: .*; scale X, "):
        Overflowing(**made(name).get_params()).fit(X, Y)


@pytest.mark.parametrize("kernel", ["poly", "linear"])
@pytest.mark.parametrize("far", [0, 3, 100, 1000])
def test_an_approximate_kernel_says_the_same_of_dense_and_csr_rows_far_from_0(kernel: str, far: float) -> None:
    data = (X + far).astype(np.float32)
    for lay in (np.asarray, sp.csr_matrix):
        model = ApproximateKernelLR(kernel=kernel, random_state=0).fit(lay(data), Y)
        expected = model.decision_function(data)
        np.testing.assert_allclose(
            model.decision_function(sp.csr_matrix(data)), expected, rtol=0, atol=5e-6 * np.abs(expected).max()
        )


def frozen(array: Any) -> Any:
    """Return a read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view


def frozen_csr(X: Any, index: Any) -> Any:
    """Return CSR rows whose three arrays are read-only; the indices are of a given type."""
    rows = sp.csr_matrix(X)
    parts = frozen(rows.data), frozen(rows.indices.astype(index)), frozen(rows.indptr.astype(index))
    rows.data, rows.indices, rows.indptr = parts
    return rows


def frozen_layouts(precision: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield names, writable rows, and the same rows read-only in another layout."""
    tame = X.astype(precision)
    wide = np.hstack([tame * (np.abs(tame) > 0.7), np.zeros((24, 300), dtype=precision)])
    yield "C", tame, frozen(tame)
    yield "F", tame, frozen(np.asfortranarray(tame))
    yield "every other", tame, frozen(np.repeat(tame, 2, axis=1))[:, ::2]
    yield "reversed", tame, frozen(tame[::-1].copy())[::-1]
    yield "csr", sp.csr_matrix(tame), frozen_csr(tame, np.int32)
    for index in (np.int32, np.int64):
        yield f"wide csr {index.__name__}", sp.csr_matrix(wide), frozen_csr(wide, index)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("name", CLASSES)
def test_read_only_rows_are_learned_like_others(name: str, precision: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _, given, read_only in frozen_layouts(precision):
            expected, found = made(name).fit(given, Y), made(name).fit(read_only, frozen(Y))
            np.testing.assert_array_equal(found.predict(read_only), expected.predict(given))
            if hasattr(found, "partial_fit"):
                found.partial_fit(read_only, frozen(Y)).predict(read_only)


def ends(constraint: Any, draw: Random) -> Any:
    """Draw a value that one constraint of a parameter allows, often near an end."""
    if isinstance(constraint, str):
        return draw.random() < 0.5
    if constraint is dict:
        return {}  # weights of no class
    allowed = make_constraint(constraint)
    if hasattr(allowed, "options"):
        return draw.choice(sorted(allowed.options))
    if constraint is None or constraint is np.random.RandomState:
        return constraint and constraint(draw.randrange(9))
    values = [0, 1, 2, 3, 7, 100, 1e-300, 1e-9, 0.3, 0.5, 0.7, 0.999, 1.5, 1.999, 20.5, 1e9, 1e300, math.inf, -2.5, -1]
    return draw.choice([value for value in values if allowed.is_satisfied_by(value)])


def drawn_model(draw: Random) -> Any:
    """Draw an estimator with some valid parameters."""
    name = draw.choice(list(CLASSES))
    declared = CLASSES[name]._parameter_constraints
    drawn = {key: ends(draw.choice(declared[key]), draw) for key in declared if draw.random() < 0.35}
    drawn |= {key: min(drawn[key] or 1, LARGEST[key]) for key in drawn if key in LARGEST}
    if drawn.get("solver") in ("celer", "skglm"):
        del drawn["solver"]
    return made(name, **drawn)


def drawn_data(draw: Random) -> tuple[Any, Any]:
    """Draw a few odd rows and labels."""
    random = np.random.RandomState(draw.randrange(10**6))
    n, d = draw.choice([2, 3, 12, 30]), draw.choice([1, 2, 5])
    scale = draw.choice([1e-320, 1e-30, 1e-3, 1, 1, 1, 1, 1e3, 1e15, 1e30, 1e200])
    shift = draw.choice([0, 0, 0, 5, 1e3])
    data = scale * (random.standard_normal((n, d)) * (random.uniform(size=(n, d)) < 0.7) + shift)
    if draw.random() < 0.2:
        data = data[random.randint(n, size=n)]
    classes = draw.choice([[-1, 1], ["no", "yes"], [False, True], [0, 1, 2]])
    labels = np.array(classes)[random.randint(len(classes), size=n)]
    labels[: min(n, len(classes))] = classes[:n]
    with np.errstate(over="ignore"):
        data = data.astype(draw.choice([np.float32, np.float64]))
    return draw.choice([np.asarray, np.asfortranarray, sp.csr_matrix, sp.coo_matrix, sp.csr_array])(data), labels


@pytest.mark.parametrize("name", ["SparseBatchConfidenceWeighted", "FeatureGeneratingMachine"])
def test_rows_without_a_feature_leave_no_weights_to_fit_again(name: str) -> None:
    model = made(name, refit=True)
    assert answer(model, np.zeros((6, 2)), [-1, 1] * 3) == "fits"
    assert not model.coef_.any()


@pytest.mark.drawn(0.05)
def test_drawn_parameters_and_rows_give_finite_predictions_or_a_message(draw: Random) -> None:
    model, (data, labels) = drawn_model(draw), drawn_data(draw)
    again = clone(model)
    if answer(model, data, labels) == "fits" and isinstance(again.get_params().get("random_state", 0), int):
        assert again.get_params() == model.get_params()
        assert answer(again, data, labels) == "fits"
        np.testing.assert_array_equal(again.predict(data), model.predict(data))
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(data), model.predict(data))


@pytest.mark.drawn(0.02)
def test_the_order_of_columns_changes_no_decision(draw: Random) -> None:
    random = np.random.RandomState(draw.randrange(10**6))
    data, labels = random.randint(-3, 4, (20, 6)).astype(float), np.where(np.arange(20) % 3, 1, -1)
    name = draw.choice(
        [name for name in CLASSES if name not in (*SELECTING, "ApproximateKernelLR", "FOGD", "PrototypeKLR")]
    )
    options = {"gamma": 0.5} if "gamma" in CLASSES[name]().get_params() else {}
    order = random.permutation(6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = made(name, **options).fit(data, labels).decision_function(data)
        found = made(name, **options).fit(data[:, order], labels).decision_function(data[:, order])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_a_prototype_that_overflows_says_so() -> None:
    assert "finite" in answer(PrototypeKLR(3, kernel="poly", degree=300, random_state=0), 1e3 * X, Y)


@pytest.mark.parametrize("name", ["DualCDKLR", "PrimalCDKLR"])
def test_a_cache_size_of_half_precision_is_a_size(name: str) -> None:
    """A million times the largest float16 is no float16."""
    assert answer(made(name, cache_size=np.float16(65504)), X, Y) == "fits"


@pytest.mark.parametrize("name", [name for name in CLASSES if "n_epochs" in CLASSES[name]().get_params()])
def test_epochs_that_never_end_are_refused(name: str) -> None:
    with pytest.raises(InvalidParameterError, match="'n_epochs' parameter"):
        made(name, n_epochs=10**12).fit(X, Y)
