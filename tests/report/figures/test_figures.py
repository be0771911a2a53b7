"""Every figure is drawn where all that it needs is there, and says what is missing where it is not."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from klr_bench.config.locations import config_dir
from klr_bench.errors import KlrBenchError
from klr_bench.report.figures import DrawnFigures, Inputs, Needs, check_names, draw_all, find, names
from klr_bench.report.figures.core.plot import OTHERS, in_parts
from klr_bench.report.figures.curves import FIGURES as CURVES
from klr_bench.report.figures.curves import excess_objectives
from klr_bench.results.record import CellFile
from tests.report.figures import made

SHIPPED, USUAL = names(), {"accuracy_support", "accuracy_examples", "support_examples"}
OVER_DATA_SETS = {"critical_difference", "rank_time", "score_boxes", "score_profile"}
"""Figures that need several data sets or repeats; test_statistics.py draws them."""


WORDS = {
    "metrics": "{} in records.csv",
    "traces": "checkpoints of {} in traces.csv",
    "parameter": "a sweep of {}",
    "bins": "bins of probabilities in reliability.csv",
    "rows": "training rows in rows.csv",
}


def needed(needs: Needs) -> list[tuple[str, str]]:
    """Return each thing that is needed: the field of Needs, and a name."""
    found = [("metrics", name) for name in needs.metrics] + [("traces", name) for name in needs.traces]
    found += [("parameter", needs.parameter)] if needs.parameter else []
    return found + [(kind, "") for kind in ("bins", "rows") if getattr(needs, kind)]


def test_the_shipped_figures_are_all_that_experiments_ask_for() -> None:
    assert {*CURVES, *OVER_DATA_SETS, "prototype_pictures"} < {*SHIPPED}
    assert {name for name in SHIPPED if find(name).usual} == USUAL
    assert all(needed(find(name).needs) and find(name).title for name in SHIPPED)
    for path in (config_dir() / "experiment").glob("*.yaml"):
        check_names(yaml.safe_load(path.read_text("utf-8")).get("figures") or [])


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    """Return inputs of all figures, with labels that look like formulas."""
    label = {"label": r"$\bad{ 50% _x^$"}
    return made.everything(tmp_path_factory.mktemp("made"), datasets={"magic": label}, algorithms={"all": label})


@pytest.mark.parametrize("name", [name for name in SHIPPED if name not in OVER_DATA_SETS])
def test_a_figure_is_drawn(name: str, everything: Inputs, tmp_path: Path) -> None:
    if name == "performance_profile":  # of several methods with the same lambda
        cells = [made.cell(algorithm, {"lam": 0.1}, traced=made.TRACED) for algorithm in ("nc", "oskl")]
        everything = made.inputs(tmp_path, *cells)
    drawn = draw_all(everything, [name])
    fits = {"prototypes_magic_1_0.1_2_5_50.png", "prototypes_magic_2_0.2_4_10_100.png"}
    assert set(drawn.files) == (fits if name == "prototype_pictures" else {f"{name}.png", f"{name}.svg"})
    assert drawn.notes == []
    for file, content in drawn.files.items():
        assert content.startswith(b"\x89PNG" if file.endswith("png") else b"<?xml")


@pytest.mark.parametrize("thing", sorted({thing for name in SHIPPED for thing in needed(find(name).needs)}), ids=str)
def test_what_is_missing_is_said(thing: tuple[str, str], tmp_path: Path) -> None:
    inputs = made.everything(tmp_path, without=thing)
    for name in [name for name in SHIPPED if thing in needed(find(name).needs)]:
        drawn = draw_all(inputs, [name])
        assert drawn.files == {}
        (note,) = drawn.notes
        expected = f"needs {WORDS[thing[0]].format(thing[1])}; none of all on magic has any."
        assert note.startswith(f"figure {name}: {expected}")


def test_a_note_names_the_methods_and_what_to_do(tmp_path: Path) -> None:
    cells = [made.cell(name, dataset=data) for data in ("magic", "adult") for name in ("oskl", "nc")]
    inputs = made.inputs(tmp_path / "none", *cells, made.cell("ogd", dataset="zoo"))
    who = "none of nc, oskl on adult, magic; ogd on zoo has any."
    again = "Run with trace.points=15 (or another number of checkpoints); fits without checkpoints are then repeated."
    for name, needs, advice in (
        ("log_loss_time", "checkpoints of log_loss in traces.csv", again),
        ("lambda_panels", "a sweep of lam", "Run with several values, as in sweep.nc.lam=[...]."),
    ):
        assert draw_all(inputs, [name]).notes == [f"figure {name}: needs {needs}; {who} {advice}"]
    (note,) = draw_all(inputs, ["prototype_pictures"]).notes
    assert note.endswith("Run the experiment again with trace.rows=true; the data must have two columns.")
    traced = made.cell(traced={"accuracy": 0.5, "n_support": 4.0})
    (note,) = draw_all(made.inputs(tmp_path / "some", traced), ["log_loss_time"]).notes
    assert note.endswith("none of nc on magic has any. The checkpoints hold accuracy, n_support.")
    cells = [made.cell("nc", metrics={"accuracy": 0.5}), made.cell("pa", metrics={"n_selected": 3.0})]
    (note,) = draw_all(made.inputs(tmp_path / "two", *cells), ["accuracy_selected"]).notes
    assert note.endswith("n_selected in records.csv and accuracy in records.csv; none of nc, pa on magic has all.")


def svg(inputs: Inputs, name: str) -> str:
    return draw_all(inputs, [name]).files[f"{name}.svg"].decode()


def test_there_is_a_band_over_repeats_a_panel_per_data_set_and_no_figure_of_zeros(tmp_path: Path) -> None:
    cells = [made.cell(repeat=repeat, traced={"accuracy": 0.4 + 0.2 * repeat}) for repeat in (0, 1)]
    assert "PolyCollection" not in svg(made.inputs(tmp_path / "one", cells[0]), "accuracy_examples")
    assert "PolyCollection" in svg(made.inputs(tmp_path / "two", *cells), "accuracy_examples")
    sets = made.inputs(tmp_path / "sets", *(made.cell(dataset=f"set{number}") for number in range(5)))
    assert svg(sets, "accuracy_support").count('<g id="axes_') == 5
    zeros = made.inputs(tmp_path / "zeros", made.cell(metrics={"accuracy": 0.5, "n_support": 0.0}))
    drawn = draw_all(zeros, ["accuracy_support"])
    assert (drawn.files, drawn.notes) == ({}, ["figure accuracy_support: no value can be drawn."])


def test_what_is_not_positive_is_left_out_on_a_logarithmic_axis(tmp_path: Path) -> None:
    cells = [made.cell(repeat=repeat, traced={"objective": 3.0, "duality_gap": 0.1}) for repeat in (0, 1)]
    cells[1] = replace(
        cells[1],
        checkpoints=[
            (t, s, name, 0.0 * value if name == "duality_gap" else value) for t, s, name, value in cells[1].checkpoints
        ],
    )
    (facet,) = find("gap_time").plot(made.inputs(tmp_path, *cells)).facets
    average, *repeats = facet.series
    assert average.y == pytest.approx([0.025, 0.05]), "the mean of both repeats, one of which is 0"
    assert all(y > 0 for series in facet.series for y in series.y)
    assert len(repeats) == 1


def test_what_is_partly_missing_is_drawn_and_said(tmp_path: Path) -> None:
    cells = [
        made.cell("nc", traced={"log_loss": 0.4}, bins=made.BINS),
        made.cell("oskl", {"G": 1}, traced={"accuracy": 0.4}, metrics={"accuracy": 0.5}),
        made.cell("ogd", metrics={"accuracy": 0.5}),
        made.cell("killed", status="killed", metrics={}),
    ]
    inputs = made.inputs(tmp_path, *cells)
    for name, words in (
        ("log_loss_time", "checkpoints of log_loss in traces.csv"),
        ("reliability", "ece in records.csv and bins of probabilities in reliability.csv"),
    ):
        note = f"figure {name}: drawn without ogd, oskl on magic, which lack {words}."
        assert draw_all(inputs, [name]).notes == [note], "failed methods are named in the table"
        assert "<!-- nc -->" in svg(inputs, name)
        assert "oskl" not in svg(inputs, name)
    assert "<!-- calibrated -->" in svg(inputs, "reliability")


def test_the_usual_figures_are_drawn_if_there_is_something_and_have_no_notes(
    everything: Inputs, tmp_path: Path
) -> None:
    assert set(draw_all(everything, None).files) == {f"{name}.{kind}" for name in USUAL for kind in ("png", "svg")}
    assert draw_all(everything, []).files == {}
    flat = draw_all(made.inputs(tmp_path / "flat", made.cell("nc"), made.cell("oskl")), None)
    note = "figure accuracy_support: not drawn, because it would show a single value."
    assert (flat.files, flat.notes) == ({}, [note])
    drawn = draw_all(made.inputs(tmp_path, made.cell(metrics={"accuracy": 0.5})), None)
    assert (drawn.files, drawn.notes) == ({}, [])


def test_many_curves_are_divided_among_panels_that_show_all_points(tmp_path: Path) -> None:
    cells = [made.cell(f"a{n}", metrics={"accuracy": 0.5 + n / 50, "n_support": 10.0 * n}) for n in range(1, 14)]
    inputs = made.inputs(tmp_path, *cells)
    (whole,) = find("accuracy_support").plot(inputs).facets
    parts = in_parts(find("accuracy_support").plot(inputs)).facets
    assert [sum(series.look is not OTHERS for series in part.series) for part in parts] == [6, 6, 1]
    assert {len(part.series) for part in parts} == {len(whole.series)} == {13}
    assert svg(inputs, "accuracy_support").count('<g id="axes_') == 3
    fewer = made.inputs(tmp_path / "fewer", *cells[:12])
    assert svg(fewer, "accuracy_support").count('<g id="axes_') == 1


def test_many_panels_are_drawn_only_if_they_are_requested(tmp_path: Path) -> None:
    metrics = [{"accuracy": accuracy, "n_support": 4.0} for accuracy in (0.5, 0.6)]
    pairs = [*zip(("nc", "oskl"), metrics, strict=True)]
    cells = [made.cell(name, dataset=f"d{n}", metrics=of_name) for n in range(10) for name, of_name in pairs]
    inputs = made.inputs(tmp_path, *cells)
    drawn = draw_all(inputs, None)
    (note,) = drawn.notes
    assert "it would have 10 panels" in note
    assert drawn.files == {}
    assert "accuracy_support.svg" in draw_all(inputs, ["accuracy_support"]).files
    assert "accuracy_support" in draw_all(inputs, None, explored=True).plots


def test_a_method_has_a_panel_of_its_calibration_on_each_data_set_and_on_all(tmp_path: Path) -> None:
    cells = [made.cell(name, dataset=data, bins=made.BINS) for data in ("magic", "adult") for name in ("nc", "oskl")]
    for number, shares, labels in (
        (4, [0.04, 0.4, 0.95], ["one data set", "one data set", "all test rows"]),
        (2, [0.04, 0.95], ["all test rows"]),  # ten rows are too few
    ):
        facets = find("reliability").plot(made.inputs(tmp_path / str(number), *cells[:number])).facets
        assert [facet.title for facet in facets] == ["nc", "oskl"]
        for facet in facets:
            assert [series.look.label for series in facet.series] == labels
            assert facet.series[-1].y == pytest.approx(shares)
            assert facet.series[-1].names[0] == f"all, {25 * number} test rows"


@pytest.mark.parametrize(("values", "has_ticks"), [((0.05, 0.1, 0.2, 0.5), True), ((0.05, 0.051, 0.5), False)])
def test_the_values_of_a_parameter_are_ticks_if_there_is_room(
    values: tuple[float, ...], has_ticks: bool, tmp_path: Path
) -> None:
    inputs = made.inputs(tmp_path, *(made.cell("l1", {"lam": value}) for value in values))
    shown = svg(inputs, "lambda_panels")
    assert all(f"<!-- {value} -->" in shown for value in values) == has_ticks


@pytest.mark.parametrize("figures", [None, ["reliability"]])
def test_the_diagram_comes_with_the_calibration_error(figures: list[str] | None, tmp_path: Path) -> None:
    def drawn(metric: str, kind: str = "") -> DrawnFigures:
        folder = tmp_path / f"{metric}{kind}"
        return draw_all(made.everything(folder, (kind, ""), metrics=["accuracy", metric]), figures)

    assert "reliability.svg" in drawn("ece").files
    assert ("reliability.svg" in drawn("brier").files) == bool(figures), "asked for by its own name"
    assert bool(drawn("ece", "bins").notes) == bool(figures)


def test_the_same_rows_give_the_same_bytes(everything: Inputs) -> None:
    asked = ["accuracy_support", "accuracy_time"]
    files = draw_all(everything, asked).files
    assert files == draw_all(everything, asked).files
    assert len(files) == 2 * len(asked)
    assert not any(b"<dc:date>" in content for content in files.values())


def test_the_panels_over_lambda_have_their_axes_named_and_published_values(tmp_path: Path) -> None:
    """Table 2 of qin2011 has three numbers of CGD at each lambda."""
    cells = [made.cell("l1_cgd", {"lam": lam}, dataset="mnist10k") for lam in (0.5, 0.2)]
    for cell in cells:
        cell.record.params.update(lam_relative=True, features="fourier")
    drawing = svg(made.inputs(tmp_path, *cells, experiment="l1_mnist10k"), "lambda_panels")
    for label in ("Test accuracy (%)", "Non-zero coefficients (%)", "Training time (s)", "published"):
        assert drawing.count(f"<!-- {label} -->") == 1


def test_a_name_that_is_none_is_refused() -> None:
    names: dict[Any, str] = {"accuracy_suport": "Did you mean 'accuracy_support'?", "core": "Known: "}
    names |= {5: "Known: ", "../figures/reliability": "Did you mean 'reliability'?"}
    for name, near in names.items():
        with pytest.raises(KlrBenchError, match=re.escape(f"figures: unknown value {name!r}. {near}")):
            check_names(["accuracy_time", name])


def test_curves_against_selected_features(tmp_path: Path) -> None:
    def selected(algorithm: str, variant: dict[str, Any], number: float, share: float, repeat: int = 0) -> CellFile:
        return made.cell(algorithm, variant, metrics={"n_selected": number, "relevant_found": share}, repeat=repeat)

    cells = [
        selected("sbcw", {"n_features_to_select": p}, p, 0.01 * p, repeat) for p in (20, 5, 10) for repeat in (0, 1)
    ]
    cells += [selected("l1svm", {"C": C, "q": 2}, number, 0.5) for C, number in ((0.1, 0), (1.0, 7))]
    inputs = made.inputs(tmp_path, *cells)
    (facet,) = find("relevant_selected").plot(inputs).facets
    points = {series.look.label: list(zip(series.x, series.y, strict=True)) for series in facet.series}
    assert points["sbcw"] == [pytest.approx((x, x)) for x in (5, 10, 20)]
    assert points["l1svm q=2"] == [pytest.approx((7.0, 50.0))], "zero features are no point"


def test_the_excess_is_above_the_smallest_objective_of_the_same_data_repeat_and_lambda() -> None:
    objectives = {"a": [8.0, 5.0, 4.0], "b": [6.0, 4.4], "c": [3.0, 2.0], "d": [0.2, 0.1]}
    points = [(key, t, value) for key, values in objectives.items() for t, value in enumerate(values)]
    rows = [(key, t, float(t), "objective", value) for key, t, value in points]
    traces = pd.DataFrame([*rows, ("a", 1, 1.0, "accuracy", 0.5)], columns=["key", "t", "elapsed_s", "metric", "value"])
    places = {"key": [*"abcd"], "dataset": ["one", "one", "two", "one"], "repeat": [0] * 4}
    records = pd.DataFrame(places | {"params": [{}, {}, {}, {"lam": 0.1}]})
    found = excess_objectives(traces, records)
    by_key = {key: list(group["value"].round(9)) for key, group in found.groupby("key")}
    assert by_key == {"a": [1.0, 0.25, 0.0], "b": [0.5, 0.1], "c": [0.5, 0.0], "d": [1.0, 0.0]}
