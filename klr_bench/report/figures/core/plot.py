"""A figure as plain data: panels, series, and the fits behind each point.

Files are drawn from it by `drawing`, and pages let readers hover, zoom and choose in it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from klr_bench.report.labels import line_label
from klr_bench.report.table import Block, Line
from klr_bench.results.variants import Variant, as_number

if TYPE_CHECKING:
    from klr_bench.report.figures.core.figure import Inputs

Curve = tuple[str, Variant]
"""An algorithm, and the part of its variant that is the same all along a curve."""
Method = tuple[object, object, object]
"""A data set, an algorithm and a variant."""
Row = Mapping[Hashable, Any]

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)))
# Okabe and Ito's: told apart by the colour-blind, and of different lightness in print.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
SMALLEST, LARGEST = 1e-30, 1e30
"""Sizes of numbers that are drawn."""


@dataclass(frozen=True)
class Axis:
    """One side of a figure: a metric, or "t" or "elapsed_s" of a checkpoint; shown times `factor`.

    An axis of counts is logarithmic too, with the counts written out.
    """

    metric: str
    label: str
    factor: float = 1.0
    counted: bool = False
    logarithmic: bool = False

    def has_place_for(self, value: float) -> bool:
        """Return False for a value that a logarithmic axis cannot show."""
        return value > 0 or not (self.counted or self.logarithmic)


ACCURACY = Axis("accuracy", "Test accuracy (%)", 100.0)
SUPPORT = Axis("n_support", "Support vectors", counted=True)
EXAMPLES = Axis("t", "Examples seen", counted=True)
TIME = Axis("elapsed_s", "Training time (s)", counted=True)
FIT_TIME = Axis("fit_time_s", TIME.label, counted=True)
NONZERO = Axis("nonzero_fraction", "Non-zero coefficients (%)", 100.0)
LOG_LOSS = Axis("log_loss", "Log loss on test rows")


@dataclass(frozen=True)
class Look:
    """How an algorithm, or a curve, is drawn; the same in every panel, and told apart without colour too."""

    label: str
    marker: str
    dashes: Any
    colour: str


def looks_of(labels: Mapping[Curve, str], *, dashed: bool = False) -> dict[Curve, Look]:
    """Give each curve a marker, each algorithm a colour, and its variants a dash each.

    The variants of a single algorithm have a colour each.  `dashed` gives each curve its own dash.
    """
    looks: dict[Curve, Look] = {}
    algorithms = list(dict.fromkeys(algorithm for algorithm, _ in labels))
    for number, ((algorithm, variant), label) in enumerate(labels.items()):
        variants = [one for other, one in labels if other == algorithm]
        dash = number if dashed else variants.index(variant)
        colour = number if len(algorithms) == 1 else algorithms.index(algorithm)
        looks[algorithm, variant] = Look(
            label,
            MARKERS[number % len(MARKERS)],
            DASHES[dash % len(DASHES)],
            COLOURS[colour % len(COLOURS)],
        )
    return looks


@dataclass
class Series:
    """Points that look alike, in the units of their axes: means over repeats, one repeat, or published values."""

    curve: Curve
    look: Look
    kind: Literal["mean", "repeat", "published"] = "mean"
    connected: bool = False
    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    x_spread: list[float] = field(default_factory=list)
    """Standard deviations over the repeats, as `spread`; may be empty."""
    spread: list[float] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)
    """Areas of the markers in files, in square points; empty if all have the same."""
    keys: list[Sequence[str]] = field(default_factory=list)
    """The keys of the records behind each point."""
    names: list[str] = field(default_factory=list)
    """The method of each point, in print."""

    def add(self, x: float, y: float, keys: Sequence[str], name: str) -> None:
        """Append a point."""
        self.x.append(x)
        self.y.append(y)
        self.keys.append(keys)
        self.names.append(name)


@dataclass(frozen=True)
class Facet:
    """One pair of axes."""

    title: str
    y: Axis
    series: list[Series]


@dataclass(frozen=True)
class Plot:
    """The facets of a figure, which share their horizontal axis.

    Parameters
    ----------
    diagonal : draw the line y = x
    band : draw the spread of a curve as a band instead of error bars
    """

    x: Axis
    facets: list[Facet]
    diagonal: bool = False
    band: bool = False


def drawable(value: float | None) -> float | None:
    """Return a number that has a place on an axis, or None: matplotlib overflows long before 1e308."""
    return value if value == 0 or (value is not None and SMALLEST <= abs(value) <= LARGEST) else None


def mean(line: Line, metric: str) -> float | None:
    """Return the mean over the repeats, or None."""
    entry = line.entries.get(metric)
    return None if entry is None else drawable(entry.mean)


def spread(line: Line, metric: str) -> float:
    """Return the standard deviation over the repeats, or 0."""
    entry = line.entries.get(metric)
    return (entry and drawable(entry.std)) or 0.0


def published(line: Line, metric: str) -> float | None:
    """Return the mean that a paper printed for the same data, or None."""
    match = line.matches.get(metric)
    return drawable(match.printed.value) if match and not match.stand_in else None


def curve_of(line: Line, *along: str) -> Curve:
    """Return the curve of a line of the table; `along` are the parameters whose values are its points."""
    return line.algorithm, line.variant.without(*along)


def algorithm_of(line: Line) -> Curve:
    """Return the curve that all variants of an algorithm are points of."""
    return curve_of(line, *line.variant)


def means(
    inputs: Inputs,
    x: Axis,
    sides: Sequence[Axis],
    curve: Callable[[Line], Curve],
    label: Callable[[Line], str],
    *,
    connected: bool = True,
    dashed: bool = False,
) -> Plot | None:
    """Return the means of the lines of a table, each of the `sides` against x; None without points.

    `x` is a parameter or a metric; `curve` groups lines into series, and `label` names a series.  Published values, and
    the repeats if points are not connected, are series of their own.
    """
    fits = fits_of(inputs)
    labels = {
        curve(line): label(line)
        for block in inputs.table.blocks
        for line in block.lines
        if _x_of(line, x) is not None and any(mean(line, side.metric) is not None for side in sides)
    }
    facets = []
    for block in inputs.table.blocks:
        for side in sides:
            series = []
            for key, look in looks_of(labels, dashed=dashed).items():
                on_curve = [line for line in block.lines if curve(line) == key]
                on_curve.sort(key=lambda line: _x_of(line, x) or 0.0)
                series += _series(block, on_curve, (x, side), fits, partial(Series, key, look, connected=connected))
            if series:
                facets.append(Facet(block.label, side, series))
    return Plot(x, facets) if facets else None


def fits_of(inputs: Inputs) -> dict[Method, list[Row]]:
    """Return the records that enter the means of each data set, algorithm and variant."""
    fits: dict[Method, list[Row]] = {}
    for row in inputs.records[inputs.records["status"] == "ok"].to_dict("records"):
        fits.setdefault((row["dataset"], row["algorithm"], row["variant"]), []).append(row)
    return fits


def _series(
    block: Block,
    lines: Sequence[Line],
    axes: tuple[Axis, Axis],
    fits: Mapping[Method, Sequence[Row]],
    new: Callable[..., Series],
) -> list[Series]:
    """Return the means of one curve, its repeats and its published values, as far as there are any."""
    x, y = axes
    ours, repeats, paper = (new(kind=kind) for kind in ("mean", "repeat", "published"))

    def add(series: Series, across: float | None, up: float | None, keys: Sequence[str]) -> bool:
        if across is None or up is None or not (x.has_place_for(across) and y.has_place_for(up)):
            return False
        series.add(x.factor * across, y.factor * up, keys, line_label(line))
        return True

    for line in lines:
        rows = fits.get((block.dataset, line.algorithm, line.variant), [])
        keys = [str(row["key"]) for row in rows]
        if add(ours, _x_of(line, x), mean(line, y.metric), keys):
            ours.x_spread.append(x.factor * spread(line, x.metric))
            ours.spread.append(y.factor * spread(line, y.metric))
            for row in rows if len(rows) > 1 and not ours.connected else ():
                add(repeats, _x_of(line, x, row), drawable(row.get(y.metric)), [str(row["key"])])
        across = _x_of(line, x) if x.metric in line.variant else published(line, x.metric)
        add(paper, across, published(line, y.metric), keys)
    return [one for one in (ours, repeats, paper) if one.x]


def _x_of(line: Line, x: Axis, row: Row | None = None) -> float | None:
    """Return where a line, or one of its fits, stands on the horizontal axis: by a parameter of its, or a metric."""
    if x.metric in line.variant:
        return drawable(as_number(line.variant.get(x.metric)))
    return mean(line, x.metric) if row is None else drawable(row.get(x.metric))
