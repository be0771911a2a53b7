"""Base class of the states of learners that process examples in blocks."""

from __future__ import annotations

import math

import numpy as np

from klr_bench.estimators.core.jit import compiled

BLOCK = 128
"""Number of examples per block."""
T, MISTAKES, REFUSED = range(3)
"""Indices into `counts`: examples seen, mistakes, and the example at which f(x) was not finite (or 0)."""
N, EVER = range(3, 5)
"""Indices into `counts` of states with slots: used slots, and support vectors inserted so far."""
SCALE, SUM, LAST = range(3)
"""Indices into `scalars`: the scale of the coefficients, the sum of scales, and the last f(x)."""
FOLD_BELOW = 1e-3
"""Minimum scale; a smaller scale is multiplied into the coefficients."""


@compiled()
def count_example(y, f, k, counts, scalars):
    """Update the counts for an example; return False if f(x) or k(x, x) is not finite."""
    scalars[LAST] = f
    counts[T] += 1
    if not math.isfinite(f + k):
        counts[REFUSED] = counts[T]
        return False
    scalars[SUM] += scalars[SCALE]
    counts[MISTAKES] += y * f <= 0.0
    return True


@compiled()
def settle(m, coef, average, since, scalars):
    """Bring the averaged coefficients of the first m support vectors up to date."""
    for j in range(m):
        average[j] += coef[j] * (scalars[SUM] - since[j])
        since[j] = scalars[SUM]


@compiled()
def decay(phi, m, coef, average, since, scalars):
    """Multiply the function f, which has m coefficients, by the factor phi > 0."""
    scalars[SCALE] *= phi
    if scalars[SCALE] < FOLD_BELOW:
        settle(m, coef, average, since, scalars)
        for j in range(m):
            coef[j] *= scalars[SCALE]
            since[j] = 0.0
        scalars[SCALE], scalars[SUM] = 1.0, 0.0


class BlockState:
    """Base class of states that keep their statistics in `counts` and `scalars`.

    `counts` starts with T, MISTAKES and REFUSED; `scalars` starts with SCALE, SUM and LAST.

    A subclass with the method `learn` of this class has `_learn_block(X, y, *parameters)`.
    """

    block = BLOCK
    """Number of examples per block."""

    def learn(self, X, y, *parameters):
        """Learn from the rows of X with labels y in {-1, 1}, block by block."""
        for start in range(0, len(y), self.block):
            if self.refused:
                break
            self._learn_block(X[start : start + self.block], y[start : start + self.block], *parameters)

    @property
    def t(self):
        """Number of examples seen."""
        return int(self.counts[T])

    @property
    def n_mistakes(self):
        """Number of mistakes: examples with y f(x) <= 0 before f was updated with them."""
        return int(self.counts[MISTAKES])

    @property
    def refused(self):
        """1-based index of the example at which f(x) was not finite, or 0 if there was none."""
        return int(self.counts[REFUSED])

    @property
    def last_value(self):
        """The most recently computed decision value f(x)."""
        return self.scalars[LAST]

    def _slots(self):
        return slice(0, self.counts[N])

    def coefficients(self, *, average):
        """Return the indices of the support vectors in `support`, and their coefficients."""
        slots = self._slots()
        number, coef = self.number[slots], self.coef[slots]
        if not average:
            order = np.argsort(number)
            return number[order], self.scalars[SCALE] * coef[order]
        total = self.total[: self.counts[EVER]].copy()
        total[number] = self.average[slots] + coef * (self.scalars[SUM] - self.since[slots])
        return np.arange(len(total)), total / max(self.t, 1)
