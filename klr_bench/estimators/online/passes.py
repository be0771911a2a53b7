"""What a fit of an online learner does: `run_passes`, and what it needs of an engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from klr_bench.estimators.core.checks import warn

ENOUGH = 100_000
"""Number of steps after which a further pass improves little."""
SORTED = 50
"""Minimum number of rows for which sorted labels trigger a warning."""
BLOCK = 128
"""Number of examples per block."""
CHUNK = 4096
"""Number of rows whose operands are prepared at once."""


def default_passes(n, most):
    """Return the largest number of passes over n rows if `n_epochs` is None, at most `most`."""
    return max(2, min(most, round(ENOUGH / n)))


def run_passes(engine, X, labels, random, factors, check, callback, orders, *, merging, enough):
    """Let an engine learn from rows, pass by pass and block by block.

    Parameters
    ----------
    engine : Engine
        The learner's state and update.
    X, labels : array or CSR matrix of shape (n, d), array of shape (n,) or (m, n)
        Rows, and their labels for each of m functions.
    random : RandomState or None
        Source of a uniform draw for each row of a block, if the engine needs draws.
    factors : pair of arrays of shape (n,) or None
        Factors of the draws and of the steps, from the weights of the rows; None for 1.
    check, enough, callback : callable
        `check()` raises an error if the last block was refused; `callback(t)`, or None, ends the passes where it
        returns True; `enough()` ends them after the second or a later one.
    orders : iterable of arrays or None
        The order of the rows in each pass; None is that of X, without a copy of the rows.
    merging : bool
        Whether copies of a row from different passes become one support vector.
    """
    for epoch, order in enumerate(orders):
        if epoch:
            engine.average_from_here()
        stopped = learn_in_order(engine, X, labels, random, factors, check, callback, order)
        if merging:
            engine.merge()
        if stopped or (epoch and enough()):
            break


def learn_in_order(engine, X, labels, random, factors, check, callback, order=None):
    """Let an engine learn from rows once, block by block; return True if the callback ended it.

    The arguments are those of `run_passes`; `order` None is that of X, in which no row is known to come again.
    """
    n = X.shape[0] if order is None else len(order)
    size = engine.chunk if callback is None else engine.watched_chunk
    for start in range(0, n, size):
        block = slice(start, min(start + size, n))
        rows = block if order is None else order[block]
        draws = None if random is None else random.random_sample(block.stop - start)
        of_draws, of_steps = factors
        draws = draws if of_draws is None else draws * of_draws[..., rows]
        of_steps = None if of_steps is None else of_steps[..., rows]
        engine.learn(X[rows], labels[..., rows], draws, None if order is None else rows, of_steps)
        check()
        if callback is not None and callback(engine.t):
            return True
    return False


def warn_of_order(estimator, y):
    """Warn if the rows are sorted by class, because the learner then forgets the first class."""
    if len(y) >= SORTED and np.count_nonzero(y[1:] != y[:-1]) < len(estimator.classes_):
        message = f"{type(estimator).__name__}: the rows are sorted by class; use shuffle=True, or permute the rows."
        warn(message)


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

    `run_passes` says how they are used.  A subclass has
    `learn(X, labels, draws, numbers, factors)`, where draws (b,) are uniform random numbers, numbers (b,) tell which
    rows of several passes are the same, and factors (b,) >= 0 multiply the steps, all 1 if None; `t`, the number of
    examples seen; and `failure()`, which returns the number of the example whose update was not finite, or 0, and its
    f(x).  That of an `OnlineClassifier` also has `sparse`, True if rows come as CSR, `support`, the support vectors, or
    a `dtype` of its own, and `coefficients(average=...)`.  If the learner is `_progressive`, `decided` are the f(x) of
    the last call of `learn`, each before its step.
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

    def average_from_here(self):
        """Begin a new average of the f_t; in this base class it is that of all passes."""

    def merge(self):
        """Merge copies of a row at the end of a pass; this base class keeps them apart."""
