"""Batch confidence-weighted learning, with one covariance per batch of rows."""

from __future__ import annotations

import time
from dataclasses import KW_ONLY

import numpy as np
import scipy.sparse as sp
from numba import float64, types
from scipy.linalg import eigh, get_blas_funcs
from sklearn.utils._param_validation import Options

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.parameters import POSITIVE, estimator, parameter
from klr_bench.estimators.linear.base import IncrementalClassifier, Weighted, box, check_memory, per_row
from klr_bench.estimators.linear.confidence import ConfidenceLearner
from klr_bench.estimators.online.state import STATES, BlockState

GRAM_ROWS = 2048
"""Number of rows per matrix product in the computation of X'X."""
TILE = 1 << 18
"""Number of entries of X U that are computed at once, few enough to stay in the processor cache."""


def _signature(real):
    vector = float64[::1]
    return types.void(real[:, ::1], vector, vector, vector, vector, STATES)


@compiled(_signature, fastmath={"reassoc", "contract"})
def _coordinate_steps(Z, y, w, bound, softness, states):
    """Update the whitened weights w in place by one dual coordinate step per whitened row of Z."""
    state = states[0]
    for i in range(len(y)):
        z, f = Z[i], 0.0
        for k in range(len(w)):
            f += z[k] * w[k]
        loss = 1.0 - y[i] * f
        state["mistakes"] += loss >= 1.0
        if loss <= 0.0:
            continue
        squared = 0.0
        for k in range(len(w)):
            squared += z[k] * z[k]
        if squared > 0.0:
            step = y[i] * min(bound[i], loss / (squared + softness[i]))
            for k in range(len(w)):
                w[k] += step * z[k]
            state["updates"] += 1


class WhitenedState(BlockState):
    """Engine of `BatchConfidenceWeighted`: the distribution of the weights.

    The weights w of a batch are whitened.

    `update`, called with the weights of rows or nothing, returns C and q; it is set by the learner.
    """

    UNSTORED = (*BlockState.UNSTORED, "U")

    def __init__(self, d):
        super().__init__()
        self.precision, self.mean, self.n_batches = np.eye(d), np.zeros(d), 0
        self.chunk = self.watched_chunk = max(64, TILE // d)

    def begin(self, precision, dtype):
        """Begin a batch with this inverse of the covariance, whose rows have this dtype."""
        e, V = eigh(precision, overwrite_a=False, check_finite=False)
        e = np.maximum(e, 1.0)  # in exact arithmetic, the eigenvalues of I + X'X / r are at least 1
        self.precision, self.root = precision, (V * e**-0.5) @ V.T
        self.w = (V * e**0.5) @ (V.T @ self.mean)
        self.U, self.pass_time = self.root.astype(dtype, copy=False), 0.0
        self.n_batches += 1

    def learn(self, X, y, draws=None, numbers=None, factors=None):
        """Update the whitened weights from the rows of X with labels y, one row after the other."""
        C, q = self.update() if factors is None else self.update(factors)
        bound, softness = box(per_row(C, len(y)), q)
        Z = np.ascontiguousarray(X @ self.U)
        start = time.perf_counter()
        _coordinate_steps(Z, y, self.w, bound, softness, self.states)
        self.pass_time += time.perf_counter() - start
        self.states["t"] += len(y)

    def covariance(self):
        """Return the covariance matrix of the weights, of shape (d, d)."""
        return self.root @ self.root


@estimator
class BatchConfidenceWeighted(Weighted, IncrementalClassifier):
    r"""Confidence-weighted classifier that learns from batches of rows, in one pass per batch.

    Use it for a linear boundary between rows that arrive in batches and have at most some thousand features, whose full
    covariance it keeps.  It has no probabilities.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss, > 0.  The usual grid, used in configs/algorithm, is 2^-4, 2^-3, ..., 2^4; on Covertype
        cross-validation chose 1/8 to 8 for q = 1 and 1/16 to 1 for q = 2 (reference of cw_covtype).
    q : {1, 2}, default=1
        1 for the hinge loss, 2 for its square: the paper's BCW-L1 and BCW-L2, which have similar errors on Covertype
        (24.5 and 24.4 %).
    r : float or None, default=None
        Weight of the old covariance relative to the rows of the batch, > 0, as in `AROW`.  None means 1/C, as in
        equation 6.  With 1 the errors on Covertype are 23.6 and 24.4 % (reference of cw_covtype_toolbox).
    memory_limit : float, default=4000.0
        Largest size in MB of one covariance, > 0; the fit stores four matrices of this size.  4000 MB are 22,000
        features.

    Attributes
    ----------
    precision_ : ndarray of shape (n_features, n_features), float64
        The inverse of Sigma, I + sum of x x' / r.
    covariance_ : ndarray of shape (n_features, n_features), float64
        Sigma, computed when it is accessed.
    n_batches_ : int
        Number of batches seen.
    pass_time_ : float
        Seconds of the coordinate steps of the last batch, without the computation of the covariance, its root, and U x.

    Notes
    -----
    .. math::

        & \Sigma^{-1} \leftarrow \Sigma^{-1} + \frac{1}{r} X^T X \\
        & \min_{\mu} \; \frac{1}{2} \mu^T \Sigma^{-1} \mu + C \sum_i \max(0, 1 - y_i \mu^T x_i)^q

    The minimum is approximated by one pass of dual coordinate descent: with ``U = Sigma^(1/2)`` and ``w = U^-1 mu``,
    each row with a positive loss gives the step ``w += alpha y U x``, ``alpha = min(loss / ||U x||^2, C)`` for q = 1
    and ``loss / (||U x||^2 + 1/(2C))`` for q = 2.  ``fit`` takes all rows as one batch; each call of ``partial_fit`` is
    one batch.  The weight of a row multiplies its C, and x x' in the inverse of Sigma.

    References
    ----------
    Tan et al., AAAI 2016, algorithm 1, which requires r and C but does not define the use of r.
    For q = 2 the 0.5/C here is exact for C times the squared loss; equation 7 prints C/2 times the squared loss, whose
    step has 1/C.

    Examples
    --------
    >>> from klr_bench import BatchConfidenceWeighted
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, 20, class_sep=2.0, n_clusters_per_class=1, random_state=0)
    >>> model = BatchConfidenceWeighted(C=1.0, q=2).fit(X, y)
    >>> model.score(X, y) > 0.95, model.n_batches_, model.covariance_.shape
    (True, 1, (20, 20))
    """

    C: float = parameter(POSITIVE, default=1.0)
    q: int = parameter(Options(int, {1, 2}), default=1)
    _: KW_ONLY
    r: float | None = parameter(POSITIVE, None, default=None)
    memory_limit: float = parameter(POSITIVE, default=4000.0)

    covariance_ = ConfidenceLearner.covariance_

    def _engine(self, X, weights):
        engine = self._state
        if engine is None:
            d = X.shape[1]
            check_memory(self, d, np.dtype(np.float64), "SparseBatchConfidenceWeighted, which selects features")
            engine = WhitenedState(d)
        precision = engine.precision + (self.C if self.r is None else 1 / self.r) * gram(X, weights)
        if not np.isfinite(precision).all():
            message = (
                f"{type(self).__name__}: X'X is not finite in {X.dtype}; scale the features, for example to [0, 1]."
            )
            raise ValueError(message)
        engine.begin(precision, X.dtype)
        return engine

    def _update(self, weights=1.0):
        return self.C * weights, self.q

    def summary(self):
        """Return the fraction of non-zero weights, update count and pass time, as a dict."""
        return super().summary() | {"pass_time_s": float(np.sum(self.pass_time_))}

    def _publish(self):
        engine = self._state
        engine.mean = engine.root @ engine.w
        super()._publish()
        self.precision_, self.n_batches_, self.pass_time_ = engine.precision, engine.n_batches, engine.pass_time


def gram(X, weights=None):
    """Return the weighted Gram matrix X' diag(weights) X in float64.

    Without weights it is X'X.  Blocks of rows are multiplied in the precision of X, and summed in float64.
    """
    d = X.shape[1]
    (syrk,), total = get_blas_funcs(("syrk",), dtype=X.dtype), np.zeros((d, d), order="F")
    for start in range(0, X.shape[0], GRAM_ROWS):
        rows = X[start : start + GRAM_ROWS]
        rows = rows.toarray() if sp.issparse(rows) else np.ascontiguousarray(rows)
        if weights is not None:
            rows = rows * np.sqrt(weights[start : start + GRAM_ROWS, None]).astype(rows.dtype)
        total += syrk(1.0, rows.T, lower=1)
    return total + np.tril(total, -1).T
