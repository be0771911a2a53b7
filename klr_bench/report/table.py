"""Results table of an experiment: one block per data set, with a row per method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from klr_bench.config.locations import folders
from klr_bench.errors import fail
from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.parsing import check_choice
from klr_bench.report.best_model import Code, best_model
from klr_bench.report.load import Results
from klr_bench.report.manifest import Manifest
from klr_bench.report.measured import Groups, Machine, Measured, Method, measure
from klr_bench.report.papers.match import Match, Source, matches_by_method, published_tables
from klr_bench.report.papers.model import Cause, Printed
from klr_bench.report.papers.reading import calibrated_figures
from klr_bench.report.papers.reproduction import Rows, compared_rows, selection_sentence
from klr_bench.report.papers.verdicts import CALIBRATED_MARK, Verdict
from klr_bench.report.significance import Marks, marks
from klr_bench.results.variants import variant_text


@dataclass(frozen=True)
class Line(Method):
    """Method with the published numbers that match it, keyed by metric."""

    matches: Mapping[str, Match] = field(default_factory=dict)


@dataclass(frozen=True)
class Block:
    """Block of the table for one data set. Times are in the published unit, or in seconds."""

    dataset: str
    label: str
    lines: list[Line]
    metrics: list[Metric]
    sizes: Mapping[str, float]
    facts: Sequence[Printed]
    """Published properties of the data set."""
    stands_for: str | None
    """The published data set that this one substitutes, if any."""
    marks: Mapping[str, Marks]
    """Per metric, the best method and the methods that do not differ significantly from it."""
    groups: Groups
    resampled: bool
    """True if each repeat draws a new split, or if this is unknown."""

    @property
    def matches(self) -> list[Match]:
        """All published numbers that match a row of the block."""
        return [match for line in self.lines for match in line.matches.values()]


@dataclass(frozen=True)
class Table:
    """Results table of an experiment."""

    experiment: str
    title: str
    changes: Sequence[str]
    """Settings that differ from those of the experiment's file."""
    blocks: list[Block]
    sources: Sequence[Source]
    """Published tables with which the experiment is compared."""
    machine: str
    figures: list[str] | None
    absent: list[str]
    """Requested data sets without records."""
    baselines: Mapping[str, str]
    """Display name of the baseline method for each metric that needs one, such as "FISTA; two_stage=False"."""
    measured_on: Machine
    """The machine of most fits; no ratio is shown for times from other machines."""
    selection: Sequence[str]
    """Sentences on how parameters were selected, and on settings that were chosen to lead to a published figure."""
    best: Sequence[Code]
    """For the user's own file, a command and Python code that fit the best method to all rows."""

    @property
    def columns(self) -> str | None:
        """The parameter whose values form the columns, if all published tables share one."""
        parameters = {source.paper.tables[table].columns for source in self.sources for table in source.tables}
        return parameters.pop() if len(parameters) == 1 else None

    @property
    def metrics(self) -> dict[str, Metric]:
        """All metrics that appear in at least one block."""
        return {metric.name: metric for block in self.blocks for metric in block.metrics}

    @property
    def compared_matches(self) -> list[Match]:
        """Published numbers for which the table shows a difference."""
        return [
            match
            for block in self.blocks
            for line in block.lines
            for metric in block.metrics
            if metric.compared == "difference" and (match := line.matches.get(metric.name))
        ]

    @property
    def causes(self) -> list[Cause]:
        """Causes of the explained differences in the table."""
        reasons = {match.reason for match in self.compared_matches if match.verdict is Verdict.EXPLAINED}
        causes = {cause.because: cause for source in self.sources for cause in source.paper.causes}
        return [cause for because, cause in causes.items() if because in reasons]


def results_table(results: Results, table: str | None = None, columns: Sequence[str] | None = None) -> Table:
    """Build the results table of an experiment, with the published numbers to compare it with.

    `table` restricts the comparison to one published table.

    `columns` are names of metrics, in this order; None: those of the run.  Raises KlrBenchError for an unknown table or
    metric, and for a metric without values.
    """
    manifest = results.manifest
    for name in columns or ():
        check_choice("columns", name, manifest.metrics)
    if columns is not None:
        config = manifest.config.model_copy(update={"metrics": list(columns)})
        results = replace(results, manifest=manifest.model_copy(update={"config": config}))
    measured = measure(results)
    sources: list[Source] = []
    if not results.over:
        sources = published_tables(manifest.experiment_file, manifest.metrics, folders(), measured.results_dir, table)
    built = build(measured, sources, only_published=table is not None)
    for name in columns or ():
        if name not in built.metrics:
            has = ", ".join(built.metrics) or "none of the requested ones"
            fail(f"columns: no record of {built.experiment} has {name}; available: {has}. Remove {name} from columns.")
    return built


def build(
    measured: Measured,
    sources: Sequence[Source] = (),
    compared: Mapping[str, Rows | None] | None = None,
    *,
    only_published: bool = False,
) -> Table:
    """Build a table of measured and published numbers.

    `compared` has the numbers of the sources with their verdicts, keyed by paper; None: they are matched here.  With
    `only_published`, only published metrics are included, if there are any.
    """
    if compared is None:
        compared = {source.name: compared_rows(source, measured.name) for source in sources}
    manifest, config = measured.manifest, measured.manifest.config
    present = {dataset.name for dataset in measured.datasets}
    baselines = {}
    for name, changes in config.against.items():
        label = [manifest.algorithm_label(str(changes["algorithm"]))] if changes.get("algorithm") is not None else []
        rest = variant_text({key: value for key, value in changes.items() if key != "algorithm"})
        baselines[name] = "; ".join([*label, *([rest] if rest else [])])
    table = Table(
        experiment=manifest.experiment,
        title=manifest.title,
        changes=manifest.changes,
        blocks=[],
        sources=sources,
        machine=str((manifest.machine or {}).get("cpu") or ""),
        figures=config.figures,
        absent=[
            name for name, entry in config.datasets.items() if name not in present and not entry.source.is_own_file
        ],
        measured_on=measured.machine,
        baselines=baselines,
        selection=[
            *filter(None, [selection_sentence(manifest)]),
            *(f"{CALIBRATED_MARK} {text}" for text in calibrated_figures(manifest.experiment_file, folders())),
        ],
        best=best_model(manifest, measured.datasets),
    )
    matches = matches_by_method(sources, measured, compared)
    for dataset in measured.datasets:
        lines = [
            Line(**vars(method), matches=matches.get((dataset.name, method.column), {})) for method in dataset.methods
        ]
        metrics = _metrics(lines, manifest, compared=bool(sources), only_published=only_published)
        stands_for = (source.paper.stand_ins.get(dataset.name) for source in sources)
        resampled = manifest.resampled(dataset.name) is not False
        columns = [line.column for line in lines]
        block = Block(
            dataset.name,
            dataset.label,
            lines,
            metrics,
            sizes=dataset.sizes,
            facts=[fact for source in sources for fact in source.facts(dataset.name)],
            stands_for=next(filter(None, stands_for), None),
            marks=marks(dataset.groups, columns, metrics, resampled=resampled, by=table.columns),
            groups=dataset.groups,
            resampled=resampled,
        )
        table.blocks.append(block)
    return table


def _metrics(lines: list[Line], manifest: Manifest, *, compared: bool, only_published: bool) -> list[Metric]:
    """Return the requested metrics that have values, with times in the published unit.

    The default metrics exclude the log loss if there are published numbers, because no paper prints it.
    """
    usual = [m.name for m in METRICS.values() if m.usual and not (m.name == "log_loss" and compared)]
    units: dict[str, set[str]] = {}
    for line in lines:
        for name, match in line.matches.items():
            units.setdefault(name, set()).add(match.printed.unit)
    measured = {name for line in lines for name, entry in line.entries.items() if entry.mean is not None}
    present = set(units) if units and only_published else measured | set(units)
    return [
        replace(manifest.metrics[name], unit="min") if units.get(name) == {"min"} else manifest.metrics[name]
        for name in dict.fromkeys(manifest.config.metrics or usual)
        if name in present
    ]
