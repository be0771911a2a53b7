"""The table of an experiment as values: a block a data set, a line a method, beside the published numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from klr_bench.config.locations import folders
from klr_bench.errors import KlrBenchError
from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.parsing import check_choice
from klr_bench.report.load import Results
from klr_bench.report.manifest import Manifest
from klr_bench.report.measured import UNKNOWN, Groups, Machine, Measured, MeasuredDataset, Method, measure
from klr_bench.report.papers.match import Match, Source, matches_of, sources_of
from klr_bench.report.papers.model import Cause, Printed
from klr_bench.report.papers.verdicts import Verdict
from klr_bench.report.significance import Marks, marks
from klr_bench.results.variants import variant_text


@dataclass(frozen=True)
class Line(Method):
    """A method, and by metric the published numbers beside its own."""

    matches: Mapping[str, Match] = field(default_factory=dict)


@dataclass(frozen=True)
class Block:
    """One data set; times are in the unit of the published ones, seconds if there are none."""

    dataset: str
    label: str
    lines: list[Line]
    metrics: list[Metric]
    sizes: Mapping[str, float] = field(default_factory=dict)
    """The numbers of rows and features of the first fit."""
    facts: Sequence[Printed] = ()
    """What the published tables say of the data set itself."""
    stands_for: str | None = None
    """The data set of the paper that this one replaces."""
    marks: Mapping[str, Marks] = field(default_factory=dict)
    """By metric, the best line and those that are not distinguishable from it."""
    groups: Groups = field(default_factory=dict)
    """The records by line."""
    resampled: bool = True
    """Whether each repeat splits the data set again; True if the manifest does not say it."""

    @property
    def matches(self) -> list[Match]:
        """All published numbers beside those of the lines."""
        return [one for line in self.lines for one in line.matches.values()]


@dataclass(frozen=True)
class Table:
    """All of an experiment."""

    experiment: str
    title: str
    blocks: list[Block]
    sources: Sequence[Source]
    """The published tables beside the results."""
    machine: str
    figures: list[str] | None
    """Names of the figures that were asked for; None: the usual ones."""
    absent: list[str]
    """Data sets that were asked for and have no row yet."""
    baselines: Mapping[str, str] = field(default_factory=dict)
    """For metrics that compare two methods, the print name of the baseline: "FISTA; two_stage=False"."""
    measured_on: Machine = UNKNOWN
    """The machine of most fits; times of other machines have no ratio."""

    @property
    def columns(self) -> str | None:
        """The parameter whose values are the columns, if all published tables have the same one."""
        found = {source.paper.tables[table].columns for source in self.sources for table in source.tables}
        return found.pop() if len(found) == 1 else None

    @property
    def shown(self) -> dict[str, Metric]:
        """The metrics that some block shows."""
        return {metric.name: metric for block in self.blocks for metric in block.metrics}

    @property
    def matches(self) -> list[Match]:
        """All published numbers beside those of the lines."""
        return [one for block in self.blocks for one in block.matches]

    @property
    def compared(self) -> list[Match]:
        """The published numbers whose difference the table shows."""
        return [
            one
            for block in self.blocks
            for line in block.lines
            for metric in block.metrics
            if metric.compared == "difference" and (one := line.matches.get(metric.name))
        ]

    @property
    def causes(self) -> list[Cause]:
        """The causes that explain differences that the table shows."""
        reasons = {one.reason for one in self.compared if one.verdict is Verdict.EXPLAINED}
        found = {cause.because: cause for source in self.sources for cause in source.paper.causes}
        return [cause for because, cause in found.items() if because in reasons]


def with_columns(results: Results, names: Sequence[str] | None) -> Results:
    """Return results whose table has the metrics of these names, in this order; None: as the run has it."""
    if names is None:
        return results
    for name in names:
        check_choice("columns", name, results.manifest.metrics)
    return replace(results, manifest=results.manifest.with_metrics(list(names)))


def check_shown(table: Table, names: Sequence[str] | None) -> None:
    """Refuse a metric that is asked for and has no value in the table."""
    for name in names or ():
        if name not in table.shown:
            has = ", ".join(table.shown) or "none of those that are asked for"
            message = f"columns: no record of {table.experiment} has {name}; it has {has}. Leave it out."
            raise KlrBenchError(message)


def beside_papers(results: Results, table: str | None = None) -> Table:
    """Make the table of an experiment beside the published tables that name it, or the one that is asked for."""
    manifest, measured = results.manifest, measure(results)
    sources = sources_of(manifest.chosen, manifest.metrics, folders(), measured.results_dir, table)
    return build(measured, sources, only_published=table is not None)


def build(measured: Measured, sources: Sequence[Source] = (), *, only_published: bool = False) -> Table:
    """Make a table of measured and published numbers.

    `only_published`: the metrics that the published table has, and no others, if it has some.
    """
    manifest, config = measured.manifest, measured.manifest.config
    there = {dataset.name for dataset in measured.datasets}
    table = Table(
        experiment=manifest.experiment,
        title=config.title,
        blocks=[],
        sources=sources,
        machine=manifest.machine.cpu if manifest.machine else "",
        figures=config.figures,
        absent=[name for name, asked in config.datasets.items() if name not in there and not asked.own_file],
        measured_on=measured.machine,
        baselines={name: _baseline_label(changes, manifest) for name, changes in (config.against or {}).items()},
    )
    matches = matches_of(sources, measured)
    for dataset in measured.datasets:
        lines = [Line(**vars(one), matches=matches.get((dataset.name, one.column), {})) for one in dataset.methods]
        table.blocks.append(_block(dataset, lines, manifest, table, only_published=only_published))
    return table


def _baseline_label(changes: Mapping[str, object], manifest: Manifest) -> str:
    label = manifest.algorithm_label(str(changes["algorithm"])) if changes.get("algorithm") is not None else ""
    rest = variant_text({name: value for name, value in changes.items() if name != "algorithm"})
    return "; ".join(filter(None, [label, rest]))


def _block(
    dataset: MeasuredDataset, lines: list[Line], manifest: Manifest, table: Table, *, only_published: bool
) -> Block:
    metrics = _metrics(lines, manifest, compared=bool(table.sources), only_published=only_published)
    stands_for = (source.paper.stand_ins.get(dataset.name) for source in table.sources)
    resampled = manifest.resampled(dataset.name) is not False
    columns = [line.column for line in lines]
    return Block(
        dataset.name,
        dataset.label,
        lines,
        metrics,
        sizes=dataset.sizes,
        facts=[fact for source in table.sources for fact in source.facts(dataset.name)],
        stands_for=next(filter(None, stands_for), None),
        marks=marks(dataset.groups, columns, metrics, resampled=resampled, by=table.columns),
        groups=dataset.groups,
        resampled=resampled,
    )


def _metrics(lines: list[Line], manifest: Manifest, *, compared: bool, only_published: bool) -> list[Metric]:
    """Return those of the asked metrics that some line has, times in the unit in which they are published.

    The usual ones do not include the log loss beside a paper: none prints it.
    """
    usual = [m.name for m in METRICS.values() if m.usual and not (m.name == "log_loss" and compared)]
    units: dict[str, set[str]] = {}
    for line in lines:
        for name, one in line.matches.items():
            units.setdefault(name, set()).add(one.printed.unit)
    measured = {name for line in lines for name, entry in line.entries.items() if entry.mean is not None}
    present = set(units) if units and only_published else measured | set(units)
    return [
        replace(manifest.metrics[name], unit="min") if units.get(name) == {"min"} else manifest.metrics[name]
        for name in dict.fromkeys(manifest.config.metrics or usual)
        if name in present
    ]
