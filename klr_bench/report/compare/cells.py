"""Which cells two runs share, where equal keys have other numbers, and which parameters of the fits differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from klr_bench.errors import shown
from klr_bench.experiment.cells import COLUMNS, FINISHED
from klr_bench.experiment.measure.metric import Metric
from klr_bench.experiment.merge import ROUNDING
from klr_bench.experiment.variants import Variant
from klr_bench.report.compare.runs import PAIRED, Pairing, Run
from klr_bench.report.manifest import Column
from klr_bench.report.measured import Row

LONGEST = 40
"""Characters of the value of a parameter that is shown."""
ABSENT = "-"
MISSING = object()


class Mismatch(NamedTuple):
    """A metric with both values, or "status" with both words."""

    metric: str
    first: float | str
    second: float | str

    @property
    def distance(self) -> float:
        """How far the values are from each other, NaN where one is missing or a word."""
        if isinstance(self.first, str) or isinstance(self.second, str):
            return math.nan
        return abs(self.first - self.second)


@dataclass(frozen=True)
class Unmatched:
    """Cells that the other run does not have."""

    dataset: str
    algorithm: str | None
    """None: all of the data set."""
    variant: Variant | None
    """None: all of the algorithm."""
    repeats: tuple[int, ...] | None
    """None: all of the column."""
    n_cells: int


@dataclass(frozen=True)
class Conflict:
    """A cell with equal keys and other numbers: nothing that its result should depend on explains them."""

    dataset: str
    algorithm: str
    variant: Variant
    repeat: int
    mismatch: Mismatch
    """The first number that differs."""


@dataclass(frozen=True)
class Discrepancy:
    """A number that differs in cells with equal seed, data and split, or the status of some."""

    metric: str
    n_cells: int
    largest: float
    """The largest difference; NaN of a status, and where one of the two is missing in all of them."""


@dataclass(frozen=True)
class Cells:
    """The cells of two runs; a cell is (data set, algorithm, variant, repeat)."""

    n_first: int
    n_second: int
    n_both: int
    n_equal_keys: int
    n_equal_numbers: int
    """Cells that both have whose numbers are equal up to rounding, but for times and memory."""
    discrepancies: Sequence[Discrepancy]
    """What differs in cells with equal seed, data and split."""
    n_timeouts: int
    """Cells with equal keys and other numbers which a time limit ended: their numbers depend on the machine's speed."""
    conflicts: Sequence[Conflict]
    only_first: Sequence[Unmatched]
    only_second: Sequence[Unmatched]
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
    names = sorted(ours & theirs)
    n_equal_keys = n_equal_numbers = n_timeouts = 0
    conflicts: list[Conflict] = []
    found: dict[str, list[float]] = {}
    both = list(_both(first, second))
    for dataset, column, repeat, one, other in both:
        apart = list(_differences(one, other, names))
        n_equal_numbers += not apart
        for mismatch in apart if pairings[dataset].kind == PAIRED else ():
            found.setdefault(mismatch.metric, []).append(mismatch.distance)
        if one["key"] != other["key"]:
            continue
        n_equal_keys += 1
        if apart and "timeout" in (one["status"], other["status"]):
            n_timeouts += 1
        elif apart and apart[0].metric != "status":  # that one failed says nothing of its numbers
            conflicts.append(Conflict(dataset, *column, repeat, apart[0]))
    return Cells(
        len(first.results.records),
        len(second.results.records),
        len(both),
        n_equal_keys,
        n_equal_numbers,
        [Discrepancy(name, len(values), _largest(values)) for name, values in found.items()],
        n_timeouts,
        conflicts,
        list(_only(first, second)),
        list(_only(second, first)),
        (sorted(ours - theirs), sorted(theirs - ours)),
    )


def _largest(distances: Sequence[float]) -> float:
    return max((distance for distance in distances if not math.isnan(distance)), default=math.nan)


def of_machine(metric: Metric | None) -> bool:
    """Return True if a number tells of the machine: a time, memory, or its load."""
    return metric is not None and (metric.unit in ("s", "min", "MB") or metric.name == "load")


def is_equal(one: float, other: float) -> bool:
    """Return True if two numbers are equal up to rounding; two that are missing are."""
    return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING)


def _both(first: Run, second: Run) -> Iterator[tuple[str, Column, int, Row, Row]]:
    for dataset, columns in first.columns.items():
        for column, rows in columns.items():
            others = second.columns.get(dataset, {}).get(column, {})
            for repeat in sorted(rows.keys() & others.keys()):
                yield dataset, column, repeat, rows[repeat], others[repeat]


def _measured(run: Run) -> set[str]:
    """Return the names of the stored numbers that some record has, but for those that tell of the machine."""
    frame, known = run.results.records, run.manifest.metrics
    names = [name for name in frame.columns if name in known or name not in COLUMNS]
    return {name for name in names if not of_machine(known.get(name)) and frame[name].notna().any()}


def _differences(ours: Row, theirs: Row, names: Sequence[str]) -> Iterator[Mismatch]:
    """Yield each number that differs, or the status.

    The numbers of a fit that failed say nothing; that one failed and the other did not does.
    """
    if ours["status"] != theirs["status"]:
        yield Mismatch("status", str(ours["status"]), str(theirs["status"]))
    elif ours["status"] in FINISHED:
        for name in names:
            if not is_equal(ours[name], theirs[name]):
                yield Mismatch(name, float(ours[name]), float(theirs[name]))


def _only(run: Run, other: Run) -> Iterator[Unmatched]:
    """Yield the cells that a run has and the other has not, whole data sets and algorithms as one."""
    for dataset, columns in run.columns.items():
        known = other.columns.get(dataset)
        if known is None:
            yield Unmatched(dataset, None, None, None, sum(map(len, columns.values())))
            continue
        algorithms = {algorithm for algorithm, _ in known}
        for algorithm in dict.fromkeys(algorithm for algorithm, _ in columns):
            mine = {column: rows for column, rows in columns.items() if column[0] == algorithm}
            if algorithm not in algorithms:
                yield Unmatched(dataset, algorithm, None, None, sum(map(len, mine.values())))
                continue
            for column, rows in mine.items():
                missing = tuple(sorted(rows.keys() - known.get(column, {}).keys()))
                if column not in known:
                    yield Unmatched(dataset, *column, None, len(rows))
                elif missing:
                    yield Unmatched(dataset, *column, missing, len(missing))


@dataclass(frozen=True)
class FixedParameter:
    """A parameter that has one value in all fits of a column, and another one in the other run."""

    parameter: str
    first: str
    second: str
    columns: tuple[tuple[str, str], ...]
    """(data set, print name of the column)"""


@dataclass(frozen=True)
class ChosenParameter:
    """A parameter that selection chooses or a fit computes in each repeat, which differs in some of the paired fits."""

    parameter: str
    n_differ: int
    n_fits: int


def compare_parameters(
    first: Run, second: Run, pairings: dict[str, Pairing]
) -> tuple[Sequence[FixedParameter], Sequence[ChosenParameter]]:
    """Return the parameters that differ; those that vary with the splits only where both have the same splits."""
    fixed: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    chosen: dict[str, tuple[int, int]] = {}
    for dataset, pairing in pairings.items():
        theirs = second.columns[dataset]
        for column, rows in first.columns[dataset].items():
            others = theirs.get(column, {})
            values = [row["params"] for row in rows.values()], [row["params"] for row in others.values()]
            names = dict.fromkeys(name for side in values for params in side for name in params) if others else ()
            for name in names:
                ours, other = ([params.get(name, MISSING) for params in side] for side in values)
                if _constant(ours) and _constant(other):
                    if not _same(ours[0], other[0]):
                        key = shown(name, LONGEST), _text(ours[0]), _text(other[0])
                        fixed.setdefault(key, []).append((dataset, first.label(column)))
                elif pairing.kind == PAIRED:
                    both = rows.keys() & others.keys()
                    pairs = ([side[n]["params"].get(name, MISSING) for side in (rows, others)] for n in both)
                    differ, n_fits = chosen.get(name, (0, 0))
                    chosen[name] = differ + sum(not _same(*pair) for pair in pairs), n_fits + len(both)
    return (
        [FixedParameter(*key, tuple(columns)) for key, columns in fixed.items()],
        [ChosenParameter(shown(name, LONGEST), *counts) for name, counts in chosen.items() if counts[0]],
    )


def _constant(values: Sequence[Any]) -> bool:
    return all(_same(value, values[0]) for value in values)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return is_equal(one, other)
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _text(value: Any) -> str:
    if value is MISSING:
        return ABSENT
    return f"{value:g}" if isinstance(value, float) else shown(value, LONGEST)
