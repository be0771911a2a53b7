"""How the numbers and cells of two runs are spelled."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby

from klr_bench.errors import shown
from klr_bench.report.against.cells import Only
from klr_bench.report.against.numbers import Number, Outcome
from klr_bench.report.against.runs import Run
from klr_bench.report.render.layout import NONE, SHOWN

MOST_NAMED = 5
"""Names in a sentence."""


def listed(names: Sequence[str], *, most: int = MOST_NAMED, of: str = "more") -> str:
    """Return the first names of a list, and how many more there are."""
    more = [f"and {len(names) - most:,} {of}"] if len(names) > most else []
    return ", ".join([*names[:most], *more])


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: "1 cell", "2 cells"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def difference_text(number: Number) -> str:
    """Return a difference with two digits that count, in the unit of print; of times their ratio."""
    if number.outcome is Outcome.MACHINE:
        return NONE if number.ratio is None else f"{number.ratio:.2f}x"
    if number.difference is None or math.isnan(number.difference):
        return NONE
    value = number.difference * SHOWN[number.metric.unit]
    if value == 0 or math.isinf(value):
        return f"{value:+g}" if value else "0"
    decimals = 1 - math.floor(math.log10(abs(value)))
    return f"{value:+.1e}" if decimals > 5 else f"{value:+,.{max(0, decimals)}f}"


def p_text(number: Number) -> str:
    """Return a corrected p-value."""
    if number.p is None:
        return NONE
    return "<0.001" if number.p < 0.001 else f"{number.p:.3f}"


def verdict(number: Number) -> str:
    """Return what became of a comparison, in words."""
    if number.outcome is Outcome.EQUAL:
        return "equal"
    if number.p is None:
        return "not tested"
    if not number.significant:
        return "no"
    side = "A" if number.larger > 0 else "B"
    if not number.metric.better:
        return f"{side} larger"
    higher = number.metric.better == "higher"
    return f"{side if higher else {'A': 'B', 'B': 'A'}[side]} better"


def runs_of(numbers: Iterable[int]) -> str:
    """Return whole numbers in ascending order, runs of them as "3 to 7"."""
    parts = []
    for _, group in groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        parts.append(str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}")
    return listed(parts)


def only_text(only: Sequence[Only], run: Run) -> str:
    """Return which cells are in one run only, those of whole data sets, algorithms and columns as one."""
    names = []
    repeats: dict[tuple[int, ...], list[str]] = {}
    for one in only:
        where = run.manifest.dataset_label(one.dataset)
        if one.algorithm is None:
            names.append(f"data set {where} ({one.n_cells:,})")
        elif one.variant is None:
            names.append(f"{run.manifest.algorithm_label(one.algorithm)} on {where} ({one.n_cells:,})")
        elif one.repeats is None:
            names.append(f"{run.label((one.algorithm, one.variant))} on {where} ({one.n_cells:,})")
        else:
            repeats.setdefault(one.repeats, []).append(f"{run.label((one.algorithm, one.variant))} on {where}")
    for missing, columns in repeats.items():
        word = "repeat" if len(missing) == 1 else "repeats"
        names.append(f"{word} {runs_of(missing)} of {listed(columns, most=1, of='more columns')}")
    return shown(listed(names), 500)
