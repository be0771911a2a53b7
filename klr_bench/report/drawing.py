"""What the figures share: looks that are read without colour too, axes of counts, a panel a data set."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import matplotlib.style
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from klr_bench.experiment.variants import Variant
from klr_bench.report.tables import Block

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)))
# Okabe and Ito's: told apart by the colour-blind, and of different lightness in print.
FAMILIAR = ("nc", "margin", "auxiliary", "pegasos", "oskl", "perceptron", "ogd")
"""Algorithms that have the same colour in every figure."""
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
STYLE = {
    **{"font.size": 9.0, "axes.titlesize": 10.0, "axes.spines.top": False, "axes.spines.right": False},
    **{"axes.grid": True, "grid.color": "#e4e4e4", "grid.linewidth": 0.6, "axes.axisbelow": True},
    **{"errorbar.capsize": 2.0, "svg.hashsalt": "klr-bench", "savefig.dpi": 160.0, "legend.frameon": False},
}
PANELS_PER_ROW = 3

Draw = Callable[["Axes", Block], None]
Column = tuple[str, Variant]


@dataclass(frozen=True)
class Look:
    """How an algorithm, or a curve, is drawn; the same in every panel."""

    label: str
    marker: str
    dashes: Any
    colour: str

    def handle(self, *, dashes: Any) -> Line2D:
        """Return its entry of the legend."""
        return Line2D([], [], marker=self.marker, linestyle=dashes, color=self.colour, label=self.label)


@dataclass(frozen=True)
class Axis:
    """One side of a figure of traces: a metric of traces.csv, or "t" or "elapsed_s"; shown times `factor`."""

    metric: str
    label: str
    factor: float = 1.0
    counted: bool = False
    logarithmic: bool = False


ACCURACY = Axis("accuracy", "Test accuracy (%)", 100.0)
SUPPORT = Axis("n_support", "Support vectors", counted=True)
EXAMPLES = Axis("t", "Examples seen", counted=True)
TIME = Axis("elapsed_s", "Training time (s)", counted=True)
OBJECTIVE = Axis("objective", "Objective")
GAP = Axis("duality_gap", "Duality gap / objective", logarithmic=True)
PROTOTYPES = Axis("n_prototypes", "Prototypes", counted=True)
LOG_LOSS = Axis("log_loss", "Log loss on test rows")
NONZERO = Axis("nonzero_fraction", "Non-zero coefficients (%)", 100.0)


def looks_of(labels: dict[Column, str]) -> dict[Column, Look]:
    """Give each column a marker of its own, each algorithm a colour, its variants a dash each.

    The variants of a single algorithm have a colour each.
    """
    found: dict[Column, Look] = {}
    algorithms = list(dict.fromkeys(algorithm for algorithm, _ in labels))
    of_one = len(algorithms) == 1
    others = [algorithm for algorithm in algorithms if algorithm not in FAMILIAR]
    free = [colour for name, colour in zip(FAMILIAR, COLOURS, strict=True) if name not in algorithms] or COLOURS
    colours = {name: free[place % len(free)] for place, name in enumerate(others)}
    colours |= {name: COLOURS[FAMILIAR.index(name)] for name in algorithms if name in FAMILIAR}
    for number, ((algorithm, variant), label) in enumerate(labels.items()):
        variants = [name for stem, name in labels if stem == algorithm]
        found[algorithm, variant] = Look(
            label,
            MARKERS[number % len(MARKERS)],
            DASHES[variants.index(variant) % len(DASHES)],
            COLOURS[number % len(COLOURS)] if of_one else colours[algorithm],
        )
    return found


def dashed(looks: dict[Column, Look]) -> dict[Column, Look]:
    """Give each curve a dash of its own, for those that cross."""
    return {
        column: replace(look, dashes=DASHES[number % len(DASHES)])
        for number, (column, look) in enumerate(looks.items())
    }


def count_axis(drawn: XAxis | YAxis, axis: Axis) -> None:
    """Make an axis of counts logarithmic, with the counts written out and not more of them than fit."""
    if not axis.counted:
        return
    axes_scale = drawn.axes.set_xscale if drawn.axis_name == "x" else drawn.axes.set_yscale
    axes_scale("log")
    low, high = drawn.get_view_interval()
    decades = math.log10(high / low)
    steps = (1.0, 2.0, 5.0) if decades < 1 else (1.0, 3.0) if decades < 2.7 else (1.0,)
    drawn.set_major_locator(LogLocator(subs=steps, numticks=6))
    drawn.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    drawn.set_minor_formatter(NullFormatter())


def panels_of(name: str, blocks: list[Block], handles: list[Line2D], draw: Draw, x: str, y: str) -> dict[str, bytes]:
    """Draw a panel a data set with one legend beneath; return the PNG and the SVG."""
    if not blocks:
        return {}
    columns = 2 if len(blocks) == 4 else min(PANELS_PER_ROW, len(blocks))
    rows = math.ceil(len(blocks) / columns)
    with matplotlib.style.context(["default", STYLE]):
        width = max(5.2, 3.6 * columns)
        entry = 0.8 + 0.075 * max(len(str(handle.get_label())) for handle in handles)  # inches, of the legend
        legend_rows = math.ceil(len(handles) / max(1, int(width / entry)))
        drawn = Figure(figsize=(width, 3.0 * rows + 0.3 + 0.18 * legend_rows), layout="constrained")
        for number, block in enumerate(blocks):
            axes = drawn.add_subplot(rows, columns, number + 1)
            draw(axes, block)
            axes.margins(0.08)  # room for the labels of the outermost points
            axes.set_title(block.label)
            axes.set_xlabel(x)
            if number % columns == 0:
                axes.set_ylabel(y)
        legend_columns = math.ceil(len(handles) / legend_rows)
        drawn.legend(handles=handles, loc="outside lower center", ncols=legend_columns, handlelength=3)
        return {f"{name}.{kind}": saved(drawn, kind) for kind in ("png", "svg")}


def saved(figure: Figure, kind: str) -> bytes:
    content = io.BytesIO()
    undated = {"Software": None} if kind == "png" else {"Date": None}
    figure.savefig(content, format=kind, metadata=undated)
    return content.getvalue()
