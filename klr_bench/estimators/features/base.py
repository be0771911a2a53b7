"""What the learners by gradient descent on features have in common."""

from __future__ import annotations

import numpy as np
from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.core.losses import LOSSES
from klr_bench.estimators.core.parameters import CLASS_WEIGHT, POSITIVE
from klr_bench.estimators.features.descent import MISTAKES, REFUSED, UPDATES
from klr_bench.estimators.online.engine import BLOCK
from klr_bench.estimators.online.passes import OnlineClassifier


class FeatureDescentClassifier(OnlineClassifier):
    """A classifier f(x) = w'z(x) on features z, which online gradient descent w <- w - eta l'(y, f(x)) z(x) learns.

    A subclass has `_rows_of_chunk()`, the number of rows whose features are computed at once where there is no
    callback, and `_new_state`.  The state has `learn(loss, eta, X, y, weights)`; `coefficients(average=...)`, which
    returns (n_functions, n); `counts`, as in `klr_bench.estimators.features.descent`; `last_value`, the last f; and
    `dtype`, the precision of the rows.
    """

    _parameter_constraints = OnlineClassifier._parameter_constraints | {
        "eta": [POSITIVE],
        "loss": [StrOptions({"logit", "hinge", "square"})],
        "class_weight": CLASS_WEIGHT,
    }

    def _is_logistic(self):
        return self.loss == "logit"

    def _dtype_of_rows(self):
        return self._state.dtype

    def _size(self, callback):
        return self._rows_of_chunk() if callback is None else min(self._rows_of_chunk(), BLOCK)

    def _n_functions(self):
        return len(self.classes_) if self._has_many() else 1

    def _learning(self):
        loss, state = LOSSES[self.loss], self._state

        def learn(X, signs, draws, numbers, weights):
            del draws, numbers
            weights = np.ones(X.shape[0]) if weights is None else weights
            state.learn(loss, self.eta, X, np.ascontiguousarray(np.atleast_2d(signs)), weights)

        return learn

    def _refused_at(self):
        return self._state.counts[REFUSED], self._state.last_value

    def _coefficients(self):
        """Set the counts; return the coefficients, (n,), or (n_classes, n) for more than two classes."""
        state = self._state
        self.n_mistakes_, self.n_updates_ = int(state.counts[MISTAKES]), int(state.counts[UPDATES])
        self.t_ = state.t
        coef = state.coefficients(average=self.average)
        return coef if self._has_many() else coef[0]
