"""The numbers of the columns that two runs share: both means, their difference, and whether it is significant."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from klr_bench.experiment.measure.catalogue import METRICS
from klr_bench.experiment.measure.metric import Metric
from klr_bench.experiment.variants import Variant
from klr_bench.report.against.cells import is_equal, of_machine
from klr_bench.report.against.pairing import PAIRED, UNKNOWN, UNPAIRED, Pairing
from klr_bench.report.against.runs import Row, Run
from klr_bench.report.against.significance import (
    FEWEST,
    LEVEL,
    Interval,
    corrected_interval,
    welch_interval,
)
from klr_bench.report.conditions import UNKNOWN as UNKNOWN_MACHINE
from klr_bench.report.conditions import Conditions, conditions_of
from klr_bench.report.manifest import Column
from klr_bench.report.statistics.paired import holm
from klr_bench.report.table import Entry

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
    """A metric of a column in both runs, in the unit of records.csv."""

    metric: Metric
    first: Entry
    second: Entry
    outcome: Outcome
    difference: float | None = None
    """First minus second: of pairs their mean."""
    ratio: float | None = None
    """First divided by second: of times that were measured on one idle machine."""
    interval: Interval | None = None
    """95 % interval of the difference, and the p-value before its correction."""
    p: float | None = None
    """After Holm's correction for all comparisons of the metric."""

    @property
    def significant(self) -> bool:
        """Whether the difference is more than chance explains."""
        return self.p is not None and self.p < LEVEL

    @property
    def larger(self) -> int:
        """1 where the first is larger, -1 where the second is, else 0."""
        return 0 if not self.difference or math.isnan(self.difference) else int(math.copysign(1, self.difference))


@dataclass(frozen=True)
class Shared:
    """A column that both runs have on a data set.  Of pairs, its numbers are those of the repeats that both have."""

    algorithm: str
    variant: Variant
    label: str
    numbers: Sequence[Number]
    conditions: tuple[Conditions, Conditions]
    left_out: tuple[int, int]
    """Numbers of repeats that did not end well, and enter no mean."""
    timed_out: tuple[bool, bool]
    """Whether no repeat ended well, and the numbers are those of repeats that a time limit ended."""


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
    """Return what the two have of each data set and column that both have, of the metrics that a table shows.

    `columns` are the names of other metrics.
    """
    asked = list(first.manifest.config.datasets)
    order = sorted(pairings, key=lambda name: (asked.index(name) if name in asked else len(asked), name))
    blocks = []
    for dataset in order:
        shared = first.columns[dataset].keys() & second.columns[dataset].keys()
        found = [
            _shared(first, second, dataset, column, pairings[dataset], _metrics(first, second, columns))
            for column in sorted(shared, key=first.manifest.order)
        ]
        blocks.append(Block(dataset, first.manifest.dataset_label(dataset), pairings[dataset], found))
    return _corrected(blocks)


def _metrics(first: Run, second: Run, columns: Sequence[str] | None) -> list[Metric]:
    """Return the metrics of the tables of both; in place of one that compares two columns what it is made of."""
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
    if pairing.kind != UNPAIRED and ours.keys() & theirs.keys():
        both = ours.keys() & theirs.keys()
        ours, theirs = ({repeat: rows[repeat] for repeat in sorted(both)} for rows in (ours, theirs))
    conditions = conditions_of(ours.values()), conditions_of(theirs.values())
    numbers = [_number(metric, ours, theirs, pairing, conditions) for metric in metrics]
    return Shared(
        *column,
        first.label(column),
        [one for one in numbers if one.first.mean is not None or one.second.mean is not None],
        conditions,
        (len(every[0]) - len(counting[0]), len(every[1]) - len(counting[1])),
        (_timed_out(counting[0]), _timed_out(counting[1])),
    )


def _timed_out(rows: Mapping[int, Row]) -> bool:
    return any(row["status"] == "timeout" for row in rows.values())


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
        {n: value for n, row in rows.items() if not math.isnan(value := row.get(metric.name, math.nan))}
        for rows in (ours, theirs)
    ]
    both = sorted(sides[0].keys() & sides[1].keys())
    if pairing.kind == PAIRED and both:
        sides = [{n: side[n] for n in both} for side in sides]
    one, other = (np.array([side[n] for n in sorted(side)]) for side in sides)
    found = Number(metric, _entry(one), _entry(other), Outcome.ONE_ONLY)
    if not (one.size and other.size):
        return found
    means = float(one.mean()), float(other.mean())
    difference = means[0] - means[1]
    found = replace(found, difference=difference)
    if of_machine(metric):
        alike = conditions[0].alike(conditions[1]) and UNKNOWN_MACHINE not in conditions[0].machines
        ratio = means[0] / means[1] if alike and metric.unit != "percent" and means[1] else None
        return replace(found, outcome=Outcome.MACHINE, ratio=ratio)
    if _all_equal(one, other, in_pairs=sides[0].keys() == sides[1].keys()):
        return replace(found, outcome=Outcome.EQUAL, difference=0.0)
    if not np.isfinite(difference):
        return replace(found, outcome=Outcome.INFINITE)
    outcome = _testable(one, other, pairing)
    if outcome is not Outcome.TESTED:
        return replace(found, outcome=outcome)
    if pairing.kind != PAIRED:
        return replace(found, outcome=outcome, interval=welch_interval(one, other))
    ratio = _test_share([ours[n] for n in both]) if pairing.resampled else 0.0
    if math.isnan(ratio):
        return replace(found, outcome=Outcome.SPLIT)
    return replace(found, outcome=outcome, interval=corrected_interval(one - other, ratio))


def _all_equal(one: Values, other: Values, *, in_pairs: bool) -> bool:
    """Say whether two runs have equal numbers, repeat by repeat, or one number in all repeats of both."""
    if in_pairs and all(map(is_equal, one, other)):
        return True
    return all(is_equal(value, one[0]) for value in [*one, *other])


def _testable(one: Values, other: Values, pairing: Pairing) -> Outcome:
    """Say whether a difference can be tested, or why it cannot."""
    if pairing.kind == UNKNOWN:
        return Outcome.SPLIT
    if min(one.size, other.size) < FEWEST:
        return Outcome.FEW
    spreads = [np.ptp(one - other)] if pairing.kind == PAIRED else [np.ptp(one), np.ptp(other)]
    nothing = 1e-12 * max(1.0, float(np.abs(np.concatenate([one, other])).max()))
    return Outcome.TESTED if max(spreads) > nothing else Outcome.CONSTANT


def _test_share(rows: Sequence[Row]) -> float:
    """Return n_test / n_train of some fits, NaN where the records do not tell."""
    return float(np.mean([row["n_test"] / row["n_train"] if row["n_train"] else math.nan for row in rows]))


def _entry(values: Values) -> Entry:
    if not values.size:
        return Entry(0, None, None)
    spread = values.size > 1 and np.isfinite(values).all()
    return Entry(values.size, float(values.mean()), float(values.std(ddof=1)) if spread else None)


def _corrected(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks with p-values that are corrected for the number of comparisons of the same metric."""
    raw: dict[str, list[float]] = {}
    for number in numbers_of(blocks):
        if number.interval is not None:
            raw.setdefault(number.metric.name, []).append(number.interval.p)
    waiting = {name: iter(holm(values).tolist()) for name, values in raw.items()}

    def corrected(number: Number) -> Number:
        return replace(number, p=next(waiting[number.metric.name])) if number.interval else number

    return [
        replace(
            block,
            columns=[replace(column, numbers=[corrected(one) for one in column.numbers]) for column in block.columns],
        )
        for block in blocks
    ]


def numbers_of(blocks: Sequence[Block]) -> list[Number]:
    """Return all numbers of some data sets, in their order."""
    return [number for block in blocks for column in block.columns for number in column.numbers]
