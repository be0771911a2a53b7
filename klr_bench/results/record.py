"""Cell files and their records: the validated results of single fits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from sys import intern
from typing import Annotated, Any, get_type_hints

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PlainValidator, Strict, TypeAdapter

from klr_bench.errors import MAX_MESSAGE_LENGTH
from klr_bench.metrics.labels import CATALOG, METRICS, MOST
from klr_bench.metrics.metric import Metric
from klr_bench.printing import is_file_name, shortened
from klr_bench.results.variants import Variant, is_variant

SCHEMA_VERSION = 2
FINISHED = ("ok", "timeout")  # the next run retries cells with any other status
STATUSES = (*FINISHED, "error", "killed")
LONGEST_MESSAGE = MAX_MESSAGE_LENGTH
"""Maximum length of the message of a failed fit."""
LONGEST_NAME = 200
"""Maximum length of the name of a host or CPU."""
TEXTS = ("message", "host", "cpu")
"""Columns that may have any text."""
TRACE_COLUMNS = ("key", "t", "elapsed_s", "metric", "value")
RELIABILITY_COLUMNS = ("key", "bin", "n", "predicted", "positive")
ROWS_COLUMNS = ("key", "x1", "x2", "label")
NAMES = ("key", "experiment", "dataset", "algorithm", "metric")
"""Columns whose values must be valid file names."""

Checkpoint = tuple[int, float, str, float]
"""(examples seen or iterations, seconds of fitting, metric, value)"""
Bin = tuple[int, int, float, float]
"""(index of the bin, rows in it, mean predicted probability, fraction of positives)"""
PlanePoint = tuple[float, float, int]
"""Training row with two features: (x1, x2, label)."""

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
"""Valid ranges of the numeric columns of all tables; other columns may have any value except NaN."""
ANY = Metric("any", "any")


def possible(name: str, value: Any) -> bool:
    """Return True if a number is in the valid range of a column or metric."""
    try:
        return not isinstance(value, bool) and RANGES.get(name, ANY).possible(value + 0.0)
    except (TypeError, OverflowError):
        return False


def _require(ok: bool) -> None:
    if not ok:
        raise ValueError


def _name(text: str) -> str:
    _require(_is_name(text))
    return intern(text)


_is_name = lru_cache(is_file_name)


def _number(name: str) -> AfterValidator:
    def validate(value: int) -> int:
        _require(possible(name, value))
        return value

    return AfterValidator(validate)


def _variant(values: Any) -> Variant:
    _require(isinstance(values, Variant | dict) and is_variant(values))
    return Variant(values)


def _metrics(values: Any) -> dict[str, float]:
    _require(isinstance(values, dict) and not values.keys() & FIELDS)
    _require(all(_is_name(name) and possible(name, value) for name, value in values.items()))
    return {intern(name): value for name, value in values.items()}


def _entries(columns: Sequence[str]) -> BeforeValidator:
    """Return a pydantic validator for a list of rows with the given columns."""

    def validate(entries: Any) -> list[Any]:
        _require(isinstance(entries, list | tuple))
        for entry in entries:
            values = dict(zip(columns, entry, strict=True))
            metric = values.pop("metric", "")
            _require("metric" not in columns or (isinstance(metric, str) and _is_name(metric)))
            _require(all(possible(metric if name == "value" else name, value) for name, value in values.items()))
        return [tuple(entry) for entry in entries]

    return BeforeValidator(validate)


Name = Annotated[str, AfterValidator(_name)]
Status = Annotated[str, Field(pattern=f"^({'|'.join(STATUSES)})$")]


@dataclass
class Record:
    """A row of records.csv: identity, status and metrics of a cell.

    Rates are fractions, and times are in seconds.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    key: Name
    experiment: Name
    dataset: Name
    algorithm: Name
    variant: Annotated[Variant, PlainValidator(_variant)]
    params: dict[str, Any]
    repeat: Annotated[int, Strict(), _number("repeat")]
    seed: Annotated[int, Strict(), _number("seed")] | None
    status: Status
    message: str = ""
    metrics: Annotated[dict[str, float], PlainValidator(_metrics)] = field(default_factory=dict)
    host: str = ""
    """Name of the machine; empty if unknown."""
    cpu: str = ""
    """Processor, linear algebra library and number of threads; empty if unknown."""

    def __post_init__(self) -> None:
        self.message = shortened(self.message, LONGEST_MESSAGE)
        self.host, self.cpu = shortened(self.host, LONGEST_NAME), shortened(self.cpu, LONGEST_NAME)


FIELDS = frozenset(get_type_hints(Record))
RESERVED = FIELDS | RANGES.keys() | {"run"}
"""Names of columns, which metrics of a user cannot have."""
IDENTITY = tuple(name for name in get_type_hints(Record) if name not in ("metrics", "__pydantic_config__"))
"""The columns that identify a row and its origin."""
COLUMNS = (*IDENTITY, *(metric.name for metric in CATALOG if metric.stored))


@dataclass(frozen=True)
class CellFile:
    """Content of cells/<key>.json: the record of a cell, its checkpoints and plotting data."""

    __pydantic_config__ = ConfigDict(extra="ignore")

    record: Record
    config_hash: str
    created: Annotated[float, Strict(), Field(allow_inf_nan=False)]
    """Time of creation in seconds since 1970."""
    checkpoints: Annotated[Sequence[Checkpoint], _entries(TRACE_COLUMNS[1:]), Field(alias="traces")] = ()
    bins: Annotated[Sequence[Bin], _entries(RELIABILITY_COLUMNS[1:]), Field(alias="reliability")] = ()
    rows: Annotated[Sequence[PlanePoint], _entries(ROWS_COLUMNS[1:])] = ()
    traceback: str = ""
    """Traceback of the exception that a failed fit raised."""

    def content(self) -> dict[str, Any]:
        """Return the content of the file as a JSON-serializable dict."""
        return {
            "schema_version": SCHEMA_VERSION,
            "config_hash": self.config_hash,
            "created": self.created,
            "record": vars(self.record) | {"variant": dict(self.record.variant)},
            "traces": list(self.checkpoints),
            "reliability": list(self.bins),
            "rows": list(self.rows),
            **({"traceback": self.traceback} if self.traceback else {}),
        }

    def checked(self) -> CellFile:
        """Return the cell, or a failed one if a value or a name cannot be stored.

        Checkpoints whose value is NaN are dropped.
        """
        cell = replace(self, checkpoints=[point for point in self.checkpoints if not math.isnan(point[-1])])
        message = cell._fault()
        if not message:
            return cell
        failed = replace(self.record, status="error", message=message, metrics={})
        return CellFile(failed, self.config_hash, self.created)

    def _fault(self) -> str:
        """Return why the cell cannot be stored, or ""."""
        values = [*self.record.metrics.items(), *((name, value) for _, _, name, value in self.checkpoints)]
        for name, value in values:
            if not (isinstance(name, str) and _is_name(name)) or name in FIELDS:
                return f"expected a name of a metric, which has no slashes, got {name!r} from the fit"
            if not possible(name, value):
                return f"{name}: expected {RANGES.get(name, ANY).range}, got {value!r} from the fit"
        if parse_cell(self.content(), self.record.key) is None:
            return "checkpoints or bins of the fit cannot be stored: t must be a whole number, and probabilities <= 1"
        return ""


CELL = TypeAdapter(CellFile)


def parse_cell(content: Any, key: str) -> CellFile | None:
    """Parse the JSON content of a cell file; return None if it is invalid.

    An unknown schema version or a different key is invalid, too.
    """
    try:
        cell = CELL.validate_python(content)
        return cell if content["schema_version"] == SCHEMA_VERSION and cell.record.key == key else None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None
