"""Several methods over several data sets, as Demsar (JMLR 7, 2006) compares them: ranks, Friedman, Wilcoxon, groups.

Scores are arrays (n_data_sets, n_methods), a higher score is better.  A data set on which some method has no score, a
NaN, is left out of everything.

Performance profiles of solvers (Dolan and More, Mathematical Programming 91, 2002) are functions of times, arrays
(n_problems, n_solvers), infinite where a solver never solves the problem.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from klr_bench.report.statistics.paired import Array, holm

LEAST_DATA_SETS = 6
"""The smallest two-sided p-value of Wilcoxon's test on n data sets is 2 / 2^n: 0.06 for five, 0.03 for six."""


class Friedman(NamedTuple):
    """Friedman's test that all methods are the same: chi^2 with n_methods - 1 degrees of freedom, and its p-value."""

    n: int
    statistic: float
    p: float


class Pairwise(NamedTuple):
    """p-values of all pairs, symmetric arrays (n_methods, n_methods) with 1 on the diagonal."""

    p: Array
    p_holm: Array


def complete(scores: ArrayLike) -> Array:
    """Return the rows without a NaN; ValueError for anything but a matrix."""
    values: Array = np.asarray(scores, dtype=float)
    if values.ndim != 2:
        message = f"scores: expected an array (n_data_sets, n_methods), got one of shape {values.shape}"
        raise ValueError(message)
    known: Array = values[~np.isnan(values).any(axis=1)]
    return known


def missing(n_data_sets: int, n_methods: int) -> str:
    """Say what is missing for a comparison over data sets, "" for nothing."""
    if n_methods < 2:
        return (
            f"{n_methods} of the lines {'has' if n_methods == 1 else 'have'} a value on each data set; two are needed"
        )
    if n_data_sets < LEAST_DATA_SETS:
        sets = "1 data set" if n_data_sets == 1 else f"{n_data_sets} data sets"
        return f"{sets}; a comparison over data sets needs at least {LEAST_DATA_SETS}"
    return ""


def ranks(scores: ArrayLike) -> Array:
    """Return the average rank of each method, (n_methods,): 1 is the best, tied methods share their mean rank."""
    values = complete(scores)
    found: Array = stats.rankdata(-values, axis=1).mean(axis=0)
    return found


def friedman(scores: ArrayLike) -> Friedman:
    """Return Friedman's test, corrected for ties; of fewer than three methods NaN, where all are tied p = 1."""
    values = complete(scores)
    if values.shape[1] < 3 or len(values) < 2:
        return Friedman(len(values), np.nan, np.nan)
    if (values == values[:, :1]).all():
        return Friedman(len(values), 0.0, 1.0)
    found = stats.friedmanchisquare(*values.T)
    return Friedman(len(values), float(found.statistic), float(found.pvalue))


def wilcoxon(scores: ArrayLike) -> Pairwise:
    """Return Wilcoxon's signed-rank test of each pair, two-sided, and its p-values after Holm over all pairs.

    Data sets on which the two are equal do not count; where they are equal on all, p = 1.
    """
    values = complete(scores)
    k = values.shape[1]
    pairs = list(combinations(range(k), 2))
    found = [_signed_rank(values[:, i] - values[:, j]) for i, j in pairs]
    p, adjusted = np.eye(k), np.eye(k)
    for (i, j), raw, after in zip(pairs, found, holm(found), strict=True):
        p[i, j] = p[j, i] = raw
        adjusted[i, j] = adjusted[j, i] = after
    return Pairwise(p, adjusted)


def _signed_rank(differences: Array) -> float:
    return float(stats.wilcoxon(differences).pvalue) if differences.any() else 1.0


def smallest_p(n_data_sets: int, n_methods: int) -> float:
    """Return the smallest p-value that a pair can have in Wilcoxon's test after Holm."""
    return min(1.0, n_methods * (n_methods - 1) / 2 * 2.0 ** (1 - n_data_sets))


def nemenyi(n_methods: int, n_data_sets: int, level: float = 0.95) -> float:
    """Return Nemenyi's critical difference of two average ranks: larger ones are significant at 1 - level."""
    q = stats.studentized_range.ppf(level, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_data_sets)))


def groups(average_ranks: ArrayLike, alike: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """Return the largest groups of methods of which every two are alike, best first, none inside another.

    `alike` is symmetric, (n_methods, n_methods).  Methods of a group are in the order of their ranks, and a method that
    is alike to no other is in none.  A group need not hold all methods whose ranks lie between those of two of its own.
    """
    order = np.argsort(np.asarray(average_ranks), kind="stable")
    near = [{int(j) for j in np.flatnonzero(row) if j != i} for i, row in enumerate(alike)]
    place = {int(method): number for number, method in enumerate(order)}
    found: list[tuple[int, ...]] = []

    def grow(group: set[int], candidates: set[int], done: set[int]) -> None:  # Bron and Kerbosch, with a pivot
        if not candidates and not done:
            found.append(tuple(sorted(group, key=place.__getitem__)))
            return
        pivot = max(sorted(candidates | done), key=lambda method: len(near[method] & candidates))
        for method in sorted(candidates - near[pivot]):
            grow(group | {method}, candidates & near[method], done & near[method])
            candidates, done = candidates - {method}, done | {method}

    grow(set(), set(range(len(near))), set())
    return sorted((group for group in found if len(group) > 1), key=lambda group: [place[i] for i in group])


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
