"""Metrics of one file each, ``<folder>/metric/<name>.py``, with ``METRIC = Metric(...)``.

    from klr_bench.experiment.measure.metric import Metric

    def recall(predictions):
        return float((predictions.predicted[predictions.y > 0] > 0).mean())

    METRIC = Metric("recall", "Recall", unit="percent", better="higher", of=recall)

The function gets `klr_bench.experiment.measure.predictions.Predictions`; it returns None if these lack what it needs.
A file is run if an experiment names its metric, and never for a report, which reads the description in the manifest.
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

from klr_bench.errors import KlrBenchError, fail, nearest, raised
from klr_bench.experiment.measure.catalogue import METRICS
from klr_bench.experiment.measure.metric import Metric

if TYPE_CHECKING:
    from klr_bench.experiment.measure.predictions import Predictions


def metric_files(folders: Iterable[Path]) -> dict[str, Path]:
    """Return the files of all metrics in the folders' ``metric/``, by name; the first of two with the same name."""
    files: dict[str, Path] = {}
    for folder in folders:
        for path in sorted((folder / "metric").glob("*.py")):
            files.setdefault(path.stem, path)
    return files


def find_metric(name: str, folders: Sequence[Path]) -> Metric:
    """Return a metric of the catalogue or of a file, which is run.  Raises KlrBenchError for an unknown name."""
    if name in METRICS:
        return METRICS[name]
    files = metric_files(folders)
    if name not in files:
        fail(f"unknown metric {name!r}.{nearest(name, [*METRICS, *files])}")
    return _load(files[name])


def user_metrics(names: Iterable[str], folders: Sequence[Path]) -> dict[str, Metric]:
    """Return the named metrics that are not in the catalogue, by name."""
    return {name: find_metric(name, folders) for name in names if name not in METRICS}


def _load(path: Path) -> Metric:
    """Run a file and return its METRIC.  Raises KlrBenchError if it has none, or one that does not fit the file."""
    try:
        metric = runpy.run_path(str(path)).get("METRIC")
    except (Exception, SystemExit) as error:
        message = f"{path}: running it raised {raised(error)}"
        raise KlrBenchError(message) from error
    if not isinstance(metric, Metric):
        fail(f"{path}: expected METRIC = Metric(...), got {reprlib.repr(metric)}.")
    metric.checked(str(path))
    if metric.name != path.stem:
        fail(f"{path}: METRIC.name: expected {path.stem!r}, the name of the file, got {metric.name!r}.")
    if not callable(metric.of):
        fail(f"{path}: METRIC.of: expected a function of Predictions, got {metric.of!r}.")
    if not metric.stored or metric.compares:
        fail(f"{path}: METRIC: `stored` and `compares` are for metrics that a report makes; leave them out.")
    return replace(metric, of=naming_errors(metric.name, metric.of))


def naming_errors(name: str, of: Callable[[Predictions], Any]) -> Callable[[Predictions], float | None]:
    """Return a function whose errors name the metric, also that it returned no number."""

    def value(predictions: Predictions) -> float | None:
        try:
            result = of(predictions)
        except (Exception, SystemExit) as error:
            message = f"metric {name}: its function raised {raised(error)}"
            raise KlrBenchError(message) from error
        if result is None:
            return None
        if not isinstance(result, Real) or isinstance(result, bool) or math.isinf(result):
            fail(f"metric {name}: its function is to return a finite number or None, got {reprlib.repr(result)}.")
        return float(result)

    return value
