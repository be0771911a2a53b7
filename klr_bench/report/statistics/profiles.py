"""Performance profiles of solvers (Dolan and More, Mathematical Programming 91, 2002).

Times are arrays (n_problems, n_solvers), in any unit; infinite where a solver never solves the problem.  A problem that
some solver was not run on, a NaN, is left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from klr_bench.report.statistics.across import complete
from klr_bench.report.statistics.paired import Array


def ratios(times: ArrayLike) -> Array:
    """Return each time over that of the fastest solver of its problem, (n_problems, n_solvers).

    Where the fastest needs no time, all that need none have 1 and others infinity; so has every solver of a problem
    that none solves.  ValueError for a negative time.
    """
    values = complete(times)
    if (values < 0).any():
        message = f"times: expected numbers of at least 0, got {values.min()}"
        raise ValueError(message)
    fastest = values.min(axis=1, keepdims=True, initial=np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = values / fastest
    found = np.where(values == fastest, 1.0, found)
    return np.where(np.isinf(values), np.inf, found)


def profile(found: ArrayLike, factors: ArrayLike) -> Array:
    """Return the share of problems that each solver solves within a factor of the fastest, (n_factors, n_solvers).

    `found` are the ratios, `factors` numbers of at least 1.  Without any problem the shares are NaN.
    """
    values, factor = np.asarray(found, dtype=float), np.asarray(factors, dtype=float)
    if not len(values):
        return np.full((len(factor), values.shape[1]), np.nan)
    within: Array = (values[None] <= factor[:, None, None]).mean(axis=1)
    return within
