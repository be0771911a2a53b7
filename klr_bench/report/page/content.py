"""Collect the content of a page: papers with verdicts, and experiments with their results."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from klr_bench.parsing import Plain
from klr_bench.report import comparison_texts, conclusions
from klr_bench.report import paper_pages as pages
from klr_bench.report.figures import DrawnFigures, Inputs, draw_all
from klr_bench.report.figures.core.plot import Axis, Plot, Series
from klr_bench.report.labels import join_names
from klr_bench.report.load import read_results
from klr_bench.report.manifest import Manifest
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.report.papers.scoreboard import verdict_counts
from klr_bench.report.papers.verdicts import Verdict
from klr_bench.report.ranking import ranking_document
from klr_bench.report.render import Document, document
from klr_bench.report.table import Table, results_table

FIRST_COLUMNS = ("dataset", "algorithm", "variant", "repeat", "status")
NUMBERS_SHOWN = (
    *("table", "dataset", "label", "metric", "mean", "std", "published_mean", "published_std", "difference"),
    *("verdict", "power", "reason", "experiment"),
)
NUMBERS_TITLES = {
    **{"dataset": "data set", "mean": "ours", "std": "our spread", "published_mean": "published"},
    **{"published_std": "published spread", "reason": "cause", "label": "of"},
}
MACHINE = {
    **{"cpu": "Processor", "cores": "Cores", "workers": "Workers", "threads_per_worker": "Threads a worker"},
    **{"memory_gb": "Memory (GB)", "platform": "Platform"},
}
OVER_DATA_SETS = ("rank_time", "critical_difference")
"""Figures on the page of an experiment that ranks methods over data sets."""
THUMBNAIL = 160, 90
"""Width and height of the drawing on a card."""
MEDIA = {"svg": "image/svg+xml", "png": "image/png"}
DASHES = {"-": "solid", "--": "dash", "-.": "dashdot", ":": "dot"}
DIGITS = 6
"""Significant digits of values in a plot; tables have full precision."""


@dataclass(frozen=True)
class Card:
    """Link to a page of a site, with texts, verdicts, and a small picture or drawing."""

    title: str
    address: str
    texts: Sequence[str]
    verdicts: Mapping[Verdict, int]
    picture: str = ""
    """The address of an image, as data."""
    curves: Sequence[Curve] = ()


class Curve(NamedTuple):
    """Curve of a thumbnail, drawn as a line or as separate points."""

    color: str
    connected: bool
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Part:
    """Section of a page; `kind` is "paper", "experiment", "against" (two runs) or "site".

    `tables` and `plots` are values of JSON for the script of the page, and `pictures` other figures as data: addresses,
    by name.  `facts` are the time, source, machine and versions of a run, by name, `commands` reproduce it, and `links`
    lead to related pages of a site, by title.  `conclusion` is a summary of one or more sentences, and `verdicts` are
    the numbers of published values by verdict.  `about` is an introduction, `cards` lead to other
    pages, and `results` is the table of an experiment.
    """

    kind: str
    name: str
    title: str
    documents: Sequence[Document]
    folded: Sequence[Document] = ()
    """Documents that are folded at first, below the figures."""
    tables: Sequence[Plain] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    commands: Sequence[str] = ()
    plots: Sequence[Plain] = ()
    pictures: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    conclusion: Sequence[str] = ()
    verdicts: Mapping[Verdict, int] = field(default_factory=dict)
    about: str = ""
    cards: Sequence[Card] = ()
    results: Table | None = None

    @property
    def anchor(self) -> str:
        """The id of the section's HTML element."""
        return f"{self.kind}-{word(self.name)}"


def word(text: str) -> str:
    """Return a slug for URLs and ids of HTML elements; different strings have different ones."""
    slug = re.sub(r"[^A-Za-z0-9_-]", "-", text)
    return slug if slug == text else f"{slug}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def experiment_part(
    folder: Path, *, columns: Sequence[str] | None = None, own_figures: bool = False, statistics: bool = False
) -> Part:
    """Return the content for a results folder; takes the arguments of `klr_bench.report.report`."""
    results = read_results(folder)
    built = results_table(results, columns=columns)
    manifest, (header, rows) = results.manifest, results.texts
    message = ["message"] if any(row[header.index("message")] for row in rows) else []
    records = data_table(
        f"{folder.name}-records",
        "All records",
        header,
        rows,
        list(dict.fromkeys([*FIRST_COLUMNS, *message, *(name for name in built.metrics if name in header), "params"])),
        {name: metric.title for name, metric in manifest.metrics.items()},
        algorithm={name: manifest.algorithm_label(name) for name in results.records["algorithm"].unique()},
        dataset={name: manifest.dataset_label(name) for name in results.records["dataset"].unique()},
    )
    inputs = Inputs(built, results.records, results.traces, results.reliability, results.rows)
    figures, ranks = draw_all(inputs, built.figures, user_files=own_figures, explored=True), ranking_document(built)
    if ranks:
        over = draw_all(inputs, OVER_DATA_SETS, explored=True)
        figures = DrawnFigures(over.files | figures.files, over.plots | figures.plots, figures.notes)
    places = {row[header.index("key")]: place for place, row in enumerate(rows)}
    matches = [match for block in built.blocks for match in block.matches]
    return Part(
        kind="experiment",
        name=folder.name,
        title=built.title or folder.name,
        documents=[ranks or document(built), *([comparison_texts(built, columns)[0]] if statistics else [])],
        folded=[document(built)] if ranks else [],
        tables=[records],
        facts=_facts(manifest),
        commands=_commands(folder, manifest),
        plots=[
            _plot(f"{word(folder.name)}-{word(name)}", plot, records["name"], places)
            for name, plot in figures.plots.items()
        ],
        pictures=dict(_picture(name, content) for name, content in figures.files.items()),
        notes=figures.notes,
        conclusion=[*conclusions.on_numbers(matches), *conclusions.on_methods(built)],
        verdicts=verdict_counts(matches),
        results=built,
    )


def paper_part(reproduction: Reproduction, numbers: Sequence[str] | None = None) -> Part:
    """Return the content for a paper: tables, scoreboard, claims, and all numbers.

    With `numbers`, names of experiments, only the numbers that are compared with theirs.
    """
    reference, title = reproduction.paper.reference, "Published numbers, measured values and verdicts"
    rows = [
        ["" if value is None else str(value) for value in row]
        for row, number_match in pages.number_rows([reproduction])
        if numbers is None or number_match.experiment in numbers
    ]
    documents, claims = [], []
    matches = [match for match in reproduction.matches if numbers is None or match.experiment in numbers]
    if numbers is None:
        claims = conclusions.on_claims(reproduction.claims)
        documents = [pages.scoreboard_page(reproduction)] if reproduction.lines else []
        documents += [pages.table_page(reproduction, number) for number in reproduction.matches_by_table]
        documents += [pages.claims_page(reproduction)] if reproduction.claims else []
    table = data_table(f"{reproduction.name}-numbers", title, pages.CSV_COLUMNS, rows, NUMBERS_SHOWN, NUMBERS_TITLES)
    return Part(
        kind="paper",
        name=reproduction.name,
        about=f"{reproduction.paper.title}. {reproduction.paper.about or ''}" if numbers is None else "",
        title=reference if numbers is None else f"{reference}: its numbers and these results",
        documents=documents,
        tables=[table] if rows else [],
        commands=[f"klr-bench report paper={reproduction.name}{_elsewhere(reproduction.results_dir)}"],
        conclusion=[*conclusions.on_numbers(matches), *claims],
        verdicts=verdict_counts(matches),
    )


def data_table(
    name: str,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    visible: Sequence[str],
    titles: Mapping[str, str],
    **labels: Mapping[str, str],
) -> Plain:
    """Return a sortable and filterable table, as JSON values.

    `columns` and `rows` are the content of the CSV file, and `visible` are the columns that are shown at first.
    `titles` are display names of columns, and `labels` display names of texts, by column.
    """
    numeric = [all(map(_is_number, column)) for column in zip(*rows, strict=True)] or [False] * len(columns)
    return {
        "name": name,
        "title": title,
        "file": f"{name}.csv",
        "columns": [
            {"name": column, "title": titles.get(column, column.replace("_", " ")), "numeric": number}
            for column, number in zip(columns, numeric, strict=True)
        ],
        "rows": rows,
        "shown": [columns.index(column) for column in visible if column in columns],
        "labels": labels,
    }


def _is_number(text: str) -> bool:
    try:
        return not text or not math.isnan(float(text))
    except ValueError:
        return False


def _plot(name: str, plot: Plot, table: str, places: Mapping[str, int]) -> Plain:
    """Return a plot as JSON values; `places` maps the keys of records to row indices of `table`."""
    sides = ", ".join(dict.fromkeys(facet.y.label for facet in plot.facets))
    return {
        "name": name,
        "title": f"{sides} against {plot.x.label[:1].lower()}{plot.x.label[1:]}",
        "table": table,
        "x": _axis(plot.x),
        "diagonal": plot.diagonal,
        "facets": [
            {"title": facet.title, "y": _axis(facet.y), "series": [_series(curve, places) for curve in facet.series]}
            for facet in plot.facets
        ],
    }


def thumbnail(part: Part) -> tuple[str, list[Curve]]:
    """Return a thumbnail of the first figure: an image, or curves of several points."""
    if not part.plots:
        return next(iter(part.pictures.values()), ""), []
    plot = part.plots[0]
    facet = plot["facets"][0]
    series = [curve for curve in facet["series"] if curve["kind"] == "mean"] or facet["series"]
    axes = [
        _positions([curve[side] for curve in series], size, logarithmic=axis["log"])
        for side, size, axis in zip("xy", THUMBNAIL, (plot["x"], facet["y"]), strict=True)
    ]
    curves = []
    for curve, across, up in zip(series, *axes, strict=True):
        pairs = zip(across, up, strict=True)
        points = [(x, THUMBNAIL[1] - y) for x, y in pairs if math.isfinite(x) and math.isfinite(y)]
        curves.append(Curve(curve["color"], curve["connected"], points))
    return "", curves if sum(len(curve.points) for curve in curves) > 1 else []


def _positions(series: Sequence[Sequence[float | None]], size: float, *, logarithmic: bool) -> list[list[float]]:
    """Scale coordinates to the size of a drawing; NaN if they cannot be shown."""
    transformed = [[_transformed(value, logarithmic) for value in row] for row in series]
    finite = [value for row in transformed for value in row if math.isfinite(value)]
    low, span = min(finite, default=0.0), max(finite, default=0.0) - min(finite, default=0.0) or 1.0
    return [[round(size * (0.06 + 0.88 * (value - low) / span), 1) for value in row] for row in transformed]


def _transformed(value: float | None, logarithmic: bool) -> float:
    if value is None or (logarithmic and value <= 0):
        return math.nan
    return math.log10(value) if logarithmic else value


def _axis(axis: Axis) -> Plain:
    return {"label": axis.label, "log": axis.logarithmic, "share": axis.is_share, "fromZero": axis.from_zero}


def _series(series: Series, places: Mapping[str, int]) -> Plain:
    look = series.look
    dash = DASHES[look.dashes] if isinstance(look.dashes, str) else ",".join(f"{length}px" for length in look.dashes[1])
    return {
        "id": json.dumps([series.curve[0], dict(series.curve[1])]),
        **{"name": look.label, "symbol": look.marker, "dash": dash, "color": look.color},
        "kind": series.kind,
        "connected": series.connected,
        "x": _rounded(series.x),
        "y": _rounded(series.y),
        "xSpread": _rounded(series.x_spread) if any(series.x_spread) else [],
        "spread": _rounded(series.spread) if any(series.spread) else [],
        "fits": [[places[key] for key in keys if key in places] for keys in series.keys],
        "names": series.names,
    }


def _rounded(numbers: Sequence[float]) -> list[float | None]:
    return [float(f"{number:.{DIGITS}g}") if math.isfinite(number) else None for number in numbers]


def _facts(manifest: Manifest) -> dict[str, str]:
    changes = f", with changes in {join_names(list(map(str, manifest.changed)))}" if manifest.changed else ""
    facts = {
        "Run": " to ".join(dict.fromkeys(str(time) for time in (manifest.started, manifest.updated) if time)),
        "Source": f"commit {manifest.git_commit}{changes}" if manifest.git_commit else None,
        "Seed": manifest.config.seed,
        "Repeats": manifest.config.repeats,
        **{title: (manifest.machine or {}).get(name) for name, title in MACHINE.items()},
        "Versions": ", ".join(f"{name} {version}" for name, version in manifest.versions.items()),
    }
    return {name: str(value) for name, value in facts.items() if value not in (None, "")}


def _commands(folder: Path, manifest: Manifest) -> list[str]:
    words = map(str, manifest.command or [f"experiment={manifest.experiment_file}"])
    run = ["klr-bench", "run", *map(_shareable, words)]
    if manifest.experiment != manifest.experiment_file and not any(word.startswith("name=") for word in run):
        run.append(f"name={manifest.experiment}")
    return [shlex.join(run), f"klr-bench report experiment={folder.name}{_elsewhere(folder.parent)}"]


def _elsewhere(results: Path | None) -> str:
    """Return the setting of a folder of results; an absolute one is right on one machine only."""
    return "" if results is None or results.is_absolute() else f" {shlex.quote(f'results_dir={results}')}"


def _shareable(word: str) -> str:
    """Return a setting without needless quotes, and with a file's name in place of its path."""
    key, equals, value = word.partition("=")
    text = value[1:-1] if re.fullmatch(r"'[^'\\]+'", value) else value
    text = Path(text).name if Path(text).is_absolute() else text
    is_plain = text == value or re.fullmatch(r"[\w./@:-]+", text)
    return f"{key}{equals}{text if is_plain else repr(text)}"


def _picture(file: str, content: bytes) -> tuple[str, str]:
    from PIL import Image

    stem, _, kind = file.rpartition(".")
    if kind == "png":
        smaller = io.BytesIO()
        Image.open(io.BytesIO(content)).convert("RGB").quantize(64).save(smaller, "png", optimize=True)
        content = smaller.getvalue()
    return stem.replace("_", " "), f"data:{MEDIA[kind]};base64,{base64.b64encode(content).decode()}"
