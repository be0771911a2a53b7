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
    r"""A classifier that online gradient descent learns on features z of the rows.

    .. math::

        f(x) = w^T z(x), \qquad w \leftarrow w - \eta \, \ell'(y, f(x)) \, z(x)

    With more than two classes it learns one f_k for each, which tells it from the rest, on the same features.

    A subclass has ``_rows_of_chunk()``, the number of rows whose features are computed at once where there is no
    callback, and ``_new_state``.  The state has ``learn(loss, eta, X, y, weights)``; ``coefficients(average=...)``,
    which returns (n_functions, n); ``counts``, as in ``klr_bench.estimators.features.descent``; ``last_value``, the
    last f; and ``dtype``, the precision of the rows.

    Parameters
    ----------
    eta : float, default=0.5
        Step size > 0; a step moves f as one of `KernelOGD` does with the same eta.  The grid of the experiments is
        0.01, 0.1, 0.5, 1; in the reference of budget_all cross-validation chose 0.1 to 1 for `FOGD`, mostly 0.5, and 1
        for `NOGD`, but for one fit, on MAGIC and on Adult.
    loss : {"logit", "hinge", "square"}, default="logit"
        ``log(1 + exp(-y f))``, ``max(0, 1 - y f)`` or ``(y - f)^2``.  The experiments have "hinge"; probabilities need
        "logit".
    average : bool, default=False
        Predict with the average of the f_t; otherwise with the last one.  Where there are several passes the average is
        that of the last one.
    gamma : float, {"scale", "median"} or None, default="scale"
        gamma > 0 of the rbf and poly kernels; None is 1 / n_features, "scale" 1 / (n_features X.var()), "median" 1 / (2
        m^2) with the median distance m of rows; by the rows of the fit, or of the first call of ``partial_fit``.  The
        experiments have 1 / (2 s^2) with the 20th percentile s of the distances.
    random_state : int, RandomState instance or None, default=None
        Seed of the order of the rows.
    dtype : {"float32", "float64"} or None, default=None
        Precision of the features; None follows X: float32 stays float32, all else is float64.  w is always float64.
    n_epochs : int, default=1
        Passes of ``fit`` over the rows, >= 1.  The paper makes one.
    shuffle, class_weight
        See `KernelOGD`; class_weight="balanced" is for ``fit`` only: ``partial_fit`` does not have all rows.

    Attributes
    ----------
    classes_, n_features_in_
        See `KernelOGD`.
    n_updates_ : int
        Number of steps with l'(y, f(x)) other than 0, added over all f_k.
    n_mistakes_ : int
        Number of rows with y f_t(x) <= 0 at their own step, added over all f_k.
    t_ : int
        Number of rows seen.
    """

    _parameter_constraints = OnlineClassifier._parameter_constraints | {
        "eta": [POSITIVE],
        "loss": [StrOptions({"logit", "hinge", "square"})],
        "class_weight": CLASS_WEIGHT,
    }

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
