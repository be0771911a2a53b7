"""Test that learners with slots equal their references and satisfy their definitions."""

import inspect
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from scipy.special import expit
from sklearn.base import clone

from klr_bench.estimators.budget import duol, projectron_state
from klr_bench.estimators.budget.bogd import removal_scale, removal_weight
from klr_bench.estimators.core.vectors import CHUNK, first_of_largest
from klr_bench.estimators.online import state, strategies
from tests.cover import cover
from tests.estimators import one_pass
from tests.estimators.samples import ALL_KERNELS, KERNELS, LAYOUTS, draws, laid_out, small, suited, toy
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
UNLIMITED = {
    "alma": one_pass.ALMA(B=np.sqrt(8) / 0.9, C=np.sqrt(2)),
    "alma small margin": one_pass.ALMA(0.3, B=1.0, C=0.4),
    "alma perceptron": one_pass.ALMA(1.0, B=1.0, C=np.sqrt(2)),
    "duol": one_pass.DUOL(),
    "duol small": one_pass.DUOL(0.3, 0.6),
    "duol large": one_pass.DUOL(20.0, 0.05),
}
REFERENCES = {
    "ALMA": reference.alma,
    "DUOL": reference.duol,
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
"""Reference function per class name; its arguments are parameters of the learner."""
PROJECTING = [case for case in CASES if "project" in case]
REPLACING = [case for case in CASES if case not in PROJECTING]


def fitted(case, X, y, budget, *, average=False, **parameters):
    learner = small(clone((CASES | UNLIMITED)[case]), budget=budget)
    return learner.set_params(average=average, random_state=0, **parameters).fit(X, y)


def expected(case, K, y, budget):
    """Return f of the reference for kernel values K, whose dtype is the precision of the learner."""
    learner = (CASES | UNLIMITED)[case]
    function, options = REFERENCES[type(learner).__name__], learner.get_params() | {"draws": draws(len(y))}
    names, options = inspect.signature(function).parameters, options | {"budget": budget}
    return function(K, y, **{name: options[name] for name in names if name in options})


def assert_same_learner(learner, X, f, *, rtol, atol=1e-12):
    """Assert that insertions, support vectors and coefficients equal those of the reference."""
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
    case=[*CASES, *UNLIMITED],
    budget=[1, 2, 9, 40],
    kernel=KERNELS,
    layout=[layout for layout in LAYOUTS if layout not in ("bits", "csr as bits")],  # where f may be 0 up to rounding
    block=[1, 7, 64, 128],
    average=[False, True],
)
def test_equals_the_reference_in_double(case, budget, kernel, layout, block, average, monkeypatch):
    monkeypatch.setattr(strategies, "BLOCK", block)
    monkeypatch.setattr(strategies, "LARGE", 10)  # shorter blocks for a budget of 40
    monkeypatch.setattr(strategies, "SHORT", min(block, 32))
    monkeypatch.setattr(state, "BLOCK", block)
    monkeypatch.setattr(projectron_state, "BLOCK", block)
    monkeypatch.setattr(projectron_state, "AHEAD", block)
    monkeypatch.setattr(projectron_state, "PANEL", block)
    X, y = toy(n=150, empty_rows="duol" not in case)
    kernel = KERNELS["rbf"] if "duol" in case and kernel["kernel"] == "linear" else kernel
    X = suited(X, layout)
    learner = fitted(case, laid_out(X, layout, monkeypatch), y, budget, average=average, **kernel)
    f = expected(case, kernel_matrix(X, kernel), y, budget)
    tolerance = 1e-5 if case in PROJECTING or "duol" in case else 1e-10  # because of a nearly singular linear system
    assert_same_learner(learner, X, f, rtol=tolerance, atol=tolerance * np.abs(f.coef).max())


@cover(2, case=UNLIMITED, kernel=["laplacian", "sigmoid"], layout=[np.asarray, sp.csr_matrix], average=[False, True])
def test_learners_without_a_budget_equal_the_reference_with_other_kernels(case, kernel, layout, average, monkeypatch):
    monkeypatch.setattr(strategies, "BLOCK", 7)
    (X, y), kernel = toy(n=150), ALL_KERNELS[kernel]
    learner = clone(case).set_params(average=average, **kernel).fit(layout(X), y)
    f = expected(next(name for name in UNLIMITED if UNLIMITED[name] is case), kernel_matrix(X, kernel), y, None)
    assert_same_learner(learner, X, f, rtol=1e-6, atol=1e-6 * np.abs(f.coef).max())


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
def test_equals_the_reference_in_single_precision(case):
    X, y = toy(n=300)
    learner = fitted(case, X.astype(np.float32), y, 30, gamma=2.0, average=True)
    assert learner.support_vectors_.dtype == np.float32
    f = expected(case, kernel_matrix(X.astype(np.float32), {"gamma": 2.0}).astype(np.float32), y, 30)
    assert_same_learner(learner, X, f, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("loss", ["exponential", "square"])
@pytest.mark.parametrize("budget", [1, 300])
def test_budget_oskl_raises_if_a_derivative_exceeds_its_bound(loss, budget):
    """The message names the first example whose derivative exceeds G, before or after the budget is full."""
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
    with pytest.raises(
        ValueError, match=f"of the {loss} loss exceeds G = 2 in absolute value at example number {first}"
    ):
        learner.fit(X, y)


@settings(max_examples=60)
@given(st.integers(1, 20), st.integers(0, 1000), st.sampled_from([0.1, 1.0, 10.0]))
def test_the_self_tuned_forgetron_never_grows(budget, seed, gamma):
    X, y = toy(n=200, seed=seed)
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
    if weighted > 1e-200:
        np.testing.assert_allclose(
            weights / weights.sum(), reference.removal_probabilities(a, lengths), rtol=1e-6, atol=1e-9
        )


@pytest.mark.parametrize("case", ["projectron", "projectron++"])
def test_duplicates_are_not_inserted(case):
    X, y = toy(n=100)
    X, y = np.vstack([X, X, X]), np.r_[y, -y, y]  # every copy is a mistake
    learner = fitted(case, X, y, 300, gamma=2.0)
    assert learner.n_support_ <= 100
    assert np.all(np.isfinite(learner.dual_coef_))
    if case == "projectron":
        perceptron = one_pass.KernelPerceptron(gamma=2.0).fit(X, y)
        np.testing.assert_allclose(learner.decision_function(X), perceptron.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("learner", [*CASES.values(), UNLIMITED["duol"], one_pass.NOGD(4), one_pass.NOGD(200)], ids=str)
def test_raises_if_values_overflow(learner):
    X, y = toy(n=100)
    X[:7] *= 1e-3
    X[7:] *= 1e149
    learner = clone(learner).set_params(kernel="poly", gamma=1.0, degree=3)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"at example number 8, .* is not finite"):
        learner.fit(X, y)


@pytest.mark.parametrize("cls", [one_pass.NORMA, one_pass.BOGD])
def test_raises_if_shrinking_reverses_the_sign_of_f(cls):
    with pytest.raises(ValueError, match=f"The 'lam' parameter of {cls.__name__} must be below 1 / eta = "):
        cls(eta=2.0, lam=0.5).fit(*toy(n=20))


def test_unknown_arguments_raise_an_error_that_names_the_method():
    with pytest.raises(TypeError, match=r"fit\(\) got an unexpected keyword argument 'sample_weight'"):
        one_pass.NORMA().fit(*toy(n=20), sample_weight=np.ones(20))


@pytest.mark.parametrize("alpha", [0.3, 0.6, 0.9])
def test_alma_reaches_the_margin_of_the_theorem_on_separable_data(alpha):
    """Without further updates, the margin is at least 1 - alpha of that of a hard-margin SVM."""
    X, y = toy(n=40)
    learner = one_pass.ALMA(alpha, kernel="rbf", gamma=20.0)
    for _ in range(1000):
        before = getattr(learner, "n_updates_", -1)
        learner.partial_fit(X, y, classes=[-1, 1])
        if learner.n_updates_ == before:
            break
    assert learner.n_updates_ == before
    K = kernel_matrix(learner.support_vectors_, {"gamma": 20.0})
    norm = np.sqrt(learner.dual_coef_ @ K @ learner.dual_coef_)
    assert norm <= 1 + 1e-9
    signed = y[:, None] * y * kernel_matrix(X, {"gamma": 20.0})
    L = np.linalg.cholesky(signed + 1e-10 * np.eye(len(y)))
    a, _ = nnls(L.T, np.linalg.solve(L, np.ones(len(y))))  # dual problem of the hard-margin SVM without intercept
    largest = 1 / np.sqrt(a @ signed @ a)
    assert np.min(y * learner.decision_function(X)) / norm >= (1 - alpha) * largest


@settings(max_examples=300)
@given(
    st.tuples(st.floats(1e-3, 3), st.floats(0, 3), st.floats(0.1, 4), st.floats(0.1, 4)),
    st.floats(0, 0.995),
    st.floats(0.01, 5),
    st.floats(0, 5),
)
def test_both_steps_equal_the_reference(losses_and_lengths, cosine, room_t, room_b):
    loss_t, loss_b, length_t, length_b = losses_and_lengths
    w = -cosine * np.sqrt(length_t * length_b)
    g, d = duol.both_steps(loss_t, loss_b, length_t, length_b, w, room_t, room_b)
    expected = reference.both_steps(loss_t, loss_b, length_t, length_b, w, room_t, room_b)
    assert 0 <= g <= room_t
    assert 0 <= d <= room_b
    np.testing.assert_allclose((g, d), expected, rtol=1e-7, atol=1e-9)


def test_duol_never_decreases_the_dual_objective():
    X, y = toy(n=200, empty_rows=False)
    learner, before = one_pass.DUOL(C=1.0, gamma=2.0), 0.0
    for t in range(200):
        a = learner.partial_fit(X[t : t + 1], y[t : t + 1], classes=[-1, 1]).dual_coef_
        dual = np.abs(a).sum() - a @ kernel_matrix(learner.support_vectors_, {"gamma": 2.0}) @ a / 2
        assert np.all(np.abs(a) <= 1 + 1e-12)
        assert dual >= before - 1e-12
        before = dual


@cover(2, kernel=KERNELS, layout=LAYOUTS, lam=[None, 1e-3, 0.1], average=[False, True])
def test_refit_is_optimal_in_the_span_of_the_support_vectors(kernel, layout, lam, average, monkeypatch):
    """The objective is convex, so a zero gradient implies a minimum."""
    X, y = toy(n=200)
    X = suited(X, layout)
    rows = laid_out(X, layout, monkeypatch)
    learner = one_pass.BudgetOSKL(25, refit=True, lam=lam, average=average, random_state=0, **kernel).fit(rows, y)
    S, a, lam = learner.support_vectors_, learner.dual_coef_, lam or 1 / (10 * len(y))
    S = S.toarray() if hasattr(S, "toarray") else S
    K, G = reference.kernel_matrix(X, S, **kernel), reference.kernel_matrix(S, S, **kernel)
    gradient = K.T @ (-y * expit(-y * (K @ a))) / len(y) + lam * G @ a
    assert np.abs(gradient).max() <= 2e-5 * np.abs(K).mean(axis=0).max()
    np.testing.assert_array_equal(learner.last_classifier().dual_coef_, a)


def test_refit_is_finite_with_duplicate_support_vectors():
    X, y = toy(n=40)
    X, y = np.repeat(X, 5, axis=0), np.repeat(y, 5)
    learner = one_pass.BudgetOSKL(budget=60, gamma=2.0, refit=True, random_state=0).fit(X, y)
    assert len(np.unique(learner.support_vectors_, axis=0)) < 60
    assert np.isfinite(learner.dual_coef_).all()
    assert np.abs(learner.dual_coef_).max() < 1e3


def test_partial_fit_and_stopped_fits_do_not_refit():
    X, y = toy(n=400)
    learner = one_pass.BudgetOSKL(budget=10, gamma=2.0, random_state=0)
    refitted, usual = (clone(learner).set_params(refit=refit).fit(X, y) for refit in (True, False))
    assert np.abs(refitted.dual_coef_ - usual.dual_coef_).max() > 0.01
    for learner in (refitted, usual):
        learner.partial_fit(X[:7], y[:7])
    np.testing.assert_array_equal(refitted.dual_coef_, usual.dual_coef_)
    for learner in (refitted, usual):
        learner.fit(X, y, callback=lambda _, t: t > 100)
    np.testing.assert_array_equal(refitted.dual_coef_, usual.dual_coef_)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_refit_of_three_classes(layout):
    X, y = toy(n=300)
    X, labels = layout(X), np.where(X[:, 0] > 0.5, "c", np.where(y > 0, "b", "a"))
    learner = one_pass.BudgetOSKL(budget=20, gamma=2.0, random_state=0)
    plain, refitted = (
        clone(learner).set_params(refit=refit).fit(X, labels).score(X, labels) for refit in (False, True)
    )
    assert refitted > plain


@pytest.mark.parametrize("loss", ["exponential", "square"])
def test_refit_requires_the_logit_loss(loss):
    X, y = toy(n=20)
    with pytest.raises(ValueError, match=rf"must be 'logit' for refit=True\. Got '{loss}'; use refit=False\."):
        one_pass.BudgetOSKL(G=30.0, loss=loss, refit=True).fit(X, y)


TIED = CASES | UNLIMITED
TIED |= {f"bsgd merging {loss}": one_pass.BSGD(10, 0.02, loss, "merging") for loss in ("hinge", "logit")}
KINDS = ["grid", "duplicates", "collinear"]
PERCEPTRONS = ["forgetron", "forgetron self-tuned", "rbp", "projectron", "alma perceptron"]
"""Learners for which rounding decides about mistakes, because f may be 0 on symmetric data."""


def tied(kind, seed, n=150):
    """Return rows (n, 3) with many equal distances, and labels -1 or +1."""
    random = np.random.RandomState(seed)
    if kind == "grid":
        X = random.randint(-3, 4, (n, 3)).astype(float)
    elif kind == "duplicates":
        X = random.standard_normal((25, 3))[random.randint(25, size=n)]
    else:
        X = np.outer(random.randint(-4, 5, n), [0.3, -0.7, 0.2])
    return X, np.where(np.sin(2 * X[:, 0]) + X[:, 2] + 0.5 * random.standard_normal(n) > 0, 1, -1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("case", "kind"),
    [(case, kind) for case in TIED for kind in KINDS if kind != "collinear" or case not in PERCEPTRONS],
)
def test_result_does_not_depend_on_chunks(case, kind, dtype):
    learner = small(clone(TIED[case]), budget=10).set_params(gamma=0.3, average=True, random_state=0)
    tolerance = 1e-6 if dtype == np.float64 else 1e-3
    for seed in range(2):
        X, y = tied(kind, seed)
        X = X.astype(dtype)
        whole = clone(learner).partial_fit(X, y, classes=[-1, 1])
        values = whole.decision_function(X)
        for size in (1, 7):
            parts = clone(learner)
            for start in range(0, len(y), size):
                parts.partial_fit(X[start : start + size], y[start : start + size], classes=[-1, 1])
            np.testing.assert_allclose(parts.support_vectors_, whole.support_vectors_, rtol=0, atol=1e-6)
            atol = tolerance * np.abs(values).max()
            np.testing.assert_allclose(parts.decision_function(X), values, rtol=0, atol=atol)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["oskl", "oskl square", "bsgd", "bsgd logit", "duol"])
def test_ties_equal_the_reference(case, kind):
    for dtype, tolerance in ((np.float64, 1e-7), (np.float32, 1e-3)):
        for seed in range(2):
            X, y = tied(kind, seed)
            X = X.astype(dtype)
            f = expected(case, kernel_matrix(X, {"gamma": 0.3}).astype(dtype), y, 10)
            for average in (False, True):
                learner = fitted(case, X, y, 10, gamma=0.3, average=average)
                assert_same_learner(learner, X, f, rtol=tolerance, atol=tolerance * np.abs(f.coef).max())


@pytest.mark.parametrize("m", [1, CHUNK - 1, CHUNK, 3 * CHUNK + 5])
@pytest.mark.parametrize(("dtype", "equal", "less"), [(np.float64, 5e-10, 2e-9), (np.float32, 1e-5, 4e-5)])
def test_first_of_largest(m, dtype, equal, less):
    random = np.random.RandomState(0)
    for _ in range(50):
        values, scales = (random.uniform(*ends, m).astype(dtype) for ends in ((-0.5, 0.5), (0.5, 1.0)))
        ties = np.sort(random.randint(m, size=3))
        signs = random.choice([-1, 1], 3)
        values[ties] = signs * (1 - equal * random.random_sample(3)) / scales[ties]
        if ties[0] > 0:
            values[0] = (1 - less) / scales[0]
        assert first_of_largest(values, scales) == ties[0]
    assert first_of_largest(np.zeros(m, dtype), np.ones(m, dtype)) == -1
    assert first_of_largest(np.ones(m, dtype), np.zeros(m, dtype)) == -1
