"""Checks of all classifiers: rows, labels, weights of rows, and finite results."""

from __future__ import annotations

import time
import warnings
from contextlib import contextmanager
from functools import wraps
from numbers import Number

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_non_negative, validate_data

from klr_bench.estimators.core.rows import MOST_PLACES, canonical, largest_of
from klr_bench.estimators.core.threads import outside, single_threaded_blas

LEARNED = ("coef_", "dual_coef_", "intercept_", "prototypes_", "objective_")
"""Fitted attributes that must be finite."""
SQUARABLE = {np.dtype(np.float32): 1e18, np.dtype(np.float64): 1e150}
"""Largest absolute value whose square does not overflow in each precision; that of its inverse does not underflow."""
PAUSE_S = 1.0
"""Seconds between two progress lines with verbose=1; with a larger value each call prints a line."""


class LearningFailed(ValueError):
    """Learning from valid rows failed, possibly after the state has changed."""


def warn(message, category=UserWarning):
    """Issue a warning that points to the line of the user's code that called klr_bench."""
    frame = outside()
    values = frame.f_globals
    registry = values.setdefault("__warningregistry__", {})
    warnings.warn_explicit(
        message, category, frame.f_code.co_filename, frame.f_lineno, values.get("__name__"), registry
    )


def checked_data(estimator, *data, **options):
    """Validate X, or X and y, and sum duplicate entries of a CSR matrix X.

    The error message has a hint for missing values and strings in X.  CSR rows may have 2^31 - 1 features, whose
    indices fit into 32 bits.
    """
    for name, values in zip("Xy", data, strict=False):
        refuse_masked(values, name)
    try:
        validated = validate_data(estimator, *data, accept_sparse="csr", **options)
    except ValueError as error:
        if "X contains NaN" not in str(error) and "could not convert string" not in str(error):
            raise
        message = f"{error}\nklr_bench.TablePreparer converts tables with missing values and strings to numbers."
        raise ValueError(message) from error
    X = validated if len(data) == 1 else validated[0]
    if sp.issparse(X) and X.shape[1] > MOST_PLACES:
        message = f"{type(estimator).__name__}: expected CSR rows with at most 2^31 - 1 features, got {X.shape[1]:,}."
        raise ValueError(message)
    return canonical(validated) if len(data) == 1 else (canonical(validated[0]), *validated[1:])


def checked_fit(method):
    """Decorate a fit method to raise LearningFailed if a fitted attribute is not finite.

    An error or Ctrl-C in `fit` leaves an unfitted estimator, and so does all but a refusal of arguments (TypeError, or
    a ValueError other than LearningFailed) in a later `partial_fit`, because the learned state may be damaged; see also
    `cleared_by_errors`.
    """

    @wraps(method)
    def checked(self, *args, **kwargs):
        is_new = method.__name__ == "fit" or "classes_" not in vars(self)
        try:
            with single_threaded_blas(getattr(self, "n_jobs", None)):
                result = method(self, *args, **kwargs)
            refuse_not_finite(self)
        except BaseException as error:
            refused = isinstance(error, (ValueError, TypeError)) and not isinstance(error, LearningFailed)
            if is_new or not refused:
                self._clear()
            raise
        return result

    return checked


@contextmanager
def cleared_by_errors(estimator):
    """Make an estimator unfitted if the block raises any exception, also in a callback."""
    try:
        yield
    except BaseException:
        estimator._clear()
        raise


def refuse_not_finite(estimator):
    """Raise LearningFailed if a fitted attribute is not finite."""
    for name in LEARNED:
        value = getattr(estimator, name, None)
        if value is not None and not np.isfinite(value.data if sp.issparse(value) else value).all():
            why = "rows or parameters are too large for its precision; scale X, for example to [0, 1]"
            message = f"{type(estimator).__name__}: {name} is not finite: {why}."
            raise LearningFailed(message)


def checked_decision(method):
    """Decorate `decision_function` to raise ValueError if a decision value is not finite."""

    @wraps(method)
    def checked(self, X):
        with single_threaded_blas(getattr(self, "n_jobs", None)):
            values = method(self, X)
        finite = np.isfinite(values)
        if not finite.all():
            row = np.flatnonzero(~finite.reshape(len(finite), -1).all(axis=1))[0]
            message = f"{type(self).__name__}: f(x) is not finite at row {row} of X; scale X both here and in fit."
            raise ValueError(message)
        return values

    return checked


def refuse_masked(values, name):
    """Raise ValueError if an array has masked values.

    NumPy would use the values below the mask.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        what = f"expected no masked values, got {np.ma.count_masked(values):,}"
        message = f"{name}: {what}. Fill them or leave their rows out; klr_bench.TablePreparer takes them as missing."
        raise ValueError(message)


def distinct_labels(labels, name="y"):
    """Return the distinct labels in sorted order.

    Raises ValueError with their `name` if they are invalid.
    """
    labels = np.asarray(labels)
    if labels.ndim != 1 or not len(labels):
        message = f"{name}: expected a list of labels, got an array of shape {labels.shape}."
        raise ValueError(message)
    try:
        if labels.dtype.kind not in "biu":  # booleans and integers are always class labels
            check_classification_targets(labels)
        return np.unique(labels)
    except (TypeError, ValueError) as error:
        kinds = ", ".join(sorted({type(label).__name__ for label in labels.tolist()}))
        why = str(error).splitlines()[0].rstrip(".")
        message = f"{name}: expected class labels (integers or strings), got values of type {kinds}: {why}."
        raise ValueError(message) from error


def print_progress(estimator, text):
    """Print a line if the estimator is verbose."""
    if estimator.verbose:
        print(f"[{type(estimator).__name__}] {text}", flush=True)  # noqa: T201


def verbose_callback(estimator, callback):
    """Return a callback that prints the progress of a verbose fit and then calls `callback`."""
    if not estimator.verbose:
        return callback
    begun = printed = time.monotonic()

    def call(model, t):
        nonlocal printed
        now = time.monotonic()
        if now - printed >= PAUSE_S or estimator.verbose > 1:
            printed, values = now, model.progress()
            names = ("n_support", "nonzero_fraction", "objective", "duality_gap")
            text = "".join(f", {name} {values[name]:.4g}" for name in names if name in values)
            print_progress(model, f"n_iter {model.n_iter_}, {now - begun:.1f} s{text}")
        return callback is not None and callback(model, t)

    return call


def row_weights(sample_weight, class_weight, y, classes):
    """Return the sample weight of each row times its class weight.

    Raises ValueError for weights that are negative, too large or too small to be squared, or of the wrong shape.
    """
    if sample_weight is None or isinstance(sample_weight, Number):
        weights = np.full(len(y), 1.0 if sample_weight is None else sample_weight, dtype=np.float64)
    else:
        refuse_masked(sample_weight, "sample_weight")
        weights = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
        weights = np.array(weights, order="C")  # compiled code accepts no other strides and no read-only array
    if weights.shape != (len(y),):
        message = f"sample_weight: expected an array of shape ({len(y)},), got shape {weights.shape}."
        raise ValueError(message)
    check_non_negative(weights, "`sample_weight`")
    if class_weight is not None:
        weights *= _weights_of_classes(class_weight, weights, y, classes)
    limit = SQUARABLE[weights.dtype]
    extreme = weights[(weights != 0) & ~((weights >= 1 / limit) & (weights <= limit))]
    if len(extreme):
        message = f"The weight of a row must be 0 or between {1 / limit:g} and {limit:g}, got {extreme[0]:g}."
        raise ValueError(message)
    return weights


def _weights_of_classes(class_weight, weights, y, classes):
    """Return the weight of the class of each row.

    "balanced" counts the rows by their sample weights; the rounding of the sums does not depend on the order of rows.
    """
    if isinstance(class_weight, str):  # "balanced"
        order = np.argsort(weights)
        totals = np.bincount(np.searchsorted(classes, y)[order], weights[order], len(classes))
        of_classes = np.divide(totals.sum(), len(classes) * totals, out=np.ones(len(classes)), where=totals > 0)
    else:
        labels = classes.tolist()
        of_classes = np.array([class_weight.get(label, 1.0) for label in labels], dtype=np.float64)
        if (lacking := [label for label in labels if label not in class_weight]) and {*class_weight} - {*labels}:
            message = f"The classes {lacking[:10]} are not in class_weight. Got {class_weight!r}."
            raise ValueError(message)
    if not ((of_classes >= 0) & (of_classes < np.inf)).all():
        message = f"The 'class_weight' parameter must have finite weights >= 0. Got {class_weight!r}."
        raise ValueError(message)
    return of_classes[np.searchsorted(classes, y)]


def refuse_balanced(estimator):
    """Raise ValueError if class_weight is "balanced", which `partial_fit` does not support."""
    if getattr(estimator, "class_weight", None) == "balanced":
        why = "needs the sizes of the classes, which partial_fit does not have; give a dict, or sample_weight"
        message = f"{type(estimator).__name__}: class_weight='balanced' {why}."
        raise ValueError(message)


def refuse_scale(estimator, X):
    """Raise ValueError if squares of the values of X overflow or underflow."""
    largest, limit = largest_of(X), SQUARABLE[X.dtype]
    if largest and not 1 / limit <= largest <= limit:
        message = (
            f"{type(estimator).__name__}: the largest absolute value of X must be between {1 / limit:g} and {limit:g} "
            f"in {X.dtype}, got {largest:g}; scale X, for example with sklearn.preprocessing.StandardScaler."
        )
        raise ValueError(message)


def refuse_weightless(estimator, weights, y):
    """Raise ValueError if the weights of all rows of a class are 0."""
    for label in np.unique(y[weights == 0]).tolist():
        if not weights[y == label].any():
            name = type(estimator).__name__
            message = f"{name}: each class needs a positive weight, but all weights of class {label!r} are zero."
            raise ValueError(message)
