"""The labels of points in a figure: where they would lie on each other, one for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from klr_bench.experiment.variants import Variant, value_text, variant_text

NEAR = (0.06, 0.06)
"""Parts of the width and the height of a panel: points that are nearer than both share a label."""
RIGHT = 0.8
"""Part of the width from which on a label stands to the left of its point."""

Position = tuple[float, float]
"""Across and up."""


def placed(
    points: Sequence[Position], variants: Sequence[Variant], others: Sequence[Position]
) -> list[tuple[int, str, bool]]:
    """Return the labels of points: the number of a point, a text, and whether it stands to the left.

    `others` are all points of the panel, which say how far it reaches.
    """
    (left, width), (_, height) = [(min(side), (max(side) - min(side)) or 1.0) for side in zip(*others, strict=True)]
    groups: list[list[int]] = []
    for number, (x, y) in enumerate(points):
        for group in groups:
            at = points[group[0]]
            if abs(x - at[0]) < NEAR[0] * width and abs(y - at[1]) < NEAR[1] * height:
                group.append(number)
                break
        else:
            groups.append([number])
    return [
        (group[0], together([variants[number] for number in group]), points[group[0]][0] > left + RIGHT * width)
        for group in groups
    ]


def together(variants: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of several variants: values side by side if they differ in one parameter alone."""
    ordered = sorted((Variant(variant) for variant in variants), key=Variant.order)
    names = list(ordered[0])
    differing = [name for name in names if len({value_text(v.get(name)) for v in ordered}) > 1]
    if len(ordered) > 1 and len(differing) == 1 and all(list(variant) == names for variant in ordered):
        (name,) = differing
        return variant_text({**ordered[0], name: ", ".join(value_text(variant[name]) for variant in ordered)})
    return " | ".join(map(variant_text, ordered))
