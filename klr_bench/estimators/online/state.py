"""States of learners that process examples in blocks, and what their compiled loops have in common."""

from __future__ import annotations

import math

import numpy as np

from klr_bench.estimators.core.jit import compiled

BLOCK = 128
"""Examples per block."""
T, MISTAKES, REFUSED = range(3)
"""Places in `counts`: examples seen; mistakes; the example at which f(x) was not finite, or 0."""
N, EVER = range(3, 5)
"""Places in `counts` of states with slots: slots in use; support vectors inserted ever."""
SCALE, SUM, LAST = range(3)
"""Places in `scalars`: the scale of the coefficients, the sum of the scales, the last f(x)."""
FOLD_BELOW = 1e-3
"""Smallest scale; a smaller one is multiplied into the coefficients."""


@compiled()
def count_example(y, f, k, counts, scalars):
    """Count an example with label y, f(x) and k(x, x); return False if they are not finite."""
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
    """Bring the contributions of the first m support vectors to the average up to date."""
    for j in range(m):
        average[j] += coef[j] * (scalars[SUM] - since[j])
        since[j] = scalars[SUM]


@compiled()
def decay(phi, m, coef, average, since, scalars):
    """Multiply f, with m coefficients, by phi > 0."""
    scalars[SCALE] *= phi
    if scalars[SCALE] < FOLD_BELOW:
        settle(m, coef, average, since, scalars)
        for j in range(m):
            coef[j] *= scalars[SCALE]
            since[j] = 0.0
        scalars[SCALE], scalars[SUM] = 1.0, 0.0


class BlockState:
    """A state whose `counts` begin with T, MISTAKES and REFUSED, and its `scalars` with SCALE, SUM and LAST.

    A subclass with the method `learn` of this class has `_learn_block(X, y, *parameters)`.
    """

    block = BLOCK
    """Examples per block."""

    def learn(self, X, y, *parameters):
        """Learn from rows X (n, d) with labels y (n,), -1.0 or +1.0."""
        for start in range(0, len(y), self.block):
            if self.refused:
                break
            self._learn_block(X[start : start + self.block], y[start : start + self.block], *parameters)

    @property
    def t(self):
        """Examples seen."""
        return int(self.counts[T])

    @property
    def n_mistakes(self):
        """Number of examples with y f(x) <= 0 at their own step."""
        return int(self.counts[MISTAKES])

    @property
    def refused(self):
        """The example at which f(x) was not finite, or 0."""
        return int(self.counts[REFUSED])

    @property
    def last_value(self):
        """The last f(x)."""
        return self.scalars[LAST]

    def _slots(self):
        """Return the slots of the support vectors."""
        return slice(0, self.counts[N])

    def coefficients(self, *, average):
        """Return the places in `support` of the examples in f and their coefficients, of the average or the last f."""
        slots = self._slots()
        number, coef = self.number[slots], self.coef[slots]
        if not average:
            order = np.argsort(number)
            return number[order], self.scalars[SCALE] * coef[order]
        total = self.total[: self.counts[EVER]].copy()
        total[number] = self.average[slots] + coef * (self.scalars[SUM] - self.since[slots])
        return np.arange(len(total)), total / max(self.t, 1)
