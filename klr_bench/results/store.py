"""Results as rows: a JSON file for each finished cell, and the tables that are rebuilt from them.

    results/<experiment>/cells/<key>.json    one cell: record, checkpoints, bins, rows, hash of its configuration
    results/<experiment>/cells.index         the lines of a thousand cells or more, so that a rebuild reads what is new
    results/<experiment>/records.csv         one row a cell: COLUMNS, always, in this order, then the user's own metrics
    results/<experiment>/traces.csv          key, t, elapsed_s, metric, value
    results/<experiment>/reliability.csv     key, bin, n, predicted, positive: of the test rows, by their probability
    results/<experiment>/rows.csv            key, x1, x2, label: training rows in the plane, with `trace.rows`
    results/<experiment>/manifest.yaml       what was asked for, and on what machine it ran

Every file lands by an atomic rename, so neither a kill nor a full disk leaves half of one.  Files of schema version 1
are read as well: `migrate` says what differs.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import yaml

from klr_bench.errors import KlrBenchError, fail
from klr_bench.files import Stamp, read_stamped_json, stamp_of, unwritable, write_atomic, write_json
from klr_bench.printing import shortened
from klr_bench.results.migrate import variant_values
from klr_bench.results.record import (
    COLUMNS,
    FIELDS,
    FINISHED,
    IDENTITY,
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
from klr_bench.results.row_cache import Lines, Stamped, csv_text, lines_of, read_index, record_lines, write_index
from klr_bench.results.variants import Variant, variant_text
from klr_bench.yaml_file import read_yaml

__all__ = [
    "COLUMNS", "FIELDS", "FINISHED", "IDENTITY", "RELIABILITY_COLUMNS", "ROWS_COLUMNS", "SCHEMA_VERSION", "STATUSES",
    "TRACE_COLUMNS", "Bin", "CellFile", "Checkpoint", "PlanePoint", "Record", "Store", "Summary", "read_variant",
]  # fmt: skip

T = TypeVar("T")

LOCK_TIMEOUT_S = 60.0
STALE_S = 3600.0  # a temporary file this old was left by a process that was killed while it wrote
INDEX_FROM, INDEX_SHARE = 1000, 0.1
"""Files read since the index was written, and their share of all, from which it is written anew."""
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
        self._index = self.folder / "cells.index"
        self._n_read = 0
        """Files that were read since the index was."""
        self._variants: dict[str, Variant] = {}
        """The variants of cells by their spelling: cells of one column share one, with its order and its text."""

    @cached_property
    def _known(self) -> dict[str, Stamped]:
        """The lines of the cells that are known, with the stamps of their files, by the names of these."""
        return read_index(self._index)

    def write_cell(self, cell: CellFile) -> None:
        """Write a finished cell, in place of an earlier one with the same key."""
        write_json(self.cells / f"{cell.record.key}.json", cell.content())

    def read_cell(self, key: str) -> Record | None:
        """Return the record of a cell, or None where there is none that can be read.

        Raises KlrBenchError where another version of klr-bench has written it, and for what is no regular file.
        """
        cell = _read(f"{self.cells}/{key}.json", key)[1]
        return cell.record if cell else None

    def finished(self, key: str) -> bool:
        """Return True if a cell needs no further work.  Raises as `read_cell`."""
        lines = self._lines(f"{self.cells}/{key}.json", f"{key}.json")
        return lines is not None and lines.status in FINISHED

    def metric(self, key: str, name: str) -> float | None:
        """Return a number of a cell; None where it has none.  Raises as `read_cell`."""
        lines = self._lines(f"{self.cells}/{key}.json", f"{key}.json")
        return lines.metric(name) if lines else None

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
        except filelock.Timeout:
            fail(
                f"{self.folder}: another process has held the lock on this folder for {LOCK_TIMEOUT_S:g} s. "
                "Wait for it to end, or stop it, and run again."
            )
        except OSError as error:
            raise unwritable(self.folder, error) from error

    def _rebuild(self, current: frozenset[str]) -> Summary:
        cells, unreadable = self._all_lines()
        columns_of: dict[tuple[str, str, Variant], list[Lines]] = {}
        for cell in cells:
            columns_of.setdefault(cell.column, []).append(cell)
        listed: list[Lines] = []
        left_out: list[Lines] = []
        for found in columns_of.values():
            newest = max(found, key=lambda cell: _age(cell, current)).config_hash
            for cell in found:
                (listed if cell.config_hash == newest else left_out).append(cell)
        listed.sort(key=attrgetter("order"))
        older: dict[tuple[str, str, Variant, str], int] = {}
        for cell in sorted(left_out, key=attrgetter("order")):
            name = (*cell.column, cell.config_hash)
            older[name] = older.get(name, 0) + 1
        own = sorted({name for cell in listed for name in cell.own})
        self._write("records", (*COLUMNS, *own), record_lines(listed, own))
        self._write("traces", TRACE_COLUMNS, (cell.traces for cell in listed))
        self._write("reliability", RELIABILITY_COLUMNS, (cell.reliability for cell in listed))
        if any(cell.rows for cell in listed):
            self._write("rows", ROWS_COLUMNS, (cell.rows for cell in listed))
        if self._n_read >= max(INDEX_FROM, INDEX_SHARE * len(cells)):
            with suppress(KlrBenchError):  # without an index a rebuild takes longer, and no more
                write_index(self._index, self._known)
            self._n_read = 0
        return Summary(len(listed), older, tuple(unreadable))

    def _write(self, name: str, header: Sequence[str], lines: Iterable[str]) -> None:
        content = "".join([csv_text([header]), *lines])
        write_atomic(self.folder / f"{name}.csv", content.encode("utf-8", "backslashreplace"))

    def load(self) -> tuple[list[CellFile], list[str]]:
        """Return the cells, and the names of the files that cannot be read."""
        return self._scan(lambda path, name: _read(path, name.removesuffix(".json"))[1])

    def _all_lines(self) -> tuple[list[Lines], list[str]]:
        """Return the lines of all cells, and the names of the files that cannot be read."""
        cells, unreadable = self._scan(self._lines)
        if len(self._known) > len(cells):
            there = {f"{cell.key}.json" for cell in cells}
            self._known = {name: known for name, known in self._known.items() if name in there}
        return cells, unreadable

    def _scan(self, read: Callable[[str, str], T | None]) -> tuple[list[T], list[str]]:
        """Return what `read` makes of the path and the name of each cell's file, and the names where it is None."""
        cells: list[T] = []
        unreadable: list[str] = []
        for entry in sorted(os.scandir(self.cells), key=lambda e: e.name) if self.cells.is_dir() else ():
            if entry.name.endswith(".part"):
                _remove_stale(entry)
            if not entry.name.endswith(".json") or entry.name.startswith("."):
                continue
            try:
                cell = read(entry.path, entry.name) if entry.is_file() else None
            except OSError:  # a link that leads to itself
                continue
            if cell:
                cells.append(cell)
            elif os.path.exists(entry.path):  # else another process has just removed it, or it is a link to nowhere
                unreadable.append(entry.name)
        return cells, unreadable

    def _lines(self, path: str, name: str) -> Lines | None:
        """Return the lines of a file, read only if it has changed since the last time; None where it is no cell."""
        known = self._known.get(name)
        if known and known[0] == stamp_of(path):
            return known[1]
        stamp, cell = _read(path, name.removesuffix(".json"))
        if not (cell and stamp):
            return None
        variant = cell.record.variant
        lines = lines_of(cell, self._variants.setdefault(repr(variant), variant))
        self._known[name] = (stamp, lines)
        self._n_read += 1
        return lines

    def write_manifest(self, content: Mapping[str, object]) -> None:
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
        refuse_newer(content, path)
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
    refuse_newer(content, path)
    return stamp, parse_cell(content, key)


def _remove_stale(entry: os.DirEntry[str]) -> None:
    """Remove a temporary file that was left by a process that was killed."""
    try:
        written = entry.stat().st_mtime
    except OSError:  # another process has just renamed it, or it is a link to nowhere
        return
    if entry.is_file() and time.time() - written > STALE_S:
        Path(entry.path).unlink(missing_ok=True)


def refuse_newer(content: Any, path: str | Path) -> None:
    """Refuse what a later version has written: it is neither understood nor to be overwritten."""
    version = content.get("schema_version") if isinstance(content, dict) else None
    if type(version) is int and version > SCHEMA_VERSION:
        fail(
            f"{path}: schema_version: expected at most {SCHEMA_VERSION}, got {shortened(str(version), 20)}. "
            "Use the klr-bench that wrote it, or another results_dir."
        )


def _listed(names: Iterable[str]) -> str:
    return shortened(", ".join(names), LONGEST_NOTE)


def read_variant(text: str) -> Variant:
    """Return the variant of a row of records.csv: JSON, or text as in schema version 1.  Raises ValueError."""
    return Variant(variant_values(text))


def _age(cell: Lines, current: Collection[str]) -> tuple[bool, float, str]:
    """Return what is larger the newer a configuration is."""
    return cell.config_hash in current, cell.created, cell.config_hash
