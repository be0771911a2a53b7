"""A figure as plain data, for a page on which readers hover, zoom and choose: panels, series, and the fits behind each.

Matplotlib's drawings and these are two forms of one figure; both take their looks from `drawing` and their numbers from
the same table and checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from klr_bench.report.figures.core.drawing import Axis, Look
from klr_bench.report.figures.core.lines import (
    Block,
    Curve,
    Line,
    dataset_name,
    drawable,
    line_name,
    mean,
    parameter,
    published,
    spread,
)

if TYPE_CHECKING:
    from klr_bench.report.figures.core.figure import Inputs

Kind = Literal["mean", "repeat", "published"]
Fits = tuple[object, object, object]
"""A data set, an algorithm and a variant."""
Row = Mapping[Hashable, Any]


@dataclass
class Series:
    """Points that look alike, in the units of their axes: of the means over repeats, of one repeat, or published."""

    curve: Curve
    look: Look
    kind: Kind = "mean"
    connected: bool = False
    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    x_spread: list[float] = field(default_factory=list)
    """Standard deviations over the repeats, as `spread`; empty where there are none."""
    spread: list[float] = field(default_factory=list)
    keys: list[Sequence[str]] = field(default_factory=list)
    """The keys of the records behind each point."""
    names: list[str] = field(default_factory=list)
    """What each point is of, in print: an algorithm and a variant."""

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
    """The facets of a figure, which share their horizontal axis; `diagonal`: with the line y = x."""

    x: Axis
    facets: list[Facet]
    diagonal: bool = False


def means(
    inputs: Inputs,
    x: Axis,
    sides: Sequence[Axis],
    curve: Callable[[Line], Curve],
    looks: Callable[[Sequence[Line]], Mapping[Curve, Look]],
    *,
    connected: bool,
) -> Plot | None:
    """Return the means of the lines of a table, each side against x, a parameter or a metric; None without points.

    `curve` says which lines are points of one series, `looks` how each series looks.  What is published for the same
    data, and the repeats where points are not connected, are series of their own.
    """
    fits = fits_of(inputs)
    lines = [line for block in inputs.table.blocks for line in block.lines if _place(line, x) is not None]
    known = looks([line for line in lines if any(mean(line, side.metric) is not None for side in sides)])
    facets = []
    for block in inputs.table.blocks:
        for side in sides:
            series = []
            for key, look in known.items():
                on_curve = [line for line in block.lines if curve(line) == key]
                on_curve.sort(key=lambda line: _place(line, x) or 0.0)
                series += _means(block, on_curve, (x, side), (key, look), fits, connected=connected)
            if series:
                facets.append(Facet(dataset_name(block), side, series))
    return Plot(x, facets) if facets else None


def fits_of(inputs: Inputs) -> dict[Fits, list[Row]]:
    """Return the records that enter the means of each data set, algorithm and variant."""
    found: dict[Fits, list[Row]] = {}
    for row in inputs.records[inputs.records["status"] == "ok"].to_dict("records"):
        found.setdefault((row["dataset"], row["algorithm"], row["variant"]), []).append(row)
    return found


def _means(
    block: Block,
    lines: Sequence[Line],
    axes: tuple[Axis, Axis],
    which: tuple[Curve, Look],
    fits: Mapping[Fits, Sequence[Row]],
    *,
    connected: bool,
) -> list[Series]:
    """Return the means of one curve, its repeats and what is published of it, as far as there are any."""
    x, y = axes
    ours, repeats, theirs = Series(*which, connected=connected), Series(*which, "repeat"), Series(*which, "published")
    for line in lines:
        across, up = _place(line, x), mean(line, y.metric)
        rows = fits.get((block.dataset, line.algorithm, line.variant), [])
        keys = [str(row["key"]) for row in rows]
        if across is not None and up is not None:
            ours.add(x.factor * across, y.factor * up, keys, line_name(line))
            ours.x_spread.append(x.factor * spread(line, x.metric))
            ours.spread.append(y.factor * spread(line, y.metric))
            for row in rows if len(rows) > 1 and not connected else ():
                place, value = _place(line, x, row), drawable(row.get(y.metric))
                if place is not None and value is not None and value == value:
                    repeats.add(x.factor * place, y.factor * value, [str(row["key"])], line_name(line))
        across = parameter(line, x.metric) if x.metric in line.variant else published(line, x.metric)
        up = published(line, y.metric)
        if across is not None and up is not None:
            theirs.add(x.factor * across, y.factor * up, keys, line_name(line))
    return [one for one in (ours, repeats, theirs) if one.x]


def _place(line: Line, x: Axis, row: Row | None = None) -> float | None:
    """Return where a line, or one of its fits, stands on the horizontal axis: by a parameter of its, or a metric."""
    if x.metric in line.variant:
        return parameter(line, x.metric)
    return mean(line, x.metric) if row is None else drawable(row.get(x.metric))
