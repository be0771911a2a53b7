"""A cell: one fit and what it has left, checked when it is read and before it is written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from sys import intern
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from klr_bench.metrics.labels import CATALOGUE, METRICS, MOST
from klr_bench.metrics.metric import LARGEST, ROUNDING, Metric
from klr_bench.printing import is_file_name, shortened
from klr_bench.results.migrate import upgraded_record
from klr_bench.results.variants import Variant, is_variant

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
NUMBER = (int, float)
"""Types of numbers; true and false are none."""
KINDS: dict[str, tuple[type, ...]] = {
    name: NUMBER if kind is float else (dict,) if kind is Variant else tuple(get_origin(one) or one for one in options)
    for name, kind in FIELDS.items()
    for options in [get_args(kind) if isinstance(kind, UnionType) else (kind,)]
}
"""The types that JSON has for each field of a record."""
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
Columns = tuple[tuple[str, type], ...]
"""The names and types of the entries of a list in a cell."""
TRACE, BIN, ROW = (
    tuple(zip(columns[1:], get_args(entry), strict=True))  # the first column is the key
    for columns, entry in ((TRACE_COLUMNS, Checkpoint), (RELIABILITY_COLUMNS, Bin), (ROWS_COLUMNS, PlanePoint))
)
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
BOUNDS = {
    name: (max(entry.low - ROUNDING, -most), min(entry.high + ROUNDING, most), {int} if entry.whole else {int, float})
    for name, entry in RANGES.items()
    for most in [LARGEST if entry.whole else math.inf]
}
"""What `Metric.possible` compares, by the type of a number, for the many numbers of many cells."""
NOWHERE: tuple[float, float, set[type]] = (0.0, 0.0, set())


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
    """Return True for a possible value of a column or metric; of an unknown one, for any number but NaN."""
    low, high, kinds = BOUNDS.get(name, NOWHERE)
    if type(value) in kinds:
        return low <= value <= high
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
        if not (record["key"] == key and _is_record(record)):
            return None
        # a hundred thousand cells share their names
        record["metrics"] = dict(zip(map(intern, record["metrics"]), record["metrics"].values(), strict=True))
        record["variant"] = Variant(record["variant"])
        created, config_hash = float(content["created"]), content["config_hash"]
        return CellFile(
            Record(**record),
            config_hash if type(config_hash) is str else _refuse("text", config_hash),
            created if type(content["created"]) in NUMBER and math.isfinite(created) else _refuse("a time", created),
            _entries(content["traces"], TRACE),
            _entries(content.get("reliability", []), BIN),
            _entries(content.get("rows", []), ROW),
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        return None


def _is_record(content: Mapping[str, Any]) -> bool:
    """Return True if all fields of a record are there, with possible values of their declared types."""
    if content.keys() != FIELDS.keys() or any(type(content[name]) not in kinds for name, kinds in KINDS.items()):
        return False
    metrics = content["metrics"]
    return (
        content["status"] in STATUSES
        and possible("repeat", content["repeat"])
        and possible("seed", content["seed"] or 0)
        and all(map(_is_name, (content["key"], content["experiment"], content["dataset"], content["algorithm"])))
        and is_variant(content["variant"])
        and not metrics.keys() & FIELDS.keys()
        and all(_is_name(name) and type(n) in NUMBER and possible(name, n) for name, n in metrics.items())
    )


_is_name = lru_cache(is_file_name)
"""Many cells have the same names."""


def _entries(content: Any, columns: Columns) -> list[Any]:
    """Return the entries of a list as tuples; raises ValueError if one does not have these columns.

    They are checked column by column, as there may be a million entries.
    """
    if type(content) is list and not content:
        return []
    if type(content) is not list or {*map(type, content)} != {list} or {*map(len, content)} != {len(columns)}:
        _refuse(columns, content)
    found: list[Sequence[Any]] = []
    for (name, declared), values in zip(columns, zip(*content, strict=True), strict=True):
        kinds = {*map(type, values)}
        if not kinds <= {*(NUMBER if declared is float else (declared,))}:
            _refuse(declared, name)
        if declared is str:
            fine = all(map(_is_name, values))
        elif name == "value":
            fine = all(map(possible, found[-1], values))  # the column before it is that of the metrics
        else:  # whole numbers are of the type int here, so that the least and the largest tell of all
            low, high, _ = BOUNDS[name]
            fine = low <= min(values) and max(values) <= high and not (float in kinds and any(map(math.isnan, values)))
        if not fine:
            _refuse(name, values)
        found.append(tuple(map(float, values)) if declared is float and kinds != {float} else values)
    return list(zip(*found, strict=True))


def _refuse(expected: object, got: object) -> Any:
    message = f"expected {expected}, got {got!r}"
    raise ValueError(message)
