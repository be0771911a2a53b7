"""Convert cells to rows of the results tables, and cache these rows in an index file.

results/<experiment>/cells.index    format and checksum in the first line, then JSON: {file name: row}

Rebuilding the tables of a large experiment would otherwise spend most of its time opening and parsing cell files.  A
file whose stamp (inode, ctime, size) is unchanged is not read again.  The index can be deleted at any time.
"""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from klr_bench.errors import KlrBenchError
from klr_bench.files import Stamp, read_regular, write_atomic
from klr_bench.printing import no_formula, printable
from klr_bench.results.record import COLUMNS, RANGES, SCHEMA_VERSION, TEXTS, CellFile
from klr_bench.results.variants import Variant, method_name, read_variant

MAX_INDEX_BYTES = 2**31
"""Maximum size of an index in bytes, for about a million cells."""


class Row(NamedTuple):
    """The lines of the CSV tables that belong to a cell, and values by which they are sorted."""

    stamp: Stamp
    key: str
    dataset: str
    algorithm: str
    variant: str
    """The variant as JSON."""
    repeat: int
    status: str
    config_hash: str
    created: float
    user_metrics: dict[str, int | float]
    """Metrics that are not in COLUMNS; their columns come last."""
    record: str
    """The row of records.csv, without user metrics and the line ending."""
    traces: str
    reliability: str
    rows: str

    @property
    def method(self) -> tuple[str, str, Variant]:
        """Tuple of data set, algorithm and variant."""
        return self.dataset, self.algorithm, read_variant(self.variant)

    @property
    def name(self) -> str:
        """Name of the method and data set in manifest.yaml."""
        return method_name(self.dataset, self.algorithm, self.variant)

    def texts(self) -> dict[str, str]:
        """Return the fields of the row of records.csv, by column."""
        (fields,) = csv.reader(io.StringIO(self.record, newline=""))
        return dict(zip(COLUMNS, fields, strict=True)) | {name: str(value) for name, value in self.user_metrics.items()}

    @property
    def order(self) -> tuple[Any, ...]:
        """Key for sorting the rows of the tables."""
        return self.dataset, self.algorithm, read_variant(self.variant).order, self.repeat, self.key


INDEX = TypeAdapter(dict[str, Row])


def make_row(cell: CellFile, stamp: Stamp) -> Row:
    """Return the table rows of a cell; `stamp` identifies the state of the cell's file."""
    record = cell.record
    variant = json.dumps(dict(record.variant))
    values = vars(record) | record.metrics | {"variant": variant, "params": json.dumps(record.params)}
    values |= {name: no_formula(printable(values[name])) for name in TEXTS}
    return Row(
        stamp,
        *(record.key, record.dataset, record.algorithm, variant, record.repeat, record.status),
        *(cell.config_hash, cell.created),
        {name: value for name, value in record.metrics.items() if name not in COLUMNS},
        csv_text([[values.get(name) for name in COLUMNS]]).removesuffix("\n"),
        *(csv_text((record.key, *entry) for entry in part) for part in (cell.checkpoints, cell.bins, cell.rows)),
    )


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows formatted as CSV."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)  # writes floats with repr, and None as an empty field
    return text.getvalue()


def write_index(path: Path, rows: Mapping[str, Row]) -> None:
    """Write the index file; `rows` is keyed by file name.  Raises KlrBenchError."""
    content = json.dumps(rows).encode()
    write_atomic(path, json.dumps([_format(), zlib.crc32(content)]).encode() + b"\n" + content)


def read_index(path: Path) -> dict[str, Row]:
    """Read the rows in an index file, keyed by file name.

    Return an empty dict if the file is missing, damaged or has another format.
    """
    try:
        header, _, content = read_regular(path, MAX_INDEX_BYTES).partition(b"\n")
        if json.loads(header) == [_format(), zlib.crc32(content)]:
            return INDEX.validate_json(content)
    except (OSError, KlrBenchError, ValueError, RecursionError):
        pass
    return {}


def _format() -> list[Any]:
    """Return the format of an index file: its version, and the schema, columns and ranges."""
    limits = sorted((name, str(metric.low), str(metric.high)) for name, metric in RANGES.items())
    return [2, SCHEMA_VERSION, *COLUMNS, *map(list, limits)]
