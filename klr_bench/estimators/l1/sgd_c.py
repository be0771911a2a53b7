"""SGD solver with a cumulative L1 penalty (Qin et al., 2011, algorithm 4).

Two statements of the paper are corrected: examples count from 1, with h^1 their first gradient, and eta decays,
eta_0 2^(-k/N) (lines 218-222).
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, int64, types, void

from klr_bench.estimators.core.jit import compiled, read_only
from klr_bench.estimators.l1.problem import Iterate

ALPHA = 2.0  # line 240
CHUNK = 1024
"""Number of examples between two iterates."""


def sgd_c(problem, x, *, random, eta0, last, every=CHUNK):
    """Minimize the objective by SGD; yield an iterate after every `every` examples.

    Each pass visits the examples in a new random order and ends with an iterate.
    """
    N = len(problem.y)
    x, q, h = x.copy(), np.zeros(len(x)), np.zeros(len(x))  # line 238
    u, k = np.zeros(1), 0
    while k < last:
        order = random.permutation(N)[: last - k]
        for start in range(0, len(order), every):
            chosen = order[start : start + every]  # line 242
            rows = problem.matrix.rows(chosen)
            _learn(rows, problem.y[chosen], problem.weights[chosen], problem.penalty, N, eta0, k, x, u, q, h)
            k += len(chosen)
            yield Iterate(problem, x.copy(), step=k)


_READ = read_only(float64, 1)


@compiled(
    lambda real: void(types.Array(real, 2, "C"), _READ, _READ, _READ, int64, float64, int64, *[float64[::1]] * 4),
    fastmath={"contract", "reassoc"},
)
def _learn(Z, y, v, penalty, N, eta0, k, w, u, q, h):
    """Update the weights w and the solver state by one stochastic gradient step per row of Z."""
    D = Z.shape[1]
    for row in range(len(y)):
        k += 1
        z, eta = Z[row], eta0 * ALPHA ** (-k / N)  # line 240
        u[0] += eta / N  # line 241, times lambda below
        f = w[D] if len(w) > D else 0.0
        for i in range(D):
            f += w[i] * z[i]
        m = y[row] * f
        e = math.exp(-abs(m))
        slope = -v[row] * y[row] * (e if m > 0.0 else 1.0) / (1.0 + e)
        mean = 1.0 if k == 1 else (k - 1) / k
        for i in range(len(w)):
            g = slope * (z[i] if i < D else 1.0)
            h[i] = mean * g + (h[i] / k if k > 1 else 0.0)  # line 243
            moved = w[i] - eta * h[i]  # lines 244 and 246
            total = u[0] * penalty[i]
            if penalty[i] == 0.0:
                clipped = moved
            elif moved > 0.0:
                clipped = max(0.0, moved - (total + q[i]))  # line 248
            elif moved < 0.0:
                clipped = min(0.0, moved + (total - q[i]))  # line 250
            else:
                clipped = moved
            q[i] += clipped - moved  # line 252
            w[i] = clipped
