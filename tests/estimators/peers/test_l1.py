"""L1 solvers of other libraries: the same objective, whatever scale they have."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import numpy as np
import pytest

from klr_bench import L1KLR, L1Peer
from klr_bench.estimators.peers.l1 import PEERS
from tests.reference import kernel as reference

LAM = 3.0
TIGHT = {"liblinear": 1e-9, "saga": 1e-8, "skglm": 1e-9, "celer": 1e-9}


def toy(n=150):
    random = np.random.RandomState(1)
    X = random.standard_normal((n, 4))
    return X, np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * random.standard_normal(n) > 0.4, "yes", "no")


def installed(solver):
    if solver in ("skglm", "celer") and find_spec(solver) is None:
        pytest.skip(f"{solver} is not installed: pip install klr-bench[peers]")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("features", ["fourier", "kernel", "linear"])
@pytest.mark.parametrize("solver", PEERS)
def test_the_objectives_agree(solver, features, dtype):
    installed(solver)
    X, y = toy()
    shared = {"features": features, "gamma": 0.7, "lam": LAM, "n_components": 40, "random_state": 0}
    own = L1KLR(**shared, fit_intercept=False, tol=1e-9).fit(X, y)
    tol = max(TIGHT[solver], 3 * np.finfo(dtype).eps)  # less is below rounding, and is never reached
    peer = L1Peer(solver, **shared, tol=tol, max_iter=100_000).fit(X.astype(dtype), y)
    assert peer.objective_ == pytest.approx(own.objective_, rel=1e-6 if dtype == np.float64 else 1e-5)
    assert peer.lambda_max_ == pytest.approx(own.lambda_max_, rel=1e-5)
    assert 0 <= peer.duality_gap_ < 1e-4
    assert peer.coef_.dtype == np.float64
    if features == "linear":
        signs = np.where(y == "yes", 1, -1)
        assert peer.objective_ == pytest.approx(reference.l1_objective(peer.coef_, 0.0, X, signs, LAM), rel=1e-6)
    assert np.mean(peer.predict(X) == own.predict(X)) > 0.98
    assert peer.intercept_ == 0


@pytest.mark.parametrize("solver", PEERS)
def test_a_relative_lambda_and_the_gap_of_a_loose_tolerance(solver):
    installed(solver)
    X, y = toy()
    shared = {"features": "fourier", "gamma": 0.7, "lam": 0.1, "lam_relative": True, "random_state": 0}
    peer = L1Peer(solver, **shared, tol=0.3, max_iter=100_000).fit(X, y)
    own = L1KLR(**shared, fit_intercept=False).fit(X, y)
    assert peer.lam_ == pytest.approx(own.lam_)
    assert peer.converged_
    assert own.duality_gap_ < 1e-4
    assert peer.objective_ >= own.objective_ * (1 - 1e-4)
    with pytest.warns(UserWarning, match="is at least lambda_max"):
        assert not L1Peer(solver, **{**shared, "lam": 1.1}).fit(X, y).coef_.any()


@pytest.mark.parametrize("solver", ["skglm", "celer"])
def test_a_library_that_is_not_there_is_named(solver, monkeypatch):
    monkeypatch.setitem(sys.modules, solver, None)
    with pytest.raises(ImportError, match=rf"solver='{solver}' needs the library {solver}: pip install klr-bench\[pe"):
        L1Peer(solver, features="linear").fit(*toy())


def test_what_belongs_to_l1klr_is_refused():
    with pytest.raises(TypeError, match="fit_intercept"):
        L1Peer(fit_intercept=True)
    with pytest.raises(ValueError, match="'solver' parameter of L1Peer must be"):
        L1Peer("cgd").fit(*toy())
