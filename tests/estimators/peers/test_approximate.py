"""Peers: approximate kernel features as one would write them by hand, boosting, and L1 solvers with one objective."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from klr_bench import L1KLR
from klr_bench.config import locations as config_files
from klr_bench.estimators.peers import boosting
from klr_bench.estimators.peers.approximate import ApproximateKernelLR
from klr_bench.estimators.peers.boosting import GradientBoosting
from klr_bench.estimators.peers.l1 import PEERS, L1Peer
from klr_bench.runner.bandwidth import kernel_of
from klr_bench.runner.selection import make
from tests.estimators.samples import skip_if_not_installed, spread_out, toy
from tests.reference import kernel as reference
from tests.reference.kernel import kernel_matrix

CONFIGS = config_files.config_dir()
RANDOM = np.random.RandomState(0)
X = RANDOM.standard_normal((200, 4))
Y = np.where(np.sin(2 * X[:, 0]) + 0.5 * RANDOM.standard_normal(200) > 0, 1, -1)
SHARED = {"kernel": "rbf", "percentile": None, "gamma": 0.3, "degree": 3.0, "coef0": 1.0}

LINEAR = LogisticRegression(C=5.0, max_iter=1000, random_state=7)
SGD = SGDClassifier(loss="log_loss", alpha=1 / (200 * 5.0), max_iter=1000, random_state=7)
FOURIER = RBFSampler(gamma=0.3, n_components=500, random_state=7)
BY_HAND = {
    "svc": SVC(C=5.0, gamma=0.3, random_state=7),
    "lr_nystroem": make_pipeline(Nystroem(gamma=0.3, n_components=200, random_state=7), LINEAR),
    "lr_fourier": make_pipeline(FOURIER, LINEAR),
    "sgd_fourier": make_pipeline(FOURIER, SGD),
}


def configured(stem, shared=SHARED, **parameters):
    """Return the estimator that a run with this shared kernel builds."""
    spec = config_files.read(CONFIGS / "algorithm" / f"{stem}.yaml")["estimator"] | parameters
    return make(spec, kernel_of(spec, shared), seed=7)


@pytest.mark.parametrize("stem", BY_HAND)
def test_a_configuration_builds_what_one_would_write_by_hand(stem):
    fitted, expected = configured(stem, C=5.0).fit(X, Y), BY_HAND[stem].fit(X, Y)
    np.testing.assert_allclose(fitted.decision_function(X), expected.decision_function(X))
    np.testing.assert_array_equal(fitted.predict(X), expected.predict(X))
    if stem == "svc":
        assert not hasattr(fitted, "predict_proba")
    else:
        np.testing.assert_allclose(fitted.predict_proba(X), expected.predict_proba(X))


@pytest.mark.parametrize("weight", [0.01, 3.0])
def test_weights_multiply_the_losses_once(weight):
    """Weights of all rows are as another C."""
    model = configured("sgd_fourier", C=5.0).fit(X, Y, np.full(len(Y), weight))
    alone = configured("sgd_fourier", C=5.0 * weight).fit(X, Y)
    found, expected = model.decision_function(X), alone.decision_function(X)
    assert np.linalg.norm(found - expected) < 0.1 * np.linalg.norm(expected)


def test_the_kernel_reaches_the_features():
    poly = {**SHARED, "kernel": "poly", "gamma": 0.5, "degree": 2.0}
    fitted = configured("lr_nystroem", poly).fit(X, Y)
    features = fitted.pipeline_[0].transform(X)
    np.testing.assert_allclose(features @ features.T, (0.5 * X @ X.T + 1) ** 2, atol=1e-6)
    linear = configured("lr_nystroem", {**SHARED, "kernel": "linear"}).fit(X, Y)
    assert linear.predict(X).shape == (200,)
    with pytest.raises(ValueError, match=r"features='fourier' requires kernel='rbf', got kernel='poly'"):
        configured("lr_fourier", poly).fit(X, Y)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_the_kernel_error_is_that_of_the_worst_pair(kernel, layout):
    model = ApproximateKernelLR("nystroem", n_components=3, kernel=kernel, gamma=0.3, degree=2, random_state=0)
    rows = layout(X[:20])
    origin = model.fit(layout(X), Y).origin_
    Z = model.pipeline_[0].transform(rows if origin is None else rows - origin)
    worst = np.abs(Z @ Z.T - kernel_matrix(X[:20], X[:20], kernel, 0.3, 2)).max()
    assert model.kernel_error(layout(X[:20])) == pytest.approx(worst)
    assert worst > 1e-3


def test_sparse_rows_give_what_dense_ones_give():
    rows, y = toy(n=400)
    dense = HistGradientBoostingClassifier(random_state=0, max_iter=20).fit(rows, y)
    sparse = GradientBoosting(random_state=0, max_iter=20).fit(sp.csr_matrix(rows), y)
    for layout in (np.asarray, sp.csr_matrix):
        for method in ("predict", "predict_proba", "decision_function"):
            np.testing.assert_array_equal(getattr(sparse, method)(layout(rows)), getattr(dense, method)(rows))


def test_only_columns_that_occur_in_the_fit_are_made_dense(monkeypatch):
    monkeypatch.setattr(boosting, "LARGEST", 400 * 4)
    rows, y = toy(n=400)
    few = GradientBoosting(random_state=0, max_iter=20).fit(sp.csr_matrix(rows), y)
    many = GradientBoosting(random_state=0, max_iter=20).fit(spread_out(rows), y)
    np.testing.assert_array_equal(many.predict_proba(spread_out(rows)), few.predict_proba(rows))
    with pytest.raises(ValueError, match="401 sparse rows of 4 features are too many"):
        few.predict(sp.csr_matrix(rows[np.r_[:400, 0]]))
    with pytest.raises(ValueError, match="9999 features"):
        many.predict(spread_out(rows)[:, :9999])


LAM = 3.0
TIGHT = {"liblinear": 1e-9, "saga": 1e-8, "skglm": 1e-9, "celer": 1e-9}
ROWS, SIGNS = toy(n=150)
LABELS = np.where(SIGNS > 0, "yes", "no")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("features", ["fourier", "kernel", "linear"])
@pytest.mark.parametrize(
    "solver", [pytest.param(solver, marks=[pytest.mark.exhaustive] * (solver == "skglm")) for solver in PEERS]
)  # which compiles for seconds
def test_the_objectives_agree(solver, features, dtype):
    skip_if_not_installed(solver)
    shared = {"features": features, "gamma": 0.7, "lam": LAM, "n_components": 40, "random_state": 0}
    ours = L1KLR(**shared, fit_intercept=False, tol=1e-9).fit(ROWS, LABELS)
    tol = max(TIGHT[solver], 3 * np.finfo(dtype).eps)  # less is below rounding, and is never reached
    peer = L1Peer(solver, **shared, tol=tol, max_iter=100_000).fit(ROWS.astype(dtype), LABELS)
    assert peer.objective_ == pytest.approx(ours.objective_, rel=1e-6 if dtype == np.float64 else 1e-5)
    assert peer.lambda_max_ == pytest.approx(ours.lambda_max_, rel=1e-5)
    assert 0 <= peer.duality_gap_ < (1e-4 if dtype == np.float64 else 1e-3)
    assert peer.coef_.dtype == np.float64
    if features == "linear":
        assert peer.objective_ == pytest.approx(reference.l1_objective(peer.coef_, 0.0, ROWS, SIGNS, LAM), rel=1e-6)
    assert np.mean(peer.predict(ROWS) == ours.predict(ROWS)) > 0.98
    assert peer.intercept_ == 0


@pytest.mark.parametrize("solver", PEERS)
def test_a_relative_lambda_and_the_gap_of_a_loose_tolerance(solver):
    skip_if_not_installed(solver)
    shared = {"features": "fourier", "gamma": 0.7, "lam": 0.1, "lam_relative": True, "random_state": 0}
    peer = L1Peer(solver, **shared, tol=0.3, max_iter=100_000).fit(ROWS, LABELS)
    ours = L1KLR(**shared, fit_intercept=False).fit(ROWS, LABELS)
    assert peer.lam_ == pytest.approx(ours.lam_)
    assert peer.converged_
    assert ours.duality_gap_ < 1e-4
    assert peer.objective_ >= ours.objective_ * (1 - 1e-4)
    with pytest.warns(UserWarning, match="is at least lambda_max"):
        assert not L1Peer(solver, **{**shared, "lam": 1.1}).fit(ROWS, LABELS).coef_.any()


@pytest.mark.parametrize("solver", ["skglm", "celer"])
def test_a_library_that_is_not_there_is_named(solver, monkeypatch):
    monkeypatch.setitem(sys.modules, solver, None)
    with pytest.raises(
        ImportError, match=rf"solver='{solver}' needs the library {solver}; run `pip install klr-bench\[pe"
    ):
        L1Peer(solver, features="linear").fit(ROWS, LABELS)


def test_what_belongs_to_l1klr_is_refused():
    with pytest.raises(TypeError, match="fit_intercept"):
        L1Peer(fit_intercept=True)
    with pytest.raises(ValueError, match="'solver' parameter of L1Peer must be"):
        L1Peer("cgd").fit(ROWS, LABELS)
