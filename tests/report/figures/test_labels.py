"""Labels of points and ticks of axes."""

import pytest
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from klr_bench.report.figures.accuracy_support import MOST_LABELS, write_labels
from klr_bench.report.figures.core.drawing import scale_axis
from klr_bench.report.figures.core.plot import SUPPORT

CROWDED = [(10.0, 90.0), (11.0, 90.5), (12.0, 88.0), (30.0, 91.0), (30.0, 80.0), (10.0, 80.0)]
BARS = [Bbox([[12.0, 86.0], [12.0, 90.0]]), Bbox([[30.0, 78.0], [30.0, 82.0]])]


def count_labels(points: list[tuple[float, float]], bars: list[Bbox], *, apart: bool = True) -> int:
    """Write a label of each point; assert that they cover nothing and are inside of the axes, and count them."""
    drawing = Figure(figsize=(5.2, 3.5), layout="constrained")
    axes = drawing.add_subplot(xscale="log")
    axes.plot(*zip(*points, strict=True), "o")
    drawing.draw_without_rendering()
    write_labels(axes, [(x, y, f"budget={100 * x:.0f}") for x, y in points], points, bars)
    taken = [Bbox([at - 2, at + 2]) for at in map(axes.transData.transform, points)]
    taken += [Bbox(axes.transData.transform(bar.get_points())) for bar in bars]
    for label in (text.get_window_extent() for text in axes.texts if apart):
        assert not any(label.overlaps(other) for other in taken)
        assert axes.bbox.x0 <= label.x0 <= label.x1 <= axes.bbox.x1
        assert axes.bbox.y0 <= label.y0 <= label.y1 <= axes.bbox.y1
        taken.append(label)
    return len(axes.texts)


def test_labels_cover_neither_each_other_nor_points_and_stay_inside() -> None:
    for bars in ([], BARS):
        assert count_labels(CROWDED, bars) == len(CROWDED)


def test_only_of_many_labels_those_without_a_place_are_left_out() -> None:
    assert count_labels([(10.0, 90.0)] * MOST_LABELS, [], apart=False) == MOST_LABELS
    points = [(10.0 + k, 90.0 - k % 3) for k in range(2 * MOST_LABELS)]
    assert 0 < count_labels(points, []) < len(points)


@pytest.mark.parametrize("values", [(140_000, 220_000), (7_000, 10_500), (2.1, 9.0), (400, 16_000), (1, 1e6)])
def test_a_logarithmic_axis_has_some_ticks_and_not_too_many(values: tuple[float, float]) -> None:
    axes = Figure(figsize=(5.2, 3.5)).add_subplot()
    axes.margins(0.08)
    axes.plot(values, values)
    scale_axis(axes.xaxis, SUPPORT)
    low, high = axes.get_xlim()
    assert 2 <= sum(low <= tick <= high for tick in axes.get_xticks()) <= 6
