"""Metrics that are derived from the checkpoints and the rows of a fit, against values by hand."""

from math import inf, isnan
from pathlib import Path
from typing import Any

import pytest

from klr_bench.report.derived import with_derived
from klr_bench.report.load import read_results
from klr_bench.results.record import CellFile
from tests.report.folders import record, write_cells

CONFIG = {"datasets": {"digits": {"label": "Digits"}}, "algorithms": {"nc": {"label": "NC"}}}
ROWS = ((0.0, 0.0, 1), (6.0, 0.0, 2), (0.0, 8.0, 1), (6.0, 8.0, 2))  # each 5 from the mean (3, 4)


def derived(folder: Path, traces: list[tuple[int, str, float]], status: str = "ok", rows: Any = ()) -> dict[str, float]:
    cell = CellFile(
        record("nc", "", 0, dataset="digits", status=status, fit_time_s=1.0),
        "c-nc",
        1.0,
        [(t, 0.1 * t, name, value) for t, name, value in traces],
        (),
        rows=rows,
    )
    frame = with_derived(read_results(write_cells(folder, [cell], CONFIG)))
    return {str(name): value for name, value in frame.iloc[0].items()}


def test_the_late_gain_begins_at_the_last_checkpoint_in_the_first_half(tmp_path: Path) -> None:
    accuracies = [(1, 0.5), (4, 0.8), (5, 0.85), (9, 0.95), (10, 0.9)]
    traces = [(t, "accuracy", value) for t, value in accuracies]
    assert derived(tmp_path / "ok", traces)["late_gain"] == pytest.approx(0.05)
    assert isnan(derived(tmp_path / "timeout", traces, "timeout")["late_gain"])
    assert isnan(derived(tmp_path / "late", [(6, "accuracy", 0.5), (10, "accuracy", 0.9)])["late_gain"])


def test_the_first_and_the_mean_share_of_non_zero_coefficients(tmp_path: Path) -> None:
    found = derived(tmp_path / "some", [(1, "nonzero_fraction", 0.5), (2, "nonzero_fraction", 0.1)])
    assert (found["first_nonzero"], found["mean_nonzero"]) == (0.5, pytest.approx(0.3))
    assert isnan(derived(tmp_path / "none", [(1, "accuracy", 0.5)])["mean_nonzero"])


def test_the_shift_of_the_prototypes_is_relative_to_the_spread_of_the_rows(tmp_path: Path) -> None:
    """One of two prototypes moves by 5, then both by 1: the root mean squares are 5 / sqrt(2) and 1."""
    places = {1: ((0.0, 0.0), (1.0, 1.0)), 2: ((3.0, 4.0), (1.0, 1.0)), 3: ((3.0, 5.0), (2.0, 1.0))}
    traces = [
        (t, f"u_{j}_{k}", place)
        for t, prototypes in places.items()
        for j, prototype in enumerate(prototypes)
        for k, place in enumerate(prototype)
    ]
    assert derived(tmp_path / "plane", traces, rows=ROWS)["prototype_shift"] == pytest.approx((5 / 2**0.5 + 1) / 2 / 5)
    assert isnan(derived(tmp_path / "no rows", traces)["prototype_shift"])
    assert isnan(derived(tmp_path / "one", traces[:4], rows=ROWS)["prototype_shift"])


def test_the_early_gain_is_that_of_the_first_half_from_its_first_checkpoint(tmp_path: Path) -> None:
    traces = [(1, "accuracy", 0.5), (4, "accuracy", 0.8), (5, "accuracy", 0.85), (10, "accuracy", 0.9)]
    found = derived(tmp_path / "ok", traces)
    assert (found["early_gain"], found["late_gain"]) == (pytest.approx(0.35), pytest.approx(0.05))
    assert isnan(derived(tmp_path / "timeout", traces, "timeout")["early_gain"])


def test_the_time_near_the_smallest_objective_is_of_the_same_problem(tmp_path: Path) -> None:
    """The smallest objective is 100; another lam has another one, and a fit that is never near has no time."""
    objectives = {"fast": (1, (150.0, 100.9, 100.0)), "slow": (1, (180.0, 120.0, 101.0)), "never": (1, (150.0, 101.1))}
    objectives |= {"other": (2, (60.0, 50.0))}
    cells = [
        CellFile(
            record("nc", f"eta={place}", 0, key=name, dataset="digits", params={"lam": lam}, fit_time_s=1.0),
            name,
            1.0,
            [(t, 0.1 * t, "objective", value) for t, value in enumerate(values, 1)],
            (),
        )
        for place, (name, (lam, values)) in enumerate(objectives.items())
    ]
    frame = with_derived(read_results(write_cells(tmp_path / "all", cells, CONFIG))).set_index("key")
    times = frame["near_optimal_s"].to_dict()
    assert times == {"fast": 0.2, "slow": pytest.approx(0.3), "never": inf, "other": 0.2}


def test_the_shift_of_coefficients_is_relative_to_their_size(tmp_path: Path) -> None:
    """Both move by (3, 4) and are (0, 0), then (3, 4): 5 over sqrt(25 / 2)."""
    values = {1: (0.0, 0.0), 2: (3.0, 4.0)}
    traces = [(t, f"b_{j}_0", value) for t, row in values.items() for j, value in enumerate(row)]
    assert derived(tmp_path / "plane", traces)["coefficient_shift"] == pytest.approx(2**0.5)
    assert isnan(derived(tmp_path / "zero", [(t, "b_0_0", 0.0) for t in (1, 2)])["coefficient_shift"])
