"""The files of a report: their formats, and writing them only if they change."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from klr_bench.files import write_atomic
from klr_bench.parsing import check_choice

FORMATS = ("terminal", "md", "tex", "csv", "pdf", "html")
"""Formats of a report; with pdf the figures are PDF files, too; html is one page of all that is requested."""
ORIENTATIONS = {"column": "table", "page": "table*", "landscape": "sidewaystable"}
"""LaTeX's environment for a table as wide as a column of text, as both columns, or as a rotated page."""


def check_formats(formats: Iterable[str]) -> None:
    """Refuse an unknown format."""
    for name in formats:
        check_choice("format", name, FORMATS)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def write_changed(target: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files, by their paths in `target`, unless they have this content already; return all paths."""
    for name, content in files.items():
        path = target / name
        if not path.is_file() or path.read_bytes() != content:
            write_atomic(path, content)
    return [target / name for name in files]
