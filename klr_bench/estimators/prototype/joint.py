"""All parameters at once: L-BFGS on all rows, or Adam on mini-batches (Kingma and Ba, ICLR 2015)."""

from __future__ import annotations

import numpy as np
from numba import float32, float64, int64, void
from scipy.optimize import minimize

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.prototype.model import cross_entropy, residuals


class Adam:
    """The state of Adam for a vector x (P,); `unit` (P,) is the unit of each coordinate.

    A coordinate with slope exactly 0 is not moved: one that is not learned, or, in the lazy form, a feature that is 0
    in the whole batch.
    """

    def __init__(self, model, x, unit):
        self.places, self.l1, self.unit = model.layout.places, model.l1, unit.astype(x.dtype)
        self.mean, self.square, self.t = np.zeros_like(x), np.zeros_like(x), 0

    def step(self, x, slopes, rate):
        """Move x in place by the slopes of some parts; then shrink prototypes towards 0 by l1, in the same metric."""
        self.t += 1
        for part, slope in slopes.items():
            place, l1 = self.places[part], self.l1 if part == "u" else 0.0
            _adam_step(x[place], slope, self.mean[place], self.square[place], self.unit[place], rate, l1, self.t)


MEAN, SQUARE, EPSILON = 0.9, 0.999, 1e-8
"""beta_1, beta_2 and epsilon of Adam."""
SLACK = 0.1
"""Tolerated rise above the best objective, as a share of it and of the progress so far: batches are noisy."""


@compiled([void(*[real[::1]] * 5, float64, float64, int64) for real in (float32, float64)])
def _adam_step(x, slopes, mean, square, unit, rate, l1, t):
    unbias_mean, unbias_square = 1 / (1 - MEAN**t), 1 / (1 - SQUARE**t)
    for i in range(len(x)):
        g = slopes[i]
        if g != 0:
            mean[i] += (1 - MEAN) * (g - mean[i])
            square[i] += (1 - SQUARE) * (g * g - square[i])
            step = rate * unit[i] / (np.sqrt(unbias_square * square[i]) + EPSILON)
            moved = x[i] - step * unbias_mean * mean[i]
            if l1 > 0:
                moved = np.sign(moved) * max(abs(moved) - step * l1, 0.0)
            x[i] = moved


def adam(model, x, rows, watched, parts, *, rate, unit, batch_size, max_iter, random):
    """Yield x after each pass, in random order, and whether the pass was undone; the rate decreases to 0 as a cosine.

    A pass is undone, and the rate halved, if the objective on the rows `watched` is above the best by more than noise:
    too long steps end at the prior of the classes, where slopes vanish.
    """
    x = x.astype(rows.X.dtype)
    state, n = Adam(model, x, unit), len(rows)
    n_steps, t = max_iter * -(-n // batch_size), 0
    best = at_start = model.objective(x, watched)
    at_best = x.copy()
    for _ in range(max_iter):
        for X, y, v in rows.shuffled(random, batch_size):
            fall = 0.5 + 0.5 * np.cos(np.pi * t / n_steps)
            t += 1
            state.step(x, model.slopes(x, X, y, v, parts), fall * rate)
        found = model.objective(x, watched)
        undone = not found <= best + SLACK * min(best, at_start - best)
        if found <= best:
            best, at_best = found, x.copy()
        elif undone:
            x, state, rate = at_best.copy(), Adam(model, x, unit), rate / 2
        yield x.copy(), undone


def lbfgs(model, x, rows, parts, *, tol, max_iter, callback):
    """Return the final x of L-BFGS, and whether it ended because it cannot improve; each x is passed to `callback(x)`.

    With l1 > 0 a prototype is the difference of two non-negative vectors, on which the penalty is linear.
    """
    places = model.layout.places
    active = np.concatenate([np.arange(place.start, place.stop) for part, place in places.items() if part in parts])
    split = np.arange(places["u"].start, places["u"].stop) if model.l1 and "u" in parts else active[:0]
    positive, negative = np.searchsorted(active, split), len(active) + np.arange(len(split))

    def whole(z):
        full = x.astype(np.float64)
        full[active] = z[: len(active)]
        full[split] -= z[negative]
        return full

    def objective(z):
        value, slopes = model.slopes_of_all(whole(z), rows, parts)
        slopes = np.append(slopes[active], -slopes[split])
        slopes[positive] += model.l1
        slopes[negative] += model.l1
        return value + model.l1 * (z[positive].sum() + z[negative].sum()), slopes

    start = np.append(x[active], np.maximum(-x[split], 0)).astype(np.float64)
    start[positive] = np.maximum(start[positive], 0)
    lower = np.full(len(start), -np.inf)
    lower[positive] = lower[negative] = 0
    bounds = np.column_stack([lower, np.full(len(start), np.inf)])
    options = {"maxiter": max_iter, "maxfun": 4 * max_iter, "ftol": tol, "gtol": 1e-9}
    limits = {"bounds": bounds if len(split) else None, "callback": lambda z: callback(whole(z)), "options": options}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", **limits)
    return whole(found.x), found.status in {0, 2}


def coefficients(K, y, v, start, *, l2, tol, max_iter):
    """Return the best b_0 and b for kernel values K (n, J), codes y and weights v (n,), and whether they converged.

    They are one vector, b_0 first, like `start`.  The problem is convex: logistic regression on J features.
    """
    M, shares = len(start) // (K.shape[1] + 1), v / v.sum()

    def objective(z):
        B = z[M:].reshape(-1, M)
        F = (z[:M] + K @ B.astype(K.dtype)).astype(np.float64)
        minus_g = shares[:, None] * residuals(F, y)
        by_B = K.T @ minus_g.astype(K.dtype) + l2 * B
        value = shares @ cross_entropy(F, y) + l2 / 2 * np.vdot(B, B)
        return float(value), np.append(minus_g.sum(axis=0), by_B).astype(np.float64)

    options = {"maxiter": max_iter, "maxfun": 4 * max_iter, "ftol": tol, "gtol": 1e-9}
    found = minimize(objective, start.astype(np.float64), jac=True, method="L-BFGS-B", options=options)
    return found.x, found.status in {0, 2}
