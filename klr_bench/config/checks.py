"""Checks for settings that contradict each other or have no effect."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from klr_bench import instantiate
from klr_bench.config import locations as config_files
from klr_bench.config.models import RunConfig
from klr_bench.config.splitting import Folds
from klr_bench.errors import error_context, fail
from klr_bench.instantiate import Parameters
from klr_bench.metrics.labels import METRICS, SCORES, metric_files
from klr_bench.parsing import check_choice, refuse
from klr_bench.results.record import RESERVED


def check_run(run: RunConfig, sweep: Mapping[str, Parameters], overrides: set[str], searched: Sequence[Path]) -> None:
    """Raise KlrBenchError if settings of a run are unknown or contradict each other.

    `sweep` is that of the experiment, which also has algorithms that are not selected.  `overrides` are the names of
    the settings on the command line.
    """
    kernel, selection, user_metrics = run.kernel, run.selection, metric_files(searched)
    schedulers = [key for key in ("address", "scheduler_file", "jobqueue") if getattr(run.parallel, key)]
    if len(schedulers) > 1:
        both = " and ".join(f"parallel.{key}" for key in schedulers[:2])
        fail(f"{both} are both given; each is a way to a scheduler. Leave one out.")
    if selection.max_examples is not None and selection.max_examples < 2 * selection.folds:
        refuse("selection.max_examples", "at least two per fold, or null", selection.max_examples)
    check_choice("selection.score", selection.score, [*SCORES, *user_metrics])
    for metric in (selection.score, *(run.metrics or ())):
        check_choice("metrics", metric, [*METRICS, *user_metrics])
        if metric in user_metrics and metric in RESERVED:
            fail(f"{user_metrics[metric]}: {metric} is a metric or column of klr-bench. Rename yours.")
        if metric in METRICS and METRICS[metric].compares and metric not in run.against:
            expected = f"against.{metric} to name the baseline method, by {{algorithm: NAME}} or {{PARAMETER: VALUE}}"
            fail(f"metrics: {metric}: expected {expected}, got none.")
    if kernel.kernel == "rbf" and kernel.gamma is not None and kernel.percentile is not None:
        both = f"kernel.gamma={kernel.gamma:g} and kernel.percentile={kernel.percentile:g} are both given"
        fail(f"{both}. To use gamma, add kernel.percentile=null.")
    _check_left_out(run, sweep, overrides, searched)
    for stem, dataset in {} if run.selection.nested else run.datasets.items():
        if not isinstance(dataset.split, Folds):
            fail(f"selection.nested=false: expected folds for {stem}, got none. Set datasets.{stem}.split.folds.")
    _check_against(run, sweep, searched)
    _check_streams(run)


def _check_left_out(
    run: RunConfig, sweep: Mapping[str, Parameters], overrides: set[str], searched: Sequence[Path]
) -> None:
    for dataset, algorithms in run.left_out.items():
        check_choice("left_out", dataset, config_files.names("dataset", searched))
        for stem, lists in algorithms.items():
            check_choice(f"left_out.{dataset}", stem, config_files.names("algorithm", searched))
            for name, values in lists.items():
                swept = {**sweep.get(stem, {}), **run.sweep.get(stem, {})}.get(name)
                if isinstance(swept, list) and overrides.isdisjoint((f"sweep.{stem}.{name}", name)):
                    for value in values:
                        check_choice(f"left_out.{dataset}.{stem}.{name}", value, swept)


def _check_against(run: RunConfig, sweep: Mapping[str, Parameters], searched: Sequence[Path]) -> None:
    varied = sorted({name for variants in sweep.values() for name in variants})
    for metric, changes in run.against.items():
        check_choice("against", metric, [name for name, description in METRICS.items() if description.compares])
        if not changes:
            refuse(f"against.{metric}", "{algorithm: NAME} or {PARAMETER: VALUE}", changes)
        for name, value in changes.items():
            where = f"against.{metric}.{name}"
            if name != "algorithm":
                check_choice(where, name, varied)
                values = [
                    swept for lists in sweep.values() if isinstance(lists.get(name), list) for swept in lists[name]
                ]
                check_choice(where, value, values)
            elif isinstance(value, list):
                refuse(where, "the name of an algorithm", value)
            elif value not in run.algorithms:
                with error_context(where):
                    config_files.find("algorithm", value, searched)  # raises an error for a misspelled name


STREAMED = ("accuracy", "log_loss")
"""Metrics of predictions that a stream has, whose predictions are not kept."""


def _check_streams(run: RunConfig) -> None:
    stem = next((stem for stem, dataset in run.datasets.items() if dataset.is_stream), None)
    if stem is None:
        return
    for name in run.algorithms:
        grid = run.selected_grid(name)
        if (n_candidates := math.prod(map(len, grid.values()))) > 1:
            values = f"algorithms.{name}.estimator.{next(iter(grid))}=VALUE, or list several values in sweep.{name}"
            got = f"there are {n_candidates} combinations of values, but selection on the stream {stem} is not possible"
            fail(f"algorithms.{name}.grid: {got}. Add algorithms.{name}.grid=null and {values}.")
    if run.trace.points:
        points, window = f"trace.points={run.trace.points}", f"datasets.{stem}.split.window"
        fail(f"{points}: has no effect on the stream {stem}, which has one checkpoint per {window}. Leave it out.")
    for metric in run.metrics or ():
        if metric not in METRICS or (METRICS[metric].of and metric not in STREAMED):
            expected = f"{' or '.join(STREAMED)} of the predictions"
            fail(f"metrics: on the stream {stem}, expected {expected}, got {metric}. Leave it out.")
    if run.parallel.backend == "dask":
        fail(f"parallel=dask: the data set {stem} is a stream, which is read on one machine. Leave parallel=dask out.")


KERNELS_OF = {
    "percentile": ("rbf",),
    "multiple": ("rbf",),
    "gamma": ("rbf", "poly", "laplacian", "sigmoid"),
    "degree": ("poly",),
    "coef0": ("poly", "sigmoid"),
}
"""The kernels that use a parameter."""
NEUTRAL = {"experiment", "name", "title", "seed", "repeats", "shard", "force", "results_dir", "figures", "metrics"}
"""Command-line keys that do not disable any key of an experiment file."""


def check_unused_keys(config: RunConfig, overrides: set[str], searched: Sequence[Path]) -> None:
    """Raise KlrBenchError if a key has a value but no effect in this run.

    `overrides` are the keys of the command line.  If they do not change the experiment's algorithms, kernel and so on,
    the keys of its file are checked as well.  Raises KlrBenchError.
    """
    if all(key in NEUTRAL or key.startswith("data.") for key in overrides):
        overrides = {*overrides, *_keys_of_file(config.experiment, searched)}
    reasons = _reasons(config)
    for key in sorted(overrides):
        section, _, name = key.partition(".")
        part = getattr(config, section, None)
        value = getattr(part, name, None) if name else part
        reason = _kernel_reason(name, config) if section == "kernel" else reasons.get(key) or reasons.get(section)
        if reason and value is not None and key not in ("trace.points", "trace.rows"):
            fail(f"{key}={value}: has no effect, because {reason}. Leave it out.")


def _reasons(config: RunConfig) -> dict[str, str | None]:
    """Return a dict that maps each key to the reason why it has no effect, or to None."""
    backend, parallel = config.parallel.backend, config.parallel
    serial = "the backend is serial: one process" if backend == "serial" else None
    no_dask = None if backend == "dask" else f"the backend is {backend}; add parallel=dask"
    has_cluster = parallel.address or parallel.scheduler_file
    own_cluster = "an existing cluster has a fixed number of workers" if has_cluster else None
    selects = any(len(values) > 1 for stem in config.algorithms for values in config.selected_grid(stem).values())
    has_budgets = any("budget" in lists for lists in config.sweep.values())
    not_nested = None if config.selection.nested else "selection.nested is false"
    return {
        "trace": None if config.trace.points else "trace.points=0, so no fit has checkpoints; add trace.points=20",
        "selection.folds": not_nested,
        "selection.max_examples": not_nested,
        "selection": None if selects else "nothing is selected: no learner has a grid of values",
        "budget": None if has_budgets else "no learner of this run has a budget in its sweep",
        "n_jobs": serial or own_cluster,
        "parallel.spare_threads": serial or ("each worker of a cluster has one thread" if backend == "dask" else None),
        "parallel.address": no_dask,
        "parallel.scheduler_file": no_dask,
        "parallel.jobqueue": no_dask,
    }


def _keys_of_file(experiment: str, searched: Sequence[Path]) -> list[str]:
    if experiment not in config_files.names("experiment", searched):
        return []
    content = config_files.read(config_files.find("experiment", experiment, searched))
    sections = {key: value if isinstance(value, Mapping) else None for key, value in content.items()}
    return [f"{key}.{name}" if name else key for key, names in sections.items() for name in names or ("",)]


def _kernel_reason(name: str, config: RunConfig) -> str | None:
    if name == "multiple" and config.kernel.percentile is None:
        return "it is a multiple of kernel.percentile, which is null"
    kernels: set[Any] = set()
    for stem, algorithm in config.algorithms.items():
        if "kernel" in instantiate.parameters(algorithm.estimator[instantiate.TARGET]):
            lists: Mapping[str, list[Any]] = {**algorithm.grid, **config.sweep.get(stem, {})}
            kernels |= {algorithm.estimator.get("kernel") or config.kernel.kernel, *lists.get("kernel", [])}
        elif algorithm.kernel_parameters:
            kernels.add(config.kernel.kernel)
    if not kernels:
        return "no learner of this run has a kernel"
    fitting = KERNELS_OF.get(name, ())
    if not fitting or kernels & set(fitting):
        return None
    return f"it is a parameter of the kernel {' or '.join(fitting)}, not of {', '.join(sorted(kernels))}"
