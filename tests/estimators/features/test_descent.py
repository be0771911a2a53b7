"""FOGD and NOGD: equal to the reference, and kernel gradient descent with many features or within their span."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from klr_bench import protocols
from klr_bench.estimators.features import fogd
from klr_bench.estimators.features import nogd as nystroem
from tests.cover import cover
from tests.estimators.one_pass import FOGD, NOGD, KernelOGD
from tests.estimators.samples import KERNELS, LAYOUTS, laid_out, suited, toy
from tests.reference import kernel as reference
from tests.reference.kernel import descent, fourier_features, nogd

LOSSES = ["logit", "hinge", "square"]


def weights_of(n, *, weighted):
    """Return weights (n,) of rows, some of them 0, or 1 for all."""
    return np.random.RandomState(7).choice([0.0, 0.5, 1.0, 2.5], n) if weighted else np.ones(n)


def positive(X, y, weights):
    """Return the rows, labels and weights of the rows with positive weight, which are those that count."""
    return X[weights > 0], y[weights > 0], weights[weights > 0]


@cover(
    3,
    loss=LOSSES,
    layout={"dense": np.asarray, "csr": sp.csr_matrix},
    n_components=[1, 7, 60],
    chunk=[1, 5, 64, 1000],
    average=[False, True],
    weighted=[False, True],
    dtype=["float64", "float32"],
)
def test_equals_the_reference(loss, layout, n_components, chunk, average, weighted, dtype, monkeypatch):
    monkeypatch.setattr(fogd, "rows_of_chunk", lambda D: chunk)
    X, y = toy(n=150)
    weights = weights_of(150, weighted=weighted)
    learner = FOGD(n_components, eta=0.4, loss=loss, average=average, gamma=0.7, random_state=3)
    learner.fit(layout(X.astype(dtype)), y, sample_weight=weights if weighted else None)
    X, y, weights = positive(X, y, weights)
    Z = fourier_features(X, n_components, 0.7, 3)
    last, mean, mistakes, updates = descent(Z, y, 0.4, loss, weights)
    rtol, atol = (1e-9, 1e-11) if dtype == "float64" else (0, 1e-4)
    np.testing.assert_allclose(learner.coef_, mean if average else last, rtol=rtol, atol=atol)
    np.testing.assert_allclose(learner.decision_function(X), Z @ learner.coef_, rtol=rtol, atol=atol)
    assert learner.t_ == len(y)
    if dtype == "float64":
        assert (learner.n_mistakes_, learner.n_updates_) == (mistakes, updates)


@pytest.mark.parametrize("loss", LOSSES)
def test_with_more_features_it_comes_closer_to_kernel_gradient_descent(loss):
    X, y = toy(n=200)
    exact = KernelOGD(eta=0.3, loss=loss, gamma=0.7, average=True).fit(X, y).decision_function(X)

    def distance(D):
        seeds = [FOGD(D, 0.3, loss, average=True, gamma=0.7, random_state=seed).fit(X, y) for seed in range(5)]
        return np.mean([np.abs(learner.decision_function(X) - exact).mean() for learner in seeds])

    # it falls with the root of their number, by 20
    assert distance(20_000) < min(0.1 * distance(50), 0.05 * np.abs(exact).mean())


@pytest.mark.parametrize("average", [False, True])
def test_the_average_of_several_passes_is_that_of_the_last_one(average):
    X, y = toy(n=200)
    twice = FOGD(30, gamma=0.7, random_state=0, average=average, n_epochs=2).fit(X, y)
    Z = fourier_features(X, 30, 0.7, 0)
    last, both, mistakes, _ = descent(np.vstack([Z, Z]), np.r_[y, y], 0.5, "logit", np.ones(400))
    first = descent(Z, y, 0.5, "logit", np.ones(200))[1]
    np.testing.assert_allclose(twice.coef_, 2 * both - first if average else last, rtol=1e-9, atol=1e-12)
    assert (twice.t_, twice.n_mistakes_) == (400, mistakes)


def test_many_classes_share_the_features(monkeypatch):
    monkeypatch.setattr(fogd, "rows_of_chunk", lambda D: 70)
    X, _ = toy(n=200)
    labels = np.digitize(X[:, 0] + X[:, 1], [-0.4, 0.4])
    learner = FOGD(30, gamma=0.7, random_state=0).fit(X, labels)
    Z = fourier_features(X, 30, 0.7, 0)
    each = [descent(Z, np.where(labels == k, 1, -1), 0.5, "logit", np.ones(200)) for k in range(3)]
    np.testing.assert_allclose(learner.coef_, [last for last, *_ in each], rtol=1e-9, atol=1e-12)
    assert learner.n_mistakes_ == sum(mistakes for _, _, mistakes, _ in each)
    assert learner.n_updates_ == 600


def test_what_an_experiment_is_told():
    X, y = toy(n=100)
    learner = FOGD(4, gamma=0.7, random_state=0).fit(X, y)  # as many features as columns of X
    rate = learner.n_mistakes_ / 100
    assert protocols.summary(learner, 100) == {"nonzero_fraction": 1.0, "n_updates": 100, "mistake_rate": rate}
    assert protocols.selected_features(learner) is None


def test_a_step_that_is_too_large_is_refused():
    X, y = toy(n=300)
    with pytest.raises(
        ValueError, match=r"FOGD: at example number \d+, .* is not finite \(f\(x\) = .*\); use a smaller step"
    ):
        FOGD(30, eta=1e4, loss="square", gamma=0.7, random_state=0).fit(X, y)


def assert_same_learner(learner, X, y, f, *, tolerance):
    """Compare with the reference: the support vectors, every coefficient, and the counts."""
    places, last, mean, mistakes, updates = f
    support = learner.support_vectors_
    np.testing.assert_array_equal(support.toarray() if sp.issparse(support) else support, X[places])
    expected = mean if learner.average else last
    coef, atol = np.atleast_2d(learner.dual_coef_), tolerance * np.abs(expected).max()
    np.testing.assert_allclose(coef, expected, rtol=tolerance, atol=atol)
    assert learner.n_support_ == len(places) <= learner.budget
    assert (learner.n_mistakes_, learner.n_updates_, learner.t_) == (mistakes, updates, len(y))


@pytest.mark.parametrize("cuts", [[], [1], [2], [3], [1, 2, 3]])
def test_rounding_errors_make_no_step_at_a_tie(cuts):
    """At the last row the sum 1 + e^-0.5 - e^-0.5 of its kernel values is 1, where the hinge loss is 0."""
    X, y = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), np.array([1, 1, 0, 1])
    learner = NOGD(50, loss="hinge", eta=1.0, gamma=0.5, n_epochs=1, shuffle=False, random_state=0)
    for rows in np.split(np.arange(4), cuts):
        learner.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert learner.n_support_ == 3


@cover(
    3,
    loss=LOSSES,
    budget_rank=[(1, 1), (2, 1), (20, 4), (40, 9), (200, 9)],
    kernel=KERNELS,
    layout=LAYOUTS,
    block=[1, 7, 64, 1024],
    average=[False, True],
    weighted=[False, True],
)
def test_nogd_equals_the_reference(loss, budget_rank, kernel, layout, block, average, weighted, monkeypatch):
    monkeypatch.setattr(nystroem.NystroemState, "chunk", block)
    monkeypatch.setattr(nystroem, "BLOCK", block)
    X, y = toy(n=150, d=12, empty_rows=False)
    X, weights = suited(X, layout), weights_of(150, weighted=weighted)
    eta = 0.3 if loss == "hinge" and "bits" not in layout else 0.02  # of bits f may be 0 but for rounding
    learner = NOGD(*budget_rank, eta=eta, loss=loss, average=average, **kernel)
    learner.fit(laid_out(X, layout, monkeypatch), y, sample_weight=weights if weighted else None)
    X, y, weights = positive(X, y, weights)
    K = reference.kernel_matrix(X, X, **kernel)
    f = nogd(K, y[None], *budget_rank, eta, loss, weights)
    assert_same_learner(learner, X, y, f, tolerance=1e-7)
    np.testing.assert_allclose(learner.decision_function(X), learner.dual_coef_ @ K[f[0]], rtol=1e-7, atol=1e-9)
    single = clone(learner).fit(X.astype(np.float32), y, weights)
    assert single.support_vectors_.dtype == np.float32
    support = learner.support_vectors_.toarray() if sp.issparse(learner.support_vectors_) else learner.support_vectors_
    if np.array_equal(single.support_vectors_, support.astype(np.float32)):  # no step has flipped
        expected = learner.decision_function(X)
        found = single.decision_function(X.astype(np.float32))
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-2 * np.abs(expected).max())
    else:
        assert loss == "hinge"


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_many_classes_have_the_same_support_vectors(loss, average, monkeypatch):
    monkeypatch.setattr(nystroem.NystroemState, "chunk", 70)
    X, _ = toy(n=300)
    labels = np.digitize(X[:, 0] + X[:, 1], [-0.4, 0.4])
    Y = np.where(labels == np.arange(3)[:, None], 1, -1)
    learner = NOGD(40, 9, eta=0.3, loss=loss, average=average, gamma=0.7).fit(X, labels)
    K = reference.kernel_matrix(X, X, gamma=0.7)
    f = nogd(K, Y, 40, 9, 0.3, loss, np.ones(300))
    assert_same_learner(learner, X, labels, f, tolerance=1e-7)
    assert learner.decision_function(X).shape == (300, 3)
    np.testing.assert_allclose(learner.decision_function(X), K[:, f[0]] @ learner.dual_coef_.T, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_with_room_or_with_all_features_it_is_kernel_gradient_descent(loss, average):
    """Rows that come again lie in the span of the support vectors, and so does each gradient."""
    X, y = toy(n=60, empty_rows=False)
    X, y = np.vstack([X, X, X]), np.r_[y, -y, y]
    budget = NOGD(1000, eta=0.3, loss=loss, gamma=8.0).fit(X[:60], y[:60]).n_support_
    seen = np.isin(X, NOGD(budget, eta=0.3, loss=loss, gamma=8.0).fit(X, y).support_vectors_).all(axis=1)
    X, y = X[seen], y[seen]
    exact = KernelOGD(eta=0.3, loss=loss, gamma=8.0, average=average).fit(X, y)
    for size in (budget, len(y) + 1):
        learner = NOGD(size, min(size, budget), eta=0.3, loss=loss, gamma=8.0, average=average).fit(X, y)
        assert learner.n_support_ <= size
        np.testing.assert_allclose(learner.decision_function(X), exact.decision_function(X), rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(learner.support_vectors_, exact.support_vectors_)


def test_the_projection_is_the_nearest_function_on_the_features():
    """At the moment when there is no more room f becomes its projection: what is left is orthogonal to the features."""
    X, y = toy(n=40)
    free, projected = (NOGD(budget, 9, eta=0.3, gamma=0.7).fit(X, y) for budget in (41, 40))
    K = reference.kernel_matrix(X, X, gamma=0.7)
    left = free.dual_coef_ - projected.dual_coef_
    vectors = np.linalg.eigh(K)[1]
    np.testing.assert_allclose(vectors[:, -9:].T @ K @ left, 0, atol=1e-10)
    np.testing.assert_allclose(vectors[:, :-9].T @ projected.dual_coef_, 0, atol=1e-10)
    assert left @ K @ left > 1e-4


def test_more_features_than_the_kernel_has_change_nothing():
    """A linear kernel of 4 columns has rank 4; the other eigenvalues are 0 but for rounding."""
    X, y = toy(n=300)
    few, many = (NOGD(60, rank, eta=0.1, kernel="linear").fit(X, y) for rank in (4, 60))
    np.testing.assert_allclose(many.decision_function(X), few.decision_function(X), rtol=1e-6, atol=1e-9)
    single = NOGD(60, 60, eta=0.1, kernel="linear").fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.decision_function(X), few.decision_function(X), rtol=0, atol=1e-3)
    for learner in (many, single):
        P, rows = learner._state.projection, learner.support_vectors_
        P = P[:, P.any(axis=0)]
        assert P.shape == (60, 4)
        np.testing.assert_allclose(P.T @ (rows @ rows.T) @ P, np.eye(4), atol=1e-4)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("budget", [30, 150, 250, 1000])
def test_the_average_of_nogd_is_that_of_the_last_pass(budget, average):
    X, y = toy(n=200)
    twice = NOGD(budget, 9, gamma=0.7, average=average, n_epochs=2).fit(X, y)
    K, Y = np.tile(reference.kernel_matrix(X, X, gamma=0.7), (2, 2)), np.r_[y, y][None]
    places, last, both, *_ = nogd(K, Y, budget, 9, 0.5, "logit", np.ones(400))
    first, _, of_first, *_ = nogd(K[:200, :200], Y[:, :200], budget, 9, 0.5, "logit", np.ones(200))
    coef = 2 * both if average else last
    coef[:, : len(first)] -= average * of_first
    np.testing.assert_allclose(twice.dual_coef_, coef[0], rtol=1e-6, atol=1e-9)
    assert twice.summary()["sparsity"] == max(1 - len(places) / 200, 0)


def test_a_kernel_matrix_that_overflows_is_refused():
    """f is finite at all examples, but not the product of the last one with itself."""
    X, y = toy(n=8, empty_rows=False)
    X[7:] *= 1e149
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"at example number 8, .* is not finite"):
        NOGD(8, loss="square", kernel="poly", degree=3).fit(X, y)


def test_the_rank_is_at_most_the_budget():
    X, y = toy(n=20)
    with pytest.raises(ValueError, match=r"The 'rank' parameter of NOGD must be at most budget=10\. Got 11"):
        NOGD(10, 11).fit(X, y)
