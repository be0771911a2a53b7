"""Measurement of fitted classifiers: predictions on test rows, and sparsity."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from klr_bench import protocols
from klr_bench.errors import fail, nearest
from klr_bench.metrics.labels import METRICS, OF_PREDICTIONS
from klr_bench.metrics.metric import Metric
from klr_bench.metrics.predictions import Bin, predict

Metrics = dict[str, float | int]
PAIRED = 1000
"""Number of rows over whose pairs the error of kernel features is measured."""


def measure(estimator: Any, X: Any, y: NDArray[Any], extra: Iterable[Metric] = ()) -> tuple[Metrics, float, list[Bin]]:
    """Return all metrics of a classifier, the prediction time, and the bins of probabilities.

    X (n, d), y (n,) with labels -1 and +1, or 0, 1, ... of more than two classes.  The metrics are those of the
    catalogue, and the `extra` ones of a user; one that the predictions do not allow, such as the log loss of a
    classifier without probabilities, is left out.
    """
    started = time.perf_counter()
    predictions = predict(estimator, X, y)
    _ = predictions.predicted  # evaluated here, so that its time is included
    seconds = time.perf_counter() - started
    predictions.check_classes()
    values = {metric.name: metric.of(predictions) for metric in OF_PREDICTIONS if metric.of is not None}
    values |= {metric.name: metric.of(predictions) for metric in extra if metric.of is not None}
    return {name: value for name, value in values.items() if value is not None}, seconds, predictions.bins


def at_checkpoint(estimator: Any, X: Any, y: NDArray[Any]) -> dict[str, float]:
    """Return the values of a checkpoint: metrics of predictions, and values of the estimator."""
    predictions = predict(estimator, X, y)
    metrics = [METRICS[name] for name in protocols.watched(estimator)]
    values = {metric.name: metric.of(predictions) for metric in metrics if metric.of is not None}
    return {name: value for name, value in values.items() if value is not None} | protocols.progress(estimator)


def fitted(estimator: Any, n_train: int, relevant: NDArray[np.int64] | None = None) -> Metrics:
    """Return the metrics of a fit to `n_train` rows: sizes, iterations, objective, features.

    `relevant_found` is the share of the `relevant` features, if they are known, that is among the selected ones.
    """
    summary = protocols.summary(estimator, n_train)
    where = f"{type(estimator).__name__}.summary()"
    metrics: Metrics = {}
    for name, value in summary.items():
        if name not in METRICS:
            fail(f"{where}: unknown metric {name!r}.{nearest(name, METRICS)}")
        metric = METRICS[name]
        is_nan = isinstance(value, Real) and math.isnan(value) and not metric.whole
        if not is_nan and not (isinstance(value, Real) and metric.possible(value)):
            fail(f"{where}: {name}: expected {metric.range}, got {value!r:.100}.")
        metrics[name] = int(value) if metric.whole else float(value)
    selected = protocols.selected_features(estimator)
    if selected is not None:
        metrics["n_selected"] = len(selected)
        if relevant is not None:
            metrics["relevant_found"] = float(np.mean(np.isin(relevant, selected)))
    return metrics


def last(estimator: Any, X: Any, y: NDArray[Any]) -> Metrics:
    """Return accuracy and size of an averaged estimator's last classifier, else an empty dict."""
    classifier = protocols.last_classifier(estimator)
    if classifier is None:
        return {}
    accuracy = float(np.mean(classifier.predict(X) == y))
    return {"last_accuracy": accuracy, "last_n_support": protocols.summary(classifier, len(y))["n_support"]}


def approximation(estimator: Any, X: Any) -> Metrics:
    """Return the error of approximate kernel features over pairs of rows, if the estimator has any."""
    error = protocols.call(estimator, "kernel_error", X[:PAIRED])
    return {} if error is None else {"kernel_error": float(error)}
