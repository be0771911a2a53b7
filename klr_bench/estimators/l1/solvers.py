"""The solvers by name, with the parameters that each takes from L1KLR."""

from __future__ import annotations

from klr_bench.estimators.l1.cgd import cgd
from klr_bench.estimators.l1.fista import fista
from klr_bench.estimators.l1.prox_newton import prox_newton
from klr_bench.estimators.l1.sgd_c import CHUNK, sgd_c

SOLVERS = ("fista", "multiscale_fista", "cgd", "sgd_c", "prox_newton")


def iterates(model, problem, x, random, *, every=CHUNK):
    """Return the iterates of the solver that an L1KLR uses, from the start x (P,).

    Those of "sgd_c" are `every` examples apart.
    """
    if model.solver == "prox_newton":
        return prox_newton(problem, x)
    if model.solver == "cgd":
        return cgd(problem, x, threshold=model.threshold)
    if model.solver == "sgd_c":
        return sgd_c(problem, x, random=random, last=length(model, len(problem.y))[0], every=every)
    scale = "identity" if model.solver == "fista" else model.hessian
    return fista(problem, x, scale=scale, growth=model.growth)


def length(model, n_samples):
    """Return the steps after which an L1KLR ends a stage, and the first at which a trace may begin."""
    if model.solver == "sgd_c":
        return max(round(model.n_epochs * n_samples), 1), CHUNK
    return model.max_iter, 1
