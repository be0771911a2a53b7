"""L1-regularised kernel logistic regression: against slow references, liblinear, and its own optimality conditions."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from klr_bench import L1KLR, l1_path, lambda_max
from klr_bench.estimators.core.features import FourierFeatures, KernelFeatures, LinearFeatures
from klr_bench.estimators.core.kernels import Kernel
from klr_bench.estimators.l1 import matrix
from klr_bench.estimators.l1.matrix import FeatureMatrix
from klr_bench.estimators.l1.problem import Problem, soft
from klr_bench.estimators.l1.prox_newton import descend
from tests.reference import kernel as reference

EXACT = {
    "prox_newton": {"solver": "prox_newton"},
    "cgd": {"solver": "cgd"},
    "cgd, fixed threshold": {"solver": "cgd", "adaptive": False},
    "multiscale_fista (7)": {"solver": "multiscale_fista"},
    "multiscale_fista (8)": {"solver": "multiscale_fista", "hessian": "current"},
    "fista": {"solver": "fista"},
}
MAPS = {
    "kernel": {"features": "kernel", "gamma": 0.7},
    "fourier": {"features": "fourier", "gamma": 0.7, "n_components": 40, "random_state": 0},
    "linear": {"features": "linear"},
}


def toy(n=120, d=4, seed=1):
    random = np.random.RandomState(seed)
    X = random.standard_normal((n, d)) * (random.random_sample((n, d)) < 0.7)
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * random.standard_normal(n) > 0.4, 1, -1)
    return X, y


def features_of(model, X):
    """The features of the rows of X in float64, as a fitted model has them, by another road than its own."""
    if model.features == "linear":
        return X
    if model.features == "kernel":
        return reference.kernel_matrix(X, X, gamma=model.gamma)
    drawn = model._map
    return drawn.scale * np.cos(X @ drawn.omega.astype(np.float64) + drawn.b)


def problem_of(Z, y, lam, intercept=True):
    return Problem(FeatureMatrix(LinearFeatures.of(Z), Z), y.astype(float), lam, intercept=intercept)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize("solver", EXACT)
def test_reaches_the_reference_optimum(solver, features, intercept):
    X, y = toy()
    tol = 1e-9 if "fista" not in solver else 1e-6
    model = L1KLR(
        **EXACT[solver],
        **MAPS[features],
        lam=0.1,
        lam_relative=True,
        tol=tol,
        fit_intercept=intercept,
        max_iter=200_000,
    ).fit(X, y)
    Z = features_of(model, X)
    w, b = reference.l1_optimum(Z, y, model.lam_, intercept)
    best = reference.l1_objective(w, b, Z, y, model.lam_)
    assert model.objective_ == pytest.approx(reference.l1_objective(model.coef_, model.intercept_, Z, y, model.lam_))
    assert model.objective_ <= best * (1 + (1e-8 if "fista" not in solver else tol))
    gap = reference.l1_gap(model.coef_, model.intercept_, Z, y, model.lam_, intercept)
    assert model.duality_gap_ == pytest.approx(gap / model.objective_, abs=1e-11)
    assert 0 <= model.duality_gap_ <= tol
    assert model.converged_
    gradient = -Z.T @ (y * expit(-y * (Z @ model.coef_ + model.intercept_)))
    active, slack = model.coef_ != 0, 20 * np.sqrt(tol) * model.lam_
    np.testing.assert_allclose(gradient[active], -model.lam_ * np.sign(model.coef_[active]), atol=slack)
    assert (np.abs(gradient) <= model.lam_ + slack).all()
    assert 0 < active.sum() < len(active) or features == "linear"


def test_prox_newton_takes_about_a_dozen_steps():
    X, y = toy(n=400)
    for factor in (0.5, 0.1, 0.02):
        model = L1KLR(lam=factor, lam_relative=True, gamma=0.7, tol=1e-8).fit(X, y)
        assert model.n_iter_ <= 25


@pytest.mark.parametrize("intercept", [True, False])
def test_sgd_c_is_algorithm_4(intercept):
    X, y = toy()
    model = L1KLR(solver="sgd_c", features="linear", lam=3.0, fit_intercept=intercept, n_epochs=2, random_state=5)
    model.fit(X, y)
    assert model.n_iter_ == 240
    random = np.random.RandomState(5)
    order = np.concatenate([random.permutation(len(y)) for _ in range(2)])
    if not intercept:
        np.testing.assert_allclose(model.coef_, reference.sgd_c(X, y, 3.0, order), rtol=1e-9, atol=1e-12)
        return
    ones = np.hstack([X, np.ones((len(X), 1))])  # an intercept is a feature without a penalty
    assert model.intercept_ != 0
    assert model.intercept_ != pytest.approx(reference.sgd_c(ones, y, 3.0, order)[-1])


def test_sgd_c_comes_near_the_optimum():
    X, y = toy(n=2000)
    shared = {"lam": 0.05, "lam_relative": True, **MAPS["fourier"]}
    best = L1KLR(**shared).fit(X, y)
    near = L1KLR(solver="sgd_c", n_epochs=5, **shared).fit(X, y)
    assert best.objective_ < near.objective_ < 1.05 * best.objective_
    assert np.count_nonzero(near.coef_) < 40


@pytest.mark.parametrize("features", MAPS)
def test_liblinear_has_the_same_objective(features):
    X, y = toy()
    model = L1KLR(**MAPS[features], lam=2.0, tol=1e-10, fit_intercept=False).fit(X, y)
    Z = features_of(model, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the penalty's name
        peer = LogisticRegression(
            penalty="l1", solver="liblinear", C=1 / 2.0, fit_intercept=False, tol=1e-10, max_iter=100_000
        ).fit(Z, y)
    theirs = reference.l1_objective(peer.coef_[0], 0.0, Z, y, 2.0)
    assert model.objective_ == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
def test_slopes_are_finite_differences(intercept):
    X, y = toy()
    problem, x = problem_of(X, y, 1.0, intercept), np.linspace(-1, 1, 4 + intercept)
    gradient, diagonal, _ = problem.slopes(problem.products(x), second=True)
    for j, e in enumerate(np.eye(len(x)) * 1e-4):
        above, here, below = (problem.loss(problem.products(p)) for p in (x + e, x, x - e))
        assert gradient[j] == pytest.approx((above - below) / 2e-4, rel=1e-6)
        assert diagonal[j] == pytest.approx((above - 2 * here + below) / 1e-8, rel=1e-4)


@settings(max_examples=200, deadline=None)
@given(
    n=st.integers(2, 30),
    D=st.integers(1, 8),
    seed=st.integers(0, 2**31),
    size=st.sampled_from([0.0, 1e-3, 1.0, 30.0, 1e3]),
    lam=st.sampled_from([1e-6, 0.1, 1.0, 100.0]),
    intercept=st.booleans(),
)
def test_the_gap_is_never_negative(n, D, seed, size, lam, intercept):
    random = np.random.RandomState(seed)
    Z, y = random.standard_normal((n, D)), np.where(random.random_sample(n) < 0.3, 1, -1)
    y[:2] = 1, -1
    x = size * random.standard_normal(D + intercept) * (random.random_sample(D + intercept) < 0.7)
    b = x[-1] if intercept else 0.0
    expected = reference.l1_gap(x[:D], b, Z, y, lam, intercept) if size < 1e3 else None
    gap = problem_of(Z, y, lam, intercept).gap(x)
    assert gap >= 0
    if expected is not None:
        objective = reference.l1_objective(x[:D], b, Z, y, lam)
        assert expected >= -1e-10 * objective
        assert gap == pytest.approx(max(expected, 0), rel=1e-8, abs=1e-10 * objective)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("features", MAPS)
def test_lambda_max_from_both_sides(features, intercept):
    X, y = toy()
    largest = lambda_max(X, y, fit_intercept=intercept, **MAPS[features])
    shared = {"fit_intercept": intercept, "tol": 1e-12, **MAPS[features]}
    with pytest.warns(UserWarning, match="is at least lambda_max"):
        above = L1KLR(lam=largest * 1.001, **shared).fit(X, y)
    below = L1KLR(lam=largest * 0.999, **shared).fit(X, y)
    assert not above.coef_.any()
    assert above.duality_gap_ <= 1e-12
    assert below.coef_.any()
    assert above.intercept_ == pytest.approx(np.log(np.mean(y > 0) / np.mean(y < 0)) if intercept else 0)
    assert above.lambda_max_ == largest
    Z = features_of(below, X)
    w, _ = reference.l1_optimum(Z, y, 1.01 * largest, intercept)
    np.testing.assert_allclose(w, 0, atol=1e-7)


@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize("solver", EXACT)
def test_layouts_and_precisions_agree(solver, features):
    X, y = toy()
    shared = {**EXACT[solver], **MAPS[features], "lam": 2.0, "max_iter": 100_000, "tol": 1e-6}
    double = L1KLR(**shared).fit(X, y)
    for data in (X.astype(np.float32), np.asfortranarray(X.astype(np.float32)), sp.csr_matrix(X.astype(np.float32))):
        model = L1KLR(**shared).fit(data, y)
        assert model.objective_ == pytest.approx(double.objective_, rel=2e-6)
        np.testing.assert_allclose(model.decision_function(data), double.decision_function(X), atol=0.02)
    np.testing.assert_allclose(
        double.decision_function(sp.csr_matrix(X)), double.decision_function(X), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("solver", [*EXACT, "sgd_c"])
@pytest.mark.parametrize("features", MAPS)
def test_blocks_that_are_computed_again_change_nothing(solver, features, monkeypatch):
    monkeypatch.setattr(matrix, "BLOCK", 2000)
    X, y = toy()
    parameters = {"random_state": 0} | EXACT.get(solver, {"solver": solver}) | MAPS[features]
    whole = L1KLR(**parameters, lam=2.0, max_iter=30).fit(X, y)
    for limit in (1e-9, 0.011):  # nothing is kept; what is taken is kept
        blocks = L1KLR(**parameters, lam=2.0, max_iter=30, memory_limit=1e-9 if features == "linear" else limit)
        with pytest.warns(UserWarning, match="computed in blocks, again in every pass"):
            blocks.fit(sp.csr_matrix(X) if features == "linear" else X, y)
        np.testing.assert_allclose(blocks.coef_, whole.coef_, rtol=1e-6, atol=1e-9)
        assert blocks.n_iter_ == whole.n_iter_


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("limit", [np.inf, 0.15, 1e-9])
def test_sums_over_the_matrix(real, by_rows, limit, monkeypatch):
    monkeypatch.setattr(matrix, "BLOCK", 490)
    random = np.random.RandomState(0)
    Z = random.standard_normal((5000 if limit > 1e-3 else 333, 7)).astype(real)
    Z64, h = Z.astype(np.float64), random.random_sample(len(Z))
    whole = FeatureMatrix(LinearFeatures.of(Z), Z, by_rows=by_rows, memory_limit=limit)
    if limit == 0.15:  # room for the matrix, and for nothing that is taken from it
        whole = FeatureMatrix(LinearFeatures.of(Z[::-1]), Z[::-1], by_rows=by_rows, memory_limit=Z.nbytes / 1e6)
        assert whole.stored is not None
        assert whole.take(np.array([0])).stored is None
        Z64 = Z64[::-1]
    J = np.array([5, 1, 2])
    for part, expected in ((whole, Z64), (whole.take(J), Z64[:, J]), (whole.take(J[:0]), Z64[:, :0])):
        w = random.standard_normal(expected.shape[1])
        np.testing.assert_allclose(part.times(w), expected @ w, rtol=1e-11, atol=1e-12)
        V = random.standard_normal((2, len(Z)))
        sums, squares = part.sums(V, h)
        np.testing.assert_allclose(sums, V @ expected, rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(squares, h @ expected**2, rtol=1e-11)
        np.testing.assert_allclose(part.gram(h), expected.T @ (h[:, None] * expected), rtol=1e-3, atol=1e-3)
        np.testing.assert_array_equal(part.rows(np.array([3, 1])), expected[[3, 1]])


def test_coordinate_descent_solves_the_quadratic_model():
    random = np.random.RandomState(0)
    A = random.standard_normal((30, 12))
    H, g, x = A.T @ A, 20 * random.standard_normal(12), random.standard_normal(12)
    penalty = np.append(np.full(11, 8.0), 0.0)
    d = descend(H, g, x, penalty, 10_000, 1e-12)
    step = 1 / np.linalg.norm(H, 2)
    moved = soft(x + d - step * (g + H @ d), step * penalty)
    np.testing.assert_allclose(moved, x + d, atol=1e-9)
    assert (x + d == 0).any()


def test_a_path_is_the_fits_one_by_one():
    X, y = toy()
    shared = {"tol": 1e-9, **MAPS["fourier"]}
    seen = []
    models = l1_path(X, y, (0.05, 0.5, 0.2), callback=lambda model, t: seen.append(t), **shared)
    assert [model.lam for model in models] == [0.5, 0.2, 0.05]
    for model in models:
        alone = L1KLR(lam=model.lam, lam_relative=True, **shared).fit(X, y)
        assert model.objective_ == pytest.approx(alone.objective_, rel=1e-8)
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-3)
    assert len(seen) == sum(model.n_iter_ for model in models)


@pytest.mark.parametrize("solver", ["cgd", "prox_newton", "multiscale_fista"])
def test_a_warm_start_begins_where_the_last_fit_ended(solver):
    X, y = toy()
    model = L1KLR(
        solver=solver, warm_start=True, lam=1.0, features="fourier", n_components=30, tol=1e-6, random_state=0
    )
    first = model.fit(X, y).n_iter_
    coef = model.coef_.copy()
    assert model.fit(X, y).n_iter_ <= first / 2
    np.testing.assert_allclose(model.coef_, coef, atol=1e-2)
    assert model.fit(X[:, :3], y).coef_.shape == (30,)


def test_the_second_stage_keeps_the_support_and_has_a_tenth_of_lambda():
    X, y = toy()
    one = L1KLR(lam=4.0, tol=1e-8, gamma=0.7).fit(X, y)
    two = L1KLR(lam=4.0, tol=1e-8, gamma=0.7, two_stage=True).fit(X, y)
    J = np.flatnonzero(one.coef_)
    assert set(np.flatnonzero(two.coef_)) <= set(J)
    assert two.lam_ == pytest.approx(0.4)
    Z = features_of(one, X)[:, J]
    w, b = reference.l1_optimum(Z, y, 0.4, True)
    assert two.objective_ == pytest.approx(reference.l1_objective(w, b, Z, y, 0.4), rel=1e-7)
    assert two.n_iter_ > one.n_iter_


@pytest.mark.parametrize("solver", [*EXACT, "sgd_c"])
def test_a_callback_sees_a_fitted_model_and_stops_it(solver):
    X, y = toy(n=3000)
    seen = []

    def callback(model, t):
        seen.append((t, model.objective_, model.duality_gap_, np.count_nonzero(model.coef_), model.score(X, y)))
        assert model.n_iter_ == t
        return len(seen) == 3

    model = L1KLR(**EXACT.get(solver, {"solver": solver}), **MAPS["fourier"], lam=0.05, lam_relative=True, tol=1e-12)
    model.fit(X, y, callback=callback)
    assert [t for t, *_ in seen] == ([1024, 2048, 3000] if solver == "sgd_c" else [1, 2, 3])
    assert all(gap >= 0 for _, _, gap, *_ in seen)
    assert (model.n_iter_, model.objective_, model.duality_gap_) == (seen[-1][0], *seen[-1][1:3])
    if solver in ("cgd", "prox_newton"):
        objectives = [objective for _, objective, *_ in seen]
        assert objectives == sorted(objectives, reverse=True)


def test_support_vectors_belong_to_the_kernel_matrix():
    X, y = toy()
    model = L1KLR(gamma=0.7).fit(X, y)
    support = model.coef_ != 0
    assert 0 < model.n_support_ == support.sum() < len(X)
    np.testing.assert_array_equal(model.support_vectors_, X[support])
    K = reference.kernel_matrix(X[:9], model.support_vectors_, gamma=0.7)
    np.testing.assert_allclose(model.decision_function(X[:9]), K @ model.coef_[support] + model.intercept_)
    for features in ("fourier", "linear"):
        assert not hasattr(model.set_params(features=features).fit(X, y), "n_support_")


def test_fourier_features_estimate_the_kernel():
    X, _ = toy()
    Z = FourierFeatures.of(X, 20_000, 0.7, np.random.RandomState(0)).transform(X)
    np.testing.assert_allclose(Z @ Z.T, reference.kernel_matrix(X, X, gamma=0.7), atol=0.05)


def test_maps_take_features():
    X, _ = toy()
    J = np.array([7, 2, 3])
    kernel = KernelFeatures.of(X, Kernel("rbf", 0.7))
    for drawn in (kernel, FourierFeatures.of(X, 20, 0.7, np.random.RandomState(0))):
        np.testing.assert_allclose(drawn.take(J).transform(X), drawn.transform(X)[:, J], rtol=1e-10)
    np.testing.assert_allclose(kernel.transform(X), reference.kernel_matrix(X, X, gamma=0.7), rtol=1e-9)


def test_column_major_features_are_not_copied_and_may_be_read_only(tmp_path):
    X, y = toy()
    X = np.asfortranarray(X.astype(np.float32))
    assert np.shares_memory(FeatureMatrix(LinearFeatures.of(X), X).stored, X)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for solver in ("prox_newton", "sgd_c"):
        expected = L1KLR(solver=solver, features="linear", random_state=0).fit(X, y)
        model = L1KLR(solver=solver, features="linear", random_state=0).fit(mapped, y)
        np.testing.assert_array_equal(model.coef_, expected.coef_)


@pytest.mark.parametrize("parameters", [{"lam": 0.0}, {"lam": -1.0}, {"n_components": 0}, {"solver": "saga"}], ids=str)
def test_refuses_parameters(parameters):
    with pytest.raises(ValueError, match=f"'{next(iter(parameters))}' parameter of L1KLR"):
        L1KLR(**parameters).fit(*toy())


def test_refuses_one_class_and_three():
    X, _ = toy()
    with pytest.raises(ValueError, match="needs two classes; got one class"):
        L1KLR().fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        L1KLR().fit(X, np.arange(len(X)) % 3)


def test_says_when_it_has_not_converged():
    X, y = toy()
    with pytest.warns(ConvergenceWarning, match="after 5 iterations"):
        model = L1KLR(solver="fista", max_iter=5, lam=0.01).fit(X, y)
    assert not model.converged_


def test_labels_of_any_kind_and_pickles():
    X, y = toy()
    plain = L1KLR().fit(X, y)
    model = pickle.loads(pickle.dumps(L1KLR().fit(X, np.where(y > 0, "yes", "no"))))
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict(X) == "yes", plain.predict(X) == 1)
    assert (model.objective_, model.duality_gap_) == (plain.objective_, plain.duality_gap_)


@pytest.mark.parametrize("lams", [(0.5, -0.1), (0.5, 0.0), (0.5, np.nan), ()])
def test_a_path_takes_positive_lambdas_alone(lams):
    with pytest.raises(ValueError, match="lams: expected numbers above 0"):
        l1_path(*toy(), lams)


def test_features_that_are_not_finite_are_refused():
    X, y = toy()
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="features z_i of some rows are not finite"):
        L1KLR(features="kernel", kernel="poly", degree=2.5, lam=0.1).fit(10 * X, y)
