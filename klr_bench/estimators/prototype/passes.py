"""The alternating passes: one over the rows for b, one for the prototypes, one for theta, until convergence.

prototype_klr, "Implementation details": the rate of b decreases, those of u and theta are constant.  Here each pass is
safeguarded: a pass that raises the objective is undone, and its rate is halved for a while.  If a batch is all rows, a
pass is one gradient step with a line search, so that the objective never rises.  The posts' own passes, with plain
gradient steps and no safeguard, are `by_gradient`.
"""

from __future__ import annotations

import numpy as np

from klr_bench.estimators.prototype.joint import Adam

SUFFICIENT = 1e-4
"""Line search: least share of the decrease that a linear objective would have along the step."""
HALVINGS = 60
GROWTH = 1.2
"""Factor by which a halved rate grows after each pass that is kept."""
LEAST = 1 / 64
"""Share of the first rate: if a pass is undone at a lower rate, nothing more is to be gained."""


def in_batches(model, x, rows, watched, parts, *, rate, unit, batch_size, max_iter, random):
    """Yield x after each round of passes, and whether a pass was undone that may succeed at a lower rate.

    The objective is evaluated on the rows `watched`.
    """
    x = x.astype(rows.X.dtype)
    states = {part: Adam(model, x, unit) for part in parts}
    rates = dict.fromkeys(parts, rate)
    best = model.objective(x, watched)
    for t in range(max_iter):
        undone = False
        for part in parts:
            before = x.copy()
            for done, (X, y, v) in enumerate(rows.shuffled(random, batch_size)):
                fall = (1 - done * batch_size / len(rows)) / np.sqrt(1 + t) if part == "b" else 1.0
                states[part].step(x, model.slopes(x, X, y, v, (part,)), fall * rates[part])
            found = model.objective(x, watched)
            if found <= best:
                best, rates[part] = found, min(rate, GROWTH * rates[part])
            else:
                x, states[part] = before, Adam(model, x, unit)
                rates[part] /= 2
                undone |= rates[part] > LEAST * rate
        yield x.copy(), undone


class GradientSteps:
    """Plain steps: each coordinate moves against its slope, both in the unit of the coordinate, `unit` (P,).

    As with Adam, a coordinate with slope exactly 0 is not moved.
    """

    def __init__(self, model, x, unit):
        self.places, self.l1, self.square = model.layout.places, model.l1, (unit * unit).astype(x.dtype)

    def step(self, x, slopes, rate):
        """Move x in place by the slopes of some parts; then shrink the prototypes that moved towards 0 by l1."""
        for part, slope in slopes.items():
            place = self.places[part]
            length = rate * self.square[place] * (slope != 0)
            x[place] -= length * slope
            if part == "u" and self.l1:
                x[place] = np.sign(x[place]) * np.maximum(np.abs(x[place]) - length * self.l1, 0)


def by_gradient(model, x, rows, watched, parts, *, rate, unit, batch_size, max_iter, random):
    """Yield x after each round of passes with plain steps, as in prototype_klr, and whether the objective rose.

    The objective is evaluated on the rows `watched`.  The rate of b is divided by 1 + the number of rounds so far
    (Carpenter, "Lazy sparse stochastic gradient descent", 2008); those of u and theta are constant.  ValueError where
    the steps diverge.
    """
    x = x.astype(rows.X.dtype)
    steps, before = GradientSteps(model, x, unit), model.objective(x, watched)
    for t in range(max_iter):
        for part in parts:
            for done, (X, y, v) in enumerate(rows.shuffled(random, batch_size)):
                rounds = t + done * batch_size / len(rows)
                steps.step(x, model.slopes(x, X, y, v, (part,)), rate / (1 + rounds) if part == "b" else rate)
            if not np.isfinite(x).all():
                message = f"PrototypeKLR: the steps of solver='gradient' diverge in pass {t + 1}; lower learning_rate."
                raise ValueError(message)
        found = model.objective(x, watched)
        yield x.copy(), found > before
        before = found


def on_all_rows(model, x, rows, parts, *, max_iter):
    """Yield (x, False) after each round: one step per part on all rows, along which the objective never rises."""
    x = x.astype(np.float64)
    lengths = dict.fromkeys(parts, 1.0)
    best = model.objective(x, rows)
    for _ in range(max_iter):
        for part in parts:
            _, slopes = model.slopes_of_all(x, rows, (part,))
            length = 4 * lengths[part]
            for _ in range(HALVINGS):
                moved = _moved(model, x, slopes, length)
                found = model.objective(moved, rows)
                if found <= best - SUFFICIENT / length * np.sum((moved - x) ** 2):
                    x, best, lengths[part] = moved, found, length
                    break
                length /= 2
        yield x, False


def _moved(model, x, slopes, length):
    moved, u = x - length * slopes, model.layout.places["u"]
    if model.l1 and slopes[u].any():
        moved[u] = np.sign(moved[u]) * np.maximum(np.abs(moved[u]) - length * model.l1, 0)
    return moved
