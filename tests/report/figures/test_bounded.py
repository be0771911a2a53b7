"""From checkpoints to regret, support vectors and their bounds."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from klr_bench.estimators.online import bounds
from klr_bench.report.figures import Inputs, draw_all, find
from klr_bench.report.figures.bound_examples import DELTA, TRIVIAL, bounded, bounds_of
from klr_bench.results.record import CellFile
from tests.report.figures import made

ONCE = {"n_epochs": 1, "shuffle": False, "gamma": 8.0}
PARAMS: dict[str, dict[str, Any]] = {
    "nc": {"R": 3.0, "eta": "R/sqrt(T)"},
    "margin": {"R": 3.0, "eta": 0.5},
    "auxiliary": {"R": 3.0, "eta": 0.2, "h": "log_gamma", "aux_gamma": 1.1},
    "oskl": {"R": 3.0, "eta": 0.3, "G": 1.0},
    "hindsight": {"R": 3.0, "h": "log_gamma", "aux_gamma": 1.1},
}
N = 10_000
LOSS, H, NORM = 2_000.0, 2_900.0, 2.5
"""Of the comparator, over all rows."""


def fit(algorithm: str, own: float = 0.0, repeat: int = 0, **params: Any) -> CellFile:
    """Return a fit whose cumulative loss, `own` at the end, grows evenly; every second example is a support vector."""
    cell = made.cell(algorithm, params, repeat=repeat, metrics={"n_train": float(N), "n_support": N / 2})
    ends = {"cumulative_loss": own, "n_support": N / 2}
    if algorithm == "hindsight":
        ends = {"cumulative_loss": LOSS, "cumulative_h": H, "n_support": float(N)}
    points = [(t, 0.1, name, value * t / N) for t in (N // 2, N) for name, value in ends.items()]
    points += [(t, 0.1, "norm", NORM) for t in (N // 2, N) if algorithm == "hindsight"]
    record = replace(cell.record, params=ONCE | PARAMS[algorithm] | params)
    return replace(cell, record=record, checkpoints=points)


def curves_of(folder: Path, *cells: CellFile) -> tuple[dict[str, Any], Inputs]:
    inputs = made.read(made.write(folder, cells))
    return {place[1]: curves for place, curves in bounded(inputs.traces, inputs.records).items()}, inputs


def test_regret_is_beside_the_comparator_of_the_same_repeat(tmp_path: Path) -> None:
    found, _ = curves_of(
        tmp_path, fit("nc", 2_100), fit("nc", 2_300, repeat=1), *(fit("hindsight", repeat=i) for i in (0, 1))
    )
    curve = found["nc"].curve
    assert curve["t"].tolist() == [N // 2, N]
    assert curve["regret"].tolist() == pytest.approx([100, 200])
    assert curve["regret_of_zero"].tolist() == pytest.approx([N / 2 * math.log(2) - 1_000, N * math.log(2) - 2_000])
    expected = bounds.nc_loss_bound(np.array([N // 2, N]), np.array([1_000, 2_000]), NORM, 3 / math.sqrt(N))
    assert curve["regret_bound"].tolist() == pytest.approx((expected - [1_000, 2_000]).tolist())
    assert not found["nc"].curve["support_bound"].notna().any()
    assert found["nc"].starts["support_bound"] is None


def test_each_learner_has_its_own_bound(tmp_path: Path) -> None:
    found, _ = curves_of(tmp_path, *(fit(name, 2_500) for name in PARAMS))
    assert set(found) == {"nc", "margin", "auxiliary", "oskl"}
    expected = {
        "margin": (bounds.margin_loss_bound(LOSS, NORM, 0.5), bounds.margin_support_bound(N, 2_500, 0.5)),
        "auxiliary": (
            bounds.auxiliary_loss_bound(N, H, NORM, 0.2), bounds.auxiliary_support_bound(2_500, "log_gamma", 1.1)
        ),
        "oskl": (
            bounds.oskl_loss_bound(N, LOSS, 3.0, 0.3, 1.0, DELTA), bounds.oskl_support_bound(N, 2_500, 1.0, DELTA)
        ),
    }  # fmt: skip
    for name, (loss, support) in expected.items():
        last = found[name].curve.iloc[-1]
        assert last["regret_bound"] == pytest.approx(float(loss) - LOSS)
        assert last["support_bound"] == pytest.approx(float(support))


def test_from_where_on_a_bound_says_something(tmp_path: Path) -> None:
    """A loss of 0.2 per example: Margin's bound is below T log(2) from  T (log(2) - 0.8/3) = 6.25/0.75  on."""
    found, _ = curves_of(tmp_path, *(fit(name, 2_500) for name in PARAMS))
    assert found["margin"].starts["regret_bound"] == math.ceil(6.25 / 0.75 / (math.log(2) - 0.8 / 3))
    assert found["margin"].starts["support_bound"] == 1
    assert found["auxiliary"].starts["support_bound"] is None, "a loss of 0.25 is more than log(1.1)"
    start = found["oskl"].starts["support_bound"]
    before, at = (float(bounds.oskl_support_bound(T, 0.25 * T, 1.0, DELTA)) for T in (start - 1, start))
    assert before >= start - 1
    assert at < start


def test_auxiliary_is_compared_by_its_own_h(tmp_path: Path) -> None:
    found, _ = curves_of(tmp_path, fit("auxiliary", 2_500, aux_gamma=2.0), fit("hindsight"))
    assert found["auxiliary"].curve["regret"].notna().any()
    assert not found["auxiliary"].curve["regret_bound"].notna().any(), "the sum is that of another h"
    assert found["auxiliary"].starts["regret_bound"] is None
    (tmp_path / "both").mkdir()
    found, _ = curves_of(
        tmp_path / "both", fit("auxiliary", 2_500, aux_gamma=2.0), fit("hindsight"), fit("hindsight", aux_gamma=2.0)
    )
    assert found["auxiliary"].curve["regret_bound"].notna().any()


@pytest.mark.parametrize(
    ("algorithm", "params"),
    [
        *(("nc", {"n_epochs": 2}), ("nc", {"shuffle": True}), ("nc", {"kernel": "poly"}), ("margin", {"eta": 2.0})),
        *(("oskl", {"eta": 1.0}), ("oskl", {"loss": "square"}), ("oskl", {"R": math.inf})),
        *(("auxiliary", {"h": "other"}), ("pegasos", {"eta": 0.5})),
    ],
)
def test_where_a_theorem_does_not_hold_there_is_no_bound(algorithm: str, params: dict[str, Any]) -> None:
    usual = ONCE | PARAMS.get(algorithm, {})
    assert algorithm == "pegasos" or bounds_of(algorithm, usual, N)
    assert bounds_of(algorithm, usual | params, N) is None


def test_without_a_comparator_support_vectors_are_drawn(tmp_path: Path) -> None:
    found, inputs = curves_of(tmp_path, fit("oskl", 2_500))
    assert not found["oskl"].curve["regret"].notna().any()
    assert found["oskl"].curve["support_bound"].notna().any()
    assert set(draw_all(inputs, ["bound_examples"]).files) == {"bound_examples.png", "bound_examples.svg"}


def test_the_points_of_a_bound_say_from_where_on_it_holds(tmp_path: Path) -> None:
    _, inputs = curves_of(tmp_path, *(fit(name, 2_500) for name in PARAMS))
    regret, support = (
        {name for one in facet.series for name in one.names} for facet in find("bound_examples").plot(inputs).facets
    )
    assert "margin, bound, from T = 20 on below f = 0; every example" in regret
    never, always = (
        f"auxiliary, bound, never below {TRIVIAL.label}",
        f"margin, bound, from T = 1 on below {TRIVIAL.label}",
    )
    assert {never, always, "nc"} < support
    assert not any(name.startswith("nc, bound") for name in support), "no theorem bounds the support vectors of NC"
