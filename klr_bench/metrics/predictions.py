"""What a fitted classifier says of rows, beside their labels: all that a metric of predictions needs."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax

from klr_bench import protocols

N_BINS = 15
JUDGED = 100
"""Rows that tell whether probabilities are the sigmoid or the softmax of the decision values."""
Floats = NDArray[np.floating[Any]]
Bin = tuple[int, int, float, float]
"""(number of the bin, rows in it, mean predicted probability of the positive class, share of positive rows)

Of more than two classes the probability is that of the predicted class, and the share that of rows predicted right.
"""
TWO = np.array([-1, 1], dtype=np.int8)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Labels and predictions of n rows; a kernel expansion is evaluated once, for all metrics.

    Parameters
    ----------
    y : (n,), the labels: -1 and +1, or 0, 1, ... of more than two classes
    classes : (n_classes,), the labels in the order of the columns below
    predict : function that returns the predicted labels (k,) of the first k rows, or of all for None
    decision : (n,), for more than two classes (n, n_classes), or None: decision values, as scikit-learn defines them
    predict_proba : function that returns the probabilities (k, n_classes) of the first k rows, or of all for None; None
        for a classifier without probabilities
    signed : whether the labels are surely those of the largest decision value; else the first rows are asked
    """

    y: NDArray[Any]
    classes: NDArray[Any]
    predict: Callable[[int | None], NDArray[Any]]
    decision: Floats | None = None
    predict_proba: Callable[[int | None], Floats] | None = None
    signed: bool = False

    @cached_property
    def predicted(self) -> NDArray[Any]:
        """(n,), the predicted labels.

        Of more than two classes decision values tell them only if the probabilities are their softmax: those of pairs
        of classes may disagree with what `predict` says.  So may those of two, of a classifier with another threshold.
        """
        if self.decision is None or (len(self.classes) > 2 and not (self.signed or self.logistic)):
            return self._predicted_labels
        two = self.decision.ndim == 1
        places = (self.decision > 0).astype(int) if two else np.argmax(self.decision, axis=1)
        labels: NDArray[Any] = self.classes[places]
        told = self.signed or np.array_equal(np.asarray(self.predict(JUDGED)), labels[:JUDGED])
        return labels if told else self._predicted_labels

    @cached_property
    def _predicted_labels(self) -> NDArray[Any]:
        """(n,), the result of `predict`; ValueError if it is not one label per row."""
        found = np.asarray(self.predict(None))
        if found.shape != self.y.shape:
            message = f"predict returned an array of shape {found.shape}, expected {self.y.shape}, a label a row."
            raise ValueError(message)
        strange = found[~(found[:, None] == self.classes).any(axis=1)]
        if len(strange):
            message = f"predict returned {reprlib.repr(strange[0])}, which is none of {self.classes.tolist()}."
            raise ValueError(message)
        return found

    @cached_property
    def logistic(self) -> bool:
        """Whether the probabilities of the first rows are sigmoid or softmax of their decision values, nearly."""
        if self.predict_proba is None or self.decision is None:
            return False
        expected = np.exp(_log_probabilities(self.decision[:JUDGED]))
        return bool(np.allclose(self.predict_proba(JUDGED), expected, rtol=1e-3, atol=1e-6))

    @cached_property
    def probabilities(self) -> Floats | None:
        """(n, n_classes), or None."""
        if self.predict_proba is None:
            return None
        if not self.logistic or self.decision is None:
            return self.predict_proba(None)
        if self.decision.ndim == 1:
            return np.column_stack([expit(-self.decision), expit(self.decision)])
        return np.exp(_log_probabilities(self.decision))

    @cached_property
    def log_probabilities(self) -> Floats | None:
        """(n, n_classes), or None; exact where a probability is rounded to 0 or 1, if it comes from decision values."""
        if self.probabilities is None:
            return None
        if self.logistic and self.decision is not None:
            return _log_probabilities(self.decision)
        eps = np.finfo(self.probabilities.dtype).eps
        clipped: Floats = np.log(np.clip(self.probabilities, eps, 1 - eps))
        return clipped

    @property
    def scores(self) -> Floats | None:
        """What ranks the rows; None where there is nothing.

        Of two classes (n, 1), for the second, decision values or else probabilities; of more (n, n_classes),
        probabilities or else decision values.
        """
        if len(self.classes) > 2:
            return self.decision if self.probabilities is None else self.probabilities
        if self.decision is not None:
            return self.decision[:, None]
        return None if self.probabilities is None else self.probabilities[:, 1:]

    @cached_property
    def truth(self) -> NDArray[np.bool_]:
        """(n, n_classes), whether a class is that of the row."""
        self.check_classes()
        truth: NDArray[np.bool_] = self.classes == self.y[:, None]
        return truth

    def check_classes(self) -> None:
        """Raise ValueError where y has a class that the classifier has never seen."""
        unknown = np.setdiff1d(self.y, self.classes).tolist()
        if unknown:
            message = (
                f"rows to test on have the classes {unknown}, of which there is no training row; use more of these."
            )
            raise ValueError(message)

    @cached_property
    def bins(self) -> list[Bin]:
        """The bins of the probabilities that have rows; none for a classifier without probabilities."""
        if self.probabilities is None:
            return []
        if len(self.classes) == 2:
            return reliability(self.probabilities[:, 1], self.truth[:, 1])
        return reliability(self.probabilities.max(axis=1), self.predicted == self.y)


def predict(estimator: Any, X: Any, y: NDArray[Any]) -> Predictions:
    """Ask a fitted classifier about the rows of X (n, d), whose labels are y (n,): -1 and +1, or 0, 1, ..."""
    declared = protocols.classes(estimator)
    usual = TWO if np.isin(y, TWO).all() else np.unique(y)
    classes = usual if declared is None else declared
    decide, proba = protocols.decision_function(estimator), protocols.predict_proba(estimator)
    decision = None if decide is None else np.asarray(decide(X))
    expected = (len(y), len(classes)) if len(classes) > 2 else (len(y),)
    if decision is not None and (decision.shape != expected or decision.dtype.kind not in "fiu"):
        decision = None  # not what scikit-learn promises
    if decision is not None and np.isnan(decision).any():
        message = f"decision_function returned NaN for {np.isnan(decision).sum()} of {np.size(decision)} values."
        raise ValueError(message)
    if declared is None and classes is not TWO:
        decision = proba = None  # nobody knows the order of the columns
    of_first = None if proba is None else partial(_of_first, proba, X, len(classes))
    signed = type(estimator).__module__.partition(".")[0] == "klr_bench"
    return Predictions(y, classes, partial(_labels, estimator, X), decision, of_first, signed)


def _labels(estimator: Any, X: Any, k: int | None) -> NDArray[Any]:
    return estimator.predict(X if k is None else X[:k])  # type: ignore[no-any-return]


def _of_first(proba: Callable[[Any], Any], X: Any, n_classes: int, k: int | None) -> Floats:
    """Return the probabilities of the first k rows, of all for None; ValueError where they are none."""
    rows = X if k is None else X[:k]
    found = np.asarray(proba(rows))
    found = found.astype(np.float64) if found.dtype.kind in "iub" else found
    if found.dtype.kind != "f" or found.shape != (rows.shape[0], n_classes):
        message = (
            f"predict_proba returned {found.dtype} of shape {found.shape}, expected numbers of shape "
            f"{(rows.shape[0], n_classes)}: a column for each class."
        )
        raise ValueError(message)
    far = max(1e-4, 10 * float(np.finfo(found.dtype).eps))
    if not (np.abs(found.sum(axis=1, dtype=np.float64) - 1) <= far).all() or found.min() < -far:
        message = "predict_proba returned rows that are no probabilities: expected numbers from 0 to 1 with the sum 1."
        raise ValueError(message)
    return found


def from_decision(y: NDArray[Any], decision: NDArray[np.float64], *, logistic: bool) -> Predictions:
    """Return what decision values (n,) of two classes say of rows with the labels y (n,), -1 and +1."""

    def labels(k: int | None) -> NDArray[Any]:
        return TWO[np.where(decision[:k] > 0, 1, 0)]

    def probabilities(k: int | None) -> Floats:
        return np.exp(_log_probabilities(decision[:k]))

    return Predictions(y, TWO, labels, decision, probabilities if logistic else None)


def reliability(probability: Floats, positive: NDArray[np.bool_]) -> list[Bin]:
    """Return the bins that have rows: [0, 1/15), [1/15, 2/15), ..., [14/15, 1] of the positive class's probability.

    probability (n,) in [0, 1]; positive (n,), whether a row is of that class.
    """
    number = np.minimum((N_BINS * probability.astype(np.float64)).astype(int), N_BINS - 1)
    return [
        (
            int(k),
            int(np.sum(number == k)),
            float(np.mean(probability[number == k])),
            float(np.mean(positive[number == k])),
        )
        for k in np.unique(number)
    ]


def _log_probabilities(decision: Floats) -> Floats:
    """Return the logarithms of sigmoid (of decision (n,)) or softmax (of decision (n, n_classes))."""
    if decision.ndim == 1:
        return -np.column_stack([np.logaddexp(0.0, decision), np.logaddexp(0.0, -decision)])
    logs: Floats = log_softmax(decision, axis=1)
    return logs
