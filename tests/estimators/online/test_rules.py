"""Test update rules, parameters, probabilities, labels and repeated calls of online learners."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone

from klr_bench import OSKL, BudgetOSKL, NonConservativeKLR, fit_many
from klr_bench.datasets.splits import Prepared
from klr_bench.estimators.core import losses
from klr_bench.runner.selection import score_fold
from tests.estimators import one_pass
from tests.estimators.samples import toy

LOGISTIC = [cls() for cls in (one_pass.NonConservativeKLR, one_pass.MarginKLR, one_pass.AuxiliaryKLR, one_pass.OSKL)]
LOGISTIC += [one_pass.KernelOGD(loss="logit"), one_pass.FOGD(), one_pass.NOGD()]
OTHERS = [cls() for cls in (one_pass.KernelOGD, one_pass.KernelPegasos, one_pass.KernelPerceptron)]
OTHERS += [one_pass.OSKL(loss="square", G=9.0), one_pass.FOGD(loss="hinge")]


def chance_of(z, h, aux_gamma):
    """Return the probability of an update by its definition, with 800 digits."""
    with localcontext(prec=800):
        odds = Decimal(-min(max(z, -1000.0), 1000.0)).exp()
        bound = 1 + Decimal(aux_gamma) * odds if h == "log_one_plus_gamma" else Decimal(aux_gamma) + odds
        return float((1 + odds).ln() / bound.ln())


@pytest.mark.parametrize("value", [-800.0, -40.0, 0.0, 40.0, 800.0, 1e300])
@pytest.mark.parametrize("h", ["log_gamma", "log_one_plus_gamma"])
@pytest.mark.parametrize("aux_gamma", [1.0, 1.01, 1e6])
def test_rules_at_extreme_margins(value, h, aux_gamma):
    auxiliary = one_pass.AuxiliaryKLR(h=h, aux_gamma=aux_gamma)
    update = auxiliary._update()
    for u in (1e-9, 0.5, 1 - 1e-9):
        insert, _, c = update.rule(1.0, value, u, 3, np.array(update.parameters))
        assert 0 <= c <= 1
        assert insert == (u < chance_of(value, h, aux_gamma))
    for learner in (auxiliary, one_pass.NonConservativeKLR(), one_pass.OSKL(G=1.5)):
        update = learner._update()
        insert, c = update.rule_of_many(value, 0.8, 0.5, np.array(update.parameters))
        assert 0 <= c <= 2
        assert insert or value >= 0


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (one_pass.MarginKLR(eta=2.0), r"'eta' parameter of MarginKLR must be a float in the range \(0.0, 2.0\) or"),
        (one_pass.MarginKLR(R=100.0, eta="R/sqrt(T)"), r"below 2. Got R/sqrt\(T\) = 5; use a smaller R"),
        (one_pass.OSKL(G=0.5), r"'G' parameter of OSKL must be at least 1 for the logit loss"),
        (one_pass.OSKL(loss="exponential", G=1.0), r"loss exceeds G = 1 in absolute value at example number \d+"),
    ],
)
def test_raises_for_invalid_parameters(learner, message):
    with pytest.raises(ValueError, match=message):
        learner.fit(*toy(n=400))


VALUES = {
    "logit": lambda z: losses.softplus(-z),
    "exponential": lambda z: math.exp(-z),
    "square": lambda z: (1 - z) ** 2,
    "squared_hinge": lambda z: max(0, 1 - z) ** 2,
    "smooth_hinge": lambda z: 0.5 - z if z <= 0 else max(0, 1 - z) ** 2 / 2,
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_derivatives_of_smooth_losses_equal_finite_differences(name, y):
    for f in np.linspace(-2.93, 2.93, 60):
        slope = (VALUES[name](y * (f + 1e-6)) - VALUES[name](y * (f - 1e-6))) / 2e-6
        assert losses.derivative(losses.LOSSES[name], y, f, 0.0) == pytest.approx(slope, abs=1e-8, rel=1e-7)


@pytest.mark.parametrize("learner", LOGISTIC + OTHERS, ids=str)
def test_probabilities_are_the_sigmoid_of_the_logistic_loss(learner):
    assert hasattr(learner, "predict_proba") == (learner in LOGISTIC)
    if learner in LOGISTIC:
        X, y = toy()
        learner = clone(learner).fit(X, y)
        p = expit(learner.decision_function(X))
        np.testing.assert_allclose(learner.predict_proba(X), np.column_stack([1 - p, p]), atol=1e-15)


def test_cumulative_loss_requires_the_logistic_loss():
    X, y = toy()
    assert "cumulative_loss" in one_pass.OSKL().fit(X, y).progress()
    assert "cumulative_loss" not in one_pass.OSKL(loss="square", G=9.0).fit(X, y).progress()
    passes = one_pass.NonConservativeKLR(n_epochs=3, random_state=0).fit(X, y)
    assert passes.cumulative_loss_ > 1.5 * clone(passes).set_params(n_epochs=1).fit(X, y).cumulative_loss_


@pytest.mark.parametrize("cls", [one_pass.NonConservativeKLR, one_pass.MarginKLR, one_pass.AuxiliaryKLR])
def test_step_size_from_radius_and_number_of_rows(cls):
    X, y = toy(n=400)
    named, number = (cls(R=9.0, eta=eta, random_state=0).fit(X, y) for eta in ("R/sqrt(T)", 9.0 / 20.0))
    np.testing.assert_array_equal(named.dual_coef_, number.dual_coef_)
    (together,) = fit_many([clone(named)], X, y)
    np.testing.assert_allclose(together.dual_coef_, number.dual_coef_, rtol=1e-10)


def test_an_invalid_step_size_does_not_stop_other_learners_of_the_pass():
    X, y = toy(n=400)
    steps = {"eta": "R/sqrt(T)", "n_epochs": 1, "shuffle": False}
    targets = [("NonConservativeKLR", 1.0), ("NonConservativeKLR", 1e5), ("MarginKLR", 1.0), ("MarginKLR", 1e5)]
    learners = [{"_target_": f"klr_bench.{name}", "R": R, **steps} for name, R in targets]
    kernel = {"kernel": "rbf", "gamma": 1.0}
    scores = score_fold(learners, kernel, Prepared(X, y, X, y), 0, folds=3, seed=0)
    assert [score is None for score in scores] == [False, False, False, True]


def test_ties_predict_the_first_class():
    X, y = toy()
    learner = one_pass.OSKL(random_state=0).fit(X, np.where(y > 0, "h", "g"))
    learner.dual_coef_ = np.zeros_like(learner.dual_coef_)
    assert learner.predict(X[:1]).tolist() == ["g"]


def test_callback_sees_a_fitted_learner_and_stops_it():
    X, y = toy(n=2000)
    seen = []

    def callback(learner, t):
        seen.append((t, learner.t_, learner.n_support_, learner.score(X[:50], y[:50])))
        return t >= 512

    learner = one_pass.NonConservativeKLR(n_epochs=3).fit(X, y, callback=callback)
    assert [t for t, *_ in seen] == [256, 512]
    assert all(t == t_ == n_support for t, t_, n_support, _ in seen)
    np.testing.assert_array_equal(learner.dual_coef_, one_pass.NonConservativeKLR().fit(X[:512], y[:512]).dual_coef_)


def test_a_callback_in_a_later_pass_counts_each_row_once():
    X, y = toy(n=600)
    seen = []
    learner = NonConservativeKLR(n_epochs=3, random_state=0)
    learner.fit(X, y, callback=lambda model, t: seen.append((t, model.n_support_)) and False)
    assert seen[-1] == (1800, learner.n_support_) == (1800, 600)


def test_a_callback_ends_the_validation_of_passes_and_the_refit():
    X, y = toy(n=2000)
    y = np.where(np.arange(2000) % 20 == 0, y, -1)
    for learner in (OSKL(random_state=0), BudgetOSKL(budget=50, refit=True, random_state=0)):
        seen = []
        learner.fit(X, y, callback=lambda _, t, seen=seen: seen.append(t))
        is_budget = isinstance(learner, BudgetOSKL)
        assert (seen.count(0) > 2) != is_budget
        assert (seen.count(seen[-1]) > 1) == is_budget
        few = []
        clone(learner).fit(X, y, callback=lambda _, t, few=few: few.append(t) or True)
        assert len(few) == (1 if is_budget else 2)


@pytest.mark.parametrize("average", [False, True])
def test_partial_fit_keeps_the_kernel_and_does_not_modify_earlier_coefficients(average):
    X, y = toy()
    learner = one_pass.KernelPegasos(average=average, gamma=0.7).partial_fit(X, y)
    f, coef = learner.decision_function(X), learner.dual_coef_
    np.testing.assert_array_equal(learner.set_params(gamma=50.0).decision_function(X), f)
    copy = coef.copy()
    learner.set_params(gamma=0.7).partial_fit(X, y)
    np.testing.assert_array_equal(coef, copy)
