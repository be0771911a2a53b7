"""Comparison of methods over data sets by ranks (Demsar, JMLR 7, 2006).

Scores are arrays (n_data_sets, n_methods), a higher score is better.  A data set on which a method has no score, a NaN,
is left out of everything.

Performance profiles of solvers (Dolan and More, Mathematical Programming 91, 2002) are functions of times, arrays
(n_problems, n_solvers), infinite if a solver never solves the problem.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.spatial.distance import squareform

from klr_bench.report.statistics.paired import Array, holm


class Friedman(NamedTuple):
    """Friedman's test that all methods are equal: chi^2 (n_methods - 1 dof) and p-value."""

    n: int
    statistic: float
    p: float


class Pairwise(NamedTuple):
    """Symmetric arrays (n_methods, n_methods) of pairwise p-values with 1 on the diagonal."""

    p: Array
    p_holm: Array


def complete(scores: ArrayLike) -> Array:
    """Return the rows of a matrix that contain no NaN."""
    values: Array = np.asarray(scores, dtype=float)
    known: Array = values[~np.isnan(values).any(axis=1)]
    return known


def ranks(scores: ArrayLike) -> Array:
    """Return the average rank of each method, shape (n_methods,).

    Rank 1 is the best, and tied methods share their mean rank.
    """
    average: Array = stats.rankdata(-complete(scores), axis=1).mean(axis=0)
    return average


def friedman(scores: ArrayLike) -> Friedman:
    """Return Friedman's test, corrected for ties.

    The result is NaN for fewer than three methods, and p = 1 if all are tied.
    """
    values = complete(scores)
    if values.shape[1] < 3 or len(values) < 2:
        return Friedman(len(values), np.nan, np.nan)
    if (values == values[:, :1]).all():
        return Friedman(len(values), 0.0, 1.0)
    return Friedman(len(values), *map(float, stats.friedmanchisquare(*values.T)))


def wilcoxon(scores: ArrayLike) -> Pairwise:
    """Return two-sided Wilcoxon signed-rank tests of all pairs, and Holm-adjusted p-values.

    Data sets on which both methods are equal do not count; if they are equal on all, p = 1.
    """
    values = complete(scores).T
    differences = [one - other for one, other in combinations(values, 2)]
    p = np.array([stats.wilcoxon(d).pvalue if d.any() else 1.0 for d in differences])
    return Pairwise(*(squareform(adjusted) + np.eye(len(values)) for adjusted in (p, holm(p))))


def smallest_p(n_data_sets: int, n_methods: int) -> float:
    """Return the smallest p-value that Wilcoxon's test with Holm's correction can give a pair."""
    return min(1.0, n_methods * (n_methods - 1) / 2 * 2.0 ** (1 - n_data_sets))


def nemenyi(n_methods: int, n_data_sets: int, level: float = 0.95) -> float:
    """Return Nemenyi's critical difference of two average ranks at confidence `level`."""
    q = stats.studentized_range.ppf(level, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_data_sets)))


def groups(average_ranks: ArrayLike, alike: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """Return the maximal groups of pairwise indistinguishable methods, best first.

    `alike` is symmetric, (n_methods, n_methods).  Methods of a group are in the order of their ranks, and a method that
    is alike to no other is in none.  A group need not hold all methods whose ranks lie between those of two of its own.
    """
    order = np.argsort(np.asarray(average_ranks), kind="stable")
    near = [set(np.flatnonzero(row).tolist()) - {place} for place, row in enumerate(alike[order][:, order])]
    cliques: set[frozenset[int]] = {frozenset()}
    for place, neighbors in enumerate(near):
        larger = cliques | {(clique & neighbors) | {place} for clique in cliques}
        cliques = {one for one in larger if not any(one < other for other in larger)}
    return [tuple(int(order[place]) for place in clique) for clique in sorted(map(sorted, cliques)) if len(clique) > 1]


def ratios(times: ArrayLike) -> Array:
    """Return each time divided by the fastest one per problem, shape (n_problems, n_solvers).

    If the fastest needs no time, all that need none have 1 and others infinity; so has every solver of a problem that
    none solves.
    """
    values = complete(times)
    fastest = values.min(axis=1, keepdims=True, initial=np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        quotients = np.where(values == fastest, 1.0, values / fastest)
    return np.where(np.isinf(values), np.inf, quotients)


def profile(time_ratios: ArrayLike, factors: ArrayLike) -> Array:
    """Return the share of problems solved within a factor of the fastest solver.

    The shape is (n_factors, n_solvers).

    Factors are numbers of at least 1.  Without any problem the shares are NaN.
    """
    values, factor = np.asarray(time_ratios, dtype=float), np.asarray(factors, dtype=float)
    if not len(values):
        return np.full((len(factor), values.shape[1]), np.nan)
    within: Array = (values[None] <= factor[:, None, None]).mean(axis=1)
    return within
