"""The report of an experiment, from the rows and the manifest of its results folder and from nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from klr_bench.errors import KlrBenchError, nearest

if TYPE_CHECKING:
    from rich.console import Console

FORMATS = ("terminal", "md", "tex", "csv")


def report(
    folder: Path,
    *,
    console: Console,
    table: str | None = None,
    formats: Sequence[str] = ("terminal",),
    output: Path | None = None,
) -> list[Path]:
    """Show the table of results/<experiment> and write its files and figures; return the paths written.

    `table` is a table of the paper the experiment is compared with (its own by default), `formats` some of
    FORMATS, `output` the folder of table.md, table.tex, table.csv and the figures (<folder>/report).
    Raises KlrBenchError for an unknown format or table, and where there are no records.
    """
    for name in formats:
        if name not in FORMATS:
            message = f"format={name}: expected some of {', '.join(FORMATS)}.{nearest(name, FORMATS)}"
            raise KlrBenchError(message)
    records_file = folder / "records.csv"
    if not records_file.exists():
        others = [path.parent.name for path in folder.parent.glob("*/records.csv")]
        message = (
            f"{folder}: no records.csv there. Make it with: klr-bench run experiment={folder.name}."
            f"{nearest(folder.name, others)}"
        )
        raise KlrBenchError(message)

    from klr_bench.experiment.records import Store
    from klr_bench.files import write_atomic
    from klr_bench.report import formats as writers
    from klr_bench.report.figures import Inputs, draw_all
    from klr_bench.report.reading import read_records, read_reliability, read_rows, read_traces
    from klr_bench.report.settled import with_settled
    from klr_bench.report.tables import build

    records = read_records(records_file)
    if records.empty:
        message = f"{records_file}: no rows in it. Make some with: klr-bench run experiment={folder.name}."
        raise KlrBenchError(message)
    manifest = Store(folder).read_manifest()
    traces = read_traces(folder / "traces.csv")
    built = build(with_settled(records, traces), manifest, table)
    if "terminal" in formats:
        writers.show(built, console)
    files = {}
    for name, write in (("md", writers.markdown), ("tex", writers.latex), ("csv", writers.comma_separated)):
        if name in formats:
            files[f"table.{name}"] = write(built).encode()
    reliability, rows = read_reliability(folder / "reliability.csv"), read_rows(folder / "rows.csv")
    drawn = draw_all(Inputs(built, records, traces, reliability, rows), built.figures)
    files |= drawn.files
    for note in drawn.notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    target = output or folder / "report"
    for name, content in files.items():
        write_atomic(target / name, content)
    return [target / name for name in files]
