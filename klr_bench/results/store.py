"""Results folder of an experiment: one JSON file per cell, and tables built from them.

    results/<experiment>/cells/<key>.json    [crc32, cell]: record, checkpoints, bins, rows, hash of the configuration
    results/<experiment>/cells.index         cached rows of the tables, from a thousand cells on
    results/<experiment>/records.csv         one row per cell: COLUMNS in this order, then the user's own metrics
    results/<experiment>/traces.csv          key, t, elapsed_s, metric, value
    results/<experiment>/reliability.csv     key, bin, n, predicted, positive: calibration of the test rows
    results/<experiment>/rows.csv            key, x1, x2, label: training rows with two features, with `trace.rows`
    results/<experiment>/manifest.yaml       configuration, versions and machine

All files are replaced by an atomic rename, so that neither a kill nor a full disk leaves half a file.  A cell file
whose checksum does not match is damaged: its cell is not listed, and is computed again.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from klr_bench.errors import KlrBenchError, fail
from klr_bench.files import Stamp, read_stamped_json, regular, stamp_of, unwritable, write_atomic, write_checked_json
from klr_bench.printing import shortened
from klr_bench.results.record import (
    COLUMNS,
    FINISHED,
    RELIABILITY_COLUMNS,
    ROWS_COLUMNS,
    SCHEMA_VERSION,
    TRACE_COLUMNS,
    CellFile,
    parse_cell,
)
from klr_bench.results.row_cache import Row, csv_text, make_row, read_index, write_index
from klr_bench.results.variants import Variant, method_of, variant_text
from klr_bench.yaml_file import LARGE, dump_yaml, read_yaml

T = TypeVar("T")

LOCK_TIMEOUT_S = 60.0
STALE_S = 3600.0
"""Age in seconds from which a temporary file is assumed to be left over from a killed process."""
INDEX_FROM, INDEX_SHARE = 1000, 0.1
"""Number and fraction of changed cell files from which the index is rewritten."""
MAX_NOTE_LENGTH = 500
"""Maximum number of characters of the list of names in a note."""


class LockedError(KlrBenchError):
    """Error of a results folder that another process keeps locked."""


@dataclass(frozen=True)
class Summary:
    """Numbers of listed and omitted cells, and unreadable files, after a rebuild of the tables."""

    listed: int
    older: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Numbers of omitted cells, keyed by name ("oskl G=2 on magic") and hash of the configuration."""
    unreadable: tuple[str, ...] = ()

    def notes(self) -> list[str]:
        """Return a list of messages about omitted cells and unreadable files."""
        notes = []
        if self.older:
            names = ", ".join(f"{name} ({n} of configuration {config})" for (name, config), n in self.older.items())
            names = shortened(names, MAX_NOTE_LENGTH)
            notes.append(f"{sum(self.older.values())} cells of older configurations are omitted: {names}.")
        if self.unreadable:
            notes.append(f"{damaged_cells(self.unreadable)} They are left out until they are computed again.")
        return notes


def damaged_cells(names: Sequence[str]) -> str:
    """Return a sentence that names damaged cell files."""
    return f"Damaged cell files ({len(names)}): {shortened(', '.join(names), MAX_NOTE_LENGTH)}."


def was_run(folder: Path) -> bool:
    """Return True if a folder has records of an experiment, and not only their header."""
    path = folder / "records.csv"
    if not path.is_file():
        return False
    with regular(path) as file:
        return len([*islice(file, 2)]) != 1


class Store:
    """Results folder of one experiment."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.cells = self.folder / "cells"
        self._index = self.folder / "cells.index"
        self._n_read = 0
        """Number of cell files read since the index was last read or written."""

    @cached_property
    def _rows(self) -> dict[str, Row]:
        """Cached table rows, keyed by the name of the cell file."""
        return read_index(self._index)

    def write_cell(self, cell: CellFile) -> None:
        """Write the file of a cell, replacing an earlier one with the same key."""
        write_checked_json(self.cells / f"{cell.record.key}.json", cell.content())

    def finished(self, key: str) -> bool:
        """Return True if a cell is finished.  Raises the same errors as `row`."""
        row = self.row(key)
        return row is not None and row.status in FINISHED

    def row(self, key: str) -> Row | None:
        """Return the table rows of a cell, or None if its file is missing or damaged.

        Raises KlrBenchError if a later version of klr-bench wrote the file, or if it is not a regular file.
        """
        return self._row(f"{self.cells}/{key}.json", f"{key}.json")

    def damaged(self, keys: Iterable[str]) -> list[str]:
        """Return the names of the files of cells that exist but cannot be read."""
        return [f"{key}.json" for key in keys if (self.cells / f"{key}.json").exists() and not self.row(key)]

    def rebuild(self, current: Mapping[str, str] | None = None, timeout_s: float | None = None) -> Summary:
        """Rebuild all tables from the cell files.  A lock file makes concurrent calls safe.

        For each method and data set, only cells of one configuration are listed: the one whose hash is in `current`
        (the section `configurations` of manifest.yaml), or else the configuration of the newest cell.
        Raises KlrBenchError if another process holds the lock for `timeout_s` seconds, by default LOCK_TIMEOUT_S.
        """
        import filelock

        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with filelock.FileLock(self.folder / ".lock", timeout=LOCK_TIMEOUT_S if timeout_s is None else timeout_s):
                return self._rebuild(current or {})
        except filelock.Timeout as error:
            message = (
                f"{self.folder}: another process has held the lock on this folder for {LOCK_TIMEOUT_S:g} s. "
                "Wait for it to finish or stop it, then run the command again."
            )
            raise LockedError(message) from error
        except OSError as error:
            raise unwritable(self.folder, error) from error

    def _rebuild(self, current: Mapping[str, str]) -> Summary:
        cells, unreadable = self.rows()
        if len(self._rows) > len(cells):
            self._rows = {f"{cell.key}.json": cell for cell in cells}
        cells.sort(key=attrgetter("order"))
        newest: dict[tuple[str, str, Variant], tuple[float, str]] = {}
        for cell in cells:
            age = cell.created, cell.config_hash
            newest[cell.method] = max(newest.get(cell.method, age), age)
        configurations = {method_of(name): config for name, config in current.items()}  # G=1.0 is the variant G=1
        listed, older = list[Row](), Counter[tuple[str, str]]()
        for cell in cells:
            if cell.config_hash == configurations.get(cell.method, newest[cell.method][-1]):
                listed.append(cell)
            else:
                dataset, algorithm, variant = cell.method
                method = f"{algorithm} {variant_text(variant)}".strip()
                older[f"{method} on {dataset}", cell.config_hash] += 1
        names = sorted({name for cell in listed for name in cell.user_metrics})
        records = (
            f"{','.join([cell.record, *(str(cell.user_metrics.get(n, '')) for n in names)])}\n" for cell in listed
        )
        self._write("traces", TRACE_COLUMNS, (cell.traces for cell in listed))
        self._write("reliability", RELIABILITY_COLUMNS, (cell.reliability for cell in listed))
        if any(cell.rows for cell in listed):
            self._write("rows", ROWS_COLUMNS, (cell.rows for cell in listed))
        else:
            (self.folder / "rows.csv").unlink(missing_ok=True)
        self._write("records", (*COLUMNS, *names), records)  # last: whenever a row is listed, the others have its key
        if self._n_read >= max(INDEX_FROM, INDEX_SHARE * len(cells)):
            with suppress(KlrBenchError):
                write_index(self._index, self._rows)
            self._n_read = 0
        return Summary(len(listed), older, tuple(unreadable))

    def _write(self, name: str, header: Sequence[str], lines: Iterable[str]) -> None:
        content = "".join([csv_text([header]), *lines])
        write_atomic(self.folder / f"{name}.csv", content.encode("utf-8", "backslashreplace"))

    def rows(self) -> tuple[list[Row], list[str]]:
        """Return the table rows of all cells, and the names of the unreadable files."""
        return self._scan(self._row)

    def load(self) -> tuple[list[CellFile], list[str]]:
        """Return all cells and the names of the unreadable files."""
        return self._scan(lambda path, name: _read(path, name.removesuffix(".json"))[1])

    def _scan(self, read: Callable[[str, str], T | None]) -> tuple[list[T], list[str]]:
        """Apply `read(path, name)` to all cell files; return results and unreadable file names."""
        cells: list[T] = []
        unreadable: list[str] = []
        for entry in sorted(os.scandir(self.cells), key=lambda e: e.name) if self.cells.is_dir() else ():
            if entry.name.endswith(".part"):
                _remove_stale(entry.path)
            if not entry.name.endswith(".json") or entry.name.startswith("."):
                continue
            try:
                is_file = entry.is_file()
            except OSError:  # a symbolic link that points to itself
                continue
            if cell := read(entry.path, entry.name) if is_file else None:
                cells.append(cell)
            elif os.path.exists(entry.path):  # False for a broken link or a deleted file
                unreadable.append(entry.name)
        return cells, unreadable

    def _row(self, path: str, name: str) -> Row | None:
        """Return the table rows stored in the file of a cell, or None if it cannot be read."""
        row = self._rows.get(name)
        if row and row.stamp == stamp_of(path):
            return row
        stamp, cell = _read(path, name.removesuffix(".json"))
        if not (cell and stamp):
            return None
        self._n_read += 1
        self._rows[name] = make_row(cell, stamp)
        return self._rows[name]

    def write_manifest(self, content: Mapping[str, object]) -> None:
        """Write manifest.yaml, including the schema version."""
        versioned = {**content, "schema_version": SCHEMA_VERSION}
        text = dump_yaml(versioned)
        write_atomic(self.folder / "manifest.yaml", text.encode())

    def read_manifest(self) -> dict[str, Any]:
        """Return the content of manifest.yaml, or {} if the file is missing or damaged.

        Raises KlrBenchError if a later version of klr-bench has written it.
        """
        path = self.folder / "manifest.yaml"
        try:
            content = read_yaml(path, LARGE)
        except KlrBenchError:
            return {}
        refuse_newer(content, path)
        return content if isinstance(content, dict) else {}


def _read(path: str, key: str) -> tuple[Stamp | None, CellFile | None]:
    """Return the stamp and the cell of a file; the cell is None if the file is unreadable."""
    try:
        stamp, content = read_stamped_json(path)
    except OSError:  # the disk or the network failed
        return None, None
    refuse_newer(content, path)
    return stamp, parse_cell(content, key)


def _remove_stale(path: str) -> None:
    """Remove a temporary file if it is old enough to be left over from a killed process."""
    with suppress(OSError):  # another process may have renamed the file
        if time.time() - os.stat(path).st_mtime > STALE_S:
            os.unlink(path)


def texts(entries: Any) -> dict[str, str]:
    """Return the entries of a section of manifest.yaml whose keys and values are text.

    Returns {} if there is no section.
    """
    items = entries.items() if isinstance(entries, dict) else ()
    return {key: value for key, value in items if isinstance(key, str) and isinstance(value, str)}


def refuse_newer(content: Any, path: str | Path) -> None:
    """Raise KlrBenchError if a later version of klr-bench wrote the file."""
    version = content.get("schema_version") if isinstance(content, dict) else None
    if type(version) is int and version > SCHEMA_VERSION:
        fail(
            f"{path}: schema_version: expected at most {SCHEMA_VERSION}, got {shortened(str(version), 20)}. "
            "Use the version of klr-bench that wrote the file, or another results_dir."
        )
