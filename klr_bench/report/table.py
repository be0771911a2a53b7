"""The table of an experiment as values: a block a data set, a line a column of the experiment, an entry a metric."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from klr_bench.experiment.config.files import folders
from klr_bench.experiment.measure.catalogue import METRICS
from klr_bench.experiment.measure.metric import Metric
from klr_bench.experiment.targets import Parameters
from klr_bench.experiment.variants import Variant
from klr_bench.report.comparison import Comparison, comparison
from klr_bench.report.conditions import TIMES, UNKNOWN, Conditions, Machine, conditions_of, usual_machine
from klr_bench.report.derived import Groups, compared, with_derived
from klr_bench.report.load import Results
from klr_bench.report.manifest import Column, Manifest
from klr_bench.report.paper import Printed, Published
from klr_bench.report.significance import Marks, marks
from klr_bench.report.sweeps import other_sweeps

if TYPE_CHECKING:
    import pandas as pd

Row = dict[Hashable, Any]
SIZES = ("n_train", "n_test", "n_features")


@dataclass(frozen=True)
class Entry:
    """Mean and sample standard deviation over the successful repeats, in the unit of records.csv."""

    n: int
    mean: float | None
    std: float | None
    published: Published | None = None
    alike: bool = True
    """Whether it was measured under the conditions of the table's other times; a time that was not has no ratio."""

    @property
    def comparable(self) -> bool:
        """Whether there is a published number of the same data."""
        return self.published is not None and not self.published.stand_in

    @property
    def difference(self) -> float | None:
        """Ours less the published mean."""
        if self.mean is None or self.published is None or not self.comparable:
            return None
        return self.mean - self.published.mean

    @property
    def ratio(self) -> float | None:
        """The published mean over ours: of times, how many times faster ours is."""
        if not (self.mean and self.published and self.comparable and self.alike):
            return None
        return self.published.mean / self.mean

    @property
    def outside(self) -> bool | None:
        """Whether ours lies outside the published spread."""
        if self.mean is None or self.published is None or not self.comparable:
            return None
        return self.published.outside(self.mean)


@dataclass(frozen=True)
class Failures:
    """Repeats that did not end well."""

    status: str
    repeats: Sequence[int]
    message: str
    """The first one."""


@dataclass(frozen=True)
class Line:
    """One algorithm and variant on one data set.  `n_ok` of `n_repeats` repeats were successful."""

    algorithm: str
    algorithm_label: str
    """Its print name."""
    variant: Variant
    n_ok: int
    n_repeats: int
    failures: Sequence[Failures]
    n_missing: int
    """Repeats that were asked for and not run yet."""
    entries: dict[str, Entry]
    timed_out: bool = False
    """Whether no repeat ended well, and the numbers are those of repeats that a time limit ended."""
    conditions: Conditions = field(default_factory=Conditions)
    """Where its fits ran, and how busy others kept these machines."""


@dataclass(frozen=True)
class Block:
    """One data set; times are in the unit of the published ones, seconds where there are none."""

    dataset: str
    label: str
    lines: list[Line]
    metrics: list[Metric]
    sizes: Mapping[str, float] = field(default_factory=dict)
    """Numbers of rows and columns, of the first fit; empty where none has any."""
    facts: Sequence[Printed] = ()
    """What the published tables say of the data set itself."""
    stands_for: str | None = None
    """The data set of the paper that this one stands in for."""
    marks: Mapping[str, Marks] = field(default_factory=dict)
    """By metric, the best line and those that are not distinguishable from it."""


@dataclass(frozen=True)
class Other:
    """The column that another is compared with: the changes that lead there, and its algorithm's print name."""

    algorithm_label: str | None
    changes: Variant


@dataclass(frozen=True)
class Table:
    """All of an experiment."""

    experiment: str
    title: str
    blocks: list[Block]
    comparison: Comparison
    """The published tables that stand beside the results."""
    machine: str
    figures: list[str] | None
    """Names of the figures that were asked for; None: the usual ones."""
    absent: list[str]
    """Data sets that were asked for and have no row yet."""
    others: Mapping[str, Other] = field(default_factory=dict)
    """For metrics that compare two columns, the other column."""
    measured_on: Machine = UNKNOWN
    """The machine of most fits; times of other machines have no ratio."""

    @property
    def columns(self) -> str | None:
        """A parameter whose values are the columns, where the published table is of that kind."""
        return self.comparison.columns

    @property
    def shown(self) -> dict[str, Metric]:
        """The metrics that some block shows."""
        return {metric.name: metric for block in self.blocks for metric in block.metrics}


def beside_papers(results: Results, table: str | None = None) -> Table:
    """Make the table of an experiment beside the published tables that name it, or the one that is asked for."""
    manifest, searched = results.manifest, folders()
    records = with_derived(results.records, results.traces)
    keys = set(product(manifest.config.datasets, manifest.config.algorithms))
    keys |= set(zip(records["dataset"], records["algorithm"], strict=True))
    found = comparison(manifest.chosen, keys, manifest.metrics, searched, table)
    return build(records, manifest, found, only_published=table is not None)


def build(records: pd.DataFrame, manifest: Manifest, papers: Comparison, *, only_published: bool = False) -> Table:
    """Make the table of an experiment from its rows, its manifest and the published numbers.

    Only rows with status ok enter a mean, those that a time limit ended where there are no others; all others, and the
    repeats that were asked for and have no row, are counted in the lines.  `only_published`: the metrics that the
    published table has, and no others, where it has some.
    """
    groups: dict[str, dict[Column, list[Row]]] = {}
    for row in records.to_dict("records"):
        groups.setdefault(row["dataset"], {}).setdefault((row["algorithm"], row["variant"]), []).append(row)
    asked = list(manifest.config.datasets)
    known = [name for name in asked if name in groups]
    machine = usual_machine(row for columns in groups.values() for rows in columns.values() for row in _shown(rows))
    blocks = [
        _block(name, groups[name], manifest, papers, machine, only_published=only_published)
        for name in [*known, *sorted(set(groups) - set(known))]
    ]
    return Table(
        experiment=manifest.experiment,
        title=manifest.config.title,
        blocks=blocks,
        comparison=papers,
        machine=manifest.machine.cpu if manifest.machine else "",
        figures=manifest.config.figures,
        absent=[name for name in asked if name not in groups and not manifest.config.datasets[name].own_file],
        measured_on=machine,
        others={name: _other(changes, manifest) for name, changes in (manifest.config.against or {}).items()},
    )


def _other(changes: Parameters, manifest: Manifest) -> Other:
    algorithm = changes.get("algorithm")
    label = None if algorithm is None else manifest.algorithm_label(str(algorithm))
    return Other(label, Variant(changes).without("algorithm"))


def _block(
    dataset: str,
    groups: Groups,
    manifest: Manifest,
    papers: Comparison,
    machine: Machine,
    *,
    only_published: bool,
) -> Block:
    asked = manifest.columns() if dataset in manifest.config.datasets else []
    against = manifest.config.against or {}
    columns = sorted({*groups, *asked}, key=manifest.order)
    others = other_sweeps(groups, manifest)
    lines = []
    for column in columns:
        rows = list(groups.get(column, []))
        repeats = max(len(rows), manifest.config.repeats if column in asked else 0)
        values = _values(column, rows, manifest)
        if manifest.borrowed and "budget" in values:  # the paper's are the numbers of support vectors of its own run
            ours = {variant["budget"] for name, variant in columns if name == column[0] and "budget" in variant}
            budgets = papers.alike(dataset, column[0], "budget", ours)
            values = {**values, "budget": budgets.get(values["budget"], values["budget"])}
        published = {} if column in others else papers.published(dataset, column[0], values)
        derived = {
            name: compared(groups, column, metric, against.get(name)) if rows else []
            for name, metric in manifest.metrics.items()
            if metric.compares
        }
        line = _line(column, manifest, rows, repeats, published, derived, machine)
        lines.append(_named(line, others[column]) if column in others else line)
    every = [row for rows in groups.values() for row in rows if row["n_train"] > 0]
    facts = papers.facts(dataset)
    metrics = _metrics(lines, manifest, compared_with_paper=bool(papers.sources), only_published=only_published)
    resampled = manifest.resampled(dataset) is not False
    return Block(
        dataset,
        manifest.dataset_label(dataset),
        lines,
        metrics,
        sizes={name: every[0][name] for name in SIZES} if every and facts else {},
        facts=facts,
        stands_for=papers.stands_for(dataset),
        marks=marks(groups, columns, metrics, resampled=resampled, by=papers.columns),
    )


def _named(line: Line, difference: str) -> Line:
    return replace(line, algorithm_label=f"{line.algorithm_label} ({difference})")


def _values(column: Column, rows: Sequence[Row], manifest: Manifest) -> Parameters:
    """Return the parameters of a column: its variant, and what all its records have, or the configuration before."""
    algorithm, variant = column
    fitted = [row["params"] for row in rows if row["params"]]
    asked = manifest.config.algorithms.get(algorithm)
    alike = fitted[0] if fitted else dict(asked.estimator) if asked else {}
    alike = {name: value for name, value in alike.items() if all(p.get(name) == value for p in fitted)}
    return {**alike, **variant}


def _metrics(lines: list[Line], manifest: Manifest, *, compared_with_paper: bool, only_published: bool) -> list[Metric]:
    """Return those of the asked metrics that some line has, times in the unit in which they are published.

    The usual ones are without the log loss beside a paper: none prints it.
    """
    usual = [m.name for m in METRICS.values() if m.usual and not (m.name == "log_loss" and compared_with_paper)]
    entries = [(name, entry) for line in lines for name, entry in line.entries.items()]
    present = {name for name, entry in entries if entry.mean is not None or entry.published}
    printed = {name for name, entry in entries if entry.published}
    present = printed if printed and only_published else present
    units: dict[str, set[str]] = {}
    for name, entry in entries:
        if entry.published:
            units.setdefault(name, set()).add(entry.published.printed.unit)
    return [
        replace(manifest.metrics[name], unit="min") if units.get(name) == {"min"} else manifest.metrics[name]
        for name in dict.fromkeys(manifest.config.metrics or usual)
        if name in present
    ]


def _line(
    column: Column,
    manifest: Manifest,
    rows: list[Row],
    n_repeats: int,
    published: Mapping[str, Published],
    derived: Mapping[str, list[float]],
    machine: Machine,
) -> Line:
    ok, shown = [row for row in rows if row["status"] == "ok"], _shown(rows)
    conditions = conditions_of(shown)
    entries = {
        name: _entry(derived.get(name, [row.get(name, np.nan) for row in shown]), published.get(name))
        for name in manifest.metrics
    }
    if not conditions.alike(Conditions(frozenset({machine}))):
        entries |= {name: replace(entries[name], alike=False) for name in TIMES & entries.keys()}
    algorithm, variant = column
    return Line(
        algorithm,
        manifest.algorithm_label(algorithm),
        variant,
        len(ok),
        n_repeats,
        _failures(rows),
        n_repeats - len(rows),
        entries,
        timed_out=bool(shown and not ok),
        conditions=conditions,
    )


def _shown(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that enter a mean: the successful ones, or those that a time limit ended if there are none."""
    return [row for row in rows if row["status"] == "ok"] or [row for row in rows if row["status"] == "timeout"]


def _entry(values: Iterable[float], found: Published | None) -> Entry:
    known = np.array([value for value in values if not np.isnan(value)])
    if not known.size:
        return Entry(0, None, None, found)
    spread = known.size > 1 and np.isfinite(known).all()
    return Entry(known.size, float(known.mean()), float(known.std(ddof=1)) if spread else None, found)


def _failures(rows: list[Row]) -> list[Failures]:
    found = []
    for status in dict.fromkeys(row["status"] for row in rows if row["status"] != "ok"):
        failed = [row for row in rows if row["status"] == status]
        message = next((row["message"] for row in failed if row["message"]), "")
        found.append(Failures(status, [int(row["repeat"]) for row in failed], message))
    return found
