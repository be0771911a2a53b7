"""What the numbers of a table show together: kinds, causes, power, spreads and orders."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

from scipy.special import fdtri, ndtri

from klr_bench.metrics.labels import METRICS
from klr_bench.report.labels import pluralize
from klr_bench.report.measured import Machine, Measured
from klr_bench.report.papers.candidates import Candidate, method_without_records, published_entry
from klr_bench.report.papers.causes import judge_cause
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.model import DIFFERENCE, PUBLISHED, Paper, Printed, PrintedTable
from klr_bench.report.papers.outcomes import constant
from klr_bench.report.papers.verdicts import AGREE, LEVEL, Kind, NotCompared, Others, Verdict, verdict_of


def with_evidence(matches: Sequence[Match], paper: Paper, table: PrintedTable) -> list[Match]:
    """Return the numbers of a table with their kinds, power, and verdicts on spreads."""
    sparsities = {_cell(match): match for match in matches if match.printed.metric == "sparsity"}
    results = []
    for match in matches:
        kind = _kind(match, sparsities.get(_cell(match)))
        if match.printed.algorithm and match.not_compared is None:
            tested = kind is not Kind.IDENTITY
            match = replace(
                match,
                others=_others(match, matches, table),
                spread_agrees=spread_agrees(match, table.repeats) if tested else None,
                has_inferred_spread=paper.has_inferred_spread(match.printed),
            )
        results.append(replace(match, kind=kind))
    return results


def with_cause(match: Match, paper: Paper, lines: Sequence[Printed], measured: Mapping[str, Measured]) -> Match:
    """Return a copy of a differing match with its cause, if any, and the verdict.

    `measured` has the results of experiments by name.  A cause that is shown comes before others, and a cause before
    what was tried.
    """
    if match.verdict is not Verdict.UNEXPLAINED:
        return match
    numbers = _rows_of(match, paper, lines)
    other_data = {*paper.stand_ins, *(line.dataset for line in lines)} - {match.printed.dataset}
    judged = [
        (verdict, judge_cause(cause, numbers, other_data, measured))
        for verdict, causes in ((Verdict.EXPLAINED, paper.causes), (Verdict.UNEXPLAINED, paper.tried))
        for cause in causes
        if cause.numbers.holds(match.printed)
    ]
    if not judged:
        return match
    shown = ((verdict, cause) for verdict, cause in judged if cause.is_shown)
    verdict, cause = next(shown, (Verdict.UNEXPLAINED, judged[0][1]))
    return replace(match, verdict=verdict, cause=cause, reason=cause.cause.because if cause.is_shown else "")


def _rows_of(match: Match, paper: Paper, lines: Sequence[Printed]) -> list[Candidate]:
    """Return the published row of a number with its data set's sizes, and the difference."""
    line = match.printed
    place = line.table, line.algorithm, line.params
    published = {
        other.metric: published_entry(other, paper)
        for other in lines
        if other.dataset == line.dataset
        if not other.algorithm or (other.table, other.algorithm, other.params) == place
    }
    entries = {line.metric: constant(abs(match.difference or 0.0))}
    row = method_without_records(line.algorithm, PUBLISHED, "paper", line.params, published)
    difference = method_without_records(line.algorithm, "the difference", "paper", line.params, entries)
    return [Candidate([PUBLISHED], row), Candidate([DIFFERENCE], difference)]


def _cell(match: Match) -> tuple[str, str, str]:
    line = match.printed
    return line.dataset, line.algorithm, str(sorted(line.params.items()))


def _kind(match: Match, sparsity: Match | None) -> Kind:
    if not match.printed.algorithm:
        return Kind.FACT
    if match.not_compared is not None:
        return Kind.RESULT
    is_duplicate = match.printed.metric == "n_support" and sparsity is not None and sparsity.not_compared is None
    if _is_identity(match) or (is_duplicate and sparsity is not None and _is_identity(sparsity)):
        return Kind.IDENTITY
    return Kind.DUPLICATE if is_duplicate else Kind.RESULT


def _is_identity(match: Match) -> bool:
    """Return True if a run cannot lead to another number.

    This is a count that is a parameter of the method, such as its budget, in all repeats, or the sparsity of a
    learner that keeps all training rows.
    """
    line, entry = match.printed, match.entry
    if entry is None or entry.std or entry.mean != line.value:
        return False
    variant = match.column[1] if match.column else {}
    parameters = [value for value in (*line.params.values(), *variant.values()) if not isinstance(value, bool)]
    return line.value in parameters if line.unit == "count" else line.metric == "sparsity" and line.value == 0


def _others(match: Match, matches: Iterable[Match], table: PrintedTable) -> Others:
    """Count the other methods with the same data set, metric and settings."""
    line = match.printed

    def place(printed: Printed) -> tuple[object, ...]:
        return printed.dataset, printed.metric, *(printed.params.get(name) for name in table.settings)

    others = [
        other.entry
        for other in matches
        if other is not match and other.entry and other.not_compared is None and place(other.printed) == place(line)
    ]
    verdicts = [verdict_of(entry, line, METRICS[line.metric], table.repeats) for entry in others]
    return Others(sum(verdict in AGREE for verdict in verdicts), len(others))


def spread_agrees(match: Match, printed_repeats: int | None) -> bool | None:
    """Return True if the published and measured standard deviations pass an F test.

    The two-sided test has the level LEVEL; the numbers are compatible if some value that rounds to the published one
    is. Returns None without a published spread, without a measured one, or if the number of published repeats is
    unknown.
    """
    line, entry = match.printed, match.entry
    if line.spread is None or entry is None or entry.std is None or (printed_repeats or 1) < 2:
        return None
    degrees = entry.n - 1, (printed_repeats or 1) - 1
    largest, smallest = (entry.std / math.sqrt(float(fdtri(*degrees, p))) for p in (LEVEL / 2, 1 - LEVEL / 2))
    slack = line.spread_half_unit * (1 + 1e-9)
    return line.spread - slack <= largest and smallest <= line.spread + slack


@dataclass(frozen=True)
class Order:
    """Number of pairs in the published order, among the pairs of `n_methods` methods."""

    n_ordered: int
    n_pairs: int
    n_methods: int

    @property
    def share(self) -> float:
        """The share of pairs in the published order."""
        return self.n_ordered / self.n_pairs

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of Wilson for the share.

        Pairs that share a method depend on each other, and their share varies at most as that of n_methods / 2
        separate pairs (Hoeffding), so this is the number of trials.
        """
        z, trials = float(ndtri(1 - LEVEL / 2)), self.n_methods / 2
        center = (self.share + z**2 / (2 * trials)) / (1 + z**2 / trials)
        half = z * math.sqrt(self.share * (1 - self.share) / trials + z**2 / (4 * trials**2)) / (1 + z**2 / trials)
        return center - half, center + half

    def text(self) -> str:
        """Return the counts, such as "162 of 168"."""
        return f"{self.n_ordered:,} of {self.n_pairs:,}"

    def sentence(self) -> str:
        """Return the counts, the share and its interval."""
        counted = f"{self.n_ordered:,} of {pluralize(self.n_pairs, 'pair')}"
        return f"{counted} ({100 * self.share:.0f} %, 95 % interval {self.percentages()})"

    def percentages(self) -> str:
        """Return the interval in percent, such as "51 to 93 %"."""
        low, high = self.interval
        return f"{100 * low:.0f} to {100 * high:.0f} %"


class Group(NamedTuple):
    """Numbers of the same table, metric and data set, which are not compared but have an order."""

    why: NotCompared
    table: str
    dataset: str
    measured_on: str
    metric: str
    machine: Machine | None


def orders(matches: Iterable[Match]) -> dict[Group, Order]:
    """Return the order of methods in each group of times or results on other data.

    Pairs with equal published numbers do not count; pairs of times count if both were measured on one machine
    without other busy processes.
    """
    groups: dict[Group, list[tuple[float, float]]] = {}
    for match in matches:
        line, entry, why = match.printed, match.entry, match.not_compared
        if why not in (NotCompared.TIME, NotCompared.OTHER_DATA) or not line.algorithm:
            continue
        if entry is not None and entry.mean is not None and entry.alike:
            machine = match.machine if line.unit in ("s", "min") else None
            group = Group(why, line.table, line.dataset, match.dataset_label, line.metric, machine)
            groups.setdefault(group, []).append((line.value, entry.mean))
    counted = {group: _order(values) for group, values in groups.items()}
    return {group: order for group, order in counted.items() if order.n_pairs}


def _order(values: Sequence[tuple[float, float]]) -> Order:
    pairs = [
        (first[0] - second[0], first[1] - second[1])
        for first, second in combinations(values, 2)
        if first[0] != second[0]
    ]
    return Order(sum(published * measured > 0 for published, measured in pairs), len(pairs), len(values))


def total(counted: Mapping[Group, Order]) -> Order | None:
    """Return the order of several groups together, or None without pairs.

    Groups of a table and data set have the same methods, which count once.
    """
    if not counted:
        return None
    n_methods: dict[tuple[str, str, str], int] = {}
    for (_, table, dataset, measured_on, *_), order in counted.items():
        place = table, dataset, measured_on
        n_methods[place] = max(order.n_methods, n_methods.get(place, 0))
    every = counted.values()
    n_ordered, n_pairs = sum(order.n_ordered for order in every), sum(order.n_pairs for order in every)
    return Order(n_ordered, n_pairs, sum(n_methods.values()))
