"""The online linear learners: one pass over the rows, and a Gaussian over the weights."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.parameters import COUNT, POSITIVE, Number
from klr_bench.estimators.linear.base import IncrementalClassifier, check_memory
from klr_bench.estimators.linear.blocked import Blocked
from klr_bench.estimators.linear.engine import LIMITS, MISTAKES, REFUSED, UPDATES, Diagonal, Full

CONFIDENCE = Number(Real, 0.5, 1, closed="neither")
"""Parameter constraint: a probability between 0.5 and 1, exclusive."""
IN_CACHE = 256
"""Features whose full covariance stays in the processor's cache; with more, it is updated in blocks."""


class OnlineLinearClassifier(IncrementalClassifier):
    r"""A linear classifier that learns in one pass over the rows, in their order.

    .. math::

        & w \leftarrow w + \alpha \, y \, \Sigma x, \qquad \Sigma \leftarrow \Sigma - \beta \, \Sigma x (\Sigma x)^T \\
        & m = y \, w^T x, \qquad v = x^T \Sigma x

    The numbers alpha and beta, which are the rule of a subclass, depend on the margin m and its variance v only; the
    passive-aggressive rules have beta = 0 and the identity as Sigma.  The result depends on the sequence of rows only,
    up to rounding, not on how it is split into calls of ``partial_fit``.

    ``_update()`` of a subclass returns its compiled update rule and the numbers of the rule; where it takes weights
    (n,) of the rows, ``_update(weights)`` may return arrays of such numbers, one for each row.

    Parameters
    ----------
    n_epochs : int, default=1
        Passes of ``fit`` over the rows, >= 1.  The published comparisons make one.

    Attributes
    ----------
    classes_, coef_, n_features_in_
        See `LinearClassifier`; coef_ is the mean where the weights have a distribution.
    n_updates_ : int
        Number of rows that changed the weights or their covariance.
    n_mistakes_ : int
        Number of rows with y f(x) <= 0 at their own step.
    t_ : int
        Number of rows seen.
    """

    _parameter_constraints = {"n_epochs": [COUNT]}  # noqa: RUF012

    def __init__(self, n_epochs):
        self.n_epochs = n_epochs

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
            if state.counts[REFUSED]:
                self._publish()
                self._refuse(state.counts[REFUSED])
            self._note_decided()
            if callback is not None:
                self._publish()
                if callback(self, state.t):
                    return True
        self._publish()
        return False

    def _note_decided(self):
        """After a block of rows: `Progressive` keeps what was predicted for them."""

    def _refuse(self, t):
        message = (
            f"{type(self).__name__}: at example {t} the margin, its variance or the update is not finite in the "
            "precision of X; scale the features, for example to [0, 1], or choose milder parameters."
        )
        raise ValueError(message)

    def _publish(self):
        state = self._state
        self.coef_ = state.mean
        self.n_mistakes_, self.n_updates_ = int(state.counts[MISTAKES]), int(state.counts[UPDATES])
        self.t_ = state.t


class ConfidenceLearner(OnlineLinearClassifier):
    r"""An online linear classifier with a Gaussian over its weights.

    .. math::

        w \sim N(\mu, \Sigma), \qquad \mu_1 = 0, \qquad \Sigma_1 = I

    ``coef_`` is the mean, ``covariance_`` the covariance Sigma, which shrinks in the directions of the rows seen: there
    later steps are smaller.

    Parameters
    ----------
    covariance : {"full", "diagonal"}, default="full"
        "full": time and memory grow with the square of the number of features.  It is kept in float64 for up to 256
        features, otherwise in the precision of X.  "diagonal": they grow with the number of non-zero features, so it is
        the choice for texts.  The comparisons with Tan et al. (2016, table 2) have "full".
    n_epochs : int, default=1
        Passes of ``fit`` over the rows, >= 1.  The published comparisons make one.
    memory_limit : float, default=4000.0
        MB > 0 that a full covariance may take, else ``fit`` raises an error.  The default is reached at 22,000 features
        in float64 and at 31,000 in float32.

    Attributes
    ----------
    covariance_ : ndarray of shape (n_features, n_features), or (n_features,) if diagonal
        Covariance of the weights, computed when it is read.
    classes_, coef_, n_updates_, n_mistakes_, t_, n_features_in_
        See `OnlineLinearClassifier`.
    """

    _fixed = ("covariance",)
    _parameter_constraints = OnlineLinearClassifier._parameter_constraints | {
        "covariance": [StrOptions({"full", "diagonal"})],
        "memory_limit": [POSITIVE],
    }

    def __init__(self, covariance, n_epochs, memory_limit):
        super().__init__(n_epochs)
        self.covariance = covariance
        self.memory_limit = memory_limit

    @property
    def covariance_(self):
        """A copy of the covariance of the weights; of more than two classes a list."""
        check_is_fitted(self, "coef_")
        if self._has_many():
            return [learner.covariance_ for learner in self.estimators_]
        return self._state.covariance()

    def _new_state(self, X):
        d = X.shape[1]
        if self.covariance == "diagonal":
            return Diagonal(d, self._limit(np.dtype(np.float64)), self._first_variance())
        dtype = np.dtype(np.float64 if d <= IN_CACHE else X.dtype)
        check_memory(self, d, dtype, 'covariance="diagonal"')
        limit, first = self._limit(dtype), self._first_variance()
        return Full(d, limit, first) if d <= IN_CACHE else Blocked(d, limit, first, dtype)

    def _limit(self, dtype):
        """Return the most that one example may add to the inverse covariance, in its own direction."""
        return LIMITS[dtype.name]

    def _first_variance(self):
        return 1.0
