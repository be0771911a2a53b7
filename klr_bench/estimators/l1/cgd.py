"""Coordinate gradient descent solver (Qin et al., 2011, algorithms 2 and 3).

See also Tseng and Yun; Yun and Toh.
"""

from __future__ import annotations

import numpy as np

from klr_bench.estimators.l1.problem import Iterate, soft

FIRST_THRESHOLD = 0.9
"""Initial and largest value of the adaptive threshold."""
ARMIJO = 0.1
HALVINGS = 60


def cgd(problem, x, *, threshold="adaptive"):
    """Minimize the objective from x by coordinate gradient descent; yield each iterate.

    The coordinates J are those with abs(d_j) >= v ||d||_inf (Gauss-Southwell-r); v is `threshold`, or "adaptive": it
    starts at 0.9 and changes as Yun and Toh say.  With "greedy", J is the one coordinate whose step decreases the
    quadratic model most (Gauss-Southwell-q).  The step size rule printed in lines 196-199 lacks its L1 term; the rule
    here is that of Tseng and Yun, with their constant 0.1.
    """
    adaptive, greedy = threshold == "adaptive", threshold == "greedy"
    v, unit = FIRST_THRESHOLD if adaptive else threshold, problem.largest_weight
    margins = problem.products(x)  # line 181
    gradient, diagonal, _ = problem.slopes(margins, second=True)
    while True:
        H = np.clip(diagonal, 1e-10 * unit, 1e10 * unit)  # line 171
        d = soft(x - gradient / H, problem.penalty / H) - x  # line 184
        if greedy:
            decrease = -d * (gradient + 0.5 * H * d) - problem.penalty * (np.abs(x + d) - np.abs(x))
            d[np.arange(len(d)) != np.argmax(decrease)] = 0.0
        else:
            d[np.abs(d) < v * np.max(np.abs(d))] = 0.0  # line 183
        delta = gradient @ d + problem.l1_change(x, d)
        products = problem.products(d)
        alpha = problem.search(x, margins, d, products, delta, armijo=ARMIJO, halvings=HALVINGS)  # lines 196-199
        x, margins = x + alpha * d, margins + alpha * products  # line 186
        objective = problem.loss(margins) + problem.l1(x)
        gradient, diagonal, dual = problem.slopes(margins, second=True)
        if adaptive and alpha > 1e-3:
            v = max(v / 10, 1e-4)
        elif adaptive and alpha < 1e-6:
            v = min(50 * v, FIRST_THRESHOLD)
        stuck = alpha == 0.0 or not np.any(d)
        yield Iterate(problem, x, margins, objective, gap_known=max(objective - dual, 0.0), stuck=stuck)
