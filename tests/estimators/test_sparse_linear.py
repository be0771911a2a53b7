"""Sparse confidence-weighted learners: against slow references, numerical optimisers, liblinear, and theorem 1."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from klr_bench import (
    AROW,
    SOFS,
    BatchConfidenceWeighted,
    FeatureGeneratingMachine,
    SparDCA,
    SparseBatchConfidenceWeighted,
)
from klr_bench.estimators.linear.columns import occurring
from klr_bench.estimators.linear.groups import Subproblem, conjugate
from klr_bench.estimators.linear.sbcw import highest
from tests.reference import sparse_linear as reference

SELECTORS = {"sbcw": SparseBatchConfidenceWeighted, "fgm": FeatureGeneratingMachine}
ALL = [SOFS(), SparDCA(), SparseBatchConfidenceWeighted(), FeatureGeneratingMachine()]
URL_FEATURES = 3_231_961


def toy(n=120, d=30, density=0.4, seed=0, relevant=6):
    """Features of very different size, some of them pairs that say something together only."""
    random = np.random.RandomState(seed)
    X = random.standard_normal((n, d)) * (random.random_sample((n, d)) < density)
    X[:, 1] += 2 * X[:, 0]
    X *= 2.0 ** random.randint(-2, 3, d)
    y = np.where(X[:, :relevant] @ random.standard_normal(relevant) + 0.3 * random.standard_normal(n) > 0, 1.0, -1.0)
    return X, y


def norms_and_sigma():
    sizes = st.one_of(st.just(0.0), st.floats(1e-3, 1e3))
    return st.lists(sizes, min_size=1, max_size=12), st.floats(1e-3, 10.0)


@given(*norms_and_sigma())
def test_the_group_norm_map_is_the_sorted_one(norms, sigma):
    norms = np.array(norms)
    c = np.empty(len(norms))
    value = conjugate(norms, sigma, c)
    expected = reference.conjugate_gradient(norms, sigma)
    np.testing.assert_allclose(c * norms, expected, rtol=1e-9, atol=1e-12 * norms.max() / sigma)
    assert value == pytest.approx(expected @ norms - reference.omega(expected, sigma), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sigma", [0.01, 0.5])
def test_the_group_norm_map_against_a_numerical_optimiser(sigma, seed):
    random = np.random.RandomState(seed)
    parts = [slice(0, 2), slice(2, 5), slice(5, 6), slice(6, 8)]
    z = random.standard_normal(8) * np.repeat([2.0, 1.5, 0.3, 1.0], [2, 3, 1, 2])
    norms, c = reference.norms_of(z, parts), np.empty(4)
    value = conjugate(norms, sigma, c)
    w = np.concatenate([factor * z[part] for factor, part in zip(c, parts, strict=True)])

    def negative(x):  # over w and bounds s_k >= ||w_k||
        return 0.5 * sigma * x[:8] @ x[:8] + 0.5 * x[8:].sum() ** 2 - x[:8] @ z

    bounds = [
        {"type": "ineq", "fun": lambda x, k=k, part=part: x[8 + k] ** 2 - x[:8][part] @ x[:8][part]}
        for k, part in enumerate(parts)
    ]
    start = np.append(0.1 * z, np.full(4, 1.0))
    options = {"ftol": 1e-14, "maxiter": 2000}
    found = minimize(negative, start, constraints=bounds, bounds=[(None, None)] * 8 + [(0, None)] * 4, options=options)
    assert value == pytest.approx(-found.fun, rel=1e-6)
    np.testing.assert_allclose(w, found.x[:8], atol=3e-3 * np.linalg.norm(w))
    assert negative(np.append(w, reference.norms_of(w, parts))) == pytest.approx(-value, rel=1e-12)


def test_the_group_norm_map_of_nothing_and_of_one_group():
    c = np.empty(2)
    assert conjugate(np.zeros(2), 0.01, c) == 0.0
    assert c.tolist() == [0.0, 0.0]
    c = np.empty(1)
    assert conjugate(np.array([3.0]), 0.01, c) == pytest.approx(4.5 / 1.01)
    assert c[0] == pytest.approx(1 / 1.01)


@pytest.mark.parametrize("n_passes", [1, 3])
@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
def test_algorithm_2_is_the_reference(name, C, q, n_passes):
    X, y = toy()
    model = SELECTORS[name](C=C, q=q, n_features_to_select=11, n_group=3, n_passes=n_passes, tol=0.0, gap_tol=0.0)
    model.fit(X, y)
    groups, coef, thetas = reference.select_groups(X, y, C, q, 1e-2, 11, 3, n_passes, name == "sbcw")
    assert model.selected_features_.tolist() == np.concatenate(groups).tolist()
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-8, atol=1e-8 * np.abs(coef).max())
    np.testing.assert_allclose(model.theta_, thetas, rtol=1e-8)
    assert (model.n_iter_, model.stopped_by_) == (4, "n_features_to_select")


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(2, 40),
    seed=st.integers(0, 10**6),
    C=st.floats(1e-3, 1e3),
    q=st.sampled_from([1, 2]),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    with_covariance=st.booleans(),
)
def test_the_dual_objective_rises_and_stays_below_the_primal(n, seed, C, q, sizes, with_covariance):
    X, y = toy(n, 16, seed=seed)
    problem, first, groups = Subproblem(X, y, C, q, 1e-2, covariance=with_covariance), 0, []
    for size in sorted(sizes, reverse=True):
        groups.append(np.arange(first, first + size))
        problem.add(groups[-1])
        first += size
    Z, parts, _ = reference.whiten(X, groups, C, with_covariance)
    before = 0.0
    for n_passes in (1, 2, 4, 8):
        dual = problem.solve(n_passes, 0.0)
        assert dual >= before - 1e-9 * abs(dual)
        assert problem.primal() >= dual * (1 - 1e-9)
        assert dual == pytest.approx(reference.dual_objective(problem.a, Z, y, parts, C, q, 1e-2), rel=1e-7, abs=1e-9)
        before = dual
    assert (problem.a >= 0).all()
    assert q == 2 or (problem.a <= C).all()


def test_no_single_step_lowers_the_dual_objective():
    X, y = toy(40, 12)
    Z, parts, _ = reference.whiten(X, [np.arange(4), np.arange(4, 8), np.arange(8, 12)], 0.01, with_covariance=True)
    _, _, objectives = reference.ascend(Z, y, parts, 0.01, 2, 1e-2, 3)
    assert (np.diff([0.0, *objectives]) >= -1e-12).all()


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("name", SELECTORS)
def test_theta_falls_where_subproblems_are_solved(name, C):
    X, y = toy(60, 20, seed=3)
    model = SELECTORS[name](C=C, n_features_to_select=18, n_group=3, n_passes=20_000, tol=0.0, gap_tol=1e-7).fit(X, y)
    assert len(model.theta_) == 6
    assert (np.diff(model.theta_) <= 1e-7 * model.theta_[:-1]).all()
    assert model.theta_[-1] < (1 - 1e-4) * model.theta_[0]


@pytest.mark.parametrize("q", [1, 2])
def test_the_solution_minimises_the_primal_objective(q):
    X, y = toy(60, 9, seed=5)
    groups = [np.arange(3), np.arange(3, 6), np.arange(6, 9)]
    problem = Subproblem(X, y, 0.1, q, 1e-2, covariance=True)
    for group in groups:
        problem.add(group)
    dual = problem.solve(20_000, 1e-9)
    Z, parts, blocks = reference.whiten(X, groups, 0.1, with_covariance=True)
    w = np.concatenate([np.linalg.solve(B, problem.weights[part]) for B, part in zip(blocks, parts, strict=True)])
    primal = reference.primal_objective(w, Z, y, parts, 0.1, q, 1e-2)
    assert primal == pytest.approx(dual, rel=1e-8)
    assert primal == pytest.approx(problem.primal(), rel=1e-9)
    random = np.random.RandomState(0)
    for size in (1e-1, 1e-2, 1e-3):
        other = w + size * np.abs(w).max() * random.standard_normal((50, len(w)))
        assert min(reference.primal_objective(v, Z, y, parts, 0.1, q, 1e-2) for v in other) > primal


def test_the_covariance_of_a_group_is_its_closed_form():
    X, y = toy()
    problem = Subproblem(sp.csr_matrix(X), y, 0.7, 2, 1e-2, covariance=True)
    groups = [np.array([3, 0, 8]), np.array([1, 2])]
    for group in groups:
        problem.add(group)
    for group, rows in zip(groups, (problem._S[:3, :3], problem._S[3:, :2]), strict=True):
        Xk = X[:, group]
        np.testing.assert_allclose(rows, reference.covariance(Xk, 0.7), rtol=1e-10, atol=1e-14)
        woodbury = np.eye(len(group)) - Xk.T @ np.linalg.solve(np.eye(len(y)) / 0.7 + Xk @ Xk.T, Xk)  # equation 6
        np.testing.assert_allclose(rows, woodbury, atol=1e-10)


def test_without_covariances_or_with_tiny_ones_it_is_the_same():
    """As C tends to 0, S_k tends to I."""
    X, y = toy()
    common = {"C": 1e-9, "n_features_to_select": 9, "n_group": 3, "tol": 0.0}
    sbcw, fgm = (cls(**common).fit(X, y) for cls in SELECTORS.values())
    np.testing.assert_allclose(sbcw.coef_, fgm.coef_, rtol=1e-5, atol=1e-12 * np.abs(fgm.coef_).max())


def test_refit_is_algorithm_1_on_the_selected_features():
    X, y = toy()
    common = {"C": 0.5, "n_features_to_select": 9, "n_group": 3, "tol": 0.0, "sigma": 1e-9}
    selected = SparseBatchConfidenceWeighted(**common).fit(X, y)
    model = SparseBatchConfidenceWeighted(**common, refit=True).fit(X, y)
    assert model.selected_features_.tolist() == selected.selected_features_.tolist()
    batch = BatchConfidenceWeighted(0.5, 2).fit(X[:, model.selected_features_], y)
    np.testing.assert_allclose(model.coef_[model.selected_features_], batch.coef_, rtol=1e-6, atol=1e-8)
    assert np.count_nonzero(model.coef_) == 9


def test_the_stopping_rules():
    X, y = toy()
    common = {"n_group": 3, "n_features_to_select": 30}
    assert SparseBatchConfidenceWeighted(**common, tol=0.0).fit(X, y).stopped_by_ == "n_features_to_select"
    early = SparseBatchConfidenceWeighted(**common, tol=0.05).fit(X, y)
    assert early.stopped_by_ == "tol"
    assert abs(early.theta_[-1] - early.theta_[-2]) <= 0.05 * early.theta_[-1]
    assert len(early.theta_) == 2 or abs(early.theta_[-2] - early.theta_[-3]) > 0.05 * early.theta_[-2]
    with pytest.warns(UserWarning, match="memory_limit=0.006"):
        small = SparseBatchConfidenceWeighted(**common, tol=0.0, memory_limit=0.006).fit(X, y)
    assert (small.stopped_by_, small.n_iter_) == ("memory_limit", 3)  # 0.0058 MB
    with pytest.raises(ValueError, match=r"3 features take 0\.\d MB, more than memory_limit=0\.001.*Select fewer"):
        SparseBatchConfidenceWeighted(**common, memory_limit=0.001).fit(X, y)
    X[:, 4:] = 0.0
    few = SparseBatchConfidenceWeighted(**common, tol=0.0).fit(X, y)
    assert (few.stopped_by_, sorted(few.selected_features_)) == ("no_more_features", [0, 1, 2, 3])


def test_fifteen_groups_unless_told():
    X, y = toy(60, 100)
    model = SparseBatchConfidenceWeighted(n_features_to_select=61, tol=0.0).fit(X, y)
    assert model.steps(60) == (13, 1)  # of five features: 61 / 15, rounded up
    assert (len(model.selected_features_), model.n_iter_) == (61, 13)
    assert len(np.unique(model.selected_features_)) == 61


@given(scores=st.lists(st.integers(0, 4), min_size=1, max_size=20), r=st.integers(0, 25))
def test_the_highest_scores(scores, r):
    expected = [j for j in np.argsort(-np.array(scores), kind="stable")[:r] if scores[j] > 0]
    assert highest(np.array(scores, dtype=float), r).tolist() == sorted(expected)


@pytest.mark.parametrize("B", [1, 3, 8, 30])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("n_epochs", [1, 2])
def test_sofs_is_the_reference(B, binary, n_epochs):
    X, y = toy(200)
    X = (X != 0).astype(float) if binary else X  # many equal variances
    model = SOFS(B, r=0.5, n_epochs=n_epochs).fit(sp.csr_matrix(X), y)
    w, s, updates = reference.sofs(X, y, B, 0.5, n_epochs)
    np.testing.assert_allclose(model.variance_, s, rtol=1e-10)
    np.testing.assert_allclose(model.coef_, w, rtol=1e-8, atol=1e-10)
    assert model.n_updates_ == updates
    assert np.count_nonzero(model.coef_) <= len(model.selected_features_) == B
    assert set(np.flatnonzero(model.coef_)) <= set(model.selected_features_)


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(2, 60),
    d=st.integers(1, 12),
    B=st.integers(1, 12),
    seed=st.integers(0, 10**6),
    density=st.floats(0.1, 1),
)
def test_sofs_on_any_data(n, d, B, seed, density):
    random = np.random.RandomState(seed)
    X = random.randint(-2, 3, (n, d)) * (random.random_sample((n, d)) < density)
    y = np.append([-1.0, 1.0], random.choice([-1.0, 1.0], n - 2))
    model = SOFS(B).fit(X.astype(float), y)
    w, s, _ = reference.sofs(X.astype(float), y, B, 1.0)
    np.testing.assert_allclose(model.variance_, s, rtol=1e-10)
    np.testing.assert_allclose(model.coef_, w, rtol=1e-8, atol=1e-10)


def test_sofs_with_room_for_all_is_arow_with_a_diagonal():
    X, y = toy(200)
    sofs = SOFS(n_features_to_select=30, r=0.3).fit(X, y)
    unit = X / np.linalg.norm(X, axis=1)[:, None]
    arow = AROW(r=0.3, covariance="diagonal").fit(unit, y)
    np.testing.assert_allclose(sofs.coef_, arow.coef_, rtol=1e-10)
    np.testing.assert_allclose(sofs.variance_, arow.covariance_, rtol=1e-10)


def test_sofs_in_parts_is_sofs_at_once():
    X, y = toy(300)
    whole, parts = SOFS(5).fit(X, y), SOFS(5)
    for start in range(0, 300, 70):
        parts.partial_fit(X[start : start + 70], y[start : start + 70], classes=[-1.0, 1.0])
    np.testing.assert_array_equal(parts.coef_, whole.coef_)
    assert (parts.t_, parts.n_mistakes_) == (whole.t_, whole.n_mistakes_)
    gone_on = pickle.loads(pickle.dumps(parts)).partial_fit(X, y)
    np.testing.assert_array_equal(gone_on.coef_, parts.partial_fit(X, y).coef_)


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_spardca_is_the_reference(C, q):
    X, y = toy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SparDCA(C, 3.0, q=q, max_iter=3, tol=0.0, random_state=7).fit(X, y)
    random = np.random.RandomState(7)
    w, a = reference.spardca(X, y, C, 3.0, q, [random.permutation(len(y)) for _ in range(3)])
    np.testing.assert_allclose(model.coef_, w, rtol=1e-8, atol=1e-10)
    primal = 0.5 * w @ w + 3.0 * np.abs(w).sum() + C * np.sum(np.maximum(0, 1 - y * (X @ w)) ** q)
    dual = a.sum() - (q == 2) * a @ a / (4 * C) - 0.5 * w @ w
    assert model.objective_ == pytest.approx(primal)
    assert model.duality_gap_ == pytest.approx((primal - dual) / primal)


def test_spardca_without_l1_is_the_support_vector_machine_of_liblinear():
    X, y = toy()
    ours = SparDCA(0.5, 0.0, q=2, tol=1e-9, max_iter=10_000, random_state=0).fit(X, y)
    theirs = LinearSVC(C=0.5, loss="squared_hinge", fit_intercept=False, tol=1e-10, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_[0], atol=1e-4)


def test_spardca_with_little_of_the_squared_norm_is_l1svm():
    """With s/2 ||w||^2 added, ||w||_1 + C sum of squared losses is at most s/2 ||w||^2 above liblinear's minimum."""
    X, y = toy(200, 12)
    s, C = 0.01, 0.05
    theirs = LinearSVC(penalty="l1", C=C, dual=False, fit_intercept=False, tol=1e-8, max_iter=100_000).fit(X, y)
    ours = SparDCA(C / s, 1.0 / s, q=2, tol=1e-7, max_iter=20_000, random_state=0).fit(X, y)
    w = theirs.coef_[0]
    best, found = (np.abs(u).sum() + C * np.sum(np.maximum(0, 1 - y * (X @ u)) ** 2) for u in (w, ours.coef_))
    assert best * (1 - 1e-6) <= found <= best * (1 + 1e-6) + 0.5 * s * w @ w
    assert 0 < np.count_nonzero(ours.coef_) < 12


@pytest.mark.parametrize("q", [1, 2])
def test_the_least_l1_of_no_weights(q):
    X, y = toy()
    assert not SparDCA(2.0, 1.001, l1_relative=True, q=q).fit(X, y).coef_.any()
    assert SparDCA(2.0, 0.8, l1_relative=True, q=q, tol=1e-6, max_iter=2000).fit(X, y).coef_.any()


@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: type(estimator).__name__)
def test_layouts_and_precisions_agree(estimator):
    X, y = toy(80, 20)
    X = X.astype(np.float32).astype(np.float64)
    if isinstance(estimator, SparDCA):
        estimator = SparDCA(random_state=0)
    dense = pickle.loads(pickle.dumps(estimator)).fit(X, y)
    for other in (sp.csr_matrix(X), sp.csr_matrix(X.astype(np.float32)), sp.csc_matrix(X), X.astype(np.float32)):
        found = pickle.loads(pickle.dumps(estimator)).fit(other, y)
        rtol = 1e-10 if other.dtype == np.float64 else 2e-3
        np.testing.assert_allclose(found.coef_, dense.coef_, rtol=rtol, atol=rtol * np.abs(dense.coef_).max())
        np.testing.assert_allclose(found.decision_function(other), other @ found.coef_, rtol=1e-5, atol=1e-5)
    doubled = sp.csr_matrix(X)
    doubled = sp.csr_matrix(
        (np.repeat(doubled.data / 2, 2), np.repeat(doubled.indices, 2), 2 * doubled.indptr), shape=X.shape
    )
    np.testing.assert_allclose(pickle.loads(pickle.dumps(estimator)).fit(doubled, y).coef_, dense.coef_, rtol=1e-9)


def test_columns_that_occur():
    X = sp.csr_matrix([[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 0.0, 3.0]])
    columns, there = occurring(X)
    assert columns.tolist() == [1, 3]
    np.testing.assert_array_equal(there.toarray(), [[2.0, 1.0], [0.0, 3.0]])
    columns, there = occurring(X.toarray())
    assert columns.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(there.toarray(), X.toarray())


@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: type(estimator).__name__)
def test_memory_grows_with_the_non_zeros(estimator):
    """Of as many features as url has: vectors of them, never a square."""
    random = np.random.RandomState(0)
    columns = np.column_stack([np.zeros(300, dtype=int), 1 + random.randint(0, URL_FEATURES - 1, (300, 100))])
    values, rows = random.standard_normal(columns.size).astype(np.float32), np.repeat(np.arange(300), 101)
    X = sp.csr_matrix((values, (rows, columns.ravel())), shape=(300, URL_FEATURES))
    y = np.where(X[:, [0]].toarray().ravel() > 0, 1, -1)
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 8 * URL_FEATURES
    assert estimator.coef_.shape == (URL_FEATURES,)
    assert estimator.score(X, y) > 0.7


@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: type(estimator).__name__)
def test_the_callback_ends_the_fit(estimator):
    X, y = toy()
    seen = []

    def callback(model, t):
        seen.append((t, model.score(X, y)))
        return True

    estimator.fit(X, y, callback=callback)
    assert len(seen) == 1
    assert seen[0][1] > 0.5


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (SparseBatchConfidenceWeighted(C=0.0), "'C' parameter"),
        (SparseBatchConfidenceWeighted(q=3), "'q' parameter"),
        (FeatureGeneratingMachine(n_features_to_select=0), "'n_features_to_select' parameter"),
        (FeatureGeneratingMachine(sigma=0.0), "'sigma' parameter"),
        (SOFS(r=-1.0), "'r' parameter"),
        (SparDCA(l1=-1.0), "'l1' parameter"),
    ],
)
def test_refuses_parameters(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(*toy(20))


@pytest.mark.parametrize("C", [1e-300, 1e300])
def test_extreme_weights_stay_finite_or_are_refused(C):
    X, y = toy(40)
    for cls in SELECTORS.values():
        assert np.isfinite(cls(C=C, n_features_to_select=6, n_group=2).fit(X, y).coef_).all()


@parametrize_with_checks(ALL)
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)


def test_what_rounding_spoils_is_refused():
    X = np.random.default_rng(0).normal(size=(60, 40))
    model = SparseBatchConfidenceWeighted(q=1, n_group=60)
    with pytest.raises(ValueError, match=r"rounding made the dual objective .*; scale the features"):
        model.fit(1e8 * np.hstack([X, X]), np.arange(60) % 2)
    c = np.empty(3)
    assert not np.isfinite(conjugate(np.array([np.inf, 1.0, np.inf]), 0.01, c)), "it ends"
