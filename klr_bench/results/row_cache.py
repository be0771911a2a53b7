"""The lines that a cell has in the tables of its folder, and an index that keeps them beside the cells.

    results/<experiment>/cells.index    first what it holds and the checksum of the rest, then a line of JSON for each
                                        cell: the name and the stamp of its file (inode, ctime, bytes), and its lines

With a hundred thousand cells, opening and parsing their files takes most of the time of a rebuild.  A file whose stamp
is that of the index has not changed since, and need not be read.  The index holds nothing that the files do not: it may
be removed at any time, and where anything about it is odd, the files are read.
"""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import chain
from pathlib import Path
from sys import intern
from typing import Any

from klr_bench.errors import KlrBenchError
from klr_bench.files import Stamp, regular, write_atomic
from klr_bench.printing import no_formula, printable
from klr_bench.results.record import BOUNDS, COLUMNS, LATER, SCHEMA_VERSION, CellFile, Record
from klr_bench.results.variants import Variant, VariantOrder

MOST = 2**31
"""Bytes of an index, of about a million cells."""


@dataclass(frozen=True, slots=True)
class Lines:
    """What the tables hold of a cell, as text that is rendered once."""

    key: str
    dataset: str
    algorithm: str
    variant: Variant
    repeat: int
    status: str
    config_hash: str
    created: float
    own: dict[str, float]
    """The metrics that are the user's own, which have columns after all others."""
    record: str
    """Its row of records.csv up to these columns, without the end of the line."""
    traces: str
    reliability: str
    rows: str

    @property
    def column(self) -> tuple[str, str, Variant]:
        """The column of a table that it belongs to: data set, algorithm, variant."""
        return self.dataset, self.algorithm, self.variant

    @property
    def order(self) -> tuple[str, str, VariantOrder, int, str]:
        """Where it stands in a table."""
        return self.dataset, self.algorithm, self.variant.order(), self.repeat, self.key

    def metric(self, name: str) -> float | None:
        """Return the number of a metric; None where the cell has none."""
        if name in self.own:
            return self.own[name]
        if name not in COLUMNS:
            return None
        text = next(csv.reader([self.record]))[COLUMNS.index(name)]
        return float(text) if text else None


Stamped = tuple[Stamp, Lines]
NAMES = tuple(field.name for field in fields(Lines))
VARIANT, OWN = NAMES.index("variant"), NAMES.index("own")
KINDS = (str, int, int, int, str, str, str, str, int, str, str, float, dict, str, str, str, str)
"""The types of an entry of an index: a file's name, its stamp, and the fields of its lines, the variant as text."""


def lines_of(cell: CellFile, variant: Variant) -> Lines:
    """Return the lines of a cell; `variant` is that of its record, or one that is spelt like it."""
    record = cell.record
    key = _quoted(record.key)
    return Lines(
        *(record.key, record.dataset, record.algorithm, variant, record.repeat, record.status),
        *(cell.config_hash, cell.created),
        {name: value for name, value in record.metrics.items() if name not in COLUMNS},
        csv_text([_row(record, variant)])[:-1],
        csv_text([record.key, *point] for point in cell.checkpoints) if cell.checkpoints else "",
        _numbers(key, cell.bins),
        _numbers(key, cell.rows),
    )


def record_lines(cells: Iterable[Lines], own: Sequence[str]) -> Iterator[str]:
    """Return the rows of records.csv of some cells, with the columns of the user's own metrics."""
    for cell in cells:
        yield cell.record
        for name in own:
            yield f",{cell.own[name]!r}" if name in cell.own else ","
        yield "\n"


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as a CSV file holds them."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)  # writes floats with repr, None as nothing
    return text.getvalue()


def write_index(path: Path, known: Mapping[str, Stamped]) -> None:
    """Write an index of the lines of files, by the names of the files.  Raises KlrBenchError where it cannot."""
    entries = (f"{json.dumps([name, *stamp, *_texts(lines)])}\n" for name, (stamp, lines) in known.items())
    content = "".join(entries).encode()
    write_atomic(path, f"{json.dumps([_form(), zlib.crc32(content)])}\n".encode() + content)


def read_index(path: Path) -> dict[str, Stamped]:
    """Return the lines of an index with the stamps of their files; {} where there is none that can be believed."""
    found: dict[str, Stamped] = {}
    variants: dict[str, Variant] = {}
    try:
        with regular(path, MOST) as file:
            form, checksum = json.loads(next(file, b"[0, 0]"))
            if form != _form():
                return {}
            crc = 0
            for line in file:
                crc = zlib.crc32(line, crc)
                name, inode, changed, size, *texts = json.loads(line)
                if tuple(map(type, (name, inode, changed, size, *texts))) != KINDS or not _are_numbers(texts[OWN]):
                    return {}
                text = texts[VARIANT]
                if text not in variants:
                    variants[text] = Variant(json.loads(text))
                texts[:VARIANT] = map(intern, texts[:VARIANT])
                texts[VARIANT] = variants[text]
                found[name] = (inode, changed, size), Lines(*texts)
    except (FileNotFoundError, KlrBenchError, ValueError, TypeError, RecursionError):
        return {}
    return found if crc == checksum else {}


def _texts(lines: Lines) -> list[Any]:
    """Return the fields of a cell's lines as JSON has them."""
    return [value.json if isinstance(value, Variant) else value for value in map(lines.__getattribute__, NAMES)]


def _are_numbers(own: Mapping[str, object]) -> bool:
    return {*map(type, own.values())} <= {int, float}


@lru_cache(1)
def _form() -> str:
    """Return what the lines of an index depend on besides the cells: one of another form is not believed."""
    return json.dumps([1, SCHEMA_VERSION, COLUMNS, sorted((name, *limits[:2]) for name, limits in BOUNDS.items())])


def _row(record: Record, variant: Variant) -> list[Any]:
    values = vars(record) | record.metrics
    for name in ("message", *LATER):
        values[name] = _said(values[name])
    values["variant"], values["params"] = variant.json, json.dumps(record.params)
    return list(map(values.get, COLUMNS))


@lru_cache
def _said(text: str) -> str:
    """Return a text that many cells have in common as a CSV file may hold it."""
    return no_formula(printable(text))


def _numbers(key: str, entries: Sequence[Sequence[float]]) -> str:
    """Return rows of a key and numbers, of which there may be a million: without the writer of csv."""
    if not entries:
        return ""
    form = f"{key.replace('%', '%%')}{',%r' * len(entries[0])}\n"
    return form * len(entries) % tuple(chain.from_iterable(entries))


def _quoted(text: str) -> str:
    """Return a text as a CSV file holds it."""
    return text if text.isalnum() else csv_text([[text]])[:-1]
