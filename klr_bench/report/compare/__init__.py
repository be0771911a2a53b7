"""Two runs compared: other seeds, another version, another machine, or another experiment with the same columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from klr_bench.report.writing import check_formats, write_changed

if TYPE_CHECKING:
    from rich.console import Console


def report_comparison(
    first: Path,
    second: Path,
    *,
    console: Console,
    formats: Sequence[str] = ("terminal",),
    columns: Sequence[str] | None = None,
    output: Path | None = None,
) -> list[Path]:
    """Show what differs between two results folders, results/<experiment>, and write its files; return their paths.

    `formats` are some of FORMATS, without pdf; `columns` the metrics that are compared, the usual ones if None;
    `output` the folder of against.md, against.tex and against.csv (<first>/report).  Raises KlrBenchError for what
    `klr_bench.report.compare.comparison.compare` refuses.
    """
    check_formats(formats)

    from klr_bench.report import render
    from klr_bench.report.compare.comparison import compare
    from klr_bench.report.compare.pages import comma_separated, documents

    two = compare(first, second, columns)
    found = documents(two)
    if "terminal" in formats:
        for document in found:
            render.show(document, console)
            console.print()
    files = {
        f"against.{kind}": "\n".join(spell(document) for document in found)
        for kind, spell in render.WRITERS.items()
        if kind in formats
    }
    if "csv" in formats:
        files["against.csv"] = comma_separated(two)
    return write_changed(output or first / "report", {name: text.encode() for name, text in files.items()})
