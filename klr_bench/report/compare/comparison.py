"""Compare two runs: the means of the methods that both have, and all else that differs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from klr_bench.errors import fail, shown
from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.parsing import check_choice
from klr_bench.report.compare.differences import (
    Cells,
    Setting,
    compare_cells,
    is_equal,
    is_machine_metric,
    parameter_differences,
    setting_differences,
)
from klr_bench.report.compare.runs import MethodKey, Pairing, Run, pairing_of, read_two
from klr_bench.report.labels import column_label, listed
from klr_bench.report.measured import BUSY, UNKNOWN, Conditions, Entry, Row, conditions_of
from klr_bench.report.significance import LEAST_REPEATS, LEVEL, split_ratio
from klr_bench.report.statistics.paired import Array, corrected_interval, holm, welch_interval
from klr_bench.report.writing import check_formats, write_changed
from klr_bench.results.variants import Variant

if TYPE_CHECKING:
    from rich.console import Console


class Outcome(Enum):
    """What becomes of two means."""

    EQUAL = "equal in each repeat"
    TESTED = "tested"
    MACHINE = "time or memory"
    FEW = "too few repeats"
    CONSTANT = "the same difference in each repeat, so that nothing is left to chance"
    SPLIT = "it is not known how the data are split"
    INFINITE = "an infinite number"
    ONE_ONLY = "measured in one run only"


@dataclass
class Number:
    """A metric of a method in both runs, in the unit of records.csv."""

    metric: Metric
    first: Entry
    second: Entry
    outcome: Outcome = Outcome.ONE_ONLY
    difference: float | None = None
    """First minus second; the mean difference if repeats are pairs."""
    ratio: float | None = None
    """First divided by second, for times that were measured on the same idle machine."""
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
class SharedMethod:
    """A method that both runs have on a data set; if repeats are pairs, its means are over those of both."""

    dataset: str
    dataset_label: str
    algorithm: str
    variant: Variant
    label: str
    pairing: Pairing
    numbers: Sequence[Number]
    times_differ: str
    """Why times of the two runs cannot be compared, empty if they can be."""
    n_left_out: tuple[int, int]
    """Numbers of repeats that were not successful, and enter no mean."""
    timed_out: tuple[bool, bool]
    """True if no repeat succeeded; the values are then those of repeats that the time limit stopped."""


@dataclass(frozen=True)
class Comparison:
    """Two runs and what differs.  A is the first, B the second."""

    first: Run
    second: Run
    settings: Sequence[Setting]
    parameters: Mapping[tuple[str, str, str], Sequence[str]]
    """Name and both values of the parameters of fits that differ, each with its methods."""
    cells: Cells
    methods: Sequence[SharedMethod]

    @property
    def numbers(self) -> list[Number]:
        """All numbers that are compared, except times and memory."""
        return [one for method in self.methods for one in method.numbers if one.outcome is not Outcome.MACHINE]

    @property
    def equal_numbers(self) -> bool:
        """Whether all numbers of the tables are equal in each repeat, except times and memory."""
        return all(number.outcome in (Outcome.EQUAL, Outcome.ONE_ONLY) for number in self.numbers)

    @property
    def identical(self) -> bool:
        """Whether nothing differs except times, memory, and settings on which no number depends."""
        changed = any(setting.has_effect for setting in self.settings)
        return self.cells.equal and not (changed or self.parameters)


def compare(first: Path, second: Path, columns: Sequence[str] | None = None) -> Comparison:
    """Read two results folders, results/<experiment>, and compare them.

    `columns` are the names of metrics, the usual ones if None.  Raises KlrBenchError for a folder without results, for
    the same folder twice, for an unknown metric, and if no method on a data set is in both.
    """
    one, other = read_two(first, second)
    for name in columns or ():
        check_choice("columns", name, one.manifest.metrics | other.manifest.metrics)
    shared = [method for method in one.methods if method in other.methods]
    if not shared:
        names = [shown(listed([run.label(method) for method in run.methods]), 300) for run in (one, other)]
        fail(
            f"{one.name}, {other.name}: expected two runs with a data set, an algorithm and its variant in common. "
            f"The first has {names[0]}. The second has {names[1]}."
        )
    pairings = {dataset: pairing_of(dataset, one, other) for dataset, _ in shared}
    metrics = _metrics(one, other, columns)
    order = [*one.manifest.config.datasets, *sorted(pairings)]
    shared.sort(key=lambda method: (order.index(method[0]), one.manifest.order(method[1])))
    methods = [_shared_method(one, other, method, pairings[method[0]], metrics) for method in shared]
    _correct(methods)
    return Comparison(
        one,
        other,
        setting_differences(one, other),
        parameter_differences(one, other, pairings),
        compare_cells(one, other, pairings),
        methods,
    )


def report_comparison(
    first: Path,
    second: Path,
    *,
    console: Console,
    formats: Sequence[str] = ("terminal",),
    columns: Sequence[str] | None = None,
    output: Path | None = None,
) -> list[Path]:
    """Show what differs between two results folders, results/<experiment>, and write its files; return their paths.

    `formats` are some of FORMATS, without pdf; `columns` the metrics that are compared, the usual ones if None;
    `output` the folder of against.md, against.tex and against.csv (<first>/report).  Raises KlrBenchError as `compare`.
    """
    check_formats(formats)

    from klr_bench.report import render
    from klr_bench.report.compare.pages import comma_separated, documents

    two = compare(first, second, columns)
    pages = documents(two)
    if "terminal" in formats:
        render.show_all(pages, console)
    files = render.texts_of(pages, "against", formats)
    if "csv" in formats:
        files["against.csv"] = comma_separated(two)
    return write_changed(output or first / "report", {name: text.encode() for name, text in files.items()})


def _metrics(first: Run, second: Run, columns: Sequence[str] | None) -> list[Metric]:
    """Return the metrics of both tables; a metric that compares two methods is replaced by what it compares."""
    usual = [metric.name for metric in METRICS.values() if metric.usual]
    known = second.manifest.metrics | first.manifest.metrics
    names = columns or [name for run in (first, second) for name in run.manifest.config.metrics or usual]
    return [known[name] for name in dict.fromkeys(known[name].compares or name for name in names)]


def _shared_method(
    first: Run, second: Run, method: MethodKey, pairing: Pairing, metrics: Sequence[Metric]
) -> SharedMethod:
    every = first.methods[method], second.methods[method]
    ours, theirs = counting = _counting(every[0]), _counting(every[1])
    both = ours.keys() & theirs.keys()
    if pairing.kind != "unpaired" and both:
        ours, theirs = ({n: row for n, row in rows.items() if n in both} for rows in counting)
    times_differ = _why_times_differ(conditions_of(ours.values()), conditions_of(theirs.values()))
    numbers = [_number(metric, ours, theirs, pairing, comparable=not times_differ) for metric in metrics]
    dataset, (algorithm, variant) = method
    late = [any(row["status"] == "timeout" for row in rows.values()) for rows in counting]
    return SharedMethod(
        dataset,
        first.manifest.dataset_label(dataset),
        algorithm,
        variant,
        column_label(first.manifest.algorithm_label(algorithm), variant),
        pairing,
        [one for one in numbers if one.first.mean is not None or one.second.mean is not None],
        times_differ,
        (len(every[0]) - len(counting[0]), len(every[1]) - len(counting[1])),
        (late[0], late[1]),
    )


def _counting(rows: Mapping[int, Row]) -> dict[int, Row]:
    """Return the repeats that enter a mean: the successful ones, or those that a time limit ended if there are none."""
    by_status = {status: {n: row for n, row in rows.items() if row["status"] == status} for status in ("ok", "timeout")}
    return by_status["ok"] or by_status["timeout"]


def _why_times_differ(first: Conditions, second: Conditions) -> str:
    if UNKNOWN in first.machines | second.machines:
        return "some records do not name their machine"
    if len(first.machines | second.machines) != 1:
        ours, theirs = ("; ".join(sorted(map(", ".join, side.machines))) or "nothing" for side in (first, second))
        return f"A ran on {ours}, B on {theirs}"
    busy = f"other processes used more than {100 * BUSY:.0f} % of the machine when fits began"
    return "" if first.alike(second) else busy


def _number(
    metric: Metric, ours: Mapping[int, Row], theirs: Mapping[int, Row], pairing: Pairing, *, comparable: bool
) -> Number:
    sides = [
        {n: value for n, row in sorted(rows.items()) if not math.isnan(value := row.get(metric.name, math.nan))}
        for rows in (ours, theirs)
    ]
    both = [n for n in sides[0] if n in sides[1]]
    if pairing.kind == "paired" and both:
        sides = [{n: side[n] for n in both} for side in sides]
    one, other = (np.array([*side.values()]) for side in sides)
    number = Number(metric, Entry.of(one), Entry.of(other))
    if number.first.mean is None or number.second.mean is None:
        return number
    number.difference = number.first.mean - number.second.mean
    if is_machine_metric(metric):
        number.outcome = Outcome.MACHINE
        if comparable and metric.unit != "percent" and number.second.mean:
            number.ratio = number.first.mean / number.second.mean
        return number
    number.outcome = _outcome(one, other, pairing, in_pairs=sides[0].keys() == sides[1].keys())
    if number.outcome is Outcome.EQUAL:
        number.difference = 0.0
    if number.outcome is not Outcome.TESTED:
        return number
    interval = welch_interval(one, other, LEVEL)
    if pairing.kind == "paired":
        ratio = float(np.mean([split_ratio(ours[n]) for n in both])) if pairing.resampled else 0.0
        if not math.isfinite(ratio):
            number.outcome = Outcome.SPLIT
            return number
        interval = corrected_interval(one - other, ratio, LEVEL)
    number.low, number.high, number.p_raw = (float(value) for value in (interval.low, interval.high, interval.p))
    return number


def _outcome(one: Array, other: Array, pairing: Pairing, *, in_pairs: bool) -> Outcome:
    """Return whether a difference can be tested, or why it cannot."""
    equal = in_pairs and all(map(is_equal, one, other))
    if equal or all(is_equal(value, one[0]) for value in [*one, *other]):
        return Outcome.EQUAL
    if not math.isfinite(float(one.mean()) - float(other.mean())):
        return Outcome.INFINITE
    if pairing.kind == "unknown":
        return Outcome.SPLIT
    if min(one.size, other.size) < LEAST_REPEATS:
        return Outcome.FEW
    spreads = [np.ptp(one - other)] if pairing.kind == "paired" else [np.ptp(one), np.ptp(other)]
    rounding = 1e-12 * max(1.0, float(np.abs(np.concatenate([one, other])).max()))
    return Outcome.TESTED if max(spreads) > rounding else Outcome.CONSTANT


def _correct(methods: Sequence[SharedMethod]) -> None:
    """Correct the p-values for the number of comparisons of the same metric."""
    tested = [one for method in methods for one in method.numbers if one.p_raw is not None]
    for name in {one.metric.name for one in tested}:
        numbers = [one for one in tested if one.metric.name == name]
        for number, p in zip(numbers, holm(np.array([one.p_raw for one in numbers])).tolist(), strict=True):
            number.p = p
