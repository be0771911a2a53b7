"""From checkpoints to regret, support vectors and their bounds."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from klr_bench.estimators.online import bounds
from klr_bench.report.bounded import DELTA, Bounded, bound_ratios, bounded, bounds_of
from klr_bench.report.figures import Inputs, draw_all, find
from klr_bench.report.figures.bound_examples import TRIVIAL
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


def fit(algorithm: str, loss: float = 0.0, repeat: int = 0, **params: Any) -> CellFile:
    """Return a fit whose cumulative loss, `loss` at the end, grows evenly; every second example is a support vector."""
    cell = made.cell(algorithm, params, repeat=repeat, metrics={"n_train": float(N), "n_support": N / 2})
    ends = {"cumulative_loss": loss, "n_support": N / 2}
    if algorithm == "hindsight":
        ends = {"cumulative_loss": LOSS, "cumulative_h": H, "n_support": float(N)}
    points = [(t, 0.1, name, value * t / N) for t in (N // 2, N) for name, value in ends.items()]
    points += [(t, 0.1, "norm", NORM) for t in (N // 2, N) if algorithm == "hindsight"]
    record = replace(cell.record, params=ONCE | PARAMS[algorithm] | params)
    return replace(cell, record=record, checkpoints=points)


def curves_of(inputs: Inputs) -> dict[str, Bounded]:
    return {algorithm: curves for (_, algorithm, _), curves in bounded(inputs.traces, inputs.records).items()}


def has(curves: Bounded, column: str) -> bool:
    return bool(curves.curve[column].notna().any())


@pytest.fixture(scope="module")
def learners(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    """Return a fit of each learner with a loss of 0.25 per example, and of the comparator."""
    return made.inputs(tmp_path_factory.mktemp("learners"), *(fit(name, 2_500) for name in PARAMS))


def test_regret_is_that_against_the_comparator_of_the_same_repeat(tmp_path: Path) -> None:
    comparators = [fit("hindsight", repeat=repeat) for repeat in (0, 1)]
    nc = curves_of(made.inputs(tmp_path, fit("nc", 2_100), fit("nc", 2_300, repeat=1), *comparators))["nc"]
    T, loss = np.array([N // 2, N]), np.array([1_000, 2_000])
    assert nc.curve["t"].tolist() == T.tolist()
    np.testing.assert_allclose(nc.curve["regret"], [100, 200])
    np.testing.assert_allclose(nc.curve["regret_of_zero"], T * math.log(2) - loss)
    np.testing.assert_allclose(nc.curve["regret_bound"], bounds.nc_loss_bound(T, loss, NORM, 3 / math.sqrt(N)) - loss)
    assert not has(nc, "support_bound")
    assert nc.starts["support_bound"] is None


def test_each_learner_has_its_own_bound(learners: Inputs) -> None:
    curves = curves_of(learners)
    loss_bounds = {
        "margin": bounds.margin_loss_bound(LOSS, NORM, 0.5),
        "auxiliary": bounds.auxiliary_loss_bound(N, H, NORM, 0.2),
        "oskl": bounds.oskl_loss_bound(N, LOSS, 3.0, 0.3, 1.0, DELTA),
    }
    support_bounds = {
        "margin": bounds.margin_support_bound(N, 2_500, 0.5),
        "auxiliary": bounds.auxiliary_support_bound(2_500, "log_gamma", 1.1),
        "oskl": bounds.oskl_support_bound(N, 2_500, 1.0, DELTA),
    }
    assert set(curves) == {"nc", *loss_bounds}
    for name, loss in loss_bounds.items():
        last = curves[name].curve.iloc[-1]
        assert last["regret_bound"] == pytest.approx(float(loss) - LOSS)
        assert last["support_bound"] == pytest.approx(float(support_bounds[name]))


def test_from_where_on_a_bound_is_useful(learners: Inputs) -> None:
    """A comparator's loss of 0.2: Margin's bound is below T log(2) from T (log(2) - 0.8/3) = 6.25/0.75 on."""
    starts = {name: curves.starts for name, curves in curves_of(learners).items()}
    assert starts["margin"]["regret_bound"] == math.ceil(6.25 / 0.75 / (math.log(2) - 0.8 / 3)) == 20
    assert starts["margin"]["support_bound"] == 1
    assert starts["auxiliary"]["support_bound"] is None, "a loss of 0.25 is more than log(1.1)"
    start = starts["oskl"]["support_bound"]
    assert start is not None
    before, at = (float(bounds.oskl_support_bound(T, 0.25 * T, 1.0, DELTA)) for T in (start - 1, start))
    assert at < start <= before + 1
    plot: Any = find("bound_examples").plot(learners)  # type: ignore[misc]
    regret, support = ({name for series in facet.series for name in series.names} for facet in plot.facets)
    assert f"margin, bound, from T = 20 on below {TRIVIAL.label}" in regret
    never = f"auxiliary, bound, never below {TRIVIAL.label}"
    assert {never, f"margin, bound, from T = 1 on below {TRIVIAL.label}", "nc"} < support
    assert not any(name.startswith("nc, bound") for name in support), "no theorem bounds the support vectors of NC"


def test_auxiliary_is_compared_by_its_own_h(tmp_path: Path) -> None:
    cells = [fit("auxiliary", 2_500, aux_gamma=2.0), fit("hindsight")]
    other = curves_of(made.inputs(tmp_path / "other", *cells))["auxiliary"]
    assert has(other, "regret")
    assert not has(other, "regret_bound"), "the sum is that of another h"
    assert other.starts["regret_bound"] is None
    same = curves_of(made.inputs(tmp_path / "same", *cells, fit("hindsight", aux_gamma=2.0)))["auxiliary"]
    assert has(same, "regret_bound")


def test_where_a_theorem_does_not_hold_there_is_no_bound() -> None:
    for algorithm, name, value in (
        *(("nc", "n_epochs", 2), ("nc", "shuffle", True), ("nc", "kernel", "poly"), ("margin", "eta", 2.0)),
        *(("oskl", "eta", 1.0), ("oskl", "loss", "square"), ("oskl", "R", math.inf), ("auxiliary", "h", "other")),
    ):
        assert bounds_of(algorithm, ONCE | PARAMS[algorithm], N)
        assert bounds_of(algorithm, ONCE | PARAMS[algorithm] | {name: value}, N) is None
    assert bounds_of("pegasos", ONCE | {"eta": 0.5}, N) is None


def test_without_a_comparator_support_vectors_are_drawn(tmp_path: Path) -> None:
    inputs = made.inputs(tmp_path, fit("oskl", 2_500))
    oskl = curves_of(inputs)["oskl"]
    assert (has(oskl, "regret"), has(oskl, "support_bound")) == (False, True)
    assert set(draw_all(inputs, ["bound_examples"]).files) == {"bound_examples.png", "bound_examples.svg"}


def test_the_ratio_to_a_bound_is_the_largest_over_the_checkpoints(learners: Inputs) -> None:
    ratios = bound_ratios(learners.traces, learners.records)
    keys = learners.records.set_index("algorithm")["key"]
    for algorithm, (curve, _) in curves_of(learners).items():
        loss_over_bound = (curve["own"] / (curve["regret_bound"] + curve["loss"])).max()
        assert ratios.loc[keys[algorithm], "loss_over_bound"] == pytest.approx(loss_over_bound)
        support_over_bound = (curve["n_support"] / curve["support_bound"]).max()
        found = ratios.loc[keys[algorithm], "support_over_bound"]
        assert found == pytest.approx(support_over_bound, nan_ok=True)
    alone = learners.records[learners.records["algorithm"] != "hindsight"]
    assert bound_ratios(learners.traces, alone).empty
