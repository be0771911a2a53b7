"""The labels of points in a figure: where points lie on each other one for all, and none over something else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib.transforms import Bbox

from klr_bench.instantiate import Parameters
from klr_bench.results.variants import Variant, value_text, variant_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NEAR = (0.06, 0.06)
"""Parts of the width and the height of a panel: points that are nearer than both share a label."""
SIZE = 7.0
"""Of the letters of a label, in points."""
MARKER = 3.5
"""Half of the side of a marker, in points."""
SIDES = (("left", 1), ("right", -1), ("center", 0))
RISES = (("bottom", 1), ("top", -1))
AWAY = ((5.0, 2.0), (6.0, 8.0), (6.0, 14.0), (14.0, 2.0))
"""Distances of a label from its point, across and up, in points."""
PLACES = [
    (sign * across, rise * (up if sign else up + 5.0), side, edge)
    for across, up in AWAY
    for side, sign in SIDES
    for edge, rise in RISES
]
"""Where a label may stand: offsets and alignments, the best first."""
MOST_LABELS = 12
"""Of a panel that are all written, wherever they stand."""
LONGEST = 45
"""Characters of a label of several points; a longer one names the first."""
OUTSIDE = 10.0
"""How much worse it is to stand outside of the axes than over something."""

Position = tuple[float, float]
"""Across and up."""


class Label(NamedTuple):
    """A text for a point, in the coordinates of the data."""

    x: float
    y: float
    text: str


def shared(
    points: Sequence[Position], variants: Sequence[Variant], others: Sequence[Position]
) -> list[tuple[int, str]]:
    """Return the labels of points: the number of a point, and the text for it and for those that lie near.

    `others` are all points of the panel, which say how far it reaches.
    """
    width, height = [(max(side) - min(side)) or 1.0 for side in zip(*others, strict=True)]
    groups: list[list[int]] = []
    for number, (x, y) in enumerate(points):
        for group in groups:
            at = points[group[0]]
            if abs(x - at[0]) < NEAR[0] * width and abs(y - at[1]) < NEAR[1] * height:
                group.append(number)
                break
        else:
            groups.append([number])
    return [(group[0], together([variants[number] for number in group])) for group in groups]


def write_labels(axes: Axes, labels: Sequence[Label], points: Iterable[Position], bars: Iterable[Bbox] = ()) -> None:
    """Write labels beside their points, inside the axes, where they cover no point, bar or other label if they can.

    `points` and `bars` are in the coordinates of the data.  The axes must have their final size.  Of more than
    MOST_LABELS only those are written that cover nothing.
    """
    crowded = len(labels) > MOST_LABELS
    to_pixels = axes.transData.transform
    half = MARKER * axes.figure.dpi / 72
    taken = [Bbox([at - half, at + half]) for at in map(to_pixels, points)]
    taken += [Bbox(to_pixels(bar.get_points())).padded(half / 4) for bar in bars]
    for label in labels:
        taken += _write(axes, label, taken, crowded=crowded)


def _write(axes: Axes, label: Label, taken: Sequence[Bbox], *, crowded: bool) -> list[Bbox]:
    """Write a label at its best place, and return what it covers, in pixels; nothing where it is left out."""
    at = (label.x, label.y)
    written = axes.annotate(label.text, at, (0.0, 0.0), textcoords="offset points", fontsize=SIZE)
    written.set_in_layout(False)
    found: list[tuple[float, int]] = []
    boxes = []
    for number, place in enumerate(PLACES):
        _move(written, place)
        boxes.append(written.get_window_extent())
        found.append((_covered(boxes[-1], taken, axes.bbox), number))
    covered, best = min(found)
    if crowded and covered > 0:
        written.remove()
        return []
    _move(written, PLACES[best])
    return [boxes[best]]


def _move(written: Any, place: tuple[float, float, str, str]) -> None:
    across, up, side, edge = place
    written.set(position=(across, up), ha=side, va=edge)


def _covered(box: Bbox, taken: Sequence[Bbox], inside: Any) -> float:
    """Return how bad a place is: the area that is covered twice, and more for what stands outside of the axes."""
    common = Bbox.intersection(box, inside)
    outside = box.width * box.height - (common.width * common.height if common else 0.0)
    overlaps = (Bbox.intersection(box, other) for other in taken)
    return OUTSIDE * outside + sum(overlap.width * overlap.height for overlap in overlaps if overlap)


def together(variants: Sequence[Parameters]) -> str:
    """Return the text of several variants: values side by side if they differ in one parameter alone."""
    ordered = sorted((Variant(variant) for variant in variants), key=Variant.order)
    names = list(ordered[0])
    differing = [name for name in names if len({value_text(v.get(name)) for v in ordered}) > 1]
    if len(ordered) > 1 and len(differing) == 1 and all(list(variant) == names for variant in ordered):
        (name,) = differing
        return variant_text({**ordered[0], name: ", ".join(value_text(variant[name]) for variant in ordered)})
    texts = [variant_text(variant) for variant in ordered]
    text = " | ".join(texts)
    return text if len(text) <= LONGEST else f"{texts[0]} and {len(texts) - 1} more"
