"""Functions that compute metrics from predictions.

Their code is part of the cache key of a cell, unlike the titles and formats in `labels`.  Each function takes
`klr_bench.metrics.predictions.Predictions` and returns None if the metric cannot be computed from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from klr_bench.metrics.predictions import Predictions


def accuracy(predictions: Predictions) -> float:
    """Return the fraction of correctly classified rows."""
    return float((predictions.predicted == predictions.y).mean())


def error_rate(predictions: Predictions) -> float:
    """Return the fraction of misclassified rows."""
    return 1.0 - accuracy(predictions)


def balanced_accuracy(predictions: Predictions) -> float:
    """Return the mean recall of all classes that occur among the true labels."""
    is_correct, y = predictions.predicted == predictions.y, predictions.y
    recalls = [float(is_correct[y == label].mean()) for label in sorted({*y.tolist()})]
    return sum(recalls) / len(recalls)


def f1(predictions: Predictions) -> float:
    """Return the F1 score of the positive class, or its mean over three or more classes.

    The score 2 tp / (2 tp + fp + fn) is 0 if all three counts are 0.
    """
    labels = sorted({*predictions.classes.tolist(), *predictions.y.tolist()})
    labels = labels if len(labels) > 2 else labels[1:]
    pairs = [(predictions.predicted == label, predictions.y == label) for label in labels]
    counts = [(int((predicted & actual).sum()), int(predicted.sum() + actual.sum())) for predicted, actual in pairs]
    return sum(2 * tp / total if total else 0.0 for tp, total in counts) / len(labels)


def log_loss(predictions: Predictions) -> float | None:
    """Return the log loss: the mean of -log P(y|x) over all rows x with label y."""
    logs = predictions.log_probabilities
    return None if logs is None else float((-logs[predictions.truth]).mean())


def brier(predictions: Predictions) -> float | None:
    """Return the Brier score: the mean squared error of the class probabilities.

    It is the mean of (P(+1|x) - [y = +1])^2, and with more than two classes the mean of sum_k (P(k|x) - [y = k])^2.
    """
    if predictions.probabilities is None:
        return None
    errors = (predictions.probabilities - predictions.truth) ** 2
    return float((errors.sum(axis=1) if len(predictions.classes) > 2 else errors[:, 1]).mean())


def ece(predictions: Predictions) -> float | None:
    """Return the expected calibration error over 15 probability bins of equal width.

    It is sum_b (n_b / n) |positive_b - predicted_b|, where bin b of the probability of the positive class has n_b of
    the n rows, a fraction positive_b of positive rows, and the mean probability predicted_b.  With more than two
    classes the probability of the predicted class is used, and correctly classified rows count as positive.
    """
    bins = predictions.bins
    rows = sum(n for _, n, _, _ in bins)
    return sum(n * abs(positive - predicted) for _, n, predicted, positive in bins) / rows if bins else None


def auc(predictions: Predictions) -> float | None:
    """Return the area under the ROC curve, or None if all rows have the same label.

    With more than two classes it is the mean over the classes in y, each versus the rest.
    """
    if predictions.scores is None or predictions.y.min() == predictions.y.max():
        return None
    from sklearn.metrics import roc_auc_score

    return _mean(predictions, roc_auc_score)


def average_precision(predictions: Predictions) -> float | None:
    """Return the average precision, or None if no row belongs to the positive class.

    It is sum_k (r_k - r_(k-1)) p_k with the precision p_k and the recall r_k at threshold k.  With more than two
    classes it is the mean over the classes in y, each versus the rest.
    """
    from sklearn.metrics import average_precision_score

    return _mean(predictions, average_precision_score)


def _mean(predictions: Predictions, ranking_metric: Callable[[Any, Any], float]) -> float | None:
    """Return the mean of a ranking metric over the classes, or None if it is undefined."""
    scores = predictions.scores
    if scores is None:
        return None
    pairs = zip(predictions.truth.T[-scores.shape[1] :], scores.T, strict=True)
    values = [float(ranking_metric(truth, score)) for truth, score in pairs if truth.any()]
    return sum(values) / len(values) if values else None
