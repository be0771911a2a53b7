"""The critical difference diagram and the performance profiles show what the statistics say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
import pytest

from klr_bench.errors import KlrBenchError
from klr_bench.report.figures import draw_all, find
from klr_bench.report.figures.core.drawing import STYLE
from klr_bench.report.figures.performance_profile import profiles_of
from klr_bench.report.pairwise import over_data_sets
from klr_bench.results.store import CellFile
from tests.report.figures import made


def ranked(folder: Path, n_data_sets: int, n_lines: int = 3, **config: Any) -> Any:
    cells = [
        made.cell(
            "nc", {"G": line}, dataset=f"set{number}", metrics={"accuracy": 0.5 + 0.01 * line + 0.001 * number * line}
        )
        for number in range(n_data_sets)
        for line in range(n_lines)
    ]
    return made.read(made.write(folder, cells, **config))


def test_the_diagram_has_a_place_for_each_line_and_a_bar_for_each_group(tmp_path: Path) -> None:
    inputs = ranked(tmp_path, 7)
    found = over_data_sets(inputs.table, inputs.table.shown["accuracy"])
    drawing = find("critical_difference").draw(inputs)
    (axes,) = drawing.axes
    assert [text.get_text() for text in axes.texts] == ["nc G=2 1.00", "nc G=1 2.00", "3.00 nc G=0"]
    bars = [line for line in axes.lines if line.get_linewidth() == 3]
    assert [tuple(bar.get_xdata()) for bar in bars] == [tuple(found.ranks[i] for i in group) for group in found.groups]
    assert found.groups == []  # each is above the next on all seven sets: p = 3 / 64


def test_lines_that_are_alike_are_joined(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    cells = [
        made.cell("nc", {"G": line}, dataset=f"set{number}", metrics={"accuracy": float(0.5 + 0.1 * random.random())})
        for number in range(8)
        for line in range(4)
    ]
    drawing = find("critical_difference").draw(made.read(made.write(tmp_path, cells)))
    (bar,) = [line for line in drawing.axes[0].lines if line.get_linewidth() == 3]
    assert len(bar.get_xdata()) == 4


@pytest.mark.parametrize("n_lines", [2, 30])
def test_no_label_of_the_diagram_covers_another(tmp_path: Path, n_lines: int) -> None:
    label = r"A name $\bad{ that is long 50% _x^ <&"
    inputs = ranked(tmp_path, 7, n_lines, algorithms={"nc": {"label": label}})
    figure = find("critical_difference")
    with matplotlib.style.context(["default", STYLE]):
        drawing = figure.draw(inputs)
        drawing.draw_without_rendering()
    boxes = [text.get_window_extent() for text in [*drawing.axes[0].texts, *drawing.texts]]
    ticks = [text.get_window_extent() for text in drawing.axes[0].get_xticklabels()]
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in [*boxes[:number], *ticks])
        assert box.x0 >= 0
        assert box.x1 <= drawing.bbox.x1
        assert box.y0 >= 0
        assert box.y1 <= drawing.bbox.y1


def test_with_too_few_data_sets_the_diagram_says_so(tmp_path: Path) -> None:
    drawn = draw_all(ranked(tmp_path, 5), ["critical_difference"])
    assert [name for name in drawn.files if name.startswith("critical")] == []
    note = "figure critical_difference: not drawn: 5 data sets; a comparison over data sets needs at least 6."
    assert drawn.notes == [note]


def solver(
    name: str, repeat: int, points: list[tuple[float, float]], metric: str = "duality_gap", **more: Any
) -> CellFile:
    """Return a fit with checkpoints (seconds, value)."""
    cell = made.cell(name, repeat=repeat, **more)
    metrics = ("objective", metric) if metric != "objective" else ("objective",)
    traces = [
        (number, seconds, one, value if one == metric else 1.0)
        for number, (seconds, value) in enumerate(points)
        for one in metrics
    ]
    return CellFile(cell.record, cell.config_hash, 1.0, traces)


def test_profiles_count_the_problems_within_a_factor(tmp_path: Path) -> None:
    cells = [
        solver("nc", 0, [(1.0, 0.5), (2.0, 0.09), (3.0, 0.001)]),
        solver("oskl", 0, [(1.0, 0.05), (4.0, 0.02), (6.0, 0.005)]),
        solver("nc", 1, [(1.0, 0.05), (2.0, 0.01)]),
        solver("oskl", 1, [(3.0, 0.2)]),
        solver("nc", 2, [(1.0, 0.001)]),  # that the other was not run on
    ]
    solvers, ratios = profiles_of(made.read(made.write(tmp_path, cells)))
    assert [name for name, _ in solvers] == ["nc", "oskl"]
    np.testing.assert_array_equal(ratios[0.1], [[2.0, 1.0], [1.0, np.inf]])
    np.testing.assert_array_equal(ratios[0.01], [[1.0, 2.0], [1.0, np.inf]])
    np.testing.assert_array_equal(ratios[0.001], [[1.0, np.inf], [np.inf, np.inf]])


def test_without_a_gap_the_excess_over_the_best_objective_counts(tmp_path: Path) -> None:
    cells = [
        solver("nc", 0, [(1.0, 12.0), (2.0, 10.05), (8.0, 10.0)], "objective"),
        solver("oskl", 0, [(1.0, 10.9), (6.0, 10.02)], "objective"),
    ]
    solvers, ratios = profiles_of(made.read(made.write(tmp_path, cells)))
    np.testing.assert_allclose(ratios[0.1], [[2.0, 1.0]])
    np.testing.assert_allclose(ratios[0.01], [[1.0, 3.0]])
    np.testing.assert_allclose(ratios[0.001], [[1.0, np.inf]])


def test_times_of_two_machines_are_not_compared(tmp_path: Path) -> None:
    cells = []
    for repeat in (0, 1):
        for name in ("nc", "oskl"):
            cell = solver(name, repeat, [(1.0, 0.05)])
            cell.record.host = "elsewhere" if (name, repeat) == ("nc", 1) else "here"
            cells.append(cell)
    solvers, ratios = profiles_of(made.read(made.write(tmp_path, cells)))
    assert {len(values) for values in ratios.values()} == {1}


def test_one_solver_has_no_profile(tmp_path: Path) -> None:
    inputs = made.read(made.write(tmp_path, [solver("nc", 0, [(1.0, 0.05)])]))
    with pytest.raises(KlrBenchError, match=r"^1 of the lines with checkpoints can be timed; two are needed\.$"):
        find("performance_profile").draw(inputs)
