"""Draw the compared numbers of a paper, measured against published, one look per verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib.style
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

from klr_bench.metrics.labels import METRICS
from klr_bench.report.figures.core.drawing import LIGHT_GREY, STYLE, legend_columns, marker_style, plain, saved
from klr_bench.report.figures.core.plot import COLORS, Look
from klr_bench.report.labels import title_of
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.report.papers.verdicts import Verdict

NAME = "published_measured"
TITLE = "Each compared number of the paper: measured against published, equal on the diagonal"
LOOKS = {
    Verdict.EXACT: Look(Verdict.EXACT.value, "circle", "-", COLORS["green"]),
    Verdict.STATISTICAL: Look(Verdict.STATISTICAL.value, "square", "-", COLORS["blue"]),
    Verdict.EXPLAINED: Look(Verdict.EXPLAINED.value, "triangle-up", "-", COLORS["orange"]),
    Verdict.UNEXPLAINED: Look(Verdict.UNEXPLAINED.value, "x", "-", COLORS["red"]),
}
PER_ROW, SIDE = 2, 2.35
"""Number of panels per row, and width and height of a panel in inches."""
DPI = 200.0


def paper_picture(reproduction: Reproduction, also: Sequence[str] = ()) -> dict[str, bytes]:
    """Return the files of the picture of a paper; without compared numbers, an empty dict.

    A panel shows one metric, and one shows the properties of data sets.  `also` has formats besides png and svg.
    """
    panels: dict[str, list[Match]] = {}
    for match in reproduction.matches:
        if match.verdict in LOOKS:
            metric = METRICS.get(match.printed.metric)
            title = title_of(metric) if metric and match.printed.algorithm else "Properties of the data"
            panels.setdefault(title, []).append(match)
    if not panels:
        return {}
    with matplotlib.style.context(["default", STYLE]):
        drawing = _draw(panels)
        return {f"{NAME}.{kind}": saved(drawing, kind, DPI) for kind in dict.fromkeys(["png", "svg", *also])}


def _draw(panels: dict[str, list[Match]]) -> Drawing:
    n_columns = min(PER_ROW, len(panels))
    n_rows = math.ceil(len(panels) / n_columns)
    found = {match.verdict for matches in panels.values() for match in matches}
    looks = [look for verdict, look in LOOKS.items() if verdict in found]
    width = max(3.4, SIDE * n_columns)
    n_across = legend_columns([look.label for look in looks], width)
    height = SIDE * n_rows + 0.4 + 0.16 * math.ceil(len(looks) / n_across)
    drawing = Drawing(figsize=(width, height), layout="constrained")
    for number, (title, matches) in enumerate(panels.items()):
        axes = drawing.add_subplot(n_rows, n_columns, number + 1, title=plain(title))
        factor = 100.0 if title.endswith("%)") else 1.0
        for verdict, look in LOOKS.items():
            points = [
                (factor * match.printed.value, factor * match.mean)
                for match in matches
                if match.verdict is verdict and match.mean is not None
            ]
            if points:
                axes.plot(*zip(*points, strict=True), **marker_style(look, connected=False), alpha=0.8)
        if factor == 1.0:
            axes.set(xscale="log", yscale="log")
            axes.minorticks_off()
        ends = [*axes.get_xlim(), *axes.get_ylim()]
        ends = [min(ends), max(ends)]
        axes.plot(ends, ends, color=LIGHT_GREY, linewidth=0.6, zorder=0)
        axes.set(xlim=ends, ylim=ends, box_aspect=1)
        if number % n_columns == 0:
            axes.set_ylabel("measured")
        if number >= len(panels) - n_columns:
            axes.set_xlabel("published")
    handles = [Line2D([], [], label=look.label, **marker_style(look, connected=False)) for look in looks]
    drawing.legend(handles=handles, loc="outside lower center", ncols=n_across)
    return drawing
