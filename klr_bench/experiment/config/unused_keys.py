"""Keys that have no effect in a run: refused, with the reason."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from klr_bench.errors import KlrBenchError
from klr_bench.experiment import targets
from klr_bench.experiment.config import files as config_files
from klr_bench.experiment.config.models import KERNELS, LEFT_TO_SELECTION, RunConfig

KERNELS_OF = {
    "kernel.percentile": ("rbf",),
    "kernel.multiple": ("rbf",),
    "kernel.gamma": ("rbf", "poly"),
    "kernel.degree": ("poly",),
    "kernel.coef0": ("poly",),
}
"""The kernels that a key is a parameter of."""
NEUTRAL = {"experiment", "name", "title", "seed", "repeats", "shard", "force", "results_dir", "figures", "metrics"}
"""Keys of the command line beside which all keys of an experiment should have an effect."""
OF_NESTED = ("selection.folds", "selection.max_examples")
"""Keys that say which training rows a nested selection uses."""


def check_unused_keys(config: RunConfig, overrides: Collection[str], searched: Sequence[Path]) -> None:
    """Refuse the first key, if it is not null, that this run would not read.

    `overrides` are the keys of the command line.  If they change nothing of what the experiment's own file says, such
    as its algorithms or its kernel, the keys of that file are checked as well.  Raises KlrBenchError.
    """
    if all(key in NEUTRAL or key.startswith("data.") for key in overrides):
        overrides = {*overrides, *_keys_of_file(config.experiment, searched)}
    _check_own_kernels(config)
    backend, parallel = config.parallel.backend, config.parallel
    serial = "the backend is serial: one process" if backend == "serial" else None
    no_dask = None if backend == "dask" else f"the backend is {backend}; add parallel=dask"
    own_cluster = "a cluster has the workers that it has" if parallel.address or parallel.scheduler_file else None
    reasons = {
        "trace.": None if config.trace.points else "trace.points=0, so no fit has checkpoints; add trace.points=20",
        **({} if config.selection.nested else dict.fromkeys(OF_NESTED, "selection.nested is false")),
        "selection.": None if _selects(config) else "nothing is selected: no learner has a grid of values",
        "budget": None if _has_budgets(config) else "no learner of this run has a budget in its sweep",
        "n_jobs": serial or own_cluster,
        "parallel.spare_threads": serial or ("each worker of a cluster has one thread" if backend == "dask" else None),
        "parallel.address": no_dask,
        "parallel.scheduler_file": no_dask,
    }
    for key in sorted(overrides):
        reason = _kernel_reason(key, config) if key.startswith("kernel.") else None
        if key not in ("trace.points", "trace.rows"):
            reason = reason or next((why for start, why in reasons.items() if why and key.startswith(start)), None)
        if reason and _value(config, key) is not None:
            message = f"{key}={_value(config, key)}: has no effect, because {reason}. Leave it out."
            raise KlrBenchError(message)


def _keys_of_file(experiment: str, searched: Sequence[Path]) -> list[str]:
    """Return the dotted keys that stand in the file of an experiment, without those that it takes from others."""
    if experiment not in config_files.names("experiment", searched):
        return []
    content = config_files.read(config_files.find("experiment", experiment, searched))
    sections = {key: value for key, value in content.items() if isinstance(value, Mapping)}
    return [*content, *(f"{section}.{name}" for section, values in sections.items() for name in values)]


def _has_budgets(config: RunConfig) -> bool:
    return any("budget" in lists for lists in config.sweep.values())


def _check_own_kernels(config: RunConfig) -> None:
    """Refuse a kernel's parameter that stands in an estimator beside a kernel of another kind."""
    for stem, algorithm in config.algorithms.items():
        estimator = algorithm.estimator
        kernels = {estimator.get("kernel"), *config.sweep.get(stem, {}).get("kernel", ())} - {None}
        kernels |= set(algorithm.grid.get("kernel", ())) if kernels else set()
        for name, value in estimator.items():
            fitting = KERNELS_OF.get(f"kernel.{name}")
            if fitting and value is not None and kernels and kernels <= set(KERNELS) - set(fitting):
                message = (
                    f"algorithms.{stem}.estimator.{name}={value}: has no effect, because it belongs to the kernel "
                    f"{' or '.join(fitting)}, and the estimator has kernel={', '.join(sorted(kernels))}. Leave it out."
                )
                raise KlrBenchError(message)


def _kernel_reason(key: str, config: RunConfig) -> str | None:
    if key == "kernel.multiple" and config.kernel.percentile is None:
        return "it is a multiple of kernel.percentile, which is null"
    kernels = {name for stem in config.algorithms for name in _kernels(stem, config)}
    if not kernels:
        return "no learner of this run has a kernel"
    fitting = KERNELS_OF.get(key)
    if fitting is None or kernels & set(fitting):
        return None
    return f"it belongs to the kernel {' or '.join(fitting)}, and this run has {', '.join(sorted(kernels))}"


def _kernels(stem: str, config: RunConfig) -> list[Any]:
    """Return the kernels that an algorithm is run with, if its constructor takes one or a parameter of one."""
    algorithm = config.algorithms[stem]
    if "kernel" not in targets.parameters(algorithm.estimator[targets.TARGET]):
        return [config.kernel.kernel] if algorithm.kernel_parameters else []
    own = algorithm.estimator.get("kernel") or config.kernel.kernel
    listed: Mapping[str, list[Any]] = {**algorithm.grid, **config.sweep.get(stem, {})}
    return [own, *listed.get("kernel", [])]


def _selects(config: RunConfig) -> bool:
    return any(
        len(values) > 1 and (name not in swept or LEFT_TO_SELECTION in swept[name])
        for stem, algorithm in config.algorithms.items()
        for swept in [config.sweep.get(stem, {})]
        for name, values in algorithm.grid.items()
    )


def _value(config: RunConfig, key: str) -> Any:
    """Return the value of a dotted key of a section, or None."""
    section, _, name = key.partition(".")
    return getattr(getattr(config, section, None), name, None) if name else getattr(config, section, None)
