"""Kernel online gradient descent, continued on Nystroem features once the budget is full.

Let f = sum_j a_j k(x_j, .) be a sum over B examples, and K = V D V' their kernel matrix.  The functions with the
coefficients P = V_k D_k^-1/2 (B, k) are orthonormal, and their values z(x) = P'k(x) are the features of x.  The
projection of f onto their span has the weights w = D_k^1/2 V_k'a; the coefficients of any w'z are P w.
"""

from __future__ import annotations

import copy
import math

import numpy as np
import scipy.sparse as sp
from numba import float64, int64
from scipy.linalg import eigh
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.checks import checked_decision
from klr_bench.estimators.core.expansion import decide
from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.kernels import kernel_of
from klr_bench.estimators.core.losses import LOSSES, derivative
from klr_bench.estimators.core.parameters import COUNT, POSITIVE, estimator, parameter
from klr_bench.estimators.core.rows import stacked
from klr_bench.estimators.core.vectors import settled, tie_of_sums
from klr_bench.estimators.features.base import Descent, FeatureDescentClassifier, FeatureEngine
from klr_bench.estimators.kernel_values.features import KernelFeatures
from klr_bench.estimators.kernel_values.operands import operands_of
from klr_bench.estimators.online.state import STATES

SHARE = 0.2
"""Default rank of the kernel matrix per support vector, as in the authors' code."""
BLOCK = 128
"""Number of examples whose kernel values are computed at once while the budget is not full."""
CHUNK = 1024
"""Number of examples whose features are computed at once."""


def _signature(real):
    matrix = float64[:, ::1]
    return int64(int64, float64, real[:, ::1], matrix, float64[::1], matrix, int64, STATES)


@compiled(_signature, fastmath={"reassoc", "contract"})
def _insert(loss, eta, K, y, factors, coef, room, states):
    """Learn from examples until the budget is full; return the number of examples learned.

    K (b, n + b) are the kernel values with n support vectors and the examples, coef (M, n + b) the coefficients, y
    (M, b) the labels, factors (b,) the weights.
    """
    b = K.shape[0]
    n, state = K.shape[1] - b, states[0]
    for i in range(b):
        entered = False
        state["t"] += 1
        for k in range(coef.shape[0]):
            f, squares = 0.0, 0.0
            for j in range(n + i):
                term = coef[k, j] * K[i, j]
                f += term
                squares += term * term
            state["last"] = f
            if not math.isfinite(f):
                state["refused"] = state["t"]
                return i + 1
            if math.isfinite(squares):
                f = settled(f, tie_of_sums(K) * math.sqrt(squares))
            state["mistakes"] += y[k, i] * f <= 0.0
            step = -eta * factors[i] * derivative(loss, y[k, i], f, 0.0)
            if step != 0.0:
                state["updates"] += 1
                coef[k, n + i] = step
                entered = True
        room -= entered
        if room == 0:
            return i + 1
    return b


class NystroemState(FeatureEngine):
    """Engine of `NOGD`: gradient descent on kernel values, then on Nystroem features.

    Attributes: `features`, kernel values with the support vectors; `coef` (M, n), their coefficients while there is
    room; `late` (M, n), the sum of t c_t over their steps; `n`, the number of examples that the average of this time is
    over, and `total` (M, n), the sum of the coefficients before each of them, once there is no room; `projection`, P in
    the precision of the kernel values, and `descent` on the features, None while there is room.
    """

    chunk = CHUNK

    def __init__(self, kernel, X, budget, rank, n_functions):
        super().__init__(X.dtype, sparse=sp.issparse(X))
        self.budget, self.rank = budget, rank
        self.features = KernelFeatures(operands_of(kernel, X), X[:0])
        self.coef, self.late = np.zeros((2, n_functions, 0))
        self.total = self.projection = self.descent = None
        self.n = 0

    def _learn(self, X, y, weights):
        start, loss, eta = 0, self.loss, self.eta
        while start < len(weights) and self.descent is None and not self.refused:
            rows = slice(start, start + BLOCK)
            start += self._fill(loss, eta, X[rows], np.ascontiguousarray(y[:, rows]), weights[rows])
            if self.features.n_features == self.budget:
                self._project()
        if start < len(weights) and not self.refused:
            Z = self.features.transform(X[start:]) @ self.projection
            y = np.ascontiguousarray(y[:, start:])
            self.descent.learn(loss, eta, Z, y, weights[start:], self.states)

    def _fill(self, loss, eta, X, y, weights):
        """Learn from rows until the budget is full; return the number of rows learned."""
        b, n = len(weights), self.features.n_features
        rows = stacked([self.features.centers, X])
        features = KernelFeatures(self.features.operands.fitting(X), rows)
        coef = np.ascontiguousarray(np.hstack([self.coef, np.zeros(y.shape)]))
        K = np.ascontiguousarray(features.transform(X))
        done = _insert(loss, eta, K, y, weights, coef, self.budget - n, self.states)
        places = np.r_[:n, n + np.flatnonzero(coef[:, n:].any(axis=0))]
        late = np.hstack([self.late, coef[:, n:] * np.arange(self.n + 1, self.n + 1 + b)])
        self.features, self.coef, self.late = features.take(places), coef[:, places], late[:, places]
        self.n += done
        return done

    def _project(self):
        K = self.features.transform(self.features.centers)
        if not np.isfinite(K).all():
            self.states["refused"], self.states["last"] = self.t, math.nan
            return
        k = len(K)
        values, vectors = eigh(K.astype(np.float64), subset_by_index=[k - self.rank, k - 1])
        least = k * np.finfo(K.dtype).eps * values[-1]
        roots = np.sqrt(np.where(values > least, values, 0.0))
        P = vectors * np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0.0)
        self.projection = P.astype(K.dtype)
        self.total = self.n * self.coef - self.late
        self.descent = Descent(np.ascontiguousarray(self.coef @ (vectors * roots)))

    def average_from_here(self):
        """Restart the average of the functions, so that it covers only later examples."""
        self.n, self.late = 0, np.zeros_like(self.late)
        if self.descent is not None:
            self.total = np.zeros_like(self.total)
            self.descent.average_from_here()

    def coefficients(self, *, average):
        """Return the averaged coefficients if `average` is True, and the last ones otherwise."""
        if self.descent is None:
            return (self.n * self.coef - self.late) / max(self.n, 1) if average else self.coef.copy()
        P = self.projection.T.astype(np.float64)
        if not average:
            return self.descent.weights @ P
        return (self.total + self.descent.sum() @ P) / max(self.n + self.descent.n, 1)


@estimator
class NOGD(FeatureDescentClassifier):
    r"""Kernel online gradient descent, continued on Nystroem features once the budget is full.

    Use it on many rows or an endless stream, if features made from rows of the data suit it better than the random ones
    of `FOGD`: memory and the time for a row depend on the budget and the rank alone.

    Parameters
    ----------
    budget : int, default=100
        Number B of support vectors, >= 1; takes 8 B (B + 2 rank) bytes.  In the reference of budget_all 414 give 85.1 %
        accuracy on Adult, 3,443 give 85.3 % in 100 times the time.
    rank : int or None, default=None
        Number k of features, 1 to B; None is a fifth of B, rounded up; the authors' code takes a fifth, too.
        Eigenvalues that are 0 but for rounding give none.

    Attributes
    ----------
    support_vectors_ : ndarray or CSR matrix of shape (n_support_, n_features)
        The first rows with a step to make, in their order; both classifiers, average and last, are sums of their kernel
        values.
    dual_coef_ : ndarray of shape (n_support_,), or (n_classes, n_support_) for more than two classes, float64
        Coefficients of the average classifier, (1/T) sum_{t=1..T} f_t, or of the last one, f_{T+1}.
    n_support_ : int
        Number of support vectors; ``budget``, unless there were fewer steps.  In several passes a row may be several.

    Notes
    -----
    .. math::

        & z(x) = D_k^{-1/2} V_k^T (k(x, x_1), \ldots, k(x, x_B))^T \\
        & w \leftarrow w - \eta \, \ell'(y, w^T z(x)) \, z(x)

    With room, a row with l'(y, f(x)) other than 0 becomes a support vector with the coefficient -eta l', as in
    `KernelOGD`.  Then the k = ``rank`` largest eigenvalues D_k and their eigenvectors V_k of the support vectors'
    kernel matrix give the features z, and f becomes its projection onto their span.  No support vector is ever
    replaced: memory and the time for a row do not depend on the number of rows.

    With more than two classes it learns one f_k per class, which separates it from the others, on the same support
    vectors: the rows at which any of them has a step to make.

    References
    ----------
    Lu, Hoi, Wang, Zhao, Liu, "Large scale online kernel learning", JMLR 17(47), 2016, algorithm 2.  Nystroem features:
    Williams, Seeger, NIPS 2000.

    Examples
    --------
    >>> from klr_bench import NOGD
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(400, noise=0.1, random_state=0)
    >>> model = NOGD(budget=50, rank=20, eta=2.0, gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_support_, model.last_classifier().n_support_
    (True, 50, 50)
    """

    budget: int = parameter(COUNT, default=100)
    rank: int | None = parameter(COUNT, None, default=None)
    eta: float = parameter(POSITIVE, default=1.0)
    loss: str = parameter(StrOptions({"logit", "hinge", "square"}), default="logit")

    _fixed = ("budget", "rank", "kernel", "gamma", "degree", "coef0", "dtype")

    @checked_decision
    def decision_function(self, X):
        """Evaluate the decision function at each row of X.

        The result is float64 of shape (n_samples,), or (n_samples, n_classes) for more than two classes.
        """
        check_is_fitted(self, ["dual_coef_", "_state"])
        X = self._validate(X, dtype=self._state.dtype)
        return decide(self._state.features.operands, self.support_vectors_, self.dual_coef_, X)

    @property
    def support_vectors_(self):
        """The support vectors, in a matrix of shape (n_support_, n_features)."""
        return self._state.features.centers

    def last_classifier(self):
        """Return a copy that predicts with the last function instead of the average.

        The copy shares the memory of this estimator.
        """
        check_is_fitted(self, ["dual_coef_", "_state"])
        last = copy.copy(self)
        last.average = False
        last._publish()
        return last

    def stand_in(self):
        """Return a small estimator that uses Nystroem features even if fitted to only four rows."""
        return type(self)(budget=2)

    def _validate_params(self):
        super()._validate_params()
        if self.rank is not None and self.rank > self.budget:
            message = f"The 'rank' parameter of NOGD must be at most budget={self.budget}. Got {self.rank}."
            raise ValueError(message)

    def _engine(self, X, weights):
        rank = math.ceil(SHARE * self.budget) if self.rank is None else self.rank
        engine = self._state or NystroemState(kernel_of(self, X, weights), X, self.budget, rank, self._n_functions())
        engine.loss, engine.eta = LOSSES[self.loss], self.eta
        return engine

    def _publish(self):
        self.dual_coef_ = self._shown_coefficients()
        self.n_support_ = self.support_vectors_.shape[0]
