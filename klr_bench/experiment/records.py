"""Results as rows: a JSON file for each finished cell, and the tables that are rebuilt from them.

    results/<experiment>/cells/<key>.json    one cell: record, checkpoints, bins, rows, hash of its configuration
    results/<experiment>/records.csv         one row a cell: COLUMNS, always, in this order, then the user's own metrics
    results/<experiment>/traces.csv          key, t, elapsed_s, metric, value
    results/<experiment>/reliability.csv     key, bin, n, predicted, positive: of the test rows, by their probability
    results/<experiment>/rows.csv            key, x1, x2, label: training rows in the plane, with `trace.rows`
    results/<experiment>/manifest.yaml       what was asked for, and on what machine it ran

Every file lands by an atomic rename, so neither a kill nor a full disk leaves half of one.  Files of schema version 1
are read as well: `first_schema` says what differs.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import yaml

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.first_schema import upgraded_record, variant_values
from klr_bench.experiment.measure.catalogue import CATALOGUE
from klr_bench.experiment.variants import Variant, VariantOrder, variant_text
from klr_bench.files import read_json, unwritable, write_atomic, write_json

SCHEMA_VERSION = 2
FINISHED = ("ok", "timeout")  # error and killed are tried again
STATUSES = (*FINISHED, "error", "killed")
LOCK_TIMEOUT_S = 60.0
LARGEST = 2**53
"""Of whole numbers in a cell."""
NAME = re.compile(r"[^/\\\x00-\x1f\x7f.][^/\\\x00-\x1f\x7f]*")
"""Names of data sets and algorithms: without slashes, for they may be part of the name of a file."""
STALE_S = 3600.0  # a temporary file this old was left by a process that was killed while it wrote

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

    @property
    def column(self) -> tuple[str, str, Variant]:
        """The column of a table that it belongs to: data set, algorithm, variant."""
        return self.dataset, self.algorithm, self.variant


FIELDS: dict[str, Any] = get_type_hints(Record)
"""The fields of a record and their types."""
IDENTITY = tuple(name for name in FIELDS if name != "metrics")
"""The columns that say what a row is of."""
COLUMNS = (*IDENTITY, *(metric.name for metric in CATALOGUE if metric.stored))
JSON_COLUMNS = ("variant", "params")
TEXT_COLUMNS = ("key", "experiment", "dataset", "algorithm", "status", "message")
TRACE_COLUMNS = ("key", "t", "elapsed_s", "metric", "value")
RELIABILITY_COLUMNS = ("key", "bin", "n", "predicted", "positive")
ROWS_COLUMNS = ("key", "x1", "x2", "label")


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


@dataclass(frozen=True)
class Summary:
    """What a rebuild did: rows listed, cells of older configurations left out, files that are no cells."""

    listed: int
    older: dict[tuple[str, str, Variant, str], int] = field(default_factory=dict)
    """(dataset, algorithm, variant, hash of the configuration) -> number of cells"""
    unreadable: tuple[str, ...] = ()

    def notes(self) -> list[str]:
        """Return a sentence for everything that was left out, for the runner to show."""
        notes = []
        if self.older:
            names = ", ".join(
                f"{algorithm} {variant_text(variant)}".strip()
                + f" on {dataset} ({count} of configuration {config_hash})"
                for (dataset, algorithm, variant, config_hash), count in self.older.items()
            )
            notes.append(f"{sum(self.older.values())} cells of older configurations are not listed: {names}.")
        if self.unreadable:
            names = ", ".join(self.unreadable)
            notes.append(f"{len(self.unreadable)} cell files cannot be read and are computed again: {names}.")
        return notes


class Store:
    """The results folder of one experiment."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.cells = self.folder / "cells"
        self._read: dict[str, tuple[tuple[int, int, int], CellFile]] = {}

    def write_cell(self, cell: CellFile) -> None:
        """Write a finished cell, in place of an earlier one with the same key."""
        record = {name: getattr(cell.record, name) for name in IDENTITY}
        record |= {"variant": dict(cell.record.variant), "metrics": cell.record.metrics}
        content = {
            "schema_version": SCHEMA_VERSION,
            "config_hash": cell.config_hash,
            "created": cell.created,
            "record": record,
            "traces": list(cell.checkpoints),
            "reliability": list(cell.bins),
            "rows": list(cell.rows),
        }
        write_json(self.cells / f"{cell.record.key}.json", content)

    def read_cell(self, key: str) -> Record | None:
        """Return the record of a cell, or None where there is none that can be read."""
        cell = _parse(read_json(self.cells / f"{key}.json"), key)
        return cell.record if cell else None

    def finished(self, key: str) -> bool:
        """Say whether a cell needs no further work."""
        record = self.read_cell(key)
        return record is not None and record.status in FINISHED

    def rebuild(self, current: Collection[str] = ()) -> Summary:
        """Write records.csv, traces.csv and reliability.csv from the cells; several processes may do so at once.

        A row is listed only if its configuration is the one of the newest cell of its (dataset, algorithm,
        variant).  `current` are hashes of configurations that count as newer than all others: those that
        a run has asked for, though all of their cells may have been finished by an earlier run.
        """
        import filelock

        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with filelock.FileLock(self.folder / ".lock", timeout=LOCK_TIMEOUT_S):
                return self._rebuild(frozenset(current))
        except filelock.Timeout as error:
            message = (
                f"{self.folder}: another process has held the lock on this folder for {LOCK_TIMEOUT_S:g} s. "
                "Wait for it to end, or stop it, and run again."
            )
            raise KlrBenchError(message) from error
        except OSError as error:
            raise unwritable(self.folder, error) from error

    def _rebuild(self, current: frozenset[str]) -> Summary:
        cells, unreadable = self._load()
        newest: dict[tuple[str, str, Variant], CellFile] = {}
        for cell in cells:
            rivals = newest.get(cell.record.column, cell), cell
            newest[cell.record.column] = max(rivals, key=lambda c: (c.config_hash in current, c.created, c.config_hash))
        listed: list[CellFile] = []
        older: dict[tuple[str, str, Variant, str], int] = {}
        for cell in sorted(cells, key=_order):
            if cell.config_hash == newest[cell.record.column].config_hash:
                listed.append(cell)
            else:
                name = (*cell.record.column, cell.config_hash)
                older[name] = older.get(name, 0) + 1
        own = sorted({name for cell in listed for name in cell.record.metrics} - set(COLUMNS))
        columns = (*COLUMNS, *own)
        self._write("records", columns, (_row(cell.record, columns) for cell in listed))
        self._write("traces", TRACE_COLUMNS, ([c.record.key, *point] for c in listed for point in c.checkpoints))
        self._write("reliability", RELIABILITY_COLUMNS, ([c.record.key, *entry] for c in listed for entry in c.bins))
        if any(cell.rows for cell in listed):
            self._write("rows", ROWS_COLUMNS, ([c.record.key, *point] for c in listed for point in c.rows))
        return Summary(len(listed), older, tuple(unreadable))

    def _write(self, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        write_atomic(self.folder / f"{name}.csv", _csv(header, rows))

    def _load(self) -> tuple[list[CellFile], list[str]]:
        """Return the cells, parsing only files that changed since the last time, and the unreadable names."""
        seen, unreadable = {}, []
        for entry in sorted(os.scandir(self.cells), key=lambda e: e.name) if self.cells.is_dir() else ():
            try:
                stat = entry.stat()
            except FileNotFoundError:  # another process has just renamed it
                continue
            if entry.name.endswith(".part") and time.time() - stat.st_mtime > STALE_S:
                Path(entry.path).unlink(missing_ok=True)
            if not entry.name.endswith(".json") or entry.name.startswith("."):
                continue
            stamp = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            known = self._read.get(entry.name)
            cell = known[1] if known and known[0] == stamp else None
            cell = cell or _parse(read_json(Path(entry.path)), entry.name.removesuffix(".json"))
            if cell:
                seen[entry.name] = (stamp, cell)
            else:
                unreadable.append(entry.name)
        self._read = seen
        return [cell for _, cell in seen.values()], unreadable

    def write_manifest(self, content: Mapping[str, Any]) -> None:
        """Write manifest.yaml; the schema version is added."""
        versioned = {**content, "schema_version": SCHEMA_VERSION}
        text = yaml.safe_dump(versioned, sort_keys=False, allow_unicode=True, width=110)
        write_atomic(self.folder / "manifest.yaml", text.encode())

    def read_manifest(self) -> dict[str, Any]:
        """Return the content of manifest.yaml, {} where there is none that can be read."""
        try:
            content = yaml.safe_load((self.folder / "manifest.yaml").read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            return {}
        return content if isinstance(content, dict) else {}


def read_variant(text: str) -> Variant:
    """Return the variant of a row of records.csv: JSON, or text as in schema version 1.  Raises ValueError."""
    return Variant(variant_values(text))


def _parse(content: Any, key: str) -> CellFile | None:
    """Return the cell that a JSON file holds; None for anything else, and for a schema version that is not known."""
    try:
        record = content["record"]
        if content["schema_version"] == 1:
            record = upgraded_record(record, IDENTITY)
        elif content["schema_version"] != SCHEMA_VERSION:
            return None
        if not (_is_record(record) and record["key"] == key and _is_number(content["created"], finite=True)):
            return None
        cell = CellFile(
            Record(**{**record, "variant": Variant(record["variant"])}),
            _checked(content["config_hash"], str),
            content["created"],
            _entries(content["traces"], Checkpoint),
            _entries(content.get("reliability", []), Bin),
            _entries(content.get("rows", []), PlanePoint),
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        return None
    counts = [number for entry in (*cell.checkpoints, *cell.bins) for number in entry if type(number) is int]
    return cell if all(0 <= count < LARGEST for count in counts) else None


def _is_record(content: Mapping[str, Any]) -> bool:
    """Tell whether all fields of a record are there, and of their declared types."""
    metrics = content["metrics"]
    return (
        content.keys() == FIELDS.keys()
        and all(_fits(content[name], kind) for name, kind in FIELDS.items())
        and content["status"] in STATUSES
        and 0 <= content["repeat"] < LARGEST
        and all(NAME.fullmatch(content[name]) for name in ("dataset", "algorithm"))
        and all(name.isprintable() for name in [*content["variant"], *metrics])
        and all(name not in IDENTITY and _is_number(value) for name, value in metrics.items())
    )


def _entries(content: Any, kind: Any) -> list[Any]:
    """Return the entries of a list as tuples of a declared type; raises ValueError where one is something else."""
    kinds = get_args(kind)
    return [
        tuple(_checked(value, kind) for value, kind in zip(_checked(entry, list), kinds, strict=True))
        for entry in _checked(content, list)
    ]


def _checked(value: Any, kind: Any) -> Any:
    if not _fits(value, kind):
        message = f"expected {kind}, got {value!r}"
        raise ValueError(message)
    return float(value) if kind is float else value


def _fits(value: Any, kind: Any) -> bool:
    """Tell whether a value of a JSON file is of a declared type; whole numbers are numbers, true and false are not."""
    if isinstance(kind, UnionType):
        return any(_fits(value, option) for option in get_args(kind))
    if kind is float:
        return type(value) in (int, float)
    return type(value) is (dict if kind is Variant else get_origin(kind) or kind)


def _is_number(value: Any, *, finite: bool = False) -> bool:
    """Tell whether a value is a number of 64 bits, and not NaN; with `finite` not infinite either."""
    return _fits(value, float) and not math.isnan(float(value)) and not (finite and math.isinf(value))


def _order(cell: CellFile) -> tuple[str, str, VariantOrder, int, str]:
    record = cell.record
    return record.dataset, record.algorithm, record.variant.order(), record.repeat, record.key


def _row(record: Record, columns: Sequence[str]) -> list[Any]:
    values = {name: getattr(record, name) for name in IDENTITY} | record.metrics
    values |= {"variant": json.dumps(dict(record.variant)), "params": json.dumps(record.params)}
    return [values.get(name) for name in columns]


def _csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")  # writes floats with repr, None as nothing
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")
