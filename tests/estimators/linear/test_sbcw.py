"""Tests of SBCW and FGM against a reference implementation and an optimizer."""

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from klr_bench import BatchConfidenceWeighted, FeatureGeneratingMachine, SparseBatchConfidenceWeighted
from klr_bench.estimators.core.vectors import highest
from klr_bench.estimators.linear.groups import Subproblem, conjugate, line_search
from tests.estimators.linear.samples import toy
from tests.reference import sparse_linear as reference

SELECTORS = {"sbcw": SparseBatchConfidenceWeighted, "fgm": FeatureGeneratingMachine}


@given(st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 1e3)), min_size=1, max_size=12), st.floats(1e-3, 10.0))
def test_the_conjugate_equals_that_computed_by_sorting(norms, sigma):
    norms = np.array(norms)
    c = np.empty(len(norms))
    value = conjugate(norms, sigma, c)
    expected = reference.conjugate_gradient(norms, sigma)
    np.testing.assert_allclose(c * norms, expected, rtol=1e-9, atol=1e-12 * norms.max() / sigma)
    assert value == pytest.approx(expected @ norms - reference.omega(expected, sigma), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("C", "n_passes"), [(0.01, 1), (1.0, 3), (10.0, 1)])
@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize(("name", "sigma", "r"), [("sbcw", 1e-2, None), ("sbcw", 1.0, 5.0), ("fgm", 1e-2, None)])
def test_algorithm_2_equals_the_reference(name, sigma, r, C, q, n_passes):
    X, y = toy()
    common = {"C": C, "q": q, "n_passes": n_passes, "tol": 0.0, "gap_tol": 0.0, "sigma": sigma}
    model = SELECTORS[name](n_features_to_select=11, n_group=3, **common, **({"r": r} if r else {})).fit(X, y)
    precision = (1 / r if r else C) if name == "sbcw" else 0.0
    groups, coef, thetas = reference.select_groups([(X, y)], C, q, sigma, 11, 3, n_passes, precision)
    assert model.selected_features_.tolist() == np.concatenate(groups).tolist()
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-8, atol=1e-8 * np.abs(coef).max())
    np.testing.assert_allclose(model.theta_, thetas, rtol=1e-8)
    assert (model.n_iter_, model.stopped_by_) == (4, "n_features_to_select")


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("cuts", [[50], [40, 90]], ids=["two batches", "three batches"])
@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize(
    ("name", "sigma", "C", "r"), [("sbcw", 1e-2, 0.1, None), ("sbcw", 1.0, 10.0, 5.0), ("fgm", 1e-2, 1.0, None)]
)
def test_batches_equal_the_reference(name, sigma, C, r, q, cuts, layout):
    """The first batch has two features only; one of them and others are absent from the last batch."""
    X, y = toy()
    X[: cuts[0], 2:] = 0.0
    X[cuts[-1] :, 1::4] = 0.0
    common = {"C": C, "q": q, "n_passes": 2, "tol": 0.0, "gap_tol": 0.0, "sigma": sigma}
    model = SELECTORS[name](n_features_to_select=11, n_group=3, **common, **({"r": r} if r else {}))
    batches = [(X[rows], y[rows]) for rows in np.split(np.arange(120), cuts)]
    precision = (1 / r if r else C) if name == "sbcw" else 0.0
    for end, (rows, labels) in enumerate(batches, 1):
        model = pickle.loads(pickle.dumps(model.partial_fit(layout(rows), labels, classes=[-1, 1])))
        groups, coef, thetas = reference.select_groups(batches[:end], C, q, sigma, 11, 3, 2, precision)
        assert model.selected_features_.tolist() == np.concatenate(groups).tolist()
        np.testing.assert_allclose(model.coef_, coef, rtol=1e-8, atol=1e-8 * np.abs(coef).max())
        np.testing.assert_allclose(model.theta_, thetas, rtol=1e-8)
        assert model.n_batches_ == end
    assert (len(groups[0]), len(groups[1]), model.stopped_by_) == (2, 3, "n_features_to_select")


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("name", SELECTORS)
def test_one_batch_equals_fit(name, layout):
    X, y = toy()
    model = SELECTORS[name](n_features_to_select=11, n_group=3)
    expected, learned = clone(model).fit(layout(X), y), clone(model).partial_fit(layout(X), y)
    np.testing.assert_array_equal(learned.coef_, expected.coef_)
    np.testing.assert_array_equal(learned.theta_, expected.theta_)
    again = learned.partial_fit(layout(X), y).fit(layout(X), y)
    np.testing.assert_array_equal(again.coef_, expected.coef_)
    assert again.n_batches_ == 1


@settings(max_examples=25)
@given(
    n=st.integers(2, 40),
    seed=st.integers(0, 10**6),
    C=st.floats(1e-3, 1e3),
    q=st.sampled_from([1, 2]),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    with_covariance=st.booleans(),
)
def test_the_dual_objective_increases_and_stays_below_the_primal(n, seed, C, q, sizes, with_covariance):
    X, y = toy(n, 16, seed=seed)
    problem, first, groups = Subproblem(X, y, C, q, 1e-2, np.full(n, C) if with_covariance else None), 0, []
    for size in sorted(sizes, reverse=True):
        groups.append(np.arange(first, first + size))
        problem.add(groups[-1])
        first += size
    Z, parts, _ = reference.whiten(X, groups, reference.inverse_covariances(X, groups, C * with_covariance))
    before = 0.0
    for n_passes in (1, 2, 4, 8):
        dual = problem.solve(n_passes, 0.0)
        assert dual >= before - 1e-9 * abs(dual)
        assert problem.primal() >= dual * (1 - 1e-9)
        assert dual == pytest.approx(reference.dual_objective(problem.a, Z, y, parts, C, q, 1e-2), rel=1e-7, abs=1e-9)
        before = dual
    assert (problem.a >= 0).all()
    assert q == 2 or (problem.a <= C).all()


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("name", SELECTORS)
def test_theta_decreases_if_subproblems_are_solved_exactly(name, C):
    X, y = toy(60, 20, seed=3)
    model = SELECTORS[name](C=C, n_features_to_select=18, n_group=3, n_passes=5000, tol=0.0, gap_tol=1e-6)
    model.set_params(sigma=1e-2).fit(X, y)
    assert len(model.theta_) == 6
    assert (np.diff(model.theta_) <= 1e-6 * model.theta_[:-1]).all()
    assert model.theta_[-1] < (1 - 1e-4) * model.theta_[0]


@pytest.mark.parametrize("n_batches", [1, 2])
@pytest.mark.parametrize("q", [1, 2])
def test_the_solution_minimizes_the_primal_objective(q, n_batches):
    X, y = toy(60, 9, seed=5)
    groups = [np.arange(3), np.arange(3, 6), np.arange(6, 9)]
    state, inverses = [(group,) for group in groups], []
    for rows in np.array_split(np.arange(60), n_batches):
        before, X_h, y_h = state, X[rows], y[rows]
        problem = Subproblem(sp.csr_matrix(X_h), y_h, 0.1, q, 1e-2, np.full(len(rows), 0.1))
        for group in before:
            problem.add(*group)
        dual, state = problem.solve(20_000, 1e-9), problem.groups()
        inverses = reference.inverse_covariances(X_h, groups, 0.1, inverses)
    Z, parts, blocks = reference.whiten(X_h, groups, inverses)
    us = [group[2] for group in before] if n_batches > 1 else [np.zeros(3)] * 3

    def whitened(vectors):
        return np.concatenate([np.linalg.solve(B, v) for B, v in zip(blocks, vectors, strict=True)])

    w, z0 = whitened([problem.weights[part] for part in parts]), whitened(us)
    primal = reference.primal_objective(w, Z, y_h, parts, 0.1, q, 1e-2, z0)
    assert primal == pytest.approx(dual, rel=1e-8)
    assert primal == pytest.approx(problem.primal(), rel=1e-9)
    random = np.random.RandomState(0)
    for size in (1e-1, 1e-2, 1e-3):
        other = w + size * np.abs(w).max() * random.standard_normal((50, len(w)))
        assert min(reference.primal_objective(v, Z, y_h, parts, 0.1, q, 1e-2, z0) for v in other) > primal


@pytest.mark.parametrize("n_batches", [1, 3])
@pytest.mark.parametrize("r", [None, 3.0])
def test_one_group_equals_algorithm_1_on_the_selected_features(r, n_batches):
    X, y = toy()
    model = SparseBatchConfidenceWeighted(0.5, n_features_to_select=9, n_group=9, tol=0.0, sigma=1e-9, r=r)
    batch = BatchConfidenceWeighted(0.5, 2, r=r)
    for rows in np.array_split(np.arange(120), n_batches):
        model.partial_fit(X[rows], y[rows])
        batch.partial_fit(X[rows][:, model.selected_features_], y[rows])
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
    with pytest.raises(ValueError, match=r"3 features need 0\.\d MB, more than memory_limit=0\.001.*Select fewer"):
        SparseBatchConfidenceWeighted(**common, memory_limit=0.001).fit(X, y)
    X[:, 4:] = 0.0
    few = SparseBatchConfidenceWeighted(**common, tol=0.0).fit(X, y)
    assert (few.stopped_by_, sorted(few.selected_features_)) == ("no_more_features", [0, 1, 2, 3])


def test_the_default_is_fifteen_groups():
    X, y = toy(60, 100)
    model = SparseBatchConfidenceWeighted(n_features_to_select=61, tol=0.0).fit(X, y)
    assert model.steps(60) == (13, 1)  # five features per group: 61 / 15, rounded up
    assert (len(model.selected_features_), model.n_iter_) == (61, 13)
    assert len(np.unique(model.selected_features_)) == 61


@given(scores=st.lists(st.integers(0, 4), min_size=1, max_size=20), r=st.integers(0, 25))
def test_highest_returns_the_features_with_the_highest_scores(scores, r):
    """Among scores equal up to rounding, the first are selected."""
    expected = [j for j in np.argsort(-np.array(scores), kind="stable")[:r] if scores[j] > 0]
    noise = 1 + 1e-12 * np.resize([-1, 0, 1], len(scores))
    assert highest(noise * scores, r).tolist() == sorted(expected)


def test_rounding_errors_of_the_dual_objective_raise_an_error():
    refused = []
    for seed in range(40):  # which of them fail depends on the processor
        X = 1e9 * np.random.default_rng(seed).normal(size=(60, 40))
        model = SparseBatchConfidenceWeighted(q=1, n_group=60)
        try:
            model.fit(np.hstack([X, X]), np.arange(60) % 2)
        except ValueError as error:
            refused.append(str(error))
        else:
            assert np.isfinite(model.coef_).all()
    assert refused
    assert all(re.match(r"Rounding errors made the dual objective invalid .*; scale X", message) for message in refused)
    c = np.empty(3)
    assert not np.isfinite(conjugate(np.array([np.inf, 1.0, np.inf]), 0.01, c)), "it ends"


@pytest.mark.parametrize("slack", [0.0, -1e-16])
@pytest.mark.parametrize("step", [1e-20, 1e-17])
def test_a_variable_at_its_maximum_up_to_rounding_errors_does_not_move(slack, step):
    """Where the slopes at both ends are the same number, no secant exists."""
    squares, e, v, norms, c = np.ones(2), np.zeros(2), np.zeros(2), np.empty(2), np.empty(2)
    assert line_search(step, slack, 0.05, squares, e, v, 1.0, norms, c) == 0.0
