"""Functions called by workers: score the candidates of a fold, or fit and measure a cell."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from klr_bench import protocols
from klr_bench.config import locations as config_files
from klr_bench.datasets.splits import Prepared, derived_seed, make_split, prepare
from klr_bench.instantiate import TARGET, EstimatorSpec, Parameters
from klr_bench.metrics.clock import Clock, fit_in_child, peak_memory_mb, reset_peak_memory
from klr_bench.metrics.labels import user_metrics
from klr_bench.metrics.quality import approximation, at_checkpoint, fitted, last, measure
from klr_bench.results.record import CellFile, PlanePoint, Record
from klr_bench.runner import machine
from klr_bench.runner.bandwidth import resolve_gamma, resolve_kernel
from klr_bench.runner.grouped import with_groups
from klr_bench.runner.plan import Cell, Fold, Source
from klr_bench.runner.selection import Score, given, make, score_fold


def run_fold(fold: Fold) -> list[Score]:
    """Return the scores of all candidates on a fold."""
    data = _prepared(fold.source).readonly()
    with threadpool_limits(1):
        learners = [candidate.estimator for candidate in fold.candidates]
        limits = [candidate.time_limit_s for candidate in fold.candidates]
        options = fold.selection.model_dump(exclude={"tolerance"})
        seed = learner_seed(fold.source)
        return score_fold(learners, fold.kernel, data, fold.fold, seed=seed, time_limits_s=limits, **options)


def run_cell(cell: Cell, chosen: EstimatorSpec, n_threads: int = 1) -> CellFile:
    """Fit the selected estimator to the training rows of a cell, and compute its metrics."""
    data, seed = _prepared(cell.source).readonly(), learner_seed(cell.source)
    X, y = data.X_train, data.y_train
    with threadpool_limits(n_threads):
        kernel = resolve_kernel(cell.kernel, X, seed)
        estimator = make(resolve_gamma(chosen, X), kernel, seed)
        estimator, options = with_groups(estimator, y, data.groups, is_later=data.is_later)
        protocols.warm_up(estimator, sparse=sp.issparse(X))
        estimator = protocols.call(estimator, "rehearse", X, y, default=estimator)
        reset_peak_memory()
        load = machine.load()
        last_step, first_step = protocols.steps(estimator, len(y))
        evaluate = partial(at_checkpoint, X=data.X_test, y=data.y_test)
        clock = Clock(last_step, cell.trace.points, evaluate, cell.time_limit_s, cell.trace.spacing, first_step)
        takes_callback = protocols.takes_callback(estimator)
        if cell.time_limit_s is not None and not takes_callback:
            estimator, fit_time, memory = fit_in_child(estimator, X, y, cell.time_limit_s, **options)
        else:
            is_watched = takes_callback and (cell.trace.points or cell.time_limit_s)
            estimator.fit(X, y, **options, **({"callback": clock} if is_watched else {}))
            fit_time, memory = clock.elapsed(), peak_memory_mb()
        end = protocols.call(estimator, "ended_at") if takes_callback else None
        if end is not None:
            clock.end(estimator, end)
        processor = machine.processor()
        extra = user_metrics(cell.user_metrics, config_files.folders()).values()
        measured, predict_time, bins = measure(estimator, data.X_test, data.y_test, extra)
        measured |= fitted(estimator, len(y), data.relevant) | last(estimator, data.X_test, data.y_test)
        measured |= approximation(estimator, data.X_test)
    measured |= {"n_train": len(y), "n_test": len(data.y_test), "n_features": X.shape[1]}
    measured |= {"nnz_per_instance": nonzero_per_row(X, data.X_test)}
    measured |= {"fit_time_s": fit_time, "predict_time_s": predict_time, "peak_memory_mb": memory}
    measured |= {} if load is None else {"load": load}
    rows = plane_rows(data) if cell.trace.rows and cell.source.repeat == 0 else []
    ended = completed(cell, flat_parameters(chosen, kernel), measured, processor, timed_out=clock.timed_out)
    return replace(ended, checkpoints=list(clock.checkpoints), bins=bins, rows=rows)


def completed(
    cell: Cell, parameters: EstimatorSpec, measured: Mapping[str, float], processor: str, *, timed_out: bool
) -> CellFile:
    """Return the cell file of a fit that has finished or has reached its time limit."""
    status, message = ("timeout", f"stopped after {cell.time_limit_s:g} s") if timed_out else ("ok", "")
    return _cell_file(cell, parameters, status, message, measured, host=machine.host(), cpu=processor)


def failed_cell_file(
    cell: Cell, status: str, message: str, traceback: str = "", chosen: EstimatorSpec | None = None
) -> CellFile:
    """Return the cell file of a failed fit; `chosen` is the selected estimator, if known."""
    failed = _cell_file(cell, flat_parameters(chosen or cell.estimator, {}), status, message, {})
    return replace(failed, traceback=traceback)


def nonzero_per_row(*parts: Any) -> float:
    """Return the mean number of nonzero entries per row over all arrays or matrices."""
    counts = (X.count_nonzero() if sp.issparse(X) else np.count_nonzero(X) for X in parts)
    return float(sum(counts) / sum(X.shape[0] for X in parts))


def plane_rows(data: Prepared) -> list[PlanePoint]:
    """Return the training rows of a data set with two features as (x1, x2, class index).

    The rows are in the order in which the estimator sees them.
    """
    X = data.X_train.toarray() if sp.issparse(data.X_train) else data.X_train
    classes = np.unique(np.concatenate([data.y_train, data.y_test]))
    indices = np.searchsorted(classes, data.y_train)
    return [(float(x1), float(x2), int(index)) for (x1, x2), index in zip(X, indices, strict=True)]


def flat_parameters(estimator: Parameters, kernel: Parameters) -> EstimatorSpec:
    """Return the parameters of an estimator and its kernel in one dict.

    The default `kernel: rbf` is omitted.
    """
    set_values = {name: value for name, value in given(estimator).items() if name != TARGET}
    return {name: value for name, value in kernel.items() if (name, value) != ("kernel", "rbf")} | set_values


def _cell_file(
    cell: Cell, parameters: EstimatorSpec, status: str, message: str, measured: Mapping[str, float], **machine: str
) -> CellFile:
    record = Record(
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
        metrics={name: value for name, value in measured.items() if not math.isnan(value)},
        **machine,
    )
    return CellFile(record, cell.config_hash, time.time())


@lru_cache(maxsize=1)
def _prepared(source: Source) -> Prepared:
    dataset = source.load()
    split = make_split(dataset, source.spec.split, source.seed, source.repeat)
    return prepare(dataset, split, source.spec.scale)


def learner_seed(source: Source) -> int:
    """Return the seed of the estimators that are fitted to a split."""
    return derived_seed(source.seed, source.spec.seed_name, source.repeat, "learner")
