"""What a worker does: score the learners of a fold, or fit and measure one cell.  It writes nothing."""

from __future__ import annotations

import inspect
import re
import resource
import sys
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from klr_bench.experiment.measure import quality as metrics
from klr_bench.experiment.measure.clock import FIRST
from klr_bench.experiment.measure.clock import Trace as Clock
from klr_bench.experiment.records import CellFile, Record
from klr_bench.experiment.runner.plan import Cell, Fold, Source
from klr_bench.experiment.selection import Spec, make, resolve_kernel, score_fold
from klr_bench.experiment.splits import Prepared, derived_seed, make_split, prepare
from klr_bench.experiment.targets import TARGET, build


def run_fold(fold: Fold) -> list[float | None]:
    """Return the score of each learner of a fold, None where a learner cannot be fitted."""
    data = _prepared(fold.source)
    with threadpool_limits(1):
        seed = _learner_seed(fold.source)
        return score_fold(fold.learners, fold.kernel, data, fold.fold, seed=seed, **asdict(fold.selection))


def run_cell(cell: Cell, chosen: Spec) -> CellFile:
    """Fit the chosen estimator on the training rows of a cell, timed, and measure it on the test rows."""
    data, seed = _prepared(cell.source), _learner_seed(cell.source)
    with threadpool_limits(1):
        kernel = resolve_kernel(cell.kernel, data.X_train, seed)
        _warm(cell.estimator[TARGET], cell.estimator.get("solver"))
        estimator = make(chosen, kernel, seed)
        reset_peak_memory()
        length, first = _steps(estimator, len(data.y_train))
        clock = Clock(length, cell.trace.points, _at_checkpoint(data), cell.time_limit_s, cell.trace.spacing, first)
        watched = cell.trace.points or cell.time_limit_s
        callback = {"callback": clock} if watched and "callback" in inspect.signature(estimator.fit).parameters else {}
        estimator.fit(data.X_train, data.y_train, **callback)
        fit_time = clock.elapsed()
        memory = peak_memory_mb()
        if hasattr(estimator, "duality_gap_"):  # an end that cannot be told in advance
            clock.end(estimator, int(estimator.n_iter_))
        measured, predict_time, bins = metrics.quality(estimator, data.X_test, data.y_test)
        measured |= metrics.size(estimator, len(data.y_train)) | metrics.last(estimator, data.X_test, data.y_test)
        measured |= metrics.selection(estimator, data.relevant)
    measured |= {"n_train": len(data.y_train), "n_test": len(data.y_test), "n_features": data.X_train.shape[1]}
    measured |= {"fit_time_s": fit_time, "predict_time_s": predict_time, "peak_memory_mb": memory}
    status, message = ("timeout", f"stopped after {cell.time_limit_s:g} s") if clock.timed_out else ("ok", "")
    record = _record(cell, flat_parameters(chosen, kernel), status, message, measured)
    return CellFile(record, cell.config_hash, time.time(), clock.points, bins)


def failed_cell(cell: Cell, status: str, message: str) -> CellFile:
    """Return what a cell leaves that has no result."""
    record = _record(cell, flat_parameters(cell.estimator, {}), status, message, {})
    return CellFile(record, cell.config_hash, time.time())


def flat_parameters(estimator: Mapping[str, Any], kernel: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a fit as one flat dict: the kernel's (without the name rbf), and the estimator's own."""
    own = {name: value for name, value in estimator.items() if name != TARGET and value is not None}
    return {name: value for name, value in kernel.items() if (name, value) != ("kernel", "rbf")} | own


def _record(cell: Cell, parameters: dict[str, Any], status: str, message: str, measured: Mapping[str, float]) -> Record:
    return Record(
        key=cell.key,
        experiment=cell.experiment,
        dataset=cell.source.name,
        algorithm=cell.algorithm,
        variant=cell.variant,
        params=parameters,
        repeat=cell.source.repeat,
        seed=cell.source.seed,
        status=status,
        message=message,
        metrics=dict(measured),
    )


@lru_cache(maxsize=1)
def _prepared(source: Source) -> Prepared:
    dataset = source.load()
    split = make_split(dataset, source.spec["split"], source.seed, source.repeat)
    return prepare(dataset, split, source.spec.get("scale"))


def _learner_seed(source: Source) -> int:
    return derived_seed(source.seed, source.name, source.repeat, "learner")


def _steps(estimator: Any, n_train: int) -> tuple[int, int]:
    """Return the largest t that a callback may see, and the first that is worth a checkpoint."""
    if hasattr(estimator, "steps"):
        return estimator.steps(n_train)  # type: ignore[no-any-return]
    return n_train * getattr(estimator, "n_epochs", 1), FIRST


def _at_checkpoint(data: Prepared) -> Any:
    def evaluate(estimator: Any) -> dict[str, float]:
        measured: dict[str, float] = {"accuracy": metrics.accuracy(estimator, data.X_test, data.y_test)}
        if hasattr(estimator, "n_support_"):
            measured["n_support"] = float(np.sum(estimator.n_support_))
        if hasattr(estimator, "duality_gap_"):
            measured["objective"], measured["duality_gap"] = estimator.objective_, estimator.duality_gap_
        if hasattr(estimator, "coef_"):
            measured["nonzero_fraction"] = float(np.mean(estimator.coef_ != 0))
        if hasattr(estimator, "checkpoint"):
            measured |= estimator.checkpoint()
            measured["log_loss"] = metrics.quality(estimator, data.X_test, data.y_test)[0]["log_loss"]
        return measured

    return evaluate


@cache
def _warm(target: str, solver: Any) -> None:
    """Fit once on next to nothing: what is loaded or compiled at a first call is not part of a time."""
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = {} if solver is None else {"solver": solver}
        build({TARGET: target, **given}).fit(np.eye(4, dtype=np.float32), np.array([-1, 1, -1, 1]))


def reset_peak_memory() -> None:
    """Let the kernel count the peak memory of this process anew, where it can (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_mb() -> float:
    """Return the largest resident memory of this process in MB: since the reset on Linux, else since its start."""
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        if found:
            return int(found[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)
