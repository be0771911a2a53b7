"""Sparsity, and accuracy relative to that at gamma = 1, against gamma - 1 of the auxiliary function.

Error bars are one standard deviation over the repeats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from klr_bench.experiment.variants import Variant
from klr_bench.report.figures.core.drawing import COLOURS, Axis, Look, panel_each, side_by_side
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.lines import Block, Line, dataset_name, line_name, mean, parameter, spread
from klr_bench.report.figures.core.plot import Facet, Plot, Series, fits_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

PARAMETER = "aux_gamma"
LOOKS = (Look("Sparsity", "o", "-", COLOURS[1]), Look("Relative accuracy", "s", "--", COLOURS[2]))


class Point(NamedTuple):
    """A variant: gamma - 1, and in percent sparsity and relative accuracy, each a mean and its spread."""

    beyond: float
    values: tuple[tuple[float, float], tuple[float, float]]
    line: Line


def _draw(inputs: Inputs) -> Drawing | None:
    blocks = [block for block in inputs.table.blocks if _along(block)]
    handles = [look.handle(dashes=look.dashes) for look in LOOKS]
    return side_by_side(panel_each(blocks, _draw_panel), handles, "gamma - 1", "%")


def _plot(inputs: Inputs) -> Plot | None:
    fits, facets = fits_of(inputs), []
    for block in inputs.table.blocks:
        pair = [Series((look.label, Variant()), look, connected=True) for look in LOOKS]
        for point in _along(block):
            line = point.line
            keys = [str(row["key"]) for row in fits.get((block.dataset, line.algorithm, line.variant), [])]
            for series, (value, its_spread) in zip(pair, point.values, strict=True):
                series.add(point.beyond, value, keys, line_name(line))
                series.spread.append(its_spread)
        if pair[0].x:
            facets.append(Facet(dataset_name(block), Axis("sparsity", "%"), pair))
    return Plot(Axis(PARAMETER, "gamma - 1", logarithmic=True), facets) if facets else None


def _along(block: Block) -> list[Point]:
    """Return the variants with gamma > 1, in ascending order; accuracy relative to that at gamma = 1, or the first."""
    found = []
    for line in block.lines:
        gamma, accuracy = parameter(line, PARAMETER), mean(line, "accuracy")
        if gamma and accuracy:
            found.append((gamma, accuracy, line))
    found.sort(key=lambda one: one[:2])
    base = next((accuracy for gamma, accuracy, _ in found if gamma == 1), found[0][1] if found else 1.0)
    return [
        Point(
            gamma - 1,
            (
                (100 * (mean(line, "sparsity") or 0.0), 100 * spread(line, "sparsity")),
                (100 * accuracy / base, 100 * spread(line, "accuracy") / base),
            ),
            line,
        )
        for gamma, accuracy, line in found
        if gamma > 1
    ]


def _draw_panel(axes: Axes, block: Block) -> None:
    points = _along(block)
    for number, look in enumerate(LOOKS):
        means, spreads = zip(*(point.values[number] for point in points), strict=True)
        x = [point.beyond for point in points]
        axes.errorbar(x, means, spreads, marker=look.marker, linestyle=look.dashes, color=look.colour)
    axes.set_xscale("log")


FIGURE = Figure(needs=Needs(metrics=("accuracy", "sparsity"), parameter=PARAMETER), draw=_draw, plot=_plot)
