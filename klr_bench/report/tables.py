"""The table of an experiment as values: a block a data set, a line an algorithm, a cell a metric."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from klr_bench.experiment.measure.catalogue import CATALOGUE, METRICS
from klr_bench.experiment.measure.metric import Metric
from klr_bench.experiment.variants import Variant
from klr_bench.report.derived import compared
from klr_bench.report.plan import Column, Plan
from klr_bench.report.published import Published, data_rows, published_of_line

if TYPE_CHECKING:
    import pandas as pd

Row = dict[Hashable, Any]
Groups = dict[Column, list[Row]]


DERIVED = tuple(metric.name for metric in CATALOGUE if metric.compares)
SIZES = {
    "n_train": "training rows",
    "n_test": "test rows",
    "n_examples": "rows",
    "n_features": "features",
    "nnz_per_instance": "numbers a row that are not 0",
}


@dataclass(frozen=True)
class Cell:
    """Mean and sample standard deviation over the repeats that ended well, in the unit of records.csv."""

    n: int
    mean: float | None
    std: float | None
    published: Published | None = None

    @property
    def difference(self) -> float | None:
        """Ours less the published mean."""
        if self.mean is None or self.published is None:
            return None
        return self.mean - self.published.mean

    @property
    def ratio(self) -> float | None:
        """The published mean over ours: of times, how many times faster ours is."""
        return self.published.mean / self.mean if self.mean and self.published else None

    @property
    def outside(self) -> bool | None:
        """Whether ours lies outside the published spread."""
        if self.mean is None or self.published is None:
            return None
        return self.published.outside(self.mean)


@dataclass(frozen=True)
class Line:
    """One algorithm and variant on one data set.  `n_ok` of `n_repeats` cells ended well.

    `label` and `variant_label` are the print names of both, and of the variant alone.
    """

    algorithm: str
    variant: Variant
    label: str
    variant_label: str
    n_ok: int
    n_repeats: int
    failures: str
    cells: dict[str, Cell]
    timed_out: bool = False
    """Whether no repeat ended well, and the numbers are those of repeats that a time limit ended."""

    @property
    def algorithm_label(self) -> str:
        """The print name of the algorithm alone."""
        return self.label.removesuffix(self.variant_label).strip()


@dataclass(frozen=True)
class Block:
    """One data set.  `time_unit` is that of the published times, seconds where there are none."""

    dataset: str
    label: str
    lines: list[Line]
    metrics: list[Metric]
    data: str = ""
    """What the data set is like, here and in the paper, where one of the tables says so."""


@dataclass(frozen=True)
class Table:
    """All of an experiment; `source` is the paper and its tables that stand beside the results."""

    experiment: str
    title: str
    blocks: list[Block]
    source: tuple[str, tuple[str, ...]] | None
    machine: str
    figures: list[str] | None
    """Names of the figures that were asked for; None: the usual ones."""
    absent: list[str]
    """Data sets that were asked for and have no row yet."""
    columns: str | None = None
    """A parameter whose values are the columns, where the experiment asks for that."""
    compared: Mapping[str, str] = field(default_factory=dict)
    """For numbers that compare two columns, the other column in words."""

    @property
    def shown(self) -> set[str]:
        """The names of the metrics that some block shows."""
        return {metric.name for block in self.blocks for metric in block.metrics}


def build(records: pd.DataFrame, manifest: Mapping[str, Any], table: str | None = None) -> Table:
    """Make the table of an experiment from its rows and its manifest.

    Only rows with status ok enter a mean, those that a time limit ended where there are no others; all others, and the
    repeats that were asked for and have no row, are counted in the lines.  KlrBenchError where `table` is not one that
    the experiment is compared with.
    """
    plan = Plan.of(manifest)
    source = plan.source(table)
    groups: dict[str, Groups] = {}
    for row in records.to_dict("records"):
        groups.setdefault(row["dataset"], {}).setdefault((row["algorithm"], row["variant"]), []).append(row)
    known = [name for name in plan.datasets if name in groups]
    return Table(
        experiment=str(manifest["experiment"]),
        title=plan.title,
        blocks=[
            _block(name, groups[name], plan, source, only_published=table is not None)
            for name in [*known, *sorted(set(groups) - set(known))]
        ],
        source=source,
        machine=str((manifest.get("machine") or {}).get("cpu") or ""),
        figures=plan.figures,
        # The rows of the user's own file carry the name and the hash of that file.
        absent=[name for name in plan.datasets if name not in groups and name != "file"],
        columns=(plan.published or {}).get("columns"),
        compared={name: _words(changes, plan) for name, changes in plan.against.items()},
    )


def _words(changes: Mapping[str, Any], plan: Plan) -> str:
    """Return what `changes` to a column lead to, as a report says it."""
    parts = [plan.label((str(changes["algorithm"]), Variant()))] if "algorithm" in changes else []
    parts += [f"{name}={value}" for name, value in changes.items() if name != "algorithm"]
    return "; ".join(parts)


def _block(
    dataset: str, groups: Groups, plan: Plan, source: tuple[str, tuple[str, ...]] | None, *, only_published: bool
) -> Block:
    asked = plan.columns() if dataset in plan.datasets else []
    lines = []
    for column in sorted({*groups, *asked}, key=plan.order):
        rows = groups.get(column, [])
        repeats = max(len(rows), plan.repeats if column in asked else 0)
        values = plan.published_values(column)
        names = plan.published_name(dataset), plan.published_name(column[0])
        found = {m.name: published_of_line(*source, *names, values, m.name) if source else None for m in CATALOGUE}
        besides = {name: compared(groups, column, name, plan.against.get(name)) for name in DERIVED if rows}
        lines.append(_line(column, plan, rows, repeats, found, besides))
    usual = [m.name for m in CATALOGUE if m.usual and not (m.name == "log_loss" and source)]
    metrics = _metrics(lines, plan.metrics or usual, only_published=only_published)
    data = _data(plan, dataset, [row for rows in groups.values() for row in rows], source)
    return Block(dataset, plan.dataset_label(dataset), lines, metrics, data)


def _data(plan: Plan, dataset: str, rows: list[Row], source: tuple[str, tuple[str, ...]] | None) -> str:
    """Return the size of a data set beside the paper's; "" where its tables have none."""
    name = plan.data_name(dataset)
    printed = data_rows(*source, name) if source else []
    counted = [row for row in rows if row["n_train"] > 0]
    if not printed or not counted:
        return ""
    ours = ", ".join(f"{SIZES[size]} {counted[0][size]:,.0f}" for size in ("n_train", "n_test", "n_features"))
    theirs = ", ".join(f"{SIZES[row.metric]} {int(row.mean):,}" for row in printed)
    return f"{plan.dataset_label(dataset)}: {ours}. In table {printed[0].table}, {name}: {theirs}."


def _metrics(lines: list[Line], asked: list[str], *, only_published: bool) -> list[Metric]:
    """Return those of the asked metrics that some line has, times in the unit in which they are published.

    `only_published`: those alone that the paper's table has, if it has any of them.
    """
    cells = [(name, cell) for line in lines for name, cell in line.cells.items()]
    present = {name for name, cell in cells if cell.mean is not None or cell.published}
    printed = {name for name, cell in cells if cell.published}
    present = printed if printed and only_published else present
    minutes = {cell.published.row.unit for name, cell in cells if name == "fit_time_s" and cell.published} == {"min"}
    return [
        replace(METRICS[name], unit="min") if name == "fit_time_s" and minutes else METRICS[name]
        for name in dict.fromkeys(asked)
        if name in present
    ]


def _line(
    column: Column,
    plan: Plan,
    rows: list[Row],
    n_repeats: int,
    found: Mapping[str, Published | None],
    besides: Mapping[str, list[float]],
) -> Line:
    ok = [row for row in rows if row["status"] == "ok"]
    shown = ok or [row for row in rows if row["status"] == "timeout"]
    cells = {
        name: _cell(besides.get(name, []) if name in DERIVED else [row.get(name, np.nan) for row in shown], number)
        for name, number in found.items()
    }
    labels = plan.label(column), plan.variant_label(column)
    return Line(*column, *labels, len(ok), n_repeats, _failures(rows, n_repeats), cells, bool(shown and not ok))


def _cell(values: Iterable[float], found: Published | None) -> Cell:
    known = np.array([value for value in values if not np.isnan(value)])
    if not known.size:
        return Cell(0, None, None, found)
    spread = known.size > 1 and np.isfinite(known).all()
    return Cell(known.size, float(known.mean()), float(known.std(ddof=1)) if spread else None, found)


def _failures(rows: list[Row], n_repeats: int) -> str:
    """Return what became of the repeats that did not end well: their numbers, and the first message."""
    parts = []
    for status in dict.fromkeys(row["status"] for row in rows if row["status"] != "ok"):
        failed = [row for row in rows if row["status"] == status]
        repeats = ", ".join(f"{row['repeat']:g}" for row in failed)
        said = next((" ".join(row["message"].split()) for row in failed if row["message"].strip()), "")
        parts.append(f"{status} (repeat {repeats}){f': {said}' if said else ''}")
    if n_repeats > len(rows):
        parts.append(f"{n_repeats - len(rows)} not run")
    return "; ".join(parts)
