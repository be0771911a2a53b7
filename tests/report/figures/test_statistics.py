"""The figures over data sets and the performance profiles show what the statistics say."""

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
import pytest

from klr_bench.report.figures import draw_all, find
from klr_bench.report.figures.core.drawing import STYLE
from klr_bench.report.figures.performance_profile import profiles_of
from klr_bench.report.figures.score_boxes import scores_of
from klr_bench.report.pairwise import over_data_sets
from klr_bench.results.record import CellFile
from tests.report.figures import made


def ranked(folder: Path, scores: Any, **config: Any) -> Any:
    """Return inputs with these accuracies (n_data_sets, n_methods)."""
    cells = [
        made.cell("nc", {"G": method}, dataset=f"set{number}", metrics={"accuracy": float(score)})
        for number, row in enumerate(scores)
        for method, score in enumerate(row)
    ]
    return made.inputs(folder, *cells, **config)


def ordered(n_data_sets: int, n_methods: int) -> Any:
    """Return accuracies by which each method is better than the one before it, on all data sets."""
    return 0.5 + np.outer(1 + 0.1 * np.arange(n_data_sets), 0.01 * np.arange(n_methods))


def bars(axes: Any) -> list[Any]:
    return [line for line in axes.lines if len(line.get_xdata()) > 1]


def test_the_diagram_has_a_place_for_each_method_and_a_bar_for_each_group(tmp_path: Path) -> None:
    ranks, groups = find("critical_difference").draw(ranked(tmp_path / "apart", ordered(7, 3))).axes
    assert [text.get_text() for text in ranks.get_yticklabels()] == ["nc G=2", "nc G=1", "nc G=0"]
    assert [line.get_xydata().tolist() for line in ranks.lines] == [[[1.0, 0.0]], [[2.0, 1.0]], [[3.0, 2.0]]]
    assert bars(groups) == []  # each is above the next on all seven sets: p = 3 / 64
    inputs = ranked(tmp_path / "alike", 0.5 + 0.1 * np.random.default_rng(0).random((8, 4)))
    found = over_data_sets(inputs.table, inputs.table.metrics["accuracy"])
    (bar,) = bars(find("critical_difference").draw(inputs).axes[1])
    assert tuple(bar.get_ydata()) == tuple(found.groups[0])
    assert len(found.groups[0]) == 4


def test_ranks_are_drawn_against_the_median_times(tmp_path: Path) -> None:
    of_set = {
        number: [
            made.cell(
                "nc",
                {"G": method},
                dataset=f"set{number}",
                metrics={"accuracy": float(score), "fit_time_s": (number + 1) * 10.0**method},
            )
            for method, score in enumerate(row)
        ]
        for number, row in enumerate(ordered(7, 3))
    }
    few = made.inputs(tmp_path / "few", *chain(*(of_set[number] for number in range(5))))
    cells = [*chain(*of_set.values())]
    plot = find("rank_time").plot(made.inputs(tmp_path / "ranked", *cells))
    (facet,) = plot.facets
    assert [(series.names, series.x, series.y) for series in facet.series] == [
        (["nc G=2"], [400.0], [1.0]),
        (["nc G=1"], [40.0], [2.0]),
        (["nc G=0"], [4.0], [3.0]),
    ]
    drawn = draw_all(few, ["rank_time"])
    assert not drawn.files
    assert "the methods have no values on enough data sets to be ranked." in " ".join(drawn.notes)


def test_a_box_is_the_distance_from_the_best_of_each_data_set(tmp_path: Path) -> None:
    scores = [[0.9, 0.8, 0.7], [0.6, 0.9, 0.5], [0.7, 0.7, 0.4]]
    inputs = ranked(tmp_path / "sets", scores)
    found = scores_of(inputs.table)
    assert found is not None
    np.testing.assert_allclose(found.values, scores)
    (axes,) = find("score_boxes").draw(inputs).axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["nc G=0", "nc G=1", "nc G=2"]
    medians = [lines.get_segments()[0][0] for lines in axes.collections if lines.get_linewidth() == 2.0]
    np.testing.assert_allclose(medians, [(0, -0.3), (0, 0.7), (30, 1.7)], atol=1e-9)
    boxes = [(box.get_x(), box.get_x() + box.get_width()) for box in axes.patches]
    np.testing.assert_allclose(boxes, [(0, 15), (0, 5), (25, 35)], atol=1e-9)
    assert axes.get_xlabel() == "Points of accuracy below the best, 3 data sets"


def test_boxes_of_a_single_data_set_show_its_repeats(tmp_path: Path) -> None:
    cells = [
        made.cell("nc", {"G": G}, repeat=repeat, metrics={"accuracy": 0.5 + 0.1 * G + 0.01 * repeat})
        for G in (0, 1)
        for repeat in range(3)
    ]
    (axes,) = find("score_boxes").draw(made.inputs(tmp_path, *cells)).axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["nc G=1", "nc G=0"]
    assert axes.get_xlabel() == "Accuracy (%), 3 repeats"
    low, high = axes.get_xlim()
    assert 45 < low < 50 < 62 < high < 65


def test_a_profile_of_errors_is_a_share_of_data_sets(tmp_path: Path) -> None:
    (facet,) = find("score_profile").plot(ranked(tmp_path, [[0.9, 0.8], [0.75, 0.9], [0.5, 0.5]])).facets
    first, second = facet.series
    np.testing.assert_allclose(first.x, [1, 2.5, 2.5, 2.75, 2.75])  # errors of 0.1, 0.25 and 0.5, and 0.2, 0.1 and 0.5
    np.testing.assert_allclose(first.y, [200 / 3, 200 / 3, 100, 100, 100])
    np.testing.assert_allclose(second.x, [1, 2, 2, 2.75, 2.75])
    np.testing.assert_allclose(second.y, [200 / 3, 200 / 3, 100, 100, 100])


def test_a_method_that_failed_on_a_data_set_is_within_no_factor(tmp_path: Path) -> None:
    cells = [
        made.cell(name, dataset=data, metrics={"accuracy": 0.5}, status=status)
        for name, data, status in (("nc", "a", "ok"), ("nc", "b", "ok"), ("oskl", "a", "ok"), ("oskl", "b", "killed"))
    ]
    (facet,) = find("score_profile").plot(made.inputs(tmp_path, *cells)).facets
    assert [series.y[-1] for series in facet.series] == [100, 50]


@pytest.mark.parametrize("n_methods", [2, 30])
def test_no_label_of_the_diagram_covers_another(tmp_path: Path, n_methods: int) -> None:
    label = r"A name $\bad{ that is long 50% _x^ <&"
    inputs = ranked(tmp_path, ordered(7, n_methods), algorithms={"nc": {"label": label}})
    with matplotlib.style.context(["default", STYLE]):
        drawing = find("critical_difference").draw(inputs)
        drawing.draw_without_rendering()
    ranks = drawing.axes[0]
    taken: list[Any] = []
    texts = [*ranks.get_xticklabels()[1:-1], *ranks.get_yticklabels(), *drawing.texts]
    for box in (text.get_window_extent() for text in texts):
        assert not any(box.overlaps(other) for other in taken)
        assert 0 <= box.x0 <= box.x1 <= drawing.bbox.x1
        assert 0 <= box.y0 <= box.y1 <= drawing.bbox.y1
        taken.append(box)


def test_with_too_few_data_sets_or_solvers_nothing_is_drawn(tmp_path: Path) -> None:
    drawn = draw_all(ranked(tmp_path / "sets", ordered(5, 3)), ["critical_difference"])
    assert not any(name.startswith("critical") for name in drawn.files)
    note = "figure critical_difference: not drawn: 5 data sets; a comparison over data sets needs at least 6."
    assert drawn.notes == [note]
    for name in ("score_boxes", "score_profile"):
        drawn = draw_all(ranked(tmp_path / name, ordered(1, 3)), [name])
        note = "expected 2 to 30 methods with values and at least 2 repeats, got 3 methods and 1 repeat."
        assert (drawn.files.keys() & {f"{name}.svg"}, drawn.notes) == (set(), [f"figure {name}: not drawn: {note}"])
    drawn = draw_all(made.inputs(tmp_path / "one", solver("nc", 0, [(1.0, 0.05)])), ["performance_profile"])
    note = "not drawn: expected at least two methods whose times at checkpoints are comparable, got 1."
    assert (drawn.files, drawn.notes) == ({}, [f"figure performance_profile: {note}"])


def solver(name: str, repeat: int, points: list[tuple[float, float]], metric: str = "duality_gap") -> CellFile:
    """Return a fit with checkpoints (seconds, value)."""
    values = [(number, seconds, {"objective": 1.0, metric: value}) for number, (seconds, value) in enumerate(points)]
    traces = [(number, seconds, *item) for number, seconds, of in values for item in of.items()]
    return replace(made.cell(name, repeat=repeat), checkpoints=traces)


def test_profiles_count_the_problems_within_a_factor(tmp_path: Path) -> None:
    cells = [
        solver("nc", 0, [(1.0, 0.5), (2.0, 0.09), (3.0, 0.001)]),
        solver("oskl", 0, [(1.0, 0.05), (4.0, 0.02), (6.0, 0.005)]),
        solver("nc", 1, [(1.0, 0.05), (2.0, 0.01)]),
        solver("oskl", 1, [(3.0, 0.2)]),
        solver("nc", 2, [(1.0, 0.001)]),  # the other solver was not run on this problem
    ]
    solvers, ratios = profiles_of(made.inputs(tmp_path, *cells))
    assert [name for name, _ in solvers] == ["nc", "oskl"]
    np.testing.assert_array_equal(ratios[0.1], [[2.0, 1.0], [1.0, np.inf]])
    np.testing.assert_array_equal(ratios[0.01], [[1.0, 2.0], [1.0, np.inf]])
    np.testing.assert_array_equal(ratios[0.001], [[1.0, np.inf], [np.inf, np.inf]])


def test_without_a_gap_the_excess_over_the_best_objective_counts(tmp_path: Path) -> None:
    cells = [
        solver("nc", 0, [(1.0, 12.0), (2.0, 10.05), (8.0, 10.0)], "objective"),
        solver("oskl", 0, [(1.0, 10.9), (6.0, 10.02)], "objective"),
    ]
    _, ratios = profiles_of(made.inputs(tmp_path, *cells))
    np.testing.assert_allclose(ratios[0.1], [[2.0, 1.0]])
    np.testing.assert_allclose(ratios[0.01], [[1.0, 3.0]])
    np.testing.assert_allclose(ratios[0.001], [[1.0, np.inf]])


def test_times_of_two_machines_are_not_compared(tmp_path: Path) -> None:
    cells = [solver(name, repeat, [(1.0, 0.05)]) for repeat in (0, 1) for name in ("nc", "oskl")]
    for cell, host in zip(cells, ("here", "here", "elsewhere", "here"), strict=True):
        cell.record.host = host
    _, ratios = profiles_of(made.inputs(tmp_path, *cells))
    assert {len(values) for values in ratios.values()} == {1}
