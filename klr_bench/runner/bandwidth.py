"""Kernel parameters of estimators, with gamma computed from the training rows.

gamma can be derived from a percentile of pairwise distances, or be given as a multiple of scikit-learn's "scale", such
as `4 scale` = 4 / (n_features X.var()): the grid `gamma: [0.25 scale, 1 scale, 4 scale]` suits any data set.
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

_MULTIPLE = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?) scale")
KERNEL_PARAMETERS = {
    "rbf": ("gamma",),
    "poly": ("gamma", "degree", "coef0"),
    "linear": (),
    "laplacian": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
}
DISTANCES = ("percentile", "multiple")
"""Kernel settings from which gamma is computed."""
MAX_ROWS = 2000
"""Maximum number of training rows whose pairwise distances are computed."""
KERNEL_ESTIMATOR = {TARGET: "sklearn.svm.SVC"}


def kernel_of(estimator: Parameters, shared: Parameters) -> EstimatorSpec | None:
    """Return the kernel parameters of an estimator, or None if it has no parameter `kernel`.

    Parameters that the estimator sets take precedence over `shared`, and its `gamma` over a percentile.  Parameters
    that the kernel does not use, or the estimator does not have, are omitted.
    """
    accepted = parameters(estimator[TARGET])
    if "kernel" not in accepted:
        return None
    merged = {**shared, **{name: value for name, value in estimator.items() if value is not None}}
    any_name = any(parameter.any_name for parameter in accepted.values())
    names = [name for name in ("kernel", *KERNEL_PARAMETERS.get(merged["kernel"], ())) if any_name or name in accepted]
    kernel = {name: merged[name] for name in names if merged[name] is not None}
    if kernel.get("degree", 0.5) % 1 == 0:
        kernel["degree"] = int(kernel["degree"])  # some libraries require the degree to be an int
    has_width = merged["kernel"] == "rbf" and "gamma" in names
    if has_width and estimator.get("gamma") is None and shared["percentile"] is not None:
        kernel["percentile"] = shared["percentile"]
        if shared.get("multiple", 1.0) != 1.0:
            kernel["multiple"] = shared["multiple"]
    return kernel


def resolve_kernel(kernel: Parameters | None, X_train: Any, seed: int) -> EstimatorSpec:
    """Return kernel parameters with gamma computed from the training rows where necessary.

    With a percentile, gamma is 1 / (2 sigma^2), where sigma is that percentile of the pairwise distances in a sample of
    the training rows, times `multiple`.
    """
    if kernel is None:
        return {}
    resolved = {**resolve_gamma({name: kernel[name] for name in kernel if name not in DISTANCES}, X_train)}
    if kernel.get("percentile") is not None:
        sigma = kernel.get("multiple", 1.0) * distance_percentile(X_train, kernel["percentile"], seed)
        resolved["gamma"] = 1.0 / (2.0 * sigma**2) if math.sqrt(sys.float_info.min) < sigma < math.inf else math.nan
        if not GAMMAS[0] <= resolved["gamma"] <= GAMMAS[1]:
            fail(
                f"kernel.percentile={kernel['percentile']:g}: sigma is {sigma:g}; expected gamma = 1/(2 sigma^2) "
                f"from {GAMMAS[0]:g} to {GAMMAS[1]:g}. Scale the data, or set kernel.percentile=null kernel.gamma=1."
            )
    return resolved


FAR = 1e3
"""Multiple of the largest range of a feature above which a mean is far from 0."""


def distance_percentile(X: Any, percentile: float, seed: int) -> float:
    """Return a percentile of the pairwise distances between at most 2,000 random rows of X."""
    from scipy.sparse import issparse
    from sklearn.metrics import pairwise_distances

    chosen = np.random.RandomState(seed).permutation(X.shape[0])[:MAX_ROWS]
    rows = X[chosen].astype(np.float64)
    if not issparse(rows) and np.abs(rows.mean(axis=0)).max() > FAR * np.ptp(rows, axis=0).max():
        rows -= rows.mean(axis=0)  # otherwise squared distances would cancel
    width = float(np.percentile(pairwise_distances(rows)[np.triu_indices(len(chosen), k=1)], percentile))
    if not width > 0:
        fail(
            f"kernel.percentile={percentile:g}: the distance between training rows at this percentile is "
            f"{width:g}, because many rows are identical. Choose a larger percentile, or set kernel.percentile=null "
            "kernel.gamma=<number>."
        )
    return width


def resolve_gamma(spec: Parameters, X_train: Any) -> Parameters:
    """Return a spec with a gamma such as "4 scale" replaced by its value for `X_train`."""
    multiple = _multiple(spec)
    if multiple is None:
        return dict(spec)
    from klr_bench.estimators.core.kernels import gamma_of  # which imports numba

    return {**spec, "gamma": multiple * gamma_of("scale", X_train)}  # type: ignore[no-untyped-call]


def substitute_gamma(spec: Parameters) -> Parameters:
    """Return a spec with a gamma such as "4 scale" replaced by 1, for checks without data."""
    return {**spec, "gamma": 1.0} if _multiple(spec) else dict(spec)


def _multiple(spec: Parameters) -> float | None:
    """Return the factor of a gamma such as "4 scale", or None for any other gamma."""
    value = spec.get("gamma")
    match = _MULTIPLE.fullmatch(value) if isinstance(value, str) else None
    factor = float(match[1]) if match else 0.0
    return factor if 0.0 < factor < math.inf else None


def shared_kernel(
    algorithm: AlgorithmConfig, estimator: Parameters, grid: Collection[str], kernel: KernelConfig
) -> EstimatorSpec | None:
    """Return the kernel parameters that all candidates of an algorithm share, or None.

    If gamma is in the grid, the candidates have a gamma each.  For an estimator without a parameter `kernel`, return
    the parameters listed in `kernel_parameters` of its YAML file.
    """
    declared = algorithm.kernel_parameters or ()
    shared = kernel_of(estimator, kernel.model_dump()) or _unset(declared, estimator, kernel)
    own = ("gamma", *DISTANCES) if "gamma" in grid else ()
    return {name: value for name, value in shared.items() if name not in own} or None


def _unset(names: Collection[str], estimator: Parameters, kernel: KernelConfig) -> EstimatorSpec:
    unset = {name for name in names if estimator.get(name) is None}
    if "gamma" in unset:
        unset |= {*DISTANCES}
    shared = kernel_of(KERNEL_ESTIMATOR, kernel.model_dump()) or {}
    return {name: value for name, value in shared.items() if name in unset}


def kernel_warnings(config: RunConfig) -> list[str]:
    """Return a warning for each class that may ignore the kernel parameters of the run.

    These are classes with a parameter such as gamma, but without `kernel` and without `kernel_parameters` in YAML.
    """
    warnings = []
    for stem, algorithm in config.algorithms.items():
        target = algorithm.estimator[TARGET]
        accepted = parameters(target)
        if "kernel" in accepted or algorithm.kernel_parameters is not None:
            continue
        values = {**algorithm.grid, **config.sweep.get(stem, {}), **algorithm.estimator}
        ignored = [
            name for name in KERNEL_PARAMETERS["poly"] if name in accepted and _unset([name], values, config.kernel)
        ]
        if ignored:
            names = ", ".join(ignored)
            warnings.append(
                f"{stem}: {target} ignores the run's {names}, because its YAML file has no kernel_parameters. To "
                f"use them, add kernel_parameters: [{names}] to configs/algorithm/{stem}.yaml; if the parameter has "
                "another meaning, add kernel_parameters: []."
            )
    return warnings
