"""What each online learner does with an example: its step, its parameters, its probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone

from klr_bench import fit_many
from klr_bench.datasets.splits import Prepared
from klr_bench.estimators.core import losses
from klr_bench.estimators.online.many import SharedFit
from klr_bench.runner.selection import score_fold
from tests.estimators.one_pass import (
    OSKL,
    AuxiliaryKLR,
    KernelOGD,
    KernelPegasos,
    KernelPerceptron,
    MarginKLR,
    NonConservativeKLR,
)
from tests.estimators.samples import toy

LOGISTIC = [NonConservativeKLR(), MarginKLR(), AuxiliaryKLR(), OSKL(), KernelOGD(loss="logit")]
OTHERS = [OSKL(loss="square", G=9.0), KernelOGD(), KernelPegasos(), KernelPerceptron()]


def test_auxiliary_with_gamma_one_is_non_conservative():
    X, y = toy()
    for h in ("log_gamma", "log_one_plus_gamma"):
        one = AuxiliaryKLR(h=h, aux_gamma=1.0, random_state=0, dtype="float64").fit(X, y)
        np.testing.assert_allclose(one.dual_coef_, NonConservativeKLR(dtype="float64").fit(X, y).dual_coef_, rtol=1e-12)


@pytest.mark.parametrize("value", [-800.0, -40.0, 0.0, 40.0, 800.0, 1e300])
@pytest.mark.parametrize("h", ["log_gamma", "log_one_plus_gamma"])
@pytest.mark.parametrize("aux_gamma", [1.0, 1.01, 1e6])
def test_auxiliary_rule_at_extreme_margins(value, h, aux_gamma):
    from klr_bench.estimators.online.auxiliary import step_on_auxiliary

    learner = AuxiliaryKLR(h=h, aux_gamma=aux_gamma)
    parameters, _ = learner._rule_arguments()
    insert, _, c = step_on_auxiliary(1.0, value, 0.5, 3, np.array(parameters))
    assert np.isfinite(c)
    assert 0 <= c <= 1
    assert insert or value >= 0


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (MarginKLR(eta=2.0), r"'eta' parameter of MarginKLR must be a float in the range \(0.0, 2.0\) or"),
        (MarginKLR(R=100.0, eta="R/sqrt(T)"), r"below 2. Got R/sqrt\(T\) = 5; use a smaller R"),
        (OSKL(G=0.5), r"'G' parameter of OSKL must be at least G1 = 1, the bound of the logit loss"),
        (OSKL(loss="exponential", G=1.0), r"exponential loss exceeds G = 1 at example \d+; G must be at least G1"),
    ],
)
def test_refuses_parameters(learner, message):
    with pytest.raises(ValueError, match=message):
        learner.fit(*toy(n=400))


@pytest.mark.parametrize("name", ["logit", "exponential", "square", "squared_hinge", "smooth_hinge"])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_slopes_of_smooth_losses_are_those_of_their_values(name, y):
    values = {
        "logit": lambda z: losses.softplus(-z),
        "exponential": lambda z: math.exp(-z),
        "square": lambda z: (1 - z) ** 2,
        "squared_hinge": lambda z: max(0, 1 - z) ** 2,
        "smooth_hinge": lambda z: 0.5 - z if z <= 0 else max(0, 1 - z) ** 2 / 2,
    }
    step = 1e-6
    for f in np.linspace(-2.93, 2.93, 60):
        slope = (values[name](y * (f + step)) - values[name](y * (f - step))) / (2 * step)
        assert losses.derivative(losses.LOSSES[name], y, f, 0.0) == pytest.approx(slope, abs=1e-8, rel=1e-7)


@pytest.mark.parametrize("learner", LOGISTIC + OTHERS, ids=str)
def test_probabilities_are_the_sigmoid_of_the_logistic_loss(learner):
    assert hasattr(learner, "predict_proba") == (learner in LOGISTIC)
    if learner in LOGISTIC:
        X, y = toy()
        learner = clone(learner).fit(X, y)
        p = expit(learner.decision_function(X))
        np.testing.assert_allclose(learner.predict_proba(X), np.column_stack([1 - p, p]), atol=1e-15)


def test_the_cumulative_loss_is_that_of_probabilities():
    X, y = toy()
    assert "cumulative_loss" in OSKL().fit(X, y).progress()
    assert "cumulative_loss" not in OSKL(loss="square", G=9.0).fit(X, y).progress()
    passes = NonConservativeKLR(n_epochs=3, random_state=0).fit(X, y)
    assert passes.cumulative_loss_ > 1.5 * clone(passes).set_params(n_epochs=1).fit(X, y).cumulative_loss_


@pytest.mark.parametrize("learner", [NonConservativeKLR(R=9.0), MarginKLR(R=9.0), AuxiliaryKLR(R=9.0)])
def test_a_step_size_by_radius_and_number_of_rows(learner):
    X, y = toy(n=400)
    named = clone(learner).set_params(eta="R/sqrt(T)", random_state=0).fit(X, y)
    number = clone(learner).set_params(eta=9.0 / 20.0, random_state=0).fit(X, y)
    np.testing.assert_array_equal(named.dual_coef_, number.dual_coef_)
    (together,) = fit_many([clone(named)], X, y)
    np.testing.assert_allclose(together.dual_coef_, number.dual_coef_, rtol=1e-10)


def test_a_step_that_is_too_large_for_one_does_not_stop_those_that_share_its_pass():
    X, y = toy(n=400)
    shared = SharedFit([MarginKLR(R=R, eta="R/sqrt(T)") for R in (100.0, 1.0)], X, y)
    assert shared.refused.tolist() == [True, False]
    steps = {"eta": "R/sqrt(T)", "n_epochs": 1, "shuffle": False}
    learners = [
        {"_target_": f"klr_bench.{name}", "R": R, **steps}
        for name in ("NonConservativeKLR", "MarginKLR")
        for R in (1.0, 1e5)
    ]
    nc, nc_large, margin, refused = score_fold(
        learners, {"kernel": "rbf", "gamma": 1.0}, Prepared(X, y, X, y), 0, folds=3, seed=0
    )
    assert None not in (nc, nc_large, margin)
    assert refused is None
