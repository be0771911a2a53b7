"""The online linear learners: one pass over the rows, and a Gaussian over the weights."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.parameters import COUNT, POSITIVE, Number
from klr_bench.estimators.linear.base import IncrementalClassifier, check_memory
from klr_bench.estimators.linear.engine import LIMITS, MISTAKES, REFUSED, UPDATES, Blocked, Diagonal, Full

CONFIDENCE = Number(Real, 0.5, 1, closed="neither")
"""Parameter constraint: a probability between 0.5 and 1, exclusive."""
IN_CACHE = 256
"""Features whose full covariance stays in the processor's cache; with more, it is updated in blocks."""


class OnlineLinearClassifier(IncrementalClassifier):
    """A linear classifier that learns row by row, by the rule of a subclass.

    `_update()`, with weights of rows `_update(weights)`, returns the compiled rule and its parameters, some per row.
    """

    _parameter_constraints = {"n_epochs": [COUNT]}  # noqa: RUF012

    def _start(self, X):
        self._state = self._new_state(X)

    def _new_state(self, X):
        """Return the state before the first example, for rows like those of X: S = I, which PA never changes."""
        return Diagonal(X.shape[1], math.inf, 1.0)

    def _learn(self, X, signs, callback, weights=None):
        state = self._state
        rule, numbers = self._update() if weights is None else self._update(weights)
        parameters = np.column_stack(np.broadcast_arrays(*map(np.atleast_1d, numbers))).astype(np.float64)
        for start in range(0, len(signs), state.rows):
            block = slice(start, start + state.rows)
            state.learn(rule, parameters if weights is None else parameters[block], X[block], signs[block])
            refused = state.counts[REFUSED]
            if refused or callback is not None:
                self._publish()
            if refused:
                message = (
                    f"{type(self).__name__}: at example {refused} the margin, variance or update is not finite in "
                    "the precision of X; scale the features, for example to [0, 1], or choose milder parameters."
                )
                raise ValueError(message)
            self._note_decided()
            if callback is not None and callback(self, state.t):
                return True
        self._publish()
        return False

    def _note_decided(self):
        """After a block of rows: `Progressive` keeps what was predicted for them."""

    def _publish(self):
        state = self._state
        self.coef_, self.t_ = state.mean, state.t
        self.n_mistakes_, self.n_updates_ = int(state.counts[MISTAKES]), int(state.counts[UPDATES])


class ConfidenceLearner(OnlineLinearClassifier):
    """An online linear classifier with a Gaussian over its weights; the mean is `coef_`."""

    _fixed = ("covariance",)
    _parameter_constraints = OnlineLinearClassifier._parameter_constraints | {
        "covariance": [StrOptions({"full", "diagonal"})],
        "memory_limit": [POSITIVE],
    }

    def __init__(self, covariance, n_epochs, memory_limit):
        self.covariance = covariance
        self.n_epochs = n_epochs
        self.memory_limit = memory_limit

    @property
    def covariance_(self):
        """A copy of the covariance of the weights; a list with one per class for more than two classes."""
        check_is_fitted(self, "coef_")
        if self._has_many():
            return [learner.covariance_ for learner in self.estimators_]
        return self._state.covariance()

    def _new_state(self, X):
        d, first = X.shape[1], self._first_variance()
        if self.covariance == "diagonal":
            return Diagonal(d, self._limit(np.dtype(np.float64)), first)
        dtype = np.dtype(np.float64 if d <= IN_CACHE else X.dtype)
        check_memory(self, d, dtype, 'covariance="diagonal"')
        return Full(d, self._limit(dtype), first) if d <= IN_CACHE else Blocked(d, self._limit(dtype), first, dtype)

    def _limit(self, dtype):
        """Return the most that one example may add to the inverse covariance, in its own direction."""
        return LIMITS[dtype.name]

    def _first_variance(self):
        return 1.0
