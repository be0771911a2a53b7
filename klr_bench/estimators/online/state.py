"""The numbers of an online learner, in a record that compiled code updates: `STATE`."""

from __future__ import annotations

import math

import numpy as np
from numba import from_dtype, types

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.online.passes import BLOCK, Engine

STATE = np.dtype(
    [
        *((name, np.int64) for name in ("t", "mistakes", "updates", "refused", "n", "ever", "turns", "first", "free")),
        *((name, np.float64) for name in ("scale", "scale_sum", "last", "squared", "damages")),
    ]
)
"""Record of the counts and numbers of a learner, other than its support vectors and coefficients.

The numbers of examples seen, of mistakes, and of updates; that of the example at which f(x) was not finite, or 0; the
numbers of used slots, of support vectors inserted so far, and of those that were replaced; the first column of a block
and the next free slot; the scale of the coefficients, the sum of the scales so far, the last f(x), ||f||^2, and the
damage of the Forgetron.
"""
STATES = types.Array(from_dtype(STATE), 1, "C")
"""Type of an array with one `STATE`, which compiled functions read and write."""
FOLD_BELOW = 1e-3
"""Minimum scale; a smaller scale is multiplied into the coefficients."""


class BlockState(Engine):
    """Base class of engines that keep their statistics in `states`, an array with one `STATE`.

    A subclass with the method `learn` of this class has `_learn_block(X, y, *parameters)`, and gets `parameters`.
    """

    def __init__(self):
        self.states = np.zeros(1, STATE)
        self.states["scale"] = 1.0

    def learn(self, X, y, *_):
        """Learn from the rows of X with labels y in {-1, 1}, block by block."""
        for start in range(0, len(y), BLOCK):
            if self.refused:
                break
            self._learn_block(X[start : start + BLOCK], y[start : start + BLOCK], *self.parameters)

    @property
    def t(self):
        """Number of examples seen."""
        return self.states["t"].item()

    @property
    def n_slots(self):
        """Number of slots in use."""
        return self.states["n"].item()

    @property
    def n_inserted(self):
        """Number of support vectors inserted so far."""
        return self.states["ever"].item()

    @property
    def n_mistakes(self):
        """Number of mistakes: examples with y f(x) <= 0 before f was updated with them."""
        return self.states["mistakes"].item()

    @property
    def refused(self):
        """1-based index of the example at which f(x) was not finite, or 0 if there was none."""
        return self.states["refused"].item()

    def failure(self):
        """Return `refused` and the most recently computed decision value f(x)."""
        return self.refused, self.states["last"].item()

    def coefficients(self, slots=None, *, average):
        """Return the indices of the support vectors in `support`, and their coefficients.

        `slots` are those in use, by default the first ones.
        """
        states = self.states
        slots = slice(0, self.n_slots) if slots is None else slots
        number, coef = self.number[slots], self.coef[slots]
        if not average:
            order = np.argsort(number)
            return number[order], states["scale"] * coef[order]
        total = self.total[: self.n_inserted].copy()
        total[number] = self.average[slots] + coef * (states["scale_sum"] - self.since[slots])
        return np.arange(len(total)), total / max(self.t, 1)


@compiled()
def count_example(y, f, k, state):
    """Count an example and its mistake; return False if f(x) or k(x, x) is not finite."""
    state["last"] = f
    state["t"] += 1
    if not math.isfinite(f + k):
        state["refused"] = state["t"]
        return False
    state["scale_sum"] += state["scale"]
    state["mistakes"] += y * f <= 0.0
    return True


@compiled()
def settle(m, coef, average, since, state):
    """Bring the averaged coefficients of the first m support vectors up to date."""
    now = state["scale_sum"]
    for j in range(m):
        average[j] += coef[j] * (now - since[j])
        since[j] = now


@compiled()
def decay(phi, m, coef, average, since, state):
    """Multiply the function f, which has m coefficients, by the factor phi > 0."""
    state["scale"] *= phi
    if state["scale"] < FOLD_BELOW:
        settle(m, coef, average, since, state)
        for j in range(m):
            coef[j] *= state["scale"]
            since[j] = 0.0
        state["scale"], state["scale_sum"] = 1.0, 0.0
