"""Solvers of L1-regularised kernel logistic regression: the time to a relative duality gap, on one matrix of features.

All minimise the same objective, without an intercept.  The peers get the data as they work on it (float64, row by row),
and the largest tolerance in steps of sqrt(10) that reaches the gap; compilation is outside the clock.
"""

from __future__ import annotations

import gzip
import lzma
import os
import warnings
from pathlib import Path

import numpy as np
import timing
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances

from klr_bench.features import FourierFeatures, LinearFeatures
from klr_bench.l1 import L1KLR
from klr_bench.l1.matrix import FeatureMatrix
from klr_bench.l1.problem import Problem

N_COMPONENTS = 500
SOLVERS = {
    "prox_newton": {"solver": "prox_newton"},
    "cgd": {"solver": "cgd"},
    "cgd_fixed": {"solver": "cgd", "adaptive": False},
    "multiscale_fista_7": {"solver": "multiscale_fista"},
    "multiscale_fista_8": {"solver": "multiscale_fista", "hessian": "current"},
    "fista": {"solver": "fista"},
}
PEERS = ("liblinear", "saga")
MIRROR = Path(os.environ.get("KLR_BENCH_MIRROR") or timing.ROOT.parent / "shared" / "data")
PATIENCE = 60.0
"""Seconds after which a tighter tolerance of a peer is not tried."""


def idx(name):
    """Read a file of MNIST: two zero bytes, a type, the number of dimensions, the dimensions, the bytes."""
    content = gzip.decompress((MIRROR / "mnist" / f"{name}-ubyte.gz").read_bytes())
    shape = np.frombuffer(content, ">i4", content[3], 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(shape)


def mnist10k(random):
    """Return '3' against the rest, 5,000 rows of each, pixels / 255; generated rows where there is no MNIST."""
    if not (MIRROR / "mnist").is_dir():
        return ("generated", *timing.noise(10_000, 784))
    parts = [(idx(f"{part}-images-idx3"), idx(f"{part}-labels-idx1")) for part in ("train", "t10k")]
    images, digits = (np.concatenate(of_all) for of_all in zip(*parts, strict=True))
    chosen = [random.permutation(np.flatnonzero((digits == 3) == positive))[:5000] for positive in (True, False)]
    rows = random.permutation(np.concatenate(chosen))
    return "mnist10k", images[rows].reshape(len(rows), -1).astype(np.float32) / 255, np.where(digits[rows] == 3, 1, -1)


def cod_rna(random):
    """Return all rows but 5,000, as they are."""
    parts = []
    for name in ("cod-rna", "cod-rna.t"):
        with lzma.open(MIRROR / "cod-rna" / f"{name}.xz") as file:
            X, y = load_svmlight_file(file, n_features=8, dtype=np.float32)
            parts.append((X.toarray(), y))
    X, y = (np.concatenate(of_all) for of_all in zip(*parts, strict=True))
    rows = random.permutation(len(y))[5000:]
    return X[rows], np.where(y[rows] > 0, 1, -1)


def fourier(X, random, medians=1.0):
    """Return column-major Fourier features; sigma is `medians` times the median distance."""
    sample = X[random.permutation(len(X))[:2000]].astype(np.float64)
    sigma = medians * np.median(pairwise_distances(sample)[np.triu_indices(len(sample), 1)])
    return FeatureMatrix(FourierFeatures.of(X, N_COMPONENTS, 1 / sigma**2, random), X).stored


def model(solver, lam, tol, **parameters):
    return L1KLR(features="linear", fit_intercept=False, lam=lam, tol=tol, max_iter=100_000, **solver, **parameters)


def gap_of(w, Z, y, lam):
    """Return the relative gap of coefficients w, by sums in float64."""
    problem = Problem(FeatureMatrix(LinearFeatures.of(Z), Z), y.astype(float), lam, intercept=False)
    margins = problem.products(w)
    return problem.gap(w, margins) / (problem.loss(margins) + problem.l1(w))


def peer(solver, Z, rows, y, lam, gap):
    """Return the best time of a peer to this gap, and what it reached; inf where PATIENCE ends first."""
    for power in range(2, 25):
        # liblinear's tolerance is relative to its first violation, saga's to the largest coefficient
        other = LogisticRegression(
            penalty="l1", solver=solver, C=1 / lam, fit_intercept=False, tol=10 ** (-power / 2), max_iter=100_000
        )
        seconds, _ = timing.once(lambda other=other: other.fit(rows, y))
        reached = gap_of(other.coef_[0], Z, y, lam)
        if reached <= gap:
            return timing.best(lambda other=other: other.fit(rows, y), 5 if seconds < 10 else 1), reached
        if seconds > PATIENCE:
            break
    return np.inf, reached


def compare(name, Z, y):
    """Time all solvers, and the peers, at four lambdas and two gaps."""
    rows = np.ascontiguousarray(Z, dtype=np.float64)
    lambda_max = Problem(FeatureMatrix(LinearFeatures.of(Z), Z), y.astype(float), 0.0, intercept=False).lambda_max()
    for factor in (0.5, 0.2, 0.1, 0.05):
        for gap in (1e-4, 1e-6):
            times = {}
            for solver, parameters in SOLVERS.items():
                if solver == "fista" and gap < 1e-4:
                    continue
                one = model(parameters, factor * lambda_max, gap)
                times[solver] = timing.best(lambda one=one: one.fit(Z, y), 5 if solver == "prox_newton" else 1)
                yield row(name, factor, gap, solver, times[solver], one.duality_gap_, one.coef_, one.n_iter_)
            for solver in PEERS if factor == 0.1 else PEERS[:1]:
                times[solver], reached = peer(solver, Z, rows, y, factor * lambda_max, gap)
                yield row(name, factor, gap, solver, times[solver], reached, None, None)
            best = min(times[solver] for solver in PEERS if solver in times)
            yield row(name, factor, gap, "best peer over prox_newton", best / times["prox_newton"], None, None, None)


def hard(Z, y):
    """On cod-rna at 0.001 lambda_max: prox_newton to 1e-4, 100 iterations of CGD, and CGD for 20 times as long."""
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


def row(dataset, factor, wanted, solver, seconds, gap, coef, n_iter):
    return {
        "dataset": dataset,
        "lambda_factor": factor,
        "wanted_gap": wanted,
        "solver": solver,
        "seconds_or_ratio": float(seconds),
        "gap": gap,
        "nonzeros": None if coef is None else int(np.count_nonzero(coef)),
        "n_iter": n_iter,
    }


def measure(output):
    random = np.random.RandomState(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        name, X, y = mnist10k(random)
        yield from compare(name, fourier(X, random), y)
        if (MIRROR / "cod-rna").is_dir():
            X, y = cod_rna(random)
            yield from hard(fourier(X, random, medians=3.0), y)
