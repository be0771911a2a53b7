"""Sparse linear support vector machine, trained by proximal dual coordinate ascent."""

from __future__ import annotations

from dataclasses import KW_ONLY

import numpy as np
from numba import float32, float64, int32, int64, types
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Options

from klr_bench.estimators.core.checks import checked_fit, verbose_callback, warn
from klr_bench.estimators.core.jit import compiled, read_only
from klr_bench.estimators.core.multiclass import one_vs_rest
from klr_bench.estimators.core.parameters import COUNT, NOT_NEGATIVE, POSITIVE, SEED, estimator, parameter
from klr_bench.estimators.core.rows import occurring
from klr_bench.estimators.linear.base import WeightedSolver, box

_vector = float64[::1]


def _signature(real, index):
    integers = read_only(index, 1)
    return types.void(
        read_only(real, 1),
        integers,
        integers,
        _vector,
        int64[::1],
        float64,
        _vector,
        _vector,
        _vector,
        _vector,
        _vector,
    )


@compiled([_signature(real, index) for real in (float32, float64) for index in (int32, int64)])
def _ascend(data, indices, indptr, y, order, l1, bound, softness, squares, a, z):
    """Make one pass over CSR rows, updating the dual variables `a` and the vector `z` in place.

    `a` (n,) are the dual variables and z (d,) is sum_i a_i y_i x_i.
    """
    for i in order:
        row, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        f = 0.0
        for s in range(len(row)):
            value = z[row[s]]
            if value > l1:
                f += (value - l1) * x[s]
            elif value < -l1:
                f += (value + l1) * x[s]
        optimum = (1.0 - y[i] * f - softness[i] * a[i]) / (squares[i] + softness[i])
        step = max(-a[i], min(bound[i] - a[i], optimum))
        if step != 0.0:
            a[i] += step
            for s in range(len(row)):
                z[row[s]] += step * y[i] * x[s]


@estimator
class SparDCA(WeightedSolver):
    r"""Sparse linear support vector machine, trained by proximal dual coordinate ascent.

    Use it for a linear classifier with few non-zero weights, whose number the penalty decides.  An epoch costs time in
    proportion to the non-zeros of the rows.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss, > 0.  The experiments use 1 and vary l1.
    l1 : float, default=1.0
        Weight of the L1 norm, >= 0.  With ``l1_relative`` it is relative to the smallest value for which w = 0,
        ``q C max_j |sum_i y_i x_ij|``.  On RCV1 the relative values 0.2, 0.1, 0.04 and 0.01 select 21, 72, 188
        and 614 of 47,000 features with 83, 89, 92 and 95 % accuracy (reference of sbcw_rcv1).
    l1_relative : bool, default=False
        Whether l1 is relative to the smallest value for which w = 0, as in the experiments; a grid of relative values
        suits any data set.
    q : {1, 2}, default=2
        1 for the hinge loss, 2 for its square, as in the experiments.
    tol : float, default=1e-3
        The fit stops when the duality gap is at most tol times the primal objective, tol >= 0.
    max_iter : int, default=1000
        Largest number of passes over the rows, each in random order, >= 1; 8 passes reach the default tol on RCV1.
    random_state : int, RandomState instance or None, default=None
        Seed of the order of the rows in each pass.

    Attributes
    ----------
    n_iter_ : int
        Number of passes.
    objective_ : float
        The primal objective.
    duality_gap_ : float
        The duality gap, relative to the primal objective.
    converged_ : bool
        Whether the duality gap is at most tol.

    Notes
    -----
    .. math::

        \min_w \; \frac{1}{2} {\lVert w \rVert}^2 + \lambda_1 {\lVert w \rVert}_1
        + C \sum_{i=1}^n \max(0, 1 - y_i w^T x_i)^q

    lambda_1 is the parameter ``l1``.  Each step maximizes the dual over one a_i >= 0 (and <= C if q = 1); the weights
    are ``w = soft(sum_i a_i y_i x_i, l1)`` with ``soft(z, l1) = sign(z) max(|z| - l1, 0)``.  The weight of a row
    multiplies its C.

    References
    ----------
    Shalev-Shwartz, Zhang, "Proximal stochastic dual coordinate ascent", arXiv:1211.2717, 2012, section 5; the sparDCA
    of Tan et al., AAAI 2016.

    Examples
    --------
    >>> from klr_bench import SparDCA
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, 20, class_sep=2.0, n_clusters_per_class=1, random_state=0)
    >>> model = SparDCA(l1=0.3, l1_relative=True, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.converged_
    (True, True)
    >>> len(np.flatnonzero(model.coef_)) < 5
    True
    """

    C: float = parameter(POSITIVE, default=1.0)
    l1: float = parameter(NOT_NEGATIVE, default=1.0)
    _: KW_ONLY
    l1_relative: bool = parameter("boolean", default=False)
    q: int = parameter(Options(int, {1, 2}), default=2)
    tol: float = parameter(NOT_NEGATIVE, default=1e-3)
    max_iter: int = parameter(COUNT, default=1000)
    random_state: int | np.random.RandomState | None = parameter(*SEED, default=None)

    @one_vs_rest
    @checked_fit
    def fit(self, X, y, sample_weight=None, callback=None):
        """Fit the classifier to the training rows; return self.

        Parameters
        ----------
        X, y
            As for `AROW.fit`.
        sample_weight : array of shape (n_samples,), default=None
            Weights >= 0 of the rows, which multiply C in their losses.
        callback : callable, default=None
            ``callback(estimator, t)`` is called after pass t; returning True ends the fit.
        """
        X, signs, C = self._begin_weighted(X, y, sample_weight)
        self.coef_ = np.zeros(X.shape[1])
        columns, X = occurring(X)
        random = check_random_state(self.random_state)
        bound, softness = box(C, self.q)
        l1 = self.l1 * (self.q * np.max(np.abs(X.T @ (C * signs)), initial=0.0) if self.l1_relative else 1.0)
        squares = np.asarray(X.astype(np.float64).power(2).sum(axis=1)).ravel()
        a, z = np.zeros(len(signs)), np.zeros(X.shape[1])
        callback = verbose_callback(self, callback)
        for n_iter in range(1, self.max_iter + 1):
            order = random.permutation(len(signs))
            _ascend(X.data, X.indices, X.indptr, signs, order, l1, bound, softness, squares, a, z)
            w = np.sign(z) * np.maximum(np.abs(z) - l1, 0.0)
            self.coef_[columns] = w
            self.n_iter_ = n_iter
            loss, smooth = np.maximum(0.0, 1.0 - signs * (X @ w)), 0.5 * (w @ w)
            dual = a.sum() - 0.5 * (softness * a) @ a - smooth
            self.objective_ = float(smooth + l1 * np.abs(w).sum() + C @ loss**self.q)
            self.duality_gap_ = float((self.objective_ - dual) / max(self.objective_, 1e-300))
            self.converged_ = bool(self.duality_gap_ <= self.tol)
            if (callback is not None and callback(self, n_iter)) or self.converged_:
                return self
        message = (
            f"The relative duality gap {self.duality_gap_:.3g} exceeds tol={self.tol:g} after {self.n_iter_} passes."
        )
        warn(message, ConvergenceWarning)
        return self

    def steps(self, n_samples):
        """Return the maximum number of passes of `fit` and the pass number of the first checkpoint."""
        return self.max_iter, 1

    def ended_at(self):
        """Return the number of passes over the rows made during the fit."""
        return int(np.max(self.n_iter_))

    def progress(self):
        """Return the objective, duality gap and fraction of non-zero weights, as a dict."""
        gap = float(np.max(self.duality_gap_))
        return {"objective": float(np.sum(self.objective_)), "duality_gap": gap, **super().progress()}
