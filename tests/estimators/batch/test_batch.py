"""The batch solvers against Newton's method, their limits, and the conventions they share with the online learners."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from klr_bench import DualCDKLR, ImportVectorMachine, PrimalCDKLR
from klr_bench.datasets.synthetic import checkerboard
from tests.estimators.samples import ALL_KERNELS, KERNELS, LAYOUTS, laid_out, suited, toy
from tests.reference import kernel as reference

TINY = 0.03
"""A cache_size, in MB, in which the 300 rows of `toy` take several blocks."""
ALL = [DualCDKLR(), PrimalCDKLR(), ImportVectorMachine()]


def assert_is_the_solution(learner, X, y, rtol=1e-8):
    """Compare the objective, computed from the coefficients alone, with that of the reference."""
    dense = X.toarray() if sp.issparse(X) else X
    kernel = {name: getattr(learner, name) for name in ("kernel", "gamma", "degree", "coef0")}
    K = reference.kernel_matrix(dense, dense, **kernel)
    best = reference.batch_objective(K, y, reference.batch_klr(K, y, learner.lam), learner.lam)
    objective = reference.batch_objective(K, y, learner.dual_coef_, learner.lam)
    assert objective == pytest.approx(best, rel=rtol)
    assert learner.objective_ == pytest.approx(objective, rel=rtol)
    assert best >= learner.dual_objective_ - 1e-12
    return K


@pytest.mark.filterwarnings("ignore:cache_size")
@pytest.mark.parametrize(("lam", "cache_size"), [(1e-4, 200), (1e-2, TINY), (1.0, 200)])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kernel", [*KERNELS.values(), ALL_KERNELS["laplacian"]], ids=[*KERNELS, "laplacian"])
def test_dual_reaches_the_objective_of_newton(lam, kernel, layout, cache_size, monkeypatch):
    X, y = toy()
    X = suited(X, layout)
    data = laid_out(X, layout, monkeypatch)
    learner = DualCDKLR(lam, tol=1e-9, max_iter=5000, cache_size=cache_size, random_state=0, **kernel).fit(data, y)
    K = assert_is_the_solution(learner, X, y)
    expected = y * expit(-y * (K @ learner.dual_coef_)) / (len(y) * lam)
    np.testing.assert_allclose(learner.dual_coef_, expected, atol=1e-3 * np.max(np.abs(expected)))
    assert learner.duality_gap_ <= 1e-9


@pytest.mark.filterwarnings("ignore:cache_size")
@pytest.mark.parametrize("cache_size", [TINY, 200])
def test_dual_reaches_a_stationary_point_with_an_indefinite_kernel(cache_size):
    X, y = toy()
    kernel = {"kernel": "sigmoid", "gamma": 0.5, "coef0": 0.5}
    K = reference.kernel_matrix(X, X, **kernel)
    assert np.linalg.eigvalsh(K)[0] < -1
    learner = DualCDKLR(1e-2, tol=1e-9, max_iter=5000, cache_size=cache_size, random_state=0, **kernel).fit(X, y)
    f = K @ learner.dual_coef_
    np.testing.assert_allclose(learner.dual_coef_, y * expit(-y * f) / (len(y) * 1e-2), atol=1e-4)
    assert learner.objective_ == pytest.approx(reference.batch_objective(K, y, learner.dual_coef_, 1e-2))


@pytest.mark.filterwarnings("ignore:cache_size")
@pytest.mark.parametrize("cache_size", [TINY, 200])
@pytest.mark.parametrize(("n", "lam", "gamma"), [(200, 1e-2, 20.0), (300, 1e-3, 100.0)])
def test_primal_reaches_the_objective_of_newton(n, lam, gamma, cache_size):
    X, y = toy(n)
    learner = PrimalCDKLR(lam, tol=1e-9, max_iter=20_000, cache_size=cache_size, gamma=gamma, random_state=0).fit(X, y)
    assert_is_the_solution(learner, X, y)
    assert learner.duality_gap_ <= 1e-9


@pytest.mark.filterwarnings("ignore:cache_size", "ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("cache_size", [TINY, 200])
@pytest.mark.parametrize("learner", [DualCDKLR(), PrimalCDKLR()], ids=str)
def test_the_least_objective_is_between_the_dual_and_the_primal_one_which_meet(learner, cache_size, dtype):
    X, y = toy()
    seen = []

    def callback(learner, t):
        seen.append((t, learner.objective_, learner.dual_objective_, learner.n_iter_, learner.score(X[:20], y[:20])))

    learner = clone(learner).set_params(lam=1e-3, gamma=20.0, cache_size=cache_size, dtype=dtype, random_state=0)
    learner.set_params(tol=1e-5, max_iter=500).fit(X, y, callback=callback)
    t, primal, dual, epochs, _ = map(np.array, zip(*seen, strict=True))
    least = DualCDKLR(lam=1e-3, gamma=20.0, tol=1e-10, max_iter=2000, random_state=0).fit(X, y).objective_
    rounding = 1e-5 if dtype == "float32" else 1e-9
    assert dual.max() <= least * (1 + rounding)
    assert primal.min() >= least * (1 - rounding)
    assert (np.diff(t) > 0).all()
    np.testing.assert_array_equal(epochs, t // len(y))
    assert 0 <= learner.duality_gap_ <= 1e-5
    assert learner.duality_gap_ == pytest.approx((primal[-1] - dual[-1]) / primal[-1], abs=1e-15)
    assert t[-1] == learner.n_iter_ * len(y)


def test_a_fit_may_end_within_an_epoch():
    X, y = toy()
    with pytest.warns(UserWarning, match="cache_size"):
        learner = DualCDKLR(cache_size=TINY, random_state=0).fit(X, y, callback=lambda learner, t: t >= 20)
    assert learner.n_iter_ == 0
    assert 0 < np.count_nonzero(np.abs(learner.dual_coef_) > 1e-100) < 100
    assert learner.predict(X).shape == (300,)


@settings(max_examples=25)
@given(
    n=st.integers(2, 30),
    d=st.integers(1, 3),
    seed=st.integers(0, 2**31),
    lam=st.sampled_from([1e-2, 1.0, 1e3]),
    spread=st.sampled_from([0.0, 1e-3, 1.0, 30.0]),
)
def test_dual_on_any_data(n, d, seed, lam, spread):
    random = np.random.RandomState(seed)
    X, y = np.round(4 * spread * random.standard_normal((n, d))) / 4, np.where(random.random_sample(n) < 0.5, 1, -1)
    y[:2] = -1, 1
    learner = DualCDKLR(lam, gamma=0.7, tol=1e-9, max_iter=100_000, random_state=0).fit(X, y)
    assert_is_the_solution(learner, X, y)


def test_refuses_what_is_not_finite():
    X, y = toy()
    learner = DualCDKLR(kernel="poly", degree=6, gamma=0.25)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"the objective is (nan|inf); scale X"):
        learner.fit((1e8 * X).astype(np.float32), y)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="kernel values are too large or not finite"):
        ImportVectorMachine(kernel="poly", gamma=1.0, degree=3).fit(1e149 * X, y)


def test_an_open_gap_and_small_blocks_give_a_warning():
    X, y = toy()
    with pytest.warns(ConvergenceWarning, match="DualCDKLR: the duality gap .* exceeds tol after max_iter=1"):
        DualCDKLR(1e-6, max_iter=1, random_state=0).fit(X, y)
    message = r"cache_size=0.03 MB holds the kernel values of 12 of 300 rows, so the fit uses blocks of 12"
    with pytest.warns(UserWarning, match=message) as warned:
        DualCDKLR(1e-2, tol=1e-3, cache_size=TINY, random_state=0).fit(X, y)
    assert len(warned) == 1


@pytest.mark.filterwarnings("ignore:cache_size", "ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cache_size", [TINY, 200])
@pytest.mark.parametrize("learner", [DualCDKLR(1e-2), PrimalCDKLR(1e-2)], ids=str)
def test_a_warm_start_goes_on(learner, cache_size):
    X, y = toy()
    learner = clone(learner).set_params(gamma=20.0, tol=1e-7, cache_size=cache_size, warm_start=True, random_state=0)
    first = learner.fit(X, y).n_iter_
    assert first > 1
    assert learner.fit(X, y).n_iter_ == 1
    assert_is_the_solution(learner, X, y, rtol=1e-6)
    learner.set_params(lam=1e-1).fit(X, y)  # the coefficients of the smaller lam do not fit the box
    assert_is_the_solution(learner, X, y, rtol=1e-6)
    with pytest.raises(ValueError, match="rows must be 300 as in the last fit, got 200"):
        learner.fit(X[:200], y[:200])


@pytest.mark.parametrize("learner", ALL, ids=str)
def test_decision_function_is_the_expansion_and_probabilities_its_sigmoid(learner):
    X, y = toy()
    Z = toy(70, seed=5)[0]
    words = np.where(y > 0, "yes", "no")
    learner = clone(learner).set_params(gamma=20.0, lam=1e-2, random_state=0).fit(X, words)
    f = learner.dual_coef_ @ reference.kernel_matrix(learner.support_vectors_, Z, gamma=20.0)
    learner.set_params(gamma=1.0)  # a fitted learner keeps its kernel
    for data in (Z, sp.csr_matrix(Z)):
        np.testing.assert_allclose(learner.decision_function(data), f, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(learner.predict(data), np.where(learner.decision_function(data) > 0, "yes", "no"))
        np.testing.assert_array_equal(learner.predict_proba(data)[:, 1], expit(learner.decision_function(data)))


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "sigmoid"])
def test_import_vectors_are_those_of_the_reference(kernel):
    X, y = toy(80)
    with pytest.warns(ConvergenceWarning, match="still decreasing at max_import_vectors=4"):
        learner = ImportVectorMachine(1e-3, max_import_vectors=4, tol=1e-9, **ALL_KERNELS[kernel]).fit(X, y)
    K = reference.kernel_matrix(X, X, **ALL_KERNELS[kernel])
    rows, a, objective = reference.import_vectors(K, y, 1e-3, 4)
    np.testing.assert_array_equal(learner.support_vectors_, X[rows])
    np.testing.assert_allclose(learner.dual_coef_, a, rtol=1e-6)
    assert learner.objective_ == pytest.approx(objective, rel=1e-10)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_of_equal_import_vectors_the_first_is_chosen():
    """Each corner of a square is as good as the others, up to rounding."""
    corners, y = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]]), np.array([1, -1, 1, -1])
    for angle in np.linspace(0.1, 1.5, 20):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        X = np.tile(corners @ turn, (20, 1))
        learner = ImportVectorMachine(1e-3, max_import_vectors=1, gamma=0.5).fit(X, np.tile(y, 20))
        np.testing.assert_array_equal(learner.support_vectors_, X[:1])


def test_import_vectors_come_near_the_solution():
    X, y = toy()
    machine = ImportVectorMachine(1e-3, gamma=0.7, tol=1e-4, n_candidates=30, random_state=0).fit(X, y)
    full = DualCDKLR(1e-3, gamma=0.7, tol=1e-6, random_state=0).fit(X, y)
    assert full.objective_ * (1 - 1e-6) <= machine.objective_ <= 1.02 * full.objective_
    assert machine.n_support_ < 100
    assert len(np.unique(machine.support_vectors_, axis=0)) == machine.n_support_


@pytest.mark.parametrize("seed", range(4))
def test_candidates_that_are_copies_of_import_vectors_do_not_end_the_fit(seed):
    X, y = toy(60)
    machine = ImportVectorMachine(1e-3, gamma=0.7, tol=0.0, n_candidates=1, random_state=seed)
    machine.fit(np.repeat(X, 5, axis=0), np.repeat(y, 5))
    alone = ImportVectorMachine(1e-3, gamma=0.7, tol=0.0).fit(X, y)
    assert machine.objective_ <= 1.01 * alone.objective_


@pytest.mark.parametrize("seed", range(4))
def test_import_vectors_are_chosen_on_a_checkerboard(seed):
    """The first ones gain next to nothing each; in float32 rounding makes them dependent."""
    X, y = checkerboard(1500, 4, 0.0, 0)
    machine = ImportVectorMachine(1e-4, gamma=6.0, n_candidates=10, random_state=seed)
    assert machine.fit(X, y).n_support_ > 10
    X, y = checkerboard(700, 4, 0.1, 0)
    machine = ImportVectorMachine(1e-5, gamma=6.0, n_candidates=59, random_state=seed)
    assert machine.fit(X.astype(np.float32), y).score(X, y) > 0.75
    assert 20 < machine.n_support_ < 50
