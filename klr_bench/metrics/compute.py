"""Metrics of predictions, one function each.

Their code is part of the cache key of a cell; the titles and formats in `labels` are not.  A function takes
`klr_bench.metrics.predictions.Predictions`, and returns None if these lack what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from klr_bench.metrics.predictions import Predictions


def accuracy(predictions: Predictions) -> float:
    """Return the share of correctly classified rows."""
    return float((predictions.predicted == predictions.y).mean())


def error_rate(predictions: Predictions) -> float:
    """Return the share of misclassified rows."""
    return 1.0 - accuracy(predictions)


def balanced_accuracy(predictions: Predictions) -> float:
    """Return the mean over the classes of the share of correctly classified rows."""
    right, y = predictions.predicted == predictions.y, predictions.y
    shares = [float(right[y == label].mean()) for label in predictions.classes if (y == label).any()]
    return sum(shares) / len(shares)


def f1(predictions: Predictions) -> float:
    """Return 2 tp / (2 tp + fp + fn) for the positive class, averaged over several classes.

    It is 0 if all three counts are 0.
    """
    labels = predictions.classes if len(predictions.classes) > 2 else predictions.classes[1:]
    pairs = [(predictions.predicted == label, predictions.y == label) for label in labels]
    counts = [(int((predicted & actual).sum()), int(predicted.sum() + actual.sum())) for predicted, actual in pairs]
    return sum(2 * both / either if either else 0.0 for both, either in counts) / len(labels)


def log_loss(predictions: Predictions) -> float | None:
    """Return the mean of -log P(y|x)."""
    logs = predictions.log_probabilities
    return None if logs is None else float((-logs[predictions.truth]).mean())


def brier(predictions: Predictions) -> float | None:
    """Return the mean of (P(+1|x) - [y = +1])^2.

    With more than two classes it is the mean of sum_k (P(k|x) - [y = k])^2.
    """
    probabilities = predictions.probabilities
    if probabilities is None:
        return None
    if len(predictions.classes) > 2:
        return float(((probabilities - predictions.truth) ** 2).sum(axis=1).mean())
    from sklearn.metrics import brier_score_loss

    return float(brier_score_loss(predictions.truth[:, 1], probabilities[:, 1]))


def ece(predictions: Predictions) -> float | None:
    """Return the expected calibration error, sum_b (n_b / n) |positive_b - predicted_b|.

    The predicted probability of the positive class has 15 bins b of equal width: n_b rows with the share positive_b of
    positive rows and the mean probability predicted_b.  With more than two classes the probability is that of the
    predicted class, and positive are the rows that are classified correctly.
    """
    bins = predictions.bins
    rows = sum(n for _, n, _, _ in bins)
    return sum(n * abs(positive - predicted) for _, n, predicted, positive in bins) / rows if bins else None


def auc(predictions: Predictions) -> float | None:
    """Return the area under the ROC curve, or None if y contains only one class.

    With more than two classes it is the mean over the classes in y, each against the rest.
    """
    if predictions.scores is None or predictions.y.min() == predictions.y.max():
        return None
    from sklearn.metrics import roc_auc_score

    return _mean(predictions, roc_auc_score)


def average_precision(predictions: Predictions) -> float | None:
    """Return the average precision, sum_k (r_k - r_(k-1)) p_k over the thresholds k.

    p_k and r_k are precision and recall at threshold k.

    It is None if y has no positive row.  With more than two classes it is the mean over the classes in y, each against
    the rest.
    """
    from sklearn.metrics import average_precision_score

    return _mean(predictions, average_precision_score)


def _mean(predictions: Predictions, of_ranks: Callable[[Any, Any], float]) -> float | None:
    """Return the mean of f(truth, scores) over the classes that have scores and rows."""
    scores = predictions.scores
    if scores is None:
        return None
    pairs = zip(predictions.truth.T[-scores.shape[1] :], scores.T, strict=True)
    values = [float(of_ranks(truth, score)) for truth, score in pairs if truth.any()]
    return sum(values) / len(values) if values else None
