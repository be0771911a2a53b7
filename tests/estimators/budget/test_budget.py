"""The learners with a budget: equal to the reference, and true to their definitions."""

from __future__ import annotations

import inspect
import math
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.base import clone

from klr_bench.estimators.budget import projecting, projection
from klr_bench.estimators.budget.bogd import removal_scale, removal_weight
from klr_bench.estimators.online import strategies
from tests.cover import cover
from tests.estimators import one_pass
from tests.estimators.samples import KERNELS, LAYOUTS, draws, laid_out, suited, toy
from tests.reference import kernel as reference

CASES = {
    "forgetron": one_pass.Forgetron(),
    "forgetron self-tuned": one_pass.Forgetron(variant="self_tuned"),
    "rbp": one_pass.RandomizedBudgetPerceptron(),
    "bogd": one_pass.BOGD(eta=0.7, lam=0.01, gamma_max=1.5),
    "bogd++": one_pass.BOGDPlusPlus(eta=0.5, lam=0.02, gamma_max=3.0),
    "oskl": one_pass.BudgetOSKL(G=1.5, eta=0.4),
    "oskl exponential": one_pass.BudgetOSKL(G=5.0, eta=0.03, loss="exponential"),
    "oskl square": one_pass.BudgetOSKL(G=6.0, eta=0.04, loss="square", delta=0.5),
    "bsgd": one_pass.BSGD(lam=0.02),
    "bsgd logit": one_pass.BSGD(lam=0.05, loss="logit"),
    "bsgd projection": one_pass.BSGD(lam=0.02, maintenance="projection"),
    "bsgd projection logit": one_pass.BSGD(lam=0.05, loss="logit", maintenance="projection"),
    "norma": one_pass.NORMA(eta=0.7, lam=0.03),
    "norma logit": one_pass.NORMA(eta=0.7, lam=0.03, loss="logit"),
    "projectron": one_pass.Projectron(),
    "projectron++": one_pass.ProjectronPlusPlus(eta=0.8),
}
REFERENCES = {
    "Forgetron": reference.forgetron,
    "RandomizedBudgetPerceptron": reference.rbp,
    "BOGD": partial(reference.bogd, by_length=False),
    "BOGDPlusPlus": partial(reference.bogd, by_length=True),
    "BudgetOSKL": reference.budget_oskl,
    "BSGD": reference.bsgd,
    "NORMA": reference.norma,
    "Projectron": reference.projectron,
    "ProjectronPlusPlus": reference.projectron,
}
"""By the names of the classes; they take the parameters of a learner that they name."""
PROJECTING = [case for case in CASES if "project" in case]
REPLACING = [case for case in CASES if case not in PROJECTING]


def fitted(case, X, y, budget, *, average=False, **parameters):
    learner = clone(CASES[case]).set_params(budget=budget, average=average, random_state=0, **parameters)
    return learner.fit(X, y)


def expected(case, K, y, budget):
    """Return f by the reference, for kernel values K; in float32 they stand for a learner in single precision."""
    function, options = REFERENCES[type(CASES[case]).__name__], CASES[case].get_params() | {"draws": draws(len(y))}
    names = inspect.signature(function).parameters
    return function(K, y, **{name: options[name] for name in names if name in options} | {"budget": budget})


def assert_same_learner(learner, X, f, *, rtol, atol=1e-12):
    """Compare with the reference: who was ever in, who is left, and every coefficient."""
    dense = learner.support_vectors_.toarray() if sp.issparse(learner.support_vectors_) else learner.support_vectors_
    members = f.inserted if learner.average else np.isin(np.arange(len(X)), f.places)
    coef = (f.total / len(X) if learner.average else f.coef)[members]
    assert learner.n_support_ == len(dense) == members.sum()
    np.testing.assert_array_equal(dense, X[members].astype(dense.dtype))
    np.testing.assert_allclose(learner.dual_coef_, coef, rtol=rtol, atol=atol)
    assert learner.n_updates_ == f.inserted.sum()


def kernel_matrix(X, kernel):
    return reference.kernel_matrix(X, X, **kernel)


@cover(
    3,
    case=list(CASES),
    budget=[1, 2, 9, 40],
    kernel=KERNELS,
    layout=[layout for layout in LAYOUTS if layout not in ("bits", "csr as bits")],  # where f is 0 but for rounding
    block=[1, 7, 64, 128],
    average=[False, True],
)
def test_equals_the_reference_in_double(case, budget, kernel, layout, block, average, monkeypatch):
    monkeypatch.setattr(strategies, "BLOCK", block)
    monkeypatch.setattr(strategies, "LARGE", 10)  # shorter blocks for a budget of 40
    monkeypatch.setattr(projecting.ProjectingState, "block", block)
    monkeypatch.setattr(projection, "BLOCK", block)
    monkeypatch.setattr(projection, "AHEAD", block)
    X, y = toy(n=150)
    X = suited(X, layout)
    learner = fitted(case, laid_out(X, layout, monkeypatch), y, budget, average=average, **kernel)
    f = expected(case, kernel_matrix(X, kernel), y, budget)
    tolerance = 1e-10 if case in REPLACING else 1e-5  # a matrix that is close to singular is solved with
    assert_same_learner(learner, X, f, rtol=tolerance, atol=tolerance * np.abs(f.coef).max())


@settings(max_examples=60)
@given(st.sampled_from(sorted(CASES)), st.integers(1, 60), st.integers(2, 330), st.integers(0, 50), st.booleans())
def test_equals_the_reference_for_any_budget_and_length(case, budget, n, seed, average):
    X, y = toy(n=n, seed=seed)
    y[0] = -y[1]
    learner = fitted(case, X, y, budget, average=average, gamma=2.0)
    f = expected(case, kernel_matrix(X, {"gamma": 2.0}), y, budget)
    tolerance = 1e-9 if case in REPLACING else 1e-4
    assert_same_learner(learner, X, f, rtol=tolerance, atol=tolerance * np.abs(f.coef).max())
    assert learner.last_classifier().n_support_ == len(f.places) <= budget


@pytest.mark.parametrize("case", REPLACING)
def test_in_single_precision_up_to_rounding(case):
    X, y = toy(n=300)
    learner = fitted(case, X.astype(np.float32), y, 30, gamma=2.0, average=True)
    assert learner.support_vectors_.dtype == np.float32
    f = expected(case, kernel_matrix(X.astype(np.float32), {"gamma": 2.0}).astype(np.float32), y, 30)
    assert_same_learner(learner, X, f, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize(
    ("case", "free"),
    [
        *((case, one_pass.KernelPerceptron()) for case in ("rbp", "forgetron self-tuned", "projectron")),
        ("bsgd", one_pass.KernelPegasos(lam=0.02, project=False)),
        ("norma", one_pass.KernelOGD(eta=0.7)),
        ("norma logit", one_pass.KernelOGD(eta=0.7, loss="logit")),
        *((case, one_pass.OSKL(R=np.inf)) for case in ("oskl", "oskl exponential", "oskl square")),
    ],
)
def test_a_budget_for_all_is_the_learner_without(case, free, average):
    X, y = toy(n=300)
    learner = fitted(case, X, y, 300, gamma=2.0, average=average, **({"lam": 0.0} if "norma" in case else {}))
    options = {name: value for name, value in learner.get_params().items() if name in ("G", "loss", "delta")}
    options = options | {"eta": learner.eta, "random_state": 0} if "oskl" in case else {}
    free = clone(free).set_params(gamma=2.0, average=average, **options).fit(X, y)
    if case in REPLACING:  # a Projectron leaves out what lies in the span of others
        np.testing.assert_array_equal(learner.support_vectors_, free.support_vectors_)
        np.testing.assert_allclose(learner.dual_coef_, free.dual_coef_, rtol=1e-10)
    np.testing.assert_allclose(learner.decision_function(X), free.decision_function(X), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("case", ["norma", "norma logit"])
def test_what_norma_removes_is_as_small_as_promised(case):
    X, y = toy(n=200)
    learner, n_full = clone(CASES[case]).set_params(budget=15, gamma=2.0), 0
    for n in range(200):
        learner.partial_fit(X[n : n + 1], y[n : n + 1], classes=[-1, 1])
        if learner.n_support_ == 15:
            n_full += 1
            assert 0 < abs(learner.dual_coef_[0]) <= 0.7 * (1 - 0.7 * 0.03) ** 14 * (1 + 1e-12)
    assert n_full > 50


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(0, 100), st.booleans())
def test_oskl_with_a_budget_never_has_more(budget, seed, average):
    X, y = toy(n=300, seed=seed)
    learner = one_pass.BudgetOSKL(budget=budget, gamma=2.0, random_state=seed, average=average).fit(X, y)
    assert learner.n_support_ == learner.n_updates_ == learner.last_classifier().n_support_ <= budget
    np.testing.assert_allclose(learner.predict_proba(X)[:, 1], expit(learner.decision_function(X)))


def test_a_step_with_a_full_budget_goes_as_far_down_as_one_support_vector_can():
    """Of all multiples of one support vector, the projection of the gradient is the nearest to it."""
    X, y = toy(n=61)
    before, after = (fitted("oskl", X[:n], y[:n], 5, gamma=2.0) for n in (60, 61))
    moved = after.dual_coef_ - before.dual_coef_
    (j,) = np.flatnonzero(moved)
    k = reference.kernel_matrix(before.support_vectors_, X[60:], gamma=2.0)[:, 0]
    slope = -y[60] * expit(-y[60] * before.decision_function(X[60:])[0])
    assert j == np.argmin(1 - k**2)  # what is left of the squared length of the gradient
    assert moved[j] == pytest.approx(-0.4 * slope * k[j])


@pytest.mark.parametrize("loss", ["exponential", "square"])
@pytest.mark.parametrize("budget", [1, 300])
def test_oskl_with_a_budget_refuses_a_derivative_above_its_bound(loss, budget):
    """With room for all and with a full budget: the example at which the reference first exceeds G."""
    X, y = toy(n=300)
    K, u, eta = kernel_matrix(X, {"gamma": 2.0}), draws(300), 0.9 if loss == "exponential" else 0.3
    for first in range(1, 301):
        try:
            f = reference.budget_oskl(K[:first, :first], y[:first], budget, u, 2.0, eta, loss)
        except AssertionError:
            break
    assert first < 300
    assert (len(f.places) == budget) == (budget == 1)
    learner = one_pass.BudgetOSKL(budget, 2.0, eta, loss, gamma=2.0, random_state=0)
    learner.partial_fit(X[: first - 1], y[: first - 1], classes=[-1, 1])
    assert learner.n_support_ == len(f.places)
    with pytest.raises(ValueError, match=f"of the {loss} loss exceeds G = 2 at example {first}; G must be at least"):
        learner.fit(X, y)


@settings(max_examples=60)
@given(st.integers(1, 20), st.integers(0, 1000), st.sampled_from([0.1, 1.0, 10.0]))
def test_the_self_tuned_forgetron_never_grows(budget, seed, gamma):
    X, y = toy(n=200, seed=seed)
    f = reference.forgetron(kernel_matrix(X, {"gamma": gamma}), y, budget, "self_tuned")
    assert all(0 < phi <= 1 for phi in f.phis)
    assert np.all(np.abs(fitted("forgetron self-tuned", X, y, budget, gamma=gamma).dual_coef_) <= 1)


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.floats(1e-12, 1e12), st.floats(0, 1e6), st.sampled_from([-1, 1])), min_size=1, max_size=40)
)
@example([(1.8e8, 0.0, -1), (1.8e8, 5e-324, -1)])
def test_removal_probabilities_are_a_distribution(members):
    sizes, lengths, signs = np.array(members).T
    a, weighted = signs * sizes, np.sum(sizes * lengths)
    s = removal_scale(len(a), weighted)
    weights = np.array([removal_weight(*pair, s) for pair in zip(a, lengths, strict=True)])
    assert np.all(weights >= 0)
    assert weights.sum() >= 1 - 1e-9
    p = weights / weights.sum()
    assert np.all((p >= 0) & (p <= 1))
    assert math.isclose(p.sum(), 1)
    if weighted > 1e-200:
        np.testing.assert_allclose(p, reference.removal_probabilities(a, lengths), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("case", ["bogd", "bogd++"])
def test_coefficients_stay_within_their_bound(case):
    X, y = toy(n=500)
    learner = fitted(case, X, y, 8, gamma=2.0, lam=0.0, gamma_max=1.2)
    assert np.all(np.abs(learner.dual_coef_) <= learner.eta * 1.2 * (1 + 1e-12))


@pytest.mark.parametrize("case", ["projectron", "projectron++"])
def test_duplicates_take_no_room(case):
    X, y = toy(n=100)
    X, y = np.vstack([X, X, X]), np.r_[y, -y, y]  # each is a mistake again
    learner = fitted(case, X, y, 300, gamma=2.0)
    assert learner.n_support_ <= 100
    assert np.all(np.isfinite(learner.dual_coef_))
    if case == "projectron":
        perceptron = one_pass.KernelPerceptron(gamma=2.0).fit(X, y)
        np.testing.assert_allclose(learner.decision_function(X), perceptron.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("panel", [1, 16, 100])
@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("case", ["projectron", "projectron++"])
def test_panels_of_the_factor_change_nothing(case, repeated, panel, monkeypatch):
    monkeypatch.setattr(projection, "PANEL", panel)
    monkeypatch.setattr(projection, "AHEAD", 64)
    X, y = toy(n=400)
    if repeated:
        X, y = np.vstack([X, X[:200]]), np.r_[y, -y[:200]]
    learner = fitted(case, X, y, 120, gamma=4.0, average=True)
    f = expected(case, kernel_matrix(X, {"gamma": 4.0}), y, 120)
    assert learner.n_support_ == 120
    assert_same_learner(learner, X, f, rtol=1e-5, atol=1e-5 * np.abs(f.coef).max())


@pytest.mark.parametrize("case", CASES)
def test_last_and_average_come_from_one_fit(case):
    X, y = toy(n=300)
    both, average, last = (fitted(case, X, y, 20, gamma=2.0, average=average) for average in (True, True, False))
    np.testing.assert_array_equal(both.last_classifier().decision_function(X), last.decision_function(X))
    assert (both.average, both.last_classifier().average) == (True, False)
    np.testing.assert_array_equal(both.decision_function(X), average.decision_function(X))


@pytest.mark.parametrize("learner", [*CASES.values(), one_pass.DUOL(), one_pass.NOGD(4), one_pass.NOGD(200)], ids=str)
def test_values_that_overflow_are_refused(learner):
    X, y = toy(n=100)
    X[:7] *= 1e-3
    X[7:] *= 1e200
    learner = clone(learner).set_params(kernel="poly", gamma=1.0, degree=3)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"at example 8, .* is not finite"):
        learner.fit(X, y)


@pytest.mark.parametrize("cls", [one_pass.NORMA, one_pass.BOGD])
def test_a_step_may_not_turn_f_round(cls):
    with pytest.raises(ValueError, match=f"eta \\* lam of {cls.__name__} must be below 1"):
        cls(eta=2.0, lam=0.5).fit(*toy(n=20))
