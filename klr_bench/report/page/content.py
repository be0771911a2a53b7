"""What is on a page: papers with their verdicts, experiments with tables, figures, records and conditions."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klr_bench.report import paper_pages as pages
from klr_bench.report.figures import Drawn, Inputs, draw_all
from klr_bench.report.load import Results, read_results
from klr_bench.report.page.data import DataTable, plain_plot
from klr_bench.report.page.facts import command_of, facts_of
from klr_bench.report.papers.reproduction import WholePaper
from klr_bench.report.render import Document, document
from klr_bench.report.table import Table, beside_papers, check_shown, with_columns

FIRST_COLUMNS = ("dataset", "algorithm", "variant", "repeat", "status")
LAST_COLUMNS = ("params",)
NUMBERS_SHOWN = (
    *("table", "dataset", "label", "metric", "mean", "std", "published_mean", "published_std", "difference"),
    *("verdict", "reason", "experiment"),
)
NUMBERS_TITLES = {
    **{"dataset": "data set", "mean": "ours", "std": "our spread", "published_mean": "published"},
    **{"published_std": "published spread", "reason": "cause", "label": "of"},
}
NOT_IN_WORDS = re.compile(r"[^A-Za-z0-9_-]")
COLOURS = 64
"""Of a picture on a page."""
MEDIA = {"svg": "image/svg+xml", "png": "image/png"}


@dataclass(frozen=True)
class Picture:
    """A figure that cannot be explored."""

    name: str
    source: str
    """Its content, as a data: address."""


@dataclass(frozen=True)
class Part:
    """A paper or an experiment on a page."""

    kind: str
    """"paper" or "experiment"."""
    name: str
    title: str
    documents: Sequence[Document]
    tables: Sequence[DataTable] = ()
    facts: Sequence[tuple[str, str]] = ()
    """What it ran on and what with: names and values."""
    commands: Sequence[str] = ()
    """What makes its results and its tables again."""
    plots: Sequence[Mapping[str, Any]] = ()
    """Figures as values of JSON."""
    pictures: Sequence[Picture] = ()
    notes: Sequence[str] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    """Pages of a site that belong to it: titles and addresses."""

    @property
    def anchor(self) -> str:
        """The name of its place on the page."""
        return f"{self.kind}-{word(self.name)}"


def word(text: str) -> str:
    """Return a text as a part of an address or of the name of an element."""
    return NOT_IN_WORDS.sub("-", text)


def experiment_part(
    folder: Path,
    *,
    columns: Sequence[str] | None = None,
    own_figures: bool = False,
    statistics: bool = False,
    links: Mapping[str, str] | None = None,
    drawn: bool = False,
) -> Part:
    """Return what a page shows of results/<experiment>.  KlrBenchError as for its report.

    `columns` are the metrics of the table, by default all that it has, `links` the pages of a site beside it.  With
    `own_figures` the user's own figures are run, with `statistics` every two lines are compared.  With `drawn` the
    pictures, of figures that cannot be explored, are those of the folder's report, which are not drawn again.
    """
    from klr_bench.report import compared

    results = with_columns(read_results(folder), columns)
    built = beside_papers(results)
    check_shown(built, columns)
    records = _records(folder, results, built)
    ready = _of_report(folder) if drawn else {}
    figures = _drawn(results, built, own=own_figures, pictures=not ready)
    places = {row[records.columns.index("key")]: number for number, row in enumerate(records.rows)}
    return Part(
        kind="experiment",
        name=folder.name,
        title=built.title or folder.name,
        documents=[document(built), *([compared(built, columns)[0]] if statistics else [])],
        tables=[records],
        facts=facts_of(folder),
        commands=command_of(folder, results.manifest),
        plots=[
            plain_plot(f"{word(folder.name)}-{word(name)}", plot, records.name, places)
            for name, plot in figures.plots.items()
        ],
        pictures=_pictures(figures.files or _others(ready, figures)),
        notes=figures.notes,
        links=links or {},
    )


def paper_part(
    whole: WholePaper, *, numbers: Sequence[str] | None = None, links: Mapping[str, str] | None = None
) -> Part:
    """Return what a page shows of a paper: its tables as printed, the scoreboard, the claims, and every number.

    With `numbers`, names of experiments, only the numbers beside theirs.  `links`: the pages of a site beside it.
    """
    documents = []
    if numbers is None:
        documents = [pages.scoreboard_page(whole)] if whole.lines else []
        documents += [pages.table_page(whole, str(number)) for number in whole.paper.tables]
        documents += [pages.claims_page(whole)] if whole.claims else []
    rows = [
        ["" if value is None else str(value) for value in row]
        for row, one in pages.number_rows([whole])
        if numbers is None or one.experiment in numbers
    ]
    title = whole.paper.reference if numbers is None else f"{whole.paper.reference}: its numbers beside these results"
    table = DataTable(
        f"{whole.name}-numbers", "Every printed number, ours, and what became of it", pages.CSV_COLUMNS, rows,
        NUMBERS_SHOWN, NUMBERS_TITLES,
    )  # fmt: skip
    return Part(
        kind="paper",
        name=whole.name,
        title=title,
        documents=documents,
        tables=[table] if rows else [],
        commands=[f"klr-bench report paper={whole.name}"],
        links=links or {},
    )


def against_part(first: Path, second: Path, columns: Sequence[str] | None = None) -> Part:
    """Return what a page shows of two runs side by side."""
    from klr_bench.report.compare.comparison import compare
    from klr_bench.report.compare.pages import documents

    found = documents(compare(first, second, columns))
    name = f"{first.name} against {second.name if second.name != first.name else second.parent.name}"
    return Part("against", name, found[0].title, found)


def _records(folder: Path, results: Results, built: Table) -> DataTable:
    """Return records.csv as it is; shown are at first who, which, and the metrics of the table."""
    columns, rows = results.texts
    manifest = results.manifest
    varied = [name for name in ("message",) if any(row[columns.index(name)] for row in rows)]
    shown = [*FIRST_COLUMNS, *varied, *(name for name in built.shown if name in columns), *LAST_COLUMNS]
    return DataTable(
        f"{folder.name}-records",
        "All records",
        columns,
        rows,
        list(dict.fromkeys(shown)),
        titles={name: metric.title for name, metric in manifest.metrics.items()},
        labels={
            "algorithm": {name: manifest.algorithm_label(name) for name in {*results.records["algorithm"]}},
            "dataset": {name: manifest.dataset_label(name) for name in {*results.records["dataset"]}},
        },
    )


def _drawn(results: Results, built: Table, *, own: bool, pictures: bool) -> Drawn:
    inputs = Inputs(built, results.records, results.traces, results.reliability, results.rows)
    return draw_all(inputs, built.figures, own=own, explored=True, pictures=pictures)


def _of_report(folder: Path) -> dict[str, bytes]:
    """Return the pictures of a report by the names of their files."""
    return {path.name: path.read_bytes() for path in sorted((folder / "report").glob("*.png"))}


def _others(pictures: Mapping[str, bytes], figures: Drawn) -> dict[str, bytes]:
    """Return the pictures of figures that cannot be explored."""
    return {name: content for name, content in pictures.items() if Path(name).stem not in figures.plots}


def _pictures(files: Mapping[str, bytes]) -> list[Picture]:
    found = []
    for file, content in files.items():
        stem, _, kind = file.rpartition(".")
        content = _fewer_colours(content) if kind == "png" else content
        source = f"data:{MEDIA[kind]};base64,{base64.b64encode(content).decode()}"
        found.append(Picture(stem.replace("_", " "), source))
    return found


def _fewer_colours(content: bytes) -> bytes:
    """Return a PNG picture of so many colours that it is a third as large."""
    from PIL import Image

    smaller = io.BytesIO()
    Image.open(io.BytesIO(content)).convert("RGB").quantize(COLOURS).save(smaller, "png", optimize=True)
    return smaller.getvalue()
