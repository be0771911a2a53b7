"""Online gradient descent for one or more linear functions of a feature vector.

w_{t+1} = w_t + c_t z_t,      c_t = -eta q_t l'(y_t, w_t'z_t)  for an example of weight q_t

The features of a chunk of examples are computed at once; the loop over the examples then reads each of them twice while
they are in the cache.  The sum of w_1, ..., w_T is T w_{T+1} - sum_t t c_t z_t: one more product for each chunk.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY

import numpy as np
from numba import float64, int64, void
from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.kernels import KERNELS
from klr_bench.estimators.core.losses import derivative
from klr_bench.estimators.core.parameters import COUNT, CompiledKernels, estimator, fixed, parameter
from klr_bench.estimators.online.classifier import OnlineClassifier
from klr_bench.estimators.online.engine import BLOCK
from klr_bench.estimators.online.state import STATES, BlockState

IN_CACHE = 2**19
"""Number of feature values in a chunk of examples, about two megabytes in float32."""


def rows_of_chunk(n_features):
    """Return the number of examples whose features are computed at once."""
    return max(IN_CACHE // n_features, 16)


def _signature(real):
    matrix = float64[:, ::1]
    return void(int64, float64, real[:, ::1], matrix, float64[::1], matrix, matrix, matrix, STATES)


@compiled(_signature, fastmath={"reassoc", "contract"})
def _descend(loss, eta, Z, y, factors, weights, steps, values, states):
    """Take a gradient step for each row of the feature matrix Z.

    Updates the weights (M, D), and sets the steps c (M, b) and the values of f (M, b).
    """
    state = states[0]
    for i in range(Z.shape[0]):
        z = Z[i]
        state["t"] += 1
        for k in range(weights.shape[0]):
            w, f = weights[k], 0.0
            for j in range(len(z)):
                f += w[j] * z[j]
            values[k, i] = state["last"] = f
            if not math.isfinite(f):
                state["refused"] = state["t"]
                return
            state["mistakes"] += y[k, i] * f <= 0.0
            step = -eta * factors[i] * derivative(loss, y[k, i], f, 0.0)
            if step != 0.0:
                state["updates"] += 1
                steps[k, i] = step
                for j in range(len(z)):
                    w[j] += step * z[j]


class Descent:
    """State of gradient descent that is carried from one chunk of examples to the next.

    Attributes: `weights` (M, D); `late`, sum_t t c_t z_t, and `n`, the number of examples that it is over; `values`
    (M, b), f of the examples of the last call of `learn`, each by the ones before it.
    """

    def __init__(self, weights):
        self.weights, self.late, self.n = weights, np.zeros_like(weights), 0
        self.values = np.zeros((len(weights), 0))

    def learn(self, loss, eta, Z, y, factors, states):
        """Take a gradient step for each row of the feature matrix Z, and count them in `states`."""
        steps, self.values = np.zeros((2, *y.shape))
        _descend(loss, eta, Z, y, factors, self.weights, steps, self.values, states)
        steps *= np.arange(self.n + 1, self.n + 1 + len(Z))
        self.late += steps.astype(Z.dtype) @ Z
        self.n += len(Z)

    def sum(self):
        """Return the sum of the weight vectors that were used to predict the examples."""
        return self.n * self.weights - self.late

    def average_from_here(self):
        """Restart the average of the weights, so that it covers only later examples."""
        self.late[:] = 0.0
        self.n = 0


class FeatureEngine(BlockState):
    """Base class of the engines of M functions that learn with the step size `eta`.

    `loss` is the index of the loss in LOSSES.
    A subclass has `_learn(X, y, weights)`, with labels y (M, b) and weights (b,), and the number of rows of a `chunk`.
    """

    dtype = None

    def __init__(self, dtype, *, sparse):
        super().__init__()
        self.dtype, self.sparse = dtype, sparse

    @property
    def watched_chunk(self):
        """Number of rows for one call of `learn` if a callback follows it."""
        return min(self.chunk, BLOCK)

    def learn(self, X, labels, draws=None, numbers=None, factors=None):
        """Learn from the rows of X with labels in {-1, 1}, (b,) or (M, b)."""
        weights = np.ones(X.shape[0]) if factors is None else factors
        self._learn(X, np.ascontiguousarray(np.atleast_2d(labels)), weights)


@estimator
class FeatureDescentClassifier(OnlineClassifier):
    r"""Base class of classifiers trained by online gradient descent on explicit features.

    .. math::

        f(x) = w^T z(x), \qquad w \leftarrow w - \eta \, \ell'(y, f(x)) \, z(x)

    With more than two classes it learns one f_k for each, which separates it from the others, on the same features.

    A subclass has ``_engine(X, weights)``, which returns a `FeatureEngine` with ``coefficients(average=...)``, (M, n).

    Parameters
    ----------
    eta : float, default=1.0
        Step size > 0; a step moves f as one of `KernelOGD` does with the same eta.  The grid of the experiments is
        0.01, 0.1, 0.5, 1; in the reference of budget_all cross-validation chose 0.1 to 1 for `FOGD`, mostly 0.5, and 1
        for `NOGD`, but for one fit, on MAGIC and on Adult.
    loss : {"logit", "hinge", "square"}, default="logit"
        ``log(1 + exp(-y f))``, ``max(0, 1 - y f)`` or ``(y - f)^2``.  The experiments have "hinge"; probabilities need
        "logit".
    average : bool, default=False
        Predict with the average of the f_t, after several passes only those of the last pass; otherwise with the last
        f_t.
    dtype : {"float32", "float64"} or None, default=None
        Precision of the features; None keeps float32 rows as they are and converts all others to float64.  w is always
        float64.
    n_epochs : int or None, default=None
        Passes of `fit` over the rows, >= 1; the paper makes one.  None is 10, and fewer where there are many rows:
        100,000 / n_samples, but at least 2.

    Attributes
    ----------
    n_updates_ : int
        Number of steps with l'(y, f(x)) other than 0, added over all f_k.
    n_mistakes_ : int
        Number of rows with y f_t(x) <= 0 at their own step, added over all f_k.
    t_ : int
        Number of rows seen.
    classes_ : ndarray of shape (n_classes,), dtype of y
        The classes in sorted order.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,), dtype object
        Names of the features, if X is a data frame whose column names are all strings.
    """

    _: KW_ONLY
    kernel: str = parameter(StrOptions(set(KERNELS)), default="rbf")
    n_epochs: int | None = parameter(COUNT, None, default=None)
    n_jobs: None = fixed(None)

    _described_by = CompiledKernels
    grows = False
    pass_key = None
    """None, because these learners cannot share a pass."""

    def _n_functions(self):
        return len(self.classes_) if self._has_many() else 1

    def _shown_coefficients(self):
        """Set the attributes that hold counts, and return the coefficients of the decision function."""
        state = self._state
        self.n_mistakes_, self.n_updates_ = state.n_mistakes, state.states["updates"].item()
        self.t_ = state.t
        coef = state.coefficients(average=self.average)
        return coef if self._has_many() else coef[0]
