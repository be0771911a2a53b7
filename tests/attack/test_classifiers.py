"""Third-party classifiers: what they change, and what their classes, attributes and answers may be.

Each ends in the right result, in a message, or in an exception, which is a row with its reason.
"""

from __future__ import annotations

import copy
import gc
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numba.core.dispatcher import Dispatcher
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

import klr_bench
from klr_bench import protocols
from klr_bench.config import locations as config_files
from klr_bench.config.resolve import resolve_run
from klr_bench.datasets.splits import Prepared, Split, prepare
from klr_bench.errors import KlrBenchError
from klr_bench.instantiate import build
from klr_bench.metrics.labels import METRICS, naming_errors
from klr_bench.metrics.quality import at_checkpoint, fitted, last, measure
from klr_bench.runner.bandwidth import resolve_kernel
from klr_bench.runner.plan import check_candidates
from klr_bench.runner.scores import is_score
from klr_bench.runner.selection import choose, score_fold
from tests.attack.promise import check_message, rejected
from tests.config.composing import composed_values

HERE = __name__
RANDOM = np.random.RandomState(0)
X = RANDOM.standard_normal((120, 4)).astype(np.float32)
Y = np.where(X[:, 0] + 0.3 * RANDOM.standard_normal(120) > 0, 1, -1).astype(np.int8)
ROWS = np.arange(120)


class Nearest:
    """A user's classifier: the class with the nearest mean."""

    def fit(self, X: Any, y: Any) -> Any:
        self.classes_ = np.unique(y)
        rows = X.toarray() if sp.issparse(X) else X
        self.means = np.array([rows[y == label].mean(axis=0) for label in self.classes_])
        return self

    def far(self, X: Any) -> Any:
        """Return how much farther the first mean is than the second, (n,)."""
        rows = X.toarray() if sp.issparse(X) else X
        first, second = (((rows - mean) ** 2).sum(axis=1) for mean in self.means)
        return first - second

    def predict(self, X: Any) -> Any:
        return np.where(self.far(X) > 0, 1, -1)


RIGHT = float(np.mean(Nearest().fit(X, Y).predict(X) == Y))


def data(sparse: bool) -> Prepared:
    """Return the rows as a run prepares them."""
    dataset = SimpleNamespace(name="rows", X=sp.csr_matrix(X) if sparse else X, y=Y, relevant=None)
    return prepare(dataset, Split(ROWS, ROWS), None)  # type: ignore[arg-type]


# what is lent is not changed


class Spoiling(Nearest):
    """Changes X and y in place, in `fit` and in `predict`."""

    def fit(self, X: Any, y: Any) -> Any:
        X[:] = 0
        y[:] = 1
        return super().fit(X, y)


class SpoilingLater(Nearest):
    def predict(self, X: Any) -> Any:
        X *= 0
        return super().predict(X)


@pytest.mark.parametrize("spoiling", [Spoiling, SpoilingLater])
def test_a_learner_that_changes_x_in_selection_spoils_no_other(spoiling: type) -> None:
    nc = {"_target_": "klr_bench.NonConservativeKLR"}
    kept, options = data(False), {"folds": 3, "seed": 0}
    alone = score_fold([nc], None, kept, 0, **options)  # type: ignore[arg-type]
    both = score_fold([{"_target_": f"{HERE}.{spoiling.__name__}"}, nc], None, kept, 0, **options)  # type: ignore[arg-type]
    assert both == [None, *alone]


OURS = [getattr(klr_bench, name) for name in klr_bench.__all__ if isinstance(getattr(klr_bench, name), type)]
LIBRARIES = [SVC, LinearSVC, LogisticRegression, SGDClassifier, KNeighborsClassifier, RandomForestClassifier]


def seeded(cls: Any) -> Any:
    estimator = cls()
    return estimator.set_params(random_state=0) if "random_state" in estimator.get_params() else estimator


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("cls", [*OURS, *LIBRARIES], ids=lambda cls: cls.__name__)
def test_read_only_rows_give_the_same_fit_and_compile_nothing_more(cls: Any, sparse: bool) -> None:
    """After the warm-up, the timed fit finds all compiled code loaded."""
    rows = sp.csr_matrix(X) if sparse else X
    expected = seeded(cls).fit(rows, Y).predict(rows)
    protocols.warm_up(seeded(cls), sparse=sparse)
    lent = data(sparse).lent()
    before = n_compiled()
    found = seeded(cls).fit(lent.X_train, lent.y_train).predict(lent.X_test)
    assert n_compiled() == before
    np.testing.assert_array_equal(found, expected)


def n_compiled() -> int:
    return sum(len(entry.overloads) for entry in DISPATCHERS)


DISPATCHERS = [entry for entry in gc.get_objects() if type(entry) is Dispatcher or isinstance(entry, Dispatcher)]


# odd classes


def raising(error: BaseException) -> Callable[..., Any]:
    def raise_it(*_: Any, **__: Any) -> Any:
        raise error

    return raise_it


def new(base: Any = object, **attributes: Any) -> Any:
    bases = (Nearest,) if base is object else (Nearest, base)
    return type("Odd", bases, attributes)


BUILT: dict[str, Any] = {
    "plain": new(),
    "no constraints": new(BaseEstimator),
    "constraints of another kind": new(_parameter_constraints=5),
    "*args": new(__init__=lambda self, *args: None),
    "**kwargs": new(__init__=lambda self, **kwargs: None),
    "tags raise": new(ClassifierMixin, __sklearn_tags__=raising(RuntimeError())),
    "a mixin without tags": new(ClassifierMixin),
    "a signature of compiled code": new(fit=np.frompyfunc(lambda *_: None, 3, 1)),
}
NOT_BUILT: dict[str, Any] = {
    "raises": new(__init__=raising(RuntimeError("no\n" * 1000))),
    "a needed parameter": new(__init__=lambda self, a: None),
}
odd: Any = None
RUN = composed_values("algorithm=[nc]", "dataset=[moons]") | {"sweep": {}}


@pytest.fixture
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Let a dotted name stand for a class; return the spec."""
    monkeypatch.setattr(f"{HERE}.odd", request.param)
    return {"_target_": f"{HERE}.odd"}


def configured(spec: dict[str, Any]) -> None:
    """Check the spec as a run does, construct the estimator, ask what is asked before a fit."""
    plain = copy.deepcopy(RUN)
    plain["algorithms"] = {"mine": {"estimator": spec}}
    resolve_run(plain, set(), config_files.folders())
    check_candidates("mine", [spec], construct=True)


@pytest.mark.parametrize("place", BUILT.values(), ids=BUILT, indirect=True)
def test_an_odd_class_is_taken(place: dict[str, Any]) -> None:
    configured(place)
    estimator = build(place)
    assert protocols.takes_many_classes(estimator)
    assert not protocols.takes_callback(estimator)


@pytest.mark.parametrize("place", NOT_BUILT.values(), ids=NOT_BUILT, indirect=True)
def test_a_class_that_cannot_be_constructed_is_one_message(place: dict[str, Any]) -> None:
    with pytest.raises(KlrBenchError, match=r"algorithms\.mine\.estimator"):
        configured(place)


# odd answers


def result(**attributes: Any) -> dict[str, float]:
    """Return all that is measured of a classifier with these attributes, as a cell is measured."""
    lent = data(False).lent()
    estimator = new(**attributes)()
    estimator.fit(lent.X_train, lent.y_train)
    measured = measure(estimator, lent.X_test, lent.y_test)[0] | fitted(estimator, 120)
    measured |= last(estimator, lent.X_test, lent.y_test) | at_checkpoint(estimator, lent.X_test, lent.y_test)
    return {name: float(value) for name, value in measured.items()}


def probabilities(self: Any, X: Any) -> Any:
    positive = 1 / (1 + np.exp(-self.far(X)))
    return np.column_stack([1 - positive, positive])


def proba(change: Callable[[Any], Any]) -> dict[str, Any]:
    return {"predict_proba": lambda self, X: change(probabilities(self, X))}


def decision(change: Callable[[Any], Any]) -> dict[str, Any]:
    return {"decision_function": lambda self, X: change(self.far(X))}


def predicting(change: Callable[[Any], Any]) -> dict[str, Any]:
    return {"predict": lambda self, X: change(Nearest.predict(self, X))}


RANKED = {"auc", "average_precision"}
LOSS = {"log_loss", "brier", "ece", *RANKED}
NUMBERS: list[Any] = ["many", math.nan, math.inf, [[1], [2, 3]], [], None]
ANSWERS: list[tuple[str, dict[str, Any], set[str]]] = [
    ("labels as a list", predicting(lambda y: y.tolist()), set()),
    ("labels as floats", predicting(lambda y: y.astype(float)), set()),
    ("labels as objects", predicting(lambda y: y.astype(object)), set()),
    ("decision values", decision(lambda f: f), RANKED),
    ("a list of decision values", decision(lambda f: f.tolist()), RANKED),
    ("a column of decision values", decision(lambda f: f[:, None]), set()),
    ("two columns of decision values", decision(lambda f: np.column_stack([-f, f])), set()),
    ("text as decision values", decision(lambda f: f.astype(str)), set()),
    ("complex decision values", decision(lambda f: f + 1j), set()),
    ("no decision values", decision(lambda f: None), set()),
    ("probabilities", proba(lambda p: p), LOSS),
    ("a list of probabilities", proba(lambda p: p.tolist()), LOSS),
    ("half precision", proba(lambda p: p.astype(np.float16)), LOSS),
    ("whole probabilities", proba(lambda p: (p > 0.5).astype(int)), LOSS),
    ("no method", {"predict_proba": None}, set()),
    *((f"n_support_ {value!r:.12}", {"n_support_": value}, set()) for value in NUMBERS),
    *((f"n_iter_ {value!r:.12}", {"n_iter_": value}, set()) for value in NUMBERS),
    *((f"coef_ {value!r:.12}", {"coef_": value}, set()) for value in NUMBERS),
    *((f"selected_features_ {value!r:.12}", {"selected_features_": value}, set()) for value in NUMBERS),
]
REASONS: list[tuple[str, dict[str, Any], str]] = [
    ("a column of labels", predicting(lambda y: y[:, None]), "predict returned an array of shape"),
    ("too few labels", predicting(lambda y: y[1:]), "predict returned an array of shape"),
    ("one label", predicting(lambda y: 1), "predict returned an array of shape"),
    ("one column", proba(lambda p: p[:, 1:]), "predict_proba returned .* a column for each class"),
    ("flat", proba(lambda p: p[:, 1]), "a column for each class"),
    ("three columns", proba(lambda p: np.column_stack([p, p[:, 0]])), "a column for each class"),
    ("too few rows", proba(lambda p: p[1:]), "a column for each class"),
    ("no probabilities", proba(lambda p: None), "a column for each class"),
    ("NaN", proba(lambda p: p * math.nan), "no probabilities: expected numbers from 0 to 1"),
    ("sum 3", proba(lambda p: p * 3), "no probabilities: expected numbers from 0 to 1"),
    ("sum 1/2", proba(lambda p: p / 2), "no probabilities: expected numbers from 0 to 1"),
    ("negative", proba(lambda p: p * [[3, 3]] - 1), "no probabilities: expected numbers from 0 to 1"),
    ("n_support_ -5", {"n_support_": -5}, "n_support: expected a whole number of at least 0, got -5"),
    ("summary NaN", {"summary": lambda self: {"n_support": math.nan}}, "n_support: expected a whole number"),
    ("summary text", {"summary": lambda self: {"n_iter": "x"}}, "n_iter: expected a whole number"),
    ("summary complex", {"summary": lambda self: {"objective": 1j}}, "objective: expected a number"),
    ("summary unknown", {"summary": lambda self: {"nope": 1}}, "unknown metric 'nope'"),
    ("summary share", {"summary": lambda self: {"sparsity": 7}}, "sparsity: expected a number from 0 to 1, got 7"),
]


@pytest.mark.parametrize(("attributes", "more"), [case[1:] for case in ANSWERS], ids=[case[0] for case in ANSWERS])
def test_an_odd_answer_is_measured_right_or_left_out(attributes: dict[str, Any], more: set[str]) -> None:
    measured = result(**attributes)
    assert measured["accuracy"] == RIGHT
    assert set(measured) == {"accuracy", "error_rate", "balanced_accuracy", "f1"} | more
    assert all(map(math.isfinite, measured.values()))


@pytest.mark.parametrize(("attributes", "why"), [case[1:] for case in REASONS], ids=[case[0] for case in REASONS])
def test_an_answer_that_cannot_be_is_a_reason(attributes: dict[str, Any], why: str) -> None:
    with pytest.raises((ValueError, KlrBenchError), match=why):
        result(**attributes)


def test_lists_and_sparse_matrices_of_weights_are_counted() -> None:
    for coef in ([[0.0, 1.0, 0.0, 2.0]], sp.csr_matrix([[0.0, 1.0, 0.0, 2.0]]), np.array([[0, 1, 0, 2]])):
        measured = result(coef_=coef, n_features_in_=4)
        assert (measured["nonzero_fraction"], measured["n_selected"]) == (0.5, 2)
    assert result(selected_features_=[3, 0, 0])["n_selected"] == 2


# scores, and metrics of the user


@pytest.mark.parametrize("score", [True, [1], "0.9", math.nan, -math.inf, 1e300, 7, -5, 1.01])
def test_a_score_file_is_believed_only_where_the_metric_can_have_it(score: Any) -> None:
    assert not is_score(score, METRICS["accuracy"])
    assert not is_score(score, METRICS["error_rate"])
    assert not is_score(score, METRICS["log_loss"]) or score == -5  # the negative of a loss of 5


@pytest.mark.parametrize("found", ["0.9", [1.0], np.ones(2), math.inf, True])
def test_a_metric_of_the_user_that_returns_no_number_is_one_message(found: Any) -> None:
    message = rejected(
        lambda: naming_errors("mine", lambda _: found)(None), "metric mine: its function is to return a finite"
    )  # type: ignore[arg-type]
    check_message(message)


@pytest.mark.parametrize("error", [RuntimeError("x" * 10**6), SystemExit(3)])
def test_a_metric_of_the_user_that_raises_is_one_message(error: BaseException) -> None:
    rejected(lambda: naming_errors("mine", raising(error))(None), f"its function raised {type(error).__name__}: ")  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_a_width_that_is_no_gamma_is_one_message(scale: float) -> None:
    kernel = {"kernel": "rbf", "percentile": 20.0}
    rejected(lambda: resolve_kernel(kernel, X.astype(np.float64) * scale, 0), "kernel.percentile=20: ")


class Typed:
    """Raises what a mistake in its code raises, for all choices but the last."""

    def __init__(self, choice: int = 0) -> None:
        self.choice = choice

    def fit(self, X: Any, y: Any) -> Any:
        if self.choice < 2:
            raise TypeError(f"choice {self.choice} is none")  # noqa: EM102
        return self

    def predict(self, X: Any) -> Any:
        return np.ones(X.shape[0])


def test_a_candidate_whose_code_fails_is_one_candidate() -> None:
    """The others count; where all fail, the row says why; and what is stored is believed."""
    learners = [{"_target_": "tests.attack.test_classifiers.Typed", "choice": choice} for choice in range(3)]
    scores = [score_fold(learners, None, data(False), fold, folds=2, seed=0) for fold in range(2)]
    assert scores[0][:2] == [{"failed": f"TypeError: choice {choice} is none"} for choice in range(2)]
    by_candidate = [*zip(*scores, strict=True)]
    assert choose(by_candidate) == 2
    assert choose(by_candidate[:2]) is None
    assert all(is_score(score, METRICS["accuracy"]) for row in scores for score in row)
    assert not is_score({"failed": 5}, METRICS["accuracy"])
