"""What an estimator may declare to an experiment, and the only place that asks whether it has.

An experiment needs nothing beyond what scikit-learn promises: `fit`, `predict`, perhaps `decision_function` and
`predict_proba`, and the documented attributes `classes_`, `n_iter_`, `coef_` and `n_support_`.  An estimator may
declare more, by methods with the names of the protocols below; each stands alone, and no base class is needed.  The
names of numbers are those of the catalogue of metrics.

A method `fit(X, y, callback=None)` declares that the fit can be watched: it calls `callback(estimator, t)` while it
runs, with a rising t, and ends where the callback returns True.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

FIRST = 256
"""The first example worth a checkpoint on a logarithmic axis, of a learner that goes through the examples once."""


class Watchable(Protocol):
    """A classifier that says what a checkpoint keeps, and when there is one."""

    watched: tuple[str, ...]
    """Metrics of the predictions that a checkpoint evaluates; ("accuracy",) where nothing is declared."""

    def progress(self) -> Mapping[str, float]:
        """Return what a checkpoint keeps beside the metrics of the predictions, by name, such as {"n_support": 12}."""

    def steps(self, n_samples: int) -> tuple[int, int]:
        """Return the largest t that a callback may see in a fit to `n_samples` rows, and the first worth a checkpoint.

        Where nothing is declared: n_samples x `n_epochs` (1 without such a parameter), and FIRST.
        """

    def ended_at(self) -> int:
        """Return the t at which the fit ended; declared where that is not known in advance.

        The end is then a checkpoint, too.
        """


class KnowsRows(Protocol):
    """A classifier with parameters that depend on the number of rows."""

    def for_rows(self, n_samples: int) -> Any:
        """Set them, unfitted, to those of a fit to `n_samples` rows, and return self.

        Selection fits to fewer rows than the fit that it chooses for.
        """


class Summarized(Protocol):
    """A classifier that says at the end what its fit has led to."""

    def summary(self) -> Mapping[str, float]:
        """Return numbers by name, some of: n_support, sparsity, n_updates, n_iter, pass_time_s, nonzero_fraction,
        objective, duality_gap.

        Where there is `n_support` and no `sparsity`, that is 1 - n_support / (number of training rows).  A learner of
        two classes with `n_mistakes_` and `t_` has `mistake_rate`, their ratio, too.
        """

    def selected_features(self) -> NDArray[np.integer[Any]] | None:
        """Return the columns of X that the classifier uses, (n_selected,); None where it selects none."""


class Averaged(Protocol):
    """A classifier that is, with `average`, the average of all that there were during the fit."""

    average: bool

    def last_classifier(self) -> Any:
        """Return the fitted classifier after the last example."""


class Approximates(Protocol):
    """A classifier that is linear on features z(x) whose products stand for a kernel k."""

    def kernel_error(self, X: Any) -> float:
        """Return the largest |z(x)'z(x') - k(x, x')| over all pairs of the rows of X (n_samples, n_features)."""


class SharesPass(Protocol):
    """A classifier that can be fitted together with others in one pass over the data."""

    def pass_key(self, n_classes: int) -> Hashable | None:
        """Return a key, equal for all unfitted estimators that can share a pass with this one; None for no sharing."""

    def fit_together(self, estimators: Sequence[Any], X: Any, y: Any, callback: Any = None) -> SharedPass:
        """Fit estimators with equal keys, of which this is one; `callback` as that of `fit`."""


class SharedPass(Protocol):
    """What a shared pass has led to, for two classes."""

    refused: NDArray[np.bool_]
    """(n_estimators,): the estimators that could not take an example, and have no result."""
    logistic: NDArray[np.bool_]
    """(n_estimators,): whether the sigmoid of the decision value is the probability of the positive class."""

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the decision values of all estimators for the rows of X, (n_samples, n_estimators)."""


class Warmed(Protocol):
    """A classifier with parts that are loaded or compiled when they are first used."""

    def stand_in(self) -> Any:
        """Return an unfitted estimator, whose fit to four rows loads and compiles all that a fit of this one needs.

        Where nothing is declared it is one of the same class with its default parameters.
        """


class ScoresRows(Protocol):
    """A classifier of two classes that knows what it predicts for each row before it learns from it."""

    def partial_fit_scores(self, X: Any, y: Any, classes: Any = None) -> NDArray[np.float64]:
        """Do what `partial_fit` does, and return the decision value of each row by the rows before it, (n_samples,).

        Where there is `predict_proba`, its probabilities are the sigmoid of the decision values.
        """


class Grows(Protocol):
    """A classifier that keeps more and more of the rows that `partial_fit` shows it."""

    grows: bool
    """Whether it does; where nothing is declared, it does not."""


class Rehearsed(Protocol):
    """A classifier that may end where another fit has told it to: that fit is no part of its time."""

    def rehearse(self, X: Any, y: Any) -> Any:
        """Return an unfitted estimator whose fit to these rows gives the same classifier and looks for no end."""


def watched(estimator: Any) -> tuple[str, ...]:
    """Return the names of the metrics of the predictions that a checkpoint evaluates."""
    return tuple(getattr(estimator, "watched", ("accuracy",)))


def progress(estimator: Any) -> dict[str, float]:
    """Return what a checkpoint keeps beside the metrics of the predictions."""
    if declares(estimator, "progress"):
        return dict(estimator.progress())
    return {name: value for name, value in documented(estimator).items() if name in ("n_support", "nonzero_fraction")}


def steps(estimator: Any, n_samples: int) -> tuple[int, int]:
    """Return the largest t that a callback may see, and the first that is worth a checkpoint."""
    if declares(estimator, "steps"):
        last, first = estimator.steps(n_samples)
        return last, first
    return n_samples * getattr(estimator, "n_epochs", 1), FIRST


def for_rows(estimator: Any, n_samples: int) -> Any:
    """Return an unfitted estimator whose parameters that depend on the number of rows are those of n_samples rows."""
    return estimator.for_rows(n_samples) if declares(estimator, "for_rows") else estimator


def ended_at(estimator: Any) -> int | None:
    """Return the t at which a fit has ended, None where the last checkpoint is known in advance."""
    return int(estimator.ended_at()) if declares(estimator, "ended_at") else None


def takes_callback(estimator: Any) -> bool:
    """Say whether a fit of the estimator, or of a class of estimators, can be watched and stopped."""
    try:
        return "callback" in inspect.signature(estimator.fit).parameters
    except (ValueError, TypeError):  # compiled code that does not say
        return False


def summary(estimator: Any, n_train: int) -> dict[str, float]:
    """Return the numbers of a fit to `n_train` rows, by name."""
    numbers = dict(estimator.summary()) if declares(estimator, "summary") else documented(estimator)
    if "n_support" in numbers:
        with suppress(OverflowError):  # a number that no float holds, which is refused where it is measured
            numbers.setdefault("sparsity", 1.0 - numbers["n_support"] / n_train)
    if len(getattr(estimator, "classes_", ())) == 2 and hasattr(estimator, "n_mistakes_") and hasattr(estimator, "t_"):
        numbers["mistake_rate"] = estimator.n_mistakes_ / estimator.t_
    return numbers


def documented(estimator: Any) -> dict[str, float]:
    """Return the numbers that scikit-learn's documented attributes hold; one of another kind means something else."""
    attributes: dict[str, tuple[str, Callable[[Any], float]]] = {
        "n_support": ("n_support_", lambda counts: int(np.sum(counts))),
        "n_iter": ("n_iter_", lambda counts: int(np.max(counts))),
        "nonzero_fraction": ("coef_", lambda coef: float(np.mean(coef != 0))),
    }
    found = {name: (_numbers(estimator, attribute), number) for name, (attribute, number) in attributes.items()}
    return {name: number(value) for name, (value, number) in found.items() if value is not None}


def _numbers(estimator: Any, attribute: str) -> Any:
    """Return an attribute that holds finite numbers, an array or a sparse matrix of at least one; else None."""
    value = getattr(estimator, attribute, None)
    if sp.issparse(value):
        return value if np.isfinite(value.data).all() and np.prod(value.shape) else None
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        return None
    return array if array.dtype.kind in "fiu" and array.size and np.isfinite(array).all() else None


def selected_features(estimator: Any) -> NDArray[np.integer[Any]] | None:
    """Return the columns of X that a fitted classifier uses, (n_selected,); None where it selects none.

    Where nothing is declared: its `selected_features_`, else those with a weight other than 0 in `coef_`, if it has
    one for each column.
    """
    if declares(estimator, "selected_features"):
        return estimator.selected_features()
    chosen = _numbers(estimator, "selected_features_")
    if chosen is not None and chosen.ndim == 1 and chosen.dtype.kind in "iu":
        return np.unique(chosen)
    coef = _numbers(estimator, "coef_")
    if coef is None:
        return None
    coef = np.atleast_2d(coef.toarray() if hasattr(coef, "toarray") else coef)
    return np.flatnonzero(coef[0]) if coef.shape == (1, getattr(estimator, "n_features_in_", None)) else None


def last_classifier(estimator: Any) -> Any | None:
    """Return the last classifier of one that is the average of many, else None."""
    return estimator.last_classifier() if declares(estimator, "last_classifier") and estimator.average else None


def kernel_error(estimator: Any, X: Any) -> float | None:
    """Return how far products of a classifier's features are from its kernel, None where it has no such features."""
    return float(estimator.kernel_error(X)) if declares(estimator, "kernel_error") else None


def pass_key(estimator: Any, n_classes: int) -> Hashable | None:
    """Return a key, equal for all estimators that can be fitted in one pass; None where there is no sharing."""
    key = estimator.pass_key(n_classes) if declares(estimator, "pass_key") else None
    return key if isinstance(key, Hashable) else None


def fit_together(estimators: Sequence[Any], X: Any, y: Any, callback: Any = None) -> SharedPass:
    """Fit estimators with equal keys in one pass; `callback(shared pass, t)` ends it where it returns True."""
    together: SharedPass = estimators[0].fit_together(estimators, X, y, callback)
    return together


_WARM: set[tuple[type, str, bool]] = set()


def warm_up(estimator: Any, *, sparse: bool = False) -> None:
    """Fit a stand-in to next to nothing, once a process: what a first fit loads or compiles is not part of a time.

    The rows are of the same kind as those of the fit: read-only float32, dense or CSR.
    A stand-in that fails is left alone; the fit itself will say what is wrong.
    """
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stand_in = estimator.stand_in() if declares(estimator, "stand_in") else type(estimator)()
        key = type(stand_in), str(stand_in.get_params()) if declares(stand_in, "get_params") else "", sparse
        if key not in _WARM:
            _WARM.add(key)
            if jit := sys.modules.get("klr_bench.estimators.core.jit"):  # else there is nothing to compile
                jit.compile_all()
            stand_in.fit(*_few_rows(sparse=sparse))


def _few_rows(*, sparse: bool) -> tuple[Any, NDArray[np.int8]]:
    """Return four rows and their labels, read-only."""
    X, y = np.eye(4, dtype=np.float32), np.array([-1, 1, -1, 1], dtype=np.int8)
    rows = sp.csr_matrix(X) if sparse else X
    for array in (y, rows.data, rows.indices, rows.indptr) if sparse else (y, rows):
        array.flags.writeable = False
    return rows, y


def classes(estimator: Any) -> NDArray[Any] | None:
    """Return the classes of a fitted classifier, in the order of its probabilities; None where it does not say."""
    found = np.asarray(getattr(estimator, "classes_", None))
    return found if found.ndim == 1 else None


def decision_function(estimator: Any) -> Callable[[Any], Any] | None:
    """Return the method that gives decision values, None where there is none."""
    return getattr(estimator, "decision_function", None)


def predict_proba(estimator: Any) -> Callable[[Any], Any] | None:
    """Return the method that gives probabilities, None where there is none."""
    return getattr(estimator, "predict_proba", None)


def grows(estimator: Any) -> bool:
    """Say whether the memory of an estimator grows with the rows that it learns from."""
    return bool(getattr(estimator, "grows", False))


def scores_rows(estimator: Any) -> bool:
    """Say whether an estimator knows what it predicts for each row before it learns from it."""
    return declares(estimator, "partial_fit_scores")


def rehearsed(estimator: Any, X: Any, y: Any) -> Any:
    """Return the estimator whose fit is to be timed; without a rehearsal it is the estimator itself."""
    return estimator.rehearse(X, y) if declares(estimator, "rehearse") else estimator


def takes_many_classes(estimator: Any) -> bool:
    """Say whether an estimator takes more than two classes, as far as its tags tell."""
    try:
        return bool(estimator.__sklearn_tags__().classifier_tags.multi_class)
    except Exception:  # a class without scikit-learn's tags, or with some of its own
        return True


def check_parameters(estimator: Any) -> None:
    """Let an estimator refuse its parameters before it is fitted, where it can; raises what it raises."""
    if declares(estimator, "_validate_params") and hasattr(estimator, "_parameter_constraints"):
        estimator._validate_params()


def declares(estimator: Any, name: str) -> bool:
    """Say whether an estimator has a method of this name."""
    return callable(getattr(estimator, name, None))
