"""The papers' numbers: published/<paper>.csv, with each number as it was printed."""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from klr_bench.errors import KlrBenchError, nearest
from klr_bench.experiment.first_schema import parse_variant
from klr_bench.experiment.variants import as_number

FOLDER = Path(__file__).parent / "published"

# One printed unit in the unit of records.csv.
SCALES = {
    "percent": Decimal("0.01"),
    "fraction": Decimal(1),
    "count": Decimal(1),
    "s": Decimal(1),
    "min": Decimal(60),
}

# The papers' tables and records.csv name these differently.
METRICS = {
    "n_support": "n_support_vectors",
    "fit_time_s": "train_time",
    "last_accuracy": "accuracy",
    "pass_time_s": "train_time_online_pass",
    "nonzero_fraction": "nonzero",
    "n_iter_ratio": "iterations_multiscale_over_original",
}


@dataclass(frozen=True)
class Row:
    """A line of the file.  `mean` and `std` are text: "85.8" and "85.80" have different last digits."""

    paper: str
    table: str
    dataset: str
    algorithm: str
    params: str
    metric: str
    unit: str
    mean: str
    std: str


@dataclass(frozen=True)
class Published:
    """A published number: as printed (`row`), and in the unit of records.csv (fractions, seconds, counts)."""

    row: Row
    mean: float
    std: float | None
    half_unit: float
    """Half a unit of the last printed digit of the mean: the most that rounding can have moved it."""

    @classmethod
    def of(cls, row: Row) -> Published:
        """Read a row; in decimals, so that 85.8 percent is 0.858."""
        mean, scale = Decimal(row.mean), SCALES[row.unit]
        half_unit = Decimal((0, (5,), int(mean.as_tuple().exponent) - 1)) * scale
        std = float(Decimal(row.std) * scale) if row.std else None
        return cls(row, float(mean * scale), std, float(half_unit))

    @property
    def tolerance(self) -> float:
        """How far from the published mean is within the published spread: max(2 std, half a unit)."""
        return max(2 * (self.std or 0.0), self.half_unit)

    def outside(self, mean: float) -> bool:
        """Say whether a mean lies outside the published spread; on its edge is within, up to rounding."""
        return not abs(mean - self.mean) <= self.tolerance * (1 + 1e-9)


@cache
def load(paper: str) -> tuple[Row, ...]:
    """Return the rows of a paper; KlrBenchError names the papers that there are."""
    path = FOLDER / f"{paper}.csv"
    known = sorted(file.stem for file in FOLDER.glob("*.csv"))
    if paper not in known:
        message = f"published.paper: no published numbers of {paper!r} in {FOLDER}.{nearest(paper, known)}"
        raise KlrBenchError(message)
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(Row(**line) for line in csv.DictReader(file))


def published(
    paper: str, tables: Collection[str], dataset: str, algorithm: str, variant: Mapping[str, object], metric: str
) -> Published | None:
    """Return the number that the tables print for a column, None where they print none.

    `algorithm` is the paper's name, `metric` a column of records.csv.  All published parameters
    (``G=1;classifier=last``) must be in `variant`, numbers compared by value; so a row without parameters
    fits every variant.  Where several rows fit, the one with the most parameters is meant.
    """
    wanted = (dataset, algorithm, METRICS.get(metric, metric))
    rows = [
        row
        for row in load(paper)
        if row.table in tables and (row.dataset, row.algorithm, row.metric) == wanted and _fits(row.params, variant)
    ]
    if not rows:
        return None
    return Published.of(max(rows, key=lambda row: len(parse_variant(row.params))))


def published_of_line(
    paper: str, tables: Collection[str], dataset: str, algorithm: str, variant: Mapping[str, object], metric: str
) -> Published | None:
    """Return the published number that belongs beside a metric of a variant.

    Where the paper tells the last classifier from the average of all, `last_accuracy` is of the last, the time of
    both, all else of the average; a variant that says itself which it is has that.  Where it prints the time of the
    pass over the examples by itself, the time of a fit is the sum.
    """
    last, average = {"classifier": "last"}, {"classifier": "average"}
    if metric == "last_accuracy":
        found = published(paper, tables, dataset, algorithm, {**last, **variant}, metric)
        return found if found and "classifier" in parse_variant(found.row.params) else None
    found = published(paper, tables, dataset, algorithm, {**average, **variant}, metric)
    if found is None and metric == "fit_time_s":
        found = published(paper, tables, dataset, algorithm, {**last, **variant}, metric)
    if found and metric == "fit_time_s":
        alone = published(paper, tables, dataset, algorithm, variant, "pass_time_s")
        if alone:
            found = Published.of(replace(found.row, mean=str(Decimal(found.row.mean) + Decimal(alone.row.mean))))
    return found


def data_rows(paper: str, tables: Collection[str], dataset: str) -> list[Row]:
    """Return what the tables say of a data set itself."""
    return [row for row in load(paper) if row.table in tables and row.dataset == dataset and not row.algorithm]


def _fits(params: str, variant: Mapping[str, object]) -> bool:
    wanted = parse_variant(params)
    return all(name in variant and _same(variant[name], value) for name, value in wanted.items())


def _same(value: object, wanted: object) -> bool:
    numbers = [as_number(parse_variant(f"x={one}")["x"]) for one in (value, wanted)]
    return str(value) == str(wanted) if None in numbers else numbers[0] == numbers[1]


def check_published(source: Mapping[str, Any]) -> None:
    """Refuse a comparison with a paper or a table that there are no numbers of."""
    for key in ("paper", "table"):
        if not source.get(key):
            message = f"published.{key}: expected the {key} to compare with, got none."
            raise KlrBenchError(message)
    known = sorted({row.table for row in load(str(source["paper"]))})
    for table in tables_of(source):
        if table not in known:
            message = f"published.table={table}: {source['paper']} has numbers of the tables {', '.join(known)}."
            raise KlrBenchError(message)


def tables_of(source: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tables, one or a list, that an experiment is compared with."""
    tables = source["table"]
    return tuple(map(str, tables)) if isinstance(tables, list) else (str(tables),)
