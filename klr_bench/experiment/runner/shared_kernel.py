"""The kernel that the learners of a run share, also for classes without a parameter `kernel`."""

from __future__ import annotations

from collections.abc import Collection

from klr_bench.experiment.config.models import AlgorithmConfig, KernelConfig, RunConfig
from klr_bench.experiment.selection import DISTANCES, KERNEL_PARAMETERS, EstimatorSpec, kernel_of
from klr_bench.experiment.targets import TARGET, Parameters, parameters

ANY_WITH_KERNEL = {TARGET: "sklearn.svm.SVC"}


def shared_kernel(algorithm: AlgorithmConfig, estimator: Parameters, kernel: KernelConfig) -> EstimatorSpec | None:
    """Return the kernel of an estimator; without a parameter `kernel`, the parameters that its YAML file declares."""
    declared = algorithm.kernel_parameters or ()
    return kernel_of(estimator, kernel.model_dump()) or _left_to_run(declared, estimator, kernel) or None


def _left_to_run(names: Collection[str], given: Parameters, kernel: KernelConfig) -> EstimatorSpec:
    """Return the part of the run's kernel that sets the parameters `names`, except those that are given."""
    wanted = {name for name in names if given.get(name) is None}
    if "gamma" in wanted:
        wanted |= {*DISTANCES}
    return {
        name: value for name, value in (kernel_of(ANY_WITH_KERNEL, kernel.model_dump()) or {}).items() if name in wanted
    }


def kernel_warnings(config: RunConfig) -> list[str]:
    """Return a sentence for each class with such a parameter, but without `kernel`, whose file declares nothing."""
    found = []
    for stem, algorithm in config.algorithms.items():
        target = algorithm.estimator[TARGET]
        known = parameters(target)
        if "kernel" in known or algorithm.kernel_parameters is not None:
            continue
        given = {**algorithm.grid, **config.sweep.get(stem, {}), **algorithm.estimator}
        own = [
            name for name in KERNEL_PARAMETERS["poly"] if name in known and _left_to_run([name], given, config.kernel)
        ]
        if own:
            names = ", ".join(own)
            found.append(
                f"{stem}: {target} keeps its own {names}, because its YAML file has no kernel_parameters. To use the "
                f"run's kernel, add kernel_parameters: [{names}] to configs/algorithm/{stem}.yaml; if the name means "
                "something else there, add kernel_parameters: []."
            )
    return found
