"""Optional methods that estimators can define for experiments, and functions that call them.

An experiment needs only the interface of scikit-learn: `fit`, `predict`, optionally `decision_function` and
`predict_proba`, and the documented attributes `classes_`, `n_iter_`, `coef_` and `n_support_`.  A method `fit(X, y,
callback=None)` declares that the fit can be watched: it calls `callback(estimator, t)` with increasing t while it runs,
and stops if the callback returns True; t = 0 may be repeated, before there is a model.  Everything below is optional
and needs no base class.  Metrics have the names of the catalog of metrics.

Checkpoints
    watched               metrics of the predictions that a checkpoint evaluates; ("accuracy",) if not declared
    progress()            further values that a checkpoint stores, by name, such as {"n_support": 12}
    steps(n_samples)      the largest t that a callback may get, and the first useful checkpoint; if not declared,
                          n_samples x `n_epochs` (1 without such a parameter), and FIRST
    ended_at()            the t at which the fit ended, if it is not known in advance; it becomes a checkpoint
Before a fit
    for_rows(n_samples)   sets the parameters of an unfitted estimator that depend on the number of rows, which is
                          smaller in selection than in the final fit, and returns self
    stand_in()            an unfitted estimator whose fit to four rows loads and compiles all that a fit of this one
                          needs; if not declared, one of the same class with default parameters
    rehearse(X, y)        an unfitted estimator that gives the same classifier for these rows without searching for the
                          end; the time of `rehearse` is not counted
After a fit
    summary()             values by name, some of: n_support, sparsity (if missing, 1 - n_support / training rows,
                          at least 0), n_updates, n_iter, pass_time_s, nonzero_fraction, objective, duality_gap
    n_mistakes_, t_       attributes of a classifier of two classes, whose quotient is the metric mistake_rate
    selected_features()   the columns of X that the classifier uses, (n_selected,), or None
    last_classifier()     if `average` is True, the fitted classifier after the last example
    kernel_error(X)       the largest |z(x)'z(x') - k(x, x')| over pairs of rows, for features z that approximate k
One pass for several estimators
    pass_key(n_classes)   a key, equal for all unfitted estimators that can share a pass, or None
    fit_together(estimators, X, y, callback)
                          a fit of estimators with equal keys, for two classes, that stops if `callback(shared pass, t)`
                          returns True; the shared pass has `refused`, (n_estimators,), True for estimators that failed
                          at an example, `logistic`, (n_estimators,), True if the sigmoid of the decision value is the
                          probability of the positive class, and decision_function(X), (n_samples, n_estimators)
Streams
    grows                 True if the memory grows with the rows passed to `partial_fit`
    partial_fit_scores(X, y, classes)
                          for two classes: `partial_fit`, and the decision value of each row, computed from the rows
                          before it; if there is `predict_proba`, its probabilities are their sigmoid
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

FIRST = 256
"""First checkpoint of a single-pass learner; earlier ones are uninformative on a logarithmic axis."""


def declares(estimator: Any, name: str) -> bool:
    """Return True if an estimator has a method with the given name."""
    return callable(getattr(estimator, name, None))


def call(estimator: Any, name: str, *arguments: Any, default: Any = None) -> Any:
    """Call a method of an estimator; return its result, or `default` if there is no method."""
    return getattr(estimator, name)(*arguments) if declares(estimator, name) else default


def watched(estimator: Any) -> tuple[str, ...]:
    """Return the names of the metrics that are computed at the checkpoints of a fit."""
    return tuple(getattr(estimator, "watched", ("accuracy",)))


def progress(estimator: Any) -> dict[str, float]:
    """Return the values, by name, that a checkpoint stores besides prediction metrics."""
    if declares(estimator, "progress"):
        return dict(estimator.progress())
    return {name: value for name, value in documented(estimator).items() if name in ("n_support", "nonzero_fraction")}


def steps(estimator: Any, n_samples: int) -> tuple[int, int]:
    """Return the last step t that a fit can reach, and the step of the first checkpoint."""
    declared: tuple[int, int] | None = call(estimator, "steps", n_samples)
    return declared or (n_samples * getattr(estimator, "n_epochs", 1), FIRST)


def takes_callback(estimator: Any) -> bool:
    """Return True if the method `fit` of an estimator or class has a parameter `callback`."""
    return _fit_takes(estimator, "callback")


def takes_groups(estimator: Any) -> bool:
    """Return True if the method `fit` of an estimator or class has a parameter `groups`."""
    return _fit_takes(estimator, "groups")


def _fit_takes(estimator: Any, name: str) -> bool:
    try:
        return name in inspect.signature(estimator.fit).parameters
    except (ValueError, TypeError):  # compiled functions may have no signature
        return False


def summary(estimator: Any, n_train: int) -> dict[str, float]:
    """Return metrics that describe a fit to `n_train` rows, such as n_support, by name."""
    values = dict(estimator.summary()) if declares(estimator, "summary") else documented(estimator)
    if "n_support" in values:
        with suppress(OverflowError):  # a later check rejects values too large for a float
            values.setdefault("sparsity", max(1.0 - values["n_support"] / n_train, 0.0))
    if len(getattr(estimator, "classes_", ())) == 2 and hasattr(estimator, "n_mistakes_") and hasattr(estimator, "t_"):
        values["mistake_rate"] = estimator.n_mistakes_ / estimator.t_
    return values


def documented(estimator: Any) -> dict[str, float]:
    """Return metrics from the attributes n_support_, n_iter_ and coef_ of an estimator."""
    attributes: dict[str, tuple[str, Callable[[Any], float]]] = {
        "n_support": ("n_support_", lambda counts: int(np.sum(counts))),
        "n_iter": ("n_iter_", lambda counts: int(np.max(counts))),
        "nonzero_fraction": ("coef_", lambda coef: float(np.mean(coef != 0))),
    }
    arrays = {name: (_numeric(estimator, attribute), reduce) for name, (attribute, reduce) in attributes.items()}
    return {name: reduce(array) for name, (array, reduce) in arrays.items() if array is not None}


def _numeric(estimator: Any, attribute: str) -> Any:
    """Return an attribute as a non-empty array of finite numbers, or None if it is not one."""
    value: Any = getattr(estimator, attribute, None)
    if sp.issparse(value):
        return value if np.isfinite(value.data).all() and np.prod(value.shape) else None
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        return None
    return array if array.dtype.kind in "fiu" and array.size and np.isfinite(array).all() else None


def selected_features(estimator: Any) -> NDArray[np.integer[Any]] | None:
    """Return the indices of the columns of X that a classifier selected, or None.

    The array has the shape (n_selected,).  None means that the classifier does not select features.

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
    """Return the last (not the averaged) classifier of an averaging estimator, or None."""
    return call(estimator, "last_classifier") if getattr(estimator, "average", False) else None


def pass_key(estimator: Any, n_classes: int) -> Hashable | None:
    """Return a key shared by all estimators that can be fitted together in one pass, or None."""
    key = call(estimator, "pass_key", n_classes)
    return key if isinstance(key, Hashable) else None


LOADERS: list[Callable[[], None]] = []
"""Functions that load or compile code before a fit is timed; a module with such code appends its function."""
WEIGHT_LEARNERS: list[Callable[..., Any]] = []
"""Function that learns feature weights with a classifier, for other classifiers, which it may itself be made of."""
_WARM: set[tuple[type, str, bool]] = set()


def warm_up(estimator: Any, *, sparse: bool = False) -> None:
    """Fit an estimator to four rows, so that timings exclude loading and compilation.

    This is done once per process and class.  The rows are of the same kind as in the fit: read-only float32, dense or
    CSR.  An error is ignored; the fit itself will raise it.
    """
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stand_in = call(estimator, "stand_in") or type(estimator)()
        key = type(stand_in), str(stand_in.get_params()) if declares(stand_in, "get_params") else "", sparse
        if key not in _WARM:
            _WARM.add(key)
            for load in LOADERS:
                load()
            stand_in.fit(*_few_rows(sparse=sparse))


def _few_rows(*, sparse: bool) -> tuple[Any, NDArray[np.int8]]:
    X, y = np.eye(4, dtype=np.float32), np.array([-1, 1, -1, 1], dtype=np.int8)
    rows: Any = sp.csr_matrix(X) if sparse else X
    for array in (y, rows.data, rows.indices, rows.indptr) if sparse else (y, rows):
        array.flags.writeable = False
    return rows, y


def takes_many_classes(estimator: Any) -> bool:
    """Return True unless an estimator's tags restrict it to two classes."""
    try:
        return bool(estimator.__sklearn_tags__().classifier_tags.multi_class)
    except Exception:  # the class does not have scikit-learn's tags
        return True


def check_parameters(estimator: Any) -> None:
    """Validate the parameters of an estimator if it declares scikit-learn constraints."""
    if declares(estimator, "_validate_params") and hasattr(estimator, "_parameter_constraints"):
        estimator._validate_params()
