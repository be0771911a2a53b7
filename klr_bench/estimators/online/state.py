"""What online learners have in common: update rules, engines, and counts of examples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from klr_bench.estimators.core.jit import compiled

BLOCK = 128
"""Number of examples per block."""
CHUNK = 4096
"""Number of rows whose operands are prepared at once."""
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


class Update(NamedTuple):
    """What a learner does with an example: a compiled rule or strategy, and its numbers.

    `radius` is the largest norm of f, `rule_of_many` the rule for the softmax of more than two classes.  In a shared
    pass, learners with the same `draws` get the same random draws.
    """

    rule: Any
    parameters: Sequence[float] = ()
    radius: float = math.inf
    rule_of_many: Any = None
    draws: int = 0


class Engine:
    """Base class of engines: what a learner knows so far, and how it learns from more rows.

    `klr_bench.estimators.online.passes.run_passes` says how they are used.  A subclass has
    `learn(X, labels, draws, numbers, factors)`, where draws (b,) are uniform random numbers, numbers (b,) tell which
    rows of several passes are the same, and factors (b,) >= 0 multiply the steps, all 1 if None; `t`, the number of
    examples seen; `refused`, the number of the example whose update was not finite, or 0, and `last_value`, its f(x);
    `support`, the support vectors; and `sparse`, whether rows come as CSR.
    """

    chunk, watched_chunk = CHUNK, BLOCK
    """Number of rows for a call of `learn`, in general and if a callback follows it."""
    UNSTORED = ("groups", "update", "strategy")
    """Compiled rules, which a learner sets again."""

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name not in self.UNSTORED}

    @property
    def dtype(self):
        """Precision of the rows."""
        return self.support.dtype

    def failure(self):
        """Return `refused` and `last_value`."""
        return self.refused, self.last_value

    def average_from_here(self):
        """Begin a new average of the f_t; in this base class it is that of all passes."""

    def merge(self):
        """Merge copies of a row at the end of a pass; this base class keeps them apart."""


class BlockState(Engine):
    """Base class of engines that keep their statistics in `counts` and `scalars`.

    `counts` starts with T, MISTAKES and REFUSED; `scalars` starts with SCALE, SUM and LAST.

    A subclass with the method `learn` of this class has `_learn_block(X, y, *parameters)`, and gets `parameters`.
    """

    block = BLOCK
    """Number of examples per block."""

    def learn(self, X, y, *_):
        """Learn from the rows of X with labels y in {-1, 1}, block by block."""
        for start in range(0, len(y), self.block):
            if self.refused:
                break
            self._learn_block(X[start : start + self.block], y[start : start + self.block], *self.parameters)

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

    def failure(self):
        """Return `refused` and the most recently computed decision value f(x)."""
        return int(self.counts[REFUSED]), self.scalars[LAST]

    def coefficients(self, slots=None, *, average):
        """Return the indices of the support vectors in `support`, and their coefficients.

        `slots` are those in use, by default the first N.
        """
        slots = slice(0, self.counts[N]) if slots is None else slots
        number, coef = self.number[slots], self.coef[slots]
        if not average:
            order = np.argsort(number)
            return number[order], self.scalars[SCALE] * coef[order]
        total = self.total[: self.counts[EVER]].copy()
        total[number] = self.average[slots] + coef * (self.scalars[SUM] - self.since[slots])
        return np.arange(len(total)), total / max(self.t, 1)
