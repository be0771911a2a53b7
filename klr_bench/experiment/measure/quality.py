"""What a fitted classifier is worth on held-out data, and how sparse it is: a dict with names of `Record`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax

Metrics = dict[str, float | int]
N_BINS = 15
Bin = tuple[int, int, float, float]
"""(number of the bin, rows in it, mean predicted probability of the positive class, share of positive rows)

Of more than two classes the probability is that of the predicted class, and the share that of rows predicted right.
"""


def accuracy(estimator: Any, X: Any, y: NDArray[np.int8]) -> float:
    """Return the share of rows that are classified correctly."""
    return float(np.mean(estimator.predict(X) == y))


def quality(estimator: Any, X: Any, y: NDArray[np.int8]) -> tuple[Metrics, float, list[Bin]]:
    """Return accuracy, error rate and AUC, and for a classifier with probabilities log loss, Brier score and ECE.

    X (n, d), y (n,) with labels -1 and +1, or 0, 1, ... of more than two classes.  The AUC is left out where y has one
    class only, and where the classifier has more than two.  The second value is the time of the prediction in seconds:
    a kernel expansion is evaluated once, for all of them.  The third are the bins of the probabilities, none without
    them.
    """
    if len(getattr(estimator, "classes_", ())) > 2:
        return _quality_of_many(estimator, X, y)
    from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

    started = time.perf_counter()
    decision = estimator.decision_function(X) if hasattr(estimator, "decision_function") else None
    positive = estimator.predict(X) > 0 if decision is None else decision > 0
    seconds = time.perf_counter() - started
    correct = float(np.mean(positive == (y > 0)))
    metrics: Metrics = {"accuracy": correct, "error_rate": 1.0 - correct}
    score, bins = decision, list[Bin]()
    if hasattr(estimator, "predict_proba"):
        if decision is not None and _is_sigmoid(estimator, X[:100], decision[:100]):
            metrics["log_loss"] = float(np.mean(np.logaddexp(0.0, -y * decision)))  # exact where expit is 0 or 1
            probability = expit(decision)
        else:
            probability = estimator.predict_proba(X)[:, 1]
            metrics["log_loss"] = float(log_loss(y, probability, labels=[-1, 1]))
        metrics["brier"] = float(brier_score_loss(y, probability, pos_label=1))
        bins = reliability(probability, y)
        metrics["ece"] = expected_calibration_error(bins)
        score = probability if decision is None else decision
    if score is not None and len(np.unique(y)) == 2:
        metrics["auc"] = float(roc_auc_score(y, score))
    return metrics, seconds, bins


def _quality_of_many(estimator: Any, X: Any, y: NDArray[np.int8]) -> tuple[Metrics, float, list[Bin]]:
    """Return what `quality` does, for a classifier of more than two classes.

    The Brier score is mean_i sum_k (P(k|x_i) - [y_i = k])^2, between 0 and 2.
    """
    unknown = np.setdiff1d(y, estimator.classes_).tolist()
    if unknown:
        message = f"rows to test on have the classes {unknown}, of which there is no training row; use more of these."
        raise ValueError(message)
    logs = None
    started = time.perf_counter()
    if _is_softmax(estimator, X[:100]):
        logs = log_softmax(estimator.decision_function(X), axis=1)  # exact where softmax is 0
        predicted = estimator.classes_[np.argmax(logs, axis=1)]
    else:
        predicted = estimator.predict(X)
    seconds = time.perf_counter() - started
    right = predicted == y
    metrics: Metrics = {"accuracy": float(np.mean(right)), "error_rate": 1.0 - float(np.mean(right))}
    if not hasattr(estimator, "predict_proba"):
        return metrics, seconds, []
    probability = estimator.predict_proba(X) if logs is None else np.exp(logs)
    if logs is None:
        logs = np.log(np.maximum(probability, np.finfo(probability.dtype).eps))
    truth = estimator.classes_ == y[:, None]
    metrics["log_loss"] = float(-np.mean(logs[truth]))
    metrics["brier"] = float(np.mean(np.sum((probability - truth) ** 2, axis=1)))
    bins = reliability(probability.max(axis=1), np.where(right, 1, -1).astype(np.int8))
    metrics["ece"] = expected_calibration_error(bins)
    return metrics, seconds, bins


def _is_softmax(estimator: Any, X: Any) -> bool:
    """Tell by some rows whether the probabilities are the softmax of the decision values, up to rounding."""
    if not (hasattr(estimator, "decision_function") and hasattr(estimator, "predict_proba")):
        return False
    probability = np.exp(log_softmax(estimator.decision_function(X), axis=1))
    return np.allclose(estimator.predict_proba(X), probability, rtol=1e-3, atol=1e-6)


def reliability(probability: NDArray[np.floating[Any]], y: NDArray[np.int8]) -> list[Bin]:
    """Return the bins that have rows: [0, 1/15), [1/15, 2/15), ..., [14/15, 1] of the positive class's probability.

    probability (n,) in [0, 1], y (n,) with labels -1 and +1.
    """
    number = np.minimum((N_BINS * probability.astype(np.float64)).astype(int), N_BINS - 1)
    return [
        (int(k), int(np.sum(number == k)), float(np.mean(probability[number == k])), float(np.mean(y[number == k] > 0)))
        for k in np.unique(number)
    ]


def expected_calibration_error(bins: Sequence[Bin]) -> float:
    """Return the mean over the rows of |share of positive rows - mean predicted probability| of their bin.

    That is sum_b (n_b / n) |positive_b - predicted_b| over 15 bins of equal width of the predicted probability of the
    positive class; of more than two classes, of the predicted class and whether it is right.
    """
    rows = sum(n for _, n, _, _ in bins)
    return sum(n * abs(positive - predicted) for _, n, predicted, positive in bins) / rows


def _is_sigmoid(estimator: Any, X: Any, decision: NDArray[np.float64]) -> bool:
    """Tell by some rows whether the probabilities are the sigmoid of the decision values, up to rounding."""
    return np.allclose(estimator.predict_proba(X)[:, 1], expit(decision), rtol=1e-3, atol=1e-6)


def last(estimator: Any, X: Any, y: NDArray[np.int8]) -> Metrics:
    """Return the accuracy and the size of the last classifier of an estimator that is the average of many.

    Nothing for an estimator without a method `last_classifier`.
    """
    if not (hasattr(estimator, "last_classifier") and estimator.average):
        return {}
    classifier = estimator.last_classifier()
    return {"last_accuracy": accuracy(classifier, X, y), "last_n_support": int(classifier.n_support_)}


def selection(estimator: Any, relevant: NDArray[np.int64] | None) -> Metrics:
    """Return how many features a fitted classifier has selected, and the share of the `relevant` that is among them.

    They are its `selected_features_`, else those with a weight in `coef_` other than 0; nothing where it has neither.
    The share is left out where `relevant` is None.
    """
    chosen = getattr(estimator, "selected_features_", None)
    if chosen is None:
        coef = np.atleast_2d(getattr(estimator, "coef_", np.empty((1, 0))))
        if coef.shape != (1, getattr(estimator, "n_features_in_", None)):
            return {}
        chosen = np.flatnonzero(coef[0])
    metrics: Metrics = {"n_selected": len(chosen)}
    if relevant is not None:
        metrics["relevant_found"] = float(np.mean(np.isin(relevant, chosen)))
    return metrics


def size(estimator: Any, n_train: int) -> Metrics:
    """Return how many support vectors, updates, iterations and non-zero coefficients a fitted classifier has.

    And the seconds of its pass over the examples, where it says so.
    """
    metrics: Metrics = {}
    if hasattr(estimator, "n_support_"):
        metrics["n_support"] = int(np.sum(estimator.n_support_))
        metrics["sparsity"] = 1.0 - metrics["n_support"] / getattr(estimator, "t_", n_train)
    if hasattr(estimator, "n_updates_"):
        metrics["n_updates"] = int(estimator.n_updates_)
    if hasattr(estimator, "n_iter_"):
        metrics["n_iter"] = int(np.max(estimator.n_iter_))
    if hasattr(estimator, "pass_time_"):
        metrics["pass_time_s"] = float(estimator.pass_time_)
    if hasattr(estimator, "coef_"):
        metrics["nonzero_fraction"] = float(np.mean(estimator.coef_ != 0))
    for name in ("objective", "duality_gap"):
        if hasattr(estimator, f"{name}_"):
            metrics[name] = float(getattr(estimator, f"{name}_"))
    return metrics
