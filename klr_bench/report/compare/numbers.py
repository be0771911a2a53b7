"""The numbers of the methods that two runs share: both means, their difference, and whether it is significant."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.report.compare.cells import is_equal, of_machine
from klr_bench.report.compare.runs import PAIRED, UNKNOWN, UNPAIRED, Pairing, Run
from klr_bench.report.manifest import Column
from klr_bench.report.measured import UNKNOWN as UNKNOWN_MACHINE
from klr_bench.report.measured import Conditions, Entry, Row, conditions_of
from klr_bench.report.significance import LEAST_REPEATS, LEVEL, split_ratio
from klr_bench.report.statistics.paired import corrected_interval, holm, welch_interval
from klr_bench.results.variants import Variant

Values = NDArray[Any]


class Outcome(Enum):
    """What becomes of two numbers."""

    EQUAL = "equal in each repeat"
    TESTED = "tested"
    MACHINE = "time or memory"
    FEW = "too few repeats"
    CONSTANT = "the same difference in each repeat, so that nothing is left to chance"
    SPLIT = "it is not known how the data are split"
    INFINITE = "an infinite number"
    ONE_ONLY = "measured in one run only"


@dataclass(frozen=True)
class Number:
    """A metric of a method in both runs, in the unit of records.csv."""

    metric: Metric
    first: Entry
    second: Entry
    outcome: Outcome
    difference: float | None = None
    """First minus second: of pairs their mean."""
    ratio: float | None = None
    """First divided by second: of times that were measured on one idle machine."""
    low: float | None = None
    """The ends of the 95 % interval of the difference, if it is tested."""
    high: float | None = None
    p_raw: float | None = None
    p: float | None = None
    """After Holm's correction for all comparisons of the metric."""

    @property
    def significant(self) -> bool:
        """Whether the difference is more than chance explains."""
        return self.p is not None and self.p < 1 - LEVEL


@dataclass(frozen=True)
class Shared:
    """A method that both runs have on a data set.  Of pairs, its numbers are those of the repeats that both have."""

    algorithm: str
    variant: Variant
    label: str
    numbers: Sequence[Number]
    conditions: tuple[Conditions, Conditions]
    left_out: tuple[int, int]
    """Numbers of repeats that were not successful, and enter no mean."""
    timed_out: tuple[bool, bool]
    """True if no repeat succeeded; the values are then those of repeats that the time limit stopped."""


@dataclass(frozen=True)
class Block:
    """A data set."""

    dataset: str
    label: str
    pairing: Pairing
    columns: Sequence[Shared]


def compare_numbers(
    first: Run, second: Run, pairings: Mapping[str, Pairing], columns: Sequence[str] | None = None
) -> list[Block]:
    """Return the numbers of each data set and method that both have, of the metrics that a table shows.

    `columns` are the names of other metrics.
    """
    asked = list(first.manifest.config.datasets)
    metrics = _metrics(first, second, columns)
    blocks = []
    for dataset in sorted(pairings, key=lambda name: (asked.index(name) if name in asked else len(asked), name)):
        both = first.columns[dataset].keys() & second.columns[dataset].keys()
        pairing = pairings[dataset]
        found = [
            _shared(first, second, dataset, column, pairing, metrics)
            for column in sorted(both, key=first.manifest.order)
        ]
        blocks.append(Block(dataset, first.manifest.dataset_label(dataset), pairing, found))
    return _corrected(blocks)


def numbers_of(blocks: Sequence[Block]) -> list[Number]:
    """Return all numbers of some data sets, in their order."""
    return [number for block in blocks for column in block.columns for number in column.numbers]


def _metrics(first: Run, second: Run, columns: Sequence[str] | None) -> list[Metric]:
    """Return the metrics of the tables of both; in place of one that compares two methods what it is made of."""
    usual = [metric.name for metric in METRICS.values() if metric.usual]
    known = second.manifest.metrics | first.manifest.metrics
    names = columns or [name for run in (first, second) for name in run.manifest.config.metrics or usual]
    names = [known[name].compares or name for name in names]
    return [known[name] for name in dict.fromkeys(names)]


def _shared(
    first: Run, second: Run, dataset: str, column: Column, pairing: Pairing, metrics: Sequence[Metric]
) -> Shared:
    every = first.columns[dataset][column], second.columns[dataset][column]
    ours, theirs = counting = _counting(every[0]), _counting(every[1])
    both = sorted(ours.keys() & theirs.keys())
    if pairing.kind != UNPAIRED and both:
        ours, theirs = ({repeat: rows[repeat] for repeat in both} for rows in (ours, theirs))
    conditions = conditions_of(ours.values()), conditions_of(theirs.values())
    numbers = [_number(metric, ours, theirs, pairing, conditions) for metric in metrics]
    late = [any(row["status"] == "timeout" for row in rows.values()) for rows in counting]
    return Shared(
        *column,
        first.label(column),
        [one for one in numbers if one.first.mean is not None or one.second.mean is not None],
        conditions,
        (len(every[0]) - len(counting[0]), len(every[1]) - len(counting[1])),
        (late[0], late[1]),
    )


def _counting(rows: Mapping[int, Row]) -> dict[int, Row]:
    """Return the repeats that enter a mean: the successful ones, those that a time limit ended if there are none."""
    found = {status: {n: row for n, row in rows.items() if row["status"] == status} for status in ("ok", "timeout")}
    return found["ok"] or found["timeout"]


def _number(
    metric: Metric,
    ours: Mapping[int, Row],
    theirs: Mapping[int, Row],
    pairing: Pairing,
    conditions: tuple[Conditions, Conditions],
) -> Number:
    sides = [
        {n: value for n, row in sorted(rows.items()) if not math.isnan(value := row.get(metric.name, math.nan))}
        for rows in (ours, theirs)
    ]
    both = [n for n in sides[0] if n in sides[1]]
    if pairing.kind == PAIRED and both:
        sides = [{n: side[n] for n in both} for side in sides]
    one, other = (np.array([*side.values()]) for side in sides)
    found = Number(metric, Entry.of(one), Entry.of(other), Outcome.ONE_ONLY)
    first, second = found.first.mean, found.second.mean
    if first is None or second is None:
        return found
    found = replace(found, difference=first - second)
    if of_machine(metric):
        alike = conditions[0].alike(conditions[1]) and UNKNOWN_MACHINE not in conditions[0].machines
        ratio = first / second if alike and metric.unit != "percent" and second else None
        return replace(found, outcome=Outcome.MACHINE, ratio=ratio)
    outcome = _outcome(one, other, pairing, in_pairs=sides[0].keys() == sides[1].keys())
    if outcome is Outcome.EQUAL:
        return replace(found, outcome=outcome, difference=0.0)
    if outcome is not Outcome.TESTED:
        return replace(found, outcome=outcome)
    if pairing.kind == PAIRED:
        share = float(np.mean([split_ratio(ours[n]) for n in both])) if pairing.resampled else 0.0
        if not math.isfinite(share):
            return replace(found, outcome=Outcome.SPLIT)
        interval = corrected_interval(one - other, share, LEVEL)
    else:
        interval = welch_interval(one, other, LEVEL)
    low, high, p = (float(value) for value in (interval.low, interval.high, interval.p))
    return replace(found, outcome=outcome, low=low, high=high, p_raw=p)


def _outcome(one: Values, other: Values, pairing: Pairing, *, in_pairs: bool) -> Outcome:
    """Return whether a difference can be tested, or why it cannot."""
    equal = in_pairs and all(map(is_equal, one, other))
    if equal or all(is_equal(value, one[0]) for value in [*one, *other]):
        return Outcome.EQUAL
    if not math.isfinite(float(one.mean()) - float(other.mean())):
        return Outcome.INFINITE
    if pairing.kind == UNKNOWN:
        return Outcome.SPLIT
    if min(one.size, other.size) < LEAST_REPEATS:
        return Outcome.FEW
    spreads = [np.ptp(one - other)] if pairing.kind == PAIRED else [np.ptp(one), np.ptp(other)]
    nothing = 1e-12 * max(1.0, float(np.abs(np.concatenate([one, other])).max()))
    return Outcome.TESTED if max(spreads) > nothing else Outcome.CONSTANT


def _corrected(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks with p-values that are corrected for the number of comparisons of the same metric."""
    raw: dict[str, list[float]] = {}
    for number in numbers_of(blocks):
        if number.p_raw is not None:
            raw.setdefault(number.metric.name, []).append(number.p_raw)
    waiting = {name: iter(holm(values).tolist()) for name, values in raw.items()}

    def corrected(number: Number) -> Number:
        return number if number.p_raw is None else replace(number, p=next(waiting[number.metric.name]))

    return [
        replace(
            block,
            columns=[replace(column, numbers=[corrected(one) for one in column.numbers]) for column in block.columns],
        )
        for block in blocks
    ]
