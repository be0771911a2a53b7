"""Published numbers matched with measured ones of the same data set, algorithm and parameters, each with a verdict.

Tables, printed tables, scoreboards, figures and pages take published numbers and verdicts from here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from klr_bench.errors import fail, nearest
from klr_bench.instantiate import Parameters
from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.report.load import was_run
from klr_bench.report.manifest import Column
from klr_bench.report.measured import Entry, Measured, MeasuredDataset, Method
from klr_bench.report.papers.model import Paper, Printed
from klr_bench.report.papers.reading import paper_files, read_lines, read_paper
from klr_bench.report.papers.verdicts import Verdict, is_near, verdict_of
from klr_bench.results.variants import as_number


@dataclass(frozen=True)
class Match:
    """A printed number, its measured counterpart if any, and the verdict."""

    printed: Printed
    verdict: Verdict = Verdict.OPEN
    experiment: str = ""
    dataset: str = ""
    """The data set that was measured."""
    column: Column | None = None
    """The algorithm and variant; None for a property of the data set itself."""
    entry: Entry | None = None
    """The measured mean and spread."""
    stand_in: bool = False
    """True if the measured data set replaces that of the paper; the two numbers are not compared then."""
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
        """Published divided by measured, None for other data or conditions."""
        comparable = self.entry is not None and self.entry.alike and not self.stand_in
        return self.printed.value / self.mean if self.mean and comparable else None

    @property
    def outside(self) -> bool | None:
        """True if the measured mean lies outside the published spread, None for other data."""
        return None if self.mean is None or self.stand_in else self.printed.outside(self.mean)

    @property
    def near(self) -> bool | None:
        """True if near: within two deviations, one point, or 4 %; None if not compared."""
        compared = self.verdict in (Verdict.WITHIN, Verdict.COMPATIBLE, Verdict.EXPLAINED, Verdict.OFF)
        return is_near(self.mean, self.printed) if compared and self.mean is not None else None


@dataclass(frozen=True)
class Source:
    """Tables of a paper that are matched with an experiment.

    `lines` are all numbers of the paper.  `results_dir` is the folder of the experiments that show causes; None: none
    of them was run.
    """

    name: str
    paper: Paper
    lines: Sequence[Printed]
    tables: Collection[str]
    results_dir: Path | None = None
    metrics: Mapping[str, Metric] = field(default_factory=lambda: METRICS)

    @property
    def of_tables(self) -> list[Printed]:
        """The numbers of these tables."""
        return [line for line in self.lines if line.table in self.tables]

    def facts(self, dataset: str) -> list[Printed]:
        """Return the properties of a data set, or of the one that it replaces, in these tables."""
        name = self.paper.published_name(dataset)
        return [line for line in self.of_tables if line.dataset == name and not line.algorithm]

    def judged(self, match: Match) -> Match:
        """Return a match with its verdict.

        A cause, or what was tried to find one, counts if the experiments that show it were run.
        """
        line = match.printed
        if match.entry is None or match.entry.mean is None:
            reason = next((absent.because for absent in self.paper.absent if absent.numbers.holds(line)), "")
            return replace(match, verdict=Verdict.ABSENT if reason else Verdict.OPEN, reason=reason)
        if match.stand_in:
            return replace(match, verdict=Verdict.STAND_IN)
        metric = self.metrics[line.metric] if line.algorithm else None
        verdict = verdict_of(match.entry, line, metric, self.paper.tables[line.table].repeats)
        off = ((Verdict.EXPLAINED, self.paper.causes), (Verdict.OFF, self.paper.tried))
        for explained, causes in off if verdict is Verdict.OFF else ():
            cause = next((one for one in causes if one.numbers.holds(line)), None)
            if cause and self.results_dir and all(was_run(self.results_dir / name) for name in cause.shown_by):
                return replace(match, verdict=explained, reason=cause.because, shown_by=tuple(cause.shown_by))
        return replace(match, verdict=verdict)


def match(source: Source, measured: Measured) -> list[Match]:
    """Return the printed numbers of some tables with those that an experiment measured.

    All parameters of a printed number must be among those of the method, with the same value.  Of several that fit, the
    one with the most parameters is taken.
    """
    lines: dict[tuple[str, str, str], list[Printed]] = {}
    for line in source.lines:
        lines.setdefault((line.table, line.dataset, line.algorithm), []).append(line)
    matches = []
    for table, dataset in product(source.tables, measured.datasets):
        name, stand_in = source.paper.published_name(dataset.name), dataset.name in source.paper.stand_ins
        pairs: list[tuple[Printed, Column | None, Entry | None]] = [
            (line, None, dataset.fact(line.metric, line.value)) for line in lines.get((table, name, ""), [])
        ]
        for method in dataset.methods:
            printed = _printed(method, dataset, lines.get((table, name, method.algorithm), []), measured)
            pairs += [(line, method.column, method.entries[metric]) for metric, line in printed.items()]
        matches += [
            source.judged(Match(line, Verdict.OPEN, measured.name, dataset.name, column, entry, stand_in))
            for line, column, entry in pairs
            if entry is not None
        ]
    return matches


def _printed(
    method: Method, dataset: MeasuredDataset, lines: Sequence[Printed], measured: Measured
) -> dict[str, Printed]:
    """Return the printed numbers of a method by metric.

    If a run takes its budgets from other results, the paper's budgets are its own numbers of support vectors; the
    largest is matched with the largest, if there are as many.
    """
    values = method.params
    if measured.manifest.borrowed and as_number(values.get("budget")) is not None:
        variants = [one.variant for one in dataset.methods if one.algorithm == method.algorithm]
        ours, theirs = (
            sorted({params["budget"] for params in side if as_number(params.get("budget")) is not None})
            for side in (variants, [line.params for line in lines])
        )
        if len(ours) == len(theirs):
            by_rank = dict(zip(ours, theirs, strict=True))
            values = {**values, "budget": by_rank.get(values["budget"], values["budget"])}
    return best_lines(lines, values)


def best_lines(lines: Iterable[Printed], values: Parameters) -> dict[str, Printed]:
    """Return the numbers that fit the parameters of a method, by metric.

    Of several, the one with the most parameters is taken.  true does not fit 1.
    """
    best: dict[str, Printed] = {}
    for line in sorted(lines, key=lambda line: -len(line.params)):
        if all(
            name in values and values[name] == value and isinstance(values[name], bool) == isinstance(value, bool)
            for name, value in line.params.items()
        ):
            best.setdefault(line.metric, line)
    return best


def matches_of(sources: Sequence[Source], measured: Measured) -> dict[tuple[str, Column], dict[str, Match]]:
    """Return the published counterparts of the numbers of each method, by data set, column and metric.

    Of several papers the first is taken, of several numbers of a paper the one with the most parameters.
    """
    matches: dict[tuple[str, Column], dict[str, Match]] = {}
    for source in sources:
        for one in sorted(match(source, measured), key=lambda one: -len(one.printed.params)):
            if one.column is not None:
                matches.setdefault((one.dataset, one.column), {}).setdefault(one.printed.metric, one)
    return matches


def sources_of(
    experiment: str,
    metrics: Mapping[str, Metric],
    searched: Sequence[Path],
    results_dir: Path | None = None,
    table: str | None = None,
) -> list[Source]:
    """Return the tables of papers that name an experiment, or `table` of these papers.

    Raises KlrBenchError if no paper that names the experiment has this table.
    """
    sources = []
    known: set[str] = set()
    for name, folder in paper_files(searched).items():
        paper = read_paper(folder, searched)
        tables = [number for number, entry in paper.tables.items() if experiment in entry.experiments]
        if tables:
            known.update(paper.tables)
            lines = read_lines(folder, paper, metrics, searched)
            tables = tables if table is None else [number for number in paper.tables if number == table]
            sources.append(Source(name, paper, lines, tables, results_dir, metrics))
    if table is not None and table not in known:
        fail(f"table={table}: expected a table of a paper that names {experiment}.{nearest(table, known)}")
    return [source for source in sources if source.tables]
