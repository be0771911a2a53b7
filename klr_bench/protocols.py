"""What an estimator may declare to an experiment, and the functions that read these declarations.

An experiment needs only what scikit-learn promises: `fit`, `predict`, optionally `decision_function` and
`predict_proba`, and the documented attributes `classes_`, `n_iter_`, `coef_` and `n_support_`.  An estimator may
declare more with the methods of the protocols below.  Each protocol is optional and needs no base class.  Metrics have
the names of the catalogue of metrics.

A method `fit(X, y, callback=None)` declares that the fit can be watched: it calls `callback(estimator, t)` with
increasing t while it runs, and stops if the callback returns True.
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
"""First checkpoint of a learner that passes over the examples once: earlier ones say little on a logarithmic axis."""


class HasCheckpoints(Protocol):
    """A classifier that determines when checkpoints are taken and what they store."""

    watched: tuple[str, ...]
    """Metrics of the predictions that a checkpoint evaluates; ("accuracy",) if not declared."""

    def progress(self) -> Mapping[str, float]:
        """Return further values that a checkpoint stores, by name, such as {"n_support": 12}."""

    def steps(self, n_samples: int) -> tuple[int, int]:
        """Return the largest t that a callback may get in a fit to `n_samples` rows, and the first useful checkpoint.

        If not declared, these are n_samples x `n_epochs` (1 without such a parameter), and FIRST.
        """

    def ended_at(self) -> int:
        """Return the t at which the fit ended, which becomes a checkpoint; only if t is not known in advance."""


class HasSummary(Protocol):
    """A classifier that summarises its fit."""

    average: bool
    """True for the average of all classifiers during the fit."""

    def summary(self) -> Mapping[str, float]:
        """Return values by name, some of: n_support, sparsity, n_updates, n_iter, pass_time_s, nonzero_fraction,
        objective, duality_gap.

        If `sparsity` is missing, it is 1 - n_support / (number of training rows).  For two classes, `mistake_rate` is
        n_mistakes_ / t_ if the classifier has these attributes.
        """

    def selected_features(self) -> NDArray[np.integer[Any]] | None:
        """Return the columns of X that the classifier uses, (n_selected,), or None if it does not select features."""

    def last_classifier(self) -> Any:
        """Return the fitted classifier after the last example of an average."""

    def kernel_error(self, X: Any) -> float:
        """Return the largest |z(x)'z(x') - k(x, x')| over all pairs of the rows of X (n_samples, n_features).

        z are features, in which the classifier is linear, whose inner products approximate a kernel k.
        """


class PreparesFit(Protocol):
    """A classifier that depends on the number of rows, or on work that a timed fit does not include."""

    def for_rows(self, n_samples: int) -> Any:
        """Set the parameters of an unfitted estimator to those for a fit to `n_samples` rows, and return self.

        Selection fits to fewer rows than the final fit.
        """

    def stand_in(self) -> Any:
        """Return an unfitted estimator whose fit to four rows loads and compiles all that a fit of this one needs.

        If not declared, it is an estimator of the same class with default parameters.
        """

    def rehearse(self, X: Any, y: Any) -> Any:
        """Return an unfitted estimator that gives the same classifier for these rows without searching for the end."""


class SharesPass(Protocol):
    """A classifier that can be fitted together with others in one pass over the data."""

    def pass_key(self, n_classes: int) -> Hashable | None:
        """Return a key, equal for all unfitted estimators that can share a pass, or None if this one cannot."""

    def fit_together(self, estimators: Sequence[Any], X: Any, y: Any, callback: Any = None) -> SharedPass:
        """Fit estimators with equal keys, including this one; `callback(shared pass, t)` stops it by True."""


class SharedPass(Protocol):
    """Result of a shared pass, for two classes."""

    refused: NDArray[np.bool_]
    """(n_estimators,): True for estimators that failed at an example and have no result."""
    logistic: NDArray[np.bool_]
    """(n_estimators,): True if the sigmoid of the decision value is the probability of the positive class."""

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the decision values of all estimators for the rows of X, (n_samples, n_estimators)."""


class LearnsStream(Protocol):
    """A classifier that learns from a stream by `partial_fit`."""

    grows: bool
    """True if its memory grows with the rows; False if not declared."""

    def partial_fit_scores(self, X: Any, y: Any, classes: Any = None) -> NDArray[np.float64]:
        """Run `partial_fit`; return the decision value of each row, computed from the rows before it, (n_samples,).

        Only for two classes.  If there is `predict_proba`, its probabilities are the sigmoid of the decision values.
        """


def declares(estimator: Any, name: str) -> bool:
    """Return True if an estimator has a method of this name."""
    return callable(getattr(estimator, name, None))


def call(estimator: Any, name: str, *arguments: Any, default: Any = None) -> Any:
    """Return the result of a method of an estimator, or `default` if it does not declare the method."""
    return getattr(estimator, name)(*arguments) if declares(estimator, name) else default


def watched(estimator: Any) -> tuple[str, ...]:
    """Return the names of the metrics of the predictions that a checkpoint evaluates."""
    return tuple(getattr(estimator, "watched", ("accuracy",)))


def progress(estimator: Any) -> dict[str, float]:
    """Return the values that a checkpoint stores besides the metrics of the predictions."""
    if declares(estimator, "progress"):
        return dict(estimator.progress())
    return {name: value for name, value in documented(estimator).items() if name in ("n_support", "nonzero_fraction")}


def steps(estimator: Any, n_samples: int) -> tuple[int, int]:
    """Return the largest t that a callback may get, and the first useful checkpoint."""
    last, first = call(estimator, "steps", n_samples, default=(n_samples * getattr(estimator, "n_epochs", 1), FIRST))
    return last, first


def takes_callback(estimator: Any) -> bool:
    """Return True if `fit` of the estimator, or of a class of estimators, has a parameter `callback`."""
    try:
        return "callback" in inspect.signature(estimator.fit).parameters
    except (ValueError, TypeError):  # compiled code without a signature
        return False


def summary(estimator: Any, n_train: int) -> dict[str, float]:
    """Return the values that describe a fit to `n_train` rows, by name."""
    values = dict(estimator.summary()) if declares(estimator, "summary") else documented(estimator)
    if "n_support" in values:
        with suppress(OverflowError):  # an integer too large for a float, which is rejected when it is measured
            values.setdefault("sparsity", 1.0 - values["n_support"] / n_train)
    if len(getattr(estimator, "classes_", ())) == 2 and hasattr(estimator, "n_mistakes_") and hasattr(estimator, "t_"):
        values["mistake_rate"] = estimator.n_mistakes_ / estimator.t_
    return values


def documented(estimator: Any) -> dict[str, float]:
    """Return the values of scikit-learn's documented attributes; those that are not numeric are left out."""
    attributes: dict[str, tuple[str, Callable[[Any], float]]] = {
        "n_support": ("n_support_", lambda counts: int(np.sum(counts))),
        "n_iter": ("n_iter_", lambda counts: int(np.max(counts))),
        "nonzero_fraction": ("coef_", lambda coef: float(np.mean(coef != 0))),
    }
    arrays = {name: (_numeric(estimator, attribute), reduce) for name, (attribute, reduce) in attributes.items()}
    return {name: reduce(array) for name, (array, reduce) in arrays.items() if array is not None}


def _numeric(estimator: Any, attribute: str) -> Any:
    """Return an attribute as a non-empty array or sparse matrix of finite numbers, else None."""
    value: Any = getattr(estimator, attribute, None)
    if sp.issparse(value):
        return value if np.isfinite(value.data).all() and np.prod(value.shape) else None
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        return None
    return array if array.dtype.kind in "fiu" and array.size and np.isfinite(array).all() else None


def selected_features(estimator: Any) -> NDArray[np.integer[Any]] | None:
    """Return the columns of X that a fitted classifier uses, (n_selected,), or None if it does not select features.

    If not declared: its `selected_features_`, else the columns with a non-zero weight in `coef_`, if there is one
    weight per column.
    """
    if declares(estimator, "selected_features"):
        columns: NDArray[np.integer[Any]] | None = estimator.selected_features()
        return columns
    selected = _numeric(estimator, "selected_features_")
    if selected is not None and selected.ndim == 1 and selected.dtype.kind in "iu":
        return np.unique(selected)
    coef = _numeric(estimator, "coef_")
    if coef is None:
        return None
    coef = np.atleast_2d(coef.toarray() if hasattr(coef, "toarray") else coef)
    return np.flatnonzero(coef[0]) if coef.shape == (1, getattr(estimator, "n_features_in_", None)) else None


def last_classifier(estimator: Any) -> Any | None:
    """Return the classifier after the last example of an averaged classifier, else None."""
    return call(estimator, "last_classifier") if getattr(estimator, "average", False) else None


def pass_key(estimator: Any, n_classes: int) -> Hashable | None:
    """Return a key, equal for all estimators that can be fitted in one pass, or None if this one cannot share."""
    key = call(estimator, "pass_key", n_classes)
    return key if isinstance(key, Hashable) else None


_WARM: set[tuple[type, str, bool]] = set()


def warm_up(estimator: Any, *, sparse: bool = False) -> None:
    """Fit a tiny problem once per process, so that timings exclude loading and compilation.

    The rows have the kind of those of the fit: read-only float32, dense or CSR.  An error is ignored; the fit itself
    will raise it.
    """
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stand_in = call(estimator, "stand_in") or type(estimator)()
        key = type(stand_in), str(stand_in.get_params()) if declares(stand_in, "get_params") else "", sparse
        if key not in _WARM:
            _WARM.add(key)
            if jit := sys.modules.get("klr_bench.estimators.core.jit"):  # else there is nothing to compile
                jit.compile_all()
            stand_in.fit(*_few_rows(sparse=sparse))


def _few_rows(*, sparse: bool) -> tuple[Any, NDArray[np.int8]]:
    """Return four rows and their labels, read-only."""
    X, y = np.eye(4, dtype=np.float32), np.array([-1, 1, -1, 1], dtype=np.int8)
    rows: Any = sp.csr_matrix(X) if sparse else X
    for array in (y, rows.data, rows.indices, rows.indptr) if sparse else (y, rows):
        array.flags.writeable = False
    return rows, y


def classes(estimator: Any) -> NDArray[Any] | None:
    """Return the classes of a fitted classifier, in the order of its probabilities, or None if it has no `classes_`."""
    array = np.asarray(getattr(estimator, "classes_", None))
    return array if array.ndim == 1 else None


def takes_many_classes(estimator: Any) -> bool:
    """Return True unless the tags of an estimator say that it takes two classes only."""
    try:
        return bool(estimator.__sklearn_tags__().classifier_tags.multi_class)
    except Exception:  # a class without scikit-learn's tags, or with tags of its own
        return True


def check_parameters(estimator: Any) -> None:
    """Validate the parameters of an unfitted estimator, if it can do so; its errors are passed on."""
    if declares(estimator, "_validate_params") and hasattr(estimator, "_parameter_constraints"):
        estimator._validate_params()
