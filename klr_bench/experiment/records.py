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
import gc
import io
import json
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.cells import (
    COLUMNS,
    FIELDS,
    FINISHED,
    IDENTITY,
    LATER,
    RELIABILITY_COLUMNS,
    ROWS_COLUMNS,
    SCHEMA_VERSION,
    STATUSES,
    TRACE_COLUMNS,
    Bin,
    CellFile,
    Checkpoint,
    PlanePoint,
    Record,
    parse_cell,
)
from klr_bench.experiment.first_schema import variant_values
from klr_bench.experiment.variants import Variant, VariantOrder, variant_text
from klr_bench.files import Stamp, read_stamped_json, stamp_of, unwritable, write_atomic, write_json
from klr_bench.printing import no_formula, printable, shortened
from klr_bench.yaml_file import read_yaml

__all__ = [
    "COLUMNS", "FIELDS", "FINISHED", "IDENTITY", "RELIABILITY_COLUMNS", "ROWS_COLUMNS", "SCHEMA_VERSION", "STATUSES",
    "TRACE_COLUMNS", "Bin", "CellFile", "Checkpoint", "PlanePoint", "Record", "Store", "Summary", "read_variant",
]  # fmt: skip

LOCK_TIMEOUT_S = 60.0
STALE_S = 3600.0  # a temporary file this old was left by a process that was killed while it wrote
LONGEST_NOTE = 500
"""Characters of the names in a note."""


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
            names = _listed(
                f"{algorithm} {variant_text(variant)}".strip()
                + f" on {dataset} ({count} of configuration {config_hash})"
                for (dataset, algorithm, variant, config_hash), count in self.older.items()
            )
            notes.append(f"{sum(self.older.values())} cells of older configurations are not listed: {names}.")
        if self.unreadable:
            names = _listed(self.unreadable)
            notes.append(f"{len(self.unreadable)} cell files cannot be read and are computed again: {names}.")
        return notes


class Store:
    """The results folder of one experiment."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.cells = self.folder / "cells"
        self._known: dict[str, tuple[Stamp, CellFile]] = {}
        self._variants: dict[str, Variant] = {}
        """The variants of cells by their spelling: cells of one column share one, with its order and its text."""

    def write_cell(self, cell: CellFile) -> None:
        """Write a finished cell, in place of an earlier one with the same key."""
        write_json(self.cells / f"{cell.record.key}.json", cell.content())

    def read_cell(self, key: str) -> Record | None:
        """Return the record of a cell, or None where there is none that can be read.

        Raises KlrBenchError where another version of klr-bench has written it, and for what is no regular file.
        """
        cell = self._cell(f"{self.cells}/{key}.json", f"{key}.json")
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
            with filelock.FileLock(self.folder / ".lock", timeout=LOCK_TIMEOUT_S), _without_collections():
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
        cells, unreadable = self.load()
        columns_of: dict[tuple[str, str, Variant], list[CellFile]] = {}
        for cell in cells:
            columns_of.setdefault(cell.record.column, []).append(cell)
        listed: list[CellFile] = []
        left_out: list[CellFile] = []
        for found in columns_of.values():
            newest = max(found, key=lambda cell: _age(cell, current)).config_hash
            for cell in found:
                (listed if cell.config_hash == newest else left_out).append(cell)
        listed.sort(key=_order)
        older: dict[tuple[str, str, Variant, str], int] = {}
        for cell in sorted(left_out, key=_order):
            name = (*cell.record.column, cell.config_hash)
            older[name] = older.get(name, 0) + 1
        own = sorted(set().union(*(cell.record.metrics for cell in listed)) - set(COLUMNS))
        columns = (*COLUMNS, *own)
        self._write("records", columns, (_row(cell.record, columns) for cell in listed))
        self._write("traces", TRACE_COLUMNS, ([c.record.key, *point] for c in listed for point in c.checkpoints))
        self._write_numbers("reliability", RELIABILITY_COLUMNS, ((cell.record.key, cell.bins) for cell in listed))
        if any(cell.rows for cell in listed):
            self._write_numbers("rows", ROWS_COLUMNS, ((cell.record.key, cell.rows) for cell in listed))
        return Summary(len(listed), older, tuple(unreadable))

    def _write(self, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        write_atomic(self.folder / f"{name}.csv", _csv(header, rows))

    def _write_numbers(
        self, name: str, header: Sequence[str], entries: Iterable[tuple[str, Sequence[Sequence[float]]]]
    ) -> None:
        """Write entries of cells that are numbers, of which there may be millions: without the writer of csv."""
        form = f"{',%r' * (len(header) - 1)}\n"
        lines = (
            (f"{_quoted(key).replace('%', '%%')}{form}" * len(found)) % tuple(chain.from_iterable(found))
            for key, found in entries
        )
        write_atomic(self.folder / f"{name}.csv", "".join([f"{','.join(header)}\n", *lines]).encode())

    def load(self) -> tuple[list[CellFile], list[str]]:
        """Return the cells, parsing only files that changed since the last time, and the unreadable names."""
        cells: list[CellFile] = []
        unreadable: list[str] = []
        for entry in sorted(os.scandir(self.cells), key=lambda e: e.name) if self.cells.is_dir() else ():
            if entry.name.endswith(".part"):
                _remove_stale(entry)
            if not entry.name.endswith(".json") or entry.name.startswith("."):
                continue
            try:
                cell = self._cell(entry.path, entry.name) if entry.is_file() else None
            except OSError:  # a link that leads to itself
                continue
            if cell:
                cells.append(cell)
            elif os.path.exists(entry.path):  # else another process has just removed it, or it is a link to nowhere
                unreadable.append(entry.name)
        if len(self._known) > len(cells):
            there = {f"{cell.record.key}.json" for cell in cells}
            self._known = {name: known for name, known in self._known.items() if name in there}
        return cells, unreadable

    def _cell(self, path: str, name: str) -> CellFile | None:
        """Return the cell of a file, parsed only if it has changed since the last time; None where it holds none."""
        known = self._known.get(name)
        if known and known[0] == stamp_of(path):
            return known[1]
        stamp, cell = _read(path, name.removesuffix(".json"))
        if cell and stamp:
            variant = cell.record.variant
            cell.record.variant = self._variants.setdefault(repr(variant), variant)
            self._known[name] = (stamp, cell)
        return cell

    def write_manifest(self, content: Mapping[str, Any]) -> None:
        """Write manifest.yaml; the schema version is added."""
        versioned = {**content, "schema_version": SCHEMA_VERSION}
        text = yaml.safe_dump(versioned, sort_keys=False, allow_unicode=True, width=110)
        write_atomic(self.folder / "manifest.yaml", text.encode())

    def read_manifest(self) -> dict[str, Any]:
        """Return the content of manifest.yaml, {} where there is none that can be read.

        Raises KlrBenchError where another version of klr-bench has written it.
        """
        path = self.folder / "manifest.yaml"
        try:
            content = read_yaml(path)
        except KlrBenchError:
            return {}
        _refuse_newer(content, path)
        return content if isinstance(content, dict) else {}


@contextmanager
def _without_collections() -> Iterator[None]:
    """Collect no garbage meanwhile: among a million objects that stay, looking for it takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _read(path: str, key: str) -> tuple[Stamp | None, CellFile | None]:
    """Return what a file is known by, and its cell, None where it holds none."""
    stamp, content = read_stamped_json(path)
    _refuse_newer(content, path)
    return stamp, parse_cell(content, key)


def _remove_stale(entry: os.DirEntry[str]) -> None:
    """Remove a temporary file that was left by a process that was killed."""
    try:
        written = entry.stat().st_mtime
    except OSError:  # another process has just renamed it, or it is a link to nowhere
        return
    if entry.is_file() and time.time() - written > STALE_S:
        Path(entry.path).unlink(missing_ok=True)


def _refuse_newer(content: Any, path: str | Path) -> None:
    """Refuse what a later version has written: it is neither understood nor to be overwritten."""
    version = content.get("schema_version") if isinstance(content, dict) else None
    if type(version) is int and version > SCHEMA_VERSION:
        message = (
            f"{path}: schema_version: expected at most {SCHEMA_VERSION}, got {shortened(str(version), 20)}. "
            "Use the klr-bench that wrote it, or another results_dir."
        )
        raise KlrBenchError(message)


def _listed(names: Iterable[str]) -> str:
    return shortened(", ".join(names), LONGEST_NOTE)


def read_variant(text: str) -> Variant:
    """Return the variant of a row of records.csv: JSON, or text as in schema version 1.  Raises ValueError."""
    return Variant(variant_values(text))


def _age(cell: CellFile, current: Collection[str]) -> tuple[bool, float, str]:
    """Return what is larger the newer a configuration is."""
    return cell.config_hash in current, cell.created, cell.config_hash


def _order(cell: CellFile) -> tuple[str, str, VariantOrder, int, str]:
    record = cell.record
    return record.dataset, record.algorithm, record.variant.order(), record.repeat, record.key


def _row(record: Record, columns: Sequence[str]) -> list[Any]:
    values = vars(record) | record.metrics
    for name in ("message", *LATER):
        values[name] = _said(values[name])
    values["variant"], values["params"] = record.variant.json, json.dumps(record.params)
    return list(map(values.get, columns))


@lru_cache
def _said(text: str) -> str:
    """Return a text that many cells have in common as a CSV file may hold it."""
    return no_formula(printable(text))


def _quoted(text: str) -> str:
    """Return a text as a CSV file holds it."""
    return text if text.isalnum() else _csv([text], ()).decode().rstrip("\n")


def _csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")  # writes floats with repr, None as nothing
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")
