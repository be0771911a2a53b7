"""Predictions of a fitted classifier for labeled rows, from which metrics are computed."""

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
"""Bin of a calibration curve: (index, number of rows, mean predicted probability, fraction of positive rows).

With more than two classes the probability of the predicted class is used, and correct predictions count as positive.
"""
TWO = np.array([-1, 1], dtype=np.int8)


class UnseenClassError(ValueError):
    """Raised if test rows have a class that the training rows lack."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """True labels and predictions of n rows, from which all metrics are computed.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels: -1 and +1, or 0, 1, ... for more than two classes.
    classes : ndarray of shape (n_classes,)
        Labels in the order of the columns of decision values and probabilities.
    predict : callable
        Returns the predicted labels (k,) of the first k rows, or of all rows for None.
    decision : ndarray of shape (n,), or (n, n_classes) for more than two classes, or None
        Decision values, as scikit-learn defines them.
    predict_proba : callable or None
        Returns the probabilities (k, n_classes) of the first k rows, or of all rows for None; None for a classifier
        without probabilities.
    signed : bool
        Whether labels are known to follow from the decision values; otherwise the first rows are checked.
    """

    y: NDArray[Any]
    classes: NDArray[Any]
    predict: Callable[[int | None], NDArray[Any]]
    decision: Floats | None = None
    predict_proba: Callable[[int | None], Floats] | None = None
    signed: bool = False

    @cached_property
    def predicted(self) -> NDArray[Any]:
        """Predicted labels, an array of shape (n,).

        They are computed from the decision values, unless `predict` may differ from them: with two classes if the
        threshold is not 0, and with more unless the probabilities are the softmax of the decision values.
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
        """True if the probabilities are the sigmoid or softmax of the decision values.

        Only the first rows are checked.
        """
        if self.predict_proba is None or self.decision is None:
            return False
        expected = np.exp(_log_probabilities(self.decision[:CHECKED]))
        return bool(np.allclose(self.predict_proba(CHECKED), expected, rtol=1e-3, atol=1e-6))

    @cached_property
    def probabilities(self) -> Floats | None:
        """Class probabilities, an array of shape (n, n_classes), or None if there are none."""
        if self.predict_proba is None:
            return None
        if not self.logistic or self.decision is None:
            return self.predict_proba(None)
        if self.decision.ndim == 1:
            return np.column_stack([expit(-self.decision), expit(self.decision)])
        return np.exp(_log_probabilities(self.decision))

    @cached_property
    def log_probabilities(self) -> Floats | None:
        """Logarithms of the class probabilities, an array of shape (n, n_classes), or None.

        If they come from decision values, they are accurate even if a probability is rounded to 0 or 1.
        """
        if self.probabilities is None:
            return None
        if self.logistic and self.decision is not None:
            return _log_probabilities(self.decision)
        eps = np.finfo(self.probabilities.dtype).eps
        clipped: Floats = np.log(np.clip(self.probabilities, eps, 1 - eps))
        return clipped

    @property
    def scores(self) -> Floats | None:
        """Scores by which ranking metrics such as the AUC order the rows, or None.

        With two classes, the scores are the decision values or else the probabilities of the second class, of shape
        (n, 1).  With more, they are the probabilities or else the decision values, of shape (n, n_classes).
        """
        if len(self.classes) > 2:
            return self.decision if self.probabilities is None else self.probabilities
        if self.decision is not None:
            return self.decision[:, None]
        return None if self.probabilities is None else self.probabilities[:, 1:]

    @cached_property
    def truth(self) -> NDArray[np.bool_]:
        """Boolean array of shape (n, n_classes): True where a row belongs to a class."""
        self.check_classes()
        truth: NDArray[np.bool_] = self.classes == self.y[:, None]
        return truth

    def check_classes(self) -> None:
        """Raise UnseenClassError if a true label is not among the classes of the training rows."""
        unknown = np.setdiff1d(self.y, self.classes).tolist()
        if unknown:
            message = f"test rows have classes {unknown}, which are not in the training rows; use more training rows."
            raise UnseenClassError(message)

    @cached_property
    def bins(self) -> list[Bin]:
        """Non-empty bins of the calibration curve, or an empty list if there are no probabilities."""
        if self.probabilities is None:
            return []
        if len(self.classes) == 2:
            return reliability(self.probabilities[:, 1], self.truth[:, 1])
        return reliability(self.probabilities.max(axis=1), self.predicted == self.y)


def predict(estimator: Any, X: Any, y: NDArray[Any]) -> Predictions:
    """Return the predictions of a fitted classifier for the rows of X with true labels y.

    X has the shape (n, d), and y the shape (n,).  Labels are -1 and +1, or 0, 1, ... for more than two classes.
    """
    declared = np.asarray(getattr(estimator, "classes_", None))
    usual = TWO if np.isin(y, TWO).all() else np.unique(y)
    classes = usual if declared.ndim == 0 else declared
    decide, proba = (getattr(estimator, name, None) for name in ("decision_function", "predict_proba"))
    decision = None if decide is None else np.asarray(decide(X))
    expected = (len(y), len(classes)) if len(classes) > 2 else (len(y),)
    if decision is not None and (decision.shape != expected or decision.dtype.kind not in "fiu"):
        decision = None  # ignore decision values whose shape or type differs from scikit-learn's
    if decision is not None and np.isnan(decision).any():
        message = f"decision_function returned NaN for {np.isnan(decision).sum()} of {np.size(decision)} values."
        raise ValueError(message)
    if declared.ndim == 0 and classes is not TWO:
        decision = proba = None  # without `classes_`, the order of the class columns is unknown
    first_probabilities = None if proba is None else partial(_probabilities, proba, X, len(classes))
    signed = type(estimator).__module__.partition(".")[0] == "klr_bench"
    return Predictions(
        y, classes, lambda k: estimator.predict(X if k is None else X[:k]), decision, first_probabilities, signed
    )


def _probabilities(proba: Callable[[Any], Any], X: Any, n_classes: int, k: int | None) -> Floats:
    """Return the class probabilities of the first k rows of X, or of all rows if k is None.

    Raises ValueError if they are invalid.
    """
    rows = X if k is None else X[:k]
    values = np.asarray(proba(rows))
    values = values.astype(np.float64) if values.dtype.kind in "iub" else values
    expected = (rows.shape[0], n_classes)
    if values.dtype.kind != "f" or values.shape != expected:
        message = (
            f"predict_proba returned {values.dtype} of shape {values.shape}, expected floats of shape {expected}, "
            "with one column per class."
        )
        raise ValueError(message)
    tolerance = max(1e-4, 10 * float(np.finfo(values.dtype).eps))
    if not (np.abs(values.sum(axis=1, dtype=np.float64) - 1) <= tolerance).all() or values.min() < -tolerance:
        message = "predict_proba returned invalid probabilities; expected values from 0 to 1 that sum to 1 per row."
        raise ValueError(message)
    return values


def from_decision(y: NDArray[Any], decision: NDArray[np.float64], *, logistic: bool) -> Predictions:
    """Return the predictions of a binary classifier with the given decision values.

    Labels `y` are -1 and +1; both arrays have the shape (n,).
    """
    return Predictions(
        y,
        TWO,
        lambda k: TWO[np.where(decision[:k] > 0, 1, 0)],
        decision,
        (lambda k: np.exp(_log_probabilities(decision[:k]))) if logistic else None,
    )


def reliability(probability: Floats, positive: NDArray[np.bool_]) -> list[Bin]:
    """Return the non-empty bins of the calibration curve of a binary classifier.

    The bins are [0, 1/15), [1/15, 2/15), ..., [14/15, 1] of the `probability` (n,) of the positive class, and
    `positive` (n,) is True for rows of that class.
    """
    index = np.minimum((N_BINS * probability.astype(np.float64)).astype(int), N_BINS - 1)
    bins = ((int(k), index == k) for k in np.unique(index))
    return [
        (k, int(np.sum(rows)), float(np.mean(probability[rows])), float(np.mean(positive[rows]))) for k, rows in bins
    ]


def _log_probabilities(decision: Floats) -> Floats:
    """Return the logarithms of the class probabilities that follow from decision values."""
    if decision.ndim == 1:
        return -np.column_stack([np.logaddexp(0.0, decision), np.logaddexp(0.0, -decision)])
    logs: Floats = log_softmax(decision, axis=1)
    return logs
