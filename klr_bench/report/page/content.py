"""What is on a page: papers with their verdicts, experiments with tables, figures, records and conditions."""

from __future__ import annotations

import base64
import io
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klr_bench.report import paper_pages as pages
from klr_bench.report.figures import Inputs, draw_all
from klr_bench.report.load import Results, read_results
from klr_bench.report.page.data import DataTable, plain_plot
from klr_bench.report.papers.reproduction import WholePaper
from klr_bench.report.render import Document, document
from klr_bench.report.table import Table, beside_papers, check_shown, with_columns
from klr_bench.yaml_file import read_yaml

FIRST_COLUMNS = ("dataset", "algorithm", "variant", "repeat", "status")
NUMBERS_SHOWN = (
    *("table", "dataset", "label", "metric", "mean", "std", "published_mean", "published_std", "difference"),
    *("verdict", "reason", "experiment"),
)
NUMBERS_TITLES = {
    **{"dataset": "data set", "mean": "ours", "std": "our spread", "published_mean": "published"},
    **{"published_std": "published spread", "reason": "cause", "label": "of"},
}
MACHINE = {
    **{"cpu": "Processor", "cores": "Cores", "workers": "Workers", "threads_per_worker": "Threads a worker"},
    **{"memory_gb": "Memory (GB)", "platform": "Platform"},
}
MOST_CHANGED = 5
"""Changed files that are named."""
COLOURS = 64
"""Of a picture on a page."""
MEDIA = {"svg": "image/svg+xml", "png": "image/png"}


@dataclass(frozen=True)
class Part:
    """A paper or an experiment on a page.

    Parameters
    ----------
    kind : "paper", "experiment", "against" or "site"
    facts : names and values that say when, where and with what it ran
    commands : commands that make its results and its tables again
    plots : figures as values of JSON
    pictures : figures that cannot be explored: names, and their contents as data: addresses
    links : pages of a site that belong to it: titles and addresses
    """

    kind: str
    name: str
    title: str
    documents: Sequence[Document]
    tables: Sequence[DataTable] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    commands: Sequence[str] = ()
    plots: Sequence[Mapping[str, Any]] = ()
    pictures: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    links: Mapping[str, str] = field(default_factory=dict)

    @property
    def anchor(self) -> str:
        """The name of its place on the page."""
        return f"{self.kind}-{word(self.name)}"


def word(text: str) -> str:
    """Return a text as a part of an address or of the name of an element."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", text)


def experiment_part(
    folder: Path,
    *,
    columns: Sequence[str] | None = None,
    own_figures: bool = False,
    statistics: bool = False,
    links: Mapping[str, str] | None = None,
    drawn: bool = False,
) -> Part:
    """Return what a page shows of results/<experiment>.  Raises KlrBenchError as its report does.

    Parameters
    ----------
    folder : its results folder
    columns : the metrics of the table, by default all that it has
    own_figures : run the user's own figures
    statistics : compare every two lines
    links : the pages of a site that belong to it
    drawn : take figures that cannot be explored from the folder's report, if it has some, instead of drawing them
    """
    from klr_bench.report import compared

    results = with_columns(read_results(folder), columns)
    built = beside_papers(results)
    check_shown(built, columns)
    records = _records(folder, results, built)
    ready = {path.name: path.read_bytes() for path in sorted((folder / "report").glob("*.png"))} if drawn else {}
    inputs = Inputs(built, results.records, results.traces, results.reliability, results.rows)
    figures = draw_all(inputs, built.figures, own=own_figures, explored=True, pictures=not ready)
    pictures = {name: content for name, content in ready.items() if Path(name).stem not in figures.plots}
    rows = {row[records.columns.index("key")]: number for number, row in enumerate(records.rows)}
    return Part(
        kind="experiment",
        name=folder.name,
        title=built.title or folder.name,
        documents=[document(built), *([compared(built, columns)[0]] if statistics else [])],
        tables=[records],
        facts=_facts(folder),
        commands=_commands(folder, results),
        plots=[
            plain_plot(f"{word(folder.name)}-{word(name)}", plot, records.name, rows)
            for name, plot in figures.plots.items()
        ],
        pictures=dict(_picture(name, content) for name, content in (figures.files or pictures).items()),
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
    title = "Every printed number, ours, and what became of it"
    table = DataTable(f"{whole.name}-numbers", title, pages.CSV_COLUMNS, rows, NUMBERS_SHOWN, NUMBERS_TITLES)
    reference = whole.paper.reference
    return Part(
        kind="paper",
        name=whole.name,
        title=reference if numbers is None else f"{reference}: its numbers beside these results",
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
    """Return records.csv as it is; the identity of a fit and the metrics of the table are shown at first."""
    columns, rows = results.texts
    manifest = results.manifest
    message = ["message"] if any(row[columns.index("message")] for row in rows) else []
    shown = [*FIRST_COLUMNS, *message, *(name for name in built.shown if name in columns), "params"]
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


def _facts(folder: Path) -> dict[str, str]:
    """Return names and values: when it ran, which source, on what machine, with what versions; as far as known."""
    content = read_yaml(folder / "manifest.yaml")
    content = content if isinstance(content, Mapping) else {}
    config, machine, versions = (
        value if isinstance(value := content.get(key), Mapping) else {} for key in ("config", "machine", "versions")
    )
    changed, commit = content.get("changed") or [], content.get("git_commit")
    names = ", ".join(map(str, changed[:MOST_CHANGED])) + (" and more" if len(changed) > MOST_CHANGED else "")
    times = dict.fromkeys(str(content[key]) for key in ("started", "updated") if content.get(key))
    found = {
        "Run": " to ".join(times),
        "Source": f"commit {commit}" + (f", with changes in {names}" if changed else "") if commit else None,
        "Seed": config.get("seed"),
        "Repeats": config.get("repeats"),
        **{title: machine.get(name) for name, title in MACHINE.items()},
        "Versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }
    return {name: str(value) for name, value in found.items() if value not in (None, "")}


def _commands(folder: Path, results: Results) -> list[str]:
    """Return the commands that make the results and the table again."""
    manifest = results.manifest
    words = read_yaml(folder / "manifest.yaml").get("command")
    if not isinstance(words, list):  # an earlier version kept no command
        words = [f"experiment={manifest.chosen}", f"repeats={manifest.config.repeats}"]
    run = ["klr-bench", "run", *map(str, words)]
    if manifest.experiment != manifest.chosen and not any(word.startswith("name=") for word in run):
        run.append(f"name={manifest.experiment}")
    report = ["klr-bench", "report", f"experiment={folder.name}", f"results_dir={folder.parent}"]
    return [shlex.join(run), shlex.join(report)]


def _picture(file: str, content: bytes) -> tuple[str, str]:
    """Return the name of a picture, and its content as a data: address; a PNG with few colours is a third as large."""
    from PIL import Image

    stem, _, kind = file.rpartition(".")
    if kind == "png":
        smaller = io.BytesIO()
        Image.open(io.BytesIO(content)).convert("RGB").quantize(COLOURS).save(smaller, "png", optimize=True)
        content = smaller.getvalue()
    return stem.replace("_", " "), f"data:{MEDIA[kind]};base64,{base64.b64encode(content).decode()}"
