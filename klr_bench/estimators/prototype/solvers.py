"""Solvers of `PrototypeKLR`: Adam, alternating passes, plain gradient steps and L-BFGS.

Adam (Kingma and Ba, ICLR 2015) and L-BFGS move all parameters at once.  The alternating passes are those of
prototype_klr, "Implementation details": one for b, one for the prototypes, one for theta, until convergence; the rate
of b decreases.  Here a pass that raises the objective is undone, and its rate is halved for a while.  The posts' own
passes, with plain gradient steps and no safeguards, are `by_gradient`.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, void
from scipy.optimize import minimize

from klr_bench.estimators.core.jit import compiled

MEAN, SQUARE, EPSILON = 0.9, 0.999, 1e-8
"""beta_1, beta_2 and epsilon of Adam."""
SLACK = 0.1
"""Tolerated rise above the best objective, as a share of the smaller of this objective and the progress so far."""
GROWTH = 1.2
"""Factor by which a halved learning rate grows after each accepted pass."""
LEAST = 1 / 64
"""Minimum share of the initial learning rate; if a pass is undone at a lower rate, the solver stops."""


class Adam:
    """State of the Adam solver; `unit` scales the step of each parameter.

    Parameters whose gradient is exactly 0 do not change.
    """

    def __init__(self, model, x, unit):
        self.slices, self.l1, self.unit = model.layout.slices, model.l1, unit.astype(x.dtype)
        self.mean, self.square, self.t = np.zeros_like(x), np.zeros_like(x), 0

    def step(self, x, slopes, rate):
        """Take one Adam step in place, followed by soft thresholding of the prototypes."""
        self.t += 1
        for part, slope in slopes.items():
            place, l1 = self.slices[part], self.l1 if part == "u" else 0.0
            _adam_step(x[place], slope, self.mean[place], self.square[place], self.unit[place], rate, l1, self.t)


@compiled(lambda real: void(*[real[::1]] * 5, float64, float64, int64))
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


class GradientSteps:
    """Gradient descent whose step sizes are multiplied by the squared scale of each parameter.

    Parameters whose gradient is exactly 0 do not change.
    """

    def __init__(self, model, x, unit):
        self.slices, self.l1, self.square = model.layout.slices, model.l1, (unit * unit).astype(x.dtype)

    def step(self, x, slopes, rate):
        """Take one gradient step in place, followed by soft thresholding of the prototypes."""
        for part, slope in slopes.items():
            place = self.slices[part]
            length = rate * self.square[place] * (slope != 0)
            x[place] -= length * slope
            if part == "u" and self.l1:
                x[place] = np.sign(x[place]) * np.maximum(np.abs(x[place]) - length * self.l1, 0)


def adam(model, x, rows, watched, parts, *, rate, unit, batch_size, max_iter, random):
    """Run Adam; after each pass, yield the parameters and whether the pass was undone.

    A pass that raises the objective on the rows `watched` by more than noise is undone, and the learning rate is
    halved.
    """
    x = x.astype(rows.X.dtype)
    state, n = Adam(model, x, unit), len(rows)
    n_steps, t = max_iter * -(-n // batch_size), 0
    best = at_start = model.objective(x, watched)
    at_best = x.copy()
    for _ in range(max_iter):
        for batch in rows.shuffled(random, batch_size):
            fall = 0.5 + 0.5 * np.cos(np.pi * t / n_steps)
            t += 1
            state.step(x, model.slopes(x, *batch, parts)[1], fall * rate)
        objective = model.objective(x, watched)
        undone = not objective <= best + SLACK * min(best, at_start - best)
        if objective <= best:
            best, at_best = objective, x.copy()
        elif undone:
            x, state, rate = at_best.copy(), Adam(model, x, unit), rate / 2
        yield x.copy(), undone


def in_batches(model, x, rows, watched, parts, *, rate, unit, batch_size, max_iter, random):
    """Run rounds of one Adam pass per part of x; yield x and whether a pass must be repeated."""
    x = x.astype(rows.X.dtype)
    states = {part: Adam(model, x, unit) for part in parts}
    rates = dict.fromkeys(parts, rate)
    best = model.objective(x, watched)
    for t in range(max_iter):
        undone = False
        for part in parts:
            before = x.copy()
            for i, batch in enumerate(rows.shuffled(random, batch_size)):
                fall = (1 - i * batch_size / len(rows)) / np.sqrt(1 + t) if part == "b" else 1.0
                states[part].step(x, model.slopes(x, *batch, (part,))[1], fall * rates[part])
            objective = model.objective(x, watched)
            if objective <= best:
                best, rates[part] = objective, min(rate, GROWTH * rates[part])
            else:
                x, states[part] = before, Adam(model, x, unit)
                rates[part] /= 2
                undone |= rates[part] > LEAST * rate
        yield x.copy(), undone


def by_gradient(model, x, rows, watched, parts, *, rate, unit, batch_size, max_iter, random):
    """Run rounds of one gradient pass over each part of x in turn; yield x after each round.

    The second value yielded is True if the objective rose.  Raises ValueError if the steps diverge.

    The learning rate of b is divided by 1 + the number of rounds (Carpenter, "Lazy sparse stochastic gradient descent",
    2008).
    """
    x = x.astype(rows.X.dtype)
    steps, before = GradientSteps(model, x, unit), model.objective(x, watched)
    for t in range(max_iter):
        for part in parts:
            for i, batch in enumerate(rows.shuffled(random, batch_size)):
                rounds = t + i * batch_size / len(rows)
                steps.step(x, model.slopes(x, *batch, (part,))[1], rate / (1 + rounds) if part == "b" else rate)
            if not np.isfinite(x).all():
                message = f"PrototypeKLR: solver='gradient' diverged in pass {t + 1}; lower learning_rate."
                raise ValueError(message)
        objective = model.objective(x, watched)
        yield x.copy(), objective > before
        before = objective


def lbfgs(model, x, rows, parts, *, tol, max_iter, callback):
    """Minimize the objective by L-BFGS; return the parameters and whether the solver converged.

    With l1 > 0, u is split into two nonnegative vectors.
    """
    places = model.layout.slices
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
    bounds = np.column_stack([lower, np.full(len(start), np.inf)]) if len(split) else None
    z, converged = _minimized(objective, start, tol, max_iter, bounds=bounds, callback=lambda z: callback(whole(z)))
    return whole(z), converged


def coefficients(model, K, y, v, start, *, tol, max_iter):
    """Return the optimal coefficients for fixed prototypes, and whether L-BFGS converged."""
    M, shares = len(start) // (K.shape[1] + 1), v / v.sum()

    def objective(z):
        B = z[M:].reshape(-1, M)
        F = (z[:M] + K @ B.astype(K.dtype)).astype(np.float64)
        minus_g = shares[:, None] * model.loss.slopes(F, y)
        by_B = K.T @ minus_g.astype(K.dtype) + model.l2 * B
        value = shares @ model.loss.values(F, y) + model.l2 / 2 * np.vdot(B, B)
        return float(value), np.append(minus_g.sum(axis=0), by_B).astype(np.float64)

    return _minimized(objective, start.astype(np.float64), tol, max_iter)


def _minimized(objective, start, tol, max_iter, **arguments):
    options = {"maxiter": max_iter, "maxfun": 4 * max_iter, "ftol": tol, "gtol": 1e-9}
    result = minimize(objective, start, jac=True, method="L-BFGS-B", options=options, **arguments)
    return result.x, result.status in {0, 2}
