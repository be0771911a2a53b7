"""Compare several methods over several data sets: ranks, tests and performance profiles.

Demsar (JMLR 7, 2006) recommends the ranks, the tests and the groups.  Scores are arrays (n_data_sets, n_methods), and
higher scores are better.  Data sets with a missing score (NaN) are ignored.

Performance profiles of solvers (Dolan and More, Mathematical Programming 91, 2002) are computed from times, arrays
(n_problems, n_solvers), which are infinite if a solver does not solve the problem.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.spatial.distance import squareform

from klr_bench.report.statistics.paired import Array, holm

DIGITS = 12
"""Number of decimals to which scores are rounded, since means of the same values in another order may differ."""


class Friedman(NamedTuple):
    """Result of Friedman's test: number of data sets, chi-squared statistic and p-value."""

    n: int
    statistic: float
    p: float


class Pairwise(NamedTuple):
    """Unadjusted and adjusted p-values of all pairs, each of shape (n_methods, n_methods)."""

    p: Array
    p_holm: Array


def complete(scores: ArrayLike) -> Array:
    """Return the rows of a matrix that have no NaN, with values rounded to DIGITS decimals."""
    values: Array = np.round(np.asarray(scores, dtype=float), DIGITS)
    rows: Array = values[~np.isnan(values).any(axis=1)]
    return rows


def ranks_on_each(scores: ArrayLike) -> Array:
    """Return the rank of each method on each data set; 1 is the best.

    The shape is (n_data_sets, n_methods), and tied methods share their mean rank.
    """
    places: Array = stats.rankdata(-complete(scores), axis=1)
    return places


def ranks(scores: ArrayLike) -> Array:
    """Return the average rank of each method over the data sets, of shape (n_methods,)."""
    average: Array = ranks_on_each(scores).mean(axis=0)
    return average


def friedman(scores: ArrayLike) -> Friedman:
    """Return Friedman's test of the hypothesis that all methods are equal, corrected for ties.

    With fewer than three methods or two data sets the result is NaN; if all methods are tied, p = 1.
    """
    values = complete(scores)
    if values.shape[1] < 3 or len(values) < 2:
        return Friedman(len(values), np.nan, np.nan)
    if (values == values[:, :1]).all():
        return Friedman(len(values), 0.0, 1.0)
    return Friedman(len(values), *map(float, stats.friedmanchisquare(*values.T)))


def wilcoxon(scores: ArrayLike) -> Pairwise:
    """Return the two-sided p-values of Wilcoxon's signed-rank test for all pairs of methods.

    They are also adjusted by Holm's method over all pairs.  Data sets with equal scores of both methods are ignored; if
    all scores are equal, p = 1.
    """
    values = complete(scores).T
    differences = [np.round(scores_a - scores_b, DIGITS) for scores_a, scores_b in combinations(values, 2)]
    p = np.array([stats.wilcoxon(d).pvalue if d.any() else 1.0 for d in differences])
    return Pairwise(*(squareform(adjusted) + np.eye(len(values)) for adjusted in (p, holm(p))))


def smallest_p(n_data_sets: int, n_methods: int) -> float:
    """Return the smallest p-value that Wilcoxon's test with Holm's adjustment can attain."""
    return min(1.0, n_methods * (n_methods - 1) / 2 * 2.0 ** (1 - n_data_sets))


def nemenyi(n_methods: int, n_data_sets: int, level: float = 0.95) -> float:
    """Return Nemenyi's critical difference of average ranks.

    Larger differences are significant at 1 - level.
    """
    q = stats.studentized_range.ppf(level, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_data_sets)))


def groups(average_ranks: ArrayLike, alike: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """Return the maximal groups of methods that are pairwise not significantly different.

    `alike` is a symmetric boolean matrix (n_methods, n_methods).  Groups and the methods in them are sorted by rank.  A
    method that differs from all others is in no group, and a group may omit methods whose ranks lie between its ranks.
    """
    order = np.argsort(np.asarray(average_ranks), kind="stable")
    near = [set(np.flatnonzero(row).tolist()) - {place} for place, row in enumerate(alike[order][:, order])]
    cliques: set[frozenset[int]] = {frozenset()}
    for place, neighbors in enumerate(near):
        larger = cliques | {(clique & neighbors) | {place} for clique in cliques}
        cliques = {candidate for candidate in larger if not any(candidate < other for other in larger)}
    return [tuple(int(order[place]) for place in clique) for clique in sorted(map(sorted, cliques)) if len(clique) > 1]


def ratios(times: ArrayLike) -> Array:
    """Return each time divided by the fastest one, of shape (n_problems, n_solvers).

    If the fastest time is 0, the ratios are 1 for the times of 0 and infinite for the others.  If no solver solves a
    problem, all its ratios are infinite.
    """
    values = complete(times)
    fastest = values.min(axis=1, keepdims=True, initial=np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        quotients = np.where(values == fastest, 1.0, values / fastest)
    return np.where(np.isinf(values), np.inf, quotients)


def profile(time_ratios: ArrayLike, factors: ArrayLike) -> Array:
    """Return the performance profile of each solver, of shape (n_factors, n_solvers).

    It is the fraction of problems that the solver solves within a factor >= 1 of the fastest time; NaN without
    problems.
    """
    values, factor = np.asarray(time_ratios, dtype=float), np.asarray(factors, dtype=float)
    if not len(values):
        return np.full((len(factor), values.shape[1]), np.nan)
    within: Array = (values[None] <= factor[:, None, None]).mean(axis=1)
    return within
