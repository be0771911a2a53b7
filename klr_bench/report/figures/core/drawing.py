"""What the figures share: looks that are read without colour too, axes of counts, a panel a data set."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from klr_bench.printing import shortened
from klr_bench.report.figures.core.lines import Block, Curve, dataset_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)))
# Okabe and Ito's: told apart by the colour-blind, and of different lightness in print.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
STYLE = {
    **{"font.size": 9.0, "axes.titlesize": 10.0, "axes.spines.top": False, "axes.spines.right": False},
    **{"axes.grid": True, "grid.color": "#e4e4e4", "grid.linewidth": 0.6, "axes.axisbelow": True},
    **{"errorbar.capsize": 2.0, "svg.hashsalt": "klr-bench", "legend.frameon": False},
}
PANELS_PER_ROW = 3
NARROW, MOST_TICKS = 0.8, 5
"""An axis of counts of fewer decades has evenly spaced counts, so many at most: 1, 2 and 5 would be one or none."""
LONGEST_LABEL = 80
"""Characters."""


@dataclass(frozen=True)
class Look:
    """How an algorithm, or a curve, is drawn; the same in every panel."""

    label: str
    marker: str
    dashes: Any
    colour: str

    def handle(self, *, dashes: Any) -> Line2D:
        """Return its entry of the legend."""
        return Line2D([], [], marker=self.marker, linestyle=dashes, color=self.colour, label=plain(self.label))


@dataclass(frozen=True)
class Axis:
    """One side of a figure: a metric, or "t" or "elapsed_s" of a checkpoint; shown times `factor`."""

    metric: str
    label: str
    factor: float = 1.0
    counted: bool = False
    logarithmic: bool = False


ACCURACY = Axis("accuracy", "Test accuracy (%)", 100.0)
SUPPORT = Axis("n_support", "Support vectors", counted=True)
EXAMPLES = Axis("t", "Examples seen", counted=True)
TIME = Axis("elapsed_s", "Training time (s)", counted=True)
FIT_TIME = Axis("fit_time_s", TIME.label, counted=True)
OBJECTIVE = Axis("objective", "Objective")
EXCESS = Axis("excess_objective", "Objective / smallest objective - 1", logarithmic=True)
GAP = Axis("duality_gap", "Duality gap / objective", logarithmic=True)
PROTOTYPES = Axis("n_prototypes", "Prototypes", counted=True)
LOG_LOSS = Axis("log_loss", "Log loss on test rows")
COMPONENTS = Axis("n_components", "Features", counted=True)
KERNEL_ERROR = Axis("kernel_error", "Largest error of a kernel value")
NONZERO = Axis("nonzero_fraction", "Non-zero coefficients (%)", 100.0)


def looks_of(labels: Mapping[Curve, str]) -> dict[Curve, Look]:
    """Give each curve a marker of its own, each algorithm a colour, its variants a dash each, all in their order.

    The variants of a single algorithm have a colour each.
    """
    found: dict[Curve, Look] = {}
    algorithms = list(dict.fromkeys(algorithm for algorithm, _ in labels))
    of_one = len(algorithms) == 1
    for number, ((algorithm, variant), label) in enumerate(labels.items()):
        variants = [name for stem, name in labels if stem == algorithm]
        found[algorithm, variant] = Look(
            label,
            MARKERS[number % len(MARKERS)],
            DASHES[variants.index(variant) % len(DASHES)],
            COLOURS[(number if of_one else algorithms.index(algorithm)) % len(COLOURS)],
        )
    return found


def dashed(looks: Mapping[Curve, Look]) -> dict[Curve, Look]:
    """Give each curve a dash of its own, for those that cross."""
    return {
        curve: replace(look, dashes=DASHES[number % len(DASHES)]) for number, (curve, look) in enumerate(looks.items())
    }


def count_axis(drawn: XAxis | YAxis, axis: Axis) -> None:
    """Make an axis of counts logarithmic, with the counts written out and not more of them than fit."""
    if not axis.counted:
        return
    axes_scale = drawn.axes.set_xscale if drawn.axis_name == "x" else drawn.axes.set_yscale
    axes_scale("log")
    low, high = drawn.get_view_interval()
    decades = math.log10(high / low)
    if decades < NARROW:
        drawn.set_major_locator(MaxNLocator(MOST_TICKS, steps=[1, 2, 5, 10]))
    else:
        steps = (1.0, 2.0, 5.0) if decades < 1 else (1.0, 3.0) if decades < 2.7 else (1.0,)
        drawn.set_major_locator(LogLocator(subs=steps, numticks=6))
    drawn.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    drawn.set_minor_formatter(NullFormatter())


@dataclass(frozen=True)
class Panel:
    """One pair of axes of a figure: its title and what draws it."""

    title: str
    draw: Callable[[Axes], None]
    label: Callable[[Axes], None] | None = None
    """What writes labels beside points, when the axes have their size."""
    y: str = ""
    """The label of its own vertical axis, where the panels of a row differ in it."""


def panel_each(
    blocks: Sequence[Block], draw: Callable[..., None], label: Callable[..., None] | None = None
) -> list[Panel]:
    """Return a panel for each data set; `draw` and `label` get the axes, and the data set as `block`."""
    return [
        Panel(dataset_name(block), partial(draw, block=block), label and partial(label, block=block))
        for block in blocks
    ]


def side_by_side(panels: Sequence[Panel], handles: Sequence[Line2D], x: str, y: str) -> Drawing | None:
    """Draw panels in rows, with one legend beneath; None where there are none."""
    if not panels or not handles:
        return None
    columns = 2 if len(panels) == 4 else min(PANELS_PER_ROW, len(panels))
    rows = math.ceil(len(panels) / columns)
    width = max(5.2, 3.6 * columns)
    entry = 0.8 + 0.075 * max(len(str(handle.get_label())) for handle in handles)  # inches, of the legend
    legend_rows = math.ceil(len(handles) / max(1, int(width / entry)))
    drawing = Drawing(figsize=(width, 3.0 * rows + 0.3 + 0.18 * legend_rows), layout="constrained")
    for number, panel in enumerate(panels):
        axes = drawing.add_subplot(rows, columns, number + 1)
        panel.draw(axes)
        axes.margins(0.08)  # room for the labels of the outermost points
        axes.set_title(plain(panel.title))
        axes.set_xlabel(x)
        if panel.y or number % columns == 0:
            axes.set_ylabel(panel.y or y)
    legend_columns = math.ceil(len(handles) / legend_rows)
    drawing.legend(handles=handles, loc="outside lower center", ncols=legend_columns, handlelength=3)
    if any(panel.label for panel in panels):
        drawing.draw_without_rendering()  # gives the axes their size
    for panel, axes in zip(panels, drawing.axes, strict=True):
        if panel.label:
            panel.label(axes)
    return drawing


PUBLISHED = Line2D([], [], marker="o", linestyle="none", mfc="none", color="#666666", label="published")
"""The entry of the legend for hollow markers."""


def plain(text: str) -> str:
    """Return a text for matplotlib, of limited length, in which dollars enclose no formula."""
    return shortened(text, LONGEST_LABEL).replace("$", r"\$")


def saved(drawing: Drawing, kind: str, dpi: float) -> bytes:
    """Return the content of a file, the same for the same drawing."""
    content = io.BytesIO()
    undated = {"png": {"Software": None}, "pdf": {"CreationDate": None}}.get(kind, {"Date": None})
    drawing.savefig(content, format=kind, dpi=dpi, metadata=undated)
    return content.getvalue()
