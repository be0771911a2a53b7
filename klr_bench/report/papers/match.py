"""Match published numbers with measured ones, and give a verdict on each pair.

All tables, figures, scoreboards and pages take published numbers and verdicts from this module.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from klr_bench.config import locations
from klr_bench.config.needs import datasets_of, needs_of
from klr_bench.errors import fail, nearest
from klr_bench.instantiate import Parameters
from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.report.manifest import Column
from klr_bench.report.measured import Entry, Machine, Measured, MeasuredDataset, Method
from klr_bench.report.papers.causes import JudgedCause
from klr_bench.report.papers.model import Calibration, Paper, Printed
from klr_bench.report.papers.reading import paper_files, read_lines, read_paper
from klr_bench.report.papers.verdicts import AGREE, FEW_REPEATS, Kind, NotCompared, Others, Verdict, verdict_of
from klr_bench.results.variants import Variant, to_number


@dataclass(frozen=True)
class Match:
    """Published number with its measured counterpart, if any, and the verdict."""

    printed: Printed
    verdict: Verdict = Verdict.NOT_COMPARED
    not_compared: NotCompared | None = NotCompared.NOT_RUN
    """The reason why the values are not compared, if they are not."""
    experiment: str = ""
    dataset: str = ""
    """The data set of the measured value."""
    dataset_label: str = ""
    """The display name of this data set."""
    machine: Machine | None = None
    """The machine on which most fits of the experiment ran."""
    column: Column | None = None
    """The algorithm and variant, or None for a property of the data set such as its size."""
    entry: Entry | None = None
    """The measured mean and standard deviation."""
    stand_in: bool = False
    """True if the measured data set substitutes the published one; the two values are then not compared."""
    changed: bool = False
    """True if settings of the run differ from those of the experiment's file; the two values are then not compared."""
    reason: str = ""
    """The cause of a difference or what was examined to find it, if this is shown, or why nothing was measured."""
    cause: JudgedCause | None = None
    """The cause of a difference, or what was examined to find it, with the comparisons of its experiments."""
    calibration: Calibration | None = None
    """The setting that was chosen because it leads to the published number, if the number is compared."""
    uncalibrated: Entry | None = None
    """The measured mean and standard deviation with the paper's own protocol in place of the calibrated setting."""
    uncalibrated_verdict: Verdict = Verdict.NOT_COMPARED
    kind: Kind = Kind.RESULT
    others: Others | None = None
    """How many other methods of the table agree with the published number, if it is compared with a method."""
    has_inferred_spread: bool = False
    spread_agrees: bool | None = None
    """True if the published standard deviation is compatible with the measured one; None if they are not compared."""

    @property
    def agrees(self) -> bool:
        """True if the published number agrees with the measured one."""
        return self.verdict in AGREE

    @property
    def has_power(self) -> bool:
        """True if the numbers agree in enough repeats, and fewer than half of other methods agree."""
        return self.agrees and self.others is not None and not self.is_weak

    @property
    def is_common(self) -> bool:
        """True if the published number agrees with ours and with at least half of other methods."""
        return self.agrees and self.others is not None and 2 * self.others.agreeing >= self.others.compared

    @property
    def has_few_repeats(self) -> bool:
        """True if the numbers agree statistically, with fewer than FEW_REPEATS measured repeats."""
        return self.verdict is Verdict.STATISTICAL and self.entry is not None and self.entry.n < FEW_REPEATS

    @property
    def is_weak(self) -> bool:
        """True if the numbers agree, but without power (see `has_power`)."""
        return self.is_common or self.has_few_repeats

    @property
    def is_calibrated(self) -> bool:
        """True if the number is compared and has a calibrated setting."""
        return self.calibration is not None

    @property
    def is_comparable(self) -> bool:
        """True if the value is for the published data and the settings of the experiment's file."""
        return not (self.stand_in or self.changed)

    @property
    def agrees_as_stated(self) -> bool:
        """True if the number agrees with the result of the paper's own protocol, which was run."""
        return self.uncalibrated is not None and self.uncalibrated_verdict in AGREE

    @property
    def mean(self) -> float | None:
        """The measured mean, or None if nothing was measured."""
        return self.entry.mean if self.entry else None

    @property
    def difference(self) -> float | None:
        """The measured mean minus the published one, or None if they are for different data."""
        return self.mean - self.printed.value if self.mean is not None and self.is_comparable else None

    @property
    def ratio(self) -> float | None:
        """The published mean divided by the measured one, or None if they are not comparable."""
        comparable = self.entry is not None and self.entry.alike and self.is_comparable
        return self.printed.value / self.mean if self.mean and comparable else None

    def without_verdict(self) -> Match:
        """Return a copy without a verdict, because the published number is compared elsewhere."""
        match = Match(self.printed, experiment=self.experiment, dataset=self.dataset, column=self.column)
        return replace(match, entry=self.entry, not_compared=NotCompared.OTHER_METHOD)


@dataclass(frozen=True)
class Source:
    """Published tables whose numbers are matched with the results of an experiment.

    `lines` are all published numbers of the paper, and `results_dir` is the folder with its results, or None.
    """

    name: str
    paper: Paper
    lines: Sequence[Printed]
    tables: Collection[str]
    results_dir: Path | None = None
    metrics: Mapping[str, Metric] = field(default_factory=lambda: METRICS)
    _commands: dict[tuple[str, str], str] = field(default_factory=dict, repr=False, compare=False)
    """Results of `command` by table and data set, because each reads YAML files."""

    @property
    def selected_numbers(self) -> list[Printed]:
        """The published numbers of the selected tables."""
        return [line for line in self.lines if line.table in self.tables]

    def facts(self, dataset: str) -> list[Printed]:
        """Return the published properties of a data set, or of the data set that it replaces."""
        name = self.paper.published_name(dataset)
        return [line for line in self.selected_numbers if line.dataset == name and not line.algorithm]

    def command(self, line: Printed) -> str:
        """Return the command that measures a number on the paper's data and its download, or ""."""
        place = line.table, line.dataset
        if place not in self._commands:
            self._commands[place] = self._command(*place)
        return self._commands[place]

    def _command(self, table: str, dataset: str) -> str:
        searched = locations.folders()
        named = self.paper.tables[table].experiments or list(self.paper.named())
        experiments = [name for name in named if dataset in datasets_of(name, tuple(searched))]
        if not experiments:
            return ""
        several = "-m " if len(experiments) > 1 else ""
        command = f"klr-bench run {several}experiment={','.join(experiments)}"
        return f"{command}, {needs_of(experiments, searched).size()}."

    def with_verdict(self, match: Match) -> Match:
        """Return a copy of a match that includes its verdict, without causes."""
        line = match.printed
        if match.entry is None or match.entry.mean is None:
            reason = next((absent.because for absent in self.paper.absent if absent.numbers.holds(line)), "")
            why = NotCompared.UNAVAILABLE if reason else NotCompared.NOT_RUN
            return replace(match, not_compared=why, reason=reason or self.command(line))
        if match.stand_in:
            return replace(match, not_compared=NotCompared.OTHER_DATA, reason=self.command(line))
        if match.changed:
            return replace(match, not_compared=NotCompared.CHANGED)
        metric = self.metrics[line.metric] if line.algorithm else None
        if metric is not None and metric.unit == "s":
            return replace(match, not_compared=NotCompared.TIME)
        if match.column is not None and not self.paper.tables[line.table].is_counterpart(*match.column):
            return match.without_verdict()
        verdict = verdict_of(match.entry, line, metric, self.paper.tables[line.table].repeats)
        return replace(match, verdict=verdict, not_compared=None)

    def with_uncalibrated(self, match: Match, other: Entry | None) -> Match:
        """Return a copy of a match with the result of the paper's own protocol and its verdict."""
        if other is None or other.mean is None:
            return match
        line = match.printed
        verdict = verdict_of(other, line, self.metrics[line.metric], self.paper.tables[line.table].repeats)
        return replace(match, uncalibrated=other, uncalibrated_verdict=verdict)


def match(source: Source, measured: Measured) -> list[Match]:
    """Return the published numbers for which an experiment has measured values.

    A published number matches a method that has all of its parameters with the same values.  Among several matches, the
    number with the most parameters is used.
    """
    lines: dict[tuple[str, str, str], list[Printed]] = {}
    for line in source.lines:
        lines.setdefault((line.table, line.dataset, line.algorithm), []).append(line)
    matches, changed = [], bool(measured.manifest.changes)
    for table, dataset in product(source.tables, measured.datasets):
        name, stand_in = source.paper.published_name(dataset.name), dataset.name in source.paper.stand_ins
        pairs: list[tuple[Printed, Column | None, Entry | None]] = [
            (line, None, dataset.fact(line.metric, line.value)) for line in lines.get((table, name, ""), [])
        ]
        for method in dataset.methods:
            printed = _printed(method, dataset, lines.get((table, name, method.algorithm), []), measured)
            pairs += [(line, method.column, method.entries[metric]) for metric, line in printed.items()]
        for line, column, entry in pairs:
            if entry is not None:
                found = Match(
                    line,
                    experiment=measured.name,
                    dataset=dataset.name,
                    dataset_label=dataset.label,
                    machine=measured.machine,
                    column=column,
                    entry=entry,
                    stand_in=stand_in,
                    changed=changed,
                )
                judged = source.with_verdict(found)
                matches.append(judged if judged.not_compared else _with_calibration(judged, source, dataset))
    return matches


def _with_calibration(match: Match, source: Source, dataset: MeasuredDataset) -> Match:
    paper, calibration = source.paper, source.paper.calibration_of(match.printed)
    if calibration is None or match.column is None or match.experiment == calibration.instead_in:
        return match
    algorithm, variant = match.column
    if not paper.tables[match.printed.table].is_counterpart(algorithm, variant):
        return match
    instead = (algorithm, Variant({**variant, **calibration.instead})) if calibration.instead else None
    others = (method.entries.get(match.printed.metric) for method in dataset.methods if method.column == instead)
    return source.with_uncalibrated(replace(match, calibration=calibration), next(others, None))


def _printed(
    method: Method, dataset: MeasuredDataset, lines: Sequence[Printed], measured: Measured
) -> dict[str, Printed]:
    """Return the published numbers of a method, keyed by metric.

    Budgets that were taken from the results of another run differ from the published ones.  If there are equally many,
    they are matched by rank.
    """
    values = method.params
    if isinstance(measured.manifest.config.budget, str) and to_number(values.get("budget")) is not None:
        variants = [other.variant for other in dataset.methods if other.algorithm == method.algorithm]
        ours, theirs = (
            sorted({params["budget"] for params in side if to_number(params.get("budget")) is not None})
            for side in (variants, [line.params for line in lines])
        )
        if len(ours) == len(theirs):
            by_rank = dict(zip(ours, theirs, strict=True))
            values = {**values, "budget": by_rank.get(values["budget"], values["budget"])}
    return best_matches(lines, values)


def best_matches(lines: Iterable[Printed], values: Parameters) -> dict[str, Printed]:
    """Return the published numbers that match the parameters of a method, keyed by metric.

    Among several matches, the number with the most parameters is used.  The value true does not match 1.
    """
    best: dict[str, Printed] = {}
    for line in sorted(lines, key=lambda line: -len(line.params)):
        if all(
            name in values and values[name] == value and isinstance(values[name], bool) == isinstance(value, bool)
            for name, value in line.params.items()
        ):
            best.setdefault(line.metric, line)
    return best


def matches_by_method(
    sources: Sequence[Source],
    measured: Measured,
    compared: Mapping[str, Mapping[tuple[str, str, Column | None, str], Match] | None],
) -> dict[tuple[str, Column], dict[str, Match]]:
    """Return the published counterparts of measured values by data set, method and metric.

    If several papers publish a value, the first one is used; within a paper, the number with the most parameters.
    `compared` has, by paper, the matches of the paper's page by table, data set, method and metric, or None for a
    paper without such a page: the other values have no verdict, because the number has that of another method or
    experiment.
    """
    matches: dict[tuple[str, Column], dict[str, Match]] = {}
    for source in sources:
        rows = compared[source.name]
        for pair in sorted(match(source, measured), key=lambda pair: -len(pair.printed.params)):
            if pair.column is None:
                continue
            row = pair.printed.table, pair.dataset, pair.column, pair.printed.metric
            judged = pair if pair.not_compared or rows is None else rows.get(row) or pair.without_verdict()
            matches.setdefault((pair.dataset, pair.column), {}).setdefault(pair.printed.metric, judged)
    return matches


def published_tables(
    experiment: str,
    metrics: Mapping[str, Metric],
    searched: Sequence[Path],
    results_dir: Path | None = None,
    table: str | None = None,
) -> list[Source]:
    """Return the published tables that name an experiment, or only the table called `table`.

    Raises KlrBenchError if no paper that names the experiment has such a table.
    """
    sources = []
    available: set[str] = set()
    for name, folder in paper_files(searched).items():
        paper = read_paper(folder, searched)
        tables = [number for number, entry in paper.tables.items() if experiment in entry.experiments]
        if tables:
            available.update(paper.tables)
            lines = read_lines(folder, paper, metrics, searched)
            tables = tables if table is None else [number for number in paper.tables if number == table]
            sources.append(Source(name, paper, lines, tables, results_dir, metrics))
    if table is not None and table not in available:
        fail(f"table={table}: expected a table of a paper that names {experiment}.{nearest(table, available)}")
    return [source for source in sources if source.tables]
