"""Computation of the metrics of a fitted classifier."""

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
"""Number of rows whose pairs are used to measure the error of approximate kernel features."""


def measure(estimator: Any, X: Any, y: NDArray[Any], extra: Iterable[Metric] = ()) -> tuple[Metrics, float, list[Bin]]:
    """Return prediction metrics, the prediction time in seconds and calibration bins.

    The rows X (n, d) have labels y (n,): -1 and +1, or 0, 1, ... for more than two classes.  The metrics are those of
    the catalog and the `extra` metrics of a user.  Metrics that cannot be computed, such as the log loss of a
    classifier without probabilities, are omitted.
    """
    start = time.perf_counter()
    predictions = predict(estimator, X, y)
    _ = predictions.predicted  # predict the labels now, so that the time is measured
    seconds = time.perf_counter() - start
    predictions.check_classes()
    values = {metric.name: metric.of(predictions) for metric in OF_PREDICTIONS if metric.of is not None}
    values |= {metric.name: metric.of(predictions) for metric in extra if metric.of is not None}
    return {name: value for name, value in values.items() if value is not None}, seconds, predictions.bins


def at_checkpoint(estimator: Any, X: Any, y: NDArray[Any]) -> dict[str, float]:
    """Return the prediction metrics and progress values that a checkpoint records."""
    predictions = predict(estimator, X, y)
    metrics = [METRICS[name] for name in protocols.watched(estimator)]
    values = {metric.name: metric.of(predictions) for metric in metrics if metric.of is not None}
    return {name: value for name, value in values.items() if value is not None} | protocols.progress(estimator)


def fitted(estimator: Any, n_train: int, relevant: NDArray[np.int64] | None = None) -> Metrics:
    """Return metrics of an estimator's fit, such as the number of iterations, by name.

    The fit was to `n_train` rows.  If the `relevant` features are known, `relevant_found` is the fraction of them that
    was selected.
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
        metrics[name] = round(value) if metric.whole else float(value)
    selected = protocols.selected_features(estimator)
    if selected is not None:
        metrics["n_selected"] = len(selected)
        if relevant is not None:
            metrics["relevant_found"] = float(np.mean(np.isin(relevant, selected)))
    return metrics


def last(estimator: Any, X: Any, y: NDArray[Any]) -> Metrics:
    """Return metrics of an averaging estimator's last classifier; {} for other estimators."""
    classifier = protocols.last_classifier(estimator)
    if classifier is None:
        return {}
    accuracy = float(np.mean(classifier.predict(X) == y))
    return {"last_accuracy": accuracy, "last_n_support": protocols.summary(classifier, len(y))["n_support"]}


def approximation(estimator: Any, X: Any) -> Metrics:
    """Return the largest error of approximate kernel values; {} if the kernel is exact."""
    error = protocols.call(estimator, "kernel_error", X[:PAIRED])
    return {} if error is None else {"kernel_error": float(error)}
