"""FISTA and multi-scale FISTA solvers with backtracking (Qin et al., 2011, algorithm 1)."""

from __future__ import annotations

import math

import numpy as np

from klr_bench.estimators.l1.problem import Iterate, soft

ROUNDING = 1e-14
"""Relative rounding error of a sum of losses; larger violations reject a step."""


def fista(problem, x, *, scale="identity", mu=1.0, shrink=0.8, growth=1.0):
    """Minimize the objective from x by (multi-scale) FISTA; yield each iterate.

    scale : H_k.  "identity" (equation 6, line 108), times the median weight, is FISTA itself; "decreasing" (equation
        7, line 110) the smallest diagonal of the Hessian so far; "current" (equation 8, line 112, whose index j is i)
        the diagonal at x_k.
    mu, shrink : first step size, and the factor eta < 1 of the backtracking.
    growth : factor >= 1 of the last step size with which the next search begins; algorithm 1 has 1.
    """
    H = np.full(len(x), problem.typical_weight) if scale == "identity" else None
    y, margins_y, t, bound = x, problem.products(x), 1.0, -math.inf  # line 124
    margins = margins_y
    while True:
        gradient, diagonal, dual = problem.slopes(margins, second=scale != "identity")
        loss = problem.loss(margins)
        if scale != "identity":
            diagonal = np.maximum(diagonal, 1e-10 * problem.largest_weight)
            H = diagonal if H is None or scale == "current" else np.minimum(H, diagonal)  # lines 110-112
        before, margins_before, mu = y, margins_y, mu * growth
        while True:  # lines 126-128
            y = soft(x - mu / H * gradient, mu / H * problem.penalty)  # lines 100-104
            margins_y = problem.products(y)
            d, loss_y = y - x, problem.loss(margins_y)
            # condition 9 of the paper; the L1 term is omitted, because it is the same on both sides
            if loss_y <= loss + gradient @ d + d @ (H * d) / (2 * mu) + ROUNDING * loss:
                break
            mu *= shrink  # line 130
        t_next = (1 + math.sqrt(1 + 4 * t * t)) / 2  # line 134
        momentum = (t - 1) / t_next
        x = y + momentum * (y - before)  # line 136
        margins = margins_y + momentum * (margins_y - margins_before)
        t = t_next
        objective = loss_y + problem.l1(y)
        # each gradient also gives a lower bound on the minimum; keep the largest bound
        bound = max(bound, dual)
        yield Iterate(problem, y, margins_y, objective, gap_bound=max(objective - bound, 0.0))
