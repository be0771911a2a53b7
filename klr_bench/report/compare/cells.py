"""Which cells two runs share, where equal keys have other numbers, and which parameters of the fits differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from klr_bench.errors import shown
from klr_bench.metrics.metric import Metric
from klr_bench.report.compare.runs import PAIRED, Pairing, Run
from klr_bench.report.labels import NONE, listed
from klr_bench.report.manifest import Column
from klr_bench.report.measured import Row
from klr_bench.results.merge import ROUNDING
from klr_bench.results.record import COLUMNS, FINISHED

LONGEST = 40
"""Characters of the value of a parameter that is shown."""
MISSING = object()


class Mismatch(NamedTuple):
    """A metric with both values, or "status" with both words."""

    metric: str
    first: float | str
    second: float | str


class Conflict(NamedTuple):
    """A cell with equal keys and other numbers: nothing that its result should depend on explains them."""

    dataset: str
    column: Column
    repeat: int
    mismatch: Mismatch
    """The first number that differs."""


class Unmatched(NamedTuple):
    """Cells of a data set, algorithm, method or some of its repeats that only one run has."""

    name: str
    n_cells: int
    repeats: tuple[int, ...] = ()
    """Empty: all of them."""


@dataclass(frozen=True)
class Cells:
    """The cells of two runs; a cell is (data set, algorithm, variant, repeat)."""

    n_first: int
    n_second: int
    n_both: int
    n_equal_keys: int
    n_equal_numbers: int
    """Cells that both have whose numbers are equal up to rounding, but for times and memory."""
    discrepancies: Mapping[str, list[float]]
    """By metric, its differences in cells with equal seed, data and split; NaN for one of status or without a value."""
    n_timeouts: int
    """Cells with equal keys and other numbers which a time limit ended: their numbers depend on the machine's speed."""
    conflicts: Sequence[Conflict]
    unmatched: tuple[Sequence[Unmatched], Sequence[Unmatched]]
    measured: tuple[Sequence[str], Sequence[str]]
    """The metrics that one run alone has measured: the first, and the second."""

    @property
    def equal(self) -> bool:
        """Whether both have the same cells with the same keys and numbers."""
        counts = {self.n_first, self.n_second, self.n_both, self.n_equal_keys, self.n_equal_numbers}
        return len(counts) == 1 and not any(self.measured)


def compare_cells(first: Run, second: Run, pairings: Mapping[str, Pairing]) -> Cells:
    """Return what is in both, what is in one, and what is equal; `pairings` are those of the data sets in both."""
    ours, theirs = _measured(first), _measured(second)
    n_both = n_equal_keys = n_equal_numbers = n_timeouts = 0
    conflicts: list[Conflict] = []
    found: dict[str, list[float]] = {}
    for dataset, column, repeat, one, other in both_have(first, second):
        mismatches = list(_mismatches(one, other, sorted(ours & theirs)))
        n_both += 1
        n_equal_numbers += not mismatches
        for mismatch in mismatches if pairings[dataset].kind == PAIRED else ():
            found.setdefault(mismatch.metric, []).append(_distance(mismatch))
        if one["key"] != other["key"]:
            continue
        n_equal_keys += 1
        if mismatches and "timeout" in (one["status"], other["status"]):
            n_timeouts += 1
        elif mismatches and mismatches[0].metric != "status":  # that one failed says nothing of its numbers
            conflicts.append(Conflict(dataset, column, repeat, mismatches[0]))
    return Cells(
        len(first.results.records),
        len(second.results.records),
        n_both,
        n_equal_keys,
        n_equal_numbers,
        found,
        n_timeouts,
        conflicts,
        (list(_unmatched(first, second)), list(_unmatched(second, first))),
        (sorted(ours - theirs), sorted(theirs - ours)),
    )


def both_have(first: Run, second: Run) -> Iterator[tuple[str, Column, int, Row, Row]]:
    """Yield the cells that both runs have, with both records."""
    for dataset, columns in first.columns.items():
        for column, rows in columns.items():
            others = second.columns.get(dataset, {}).get(column, {})
            for repeat in sorted(rows.keys() & others.keys()):
                yield dataset, column, repeat, rows[repeat], others[repeat]


def of_machine(metric: Metric | None) -> bool:
    """Return True if a number describes the machine: a time, memory, or its load."""
    return metric is not None and (metric.unit in ("s", "min", "MB") or metric.name == "load")


def is_equal(one: float, other: float) -> bool:
    """Return True if two values are equal up to rounding, or both are missing."""
    return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING)


def _measured(run: Run) -> set[str]:
    """Return the names of the stored numbers that some record has, but for those that describe the machine."""
    frame, known = run.results.records, run.manifest.metrics
    names = [name for name in frame.columns if name in known or name not in COLUMNS]
    return {name for name in names if not of_machine(known.get(name)) and frame[name].notna().any()}


def _mismatches(ours: Row, theirs: Row, names: Sequence[str]) -> Iterator[Mismatch]:
    """Yield each number that differs, or the status; the numbers of a fit that failed say nothing."""
    if ours["status"] != theirs["status"]:
        yield Mismatch("status", str(ours["status"]), str(theirs["status"]))
    elif ours["status"] in FINISHED:
        for name in names:
            if not is_equal(ours[name], theirs[name]):
                yield Mismatch(name, float(ours[name]), float(theirs[name]))


def _distance(mismatch: Mismatch) -> float:
    _, first, second = mismatch
    return math.nan if isinstance(first, str) or isinstance(second, str) else abs(first - second)


def _unmatched(run: Run, other: Run) -> Iterator[Unmatched]:
    """Yield the cells that a run has and the other has not, whole data sets and algorithms as one."""
    for dataset, columns in run.columns.items():
        label, known = run.manifest.dataset_label(dataset), other.columns.get(dataset)
        if known is None:
            yield Unmatched(f"data set {label}", sum(map(len, columns.values())))
            continue
        algorithms = {algorithm for algorithm, _ in known}
        for algorithm in dict.fromkeys(algorithm for algorithm, _ in columns):
            mine = {column: rows for column, rows in columns.items() if column[0] == algorithm}
            if algorithm not in algorithms:
                name = f"{run.manifest.algorithm_label(algorithm)} on {label}"
                yield Unmatched(name, sum(map(len, mine.values())))
                continue
            for column, rows in mine.items():
                missing = tuple(sorted(rows.keys() - known.get(column, {}).keys()))
                if missing:
                    repeats = missing if column in known else ()
                    yield Unmatched(f"{run.label(column)} on {label}", len(missing), repeats)


def unmatched_text(unmatched: Sequence[Unmatched]) -> str:
    """Return which cells are in one run only; methods with the same missing repeats are named together."""
    names = [f"{one.name} ({one.n_cells:,})" for one in unmatched if not one.repeats]
    repeats: dict[tuple[int, ...], list[str]] = {}
    for one in unmatched:
        if one.repeats:
            repeats.setdefault(one.repeats, []).append(one.name)
    for missing, methods in repeats.items():
        word = "repeat" if len(missing) == 1 else "repeats"
        names.append(f"{word} {_ranges(missing)} of {listed(methods, most=1, of='more columns')}")
    return shown(listed(names), 500)


def _ranges(numbers: Iterable[int]) -> str:
    """Return whole numbers in ascending order, runs of them as "3 to 7"."""
    parts = []
    for _, group in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        parts.append(str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}")
    return listed(parts)


class FixedParameter(NamedTuple):
    """A parameter that has one value in all fits of a method, and another one in the other run."""

    parameter: str
    first: str
    second: str
    methods: tuple[str, ...]
    """Print names of the methods, with their data sets."""


class ChosenParameter(NamedTuple):
    """A parameter that selection chooses or a fit computes in each repeat, which differs in some of the paired fits."""

    parameter: str
    n_differ: int
    n_fits: int


def compare_parameters(
    first: Run, second: Run, pairings: Mapping[str, Pairing]
) -> tuple[Sequence[FixedParameter], Sequence[ChosenParameter]]:
    """Return the parameters that differ; those that vary with the splits only if both have the same splits."""
    fixed: dict[tuple[str, str, str], list[str]] = {}
    chosen: dict[str, tuple[int, int]] = {}
    for dataset, pairing in pairings.items():
        for column, rows in first.columns[dataset].items():
            others = second.columns[dataset].get(column, {})
            params = [[row["params"] for row in side.values()] for side in (rows, others)]
            names = dict.fromkeys(name for side in params for values in side for name in values) if others else ()
            for name in names:
                ours, theirs = ([values.get(name, MISSING) for values in side] for side in params)
                if all(_same(value, side[0]) for side in (ours, theirs) for value in side):
                    if not _same(ours[0], theirs[0]):
                        key = shown(name, LONGEST), _text(ours[0]), _text(theirs[0])
                        where = f"{first.label(column)} on {first.manifest.dataset_label(dataset)}"
                        fixed.setdefault(key, []).append(where)
                elif pairing.kind == PAIRED:
                    both = rows.keys() & others.keys()
                    pairs = ([side[n]["params"].get(name, MISSING) for side in (rows, others)] for n in both)
                    differ, n_fits = chosen.get(name, (0, 0))
                    chosen[name] = differ + sum(not _same(*pair) for pair in pairs), n_fits + len(both)
    return (
        [FixedParameter(*key, tuple(methods)) for key, methods in fixed.items()],
        [ChosenParameter(shown(name, LONGEST), *counts) for name, counts in chosen.items() if counts[0]],
    )


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return is_equal(one, other)
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _text(value: Any) -> str:
    if value is MISSING:
        return NONE
    return f"{value:g}" if isinstance(value, float) else shown(value, LONGEST)
