"""Proximal Newton solver with working sets of features (not from the paper).

repeat
        J = the support and the features that violate the optimality conditions most
        repeat at most STEPS times, until the violation on J is a tenth of the largest violation of all features
            H = Z_J' diag(v s (1 - s)) Z_J                              one matrix product
            d = argmin g'd + d'Hd/2 + lam ||w + d||_1                   coordinate descent on H, compiled
            x = x + alpha d                                             Armijo, on margins that are linear in alpha
        gradient of all features                                        one pass over Z, and the duality gap

Lee, Sun and Saunders (SIAM J. Optimization, 2014) prove the convergence of such steps, also if d is inexact.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba import float64, int64

from klr_bench.estimators.core.jit import compiled, read_only
from klr_bench.estimators.l1.problem import Iterate, probabilities

STEPS = 4
"""Maximum number of Newton steps per working set."""
ENOUGH = 0.1
"""A working set is solved when its largest violation is at most this share of the largest violation overall."""
LEAST_SIZE = 64
"""Minimum number of features in a working set; it grows to twice the support."""
RIDGE = 1e-6
"""Relative increase of the diagonal of H, which keeps H positive definite with nearly equal float32 features."""
LEAST_CURVATURE = 1e-12
"""Smallest curvature of the loss of a row, so that H does not become 0 where all rows are predicted with confidence."""
SWEEPS = 2000
PRECISION = 1e-3
"""Coordinate descent ends after SWEEPS sweeps, or when the violation has fallen to this share of the initial one."""
ARMIJO = 1e-4
HALVINGS = 30


def prox_newton(problem, x):
    """Minimize the objective from x by proximal Newton steps; yield one iterate per step."""
    x = x.copy()
    margins = problem.products(x)
    gradient, _, _ = problem.slopes(margins)
    while True:
        broken = violations(gradient, x, problem.penalty)
        J = working_set(broken, x, problem.matrix.shape[1])
        part = replace(problem, matrix=problem.matrix.take(J))
        places = np.append(J, np.arange(problem.matrix.shape[1], problem.n_points))
        local, slopes = x[places], gradient[places]
        target, last, stuck = ENOUGH * np.max(broken, initial=0.0), False, False
        for step in range(STEPS):
            local, margins, moved = newton_step(part, local, margins, slopes)
            x[places] = local
            last = step == STEPS - 1 or not moved
            if not last:
                slopes = part.slopes(margins)[0]
                last = np.max(violations(slopes, local, part.penalty), initial=0.0) <= target
            if last:
                stuck = not moved and step == 0
                break
            yield Iterate(problem, x.copy(), margins)
        gradient, _, dual = problem.slopes(margins)
        objective = problem.loss(margins) + problem.l1(x)
        yield Iterate(problem, x.copy(), margins, objective, gap_known=max(objective - dual, 0.0), stuck=stuck)


def violations(gradient, x, penalty):
    """Return how much each parameter violates its optimality condition, of shape (P,).

    It is the smallest absolute element of the subdifferential of F.
    """
    at_zero = np.maximum(np.abs(gradient) - penalty, 0.0)
    return np.where(x == 0, at_zero, np.abs(gradient + penalty * np.sign(x)))


def working_set(broken, x, D):
    """Return the sorted indices of the features to be optimized by the next Newton steps."""
    support = x[:D] != 0
    size = max(LEAST_SIZE, 2 * np.count_nonzero(support))
    candidates = np.flatnonzero(~support & (broken[:D] > 0))
    room = max(size - np.count_nonzero(support), 0)
    if len(candidates) > room:
        candidates = candidates[np.argpartition(-broken[candidates], room)[:room]]
    return np.sort(np.append(np.flatnonzero(support), candidates))


def newton_step(problem, x, margins, gradient):
    """Take one proximal Newton step; return the new point, its margins and whether x changed."""
    d = descend(hessian(problem, margins), gradient, x, problem.penalty, SWEEPS, PRECISION)
    delta = gradient @ d + problem.l1_change(x, d)
    if not delta < 0:
        return x, margins, False
    products = problem.products(d)
    alpha = problem.search(x, margins, d, products, delta, armijo=ARMIJO, halvings=HALVINGS)
    return x + alpha * d, margins + alpha * products, alpha > 0


def hessian(problem, margins):
    """Return the Hessian of the loss, of shape (P, P), with a slightly larger diagonal."""
    s = probabilities(margins)
    h, D = problem.weights * np.maximum(s * (1 - s), LEAST_CURVATURE), problem.matrix.shape[1]
    H = np.empty((problem.n_points, problem.n_points))
    H[:D, :D] = problem.matrix.gram(h)
    if problem.intercept:
        H[D, :D] = H[:D, D] = problem.matrix.sums(h[None])[0][0]
        H[D, D] = h.sum()
    diagonal = np.einsum("ii->i", H)
    diagonal *= 1 + RIDGE
    diagonal += np.finfo(float).tiny  # of a feature that is always 0
    return H


_READ = read_only(float64, 1)


@compiled(float64[::1](read_only(float64, 2), _READ, _READ, _READ, int64, float64))
def descend(H, gradient, x, penalty, sweeps, precision):
    """Return the proximal Newton direction d, computed by cyclic coordinate descent.

    It minimizes g'd + d'Hd/2 + penalty'abs(x + d), where g is the gradient and d has shape (P,).
    """
    P = len(x)
    d, slope = np.zeros(P), gradient.copy()  # slope = g + H d
    first, full = 0.0, True
    for sweep in range(sweeps):
        worst = 0.0
        for j in range(P):
            here = x[j] + d[j]
            if not full and here == 0.0:
                continue
            a, g = H[j, j], slope[j]
            if here > 0.0:
                worst = max(worst, abs(g + penalty[j]))
            elif here < 0.0:
                worst = max(worst, abs(g - penalty[j]))
            else:
                worst = max(worst, abs(g) - penalty[j])
            z = here - g / a
            size = max(abs(z) - penalty[j] / a, 0.0)
            change = (size if z > 0.0 else -size) - here
            if change != 0.0:
                d[j] += change
                for i in range(P):
                    slope[i] += change * H[j, i]
        if sweep == 0:
            first = worst
        small = worst <= precision * first
        if full and small:
            break
        full = small or (not full and sweep % 20 == 0)
    return d
