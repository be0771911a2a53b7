"""Labels of points in a figure."""

from __future__ import annotations

from typing import Any

import pytest
from klr_bench.report.figures.core.labels import MOST_LABELS, Label, shared, together, write_labels
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from klr_bench.report.figures.core.drawing import scale_axis
from klr_bench.report.figures.core.plot import SUPPORT
from klr_bench.results.variants import Variant


def test_points_that_lie_on_each_other_share_a_label() -> None:
    points = [(1.0, 90.0), (1.01, 90.1), (3.9, 50.0)]
    variants = [Variant({"gamma": value}) for value in (101, 2, 1.01)]
    assert shared(points, variants, [*points, (4.0, 40.0)]) == [(0, "gamma=2, 101"), (2, "gamma=1.01")]
    assert shared(points[:1], variants[:1], points[:1]) == [(0, "gamma=101")], "a panel of one point"


CROWDED = [(10.0, 90.0), (11.0, 90.5), (12.0, 88.0), (30.0, 91.0), (30.0, 80.0), (10.0, 80.0)]


def written(points: list[tuple[float, float]], bars: list[Bbox]) -> tuple[list[Bbox], list[Bbox], Bbox]:
    """Write a label of each point; return what the labels, the points and the axes cover in pixels."""
    drawing = Figure(figsize=(5.2, 3.5), layout="constrained")
    axes = drawing.add_subplot(xscale="log")
    axes.plot(*zip(*points, strict=True), "o")
    drawing.draw_without_rendering()
    write_labels(axes, [Label(x, y, f"budget={100 * x:.0f}") for x, y in points], points, bars)
    markers = [Bbox([at - 2, at + 2]) for at in map(axes.transData.transform, points)]
    markers += [Bbox(axes.transData.transform(bar.get_points())) for bar in bars]
    return [text.get_window_extent() for text in axes.texts], markers, Bbox(axes.bbox.get_points())


@pytest.mark.parametrize("bars", [[], [Bbox([[12.0, 86.0], [12.0, 90.0]]), Bbox([[30.0, 78.0], [30.0, 82.0]])]])
def test_labels_cover_neither_each_other_nor_points_and_stay_inside(bars: list[Bbox]) -> None:
    labels, markers, inside = written(CROWDED, bars)
    assert len(labels) == len(CROWDED)
    for number, label in enumerate(labels):
        assert not any(label.overlaps(other) for other in [*labels[:number], *markers])
        assert inside.x0 <= label.x0 <= label.x1 <= inside.x1
        assert inside.y0 <= label.y0 <= label.y1 <= inside.y1


def test_where_there_is_no_place_a_label_is_written_all_the_same() -> None:
    labels, _, _ = written([(10.0, 90.0)] * MOST_LABELS, [])
    assert len(labels) == MOST_LABELS


def test_of_very_many_labels_those_are_written_that_cover_nothing() -> None:
    points = [(10.0 + k, 90.0 - k % 3) for k in range(2 * MOST_LABELS)]
    labels, markers, inside = written(points, [])
    assert 0 < len(labels) < len(points)
    for number, label in enumerate(labels):
        assert not any(label.overlaps(other) for other in [*labels[:number], *markers])
        assert inside.x0 <= label.x0 <= label.x1 <= inside.x1


@pytest.mark.parametrize("values", [(140_000, 220_000), (7_000, 10_500), (2.1, 9.0), (400, 16_000), (1, 1e6)])
def test_an_axis_of_counts_has_some_ticks_and_not_too_many(values: tuple[float, float]) -> None:
    axes = Figure(figsize=(5.2, 3.5)).add_subplot()
    axes.plot(values, values)
    scale_axis(axes.xaxis, SUPPORT)
    axes.margins(0.08)
    low, high = axes.get_xlim()
    assert 2 <= sum(low <= tick <= high for tick in axes.get_xticks()) <= 6


@pytest.mark.parametrize(
    ("variants", "expected"),
    [
        ([{"G": 10}, {"G": 2}, {"G": "cv"}], "G=2, 10, cv"),
        ([{"G": 1, "R": 2}, {"G": 1, "R": 3}], "G=1; R=2, 3"),
        ([{"G": 1, "R": 2}, {"G": 2, "R": 3}], "G=1; R=2 | G=2; R=3"),
        ([{"G": 1}, {"lam": 2}], "G=1 | lam=2"),
        ([{"lam": lam, "project": on} for lam in (0.1, 0.2) for on in (1, 0)], "lam=0.1; project=0 and 3 more"),
    ],
)
def test_several_variants_in_one_text(variants: list[dict[str, Any]], expected: str) -> None:
    assert together(variants) == expected
