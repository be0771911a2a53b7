"""Built-in metrics, and functions that load user-defined ones.

The catalog is not part of a cache key, unlike the functions in `compute`.  All cells compute every function that is
added there.  A user defines a metric in a file ``<folder>/metric/<name>.py`` with ``METRIC = Metric(...)``:

    from klr_bench.metrics.metric import Metric

    def recall(predictions):
        return float((predictions.predicted[predictions.y > 0] > 0).mean())

    METRIC = Metric("recall", "Recall", unit="percent", better="higher", of=recall)

The function takes `klr_bench.metrics.predictions.Predictions` and returns None if the metric cannot be computed from
them.  The file runs only if an experiment uses its metric; reports read the description in the manifest instead.
"""

from __future__ import annotations

import math
import reprlib
import runpy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from klr_bench.errors import exception_text, fail, nearest, place_of
from klr_bench.metrics import compute
from klr_bench.metrics.metric import Metric
from klr_bench.parsing import refuse_first

if TYPE_CHECKING:
    from klr_bench.metrics.predictions import Predictions


MOST = 1e10
"""Upper bound of times in seconds (about three hundred years) and of memory in megabytes."""

CATALOG = (
    Metric("accuracy", "Accuracy", "percent", "higher", usual=True, low=0, high=1, of=compute.accuracy),
    Metric("error_rate", "Error rate", "percent", "lower", low=0, high=1, of=compute.error_rate),
    Metric("balanced_accuracy", "Balanced accuracy", "percent", "higher", low=0, high=1, of=compute.balanced_accuracy),
    Metric("f1", "F1", "percent", "higher", low=0, high=1, of=compute.f1),
    Metric("last_accuracy", "Last accuracy", "percent", "higher", usual=True, low=0, high=1),
    # Fraction of training rows that the learner misclassified just before it was updated with them.
    Metric("mistake_rate", "Mistakes", "percent", "lower", low=0, high=1),
    Metric("log_loss", "Log loss", "", "lower", usual=True, low=0, of=compute.log_loss),
    Metric("brier", "Brier score", "", "lower", low=0, high=2, of=compute.brier),
    Metric("ece", "ECE", "", "lower", low=0, high=1, of=compute.ece),
    Metric("auc", "AUC", "", "higher", low=0, high=1, of=compute.auc),
    Metric("average_precision", "Average precision", "", "higher", low=0, high=1, of=compute.average_precision),
    Metric("sparsity", "Sparsity", "percent", "higher", usual=True, low=0, high=1),
    Metric("n_support", "Support vectors", "count", "lower", usual=True, whole=True, low=0),
    Metric("last_n_support", "Last support vectors", "count", "lower", "", whole=True, low=0),
    Metric("n_updates", "Updates", "count", "", "", whole=True, low=0),
    Metric("n_selected", "Features", "count", "", "", whole=True, low=0),
    Metric("relevant_found", "Relevant found", "percent", "higher", "", low=0, high=1),
    Metric("setup_time_s", "Before the pass", "s", "lower", "ratio", stored=False),
    Metric("pass_time_s", "Pass alone", "s", "lower", "ratio", usual=True, low=0, high=MOST),
    Metric("fit_time_s", "Training time", "s", "lower", "ratio", usual=True, low=0, high=MOST),
    Metric("predict_time_s", "Prediction time", "s", "lower", "ratio", low=0, high=MOST),
    Metric("settled_s", "Time to final accuracy", "s", "lower", "", usual=True, stored=False),
    Metric("late_gain", "Late gain", "percent", "", "", stored=False),
    Metric("early_gain", "Early gain", "percent", "", "", stored=False),
    Metric("near_optimal_s", "Time to 1 % above the smallest objective", "s", "lower", "", stored=False),
    Metric("nonzero_fraction", "Non-zero", "percent", "lower", low=0, high=1),
    Metric("first_nonzero", "Initially non-zero", "percent", "", "", stored=False),
    Metric("mean_nonzero", "Non-zero on average", "percent", "", "", stored=False),
    Metric("prototype_shift", "Prototype shift", "", "", "", stored=False),
    Metric("coefficient_shift", "Coefficient shift", "", "", "", stored=False),
    Metric("loss_over_bound", "Loss / bound", "", "", "", stored=False),
    Metric("support_over_bound", "Support vectors / bound", "", "", "", stored=False),
    Metric("n_iter", "Iterations", "count", "lower", whole=True, low=0),
    Metric("objective", "Objective", "", "lower", ""),
    Metric("duality_gap", "Gap", "small", "lower", ""),
    # Sums, over the training rows, of the logistic loss and its upper bound h before the learner's update.
    Metric("cumulative_loss", "Cumulative loss", "", "lower", "", low=0),
    Metric("cumulative_h", "Cumulative h", "", "lower", "", low=0),
    Metric("norm", "Norm of f", "", "", "", low=0),
    Metric("kernel_error", "Kernel error", "", "lower", "", low=0),  # largest error of an approximate kernel value
    Metric("peak_memory_mb", "Peak memory", "MB", "lower", "", low=0, high=MOST),
    Metric("load", "Used by others", "percent", "lower", "", low=0, high=1),  # load of the machine when the fit started
    Metric("n_train", "Training rows", "count", "", "", whole=True, low=0),
    Metric("n_test", "Test rows", "count", "", "", whole=True, low=0),
    Metric("n_features", "Columns of X", "count", "", "", whole=True, low=0),
    Metric("nnz_per_instance", "Non-zero per row", "", "", "", low=0),
    Metric("accuracy_gain", "Gain", "percent", "higher", stored=False, compares="accuracy"),
    Metric("n_iter_ratio", "Iterations ratio", "percent", "lower", stored=False, compares="n_iter"),
    Metric("log_loss_ratio", "Log loss ratio", "percent", "lower", "", stored=False, compares="log_loss"),
)
METRICS = {metric.name: metric for metric in CATALOG}
OF_PREDICTIONS = tuple(metric for metric in CATALOG if metric.of is not None)
SCORES = tuple(metric.name for metric in OF_PREDICTIONS if metric.better)
"""Built-in metrics that selection can optimize."""


def metric_files(folders: Iterable[Path]) -> dict[str, Path]:
    """Return the paths of the metric files in all folders, keyed by metric name.

    Earlier folders take precedence.
    """
    files: dict[str, Path] = {}
    for folder in folders:
        for path in sorted((folder / "metric").glob("*.py")):
            files.setdefault(path.stem, path)
    return files


def find_metric(name: str, folders: Sequence[Path]) -> Metric:
    """Return the metric with the given name, from the catalog or from a user's file.

    The file is executed.  Raises KlrBenchError if the name is unknown.
    """
    if name in METRICS:
        return METRICS[name]
    files = metric_files(folders)
    if name not in files:
        fail(f"unknown metric {name!r}.{nearest(name, [*METRICS, *files])}")
    return _load(files[name])


def user_metrics(names: Iterable[str], folders: Sequence[Path]) -> dict[str, Metric]:
    """Return the user-defined metrics among the given names, keyed by name."""
    return {name: find_metric(name, folders) for name in names if name not in METRICS}


def _load(path: Path) -> Metric:
    """Run a user's metric file and return the metric defined there, or raise KlrBenchError."""
    try:
        metric = runpy.run_path(str(path)).get("METRIC")
    except ValidationError as error:
        values = {error["loc"][0]: error["input"] for error in error.errors()}
        refuse_first(error, values, f"{path}: METRIC", f"{path}: METRIC.")
    except (Exception, SystemExit) as error:
        fail(f"{path}: running it raised {exception_text(error)}{place_of(error)}")
    if not isinstance(metric, Metric):
        fail(f"{path}: expected METRIC = Metric(...), got {reprlib.repr(metric)}.")
    if metric.name != path.stem:
        fail(f"{path}: METRIC.name: expected {path.stem!r}, the name of the file, got {metric.name!r}.")
    if metric.of is None:
        fail(f"{path}: METRIC.of: expected a function that takes a Predictions object, got None.")
    if not metric.stored or metric.compares:
        fail(f"{path}: METRIC: remove `stored` and `compares`, which are only for metrics computed by reports.")
    return replace(metric, of=naming_errors(metric.name, metric.of))


def naming_errors(name: str, of: Callable[[Predictions], Any]) -> Callable[[Predictions], float | None]:
    """Return a metric function that also checks its result and names the metric in errors."""

    def value(predictions: Predictions) -> float | None:
        try:
            result = of(predictions)
        except (Exception, SystemExit) as error:
            fail(f"metric {name}: its function raised {exception_text(error)}{place_of(error)}")
        if result is None:
            return None
        if not isinstance(result, Real) or isinstance(result, bool) or math.isinf(result):
            fail(f"metric {name}: expected a finite number or None from its function, got {reprlib.repr(result)}.")
        return float(result)

    return value
