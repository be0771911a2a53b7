"""What a fit of an online learner does: `run_passes`."""

from __future__ import annotations

import warnings

import numpy as np

ENOUGH = 100_000
"""Number of steps after which a further pass improves little."""
SORTED = 50
"""Minimum number of rows for which sorted labels trigger a warning."""


def default_passes(n, most):
    """Return the largest number of passes over n rows if `n_epochs` is None, at most `most`."""
    return max(2, min(most, round(ENOUGH / n)))


def run_passes(engine, X, labels, random, factors, check, callback, orders, *, merging, enough):
    """Let an engine learn from rows, pass by pass and block by block.

    Parameters
    ----------
    engine : Engine
        The learner's state and update, see `klr_bench.estimators.online.state.Engine`.
    X, labels : array or CSR matrix of shape (n, d), array of shape (n,) or (m, n)
        Rows, and their labels for each of m functions.
    random : RandomState
        Source of a uniform draw for each row of a block.
    factors : pair of arrays of shape (n,) or None
        Factors of the draws and of the steps, from the weights of the rows; None for 1.
    check, enough, callback : callable
        `check()` raises an error if the last block was refused; `callback(t)`, or None, ends the passes where it
        returns True; `enough()` ends them after the second or a later one.
    orders : iterable of arrays
        The order of the rows in each pass.
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
        draws = random.random_sample(block.stop - start)
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
        warnings.warn(message, stacklevel=4)
