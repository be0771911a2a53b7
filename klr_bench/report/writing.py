"""The files of a report: in which formats, and written only where they change."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from klr_bench.errors import KlrBenchError, nearest
from klr_bench.files import write_atomic

FORMATS = ("terminal", "md", "tex", "csv", "pdf", "html")
"""Of the table; with pdf the figures are PDF files, too; html is one page of all that is asked for."""
ORIENTATIONS = {"column": "table", "page": "table*", "landscape": "sidewaystable"}
"""LaTeX's environment for a table as wide as a column of text, as both columns, or as a page on its side."""


def check_formats(formats: Iterable[str]) -> None:
    """Refuse a format that there is not."""
    for name in formats:
        if name not in FORMATS:
            message = f"format={name}: expected some of {', '.join(FORMATS)}.{nearest(name, FORMATS)}"
            raise KlrBenchError(message)


def as_files(formats: Iterable[str]) -> list[str]:
    """Return those of the formats that are for figures."""
    return [name for name in formats if name == "pdf"]


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([header, *rows])
    return text.getvalue()


def write_changed(target: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write what differs from what is there; return all paths."""
    for name, content in files.items():
        if Path(name).name != name:
            message = f"{name!r}: expected the name of a file of a report, got a path."
            raise KlrBenchError(message)
        path = target / name
        if not path.is_file() or path.read_bytes() != content:
            write_atomic(path, content)
    return [target / name for name in files]
