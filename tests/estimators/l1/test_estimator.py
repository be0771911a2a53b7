"""L1-regularized kernel logistic regression: against slow references, liblinear, and its own optimality conditions."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from klr_bench import L1KLR, lambda_max
from klr_bench.estimators.kernel_values.features import FourierFeatures
from klr_bench.estimators.l1 import matrix
from tests.estimators.l1.samples import EXACT, MAPS, features_of, toy
from tests.estimators.samples import spread_out
from tests.reference import kernel as reference


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize("solver", EXACT)
def test_reaches_the_reference_optimum(solver, features, intercept):
    X, y = toy()
    tol = 1e-9 if "fista" not in solver else 1e-6
    options = EXACT[solver] | MAPS[features] | {"lam": 0.1, "lam_relative": True}
    model = L1KLR(**options, tol=tol, fit_intercept=intercept, max_iter=200_000).fit(X, y)
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


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("unit", [1e-9, 1e-5, 1e4])
def test_the_unit_of_the_features_does_not_matter(unit, intercept):
    X, y = toy()
    options = {"features": "linear", "lam": 0.1, "lam_relative": True, "fit_intercept": intercept, "tol": 1e-8}
    model, expected = (L1KLR(**options, max_iter=100).fit(rows, y) for rows in (unit * X, X))
    assert model.converged_
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-7)
    np.testing.assert_allclose(unit * model.coef_, expected.coef_, atol=1e-3 * np.abs(expected.coef_).max())
    units = np.where(np.arange(X.shape[1]) == 0, unit, 1.0)  # lam is that of the other features
    lam = 0.1 * lambda_max(X[:, 1:], y, features="linear", fit_intercept=intercept)
    assert L1KLR(**options | {"lam": lam, "lam_relative": False}, max_iter=100).fit(X * units, y).converged_


@pytest.mark.parametrize(("n_epochs", "eta0"), [(2, 0.5), (1.5, 0.1)])
def test_sgd_c_is_algorithm_4(n_epochs, eta0):
    X, y = toy()
    steps = {} if eta0 == 0.5 else {"eta0": eta0}
    shared = {"solver": "sgd_c", "features": "linear", "lam": 3.0, "n_epochs": n_epochs, "random_state": 5} | steps
    model = L1KLR(**shared, fit_intercept=False).fit(X, y)
    random = np.random.RandomState(5)
    order = np.concatenate([random.permutation(120), random.permutation(120)])[: int(120 * n_epochs)]
    assert model.n_iter_ == len(order)
    np.testing.assert_allclose(model.coef_, reference.sgd_c(X, y, 3.0, order, eta0), rtol=1e-9, atol=1e-12)
    never = L1KLR(**shared, fit_intercept=False, reference=1e-9).fit(X, y)  # checks every 12 examples, in vain
    np.testing.assert_array_equal(never.coef_, model.coef_)
    assert not never.converged_
    ones = np.hstack([X, np.ones((len(X), 1))])  # an intercept is a feature without a penalty
    odds = np.sum(y > 0) / np.sum(y < 0)  # of the best model without features
    *coef, intercept = reference.sgd_c(ones, y, 3.0, order, eta0, free=[np.log(odds)])
    model = L1KLR(**shared).fit(X, y)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-9, atol=1e-12)
    assert model.intercept_ == pytest.approx(intercept, rel=1e-9)


def test_sgd_c_ends_where_its_mean_objective_is_near_the_reference():
    X, y = toy(n=400)
    shared = {"lam": 0.5, "lam_relative": True, "fit_intercept": False, **MAPS["fourier"]}
    best = L1KLR(**shared, solver="cgd").fit(X, y)
    parameters = shared | {"solver": "sgd_c", "n_epochs": 30}
    model = L1KLR(**parameters, reference="cgd").fit(X, y)
    assert model.converged_
    assert 20 * 4 <= model.n_iter_ < 30 * 400
    ends = range(4, model.n_iter_ + 1, 4)  # by the definition: objectives every N/100 examples
    Z = features_of(best, X)
    random = np.random.RandomState(0)
    FourierFeatures.of(X, 40, 0.7, random)  # draws first
    order = np.concatenate([random.permutation(400) for _ in range(30)])
    objectives = []
    for end in ends:
        w = reference.sgd_c(Z, y, model.lam_, order[:end]) if end > model.n_iter_ - 21 * 4 else None
        objectives.append(np.nan if w is None else reference.l1_objective(w, 0.0, Z, y, model.lam_))
    assert abs(np.mean(objectives[-20:]) / best.objective_ - 1) <= 0.01
    assert abs(np.mean(objectives[-21:-1]) / best.objective_ - 1) > 0.01


@pytest.mark.parametrize("solver", ["cgd", "fista", "multiscale_fista"])
def test_a_fit_with_a_reference_ends_at_the_first_objective_below_it(solver):
    X, y = toy(n=400)
    shared = {"lam": 0.1, "lam_relative": True, "tol": 1e-2, **MAPS["fourier"]}
    first = L1KLR(**shared, solver="cgd").fit(X, y)
    model = L1KLR(**shared, solver=solver, reference="cgd")
    objectives = []
    model.fit(X, y, callback=lambda estimator, t: objectives.append(estimator.objective_))
    assert model.objective_ <= first.objective_ < min(objectives[:-1])
    assert model.converged_
    if solver == "cgd":
        np.testing.assert_array_equal(model.coef_, first.coef_)
    number = L1KLR(**shared, solver=solver, reference=first.objective_).fit(X, y)
    np.testing.assert_array_equal(number.coef_, model.coef_)


@pytest.mark.parametrize("solver", ["sgd_c", "multiscale_fista"])
def test_what_is_rehearsed_ends_at_the_same_place_without_a_reference_solver(solver):
    X, y = toy(n=1000)
    shared = {"lam": 0.5, "lam_relative": True, "tol": 1e-2, "n_epochs": 30, **MAPS["fourier"]}
    model = L1KLR(solver=solver, **shared, reference="prox_newton")
    again = model.rehearse(X, y)
    assert not isinstance(again.reference, str)
    assert (again.reference is None) == (solver == "sgd_c")
    again.fit(X, y)
    model.fit(X, y)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.n_iter_ == model.n_iter_
    plain = L1KLR(solver=solver, **shared)
    assert plain.rehearse(X, y) is plain


@pytest.mark.parametrize("features", ["linear", "fourier"])
def test_fista_is_below_the_bound_of_theorem_1(features):
    X, y = toy()
    shared = {"lam": 0.1, "lam_relative": True, "fit_intercept": False, **MAPS[features]}
    best = L1KLR(**shared, solver="prox_newton", tol=1e-12).fit(X, y)
    Z = features_of(best, X)
    L = np.linalg.norm(Z, 2) ** 2 / 4
    C = 4 * (len(y) * np.log(2) - best.objective_) + 2 * L * best.coef_ @ best.coef_
    objectives = []
    model = L1KLR(**shared, solver="fista", tol=1e-8)
    model.fit(X, y, callback=lambda estimator, t: objectives.append(estimator.objective_))
    assert len(objectives) > 20
    for k, objective in enumerate(objectives, 1):
        assert objective - best.objective_ <= C / (k + 2) ** 2 + 1e-9 * best.objective_


@pytest.mark.parametrize("solver", ["prox_newton", "cgd", "fista"])
def test_tiny_weights_of_all_rows_change_nothing(solver):
    X, y = np.random.RandomState(0).standard_normal((200, 90)), np.arange(200) % 2
    X[:, :5] += y[:, None]
    one, tiny = (
        L1KLR(lam=0.5, lam_relative=True, solver=solver, random_state=0).fit(X, y, sample_weight=np.full(200, weight))
        for weight in (1.0, 1e-20)
    )
    assert tiny.converged_
    np.testing.assert_allclose(tiny.objective_, 1e-20 * one.objective_, rtol=2e-4)


@pytest.mark.parametrize("large", [1e2, 1e4, 1e8])
def test_fista_converges_with_one_large_weight(large):
    X = np.random.default_rng(0).standard_normal((200, 5))
    y = X[:, 0] + 0.5 * X[:, 1] ** 2 > 0
    weights = np.where(np.arange(200) == 3, large, 1.0)
    assert L1KLR(features="linear", solver="fista", random_state=0).fit(X, y, sample_weight=weights).converged_


def test_what_has_not_converged_gives_a_warning():
    X, y = toy()
    with pytest.warns(ConvergenceWarning, match="fista did not reach the reference objective in 3 iterations"):
        L1KLR(solver="cgd", reference="fista", max_iter=3, tol=1e-9).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="in 5 iterations"):
        model = L1KLR(solver="fista", max_iter=5, lam=0.01).fit(X, y)
    assert not model.converged_


def test_cgd_moves_the_coordinates_above_its_threshold():
    X, y = toy()
    Z, signs = X, y.astype(float)
    gradient, diagonal = -Z.T @ signs / 2, np.sum(Z**2, axis=0) / 4
    lam = 0.1 * np.max(np.abs(gradient))
    step = np.sign(-gradient) * np.maximum(np.abs(gradient) - lam, 0) / diagonal
    share = np.abs(step) / np.max(np.abs(step))
    for threshold in (1.0, 0.99 * np.sort(share)[-2]):
        shared = {"solver": "cgd", "features": "linear", "lam": lam, "fit_intercept": False, "tol": 0.0, "max_iter": 1}
        with pytest.warns(ConvergenceWarning):
            model = L1KLR(**shared, threshold=threshold).fit(X, y)
        assert model.coef_.any()
        np.testing.assert_array_equal(model.coef_ != 0, share >= threshold)


def test_greedy_cgd_moves_the_coordinate_that_decreases_the_quadratic_model_most():
    X, y = toy()
    gradient, diagonal = -X.T @ y / 2, np.sum(X**2, axis=0) / 4
    lam = 0.1 * np.max(np.abs(gradient))
    steps = np.sign(-gradient) * np.maximum(np.abs(gradient) - lam, 0) / diagonal
    model_changes = [g * d + h * d**2 / 2 + lam * abs(d) for g, h, d in zip(gradient, diagonal, steps, strict=True)]
    shared = {"solver": "cgd", "features": "linear", "lam": lam, "fit_intercept": False, "tol": 0.0, "max_iter": 1}
    with pytest.warns(ConvergenceWarning):
        model = L1KLR(**shared, threshold="greedy").fit(X, y)
    assert np.flatnonzero(model.coef_) == [np.argmin(model_changes)]


@pytest.mark.parametrize("solver", ["prox_newton", "cgd", "multiscale_fista (7)", "sgd_c"])
@pytest.mark.parametrize("features", MAPS)
def test_blocks_that_are_computed_again_change_nothing(solver, features, monkeypatch):
    monkeypatch.setattr(matrix, "BLOCK", 2000)
    X, y = toy()
    parameters = {"random_state": 0} | EXACT.get(solver, {"solver": solver}) | MAPS[features]
    whole = L1KLR(**parameters, lam=2.0, max_iter=30).fit(X, y)
    for limit in (1e-9, 0.011):  # nothing is kept; what is taken is kept
        blocks = L1KLR(**parameters, lam=2.0, max_iter=30, memory_limit=1e-9 if features == "linear" else limit)
        with pytest.warns(UserWarning, match="recomputed in every pass"):
            blocks.fit(sp.csr_matrix(X) if features == "linear" else X, y)
        np.testing.assert_allclose(blocks.coef_, whole.coef_, rtol=1e-6, atol=1e-9)
        assert blocks.n_iter_ == whole.n_iter_


@pytest.mark.parametrize("solver", ["cgd", "prox_newton", "multiscale_fista"])
def test_a_warm_start_begins_where_the_last_fit_ended(solver):
    X, y = toy()
    shared = {"lam": 1.0, "features": "fourier", "n_components": 30, "tol": 1e-6, "random_state": 0}
    model = L1KLR(solver=solver, warm_start=True, **shared)
    first = model.fit(X, y).n_iter_
    coef = model.coef_.copy()
    assert model.fit(X, y).n_iter_ <= first / 2
    np.testing.assert_allclose(model.coef_, coef, atol=1e-2)
    assert model.fit(X[:, :3], y).coef_.shape == (30,)


def test_a_warm_start_uses_a_new_gamma():
    X, y = toy()
    shared = {"features": "fourier", "n_components": 30, "tol": 1e-8, "random_state": 0}
    model = L1KLR(gamma=0.1, warm_start=True, **shared).fit(X, y).set_params(gamma=1.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, L1KLR(gamma=1.0, **shared).fit(X, y).coef_, atol=1e-3)


def test_the_second_stage_keeps_the_support_and_has_a_tenth_of_lambda():
    X, y = toy()
    one_stage, seen = L1KLR(lam=4.0, tol=1e-8, gamma=0.7).fit(X, y), []
    two_stage = L1KLR(lam=4.0, tol=1e-8, gamma=0.7, two_stage=True)
    two_stage.fit(X, y, callback=lambda model, t: seen.append(model.progress()))
    J = np.flatnonzero(one_stage.coef_)
    assert set(np.flatnonzero(two_stage.coef_)) <= set(J)
    assert two_stage.lam_ == pytest.approx(0.4)
    Z = features_of(one_stage, X)[:, J]
    w, b = reference.l1_optimum(Z, y, 0.4, True)
    assert two_stage.objective_ == pytest.approx(reference.l1_objective(w, b, Z, y, 0.4), rel=1e-7)
    assert two_stage.n_iter_ > one_stage.n_iter_
    stages = [checkpoint["stage"] for checkpoint in seen]
    assert stages == sorted(stages)
    assert set(stages) == {1, 2}
    assert all(("objective" in point) == ("duality_gap" in point) == (point["stage"] == 1) for point in seen)
    assert two_stage.summary()["objective"] == two_stage.objective_
    assert "stage" not in one_stage.progress()


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


def test_a_fit_with_a_reference_may_end_with_the_first_callback():
    X, y = toy()
    model = L1KLR(reference="cgd", lam=0.05, lam_relative=True, random_state=0)
    for _ in range(2):
        assert not model.fit(X, y, callback=lambda *_: True).converged_
        assert model.fit(X, y).converged_


@pytest.mark.parametrize("features", ["kernel", "fourier"])
def test_a_warm_start_that_ends_early_keeps_nothing_of_other_rows(features):
    X, y = toy(n=300)
    y = np.where(X[:, 0] > 0.5, 2, y)
    model = L1KLR(features=features, lam=0.05, lam_relative=True, warm_start=True, random_state=0).fit(X, y)
    model.fit(X[:80], y[:80], callback=lambda *_: True)
    assert np.atleast_2d(model.coef_).shape[0] == 1
    assert model.predict(X).shape == (300,)


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


def test_features_that_are_not_finite_are_refused():
    X, y = toy()
    options = {"features": "kernel", "kernel": "poly", "degree": 2.5}
    for fit in (L1KLR(**options, lam=0.1).fit, partial(lambda_max, **options)):
        with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="features of some rows are not finite"):
            fit(10 * X, y)


@pytest.mark.parametrize(
    "options", [{"solver": "fista"}, {"solver": "prox_newton", "two_stage": True}, {"solver": "sgd_c"}, {"classes": 3}]
)
def test_columns_without_entries_change_nothing(options):
    X, y = toy()
    y = np.arange(len(y)) % options.pop("classes", 2)
    narrow, wide = sp.csr_matrix(X), spread_out(X)
    shared = {"features": "linear", "lam": 0.1, "lam_relative": True, "warm_start": True, "random_state": 0}
    models = [L1KLR(**shared, **options) for _ in range(2)]
    for _ in range(2):  # the second time from the coefficients of the first
        few, many = (model.fit(rows, y) for model, rows in zip(models, (narrow, wide), strict=True))
        np.testing.assert_allclose(many.decision_function(wide), few.decision_function(narrow), rtol=1e-9, atol=1e-12)
        assert many.coef_.shape[-1] == wide.shape[1]
        assert np.count_nonzero(many.coef_) == np.count_nonzero(few.coef_) > 0
        np.testing.assert_array_equal(many.n_iter_, few.n_iter_)
