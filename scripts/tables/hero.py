"""Pictures of the first page: accuracy against support vectors on MAGIC, and badges."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
from facts import PROJECT
from matplotlib.figure import Figure

from klr_bench import __version__
from klr_bench.report.figures.accuracy_support import FIGURE
from klr_bench.report.figures.core.drawing import STYLE, saved, scale_axis
from klr_bench.report.figures.core.figure import Inputs
from klr_bench.report.figures.core.plot import ACCURACY, MARKERS, SUPPORT
from klr_bench.report.load import read_results
from klr_bench.report.table import results_table


class Theme(NamedTuple):
    """Colors of text, grid and learners."""

    text: str
    grid: str
    colors: dict[str, str]


THEMES = {
    "hero.svg": Theme(
        "#222222",
        "#e4e4e4",
        {"OSKL": "#a3407a", "Pegasos": "#00795a", "Auxiliary": "#b84f00", "Margin": "#0064a8", "Baseline": "#222222"},
    ),
    "hero_dark.svg": Theme(
        "#dddddd",
        "#3a414c",
        {"OSKL": "#e58fc4", "Pegasos": "#3fc99b", "Auxiliary": "#f08a45", "Margin": "#5db4ec", "Baseline": "#dddddd"},
    ),
}
LABELS = {
    "OSKL G=10": ("OSKL, G = 10", (12, -4), "left"),
    "OSKL G=4": ("G = 4", (12, -4), "left"),
    "OSKL G=2": ("G = 2", (12, -4), "left"),
    "OSKL G=1": ("G = 1", (-10, 3), "right"),
    "Pegasos lambda=0.0001": ("Pegasos", (10, -16), "left"),
    "Auxiliary": ("Auxiliary", (0, 32), "center"),
    "Margin": ("Margin", (-10, -37), "center"),
    "Baseline": ("Baseline:\nevery row", (8, -46), "center"),
}
"""Points that are drawn, each with its label, the offset of the label in points, and its alignment."""


def pictures(reference: Path) -> dict[str, bytes]:
    """Return the pictures of the first page, by name of their file in docs/_static."""
    heroes = {name: _hero(reference / "oskl_magic", theme) for name, theme in THEMES.items()}
    minors = [name.rsplit(" ", 1)[1] for name in PROJECT["classifiers"] if ":: Python :: 3." in name]
    badges = {"version": __version__, "python": f"{minors[0]} to {minors[-1]}", "license": PROJECT["license"]}
    return heroes | {f"{name}.svg": _badge(name, value).encode() for name, value in badges.items()}


def _hero(folder: Path, theme: Theme) -> bytes:
    """Draw measured means with one standard deviation, and published means as hollow markers."""
    results = read_results(folder)
    rows, repeats = int(results.records["n_train"].iloc[0]), results.records["repeat"].nunique()
    table = results_table(results, columns=("accuracy", "n_support"))
    plot = FIGURE.plot(Inputs(table, results.records, results.traces, results.reliability, results.rows))
    ink = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), theme.text)
    with mpl.rc_context({**STYLE, **ink, "grid.color": theme.grid, "font.size": 11.0, "axes.titlesize": 11.0}):
        figure = Figure(figsize=(6.4, 4.3), layout="constrained", facecolor="none")
        axes = figure.add_subplot(xlabel=f"{SUPPORT.label} of {rows:,} training rows", ylabel=ACCURACY.label)
        axes.set(facecolor="none", xlim=(300, 26_000))
        for series in plot.facets[0].series:
            if series.kind == "repeat":
                continue
            color = theme.colors[series.look.label.split()[0]]
            style = {"color": color, "marker": MARKERS[series.look.marker], "linestyle": ""}
            for number, (x, y, name) in enumerate(zip(series.x, series.y, series.names, strict=True)):
                if name not in LABELS:
                    continue
                if series.kind == "published":
                    axes.plot(x, y, **style, markersize=11, mfc="none", mew=1.4)
                    continue
                text, offset, side = LABELS[name]
                axes.errorbar(x, y, series.spread[number], **style, markersize=6, elinewidth=1.2)
                axes.annotate(text, (x, y), offset, textcoords="offset points", ha=side, color=color)
        scale_axis(axes.xaxis, SUPPORT)
        shown = {"color": theme.text, "linestyle": "", "marker": "v"}
        axes.plot([], [], **shown, markersize=6, label="measured, ± one standard deviation")
        axes.plot([], [], **shown, markersize=11, mfc="none", mew=1.4, label="published (ICML 2013, table 3)")
        axes.legend(loc="lower right", title=f"MAGIC, {repeats} repeats", alignment="left")
        return saved(figure, "svg", 100)


def _badge(name: str, value: str) -> str:
    """Return an SVG picture of a name and a value, side by side."""
    name_width, value_width = (round(6.5 * len(text)) for text in (name, value))
    split, width = name_width + 12, name_width + value_width + 24
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{name}: {value}">
<title>{name}: {value}</title>
<rect width="{width}" height="20" rx="3" fill="#0a7d8c"/>
<path d="M3 0H{split}V20H3A3 3 0 0 1 0 17V3A3 3 0 0 1 3 0z" fill="#444c56"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{split / 2}" y="14" textLength="{name_width}">{name}</text>
<text x="{(split + width) / 2}" y="14" textLength="{value_width}">{value}</text>
</g></svg>
"""
