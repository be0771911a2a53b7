"""Labels of points and ticks of axes."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib.style
import pytest
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from klr_bench.config import locations
from klr_bench.config.presentation import LookConfig
from klr_bench.report.figures import draw_all, find
from klr_bench.report.figures.accuracy_support import MOST_LABELS, write_labels
from klr_bench.report.figures.core.drawing import STYLE, scale_axis
from klr_bench.report.figures.core.plot import SUPPORT, curve_of, looks_of
from klr_bench.report.labels import line_label
from klr_bench.report.paper_picture import LOOKS
from klr_bench.report.paper_picture import _draw as draw_panels
from tests.report.figures import made

CROWDED = [(10.0, 90.0), (11.0, 90.5), (12.0, 88.0), (30.0, 91.0), (30.0, 80.0), (10.0, 80.0)]
BARS = [Bbox([[12.0, 86.0], [12.0, 90.0]]), Bbox([[30.0, 78.0], [30.0, 82.0]])]


def count_labels(points: list[tuple[float, float]], bars: list[Bbox]) -> int:
    """Write a label of each point; assert that they cover nothing and are inside of the axes, and count them."""
    drawing = Figure(figsize=(5.2, 3.5), layout="constrained")
    axes = drawing.add_subplot(xscale="log")
    axes.plot(*zip(*points, strict=True), "o")
    drawing.draw_without_rendering()
    write_labels(axes, [(x, y, f"budget={100 * x:.0f}") for x, y in points], points, bars)
    taken = [Bbox([at - 2, at + 2]) for at in map(axes.transData.transform, points)]
    taken += [Bbox(axes.transData.transform(bar.get_points())) for bar in bars]
    for label in (text.get_window_extent() for text in axes.texts):
        assert not any(label.overlaps(other) for other in taken)
        assert axes.bbox.x0 <= label.x0 <= label.x1 <= axes.bbox.x1
        assert axes.bbox.y0 <= label.y0 <= label.y1 <= axes.bbox.y1
        taken.append(label)
    return len(axes.texts)


def test_labels_cover_neither_each_other_nor_points_and_stay_inside() -> None:
    for bars in ([], BARS):
        assert count_labels(CROWDED, bars) == len(CROWDED)


def test_a_panel_with_many_points_has_no_labels(tmp_path: Path) -> None:
    for number, labeled in ((MOST_LABELS, True), (MOST_LABELS + 1, False)):
        cells = [
            made.cell("oskl", {"G": G}, metrics={"accuracy": 0.9 - 0.01 * G, "n_support": 10.0 * G})
            for G in range(1, number + 1)
        ]
        drawing = draw_all(made.inputs(tmp_path / str(number), *cells), ["accuracy_support"])
        assert (b"<!-- G=2 -->" in drawing.files["accuracy_support.svg"]) == labeled


def test_labels_of_variants_are_those_of_the_yaml_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variants: list[dict[str, Any]] = [{"lam": lam, "project": flag} for lam in (1e-4, "cv") for flag in (True, False)]
    (block,) = made.inputs(tmp_path, *(made.cell("pegasos", variant) for variant in variants)).table.blocks
    tuned, fixed = "pegasos tuned lambda", "pegasos lambda=0.0001"
    assert {line_label(line) for line in block.lines} == {tuned, f"{tuned}, projected", fixed, f"{fixed}, projected"}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs" / "experiment").mkdir(parents=True)
    text = '# @package _global_\nalgorithms: {pegasos: {labels: {lam: "L{}"}, look: {color: red, marker: star}}}\n'
    (tmp_path / "configs" / "experiment" / "mine.yaml").write_text(text, encoding="utf-8")
    (block,) = made.inputs(tmp_path / "mine", made.cell("pegasos", variants[0]), experiment="mine").table.blocks
    assert line_label(block.lines[0]) == "pegasos L0.0001, projected"
    assert block.lines[0].presentation.look == LookConfig(color="red", marker="star")


def test_each_algorithm_has_a_look_of_its_own_in_every_figure(tmp_path: Path) -> None:
    searched = locations.folders()
    paths = [locations.find("algorithm", name, searched) for name in locations.names("algorithm", searched)]
    looks = {path.stem: LookConfig(**locations.read(path)["look"]) for path in paths}
    algorithms = {name: name.removesuffix("_default").removeprefix("calibrated_") for name in looks}
    pairs = {name: (look.color, look.marker) for name, look in looks.items()}
    assert {name: pairs[algorithm] for name, algorithm in algorithms.items()} == pairs, "as with other settings"
    assert len({*pairs.values()}) == len({*algorithms.values()})
    cells = [made.cell(name) for name in ("nc", "mine", "yours", "oskl")]
    lines = made.inputs(tmp_path, *cells).table.blocks[0].lines
    alone = looks_of([line for line in lines if line.algorithm == "nc"], curve_of)
    together = looks_of(lines, curve_of)
    assert alone.items() <= together.items()
    assert len({(look.color, look.marker) for look in together.values()}) == 4


def test_an_accuracy_axis_ends_at_100_percent(tmp_path: Path) -> None:
    cells = [
        made.cell("oskl", repeat=repeat, metrics={"accuracy": accuracy, "n_support": 5.0})
        for repeat, accuracy in enumerate((0.5, 1.0))
    ]
    drawing = find("accuracy_support").draw(made.inputs(tmp_path, *cells))  # type: ignore[misc]
    assert drawing.axes[0].get_ylim()[1] == 100.0  # type: ignore[union-attr]


@pytest.mark.parametrize("values", [(140_000, 220_000), (7_000, 10_500), (2.1, 9.0), (400, 16_000), (1, 1e6)])
def test_a_logarithmic_axis_has_some_ticks_and_not_too_many(values: tuple[float, float]) -> None:
    axes = Figure(figsize=(5.2, 3.5)).add_subplot()
    axes.margins(0.08)
    axes.plot(values, values)
    scale_axis(axes.xaxis, SUPPORT)
    low, high = axes.get_xlim()
    assert 2 <= sum(low <= tick <= high for tick in axes.get_xticks()) <= 6


@pytest.mark.parametrize("n_panels", [1, 2, 5])
def test_no_text_of_the_picture_of_a_paper_is_cut(n_panels: int) -> None:
    matches: list[Any] = [
        SimpleNamespace(verdict=verdict, mean=float(number), printed=SimpleNamespace(value=1.0))
        for number, verdict in enumerate(LOOKS, 1)
    ]
    with matplotlib.style.context(["default", STYLE]):
        drawing = draw_panels({f"Properties of the data {number}": matches for number in range(n_panels)})
        drawing.draw_without_rendering()
    texts = [*drawing.legends[0].get_texts(), *(axes.title for axes in drawing.axes)]
    assert len(texts) == len(LOOKS) + n_panels
    for box in (text.get_window_extent() for text in texts):
        assert 0 <= box.x0 <= box.x1 <= drawing.bbox.x1
        assert 0 <= box.y0 <= box.y1 <= drawing.bbox.y1
