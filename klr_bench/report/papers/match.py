"""Each printed number of a paper beside the measured one: of equal data set, algorithm and parameters, with a verdict.

Tables, printed tables, scoreboards, figures and pages take published numbers and verdicts from here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from klr_bench.errors import KlrBenchError
from klr_bench.instantiate import Parameters
from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.report.load import was_run
from klr_bench.report.manifest import Column
from klr_bench.report.measured import Entry, Measured, MeasuredDataset, Method
from klr_bench.report.papers.model import Paper, Printed
from klr_bench.report.papers.reading import paper_files, read_lines, read_paper
from klr_bench.report.papers.verdicts import Verdict, is_near, verdict_of

NOT_COMPARED = (Verdict.TIME, Verdict.STAND_IN, Verdict.ABSENT, Verdict.OPEN)


@dataclass(frozen=True)
class Match:
    """A printed number, the measured one if there is one, and the verdict."""

    printed: Printed
    verdict: Verdict = Verdict.OPEN
    experiment: str = ""
    dataset: str = ""
    """The data set that was measured."""
    column: Column | None = None
    """The algorithm and variant; None for a fact about the data set itself."""
    entry: Entry | None = None
    """The measured mean and spread."""
    stand_in: bool = False
    """Whether the measured data set replaces that of the paper, so that the two numbers cannot be compared."""
    reason: str = ""
    """The cause of a difference, what was tried to find one, or why there is no measured number."""
    shown_by: tuple[str, ...] = ()
    """The experiments that show the cause."""

    @property
    def mean(self) -> float | None:
        """The measured mean."""
        return self.entry.mean if self.entry else None

    @property
    def difference(self) -> float | None:
        """Measured minus published, None for other data."""
        return None if self.mean is None or self.stand_in else self.mean - self.printed.value

    @property
    def ratio(self) -> float | None:
        """Published divided by measured: of times, how many times faster ours is."""
        comparable = self.mean and self.entry and self.entry.alike and not self.stand_in
        return self.printed.value / self.mean if self.mean and comparable else None

    @property
    def outside(self) -> bool | None:
        """Whether the measured mean lies outside the published spread."""
        return None if self.mean is None or self.stand_in else self.printed.outside(self.mean)

    @property
    def near(self) -> bool | None:
        """Whether it is near by the plain rule: two deviations, one point, or 4 %; None if they are not compared."""
        return None if self.verdict in NOT_COMPARED or self.mean is None else is_near(self.mean, self.printed)


@dataclass(frozen=True)
class Source:
    """The tables of a paper that are matched with an experiment, and all lines of the paper.

    `results_dir` is the folder of the experiments that show causes; None: none of them was run.
    """

    name: str
    paper: Paper
    lines: Sequence[Printed]
    tables: Collection[str]
    results_dir: Path | None = None
    metrics: Mapping[str, Metric] = field(default_factory=lambda: METRICS)

    @property
    def of_tables(self) -> list[Printed]:
        """The lines of these tables."""
        return [line for line in self.lines if line.table in self.tables]

    def facts(self, dataset: str) -> list[Printed]:
        """Return what these tables say of a data set, or of the one that it replaces."""
        name = self.paper.published_name(dataset)
        return [line for line in self.of_tables if line.dataset == name and not line.algorithm]

    def judged(self, match: Match) -> Match:
        """Return a pair with its verdict.

        A cause, or what was tried without finding one, counts if the experiments that show it were run.
        """
        line = match.printed
        if match.entry is None or match.entry.mean is None:
            reason = next((absent.because for absent in self.paper.absent if absent.numbers.holds(line)), "")
            return replace(match, verdict=Verdict.ABSENT if reason else Verdict.OPEN, reason=reason)
        if match.stand_in:
            return replace(match, verdict=Verdict.STAND_IN)
        metric = self.metrics[line.metric] if line.algorithm else None
        verdict = verdict_of(match.entry, line, metric, self.paper.tables[line.table].repeats)
        if verdict is Verdict.OFF:
            for off, found in ((Verdict.EXPLAINED, self.paper.causes), (Verdict.OFF, self.paper.tried)):
                said = next((one for one in found if one.numbers.holds(line)), None)
                if said is not None and self._were_run(said.shown_by):
                    return replace(match, verdict=off, reason=said.because, shown_by=tuple(said.shown_by))
        return replace(match, verdict=verdict)

    def _were_run(self, names: Iterable[str]) -> bool:
        return self.results_dir is not None and all(was_run(self.results_dir / name) for name in names)


def match(source: Source, measured: Measured) -> list[Match]:
    """Return every pair of a printed number of some tables and a measured one of an experiment, with its verdict.

    All parameters of a printed line must be among those of the method, with the same value.  Where several lines of a
    table fit, the one with the most parameters is meant.
    """
    found = []
    for table in source.tables:
        lines: dict[tuple[str, str], list[Printed]] = {}
        for line in source.lines:
            if line.table == table:
                lines.setdefault((line.dataset, line.algorithm), []).append(line)
        for dataset in measured.datasets:
            name = source.paper.published_name(dataset.name)
            pairs: list[tuple[Printed, Column | None, Entry]] = []
            pairs += [
                (line, None, entry)
                for line in lines.get((name, ""), [])
                if (entry := dataset.fact(line.metric, line.value))
            ]
            pairs += [
                (line, method.column, method.entries[line.metric])
                for method in dataset.methods
                for line in _printed(method, dataset, lines.get((name, method.algorithm), []), measured)
            ]
            stand_in = dataset.name in source.paper.stand_ins
            found += [
                source.judged(Match(line, Verdict.OPEN, measured.name, dataset.name, column, entry, stand_in))
                for line, column, entry in pairs
            ]
    return found


def _printed(
    method: Method, dataset: MeasuredDataset, lines: Sequence[Printed], measured: Measured
) -> Iterable[Printed]:
    """Return the lines that a method belongs to, at most one for each metric."""
    values = method.params
    if measured.manifest.borrowed and "budget" in values:  # the paper's are the support vectors of its own run
        same = [one.variant for one in dataset.methods if one.algorithm == method.algorithm]
        ours = {variant["budget"] for variant in same if "budget" in variant}
        budgets = _by_rank(ours, {line.params["budget"] for line in lines if "budget" in line.params})
        values = {**values, "budget": budgets.get(values["budget"], values["budget"])}
    return best_lines(lines, values).values()


def best_lines(lines: Iterable[Printed], values: Parameters) -> dict[str, Printed]:
    """Return the lines that fit the parameters of a method, by metric, each the one with the most parameters."""
    best: dict[str, Printed] = {}
    for line in lines:
        if fits(line, values):
            rival = best.get(line.metric)
            if rival is None or len(line.params) > len(rival.params):
                best[line.metric] = line
    return best


def _by_rank(ours: Collection[Any], theirs: Collection[Any]) -> dict[Any, Any]:
    """Return the printed value for each of ours, the largest for the largest; nothing unless there are as many."""
    numbers = all(isinstance(value, int | float) for value in (*ours, *theirs))
    return dict(zip(sorted(ours), sorted(theirs), strict=True)) if len(ours) == len(theirs) and numbers else {}


def fits(line: Printed, values: Parameters) -> bool:
    """Return True if all parameters of a line are among the values; true is not 1."""
    return all(
        name in values and values[name] == value and (type(values[name]) is bool) == (type(value) is bool)
        for name, value in line.params.items()
    )


def matches_of(sources: Sequence[Source], measured: Measured) -> dict[tuple[str, Column], dict[str, Match]]:
    """Return the published number beside each number of a method, by data set, column and metric.

    Of several papers the first that has one is meant, of several of its lines the one with the most parameters.
    """
    found: dict[tuple[str, Column], dict[str, Match]] = {}
    for source in sources:
        rank = {id(line): (-len(line.params), place) for place, line in enumerate(source.lines)}
        best: dict[tuple[str, Column, str], Match] = {}
        for one in sorted(match(source, measured), key=lambda one: rank[id(one.printed)]):
            if one.column is not None:
                best.setdefault((one.dataset, one.column, one.printed.metric), one)
        for (dataset, column, metric), one in best.items():
            found.setdefault((dataset, column), {}).setdefault(metric, one)
    return found


def sources_of(
    experiment: str,
    keys: Collection[tuple[str, str]],
    metrics: Mapping[str, Metric],
    searched: Sequence[Path],
    results_dir: Path | None = None,
    table: str | None = None,
) -> list[Source]:
    """Return the tables that are matched with an experiment: those whose paper.yaml names it, or the one asked for.

    `keys` are the data sets and algorithms of the experiment.  KlrBenchError where `table` says nothing about them.
    """
    sources = []
    for name, folder in paper_files(searched).items():
        paper = read_paper(folder, searched)
        tables = [number for number, entry in paper.tables.items() if experiment in entry.experiments]
        if tables:
            lines = read_lines(folder, paper, metrics, searched)
            sources.append(Source(name, paper, lines, tables, results_dir, metrics))
    if table is None:
        return sources
    if not sources:
        message = f"table={table}: the experiment {experiment} is in no table of a paper.yaml; leave `table` out."
        raise KlrBenchError(message)
    asked = [replace(source, tables=[table]) for source in sources if _speaks(source, table, keys)]
    if not asked:
        known = {number for source in sources for number in source.paper.tables if _speaks(source, number, keys)}
        message = (
            f"table={table}: expected a table of {' or '.join(s.name for s in sources)} that says something about the "
            f"data sets and algorithms of this experiment: {', '.join(sorted(known))}."
        )
        raise KlrBenchError(message)
    return asked


def _speaks(source: Source, table: str, keys: Collection[tuple[str, str]]) -> bool:
    """Return True if a table has a number of one of these data sets and algorithms, or is made by the experiment."""
    theirs = {(source.paper.published_name(dataset), algorithm) for dataset, algorithm in keys}
    return table in source.tables or any(
        line.table == table and (line.dataset, line.algorithm) in theirs for line in source.lines
    )
