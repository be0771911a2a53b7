"""Archetypal analysis: approximate all rows by mixtures of a few archetypes.

The archetypes are mixtures of rows themselves: the rows of B X for matrices A (n, J) and B (J, n), whose rows are
nonnegative with sum 1, at

    min_{A, B} ||X - A B X||^2    (Cutler and Breiman, Technometrics 1994).

A and B are improved in turn by projected gradient steps, from rows chosen by furthest sum (Morup and Hansen,
Neurocomputing 2012).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

STEPS = 5
"""Number of gradient steps for A, and then for B, in a round."""
AGAIN = 10
"""Number of rows chosen by furthest sum that replace earlier ones, the random first row among them."""


def archetypes(X, J, random, *, tol=1e-3, max_iter=50):
    """Return J archetypes (J, d) of the rows of X, and the objective after each round.

    The last round is the first that lowers the objective by at most the share `tol` of the centered sum of squares.
    """
    origin = X.mean(axis=0, dtype=np.float64)
    X = X - origin  # shifting X leaves the optimal A and B unchanged, and gradient steps converge faster
    n, eye, square = len(X), sp.identity(len(X), format="csr"), _square(X)
    A, B = np.full((n, J), 1 / J), np.zeros((J, n))
    B[np.arange(J), furthest_sum(X, J, random)] = 1
    Z, objectives, by_A, by_B = B @ X, [], 0.0, 0.0
    for _ in range(max_iter):
        A, _, by_A = _descend(X, eye, A, Z, by_A, 1 / _square(Z))
        B, objective, by_B = _descend(X, A, B, X, by_B, 1 / (_square(A) * square))
        Z = B @ X
        objectives.append(objective)
        if len(objectives) > 1 and objectives[-2] - objective <= tol * np.vdot(X, X):
            break
    return Z + origin, objectives


def _square(V):
    """Return the squared spectral norm of a matrix, or 1 for a zero matrix."""
    return np.linalg.norm(V, 2) ** 2 or 1.0


def _descend(X, L, P, V, length, least):
    """Lower the objective ||X - L P V||^2 by projected gradient steps on P.

    Return P, this objective and the last step length.  The lengths adapt; a step of the length `least`, 1 divided by a
    Lipschitz constant, never raises the objective.
    """
    E, length = L @ (P @ V) - X, max(length, least)
    best = np.vdot(E, E)
    for _ in range(STEPS):
        G, length = L.T @ E @ V.T, 2 * length
        while True:
            moved = on_simplex(P - length * G)
            E = L @ (moved @ V) - X
            if np.vdot(E, E) <= best or length == least:
                break
            length = max(length / 2, least)
        P, best = moved, np.vdot(E, E)
    return P, float(best), length


def furthest_sum(X, J, random):
    """Choose J rows one by one, each with the largest sum of distances to those chosen so far."""
    chosen, D = [random.randint(len(X))], []
    for _ in range(J - 1 + AGAIN):
        D.append(np.linalg.norm(X - X[chosen[-1]], axis=1))
        if len(chosen) == J:
            del chosen[0], D[0]
        sums = np.sum([np.zeros(len(X)), *D], axis=0)
        sums[chosen] = -np.inf
        chosen.append(int(np.argmax(sums)))
    return chosen


def on_simplex(P):
    """Return the nearest matrix whose rows are nonnegative with sum 1 (Duchi et al., ICML 2008)."""
    S = -np.sort(-P, axis=1)
    excess = (np.cumsum(S, axis=1) - 1) / np.arange(1, P.shape[1] + 1)
    last = np.count_nonzero(excess < S, axis=1) - 1
    return np.maximum(P - np.take_along_axis(excess, last[:, None], axis=1), 0)
