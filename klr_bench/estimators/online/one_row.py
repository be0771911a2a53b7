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

ONE_THREAD = 8192
"""Number of multiplications for which BLAS would not use several threads anyway."""


class Published:
    """Attribute that `_publish` sets, after a row on the short way when it is first read."""

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, learner, owner):
        if learner is None:
            return self
        learner._publish_if_due()
        if self.name in vars(learner):
            return vars(learner)[self.name]
        message = f"{type(learner).__name__!r} object has no attribute {self.name!r}"
        raise AttributeError(message)

    @classmethod
    def forget(cls, learner):
        """Remove the attributes of a learner that has learned from another row."""
        if "t_" in vars(learner):
            for name in [name for name in vars(learner) if isinstance(getattr(type(learner), name, None), cls)]:
                del vars(learner)[name]
            learner._is_due = True


def row_by_row(method):
    """Decorate `partial_fit` to try the short way first."""

    @wraps(method)
    def learned(self, X, y, classes=None, *args, **kwargs):
        try:
            if self._learn_row is not None and not args and not kwargs and self._learn_row(self, X, y, classes):
                return self
        except BaseException:  # arguments that are refused go through `partial_fit`
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
    learn, random, dtype = state.learn, learner._random.random_sample, state.dtype
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
            learn(X, np.array([sign]), random(1), None, None)  # as `learn_in_order` does
        Published.forget(learner)
        learner._check()
        return True

    return learn_row
