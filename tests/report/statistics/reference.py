"""Slow and simple reference implementations of the statistics."""

import math
from collections.abc import Sequence
from itertools import combinations

from scipy import stats


def interval(differences: Sequence[float], ratio: float, level: float) -> tuple[float, float, float, float]:
    """Return mean, low, high and p of differences that are not all equal."""
    n = len(differences)
    mean = math.fsum(differences) / n
    variance = math.fsum((d - mean) ** 2 for d in differences) / (n - 1)
    error = math.sqrt(variance * (1 / n + ratio))
    low, high = stats.t.interval(level, n - 1, loc=mean, scale=error)
    return mean, float(low), float(high), float(2 * stats.t.sf(abs(mean) / error, n - 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's method, computed from its definition."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for place, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[i]))
        adjusted[i] = highest
    return adjusted


def ranks(scores: Sequence[Sequence[float]]) -> list[float]:
    """Return average ranks, each 1 plus the number of better and half the number of equal methods."""
    k = len(scores[0])
    totals = [0.0] * k
    for row in scores:
        for i in range(k):
            better = sum(row[j] > row[i] for j in range(k))
            equal = sum(row[j] == row[i] for j in range(k) if j != i)
            totals[i] += 1 + better + equal / 2
    return [total / len(scores) for total in totals]


def groups(alike: Sequence[Sequence[bool]]) -> set[frozenset[int]]:
    """Return the maximal sets of at least two pairwise alike methods, by enumeration of all subsets."""
    k = len(alike)
    sets = [
        frozenset(chosen)
        for size in range(2, k + 1)
        for chosen in combinations(range(k), size)
        if all(alike[i][j] for i, j in combinations(chosen, 2))
    ]
    return {group for group in sets if not any(group < other for other in sets)}


def profile(times: Sequence[Sequence[float]], factor: float) -> list[float]:
    """Return the fraction of problems that each solver solves within a factor of the fastest time."""
    solved = [0] * len(times[0])
    for row in times:
        for solver, time in enumerate(row):
            solved[solver] += time < math.inf and time <= factor * min(row)
    return [count / len(times) for count in solved]
