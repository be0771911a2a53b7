"""Check the formats of reports, and write files whose content has changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from klr_bench.files import write_atomic
from klr_bench.parsing import check_choice

FORMATS = ("terminal", "md", "tex", "csv", "pdf", "html")
"""Formats of a report; pdf also saves the figures as PDF, and html is a single page."""


class Page(NamedTuple):
    """Environment of a table, and width and height in points of tables, captions and notes."""

    environment: str
    width: float
    height: float = 540


ORIENTATIONS = {
    "page": Page("table*", 345),
    "column": Page("table", 229),
    "landscape": Page("sidewaystable*", 540, 335),
}
"""Pages of the class article: the full width of either layout, one of two columns, and a rotated page."""


def check_formats(formats: Iterable[str]) -> None:
    """Raise KlrBenchError for an unknown format."""
    for name in formats:
        check_choice("format", name, FORMATS)


def write_changed(target: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files into `target` if their content has changed. Return all paths."""
    for name, content in files.items():
        path = target / name
        if not path.is_file() or path.read_bytes() != content:
            write_atomic(path, content)
    return [target / name for name in files]
