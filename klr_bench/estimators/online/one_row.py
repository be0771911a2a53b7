"""A short way through `partial_fit` for one dense row.

It repeats none of the checks that the previous call made, and sets the fitted attributes when they are first read.
"""

from __future__ import annotations

import math
from functools import wraps
from operator import is_, itemgetter

import numpy as np

from klr_bench.estimators.core.threads import QUIET, single_threaded_blas
from klr_bench.estimators.online.engine import OnlineState
from klr_bench.estimators.online.strategies import StrategyState

PUBLISHED = (
    "coef_", "dual_coef_", "n_support_", "n_updates_", "n_mistakes_", "t_", "cumulative_loss_", "_support_vectors",
    "_numbers",
)  # fmt: skip
"""Attributes that `_publish` sets; after a row on the short way they are set when they are first read."""
ONE_THREAD = 8192
"""Number of multiplications for which BLAS would not use several threads anyway."""


def row_by_row(method):
    """Decorate `partial_fit` to try the short way first."""

    @wraps(method)
    def learned(self, X, y, classes=None, *args, **kwargs):
        try:
            if self._learn_row is not None and not args and not kwargs and self._learn_row(self, X, y, classes):
                return self
        except KeyboardInterrupt:
            self._clear()
            raise
        return method(self, X, y, classes, *args, **kwargs)

    return learned


def short_way(learner):
    """Return a function of a learner, X, y and classes that learns from one row, or None.

    The function returns True, or False if the row must go through `partial_fit`: if a parameter has changed, or X or y
    is not of the usual kind.  The result is None if all rows must.
    """
    state, classes_ = learner._state, learner.classes_
    weighted = learner.class_weight is not None or getattr(learner, "feature_weights", None) is not None
    if len(classes_) > 2 or weighted or state.sparse or hasattr(learner, "feature_names_in_"):
        return None
    learn, random, dtype = learner._learning(), learner._random.random_sample, learner._dtype_of_rows()
    parameters_of, shape = itemgetter(*learner._parameter_constraints), (1, learner.n_features_in_)
    parameters, (negative, positive) = parameters_of(vars(learner)), classes_
    compiled = isinstance(state, OnlineState | StrategyState)
    most = 0 if not compiled else math.inf if state.operands.in_tiles(state.support) else ONE_THREAD // shape[1]

    def learn_row(learner, X, y, classes):
        if not (
            all(map(is_, parameters_of(vars(learner)), parameters))
            and type(X) is type(y) is np.ndarray
            and X.shape == shape
            and X.dtype == dtype
            and X.flags.c_contiguous
            and y.shape == (1,)
            and (y[0] == positive or y[0] == negative)
            and (classes is None or np.array_equal(classes, classes_))
            and np.isfinite(X).all()
        ):
            return False
        sign = 1.0 if y[0] == positive else -1.0
        alone = len(state.support) < most if most else False
        with np.errstate(**QUIET) if alone else single_threaded_blas(getattr(learner, "n_jobs", None)):
            learn(X, np.array([sign]), random(1), None, None)
        if "t_" in vars(learner):
            for name in PUBLISHED:
                vars(learner).pop(name, None)
            learner._is_due = True
        learner._refuse_if_needed()
        learner._note_decided()
        return True

    return learn_row
