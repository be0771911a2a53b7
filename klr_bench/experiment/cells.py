"""A cell: one fit and what it has left, checked when it is read and before it is written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from klr_bench.experiment.first_schema import upgraded_record
from klr_bench.experiment.measure.catalogue import CATALOGUE, METRICS, MOST
from klr_bench.experiment.measure.metric import Metric
from klr_bench.experiment.variants import Variant, is_variant
from klr_bench.printing import is_file_name, shortened

SCHEMA_VERSION = 2
FINISHED = ("ok", "timeout")  # error and killed are tried again
STATUSES = (*FINISHED, "error", "killed")
LONGEST_MESSAGE = 2000
"""Characters of the message of a fit that failed."""
LONGEST_NAME = 200
"""Characters of what names a machine."""

Checkpoint = tuple[int, float, str, float]
"""(examples seen or iterations, seconds of fitting, metric, value)"""
Bin = tuple[int, int, float, float]
"""(number of the bin, rows in it, mean predicted probability, share of positives)"""
PlanePoint = tuple[float, float, int]
"""A training row in the plane: (x1, x2, label)"""


@dataclass
class Record:
    """One row of records.csv.  `metrics` has names of the catalogue; rates are fractions, times seconds."""

    key: str
    experiment: str
    dataset: str
    algorithm: str
    variant: Variant
    params: dict[str, Any]
    repeat: int
    seed: int | None
    status: str
    message: str = ""
    metrics: dict[str, float] = field(default_factory=dict)
    host: str = ""
    """The name of the machine; "" where it is not known, as in cells of earlier versions."""
    cpu: str = ""
    """Its processor, and the kernels and threads of its linear algebra."""

    def __post_init__(self) -> None:
        self.message = shortened(self.message, LONGEST_MESSAGE)
        self.host, self.cpu = shortened(self.host, LONGEST_NAME), shortened(self.cpu, LONGEST_NAME)

    @property
    def column(self) -> tuple[str, str, Variant]:
        """The column of a table that it belongs to: data set, algorithm, variant."""
        return self.dataset, self.algorithm, self.variant


FIELDS: dict[str, Any] = get_type_hints(Record)
"""The fields of a record and their types."""
IDENTITY = tuple(name for name in FIELDS if name != "metrics")
"""The columns that say what a row is of."""
LATER = ("host", "cpu")
"""Fields that earlier versions have not written."""
COLUMNS = (*IDENTITY, *(metric.name for metric in CATALOGUE if metric.stored))
TRACE_COLUMNS = ("key", "t", "elapsed_s", "metric", "value")
RELIABILITY_COLUMNS = ("key", "bin", "n", "predicted", "positive")
ROWS_COLUMNS = ("key", "x1", "x2", "label")
NAMES = ("key", "experiment", "dataset", "algorithm", "metric")
"""Columns that hold names, which may become part of the name of a file."""
RANGES: Mapping[str, Metric] = METRICS | {
    entry.name: entry
    for entry in (
        *(Metric(name, name, whole=True, low=0) for name in ("repeat", "t", "bin", "n")),
        *(Metric(name, name, low=0, high=1) for name in ("predicted", "positive")),
        *(Metric(name, name) for name in ("x1", "x2")),
        Metric("seed", "seed", whole=True),
        Metric("label", "label", whole=True),
        Metric("elapsed_s", "elapsed_s", "s", low=0, high=MOST),
    )
}
"""The values that the numbers of each column of a results folder may have; those of other columns are no NaN."""
ANY = Metric("any", "any")


@dataclass(frozen=True)
class CellFile:
    """What a cell has left: cells/<key>.json."""

    record: Record
    config_hash: str
    created: float
    """Seconds since 1970."""
    checkpoints: Sequence[Checkpoint] = ()
    bins: Sequence[Bin] = ()
    rows: Sequence[PlanePoint] = ()

    def content(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        record = {name: getattr(self.record, name) for name in IDENTITY}
        return {
            "schema_version": SCHEMA_VERSION,
            "config_hash": self.config_hash,
            "created": self.created,
            "record": record | {"variant": dict(self.record.variant), "metrics": self.record.metrics},
            "traces": list(self.checkpoints),
            "reliability": list(self.bins),
            "rows": list(self.rows),
        }

    def checked(self) -> CellFile:
        """Return the cell; one with a number that cannot be, such as an accuracy of 7, as that of a failed fit.

        Checkpoints of NaN are left out, as a record leaves such metrics out.
        """
        cell = replace(self, checkpoints=[point for point in self.checkpoints if not math.isnan(point[-1])])
        found = [*self.record.metrics.items(), *((name, value) for _, _, name, value in cell.checkpoints)]
        wrong = next(((name, value) for name, value in found if not possible(name, value)), None)
        if wrong is None:
            return cell
        name, value = wrong
        message = f"{name}: expected {RANGES.get(name, ANY).range}, got {value!r} from the fit"
        failed = replace(self.record, status="error", message=message, metrics={})
        return CellFile(failed, self.config_hash, self.created)


def possible(name: str, value: float) -> bool:
    """Say whether a number can be that of a column or metric; any but NaN where the name is not known."""
    try:
        return RANGES.get(name, ANY).possible(float(value))
    except OverflowError:
        return False


def parse_cell(content: Any, key: str) -> CellFile | None:
    """Return the cell that a JSON file holds; None for anything else, and for a schema version that is not known."""
    try:
        record = content["record"]
        if content["schema_version"] == 1:
            record = upgraded_record(record, IDENTITY)
        elif content["schema_version"] != SCHEMA_VERSION:
            return None
        record = dict.fromkeys(LATER, "") | record
        if not (_is_record(record) and record["key"] == key):
            return None
        created = _checked(content["created"], float)
        return CellFile(
            Record(**{**record, "variant": Variant(record["variant"])}),
            _checked(content["config_hash"], str),
            created if math.isfinite(created) else _refuse("a time", created),
            _entries(content["traces"], Checkpoint, TRACE_COLUMNS),
            _entries(content.get("reliability", []), Bin, RELIABILITY_COLUMNS),
            _entries(content.get("rows", []), PlanePoint, ROWS_COLUMNS),
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        return None


def _is_record(content: Mapping[str, Any]) -> bool:
    """Tell whether all fields of a record are there, of their declared types, and whether their values can be."""
    metrics, numbers = content["metrics"], [content["repeat"], content["seed"] or 0]
    return (
        content.keys() == FIELDS.keys()
        and all(_fits(content[name], kind) for name, kind in FIELDS.items())
        and content["status"] in STATUSES
        and all(map(possible, ("repeat", "seed"), numbers))
        and all(is_file_name(content[name]) for name in NAMES if name in content)
        and is_variant(content["variant"])
        and all(is_file_name(name) and name not in IDENTITY for name in metrics)
        and all(_fits(value, float) and possible(name, value) for name, value in metrics.items())
    )


def _entries(content: Any, kind: Any, columns: Sequence[str]) -> list[Any]:
    """Return the entries of a list as tuples of a declared type; raises ValueError where one is something else.

    `columns` are those of the file of all cells, of which the first is the key.
    """
    kinds = get_args(kind)
    entries = [
        tuple(_checked(value, kind) for value, kind in zip(_checked(entry, list), kinds, strict=True))
        for entry in _checked(content, list)
    ]
    for entry in entries:
        values = dict(zip(columns[1:], entry, strict=True))
        of = {"value": values["metric"]} if "metric" in values else {}
        for name, value in values.items():
            if not (is_file_name(value) if isinstance(value, str) else possible(of.get(name, name), value)):
                _refuse(name, value)
    return entries


def _checked(value: Any, kind: Any) -> Any:
    if not _fits(value, kind):
        _refuse(kind, value)
    return float(value) if kind is float else value


def _refuse(expected: object, got: object) -> Any:
    message = f"expected {expected}, got {got!r}"
    raise ValueError(message)


def _fits(value: Any, kind: Any) -> bool:
    """Tell whether a value of a JSON file is of a declared type; whole numbers are numbers, true and false are not."""
    if isinstance(kind, UnionType):
        return any(_fits(value, option) for option in get_args(kind))
    if kind is float:
        return type(value) in (int, float)
    return type(value) is (dict if kind is Variant else get_origin(kind) or kind)
