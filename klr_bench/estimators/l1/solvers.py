"""The solvers by name, with the parameters that each takes from L1KLR, and where a stage of a fit ends."""

from __future__ import annotations

from collections import deque

from klr_bench.estimators.l1.cgd import cgd
from klr_bench.estimators.l1.fista import fista
from klr_bench.estimators.l1.prox_newton import prox_newton
from klr_bench.estimators.l1.sgd_c import CHUNK, sgd_c

SOLVERS = ("fista", "multiscale_fista", "cgd", "sgd_c", "prox_newton")
REFERENCES = ("prox_newton", "cgd", "multiscale_fista", "fista")
"""Solvers that can find the reference objective: those that know when they are done."""
CHECKS, WITHIN = 20, 0.01
"""SGD-C ends where the mean of its last CHECKS objectives is within this share of the reference (footnote 1)."""
CHECKS_IN_A_PASS = 10
"""The paper evaluates the objective after each example, which costs a pass over the rows; here there are ten a pass."""


def iterates(model, problem, x, random, *, every=CHUNK):
    """Return the iterates of an L1KLR's solver from the start x (P,); those of "sgd_c" are `every` examples apart."""
    if model.solver == "prox_newton":
        return prox_newton(problem, x)
    if model.solver == "cgd":
        return cgd(problem, x, threshold=model.threshold)
    if model.solver == "sgd_c":
        return sgd_c(problem, x, random=random, last=length(model, len(problem.y))[0], every=every)
    scale = "identity" if model.solver == "fista" else model.hessian
    return fista(problem, x, scale=scale, growth=model.growth)


def length(model, n_samples):
    """Return the steps after which an L1KLR ends a stage, and the first worth a checkpoint."""
    if model.solver == "sgd_c":
        return max(round(model.n_epochs * n_samples), 1), CHUNK
    return model.max_iter, 1


def stopping_rule(model, reference=None):
    """Return the function that returns True for the iterate at which a stage ends: by the gap, or at a reference."""
    if reference is None:
        return lambda iterate: iterate.reaches(model.tol)
    if model.solver != "sgd_c":
        return lambda iterate: iterate.objective <= reference
    last = deque(maxlen=CHECKS)

    def mean_is_near(iterate):
        last.append(iterate.objective)
        return len(last) == CHECKS and abs(sum(last) / CHECKS / reference - 1) <= WITHIN

    return mean_is_near
