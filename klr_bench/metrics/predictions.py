"""Predictions of a fitted classifier on labeled rows, from which metrics are computed."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax

N_BINS = 15
CHECKED = 100
"""Number of rows for which predictions are compared with decision values."""
Floats = NDArray[np.floating[Any]]
Bin = tuple[int, int, float, float]
"""(index of the bin, number of rows, mean predicted probability of the positive class, share of positive rows). With
more than two classes: probability of the predicted class, share of correct predictions.

With more than two classes the probability is that of the predicted class, and the share that of correct predictions.
"""
TWO = np.array([-1, 1], dtype=np.int8)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Labels and predictions of n rows; a kernel expansion is evaluated once for all metrics.

    Parameters
    ----------
    y : (n,), the labels: -1 and +1, or 0, 1, ... of more than two classes
    classes : (n_classes,), the labels in the order of the columns below
    predict : function that returns the predicted labels (k,) of the first k rows, or of all for None
    decision : (n,), for more than two classes (n, n_classes), or None: decision values, as scikit-learn defines them
    predict_proba : function that returns the probabilities (k, n_classes) of the first k rows, or of all for None; None
        for a classifier without probabilities
    signed : True if the labels are known to be those of the largest decision value; else the first rows are compared
    """

    y: NDArray[Any]
    classes: NDArray[Any]
    predict: Callable[[int | None], NDArray[Any]]
    decision: Floats | None = None
    predict_proba: Callable[[int | None], Floats] | None = None
    signed: bool = False

    @cached_property
    def predicted(self) -> NDArray[Any]:
        """Predicted labels, (n,).

        They follow from the decision values, except where the result of `predict` may differ: with more than two
        classes unless the probabilities are the softmax of the decision values, and with two for another threshold.
        """
        if self.decision is None or (len(self.classes) > 2 and not (self.signed or self.logistic)):
            return self._predicted_labels
        two = self.decision.ndim == 1
        indices = (self.decision > 0).astype(int) if two else np.argmax(self.decision, axis=1)
        labels: NDArray[Any] = self.classes[indices]
        is_same = self.signed or np.array_equal(np.asarray(self.predict(CHECKED)), labels[:CHECKED])
        return labels if is_same else self._predicted_labels

    @cached_property
    def _predicted_labels(self) -> NDArray[Any]:
        """Labels returned by `predict`, (n,).

        Raises ValueError if there is not one label per row.
        """
        labels = np.asarray(self.predict(None))
        if labels.shape != self.y.shape:
            message = f"predict returned an array of shape {labels.shape}, expected {self.y.shape}: one label per row."
            raise ValueError(message)
        unknown = labels[~(labels[:, None] == self.classes).any(axis=1)]
        if len(unknown):
            message = f"predict returned {reprlib.repr(unknown[0])}, expected one of {self.classes.tolist()}."
            raise ValueError(message)
        return labels

    @cached_property
    def logistic(self) -> bool:
        """True if probabilities are the sigmoid or softmax of the decision values (first rows)."""
        if self.predict_proba is None or self.decision is None:
            return False
        expected = np.exp(_log_probabilities(self.decision[:CHECKED]))
        return bool(np.allclose(self.predict_proba(CHECKED), expected, rtol=1e-3, atol=1e-6))

    @cached_property
    def probabilities(self) -> Floats | None:
        """Probabilities (n, n_classes), or None."""
        if self.predict_proba is None:
            return None
        if not self.logistic or self.decision is None:
            return self.predict_proba(None)
        if self.decision.ndim == 1:
            return np.column_stack([expit(-self.decision), expit(self.decision)])
        return np.exp(_log_probabilities(self.decision))

    @cached_property
    def log_probabilities(self) -> Floats | None:
        """Log probabilities (n, n_classes), or None; accurate even if a probability is rounded to 0 or 1."""
        if self.probabilities is None:
            return None
        if self.logistic and self.decision is not None:
            return _log_probabilities(self.decision)
        eps = np.finfo(self.probabilities.dtype).eps
        clipped: Floats = np.log(np.clip(self.probabilities, eps, 1 - eps))
        return clipped

    @property
    def scores(self) -> Floats | None:
        """Values that rank the rows, or None.

        With two classes (n, 1), for the second class: decision values or else probabilities.  With more (n, n_classes):
        probabilities or else decision values.
        """
        if len(self.classes) > 2:
            return self.decision if self.probabilities is None else self.probabilities
        if self.decision is not None:
            return self.decision[:, None]
        return None if self.probabilities is None else self.probabilities[:, 1:]

    @cached_property
    def truth(self) -> NDArray[np.bool_]:
        """Boolean array (n, n_classes), True for the class of the row."""
        self.check_classes()
        truth: NDArray[np.bool_] = self.classes == self.y[:, None]
        return truth

    def check_classes(self) -> None:
        """Raise ValueError if y contains a class that the classifier does not know."""
        unknown = np.setdiff1d(self.y, self.classes).tolist()
        if unknown:
            message = f"the test rows contain classes missing in the training rows ({unknown}); use more training rows."
            raise ValueError(message)

    @cached_property
    def bins(self) -> list[Bin]:
        """Nonempty bins of the probabilities; empty without probabilities."""
        if self.probabilities is None:
            return []
        if len(self.classes) == 2:
            return reliability(self.probabilities[:, 1], self.truth[:, 1])
        return reliability(self.probabilities.max(axis=1), self.predicted == self.y)


def predict(estimator: Any, X: Any, y: NDArray[Any]) -> Predictions:
    """Return the predictions of a fitted classifier on X (n, d) with labels y (n,).

    Labels are -1 and +1, or 0, 1, ... for more than two classes.
    """
    declared = np.asarray(getattr(estimator, "classes_", None))
    usual = TWO if np.isin(y, TWO).all() else np.unique(y)
    classes = usual if declared.ndim == 0 else declared
    decide, proba = (getattr(estimator, name, None) for name in ("decision_function", "predict_proba"))
    decision = None if decide is None else np.asarray(decide(X))
    expected = (len(y), len(classes)) if len(classes) > 2 else (len(y),)
    if decision is not None and (decision.shape != expected or decision.dtype.kind not in "fiu"):
        decision = None  # its shape does not follow scikit-learn's convention
    if decision is not None and np.isnan(decision).any():
        message = f"decision_function returned NaN for {np.isnan(decision).sum()} of {np.size(decision)} values."
        raise ValueError(message)
    if declared.ndim == 0 and classes is not TWO:
        decision = proba = None  # the order of its columns is unknown
    first_probabilities = None if proba is None else partial(_probabilities, proba, X, len(classes))
    signed = type(estimator).__module__.partition(".")[0] == "klr_bench"
    return Predictions(
        y, classes, lambda k: estimator.predict(X if k is None else X[:k]), decision, first_probabilities, signed
    )


def _probabilities(proba: Callable[[Any], Any], X: Any, n_classes: int, k: int | None) -> Floats:
    """Return the validated probabilities of the first k rows, or of all rows if k is None.

    Raises ValueError if they are invalid.
    """
    rows = X if k is None else X[:k]
    values = np.asarray(proba(rows))
    values = values.astype(np.float64) if values.dtype.kind in "iub" else values
    expected = (rows.shape[0], n_classes)
    if values.dtype.kind != "f" or values.shape != expected:
        message = (
            f"predict_proba returned {values.dtype} of shape {values.shape}, expected numbers of shape {expected}: "
            "a column for each class."
        )
        raise ValueError(message)
    tolerance = max(1e-4, 10 * float(np.finfo(values.dtype).eps))
    if not (np.abs(values.sum(axis=1, dtype=np.float64) - 1) <= tolerance).all() or values.min() < -tolerance:
        message = "predict_proba returned invalid probabilities: expected numbers from 0 to 1 with the sum 1."
        raise ValueError(message)
    return values


def from_decision(y: NDArray[Any], decision: NDArray[np.float64], *, logistic: bool) -> Predictions:
    """Return the predictions of binary decision values (n,) for labels y (n,) in {-1, 1}."""
    return Predictions(
        y,
        TWO,
        lambda k: TWO[np.where(decision[:k] > 0, 1, 0)],
        decision,
        (lambda k: np.exp(_log_probabilities(decision[:k]))) if logistic else None,
    )


def reliability(probability: Floats, positive: NDArray[np.bool_]) -> list[Bin]:
    """Return the nonempty bins [0, 1/15), ..., [14/15, 1] of positive-class probabilities.

    probability (n,) in [0, 1]; positive (n,), True for rows of that class.
    """
    index = np.minimum((N_BINS * probability.astype(np.float64)).astype(int), N_BINS - 1)
    bins = ((int(k), index == k) for k in np.unique(index))
    return [
        (k, int(np.sum(rows)), float(np.mean(probability[rows])), float(np.mean(positive[rows]))) for k, rows in bins
    ]


def _log_probabilities(decision: Floats) -> Floats:
    """Return log sigmoid of decision (n,), or log softmax of decision (n, n_classes)."""
    if decision.ndim == 1:
        return -np.column_stack([np.logaddexp(0.0, decision), np.logaddexp(0.0, -decision)])
    logs: Floats = log_softmax(decision, axis=1)
    return logs
