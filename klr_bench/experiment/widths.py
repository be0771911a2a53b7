"""A kernel's gamma as a multiple of the one that the training rows suggest: `4 scale` is 4 / (n_features X.var()).

A grid of such values fits any data: `gamma: [0.25 scale, 1 scale, 4 scale]`.
"""

from __future__ import annotations

import math
import re
from typing import Any

from klr_bench.experiment.targets import Parameters

GAMMA = "gamma"
_MULTIPLE = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?) scale")


def with_width(spec: Parameters, X_train: Any) -> Parameters:
    """Return a spec with a number in place of a multiple of scale, for training rows X (n, d)."""
    multiple = _multiple(spec)
    if multiple is None:
        return dict(spec)
    from klr_bench.estimators.core.kernels import gamma_of  # which imports numba

    return {**spec, GAMMA: multiple * gamma_of("scale", X_train)}  # type: ignore[no-untyped-call]


def to_be_checked(spec: Parameters) -> Parameters:
    """Return a spec with some number in place of a multiple of scale, for checks that see no rows."""
    return {**spec, GAMMA: 1.0} if _multiple(spec) else dict(spec)


def _multiple(spec: Parameters) -> float | None:
    """Return the factor of a multiple of scale, a positive number; None where gamma is something else."""
    value = spec.get(GAMMA)
    found = _MULTIPLE.fullmatch(value) if isinstance(value, str) else None
    factor = float(found[1]) if found else 0.0
    return factor if 0.0 < factor < math.inf else None
