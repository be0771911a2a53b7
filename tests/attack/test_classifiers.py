"""Third-party classifiers with mistakes in their classes, attributes and results.

Each ends in the right result, in a message, or in an exception of type row with its reason.
"""

import gc
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numba.core.dispatcher import Dispatcher
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from klr_bench import protocols
from klr_bench.config import locations as config_files
from klr_bench.config.resolve import resolve_run
from klr_bench.datasets.splits import Prepared, Split, prepare
from klr_bench.errors import KlrBenchError
from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.quality import at_checkpoint, fitted, last, measure
from klr_bench.runner.plan import check_candidates
from klr_bench.runner.scores import is_score
from klr_bench.runner.selection import choose, score_fold
from tests.config.composing import composed_values
from tests.estimators.samples import CLASSIFIERS

RANDOM = np.random.RandomState(0)
X = RANDOM.standard_normal((120, 4)).astype(np.float32)
Y = np.where(X[:, 0] + 0.3 * RANDOM.standard_normal(120) > 0, 1, -1).astype(np.int8)
ROWS = np.arange(120)


class Nearest:
    """A user's classifier: the class with the nearest mean."""

    def fit(self, X: Any, y: Any) -> Any:
        self.classes_ = np.unique(y)
        self.means = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        return self

    def far(self, X: Any) -> Any:
        """Return how much farther the first mean is than the second, (n,)."""
        first, second = (((X - mean) ** 2).sum(axis=1) for mean in self.means)
        return first - second

    def predict(self, X: Any) -> Any:
        return np.where(self.far(X) > 0, 1, -1)


RIGHT = float(np.mean(Nearest().fit(X, Y).predict(X) == Y))


def data(sparse: bool) -> Prepared:
    """Return rows as a run prepares them."""
    dataset = SimpleNamespace(name="rows", X=sp.csr_matrix(X) if sparse else X, y=Y, relevant=None, groups=None)
    return prepare(dataset, Split(ROWS, ROWS), None)  # type: ignore[arg-type]


class Spoiling(Nearest):
    """Changes X and y in place."""

    def fit(self, X: Any, y: Any) -> Any:
        X[:] = 0
        y[:] = 1
        return super().fit(X, y)


def test_a_learner_that_changes_x_in_selection_spoils_no_other() -> None:
    nc, options = {"_target_": "klr_bench.NonConservativeKLR"}, {"folds": 3, "seed": 0}
    alone = score_fold([nc], None, data(False), 0, **options)  # type: ignore[arg-type]
    both = score_fold([{"_target_": f"{__name__}.Spoiling"}, nc], None, data(False), 0, **options)  # type: ignore[arg-type]
    assert both == [None, *alone]


@pytest.mark.usefixtures("short_search")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize(
    "cls", [*CLASSIFIERS.values(), LogisticRegression, RandomForestClassifier], ids=lambda cls: cls.__name__
)
def test_read_only_rows_give_the_same_fit_and_compile_nothing_more(cls: Any, sparse: bool) -> None:
    """All code is compiled during the warm-up, before the timed fit."""
    rows = sp.csr_matrix(X) if sparse else X
    estimator = cls(**({"random_state": 0} if "random_state" in cls().get_params() else {}))
    expected = clone(estimator).fit(rows, Y).predict(rows)
    protocols.warm_up(estimator, sparse=sparse)
    lent = data(sparse).readonly()
    dispatchers = [entry for entry in gc.get_objects() if issubclass(type(entry), Dispatcher)]
    before = [len(entry.overloads) for entry in dispatchers]
    assert before
    found = clone(estimator).fit(lent.X_train, lent.y_train).predict(lent.X_test)
    assert [len(entry.overloads) for entry in dispatchers] == before
    np.testing.assert_array_equal(found, expected)


class Raising(Nearest):
    def __init__(self) -> None:
        raise RuntimeError("no\n" * 1000)


class Needing(Nearest):
    def __init__(self, a: int) -> None:
        self.a = a


@pytest.mark.parametrize(
    ("name", "reason"),
    [("Raising", r".*\.Raising raised RuntimeError: no\n"), ("Needing", "missing a required argument: 'a'")],
)
def test_a_class_that_cannot_be_constructed_is_one_message(name: str, reason: str) -> None:
    spec = {"_target_": f"{__name__}.{name}"}
    plain = composed_values("algorithm=[nc]", "dataset=[moons]")
    plain |= {"sweep": {}, "algorithms": {"mine": {"estimator": spec}}}

    def check() -> None:
        resolve_run(plain, set(), config_files.folders())
        check_candidates("mine", [spec], construct=True)

    with pytest.raises(KlrBenchError, match=rf"^algorithms\.mine\.estimator: {reason}"):
        check()


def result(**attributes: Any) -> dict[str, float]:
    """Return all that is measured of a classifier with these attributes."""
    lent = data(False).readonly()
    estimator = type("Odd", (Nearest,), attributes)()
    estimator.fit(lent.X_train, lent.y_train)
    measured = measure(estimator, lent.X_test, lent.y_test)[0] | fitted(estimator, 120)
    measured |= last(estimator, lent.X_test, lent.y_test) | at_checkpoint(estimator, lent.X_test, lent.y_test)
    return {name: float(value) for name, value in measured.items()}


def returning(method: str, change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a method of a classifier whose result is changed."""

    def changed(self: Any, X: Any) -> Any:
        positive = 1 / (1 + np.exp(-self.far(X)))
        results = {"predict": Nearest.predict(self, X), "predict_proba": np.column_stack([1 - positive, positive])}
        return change(results.get(method, self.far(X)))

    return {method: changed}


RANKED = {"auc", "average_precision"}
ANSWERS: list[tuple[dict[str, Any], set[str]]] = [
    (returning("predict", lambda y: y.tolist()), set()),
    (returning("decision_function", lambda f: f.tolist()), RANKED),
    (returning("decision_function", lambda f: f.astype(str)), set()),
    (returning("predict_proba", lambda p: p.astype(np.float16)), {"log_loss", "brier", "ece", *RANKED}),
    ({"predict_proba": None}, set()),
    *(({name: "many"}, set()) for name in ("n_support_", "n_iter_", "coef_", "selected_features_")),
]
REASONS: list[tuple[dict[str, Any], str]] = [
    (returning("predict", lambda y: y[1:]), "predict returned an array of shape"),
    (returning("predict_proba", lambda p: p[:, 1:]), "predict_proba returned .* one column per class"),
    (returning("predict_proba", lambda p: p * math.nan), "invalid probabilities; expected values from 0 to 1"),
    (returning("predict_proba", lambda p: p * 3), "invalid probabilities; expected values from 0 to 1"),
    ({"n_support_": -5}, "n_support: expected a whole number of at least 0, got -5"),
    ({"summary": lambda self: {"n_support": math.nan}}, "n_support: expected a whole number"),
    ({"summary": lambda self: {"nope": 1}}, "unknown metric 'nope'"),
]


@pytest.mark.parametrize(("attributes", "more"), ANSWERS)
def test_an_odd_answer_is_measured_right_or_left_out(attributes: dict[str, Any], more: set[str]) -> None:
    measured = result(**attributes)
    assert measured["accuracy"] == RIGHT
    assert set(measured) == {"accuracy", "error_rate", "balanced_accuracy", "f1"} | more
    assert all(map(math.isfinite, measured.values()))


@pytest.mark.parametrize(("attributes", "reason"), REASONS)
def test_an_answer_that_cannot_be_is_a_reason(attributes: dict[str, Any], reason: str) -> None:
    with pytest.raises((ValueError, KlrBenchError), match=reason):
        result(**attributes)


def test_lists_and_sparse_matrices_of_weights_are_counted() -> None:
    for coef in ([[0.0, 1.0, 0.0, 2.0]], sp.csr_matrix([[0.0, 1.0, 0.0, 2.0]]), np.array([[0, 1, 0, 2]])):
        measured = result(coef_=coef, n_features_in_=4)
        assert (measured["nonzero_fraction"], measured["n_selected"]) == (0.5, 2)
    assert result(selected_features_=[3, 0, 0])["n_selected"] == 2


class Failing(Nearest):
    """Raises an error for all choices but the last."""

    def __init__(self, choice: int = 0) -> None:
        self.choice = choice

    def fit(self, X: Any, y: Any) -> Any:
        if self.choice < 2:
            raise TypeError(f"choice {self.choice} is none")  # noqa: EM102
        return super().fit(X, y)


def test_a_candidate_whose_code_fails_is_one_candidate() -> None:
    """Failing choices are skipped; if all fail, the record has the reason; only scores are read from files."""
    learners = [{"_target_": f"{__name__}.Failing", "choice": choice} for choice in range(3)]
    scores = [score_fold(learners, None, data(False), fold, folds=2, seed=0) for fold in range(2)]
    assert scores[0][:2] == [{"failed": f"TypeError: choice {choice} is none"} for choice in range(2)]
    by_candidate = [*zip(*scores, strict=True)]
    assert choose(by_candidate) == 2
    assert choose(by_candidate[:2]) is None
    assert all(is_score(row[2], METRICS["accuracy"]) for row in scores)
    for score in (scores[0][0], {"failed": 5}, True, [1], "0.9", math.nan, 7, -5):
        assert not any(is_score(score, METRICS[name]) for name in ("accuracy", "error_rate"))
        assert not is_score(score, METRICS["log_loss"]) or score == -5  # the negative of a loss of 5
