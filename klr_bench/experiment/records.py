"""Results as rows: a JSON file for each finished cell, and the tables that are rebuilt from them.

    results/<experiment>/cells/<key>.json    one cell: its record, its traces and bins, the hash of its configuration
    results/<experiment>/records.csv         one row a cell; the columns are COLUMNS, always, in this order
    results/<experiment>/traces.csv          key, t, elapsed_s, metric, value
    results/<experiment>/reliability.csv     key, bin, n, predicted, positive: of the test rows, by their probability
    results/<experiment>/manifest.yaml       what was asked for, and on what machine it ran

Every file lands by an atomic rename, so neither a kill nor a full disk leaves half of one.
"""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.variants import VariantOrder, variant_order
from klr_bench.files import read_json, unwritable, write_atomic, write_json

SCHEMA_VERSION = 1
FINISHED = ("ok", "timeout")  # error and killed are tried again
LOCK_TIMEOUT_S = 60.0
STALE_S = 3600.0  # a temporary file this old was left by a process that was killed while it wrote

Trace = tuple[int, float, str, float]
Bin = tuple[int, int, float, float]


@dataclass
class Record:
    """One row of records.csv.  Rates are fractions, times seconds; None: not applicable."""

    key: str
    experiment: str
    dataset: str
    algorithm: str
    variant: str
    params: dict[str, Any]
    repeat: int
    status: str
    message: str = ""
    accuracy: float | None = None
    error_rate: float | None = None
    log_loss: float | None = None
    brier: float | None = None
    auc: float | None = None
    sparsity: float | None = None
    nonzero_fraction: float | None = None
    n_support: int | None = None
    n_updates: int | None = None
    n_iter: int | None = None
    n_train: int | None = None
    n_test: int | None = None
    n_features: int | None = None
    fit_time_s: float | None = None
    predict_time_s: float | None = None
    peak_memory_mb: float | None = None
    seed: int | None = None
    last_accuracy: float | None = None
    """Of the classifier after the last example, where that of the record is the average of all."""
    last_n_support: int | None = None
    ece: float | None = None
    """Expected calibration error, as defined by `metrics.expected_calibration_error`."""
    objective: float | None = None
    duality_gap: float | None = None
    """What a batch learner has minimised at the end, and the duality gap over it."""
    pass_time_s: float | None = None
    """Of fit_time_s, that of the pass over the examples, where a learner does something else before."""
    n_selected: int | None = None
    """Features that a linear classifier uses."""
    relevant_found: float | None = None
    """The share of the relevant features of a generated set that is among them."""


COLUMNS = tuple(column.name for column in fields(Record))
ADDED = (
    *("last_accuracy", "last_n_support", "ece", "objective", "duality_gap", "pass_time_s", "n_selected"),
    "relevant_found",
)
"""Columns that files of schema version 1 may lack."""
TRACE_COLUMNS = ("key", "t", "elapsed_s", "metric", "value")
RELIABILITY_COLUMNS = ("key", "bin", "n", "predicted", "positive")
DERIVED = {"accuracy_gain": "accuracy", "n_iter_ratio": "n_iter", "log_loss_ratio": "log_loss"}
"""Numbers that compare two columns of a table, which `against` of an experiment names, and of what they are taken."""
REPORTED = (
    *("accuracy", "error_rate", "last_accuracy", "log_loss", "brier", "ece", "auc", "sparsity", "n_support"),
    *("n_selected", "relevant_found", "pass_time_s", "fit_time_s"),
    *("settled_s", "nonzero_fraction", "n_iter", "objective", "duality_gap", *DERIVED),
)
"""What a report can show and `metrics` of an experiment may name: columns of records.csv, and what it derives."""
TEXT_COLUMNS = ("key", "experiment", "dataset", "algorithm", "variant", "params", "status", "message")


@dataclass(frozen=True)
class Summary:
    """What a rebuild did: rows listed, cells of older configurations left out, files that are no cells."""

    listed: int
    older: dict[tuple[str, str, str, str], int] = field(default_factory=dict)
    """(dataset, algorithm, variant, hash of the configuration) -> number of cells"""
    unreadable: tuple[str, ...] = ()

    def notes(self) -> list[str]:
        """Return a sentence for everything that was left out, for the runner to show."""
        notes = []
        if self.older:
            names = ", ".join(
                f"{f'{algorithm} {variant}'.strip()} on {dataset} ({count} of configuration {config_hash})"
                for (dataset, algorithm, variant, config_hash), count in self.older.items()
            )
            notes.append(f"{sum(self.older.values())} cells of older configurations are not listed: {names}.")
        if self.unreadable:
            names = ", ".join(self.unreadable)
            notes.append(f"{len(self.unreadable)} cell files cannot be read and are computed again: {names}.")
        return notes


@dataclass(frozen=True)
class _Cell:
    record: Record
    config_hash: str
    created: float
    traces: list[Trace]
    bins: list[Bin]

    @property
    def column(self) -> tuple[str, str, str]:
        """What has one current configuration: a column of a table."""
        return self.record.dataset, self.record.algorithm, self.record.variant


class Store:
    """The results folder of one experiment."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.cells = self.folder / "cells"
        self._read: dict[str, tuple[tuple[int, int, int], _Cell]] = {}

    def write_cell(
        self, record: Record, config_hash: str, created: float, traces: Sequence[Trace], bins: Sequence[Bin] = ()
    ) -> None:
        """Write a finished cell, in place of an earlier one with the same key."""
        content: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "config_hash": config_hash, "created": created}
        content |= {"record": asdict(record), "traces": list(traces), "reliability": list(bins)}
        write_json(self.cells / f"{record.key}.json", content)

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
        newest: dict[tuple[str, str, str], _Cell] = {}
        for cell in cells:
            rivals = newest.get(cell.column, cell), cell
            newest[cell.column] = max(rivals, key=lambda c: (c.config_hash in current, c.created, c.config_hash))
        listed: list[_Cell] = []
        older: dict[tuple[str, str, str, str], int] = {}
        for cell in sorted(cells, key=_order):
            if cell.config_hash == newest[cell.column].config_hash:
                listed.append(cell)
            else:
                name = (*cell.column, cell.config_hash)
                older[name] = older.get(name, 0) + 1
        rows = (_row(cell.record) for cell in listed)
        traces = ([cell.record.key, *point] for cell in listed for point in cell.traces)
        write_atomic(self.folder / "records.csv", _csv(COLUMNS, rows))
        write_atomic(self.folder / "traces.csv", _csv(TRACE_COLUMNS, traces))
        bins = ([cell.record.key, *entry] for cell in listed for entry in cell.bins)
        write_atomic(self.folder / "reliability.csv", _csv(RELIABILITY_COLUMNS, bins))
        return Summary(len(listed), older, tuple(unreadable))

    def _load(self) -> tuple[list[_Cell], list[str]]:
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


def _parse(content: Any, key: str) -> _Cell | None:
    """Return the cell that a JSON file holds; None for anything else, and for another schema version."""
    try:
        if content["schema_version"] != SCHEMA_VERSION:
            return None
        record = Record(**content["record"])
        traces = [(int(t), float(seconds), str(name), float(value)) for t, seconds, name, value in content["traces"]]
        bins = [(int(k), int(n), float(p), float(q)) for k, n, p, q in content.get("reliability", [])]
        cell = _Cell(record, str(content["config_hash"]), float(content["created"]), traces, bins)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return cell if record.key == key and _well_typed(record) else None


def _well_typed(record: Record) -> bool:
    kinds: dict[str, Any] = dict.fromkeys(TEXT_COLUMNS, str) | {"params": dict, "repeat": int}
    return all(isinstance(v, kinds.get(name, int | float | None)) for name, v in asdict(record).items())


def _order(cell: _Cell) -> tuple[str, str, VariantOrder, int, str]:
    record = cell.record
    return record.dataset, record.algorithm, variant_order(record.variant), record.repeat, record.key


def _row(record: Record) -> list[Any]:
    return [json.dumps(value) if isinstance(value, dict) else value for value in asdict(record).values()]


def _csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")  # writes floats with repr, None as nothing
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")
