"""Figures against the number of selected features, a curve a method: accuracy, training time, relevant features found.

As figure 1 of Tan et al. (AAAI 2016).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klr_bench.report.drawing import ACCURACY, TIME, Axis, Column, count_axis, looks_of, panels_of
from klr_bench.report.tables import Block, Line, Table
from klr_bench.variants import parse_variant, variant_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SELECTED = Axis("n_selected", "Selected features", counted=True)
DRAWN = {
    "accuracy_selected": ACCURACY,
    "time_selected": Axis("fit_time_s", TIME.label, counted=True),
    "relevant_selected": Axis("relevant_found", "Relevant features found (%)", 100.0),
}
PATH = ("n_features_to_select", "C", "l1")
"""Parameters that the points of a curve differ in; variants that differ in others are curves of their own."""


def draw_all(table: Table) -> dict[str, bytes]:
    """Draw the figures of this module that the experiment asks for and has rows for; return names and contents."""
    files: dict[str, bytes] = {}
    for name in (table.figures or ()) if any(_points(block.lines, ACCURACY) for block in table.blocks) else ():
        if name in DRAWN:
            files |= _against_selected(name, table)
    return files


def _against_selected(name: str, table: Table) -> dict[str, bytes]:
    y = DRAWN[name]
    blocks = [block for block in table.blocks if _points(block.lines, y)]
    labels = {_curve(line): _label(line) for block in blocks for line in block.lines if _points([line], y)}
    looks = looks_of(labels)

    def draw(axes: Axes, block: Block) -> None:
        for curve, look in looks.items():
            points = _points([line for line in block.lines if _curve(line) == curve], y)
            if points:
                style = {"color": look.colour, "marker": look.marker, "linestyle": look.dashes, "linewidth": 1.2}
                xs, ys, errors = zip(*points, strict=True)
                axes.errorbar(xs, ys, errors, markersize=4, elinewidth=0.7, **style)
        count_axis(axes.xaxis, SELECTED)
        count_axis(axes.yaxis, y)

    handles = [look.handle(dashes=look.dashes) for look in looks.values()]
    return panels_of(name, blocks, handles, draw, SELECTED.label, y.label)


def _curve(line: Line) -> Column:
    """Return the algorithm, and the part of its variant that is not the place on a curve."""
    rest = {name: value for name, value in parse_variant(line.variant).items() if name not in PATH}
    return line.algorithm, variant_text(rest)


def _label(line: Line) -> str:
    """Return the print name of a curve."""
    return f"{line.label.removesuffix(line.variant_label).strip()} {_curve(line)[1]}".strip()


def _points(lines: list[Line], y: Axis) -> list[tuple[float, float, float]]:
    """Return (selected features, value, its spread) of the lines that have both and a feature, in ascending order."""
    found = []
    for line in lines:
        selected, value = line.cells["n_selected"].mean, line.cells[y.metric]
        if selected and value.mean is not None:
            found.append((selected, y.factor * value.mean, y.factor * (value.std or 0.0)))
    return sorted(found)
