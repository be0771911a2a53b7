"""Time of solvers of L1-regularized kernel logistic regression to a relative duality gap.

All solvers minimize the same objective, without an intercept, on the same column-major features.  The peers are
liblinear, saga and, if they are installed (pip install klr-bench[peers]), skglm and celer.  They get their preferred
layout and precision, and the largest tolerance in steps of sqrt(10) that reaches the gap; conversion and compilation
are not timed.
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec

import numpy as np
import timing

from klr_bench import L1KLR
from klr_bench.datasets.splits import make_split, prepare
from klr_bench.estimators.kernel_values.features import FourierFeatures, LinearFeatures
from klr_bench.estimators.l1.matrix import FeatureMatrix
from klr_bench.estimators.l1.problem import Problem
from klr_bench.estimators.peers.l1 import PEERS, library_layout, library_model
from klr_bench.runner.bandwidth import distance_percentile

N_COMPONENTS = 500
SOLVERS = {
    "prox_newton": {"solver": "prox_newton"},
    "cgd": {"solver": "cgd"},
    "cgd_fixed": {"solver": "cgd", "threshold": 0.9},
    "multiscale_fista_7": {"solver": "multiscale_fista"},
    "multiscale_fista_8": {"solver": "multiscale_fista", "hessian": "current"},
    "fista": {"solver": "fista"},
}
PATIENCE = 60.0
"""Largest time in seconds of a peer before a tighter tolerance is tried."""


def features(name, seed, medians=1.0):
    """Return column-major Fourier features of the training rows of a split, and their labels.

    sigma is `medians` times the median distance, gamma is 1/sigma^2.
    """
    dataset, spec = timing.loaded(name)
    data = prepare(dataset, make_split(dataset, spec.split, seed, 0), spec.scale)
    sigma = medians * distance_percentile(data.X_train, 50, seed)
    X = data.X_train
    drawn = FourierFeatures.of(X, N_COMPONENTS, 1 / sigma**2, np.random.RandomState(seed))
    return FeatureMatrix(drawn, X).stored, data.y_train


def model(solver, lam, tol, **parameters):
    return L1KLR(features="linear", fit_intercept=False, lam=lam, tol=tol, max_iter=100_000, **solver, **parameters)


def gap_of(w, Z, y, lam):
    """Return the relative duality gap of coefficients w, computed in float64."""
    problem = Problem(FeatureMatrix(LinearFeatures.of(Z), Z), y.astype(float), lam, intercept=False)
    margins = problem.products(w)
    return problem.gap(w, margins) / (problem.loss(margins) + problem.l1(w))


def peer(solver, Z, y, lam, gap):
    """Return the best time of a peer to a gap, the gap and w; the time is inf after PATIENCE."""
    Z_theirs = library_layout(solver, Z)
    y_theirs = y.astype(Z_theirs.dtype)
    library_model(solver, lam, len(y), 0.1, 2).fit(Z_theirs[:100], y_theirs[:100])  # triggers compilation
    for power in range(0, 25):
        other = library_model(solver, lam, len(y), 10 ** (-power / 2), 100_000)
        seconds, _ = timing.once(lambda other=other: other.fit(Z_theirs, y_theirs))
        w = np.ravel(other.coef_).astype(np.float64)
        reached = gap_of(w, Z, y, lam)
        if reached <= gap:
            repeats = 5 if seconds < 10 else 1
            return timing.best(lambda other=other: other.fit(Z_theirs, y_theirs), repeats), reached, w
        if seconds > PATIENCE:
            break
    return np.inf, reached, w


def compare(name, Z, y):
    """Time all solvers and peers for four lambdas and two gaps."""
    peers = [solver for solver in PEERS if solver not in ("skglm", "celer") or find_spec(solver)]
    lambda_max = Problem(FeatureMatrix(LinearFeatures.of(Z), Z), y.astype(float), 0.0, intercept=False).lambda_max()
    for factor in (0.5, 0.2, 0.1, 0.05):
        for gap in (1e-4, 1e-6):
            times = {}
            for solver, parameters in SOLVERS.items():
                if solver == "fista" and gap < 1e-4:
                    continue
                klr = model(parameters, factor * lambda_max, gap)
                times[solver] = timing.best(lambda klr=klr: klr.fit(Z, y), 5 if solver == "prox_newton" else 1)
                yield row(name, factor, gap, solver, times[solver], klr.duality_gap_, klr.coef_, klr.n_iter_)
            for solver in peers if (factor, gap) == (0.1, 1e-4) else peers[:1]:  # saga takes half an hour to 1e-6
                times[solver], reached, w = peer(solver, Z, y, factor * lambda_max, gap)
                yield row(name, factor, gap, solver, times[solver], reached, w, None)
            best = min(times[solver] for solver in peers if solver in times)
            yield row(name, factor, gap, "best peer over prox_newton", best / times["prox_newton"], None, None, None)


def hard(Z, y):
    """Time prox_newton and CGD on cod-rna at 0.001 lambda_max, where CGD converges slowly."""
    problem = Problem(FeatureMatrix(LinearFeatures.of(Z), Z), y.astype(float), 0.0, intercept=False)
    lam = 0.001 * problem.lambda_max()
    fast = model(SOLVERS["prox_newton"], lam, 1e-4)
    seconds, _ = timing.once(lambda: fast.fit(Z, y))
    yield row("cod-rna", 0.001, 1e-4, "prox_newton", seconds, fast.duality_gap_, fast.coef_, fast.n_iter_)
    slow = model(SOLVERS["cgd"], lam, 0.0)
    elapsed, _ = timing.once(lambda: slow.set_params(max_iter=100).fit(Z, y))
    yield row("cod-rna", 0.001, None, "cgd, 100 iterations", elapsed, slow.duality_gap_, slow.coef_, slow.n_iter_)
    end = timing.time.perf_counter() + 20 * seconds
    slow.set_params(max_iter=10**9)
    elapsed, _ = timing.once(lambda: slow.fit(Z, y, callback=lambda *_: timing.time.perf_counter() > end))
    yield row("cod-rna", 0.001, None, "cgd, 20 times as long", elapsed, slow.duality_gap_, slow.coef_, slow.n_iter_)


def row(dataset, factor, target_gap, solver, seconds, gap, coef, n_iter):
    return {
        "dataset": dataset,
        "lambda_factor": factor,
        "wanted_gap": target_gap,
        "solver": solver,
        "seconds_or_ratio": float(seconds),
        "gap": gap,
        "nonzeros": None if coef is None else int(np.count_nonzero(coef)),
        "n_iter": n_iter,
    }


def measure(output):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from compare("mnist10k", *features("mnist10k", 0))
        yield from hard(*features("cod_rna", 0, medians=3.0))
