"""Compare two runs: the means of the methods that both contain, and all other differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
from scipy import stats

from klr_bench.errors import fail, sanitize
from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.parsing import check_choice
from klr_bench.report.compare import differences
from klr_bench.report.compare.differences import is_equal
from klr_bench.report.compare.runs import MethodKey, Pairing, Run, pairing_of, read_two
from klr_bench.report.labels import join_names
from klr_bench.report.measured import BUSY, UNKNOWN, Conditions, Entry, Row, conditions_of, split_ratio
from klr_bench.report.significance import LEAST_REPEATS, LEVEL
from klr_bench.report.statistics.paired import corrected_interval, holm


class Outcome(Enum):
    """How the difference of two means was tested, or why it was not."""

    EQUAL = "equal in each repeat"
    TESTED = "tested"
    MACHINE = "time or memory"
    FEW = "too few repeats"
    CONSTANT = "the same difference in each repeat"
    SPLIT = "the split of the data is unknown"
    INFINITE = "a value is infinite"
    ONE_ONLY = "measured in one run only"
    NO_PAIR = "no repeat has a value in both runs"


@dataclass
class Number:
    """Value of a metric for one method in each of two runs, in the unit of records.csv.

    If repeats are paired, only repeats in both runs are used.
    """

    method: MethodKey
    metric: Metric
    first: Entry
    second: Entry
    outcome: Outcome = Outcome.ONE_ONLY
    difference: float | None = None
    """First minus second; the mean difference if repeats are paired."""
    ratio: float | None = None
    """First divided by second, for times measured on the same idle machine."""
    low: float | None = None
    """Ends of the 95 % interval of the difference, if it was tested."""
    high: float | None = None
    p_raw: float | None = None
    p: float | None = None
    """p-value after Holm's correction over all comparisons of the metric."""

    @property
    def significant(self) -> bool:
        """True if the difference is statistically significant."""
        return self.p is not None and self.p < 1 - LEVEL


@dataclass(frozen=True)
class Comparison:
    """Differences between two runs; A is the first, B the second."""

    first: Run
    second: Run
    settings: Sequence[differences.Setting]
    parameters: Mapping[tuple[str, str, str], Sequence[str]]
    """Name and both values of each parameter that differs, with the affected methods."""
    cells: differences.Cells
    pairings: Mapping[str, Pairing]
    """How repeats are paired, per data set."""
    times_differ: Mapping[MethodKey, str]
    """Why times of the two runs are not comparable; empty if they are."""
    all_numbers: Sequence[Number]

    @property
    def numbers(self) -> list[Number]:
        """All compared metrics except times and memory."""
        return [number for number in self.all_numbers if not number.metric.of_machine]

    @property
    def equal_numbers(self) -> bool:
        """True if all metrics, except times and memory, are equal in each repeat."""
        outcomes = {number.outcome for number in self.numbers}
        return not outcomes or (Outcome.EQUAL in outcomes and outcomes <= {Outcome.EQUAL, Outcome.ONE_ONLY})

    @property
    def identical(self) -> bool:
        """True if nothing differs except times, memory, and settings that affect no metric."""
        return self.cells.equal and not self.parameters and not any(setting.has_effect for setting in self.settings)


def compare(first: Path, second: Path, columns: Sequence[str] | None = None) -> Comparison:
    """Read two results folders and compare them.

    `columns` are the names of metrics, the usual ones if None.  Raises KlrBenchError for a folder without results, for
    the same folder twice, for an unknown metric, and if no method on a data set is in both.
    """
    run_a, run_b = read_two(first, second)
    for name in columns or ():
        check_choice("columns", name, run_a.manifest.metrics | run_b.manifest.metrics)
    shared = [method for method in run_a.methods if method in run_b.methods]
    if not shared:
        has = [sanitize(join_names([run.label(method) for method in run.methods]), 300) for run in (run_a, run_b)]
        fail(f"{run_a.name}, {run_b.name}: expected a method in common, but one has {has[0]}, and the other {has[1]}.")
    pairings = {dataset: pairing_of(dataset, run_a, run_b) for dataset, _ in shared}
    order = [*run_a.manifest.config.datasets, *sorted(pairings)]
    shared.sort(key=lambda method: (order.index(method[0]), run_a.manifest.order(method[1])))
    numbers: list[Number] = []
    times_differ = {}
    for method in shared:
        pairing, sides = pairings[method[0]], [run_a.counted_rows(method), run_b.counted_rows(method)]
        both = sides[0].keys() & sides[1].keys()
        if pairing.kind != "unpaired" and both:
            sides = [{n: row for n, row in rows.items() if n in both} for rows in sides]
        reason = times_differ[method] = _why_times_differ(*(conditions_of(rows.values()) for rows in sides))
        for metric in _metrics(run_a, run_b, columns):
            numbers.append(_number(method, metric, sides, pairing, comparable=not reason))
    numbers = [number for number in numbers if number.first.n or number.second.n]
    tested = [number for number in numbers if number.p_raw is not None]
    for metric in dict.fromkeys(number.metric for number in tested):
        of_metric = [number for number in tested if number.metric == metric]
        for number, p in zip(of_metric, holm(np.array([number.p_raw for number in of_metric])).tolist(), strict=True):
            number.p = p
    return Comparison(
        run_a,
        run_b,
        differences.setting_differences(run_a, run_b),
        differences.parameter_differences(run_a, run_b, pairings),
        differences.compare_cells(run_a, run_b, pairings),
        pairings,
        times_differ,
        numbers,
    )


def _metrics(first: Run, second: Run, columns: Sequence[str] | None) -> list[Metric]:
    """Return the metrics of the two tables.

    A metric that compares two methods is replaced by the compared metric.
    """
    usual = [metric.name for metric in METRICS.values() if metric.usual]
    metrics = second.manifest.metrics | first.manifest.metrics
    names = columns or [name for run in (first, second) for name in run.manifest.config.metrics or usual]
    return [metrics[name] for name in dict.fromkeys(metrics[name].compares or name for name in names)]


def _why_times_differ(first: Conditions, second: Conditions) -> str:
    if UNKNOWN in first.machines | second.machines:
        return "some records do not name their machine"
    if len(first.machines | second.machines) != 1:
        ours, theirs = ("; ".join(sorted(map(", ".join, side.machines))) or "nothing" for side in (first, second))
        return f"A ran on {ours}, B on {theirs}"
    busy = f"other processes were using more than {100 * BUSY:.0f} % of the machine when some fits started"
    return "" if first.alike(second) else busy


def _number(
    method: MethodKey, metric: Metric, rows: Sequence[Mapping[int, Row]], pairing: Pairing, *, comparable: bool
) -> Number:
    sides = [
        {n: value for n, row in sorted(side.items()) if not math.isnan(value := row.get(metric.name, math.nan))}
        for side in rows
    ]
    both = [n for n in sides[0] if n in sides[1]]
    ratio = 0.0
    if pairing.kind == "paired" and both:
        sides = [{n: side[n] for n in both} for side in sides]
        ratio = float(np.mean([split_ratio(rows[0][n]) for n in both])) if pairing.resampled else 0.0
    values_a, values_b = (np.array([*side.values()]) for side in sides)
    number = Number(method, metric, Entry.of(values_a), Entry.of(values_b))
    if number.first.mean is None or number.second.mean is None:
        return number
    if pairing.kind == "paired" and not both:
        number.outcome = Outcome.NO_PAIR
        return number
    number.difference = number.first.mean - number.second.mean
    if metric.of_machine:
        number.outcome = Outcome.MACHINE
        if comparable and metric.unit != "percent" and number.second.mean:
            number.ratio = number.first.mean / number.second.mean
        return number
    spreads = [np.ptp(values_a - values_b)] if pairing.kind == "paired" else [np.ptp(values_a), np.ptp(values_b)]
    rounding = 1e-12 * max(1.0, float(np.abs(np.concatenate([values_a, values_b])).max()))
    same_repeats = sides[0].keys() == sides[1].keys()
    if (same_repeats and all(map(is_equal, values_a, values_b))) or all(
        is_equal(value, values_a[0]) for value in [*values_a, *values_b]
    ):
        number.outcome, number.difference = Outcome.EQUAL, 0.0
    elif not math.isfinite(number.difference):
        number.outcome = Outcome.INFINITE
    elif pairing.kind == "unknown" or not math.isfinite(ratio):
        number.outcome = Outcome.SPLIT
    elif min(values_a.size, values_b.size) < LEAST_REPEATS:
        number.outcome = Outcome.FEW
    elif max(spreads) <= rounding:
        number.outcome = Outcome.CONSTANT
    else:
        number.outcome = Outcome.TESTED
        if pairing.kind == "paired":
            _, _, *interval = corrected_interval(values_a - values_b, ratio, LEVEL)
        else:
            test = stats.ttest_ind(values_a, values_b, equal_var=False)
            interval = [*test.confidence_interval(LEVEL), test.pvalue]
        number.low, number.high, number.p_raw = map(float, interval)
    return number
