"""Plots as plain data: facets, series, and the records behind each point.

Files are drawn from it by `drawing`, and on a page readers explore it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal
from zlib import crc32

from klr_bench.metrics.labels import METRICS
from klr_bench.report.labels import column_label, line_label
from klr_bench.report.table import Line
from klr_bench.results.variants import Variant, to_number

if TYPE_CHECKING:
    import pandas as pd

    from klr_bench.report.figures.core.figure import Inputs

Curve = tuple[str, Variant]
"""An algorithm and the part of its variant that is constant along a curve."""
Place = tuple[str, str, Variant]
"""A data set, an algorithm and a variant."""
Row = Mapping[Hashable, Any]
Kind = Literal["mean", "repeat", "published"]
KINDS: tuple[Kind, ...] = ("mean", "repeat", "published")

MARKERS = {
    **{"circle": "o", "square": "s", "triangle-up": "^", "diamond": "D", "triangle-down": "v", "cross": "P", "x": "X"},
    **{"triangle-left": "<", "triangle-right": ">", "pentagon": "p", "hexagon": "h", "star": "*"},
}
"""Names of markers in matplotlib, keyed by their names in YAML files and in plotly."""
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)))
COLORS = {
    **{"black": "#000000", "blue": "#0072B2", "red": "#D55E00", "green": "#009E73", "pink": "#CC79A7"},
    **{"sky": "#56B4E9", "orange": "#E69F00"},
}
"""The color-blind safe palette of Okabe and Ito; its colors also differ in lightness."""
LIGHTEST = 0.5
"""Share of white in the color of the last variant of an algorithm, and of black in that of the first of many."""
MOST_CURVES, SHOWN = 12, 6
"""A panel with more than MOST_CURVES curves is divided into panels that show up to SHOWN of them in color."""
SMALLEST, LARGEST = 1e-30, 1e30
"""Limits of plotted absolute values; matplotlib overflows well below 1e308."""


@dataclass(frozen=True)
class Axis:
    """Horizontal or vertical axis of a plot.

    It shows a metric, a parameter, "t" or "elapsed_s", and values are multiplied by `factor`.  With `from_zero` it
    starts at 0.
    """

    metric: str
    label: str
    factor: float = 1.0
    logarithmic: bool = False
    from_zero: bool = False

    @property
    def is_share(self) -> bool:
        """True if the values are shares in percent, which an axis shows from 0 to 100 at most."""
        metric = METRICS.get(self.metric)
        is_bounded = metric is not None and (metric.low, metric.high) == (0, 1)
        return self.factor == 100.0 and not self.logarithmic and is_bounded

    def scaled(self, value: float | None) -> float | None:
        """Return a value in the unit of the axis, or None if it cannot be displayed."""
        return None if value is None or (self.logarithmic and value <= 0) else self.factor * value


ACCURACY = Axis("accuracy", "Test accuracy (%)", 100.0)
SUPPORT = Axis("n_support", "Support vectors", logarithmic=True)
EXAMPLES = Axis("t", "Examples seen", logarithmic=True)


@dataclass(frozen=True)
class Look:
    """Appearance of a curve, the same in every facet; `marker` is a key of MARKERS."""

    label: str
    marker: str
    dashes: Any
    color: str


def looks_of(lines: Iterable[Line], curve: Callable[[Line], Curve], *, dashed: bool = False) -> dict[Curve, Look]:
    """Assign an appearance to each curve.

    An algorithm has a color and marker, each of its variants a tint, and each curve of one color its own dash.  An
    algorithm whose YAML file has no look gets an unused one that depends on its name.  With `dashed` each curve has
    its own dash.
    """
    first: dict[Curve, Line] = {}
    for line in lines:
        first.setdefault(curve(line), line)
    variants = {name: [key for key in first if key[0] == name] for name, _ in first}
    pairs: dict[str, tuple[str, str]] = {
        key[0]: (look.color, look.marker) for key, line in first.items() if (look := line.presentation.look)
    }
    for name in variants:
        free = sorted({*product(COLORS, MARKERS)} - {*pairs.values()}) or [*product(COLORS, MARKERS)]
        pairs.setdefault(name, free[crc32(name.encode()) % len(free)])
    looks: dict[Curve, Look] = {}
    n_drawn = Counter[str]()
    for number, (key, line) in enumerate(first.items()):
        (color, marker), others = pairs[key[0]], variants[key[0]]
        place = others.index(key)
        dash = DASHES[(number if dashed else n_drawn[color]) % len(DASHES)]
        n_drawn[color] += 1
        first_tint = -LIGHTEST if len(others) > 2 and color != "black" else 0.0
        tint = first_tint + (LIGHTEST - first_tint) * place / max(1, len(others) - 1)
        looks[key] = Look(column_label(line.presentation, key[1]), marker, dash, tinted(COLORS[color], tint))
    return looks


def tinted(color: str, tint: float) -> str:
    """Return a color mixed with a share `tint` of white or, if negative, of black."""
    parts = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    end = 255 if tint > 0 else 0
    return "#" + "".join(f"{round(part + abs(tint) * (end - part)):02X}" for part in parts)


@dataclass
class Series:
    """Points with the same appearance: means, individual repeats, or published values."""

    curve: Curve
    look: Look
    kind: Kind = "mean"
    connected: bool = False
    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    x_spread: list[float] = field(default_factory=list)
    """Standard deviations of x over the repeats; like `spread` (for y), it may be empty."""
    spread: list[float] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)
    """Marker areas in square points, used in files; empty if all are equal."""
    keys: list[Sequence[str]] = field(default_factory=list)
    """Keys of the records behind each point."""
    names: list[str] = field(default_factory=list)
    """Display name of the method of each point."""

    def add(
        self, x: float | None, y: float | None, keys: Sequence[str], name: str, spread: float | None = None
    ) -> bool:
        """Append a point, unless a coordinate is missing. Return True if it was appended."""
        if x is None or y is None:
            return False
        self.x.append(x)
        self.y.append(y)
        self.keys.append(keys)
        self.names.append(name)
        self.spread += [] if spread is None else [spread]
        return True


def connected(
    curve: Curve, look: Look, x: Iterable[float], y: Iterable[float], keys: Sequence[str] = (), name: str = ""
) -> Series:
    """Return a series of points connected by a line; all points come from the same records."""
    series = Series(curve, look, connected=True)
    for across, up in zip(x, y, strict=True):
        series.add(across, up, keys, name or look.label)
    return series


@dataclass(frozen=True)
class Facet:
    """One panel of a plot, with its own pair of axes."""

    title: str
    y: Axis
    series: list[Series]


@dataclass(frozen=True)
class Plot:
    """Plot with one or more facets that share the horizontal axis.

    Parameters
    ----------
    diagonal : draw the line y = x
    band : draw the spread of a curve as a band instead of error bars
    """

    x: Axis
    facets: list[Facet]
    diagonal: bool = False
    band: bool = False

    @property
    def is_flat(self) -> bool:
        """True if no facet has two different values to compare."""
        return all(len({value for curve in facet.series for value in curve.y}) < 2 for facet in self.facets)


OTHERS = Look("other methods", "circle", "-", "#CCCCCC")


def in_parts(plot: Plot) -> Plot:
    """Return a plot in which no panel has many curves in color: each repeats the others in gray."""
    looks = list(dict.fromkeys(series.look for facet in plot.facets for series in facet.series))
    if len(looks) <= MOST_CURVES:
        return plot
    facets = []
    for facet, first in product(plot.facets, range(0, len(looks), SHOWN)):
        shown = [series for series in facet.series if series.look in looks[first : first + SHOWN]]
        gray = [
            replace(series, look=OTHERS, x_spread=[0.0] * len(series.x), spread=[0.0] * len(series.x))
            for series in facet.series
            if series.kind == "mean" and series not in shown
        ]
        facets.append(replace(facet, series=[*gray, *shown]))
    return replace(plot, facets=facets)


def drawable(value: float | None) -> float | None:
    """Return the value, or None if it cannot be drawn."""
    return value if value == 0 or (value is not None and SMALLEST <= abs(value) <= LARGEST) else None


def mean(line: Line, metric: str) -> float | None:
    """Return the mean over the repeats, or None if it cannot be drawn."""
    entry = line.entries.get(metric)
    return None if entry is None else drawable(entry.mean)


def _is_comparable(line: Line, *metrics: str) -> bool:
    """Return False for times of another or a busy machine, which are not drawn."""
    return all(metric not in line.entries or line.entries[metric].alike for metric in metrics)


def spread(line: Line, metric: str) -> float:
    """Return the standard deviation over the repeats, or 0 if unknown."""
    entry = line.entries.get(metric)
    return (entry and drawable(entry.std)) or 0.0


def published(line: Line, metric: str) -> float | None:
    """Return the mean published for the same data, or None."""
    match = line.matches.get(metric)
    return drawable(match.printed.value) if match and match.is_comparable else None


def curve_of(line: Line, *along: str) -> Curve:
    """Return the key of the curve of a method.

    `along` lists the parameters that vary along the curve.
    """
    return line.algorithm, line.variant.without(*along)


def curves_of(inputs: Inputs) -> Callable[[Line], Curve]:
    """Return a function that maps a method to its curve.

    Variants share a curve if they differ only in the first parameter of which all values are numbers.
    """
    values: dict[str, dict[str, list[Any]]] = {}
    for line in (line for block in inputs.table.blocks for line in block.lines):
        for name, value in line.variant.items():
            values.setdefault(line.algorithm, {}).setdefault(name, []).append(value)
    numeric = {
        algorithm: [name for name in lists if None not in map(to_number, lists[name])][:1]
        for algorithm, lists in values.items()
    }
    return lambda line: curve_of(line, *numeric.get(line.algorithm, ()))


def fits_of(inputs: Inputs) -> dict[Place, list[Row]]:
    """Return the records behind each mean, keyed by data set, algorithm and variant."""
    fits: dict[Place, list[Row]] = {}
    for row in inputs.records[inputs.records["status"] == "ok"].to_dict("records"):
        fits.setdefault((row["dataset"], row["algorithm"], row["variant"]), []).append(row)
    return fits


def wide_traces(traces: pd.DataFrame, metrics: Iterable[str]) -> pd.DataFrame:
    """Return a data frame with one row per checkpoint and one column per metric.

    The columns are key, t, elapsed_s and the metrics, NaN if missing.
    """
    traces = traces[traces["value"].map(drawable).notna()]
    wide = traces.pivot_table(index=["key", "t", "elapsed_s"], columns="metric", values="value").reset_index()
    return wide.reindex(columns=list(dict.fromkeys(["key", "t", "elapsed_s", *metrics])))


def means(
    inputs: Inputs,
    x: Axis,
    sides: Sequence[Axis],
    curve: Callable[[Line], Curve],
    *,
    repeats: bool = False,
    dashed: bool = False,
) -> Plot | None:
    """Plot the mean metrics of the methods in a table against a parameter or metric `x`.

    Returns None if there are no points.

    `x` is a parameter or a metric, and `curve` groups methods into series.  Published values, and the repeats if they
    are requested, are series of their own.
    """
    fits, blocks = fits_of(inputs), inputs.table.blocks
    drawn = [
        line
        for block in blocks
        for line in block.lines
        if _x_of(line, x) is not None and any(mean(line, side.metric) is not None for side in sides)
    ]
    looks = looks_of(drawn, curve, dashed=dashed)
    facets = []
    for block, side in product(blocks, sides):
        series = {(key, kind): Series(key, look, kind, kind == "mean") for key, look in looks.items() for kind in KINDS}
        lines = [line for line in block.lines if curve(line) in looks]
        for line in sorted(lines, key=lambda line: line.variant.order):
            ours, single, paper = (series[curve(line), kind] for kind in KINDS)
            rows, name = fits.get((block.dataset, *line.column), []), line_label(line)
            keys, away = [str(row["key"]) for row in rows], side.factor * spread(line, side.metric)
            at = x.scaled(_x_of(line, x)) if _is_comparable(line, x.metric, side.metric) else None
            if ours.add(at, side.scaled(mean(line, side.metric)), keys, name, away):
                ours.x_spread.append(x.factor * spread(line, x.metric))
                for row in rows if repeats and len(rows) > 1 else ():
                    up = side.scaled(drawable(row.get(side.metric)))
                    single.add(x.scaled(_x_of(line, x, row)), up, [str(row["key"])], name)
            across = _x_of(line, x) if x.metric in line.variant else published(line, x.metric)
            paper.add(x.scaled(across), side.scaled(published(line, side.metric)), keys, name)
        filled = [averaged for averaged in series.values() if averaged.x]
        if filled:
            facets.append(Facet(block.label, side, filled))
    return Plot(x, facets) if facets else None


def _x_of(line: Line, x: Axis, row: Row | None = None) -> float | None:
    """Return the coordinate of a method, or of one of its fits, on the horizontal axis."""
    if x.metric in line.variant:
        return drawable(to_number(line.variant.get(x.metric)))
    return mean(line, x.metric) if row is None else drawable(row.get(x.metric))
