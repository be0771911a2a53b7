"""NystroemKLR against L-BFGS in float64 on the same centers, and its limits."""

import tracemalloc
from contextlib import contextmanager
from itertools import chain, pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from klr_bench import DualCDKLR, NystroemKLR
from klr_bench.estimators.core import kernels
from klr_bench.estimators.kernel_values import newton, row_blocks
from tests.estimators.samples import ALL_KERNELS, KERNELS, LAYOUTS, laid_out, suited, toy
from tests.reference import kernel as reference


def lowest(K, G, y, lam, weights=None, *, fit_intercept=False):
    """Return the smallest objective, and f (n,) at the rows, by L-BFGS; an intercept is not penalized."""
    v = np.full(len(y), 1 / len(y)) if weights is None else weights / weights.sum()
    D, V = np.linalg.eigh(G)
    large = 1e-13 * len(D) * D[-1] < D
    transform = V[:, large] / np.sqrt(D[large])
    Z, penalties = K @ transform, np.full(large.sum(), lam)
    if fit_intercept:
        Z, penalties = np.column_stack([Z, np.ones(len(Z))]), np.append(penalties, 0.0)

    def objective(w):
        z = y * (Z @ w)
        return penalties @ w**2 / 2 + v @ np.logaddexp(0, -z), penalties * w - Z.T @ (v * y * expit(-z))

    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 50}
    found = minimize(objective, np.zeros(Z.shape[1]), jac=True, method="L-BFGS-B", options=options)
    return found.fun, Z @ found.x


def sample(n=1500, d=8, seed=0, classes=2):
    X, y = make_classification(
        n, d, n_informative=6, n_clusters_per_class=2, n_classes=classes, flip_y=0.1, random_state=seed
    )
    return X, 2 * y - 1 if classes == 2 else y


def assert_is_lowest(model, X, y, rtol=1e-6, atol=1e-4, weights=None):
    support = model.support_vectors_
    Z = (support.toarray() if sp.issparse(support) else support).astype(np.float64)
    kernel = {name: getattr(model, name) for name in ("kernel", "gamma", "degree", "coef0")}
    K, G = reference.kernel_matrix(X, Z, **kernel), reference.kernel_matrix(Z, Z, **kernel)
    objective, f = lowest(K, G, y, model.lam, weights, fit_intercept=model.fit_intercept)
    assert model.objective_ == pytest.approx(objective, rel=rtol)
    np.testing.assert_allclose(expit(K @ model.dual_coef_ + model.intercept_), expit(f), atol=atol)


@pytest.mark.parametrize("cache_size", [200, 1e-6])
@pytest.mark.parametrize("kernel", [{"gamma": 20.0}, KERNELS["poly"]], ids=["narrow rbf", "poly"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_an_intercept_is_that_of_lbfgs_and_has_no_penalty(layout, kernel, cache_size):
    X, y = toy()
    rows = (y < 0) | (np.arange(300) % 5 == 0)
    X, y, weights = X[rows], y[rows], np.random.RandomState(0).uniform(0.2, 2, rows.sum())
    options = {
        "lam": 1e-2,
        "n_centers": 40,
        "cache_size": cache_size,
        "random_state": 0,
        "kernel": "rbf",
        "tol": 1e-12,
    } | kernel
    model = NystroemKLR(fit_intercept=True, **options).fit(layout(X), y, weights)
    assert_is_lowest(model, X, y, weights=weights)
    without = NystroemKLR(**options).fit(layout(X), y, weights)
    assert without.intercept_ == 0
    assert model.objective_ < 0.99 * without.objective_
    np.testing.assert_allclose(np.average(model.predict_proba(X)[:, 1] - (y > 0), weights=weights), 0, atol=1e-6)


def test_intercepts_of_several_classes_are_those_of_each_against_the_others():
    X, y = sample(300, classes=3)
    options = {"lam": 1e-3, "n_centers": 30, "fit_intercept": True, "gamma": 0.5, "random_state": 0}
    model = NystroemKLR(**options).fit(X, y)
    for k in range(3):
        binary = NystroemKLR(**options).fit(X, y == k)
        np.testing.assert_allclose(model.intercept_[k], binary.intercept_, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(model.decision_function(X)[:, k], binary.decision_function(X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kernel", [*KERNELS.values(), ALL_KERNELS["laplacian"]], ids=[*KERNELS, "laplacian"])
def test_the_objective_is_that_of_lbfgs_for_all_kernels_and_layouts(kernel, layout, monkeypatch):
    X, y = toy()
    X = suited(X, layout)
    model = NystroemKLR(1e-3, n_centers=40, random_state=0, **kernel).fit(laid_out(X, layout, monkeypatch), y)
    assert_is_lowest(model, X, y)


@pytest.mark.parametrize("centers", ["uniform", "kmeans++", "oskl"])
@pytest.mark.parametrize("lam", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("cache_size", [200, 1e-3])
def test_conjugate_gradients_reach_the_optimum_from_a_small_preconditioner(lam, centers, cache_size, monkeypatch):
    monkeypatch.setattr(newton, "LEAST_ROWS", 200)
    monkeypatch.setattr(newton, "ROWS_PER_CENTER", 3)
    monkeypatch.setattr(row_blocks, "VALUES", 4000)  # blocks of 64 rows
    X, y = sample()
    model = NystroemKLR(lam, n_centers=60, centers=centers, gamma=0.05, cache_size=cache_size, random_state=0)
    assert_is_lowest(model.fit(X, y), X, y)
    assert model.n_passes_ > model.n_iter_ > 1
    assert model.gradient_norm_**2 / (2 * lam) < 1e-3 * model.objective_
    with pytest.warns(ConvergenceWarning):
        early = NystroemKLR(**model.get_params() | {"max_iter": 1, "tol": 0.0}).fit(X, y)
    above = early.objective_ - model.objective_
    assert 0 < above <= early.gradient_norm_**2 / (2 * lam) * (1 + 1e-6)
    rows = {tuple(row) for row in X}
    assert all(tuple(row) in rows for row in model.support_vectors_)
    assert len(np.unique(model.support_vectors_, axis=0)) == model.n_support_ == 60


def test_support_vectors_of_oskl_as_centers_are_filled_up_with_other_rows():
    X, y = sample(100)
    model = NystroemKLR(1e-3, n_centers=100, centers="oskl", gamma=0.1, random_state=0).fit(X, y)
    np.testing.assert_array_equal(np.unique(model.support_vectors_, axis=0), np.unique(X, axis=0))


def test_with_all_rows_as_centers_it_is_the_solution_of_all_kernel_logistic_regression():
    X, y = sample(200)
    model = NystroemKLR(1e-3, n_centers=10_000, gamma=0.1, random_state=0).fit(X, y)
    other = DualCDKLR(1e-3, gamma=0.1, tol=1e-10, max_iter=10_000, random_state=0).fit(X, y)
    assert model.n_support_ == 200
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-7)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-4)


def test_float32_is_near_float64():
    X, y = sample(4000)
    shared = {"lam": 1e-6, "n_centers": 150, "gamma": 0.05, "random_state": 0}
    double, single = (NystroemKLR(**shared, dtype=dtype).fit(X, y) for dtype in ("float64", "float32"))
    assert single.support_vectors_.dtype == np.float32
    assert single.objective_ == pytest.approx(double.objective_, rel=1e-5)
    np.testing.assert_allclose(single.predict_proba(X), double.predict_proba(X), atol=2e-3)


def test_sparse_rows_in_float32_need_not_fit_into_the_cache(monkeypatch):
    X, y = toy()
    rows = laid_out(X.astype(np.float32), "csr by index", monkeypatch)
    models = [NystroemKLR(1e-3, n_centers=40, cache_size=size, random_state=0).fit(rows, y) for size in (200, 1e-3)]
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=1e-6)


def test_weights_are_those_of_repeated_rows():
    X, y = sample(300)
    weights = np.random.RandomState(0).randint(0, 3, 300)
    centers = X[:20]
    shared = {"lam": 1e-3, "gamma": 0.1, "centers": centers, "random_state": 0}
    model = NystroemKLR(**shared).fit(X, y, sample_weight=weights)
    repeated = NystroemKLR(**shared).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(model.predict_proba(X), repeated.predict_proba(X), atol=1e-5)
    assert_is_lowest(model, X, y, weights=weights.astype(float))
    np.testing.assert_array_equal(model.support_vectors_, centers)


def test_classes_share_centers_and_equal_separate_fits():
    X, y = sample(900, classes=3)
    model = NystroemKLR(1e-4, n_centers=50, gamma=0.1, random_state=0).fit(X, y)
    assert model.dual_coef_.shape == (3, 50)
    for k in range(3):
        alone = NystroemKLR(1e-4, centers=model.support_vectors_, gamma=0.1, random_state=0).fit(X, y == k)
        assert model.objective_[k] == pytest.approx(alone.objective_, rel=1e-7)
        np.testing.assert_allclose(model.decision_function(X)[:, k], alone.decision_function(X), atol=2e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_number_of_threads_changes_nothing(dtype, monkeypatch):
    monkeypatch.setattr(row_blocks, "VALUES", 4000)
    X, y = sample(2000)
    fits = [
        NystroemKLR(1e-5, n_centers=50, gamma=0.1, random_state=0, dtype=dtype, cache_size=1e-3, n_jobs=n).fit(X, y)
        for n in (1, 2, 3)
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.dual_coef_, fits[0].dual_coef_)


def test_the_division_of_the_rows_changes_nothing(monkeypatch):
    monkeypatch.setattr(row_blocks, "VALUES", 4000)  # 32 blocks of 64 rows

    @contextmanager
    def in_parts(make, X, signs, shares, block_rows):
        ends = [block_rows * place for place in (0, 3, 4, 17, 32)]
        parts = [
            make(X[first:end], signs[:, first:end], shares[first:end], first // block_rows)
            for first, end in pairwise(ends)
        ]
        yield lambda *call: chain.from_iterable(part.sums(*call) for part in parts)

    X, y = sample(2000)
    model = NystroemKLR(1e-5, n_centers=50, gamma=0.1, random_state=0)
    expected = model.fit(X, y).dual_coef_
    np.testing.assert_array_equal(model.set_params(map_rows=in_parts).fit(X, y).dual_coef_, expected)


def test_repeated_centers_and_separable_classes_are_fitted():
    X = np.repeat(np.arange(4.0), 25)[:, None]
    y = np.where(X[:, 0] > 1, 1, -1)
    model = NystroemKLR(1e-8, n_centers=30, gamma=1.0, random_state=0).fit(X, y)
    assert model.score(X, y) == 1
    assert np.isfinite(model.dual_coef_).all()


def test_memory_mapped_rows_are_not_copied_and_give_the_same_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(kernels, "VARIANCE_VALUES", 10_000)
    X = np.random.default_rng(0).random((40_000, 100), dtype=np.float32)  # 16 MB
    y = X[:, 0] + X[:, 1] > 1
    np.save(tmp_path / "X.npy", X)
    model = NystroemKLR(n_centers=10, cache_size=0.1, random_state=0)
    expected = model.fit(X, y).dual_coef_
    tracemalloc.start()
    model.fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(model.dual_coef_, expected)
    assert peak < 8e6
    assert model._operands.kernel.gamma == pytest.approx(1 / (100 * X.var()), rel=1e-5)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_entries_of_given_centers_may_be_in_parts(kernel):
    X = sp.random_array((200, 6), density=0.5, random_state=0, format="csr")
    X.data[:] = 1.0
    y = X.sum(axis=1) > 3
    centers = X[:10].copy()
    parts = sp.csr_matrix(
        (np.repeat(centers.data / 2, 2), np.repeat(centers.indices, 2), 2 * centers.indptr), shape=centers.shape
    )
    f = [
        NystroemKLR(1e-3, centers=c, kernel=kernel, gamma=0.5).fit(X, y).decision_function(X) for c in (centers, parts)
    ]
    np.testing.assert_allclose(*f, rtol=1e-9)


def test_unfinished_fits_warn_and_a_callback_can_end_them():
    X, y = sample()
    with pytest.warns(ConvergenceWarning, match="after 1 Newton steps the estimated relative distance"):
        NystroemKLR(1e-6, n_centers=60, gamma=0.1, max_iter=1, tol=0.0, random_state=0).fit(X, y)
    calls = []
    model = NystroemKLR(1e-6, n_centers=60, gamma=0.1, random_state=0)
    model.fit(X, y, callback=lambda learner, t: calls.append((learner.objective_, t)) or len(calls) == 1)
    assert [t for _, t in calls] == [model.n_iter_] == [1]
    with pytest.raises(ValueError, match="centers: expected 8 features as in X, got 3"):
        NystroemKLR(centers=np.ones((5, 3))).fit(X, y)
