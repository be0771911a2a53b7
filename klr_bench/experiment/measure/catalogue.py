"""Every number that is measured of a fit, once: its name, unit, direction, how it is compared, printed and computed.

Records, the command line, selection, tables and figures read it.  A metric of predictions has its function here, too:
`of` takes `klr_bench.experiment.measure.predictions.Predictions`.  Nothing heavy is imported here.

A metric of a user is a file, see `klr_bench.experiment.measure.own`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from klr_bench.experiment.measure.metric import Metric

if TYPE_CHECKING:
    from collections.abc import Callable

    from klr_bench.experiment.measure.predictions import Predictions


def accuracy(predictions: Predictions) -> float:
    """Return the share of rows that are classified correctly."""
    return float((predictions.predicted == predictions.y).mean())


def error_rate(predictions: Predictions) -> float:
    """Return the share of rows that are classified wrongly."""
    return 1.0 - accuracy(predictions)


def balanced_accuracy(predictions: Predictions) -> float:
    """Return the mean over the classes of the share of their rows that are classified correctly."""
    right, y = predictions.predicted == predictions.y, predictions.y
    shares = [float(right[y == label].mean()) for label in predictions.classes if (y == label).any()]
    return sum(shares) / len(shares)


def f1(predictions: Predictions) -> float:
    """Return 2 tp / (2 tp + fp + fn) of the positive class, 0 where all three are 0; of more classes their mean."""
    labels = predictions.classes if len(predictions.classes) > 2 else predictions.classes[1:]
    found = [(predictions.predicted == label, predictions.y == label) for label in labels]
    counts = [(int((theirs & ours).sum()), int(theirs.sum() + ours.sum())) for theirs, ours in found]
    return sum(2 * both / either if either else 0.0 for both, either in counts) / len(labels)


def log_loss(predictions: Predictions) -> float | None:
    """Return the mean of -log P(y|x)."""
    logs = predictions.log_probabilities
    return None if logs is None else float((-logs[predictions.truth]).mean())


def brier(predictions: Predictions) -> float | None:
    """Return the mean of (P(+1|x) - [y = +1])^2; of more than two classes sum_k (P(k|x) - [y = k])^2, up to 2."""
    probabilities = predictions.probabilities
    if probabilities is None:
        return None
    if len(predictions.classes) > 2:
        return float(((probabilities - predictions.truth) ** 2).sum(axis=1).mean())
    from sklearn.metrics import brier_score_loss

    return float(brier_score_loss(predictions.truth[:, 1], probabilities[:, 1]))


def ece(predictions: Predictions) -> float | None:
    """Return the expected calibration error, sum_b (n_b / n) |positive_b - predicted_b|.

    The bins b are 15, of equal width, of the predicted probability of the positive class: n_b rows with the share
    positive_b of positive ones and the mean probability predicted_b.  Of more than two classes the probability is that
    of the predicted class, and positive are the rows that are predicted right.
    """
    bins = predictions.bins
    rows = sum(n for _, n, _, _ in bins)
    return sum(n * abs(positive - predicted) for _, n, predicted, positive in bins) / rows if bins else None


def auc(predictions: Predictions) -> float | None:
    """Return the area under the ROC curve; None where y has one class only.

    Of more than two classes it is the mean over those that y has, each against the rest.
    """
    if predictions.scores is None or predictions.y.min() == predictions.y.max():
        return None
    from sklearn.metrics import roc_auc_score

    return _mean(predictions, roc_auc_score)


def average_precision(predictions: Predictions) -> float | None:
    """Return sum_k (r_k - r_(k-1)) p_k over the thresholds k, with the precision p_k and the recall r_k at each.

    None where y has no positive row.  Of more than two classes it is the mean over those that y has, each against the
    rest.
    """
    from sklearn.metrics import average_precision_score

    return _mean(predictions, average_precision_score)


def _mean(predictions: Predictions, of_ranks: Callable[[Any, Any], float]) -> float | None:
    """Return the mean of a function of truth and scores, (n,), over the classes that are ranked and have rows."""
    scores = predictions.scores
    if scores is None:
        return None
    pairs = zip(predictions.truth.T[-scores.shape[1] :], scores.T, strict=True)
    found = [float(of_ranks(truth, score)) for truth, score in pairs if truth.any()]
    return sum(found) / len(found) if found else None


MOST = 1e10
"""Of seconds, three hundred years, and of megabytes."""

CATALOGUE = (
    Metric("accuracy", "Accuracy", "percent", "higher", usual=True, low=0, high=1, of=accuracy),
    Metric("error_rate", "Error rate", "percent", "lower", low=0, high=1, of=error_rate),
    Metric("balanced_accuracy", "Balanced accuracy", "percent", "higher", low=0, high=1, of=balanced_accuracy),
    Metric("f1", "F1", "percent", "higher", low=0, high=1, of=f1),
    Metric("last_accuracy", "Last accuracy", "percent", "higher", usual=True, low=0, high=1),
    # Of the training rows, each before the learner has seen it.
    Metric("mistake_rate", "Mistakes", "percent", "lower", low=0, high=1),
    Metric("log_loss", "Log loss", "", "lower", usual=True, low=0, of=log_loss),
    Metric("brier", "Brier score", "", "lower", low=0, high=2, of=brier),
    Metric("ece", "ECE", "", "lower", low=0, high=1, of=ece),
    Metric("auc", "AUC", "", "higher", low=0, high=1, of=auc),
    Metric("average_precision", "Average precision", "", "higher", low=0, high=1, of=average_precision),
    Metric("sparsity", "Sparsity", "percent", "higher", usual=True, low=0, high=1),
    # The papers print no spread of these: it is that of the sparsity, which carries the mark.
    Metric("n_support", "Support vectors", "count", "lower", "", usual=True, whole=True, low=0),
    Metric("last_n_support", "Last support vectors", "count", "lower", "", whole=True, low=0),
    Metric("n_updates", "Updates", "count", "", "", whole=True, low=0),
    Metric("n_selected", "Features", "count", "", "", whole=True, low=0),
    Metric("relevant_found", "Relevant found", "percent", "higher", "", low=0, high=1),
    Metric("setup_time_s", "Before the pass", "s", "lower", "ratio", stored=False),
    Metric("pass_time_s", "Pass alone", "s", "lower", "ratio", usual=True, low=0, high=MOST),
    Metric("fit_time_s", "Training time", "s", "lower", "ratio", usual=True, low=0, high=MOST),
    Metric("predict_time_s", "Prediction time", "s", "lower", "ratio", low=0, high=MOST),
    Metric("settled_s", "Settled after", "s", "lower", "", usual=True, stored=False),
    Metric("nonzero_fraction", "Non-zero", "percent", "lower", low=0, high=1),
    Metric("n_iter", "Iterations", "count", "lower", "", whole=True, low=0),
    Metric("objective", "Objective", "", "lower", ""),
    Metric("duality_gap", "Gap", "small", "lower", ""),
    # Of the logistic losses at the training rows, each before the learner has seen the row.
    Metric("cumulative_loss", "Cumulative loss", "", "lower", "", low=0),
    Metric("cumulative_h", "Cumulative h", "", "lower", "", low=0),  # of Auxiliary's upper bound h of that loss
    Metric("norm", "Norm of f", "", "", "", low=0),
    Metric("kernel_error", "Kernel error", "", "lower", "", low=0),  # the largest over pairs of rows
    Metric("peak_memory_mb", "Peak memory", "MB", "lower", "", low=0, high=MOST),
    Metric("load", "Used by others", "percent", "lower", "", low=0, high=1),  # of the machine, when the fit began
    Metric("n_train", "Training rows", "count", "", "", whole=True, low=0),
    Metric("n_test", "Test rows", "count", "", "", whole=True, low=0),
    Metric("n_features", "Columns of X", "count", "", "", whole=True, low=0),
    Metric("nnz_per_instance", "Non-zero per row", "", "", "", low=0),
    Metric("accuracy_gain", "Gain", "percent", "higher", stored=False, compares="accuracy"),
    Metric("n_iter_ratio", "Iterations ratio", "percent", "lower", stored=False, compares="n_iter"),
    Metric("log_loss_ratio", "Log loss ratio", "percent", "lower", "", stored=False, compares="log_loss"),
)
METRICS = {metric.name: metric for metric in CATALOGUE}
OF_PREDICTIONS = tuple(metric for metric in CATALOGUE if metric.of is not None)
SCORES = tuple(metric.name for metric in OF_PREDICTIONS if metric.better)
"""Shipped metrics that selection can choose by."""
