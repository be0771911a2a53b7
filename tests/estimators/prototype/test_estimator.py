"""Learned prototypes: safeguards, limits, the side of scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC

from klr_bench import PrototypeKLR
from klr_bench.datasets.synthetic import gaussian_mixtures, sparse_binary, sparse_text
from klr_bench.estimators.prototype import base, start
from klr_bench.estimators.prototype.model import Rows
from klr_bench.metrics.quality import at_checkpoint, measure
from tests.estimators.samples import spread_out
from tests.reference import prototype as reference

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def three_classes(n=400, components=2, seed=1):
    return gaussian_mixtures(n, 3, components, 0.8, seed)


@pytest.mark.parametrize("solver", ["lbfgs", "adam", "alternating"])
@pytest.mark.parametrize("sparse", [False, True])
def test_all_solvers_learn_and_learned_beats_random(solver, sparse):
    X, y = three_classes(1000)
    rows = sp.csr_matrix(X) if sparse else X
    learned = PrototypeKLR(5, l2=0.0, solver=solver, batch_size=32, random_state=0, max_iter=40).fit(rows, y)
    fixed = PrototypeKLR(5, l2=0.0, learn_prototypes=False, learn_width=False, random_state=0).fit(rows, y)
    best = PrototypeKLR(5, l2=0.0, solver="lbfgs", random_state=0, max_iter=200).fit(X, y)
    assert learned.objective_ < 0.97 * fixed.objective_
    assert learned.objective_ < 1.15 * best.objective_
    assert learned.objective_ == pytest.approx(log_loss(y, learned.predict_proba(rows)), rel=1e-6)
    assert learned.predict_proba(rows).sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("solver", ["lbfgs", "adam"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("n_prototypes", [1, 4])
def test_fitted_attributes_are_copies(n_prototypes, layout, n_classes, solver, kernel):
    X, y = three_classes(90)
    X = layout(X.astype(np.float32))
    model = PrototypeKLR(n_prototypes, kernel=kernel, solver=solver, max_iter=3, random_state=0).fit(X, y % n_classes)
    f = model.decision_function(X)
    assert model.dual_coef_.dtype == np.float64
    for values in (model.dual_coef_, model.prototypes_, *([model.intercept_] if n_classes > 2 else [])):
        assert values.flags.c_contiguous
        values[:] = 0.0
    np.testing.assert_array_equal(model.decision_function(X), f)


@pytest.mark.parametrize(("n_classes", "n_prototypes"), [(5, 10), (6, 12), (30, 60)])
def test_default_number_of_prototypes_and_penalty(n_classes, n_prototypes):
    X, y = np.random.RandomState(0).standard_normal((60, 2)), np.arange(60) % n_classes
    options = {"learn_prototypes": False, "learn_width": False, "random_state": 0}
    usual, same = (PrototypeKLR(*J, l2=l2, **options).fit(X, y) for J, l2 in (((), None), ((n_prototypes,), 1 / 1200)))
    assert usual.n_support_ == n_prototypes
    np.testing.assert_allclose(usual.dual_coef_, same.dual_coef_)


def test_fixed_prototypes_are_logistic_regression_on_their_kernel_values():
    X, y = three_classes()
    fixed = PrototypeKLR(6, learn_prototypes=False, learn_width=False, l2=1e-3, gamma=0.3, tol=1e-9, random_state=3)
    fixed.fit(X, y)
    assert fixed.converged_
    assert {tuple(u) for u in fixed.prototypes_.round(9)} <= {tuple(x) for x in X.round(9)}
    K = rbf_kernel(X, fixed.prototypes_, gamma=0.3)
    np.testing.assert_allclose(fixed.kernel_values(X), K, rtol=1e-8)
    expected = LogisticRegression(C=1 / (1e-3 * len(y)), tol=1e-10, max_iter=5000).fit(K, y)
    np.testing.assert_allclose(fixed.predict_proba(X), expected.predict_proba(K), atol=2e-4)
    centerd = expected.coef_ - expected.coef_.mean(axis=0)
    np.testing.assert_allclose(fixed.dual_coef_ - fixed.dual_coef_.mean(axis=0), centerd, atol=0.02)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_with_the_squared_hinge_fixed_prototypes_are_a_linear_svm_on_their_kernel_values(n_classes):
    X, y = three_classes()
    X, y = X[y < n_classes], y[y < n_classes]
    options = {"learn_prototypes": False, "learn_width": False, "gamma": 0.3, "tol": 1e-9, "random_state": 3}
    fixed = PrototypeKLR(6, loss="squared_hinge", l2=1e-3, **options).fit(X, y)
    K = fixed.kernel_values(X)
    C = 1 / (1e-3 * len(y))  # liblinear penalizes the intercept, which a large scaling makes cheap
    expected = LinearSVC(C=C, dual=False, intercept_scaling=100, tol=1e-10, max_iter=5000).fit(K, y)
    np.testing.assert_allclose(fixed.decision_function(X), expected.decision_function(K), atol=1e-3)
    signs = np.where(y[:, None] == np.arange(1 if n_classes == 2 else 0, n_classes), 1, -1)
    margins = signs * fixed.decision_function(X).reshape(signs.shape)
    loss = np.square(np.maximum(0, 1 - margins)).sum(axis=1).mean()
    assert fixed.objective_ == pytest.approx(loss + 1e-3 / 2 * np.square(fixed.dual_coef_).sum(), rel=1e-6)


def test_the_squared_hinge_learns_support_vectors_and_has_no_probabilities():
    X, y = three_classes(1000)
    options = {"n_prototypes": 5, "loss": "squared_hinge", "random_state": 0, "max_iter": 40}
    fixed = PrototypeKLR(learn_prototypes=False, learn_width=False, **options).fit(X, y)
    for solver in ("lbfgs", "adam", "alternating"):
        learned = PrototypeKLR(solver=solver, batch_size=32, **options).fit(X, y)
        assert learned.objective_ < 0.97 * fixed.objective_
        assert learned.score(X, y) > fixed.score(X, y)
        assert not hasattr(learned, "predict_proba")
    with pytest.raises(AttributeError) as error:
        _ = learned.predict_proba
    assert "requires loss='logit', got loss='squared_hinge'" in str(error.value.__cause__)
    metrics, *_ = measure(learned, X, y)
    assert metrics["accuracy"] == learned.score(X, y)
    assert metrics.keys().isdisjoint({"log_loss", "brier", "ece"})
    assert at_checkpoint(learned, X, y).keys() == {"accuracy", *learned.progress()}


def test_archetypes_of_sparse_rows_need_a_small_dense_sample(monkeypatch):
    X, y = sparse_text(200, 100, 15, 20, 0.5, 0)
    options = {"n_prototypes": 3, "init": "archetypes", "learn_prototypes": False, "random_state": 0}
    fits = [PrototypeKLR(**options).fit(rows, y) for rows in (X, X.toarray())]
    np.testing.assert_allclose(*(model.prototypes_ for model in fits), atol=1e-3)
    monkeypatch.setattr(start, "DENSE", X.shape[0] * X.shape[1] - 1)
    wanted = r"expected at most 19,999 entries, got 200 rows x 100 columns; use init='kmeans' or fewer features\."
    with pytest.raises(ValueError, match=wanted):
        PrototypeKLR(**options).fit(X, y)


def test_l1_makes_prototypes_sparse_and_reaches_its_optimum():
    random = np.random.RandomState(0)
    X = random.standard_normal((300, 10))
    y = (np.hypot(X[:, 0], X[:, 1]) > 1.2).astype(int)
    shared = {"n_prototypes": 3, "gamma": 0.2, "random_state": 0}
    plain = PrototypeKLR(solver="lbfgs", **shared).fit(X, y)
    noisy = PrototypeKLR(l1=0.02, solver="adam", learning_rate=0.03, **shared).fit(X, y)
    exact = PrototypeKLR(l1=0.02, solver="lbfgs", max_iter=400, tol=1e-7, **shared).fit(X, y)
    assert np.mean(plain.prototypes_ == 0) == 0
    assert exact.summary()["nonzero_fraction"] == np.mean(exact.prototypes_ != 0)
    assert min(np.mean(model.prototypes_ == 0) for model in (exact, noisy)) > 0.3
    place = exact._model.layout.slices["u"]
    u, slopes = exact._x[place], exact._model.slopes_of_all(exact._x, Rows(X, y))[1][place]
    assert (np.abs(slopes[u == 0]) <= 0.02 + 1e-4).all(), "0 where the slope is below l1"
    np.testing.assert_allclose(slopes[u != 0], -0.02 * np.sign(u[u != 0]), atol=2e-3)


def test_the_lazy_form_moves_only_what_is_on():
    X, y = sparse_binary(400, 3000, 20, 3, 2, 6, 0.6, 0)
    before = {}
    lazy = PrototypeKLR(5, solver="alternating", lazy=True, random_state=0, max_iter=20, tol=0.0)

    def watch(model, t):
        before.setdefault("U", model.prototypes_.copy())

    lazy.fit(X, y, callback=watch)
    off = np.asarray(X.sum(axis=0)).ravel() == 0
    assert off.sum() > 100
    np.testing.assert_array_equal(lazy.prototypes_[:, off], before["U"][:, off])
    assert (lazy.prototypes_[:, ~off] != before["U"][:, ~off]).mean() > 0.9
    dense = X[:7].toarray()
    theta, U = np.log(lazy.gamma_), lazy.prototypes_.astype(float)
    expected = [[reference.kernel(x, u, theta, lazy=True) for u in U] for x in dense]
    np.testing.assert_allclose(lazy.kernel_values(X[:7]), expected, rtol=1e-4)
    np.testing.assert_allclose(lazy.kernel_values(dense), lazy.kernel_values(X[:7]), rtol=1e-6)


def test_plain_gradient_steps_learn_rise_or_diverge():
    """They learn less than Adam and L-BFGS, but more than fixed prototypes; a rise is no convergence."""
    X, y = three_classes(1000)
    plain = PrototypeKLR(5, solver="gradient", learning_rate=1.0, batch_size=32, random_state=0).fit(X, y)
    fixed = PrototypeKLR(5, learn_prototypes=False, learn_width=False, random_state=0).fit(X, y)
    assert plain.objective_ < 0.97 * fixed.objective_
    X, y = three_classes()
    with pytest.warns(ConvergenceWarning):
        rising = PrototypeKLR(4, solver="gradient", learning_rate=10.0, max_iter=5, random_state=0).fit(X, y)
    assert (rising.n_iter_, rising.converged_) == (5, False)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="diverged in pass 1; lower learning_rate"):
        PrototypeKLR(4, solver="gradient", kernel="poly", learning_rate=1e6, random_state=0).fit(X, y)


@pytest.mark.parametrize("solver", ["adam", "alternating"])
def test_careless_steps_do_not_end_at_the_class_prior(solver):
    X, y = three_classes(600)
    for rate in (3.0, 30.0):
        careless = PrototypeKLR(6, solver=solver, learning_rate=rate, batch_size=32, max_iter=60, random_state=0)
        assert careless.fit(X, y).objective_ < 0.6 * np.log(3)


@pytest.mark.parametrize("solver", ["adam", "alternating", "gradient"])
def test_the_units_of_features_make_no_difference(solver):
    X, y = three_classes(400)
    options = {"n_prototypes": 4, "solver": solver, "kernel": "linear", "gamma": 1.0, "max_iter": 3, "random_state": 0}
    small, large = (PrototypeKLR(**options).fit(unit * X, y).predict_proba(unit * X) for unit in (1.0, 64.0))
    np.testing.assert_allclose(large, small, atol=1e-3)


def test_fixed_coefficients_stay_and_prototypes_alone_learn():
    X, y = three_classes()
    seen = []
    fitted = PrototypeKLR(8, learn_coef=False, random_state=0, max_iter=300)
    fitted.fit(X, y, callback=lambda model, t: seen.append(model.dual_coef_.copy()))
    np.testing.assert_array_equal(fitted.dual_coef_, seen[0])
    assert np.abs(fitted.dual_coef_).max() <= 1
    assert fitted.objective_ < 0.9 * np.log(3)


def test_a_linear_kernel_is_logistic_regression_whatever_the_number_of_prototypes():
    X, y = three_classes()
    plain = log_loss(y, LogisticRegression(C=np.inf, max_iter=5000).fit(X, y).predict_proba(X))
    for J in (2, 3, 7):
        fitted = PrototypeKLR(J, kernel="linear", solver="lbfgs", max_iter=3000, tol=1e-8, random_state=0).fit(X, y)
        assert fitted.objective_ == pytest.approx(plain, rel=1e-3)


def test_validation_rows_are_held_out_and_the_best_pass_is_kept():
    X, y = three_classes(60, components=3)
    model = PrototypeKLR(20, solver="adam", validation_fraction=0.5, max_iter=80, random_state=1)
    kept = []
    model.fit(X, y, callback=lambda m, t: kept.append(m._x.copy()))
    order = np.random.RandomState(1).permutation(60)
    out = np.sort(
        np.concatenate([places[: len(places) // 2] for places in (order[y[order] == code] for code in range(3))])
    )
    losses = [model._model.objective(x, Rows(X[out], y[out], model._origin)) for x in kept]
    assert model.n_iter_ == 80
    assert 0 < np.argmin(losses) < 80, "this many prototypes overfit"
    np.testing.assert_array_equal(model._x, kept[int(np.argmin(losses))])


@pytest.mark.filterwarnings("error")
def test_the_callback_sees_the_start_and_stops():
    X, y = three_classes()
    for solver in ("lbfgs", "adam", "alternating", "gradient"):
        seen = []
        model = PrototypeKLR(3, solver=solver, random_state=0)
        model.fit(X, y, callback=lambda m, t, seen=seen: seen.append(t) or t == 2)
        assert seen == [0, 1, 2]


def test_bad_input_is_refused_in_a_sentence():
    X, y = three_classes(20)
    fixed = {"learn_coef": False, "learn_prototypes": False}
    cases = [
        (r"n_prototypes=21: expected at most 20, the number of training rows\.", PrototypeKLR(21), y),
        (r"needs two classes; got one class", PrototypeKLR(3), np.zeros(20)),
        (r"lazy=True requires kernel='rbf' and a CSR matrix", PrototypeKLR(3, lazy=True), y),
        (r"Nothing to learn", PrototypeKLR(3, **fixed, learn_width=False), y),
        (r"Nothing to learn: .* with a nonlinear kernel\.", PrototypeKLR(3, **fixed, kernel="linear"), y),
        (
            r"n_prototypes=15: expected at most 1\d, the number of training rows",
            PrototypeKLR(15, solver="adam", validation_fraction=0.5),
            y,
        ),
    ]
    for message, model, labels in cases:
        with pytest.raises(ValueError, match=message):
            model.fit(X, labels)


@pytest.mark.parametrize(
    "parameters", [{}, {"solver": "lbfgs"}, {"solver": "adam", "learn_prototypes": False, "learn_width": False}]
)
def test_lbfgs_learns_from_the_rows_that_others_hold_out(parameters):
    X, y = three_classes(60)
    models = [PrototypeKLR(5, validation_fraction=share, random_state=0, **parameters) for share in (0.0, 0.5)]
    whole, shared = (model.fit(X, y).decision_function(X) for model in models)
    np.testing.assert_array_equal(whole, shared)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_that_are_rounding_errors_do_not_determine_the_first_gamma(dtype):
    X = np.full((100, 3), 0.1, dtype=dtype)
    X[80:] += np.random.default_rng(0).normal(size=(20, 3)).astype(dtype)
    y = np.r_[np.arange(80) % 2, np.arange(20) % 2]
    seen = []
    PrototypeKLR(20, random_state=0).fit(X, y, callback=lambda model, t: seen.append(model.gamma_) or True)
    assert 0.01 < seen[0] < 100


def test_kmeans_has_as_many_rows_as_prototypes(monkeypatch):
    monkeypatch.setattr(start, "CLUSTERED", 5)
    X, y = three_classes(60)
    assert len(PrototypeKLR(8, init="kmeans", random_state=0).fit(X, y).prototypes_) == 8


@pytest.mark.parametrize("init", ["random", "kmeans", "archetypes"])
def test_sparse_arrays_may_have_indices_of_64_bits(init):
    X, y = sp.random(60, 9, 0.3, "csr", random_state=0), np.arange(60) % 2
    wide = sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), X.shape)
    assert wide.indices.dtype == np.int64
    found, expected = (
        PrototypeKLR(3, init=init, random_state=0).fit(rows, y).decision_function(X) for rows in (wide, X)
    )
    np.testing.assert_allclose(found, expected)


def test_each_class_keeps_a_row_to_learn_from():
    X, _ = three_classes(60)
    rare = np.where(np.arange(60) == 5, 7, np.arange(60) % 2)
    for seed in range(5):
        model = PrototypeKLR(4, solver="adam", validation_fraction=0.9, max_iter=3, random_state=seed).fit(X, rare)
        assert np.isfinite(model.predict_proba(X)).all()


def test_lbfgs_that_has_not_converged_gives_a_warning():
    X, y = three_classes()
    with pytest.warns(ConvergenceWarning, match="still decreasing after 2 passes"):
        assert not PrototypeKLR(4, solver="lbfgs", max_iter=2, random_state=0).fit(X, y).converged_


def test_documents_are_learned_from_a_wide_kernel_on():
    """With many features, most of them 0, steps on mini-batches stay at the log loss of a constant for long."""
    X, y = sparse_text(2000, 5000, 60, 200, 0.15, 0)
    model = PrototypeKLR(gamma=0.4, max_iter=50, random_state=0)
    assert model.fit(X[:1600], y[:1600]).score(X[1600:], y[1600:]) > 0.9


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "lbfgs"},
        {"solver": "adam", "l1": 1e-3},
        {"solver": "alternating", "init": "kmeans"},
        {"solver": "lbfgs", "init": "archetypes", "loss": "squared_hinge"},
        {"solver": "adam", "lazy": True},
        {"solver": "lbfgs", "kernel": "poly", "degree": 2},
        {"learn_prototypes": False},
    ],
)
def test_only_columns_that_occur_in_the_fit_are_learned(options, monkeypatch):
    X, y = sparse_text(200, 100, 15, 20, 0.5, 0)
    X, later = spread_out(X), spread_out(X, seed=1)
    assert np.setdiff1d(later.indices, X.indices).size
    options = {"n_prototypes": 3, "max_iter": 3, "random_state": 0} | options
    some = PrototypeKLR(**options).fit(X, y)
    monkeypatch.setattr(base, "DENSE_AT_MOST", X.shape[1])
    every = PrototypeKLR(**options).fit(X, y)
    assert some._model.layout.d <= 101 < every._model.layout.d == X.shape[1]
    np.testing.assert_allclose(some.prototypes_.toarray(), every.prototypes_, rtol=1e-9, atol=1e-12)
    for rows in (X, later, later.toarray()) if not options.get("lazy") else (X, later):
        np.testing.assert_allclose(some.decision_function(rows), every.decision_function(rows), rtol=1e-9, atol=1e-12)
    assert some.summary() == pytest.approx(every.summary())


@pytest.mark.parametrize("solver", ["alternating", "gradient"])
def test_without_a_tolerance_all_passes_are_made(solver):
    X, y = three_classes()
    y = np.random.RandomState(1).permutation(y)  # the loss of held-out rows soon increases
    options = {"validation_fraction": 0.5, "max_iter": 15, "l2": 1e-6, "random_state": 0}
    model = PrototypeKLR(20, solver=solver, tol=0.0, **options).fit(X, y)
    assert (model.n_iter_, model.converged_) == (15, False)
    assert PrototypeKLR(20, solver=solver, tol=1e-3, **options).fit(X, y).n_iter_ < 15
