"""The tables and figures of qin2011: cells as the paper prints them, gains and ratios by repeat, figures by lambda."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from klr_bench.report.labels import line_label
from klr_bench.report.render.caption import caption
from klr_bench.report.render.layout import document
from klr_bench.results.store import Record
from klr_bench.results.variants import Variant
from tests.report.folders import Make, record, shown, table, write

CONFIG: dict[str, Any] = {
    "experiment": "l1_mnist10k",
    "title": "L1",
    "repeats": 2,
    "datasets": {"mnist10k": {"label": "MNIST 3"}},
    "algorithms": {
        "l1_multiscale_fista": {"label": "FISTA", "estimator": {"features": "fourier"}},
        "l1_prox_newton": {"label": "prox-Newton"},
    },
    "sweep": {"l1_multiscale_fista": {"lam": [0.5, 0.2]}, "l1_prox_newton": {"lam": [0.5, 0.2]}},
    "metrics": ["accuracy", "fit_time_s", "nonzero_fraction"],
    "figures": ["lambda_panels"],
}


def row(algorithm: str, variant: str, repeat: int, **values: Any) -> Record:
    given = {"dataset": "mnist10k", "accuracy": 0.85, "fit_time_s": 2.0, "nonzero_fraction": 0.024, "n_iter": 10}
    return record(algorithm, variant, repeat, **(given | {"params": {"features": "fourier"}} | values))


def both() -> list[Record]:
    columns = itertools.product(("l1_multiscale_fista", "l1_prox_newton"), ("lam=0.2", "lam=0.5"), range(2))
    return [row(*column) for column in columns]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def folder(rows: Sequence[Record], **config: Any) -> Path:
        return write(tmp_path / "l1", rows, CONFIG | config)

    return folder


def test_a_metric_is_a_row_beside_that_of_the_paper(make: Make) -> None:
    rows = both()
    rows[2].metrics["accuracy"] = 0.842  # FISTA at 0.5
    grid = document(table(make(rows))).grids[0]
    assert grid.header == ["MNIST 3", "lam=0.5", "lam=0.2"]
    texts = [[text.strip() for text in line] for line in grid.rows]
    assert texts == [
        ["FISTA: Accuracy (%)", "84.6 ± 0.6", "85.0 ± 0.0"],
        ["paper", "84.6", "89.6"],
        ["diff", "0.0", "-4.6*"],
        ["FISTA: Training time (s)", "2.00 ± 0.00", "2.00 ± 0.00"],
        ["paper", "4.4", "22.0"],
        ["ratio", "2.2x", "11x"],
        ["FISTA: Non-zero (%)", "2.4 ± 0.0", "2.4 ± 0.0"],
        ["paper", "1.4", "4.6"],
        ["diff", "+1.0*", "-2.2*"],
        ["prox-Newton: Accuracy (%)", "85.0 ± 0.0‡", "85.0 ± 0.0"],
        ["prox-Newton: Training time (s)", "2.00 ± 0.00", "2.00 ± 0.00"],
        ["prox-Newton: Non-zero (%)", "2.4 ± 0.0", "2.4 ± 0.0"],
    ]
    assert (grid.papers, grid.notes) == ([1, 2, 4, 5, 7, 8], [])


def test_a_column_that_was_not_run_is_empty(make: Make) -> None:
    grid = document(table(make(both()[:2], sweep={"l1_multiscale_fista": {"lam": [0.5, 0.2]}}))).grids[0]
    assert [text.strip() for text in grid.rows[0]] == ["FISTA: Accuracy (%)", "-", "85.0 ± 0.0", "-"]
    assert grid.rows[-1][0] == "prox-Newton: Accuracy (%)"
    assert grid.notes == ["FISTA lam=0.5: 0 of 2 repeats ok; 2 not run", "prox-Newton: 0 of 2 repeats ok; 2 not run"]


def test_the_gain_of_a_second_stage_is_taken_repeat_by_repeat(make: Make) -> None:
    rows = [
        row("l1_multiscale_fista", f"two_stage={stage}; lam=0.5", repeat, accuracy=accuracy)
        for stage, accuracies in (("False", (0.8, 0.9)), ("True", (0.82, 0.89, 0.5)))
        for repeat, accuracy in enumerate(accuracies)
    ]
    against = {"accuracy_gain": {"two_stage": False}}
    sweep = {"l1_multiscale_fista": {"two_stage": [False, True], "lam": [0.5]}}
    config = {"metrics": ["accuracy", "accuracy_gain"], "sweep": sweep, "against": against}
    config["experiment"] = "l1_two_stage"
    one, two = table(make(rows, **config)).blocks[0].lines[:2]
    assert one.entries["accuracy_gain"].mean is None
    assert "accuracy" not in one.matches
    gain = two.entries["accuracy_gain"]
    assert (gain.n, gain.mean) == (2, pytest.approx(0.005))
    assert two.matches["accuracy_gain"].printed.value == pytest.approx(0.003)
    assert two.matches["accuracy"].printed.value == pytest.approx(0.849)


def test_the_ratio_of_iterations_is_against_the_algorithm_named(make: Make) -> None:
    rows = [row("l1_fista", "lam=0.05", repeat, n_iter=n) for repeat, n in enumerate((100, 200))]
    rows += [
        row("l1_multiscale_fista", f"hessian={kind}; lam=0.05", repeat, n_iter=n)
        for kind, counts in (("decreasing", (50, 120)), ("current", (100, 100)))
        for repeat, n in enumerate(counts)
    ]
    against = {"n_iter_ratio": {"algorithm": "l1_fista"}}
    lines = table(make(rows, experiment="l1_iterations", against=against)).blocks[0].lines
    ratios = {(line.algorithm, line.variant): line.entries["n_iter_ratio"].mean for line in lines}
    assert ratios["l1_fista", Variant({"lam": 0.05})] is None
    assert ratios["l1_multiscale_fista", Variant({"hessian": "decreasing", "lam": 0.05})] == pytest.approx(0.55)
    assert ratios["l1_multiscale_fista", Variant({"hessian": "current", "lam": 0.05})] == pytest.approx(0.75)


def test_where_time_ends_every_repeat_the_numbers_are_those_at_its_limit(make: Make) -> None:
    limited = [row("l1_prox_newton", "lam=0.5", n, status="timeout", accuracy=0.7, message="after 9 s") for n in (0, 1)]
    mixed = [row("l1_prox_newton", "lam=0.2", 0), row("l1_prox_newton", "lam=0.2", 1, status="timeout", accuracy=0.1)]
    folder = make([*both()[:4], *limited, *mixed])
    lines = {line_label(line): line for line in table(folder).blocks[0].lines}
    timed_out, partly = lines["prox-Newton lam=0.5"], lines["prox-Newton lam=0.2"]
    assert (timed_out.n_ok, timed_out.timed_out, timed_out.entries["accuracy"].mean) == (0, True, 0.7)
    assert (partly.n_ok, partly.timed_out, partly.entries["accuracy"].mean) == (1, False, 0.85)
    text = shown(folder, width=150)
    assert "Where no repeat ended within its time limit, the numbers are those at the limit." in text
    assert "timeout (repeat 0, 1): after 9 s" in text


def test_a_ratio_of_log_losses_is_that_of_each_repeat_and_the_caption_says_of_what(make: Make) -> None:
    rows = [row("l1_multiscale_fista", "lam=0.5", r, log_loss=loss) for r, loss in enumerate((0.2, 0.4))]
    rows += [row("l1_prox_newton", "lam=0.5", repeat, log_loss=loss) for repeat, loss in enumerate((0.1, 0.1))]
    against = {"log_loss_ratio": {"algorithm": "l1_multiscale_fista"}}
    built = table(make(rows, metrics=["log_loss", "log_loss_ratio"], experiment="demo", against=against))
    cells = {line_label(line): line.entries["log_loss_ratio"] for line in built.blocks[0].lines}
    assert cells["FISTA lam=0.5"].mean is None
    assert cells["prox-Newton lam=0.5"].mean == pytest.approx((0.1 / 0.2 + 0.1 / 0.4) / 2)
    sentences = caption(built)
    assert any(s.startswith("Log loss ratio: the log loss divided by that of FISTA, repeat") for s in sentences)
    assert not any("Training times" in s for s in sentences)
