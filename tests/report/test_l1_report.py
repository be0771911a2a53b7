"""The tables of qin2011: cells as the paper prints them, comparisons with a baseline, time limits."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from klr_bench.report.labels import line_label
from klr_bench.report.render.caption import caption
from klr_bench.report.render.layout import document
from klr_bench.results.record import Record
from tests.report.folders import Make, record, shown, table, write

CONFIG: dict[str, Any] = {
    "experiment": "l1_mnist10k",
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
    return list(itertools.starmap(row, columns))


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return lambda rows, **config: write(tmp_path / "l1", rows, CONFIG | config)


def test_a_metric_is_a_row_beside_that_of_the_paper(make: Make) -> None:
    rows = both()
    rows[2].metrics["accuracy"] = 0.842  # FISTA at 0.5
    grid = document(table(make(rows))).grids[0]
    assert grid.header == ["MNIST 3", "lam=0.5", "lam=0.2"]
    texts = [[text.strip() for text in line] for line in grid.rows]
    assert texts == [
        ["FISTA: Accuracy (%)", "84.6 ± 0.6", "85.0 ± 0.0"],
        ["paper", "84.6", "89.6"],
        ["diff", "0.0§", "-4.6§*"],
        ["FISTA: Training time (s)", "2.00 ± 0.00", "2.00 ± 0.00"],
        ["paper", "4.4", "22.0"],
        ["ratio", "2.2x", "11x"],
        ["FISTA: Non-zero (%)", "2.4 ± 0.0", "2.4 ± 0.0"],
        ["paper", "1.4", "4.6"],
        ["diff", "+1.0§*", "-2.2§*"],
        ["prox-Newton: Accuracy (%)", "85.0 ± 0.0‡", "85.0 ± 0.0"],
        ["prox-Newton: Training time (s)", "2.00 ± 0.00", "2.00 ± 0.00"],
        ["prox-Newton: Non-zero (%)", "2.4 ± 0.0", "2.4 ± 0.0"],
    ]
    assert (grid.papers, grid.notes) == ([1, 2, 4, 5, 7, 8], [])


@pytest.mark.parametrize(
    ("metric", "baseline", "values", "expected"),
    [("accuracy_gain", (0.8, 0.9), (0.82, 0.89, 0.5), 0.005), ("log_loss_ratio", (0.2, 0.4), (0.1, 0.1, 0.1), 0.375)],
)
def test_a_comparison_with_a_baseline_is_the_mean_of_that_of_each_repeat(
    make: Make, metric: str, baseline: Sequence[float], values: Sequence[float], expected: float
) -> None:
    """A third repeat, which the baseline lacks, does not count."""
    of = metric.rpartition("_")[0]
    sides = (("l1_fista", baseline), ("l1_prox_newton", values))
    rows = [row(name, "lam=0.5", n, **{of: value}) for name, side in sides for n, value in enumerate(side)]
    config = {"metrics": [of, metric], "experiment": "demo", "against": {metric: {"algorithm": "l1_fista"}}}
    built = table(make(rows, **config))
    entries = {line_label(line): line.entries[metric] for line in built.blocks[0].lines}
    assert entries["l1_fista lam=0.5"].mean is None
    assert (entries["prox-Newton lam=0.5"].n, entries["prox-Newton lam=0.5"].mean) == (2, pytest.approx(expected))
    if metric == "log_loss_ratio":
        sentence = "Log loss ratio: the log loss divided by that of l1_fista, repeat"
        assert any(line.startswith(sentence) for line in caption(built))


def test_where_time_ends_every_repeat_the_numbers_are_those_at_its_limit(make: Make) -> None:
    limited = [row("l1_prox_newton", "lam=0.5", n, status="timeout", accuracy=0.7, message="after 9 s") for n in (0, 1)]
    mixed = [row("l1_prox_newton", "lam=0.2", 0), row("l1_prox_newton", "lam=0.2", 1, status="timeout", accuracy=0.1)]
    folder = make([*both()[:4], *limited, *mixed])
    lines = {line_label(line): line for line in table(folder).blocks[0].lines}
    timed_out, partly = (lines[f"prox-Newton lam={lam}"] for lam in (0.5, 0.2))
    assert (timed_out.n_ok, timed_out.timed_out, timed_out.entries["accuracy"].mean) == (0, True, 0.7)
    assert (partly.n_ok, partly.timed_out, partly.entries["accuracy"].mean) == (1, False, 0.85)
    text = shown(folder, width=150)
    assert "If no repeat finished within the time limit, the values are those at the limit." in text
    assert "timeout (repeat 0, 1): after 9 s" in text
