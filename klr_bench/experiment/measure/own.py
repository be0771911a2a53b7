"""Metrics of a user: one Python file each, ``<folder>/metric/<name>.py``, which holds ``METRIC = Metric(...)``.

    from klr_bench.experiment.measure.metric import Metric

    def recall(predictions):
        return float((predictions.predicted[predictions.y > 0] > 0).mean())

    METRIC = Metric("recall", "Recall", unit="percent", better="higher", of=recall)

The function gets `klr_bench.experiment.measure.predictions.Predictions`; it returns None where these lack what it
needs.
A file is run when an experiment names its metric, and never for a report: that reads the description in the manifest.
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

from klr_bench.errors import KlrBenchError, nearest, raised
from klr_bench.experiment.measure.catalogue import METRICS
from klr_bench.experiment.measure.metric import Metric
from klr_bench.files import regular

if TYPE_CHECKING:
    from klr_bench.experiment.measure.predictions import Predictions


def own_files(folders: Iterable[Path]) -> dict[str, Path]:
    """Return the files of all metrics in the folders' ``metric/``, by name; the first of two with the same name."""
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted((folder / "metric").glob("*.py")):
            found.setdefault(path.stem, path)
    return found


def find(name: str, folders: Sequence[Path]) -> Metric:
    """Return a metric by its name, a shipped one or that of a user's file, which is run; refuse an unknown name."""
    if name in METRICS:
        return METRICS[name]
    files = own_files(folders)
    if name not in files:
        message = f"unknown metric {name!r}.{nearest(name, [*METRICS, *files])}"
        raise KlrBenchError(message)
    return load(files[name])


def load_own(names: Iterable[str], folders: Sequence[Path]) -> dict[str, Metric]:
    """Return those of the named metrics that are a user's, by name."""
    return {name: find(name, folders) for name in names if name not in METRICS}


def load(path: Path) -> Metric:
    """Run a user's file and return its METRIC; refuse one that has none, or one that does not fit its file."""
    if path.stem in METRICS:
        message = f"{path}: there is a metric {path.stem!r} in klr-bench; give yours another name."
        raise KlrBenchError(message)
    with regular(path):
        pass  # or it is refused: Python would wait for a pipe
    try:
        metric = runpy.run_path(str(path)).get("METRIC")
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        message = f"{path}: running it raised {raised(error)}"
        raise KlrBenchError(message) from error
    if not isinstance(metric, Metric):
        message = f"{path}: expected METRIC = Metric(...), got {reprlib.repr(metric)}."
        raise KlrBenchError(message)
    metric.checked(str(path))
    if metric.name != path.stem:
        message = f"{path}: METRIC.name: expected {path.stem!r}, the name of the file, got {metric.name!r}."
        raise KlrBenchError(message)
    if not callable(metric.of):
        message = f"{path}: METRIC.of: expected a function of Predictions, got {metric.of!r}."
        raise KlrBenchError(message)
    if not metric.stored or metric.compares:
        message = f"{path}: METRIC: `stored` and `compares` are for metrics that a report makes; leave them out."
        raise KlrBenchError(message)
    return replace(metric, of=guarded(metric.name, metric.of))


def guarded(name: str, of: Callable[[Predictions], Any]) -> Callable[[Predictions], float | None]:
    """Return a user's function with errors that name its metric: where it raises, and where it returns no number."""

    def value(predictions: Predictions) -> float | None:
        try:
            found = of(predictions)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            message = f"metric {name}: its function raised {raised(error)}"
            raise KlrBenchError(message) from error
        if found is None:
            return None
        if not isinstance(found, Real) or isinstance(found, bool) or _is_infinite(found):
            message = f"metric {name}: its function is to return a finite number or None, got {reprlib.repr(found)}."
            raise KlrBenchError(message)
        return float(found)

    return value


def _is_infinite(number: Real) -> bool:
    try:
        return math.isinf(number)
    except OverflowError:  # a whole number beyond all floats
        return True
