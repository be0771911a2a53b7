"""The learners with a budget: equal to the reference, and true to their definitions."""

from __future__ import annotations

import math

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
from tests.estimators.one_pass import (
    BOGD,
    BSGD,
    NORMA,
    OSKL,
    BOGDPlusPlus,
    BudgetOSKL,
    Forgetron,
    KernelOGD,
    KernelPegasos,
    KernelPerceptron,
    Projectron,
    ProjectronPlusPlus,
    RandomizedBudgetPerceptron,
)
from tests.estimators.samples import KERNELS, LAYOUTS, draws, laid_out, suited, toy
from tests.reference import kernel as reference

CASES = {
    "forgetron": (Forgetron(), lambda K, y, B: reference.forgetron(K, y, B, "basic")[0]),
    "forgetron self-tuned": (
        Forgetron(variant="self_tuned"),
        lambda K, y, B: reference.forgetron(K, y, B, "self_tuned")[0],
    ),
    "rbp": (RandomizedBudgetPerceptron(), lambda K, y, B: reference.rbp(K, y, B, draws(len(y)))),
    "bogd": (
        BOGD(eta=0.7, lam=0.01, gamma_max=1.5),
        lambda K, y, B: reference.bogd(K, y, B, draws(len(y)), 0.7, 1.5, 0.01, by_length=False),
    ),
    "bogd++": (
        BOGDPlusPlus(eta=0.5, lam=0.02, gamma_max=3.0),
        lambda K, y, B: reference.bogd(K, y, B, draws(len(y)), 0.5, 3.0, 0.02, by_length=True),
    ),
    "oskl": (BudgetOSKL(G=1.5, eta=0.4), lambda K, y, B: reference.budget_oskl(K, y, B, draws(len(y)), 1.5, 0.4)),
    "oskl exponential": (
        BudgetOSKL(G=5.0, eta=0.03, loss="exponential"),
        lambda K, y, B: reference.budget_oskl(K, y, B, draws(len(y)), 5.0, 0.03, "exponential"),
    ),
    "oskl square": (
        BudgetOSKL(G=6.0, loss="square", delta=0.5),
        lambda K, y, B: reference.budget_oskl(K, y, B, draws(len(y)), 6.0, 0.9 / (4.0 * 6.0), "square", 0.5),
    ),
    "bsgd": (BSGD(lam=0.02), lambda K, y, B: reference.bsgd(K, y, B, 0.02, "hinge")),
    "bsgd logit": (BSGD(lam=0.05, loss="logit"), lambda K, y, B: reference.bsgd(K, y, B, 0.05, "logit")),
    "bsgd projection": (
        BSGD(lam=0.02, maintenance="projection"),
        lambda K, y, B: reference.bsgd_projection(K, y, B, 0.02, "hinge"),
    ),
    "bsgd projection logit": (
        BSGD(lam=0.05, loss="logit", maintenance="projection"),
        lambda K, y, B: reference.bsgd_projection(K, y, B, 0.05, "logit"),
    ),
    "norma": (NORMA(eta=0.7, lam=0.03), lambda K, y, B: reference.norma(K, y, B, 0.7, 0.03, "hinge")),
    "norma logit": (
        NORMA(eta=0.7, lam=0.03, loss="logit"),
        lambda K, y, B: reference.norma(K, y, B, 0.7, 0.03, "logit"),
    ),
    "projectron": (Projectron(), lambda K, y, B: reference.projectron(K, y, B)),
    "projectron++": (ProjectronPlusPlus(eta=0.8), lambda K, y, B: reference.projectron(K, y, B, eta=0.8)),
}
PROJECTING = [case for case in CASES if "project" in case]
REPLACING = [case for case in CASES if case not in PROJECTING]


def fitted(case, X, y, budget, *, average=False, **parameters):
    learner = clone(CASES[case][0]).set_params(budget=budget, average=average, random_state=0, **parameters)
    return learner.fit(X, y)


def assert_same_learner(learner, X, f, *, rtol, atol=1e-12):
    """Compare with the reference: who was ever in, who is left, and every coefficient."""
    dense = learner.support_vectors_.toarray() if sp.issparse(learner.support_vectors_) else learner.support_vectors_
    members = f.inserted if learner.average else np.isin(np.arange(len(X)), f.places)
    expected = (f.total / len(X) if learner.average else f.coef)[members]
    assert learner.n_support_ == len(dense) == members.sum()
    np.testing.assert_array_equal(dense, X[members].astype(dense.dtype))
    np.testing.assert_allclose(learner.dual_coef_, expected, rtol=rtol, atol=atol)
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
    monkeypatch.setattr(projecting.ProjectingState, "block", block)
    monkeypatch.setattr(projection, "BLOCK", block)
    monkeypatch.setattr(projection, "AHEAD", block)
    X, y = toy(n=150)
    X = suited(X, layout)
    learner = fitted(case, laid_out(X, layout, monkeypatch), y, budget, average=average, **kernel)
    f = CASES[case][1](kernel_matrix(X, kernel), y, budget)
    tolerance = 1e-10 if case in REPLACING else 1e-5  # a matrix that is close to singular is solved with
    assert_same_learner(learner, X, f, rtol=tolerance, atol=tolerance * np.abs(f.coef).max())


@settings(max_examples=60)
@given(st.sampled_from(sorted(CASES)), st.integers(1, 60), st.integers(2, 330), st.integers(0, 50), st.booleans())
def test_equals_the_reference_for_any_budget_and_length(case, budget, n, seed, average):
    X, y = toy(n=n, seed=seed)
    y[0] = -y[1]
    learner = fitted(case, X, y, budget, average=average, gamma=2.0)
    f = CASES[case][1](kernel_matrix(X, {"gamma": 2.0}), y, budget)
    tolerance = 1e-9 if case in REPLACING else 1e-4
    assert_same_learner(learner, X, f, rtol=tolerance, atol=tolerance * np.abs(f.coef).max())
    size = len(f.places)
    assert learner.last_classifier().n_support_ == size <= budget


@pytest.mark.parametrize("case", REPLACING)
def test_in_single_precision_up_to_rounding(case):
    X, y = toy(n=400)
    learner = fitted(case, X.astype(np.float32), y, 30, gamma=2.0, average=True)
    assert learner.support_vectors_.dtype == np.float32
    f = CASES[case][1](kernel_matrix(X.astype(np.float32), {"gamma": 2.0}).astype(np.float32), y, 30)
    assert_same_learner(learner, X, f, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_a_large_budget_with_short_blocks_is_the_same(case, monkeypatch):
    X, y = toy(n=500)
    usual = fitted(case, X, y, 60, gamma=2.0, average=True)
    monkeypatch.setattr(strategies, "LARGE", 10)
    short = fitted(case, X, y, 60, gamma=2.0, average=True)
    np.testing.assert_array_equal(short.support_vectors_, usual.support_vectors_)
    np.testing.assert_allclose(short.dual_coef_, usual.dual_coef_, rtol=1e-9)


@pytest.mark.parametrize("case", ["rbp", "forgetron self-tuned", "projectron"])
@pytest.mark.parametrize("average", [False, True])
def test_a_budget_for_all_is_the_perceptron(case, average):
    X, y = toy(n=300)
    learner = fitted(case, X, y, 300, gamma=2.0, average=average)
    perceptron = KernelPerceptron(gamma=2.0, average=average).fit(X, y)
    if case in REPLACING:  # a Projectron leaves out what lies in the span of others
        np.testing.assert_array_equal(learner.support_vectors_, perceptron.support_vectors_)
        np.testing.assert_allclose(learner.dual_coef_, perceptron.dual_coef_, rtol=1e-10)
    np.testing.assert_allclose(learner.decision_function(X), perceptron.decision_function(X), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("case", ["bogd", "bogd++"])
def test_a_budget_for_all_is_gradient_descent_with_the_same_shrinking(case):
    X, y = toy(n=300)
    learner = fitted(case, X, y, 300, gamma=2.0)
    eta, lam = learner.eta, learner.lam

    def step(y, f, u, t):
        return y * f < 1, 1 - eta * lam, eta * y

    last, average, inserted, *_ = reference.online(kernel_matrix(X, {"gamma": 2.0}), y, draws(300), step)
    np.testing.assert_allclose(learner.dual_coef_, last[inserted], rtol=1e-10)
    learner = fitted(case, X, y, 300, gamma=2.0, average=True)
    np.testing.assert_allclose(learner.dual_coef_, average[inserted], rtol=1e-10)


@pytest.mark.parametrize("case", ["bsgd", "norma", "norma logit"])
@pytest.mark.parametrize("average", [False, True])
def test_a_budget_for_all_is_the_learner_without(case, average):
    X, y = toy(n=300)
    learner = fitted(case, X, y, 300, gamma=2.0, average=average, **({} if case == "bsgd" else {"lam": 0.0}))
    if case == "bsgd":
        free = KernelPegasos(lam=0.02, project=False, gamma=2.0, average=average).fit(X, y)
    else:
        free = KernelOGD(eta=0.7, loss=learner.loss, gamma=2.0, average=average).fit(X, y)
    np.testing.assert_array_equal(learner.support_vectors_, free.support_vectors_)
    np.testing.assert_allclose(learner.dual_coef_, free.dual_coef_, rtol=1e-10)


@pytest.mark.parametrize("case", ["bsgd", "norma", "norma logit"])
def test_the_newest_stay(case):
    X, y = toy(n=300)
    learner = fitted(case, X, y, 20, gamma=2.0)
    ever = fitted(case, X, y, 20, gamma=2.0, average=True).support_vectors_
    assert len(ever) > 40
    np.testing.assert_array_equal(learner.support_vectors_, ever[-20:])


def test_bsgd_removes_the_least_of_all():
    X, y = toy(n=200, empty_rows=False)
    parameters = {"kernel": "poly", "gamma": 0.5, "degree": 2}
    for n in range(100, 200):
        before, after = (fitted("bsgd logit", X[:m], y[:m], 10, **parameters) for m in (n, n + 1))
        slope = -y[n] * expit(-y[n] * before.decision_function(X[n : n + 1])[0])
        rows = np.vstack([before.support_vectors_, X[n]])
        coef = np.r_[before.dual_coef_ * n / (n + 1), -slope / (0.05 * (n + 1))]
        norms = np.abs(coef) * np.sqrt(np.diag(reference.kernel_matrix(rows, rows, **parameters)))
        stay = np.arange(11) != np.argmin(norms)
        np.testing.assert_array_equal(after.support_vectors_, rows[stay])
        np.testing.assert_allclose(after.dual_coef_, coef[stay])


@pytest.mark.parametrize("case", ["norma", "norma logit"])
def test_what_norma_removes_is_as_small_as_promised(case):
    X, y = toy(n=200)
    learner, going = clone(CASES[case][0]).set_params(budget=15, gamma=2.0), 0
    for n in range(200):
        learner.partial_fit(X[n : n + 1], y[n : n + 1], classes=[-1, 1])
        if learner.n_support_ == 15:
            going += 1
            assert 0 < abs(learner.dual_coef_[0]) <= 0.7 * (1 - 0.7 * 0.03) ** 14 * (1 + 1e-12)
    assert going > 50


@pytest.mark.parametrize("case", ["oskl", "oskl exponential", "oskl square"])
def test_a_budget_for_all_is_oskl_without_a_ball(case):
    X, y = toy(n=300)
    for average in (False, True):
        learner = fitted(case, X, y, 300, gamma=2.0, average=average)
        common = {name: getattr(learner, name) for name in ("G", "eta", "loss", "delta", "gamma")}
        free = OSKL(R=np.inf, random_state=0, average=average, **common).fit(X, y)
        assert 0 < learner.n_support_ < 300
        np.testing.assert_array_equal(learner.support_vectors_, free.support_vectors_)
        np.testing.assert_allclose(learner.dual_coef_, free.dual_coef_, rtol=1e-10)


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(0, 100), st.booleans())
def test_oskl_with_a_budget_never_has_more(budget, seed, average):
    X, y = toy(n=300, seed=seed)
    learner = BudgetOSKL(budget=budget, gamma=2.0, random_state=seed, average=average).fit(X, y)
    assert learner.n_support_ == learner.n_updates_ == min(budget, learner.n_updates_)
    assert learner.last_classifier().n_support_ == learner.n_support_
    proba = learner.predict_proba(X)
    np.testing.assert_allclose(proba[:, 1], expit(learner.decision_function(X)))


def test_a_step_with_a_full_budget_goes_as_far_down_as_one_support_vector_can():
    """Of all multiples of one support vector, the projection of the gradient is the nearest to it."""
    X, y = toy(n=61)
    before, after = (fitted("oskl", X[:n], y[:n], 5, gamma=2.0) for n in (60, 61))
    assert before.n_support_ == 5
    moved = after.dual_coef_ - before.dual_coef_
    (j,) = np.flatnonzero(moved)
    k = reference.kernel_matrix(before.support_vectors_, X[60:], gamma=2.0)[:, 0]
    slope = -y[60] * expit(-y[60] * before.decision_function(X[60:])[0])
    left = [0.4 * slope * 0.4 * slope * (1 - value**2) for value in k]  # of the squared length of the gradient
    assert j == np.argmin(left)
    assert moved[j] == pytest.approx(-0.4 * slope * k[j])


@pytest.mark.parametrize("loss", ["exponential", "square"])
@pytest.mark.parametrize("budget", [1, 300])
def test_oskl_with_a_budget_refuses_a_derivative_above_its_bound(loss, budget):
    """With room for all and with a full budget: the example at which the reference first exceeds G."""
    X, y = toy(n=300)
    G, eta, first = 2.0, 0.9 if loss == "exponential" else 0.3, None
    K, u = kernel_matrix(X, {"gamma": 2.0}), draws(300)
    for n in range(1, 301):
        try:
            reference.budget_oskl(K[:n, :n], y[:n], budget, u[:n], G, eta, loss)
        except AssertionError:
            first = n
            break
    assert first is not None
    size = len(reference.budget_oskl(K[: first - 1, : first - 1], y[: first - 1], budget, u, G, eta, loss).places)
    assert (size == budget) == (budget == 1)
    learner = BudgetOSKL(budget, G, eta, loss, gamma=2.0, random_state=0)
    learner.partial_fit(X[: first - 1], y[: first - 1], classes=[-1, 1])
    assert learner.n_support_ == size
    with pytest.raises(ValueError, match=f"of the {loss} loss exceeds G = 2 at example {first}; G must be at least"):
        learner.fit(X, y)


def test_oskl_with_a_budget_and_delta():
    """Of the square loss: where |y - f| < delta nothing changes, whether there is room or not."""
    X = np.array([[0.0], [0.0], [0.0], [0.0]])
    learner = BudgetOSKL(budget=1, G=2.0, eta=0.25, loss="square", delta=0.6, average=False, gamma=1.0, random_state=0)
    for t, f in enumerate([0.5, 0.5, 0.5]):  # |l'| = 2 = G at first: drawn for sure, with coefficient eta G
        learner.partial_fit(X[t : t + 1], [1], classes=[-1, 1])
        assert learner.decision_function(X[:1]) == pytest.approx(f)
    learner.set_params(delta=0.4).partial_fit(X[3:], [1])
    assert learner.decision_function(X[:1]) == pytest.approx(0.5 + 0.25 * 2 * 0.5)


def test_the_basic_forgetron_shrinks_at_any_finite_budget():
    X, y = toy(n=300)
    learner = fitted("forgetron", X, y, 10_000, gamma=2.0)
    perceptron = KernelPerceptron(gamma=2.0).fit(X, y)
    assert learner.n_support_ < learner.budget
    assert np.all(np.abs(learner.dual_coef_) < 1)
    assert np.all(np.abs(perceptron.dual_coef_) == 1)


@settings(max_examples=60)
@given(st.integers(1, 20), st.integers(0, 1000), st.sampled_from([0.1, 1.0, 10.0]))
def test_the_self_tuned_forgetron_never_grows(budget, seed, gamma):
    X, y = toy(n=200, seed=seed)
    _, phis = reference.forgetron(kernel_matrix(X, {"gamma": gamma}), y, budget, "self_tuned")
    assert all(0 < phi <= 1 for phi in phis)
    learner = fitted("forgetron self-tuned", X, y, budget, gamma=gamma)
    assert np.all(np.abs(learner.dual_coef_) <= 1)


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.floats(1e-12, 1e12), st.floats(0, 1e6), st.sampled_from([-1, 1])), min_size=1, max_size=40)
)
@example([(1.8e8, 0.0, -1), (1.8e8, 5e-324, -1)])
def test_removal_probabilities_are_a_distribution(members):
    a = np.array([sign * size for size, _, sign in members])
    lengths = np.array([length for _, length, _ in members])
    weighted = np.sum(np.abs(a) * lengths)
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


def test_who_leaves_is_uniform_where_all_are_equal():
    X, y = toy(n=4000)
    learner = fitted("bogd++", X, y, 10, gamma=2.0, eta=1.0, lam=0.0, gamma_max=1.0)
    other = fitted("bogd", X, y, 10, gamma=2.0, eta=1.0, lam=0.0, gamma_max=1.0)
    np.testing.assert_array_equal(learner.support_vectors_, other.support_vectors_)
    np.testing.assert_allclose(learner.dual_coef_, other.dual_coef_)


@pytest.mark.parametrize("case", ["projectron", "projectron++"])
def test_duplicates_take_no_room(case):
    X, y = toy(n=100)
    X, y = np.vstack([X, X, X]), np.r_[y, -y, y]  # each is a mistake again
    learner = fitted(case, X, y, 300, gamma=2.0)
    assert learner.n_support_ <= 100
    assert np.all(np.isfinite(learner.dual_coef_))
    if case == "projectron":
        perceptron = KernelPerceptron(gamma=2.0).fit(X, y)
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
    f = CASES[case][1](kernel_matrix(X, {"gamma": 4.0}), y, 120)
    assert learner.n_support_ == 120
    assert_same_learner(learner, X, f, rtol=1e-5, atol=1e-5 * np.abs(f.coef).max())


@pytest.mark.parametrize("case", CASES)
def test_last_and_average_come_from_one_fit(case):
    X, y = toy(n=300)
    both = fitted(case, X, y, 20, gamma=2.0, average=True)
    last, alone = both.last_classifier(), fitted(case, X, y, 20, gamma=2.0)
    np.testing.assert_array_equal(last.decision_function(X), alone.decision_function(X))
    assert both.average
    assert not last.average
    average = fitted(case, X, y, 20, gamma=2.0, average=True)
    np.testing.assert_array_equal(both.decision_function(X), average.decision_function(X))


@pytest.mark.parametrize("case", CASES)
def test_values_that_overflow_are_refused(case):
    X, y = toy(n=100)
    X[:7] *= 1e-3
    X[7:] *= 1e200
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"at example 8, .* is not finite"):
        fitted(case, X, y, 10, kernel="poly", gamma=1.0, degree=3)


def test_other_parameters_are_checked():
    X, y = toy(n=20)
    with pytest.raises(ValueError, match="eta \\* lam of NORMA must be below 1"):
        NORMA(eta=2.0, lam=0.5).fit(X, y)
    with pytest.raises(ValueError, match="'loss' parameter of BudgetOSKL"):
        BudgetOSKL(loss="hinge").fit(X, y)
    with pytest.raises(ValueError, match="'delta' parameter of BudgetOSKL"):
        BudgetOSKL(loss="square", delta=0.0).fit(X, y)
    with pytest.raises(ValueError, match="'loss' parameter of BSGD"):
        BSGD(loss="square").fit(X, y)
    with pytest.raises(ValueError, match="eta \\* lam of BOGD must be below 1"):
        BOGD(eta=2.0, lam=0.5).fit(X, y)
    with pytest.raises(ValueError, match="'variant' parameter of Forgetron"):
        Forgetron(variant="lazy").fit(X, y)
