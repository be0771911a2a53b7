"""Labels of points in a figure."""

from __future__ import annotations

from typing import Any

import pytest

from klr_bench.experiment.variants import Variant
from klr_bench.report.figures.core.labels import placed, together


def test_points_that_lie_on_each_other_share_a_label() -> None:
    points = [(1.0, 90.0), (1.01, 90.1), (3.9, 50.0)]
    variants = [Variant({"gamma": value}) for value in (101, 2, 1.01)]
    assert placed(points, variants, [*points, (4.0, 40.0)]) == [
        (0, "gamma=2, 101", False),
        (2, "gamma=1.01", True),
    ]
    assert placed(points[:1], variants[:1], points[:1]) == [(0, "gamma=101", False)], "a panel of one point"


@pytest.mark.parametrize(
    ("variants", "expected"),
    [
        ([{"G": 1}], "G=1"),
        ([{"G": 10}, {"G": 2}, {"G": "cv"}], "G=2, 10, cv"),
        ([{"G": 1, "R": 2}, {"G": 1, "R": 3}], "G=1; R=2, 3"),
        ([{"G": 1, "R": 2}, {"G": 2, "R": 3}], "G=1; R=2 | G=2; R=3"),
        ([{"G": 1}, {"lam": 2}], "G=1 | lam=2"),
    ],
)
def test_several_variants_in_one_text(variants: list[dict[str, Any]], expected: str) -> None:
    assert together(variants) == expected
