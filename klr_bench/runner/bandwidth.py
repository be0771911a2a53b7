"""The kernel of an estimator: the one that a run's estimators share, and gamma from the training rows.

gamma may come from a percentile of distances, or be a multiple such as `4 scale`, which is 4 / (n_features X.var()): a
grid `gamma: [0.25 scale, 1 scale, 4 scale]` fits any data.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Collection
from typing import Any

import numpy as np

from klr_bench.config.models import GAMMAS, AlgorithmConfig, KernelConfig, RunConfig
from klr_bench.errors import fail
from klr_bench.instantiate import TARGET, EstimatorSpec, Parameters, parameters

GAMMA = "gamma"
_MULTIPLE = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?) scale")


KERNEL_PARAMETERS = {"rbf": ("gamma",), "poly": ("gamma", "degree", "coef0"), "linear": ()}
DISTANCES = ("percentile", "multiple")
"""Keys of a kernel from which gamma is computed."""
WIDTH_SAMPLE = 2000


def kernel_of(estimator: Parameters, shared: Parameters) -> EstimatorSpec | None:
    """Return the kernel of an estimator: the shared one but for its own parameters; None if it has no kernel.

    Only what the kernel uses is in it.  An own `gamma` switches the percentile off.
    """
    if "kernel" not in parameters(estimator[TARGET]):
        return None
    given = {**shared, **{name: value for name, value in estimator.items() if value is not None}}
    kernel = {"kernel": given["kernel"]}
    kernel |= {name: given[name] for name in KERNEL_PARAMETERS.get(given["kernel"], ()) if given[name] is not None}
    if kernel.get("degree", 0.5) % 1 == 0:
        kernel["degree"] = int(kernel["degree"])  # some libraries take whole numbers only
    if given["kernel"] == "rbf" and estimator.get("gamma") is None and shared["percentile"] is not None:
        kernel["percentile"] = shared["percentile"]
        if shared.get("multiple", 1.0) != 1.0:
            kernel["multiple"] = shared["multiple"]
    return kernel


def resolve_kernel(kernel: Parameters | None, X_train: Any, seed: int) -> EstimatorSpec:
    """Return the kernel's parameters for an estimator; gamma comes from the percentile of distances, if one is given.

    sigma is that percentile of the pairwise distances of a sample of the training rows, or a multiple of it; gamma is
    1 / (2 sigma^2).
    """
    if kernel is None:
        return {}
    own = {name: value for name, value in kernel.items() if name not in DISTANCES}
    resolved = {**resolve_gamma(own, X_train)}
    if kernel.get("percentile") is not None:
        sigma = kernel.get("multiple", 1.0) * distance_percentile(X_train, kernel["percentile"], seed)
        resolved["gamma"] = 1.0 / (2.0 * sigma**2) if math.sqrt(sys.float_info.min) < sigma < math.inf else math.nan
        if not GAMMAS[0] <= resolved["gamma"] <= GAMMAS[1]:
            fail(
                f"kernel.percentile={kernel['percentile']:g}: sigma is {sigma:g}, and gamma = 1/(2 sigma^2) is not "
                f"from {GAMMAS[0]:g} to {GAMMAS[1]:g}; scale the data, or set kernel.percentile=null kernel.gamma=1."
            )
    return resolved


def distance_percentile(X: Any, percentile: float, seed: int) -> float:
    """Return a percentile of the pairwise distances of at most 2,000 rows of X (n, d), drawn with `seed`."""
    from sklearn.metrics import pairwise_distances

    n = X.shape[0]
    rows = np.random.RandomState(seed).permutation(n)[:WIDTH_SAMPLE]
    distances = pairwise_distances(X[rows].astype(np.float64))
    width = float(np.percentile(distances[np.triu_indices(len(rows), k=1)], percentile))
    if not width > 0:
        fail(
            f"kernel.percentile={percentile:g}: that percentile of the distances of training rows is {width:g}, "
            "because many rows are equal; choose a larger one, or set kernel.percentile=null kernel.gamma=<number>."
        )
    return width


def resolve_gamma(spec: Parameters, X_train: Any) -> Parameters:
    """Return a spec with a number in place of a multiple of scale, for training rows X (n, d)."""
    multiple = _multiple(spec)
    if multiple is None:
        return dict(spec)
    from klr_bench.estimators.core.kernels import gamma_of  # which imports numba

    return {**spec, GAMMA: multiple * gamma_of("scale", X_train)}  # type: ignore[no-untyped-call]


def with_any_gamma(spec: Parameters) -> Parameters:
    """Return a spec with some number in place of a multiple of scale, for checks that see no rows."""
    return {**spec, GAMMA: 1.0} if _multiple(spec) else dict(spec)


def _multiple(spec: Parameters) -> float | None:
    """Return the factor of a multiple of scale, a positive number; None where gamma is something else."""
    value = spec.get(GAMMA)
    found = _MULTIPLE.fullmatch(value) if isinstance(value, str) else None
    factor = float(found[1]) if found else 0.0
    return factor if 0.0 < factor < math.inf else None


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
