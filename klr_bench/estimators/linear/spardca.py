"""A sparse linear support vector machine by proximal dual coordinate ascent.

Shalev-Shwartz, Zhang, "Proximal stochastic dual coordinate ascent", arXiv:1211.2717, 2012.
"""

from __future__ import annotations

import warnings

import numpy as np
from numba import float32, float64, int32, int64, types
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from klr_bench.estimators.core.classifier import learns
from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.parameters import COUNT, NOT_NEGATIVE, POSITIVE, SEED, Choice
from klr_bench.estimators.linear.base import LinearClassifier
from klr_bench.estimators.linear.columns import occurring
from klr_bench.estimators.linear.engine import read_only

_vector = float64[::1]


def _signature(real, index):
    places = read_only(index, 1)
    return types.void(
        read_only(real, 1), places, places, _vector, int64[::1], float64, float64, float64, _vector, _vector, _vector
    )


@compiled([_signature(real, index) for real in (float32, float64) for index in (int32, int64)])
def _ascend(data, indices, indptr, y, order, l1, bound, softness, squares, a, z):
    """Update a (n,) and z (d,) with one step per CSR row, in the given order; squares (n,) are ||x||^2."""
    for i in order:
        row, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        f = 0.0
        for s in range(len(row)):
            value = z[row[s]]
            if value > l1:
                f += (value - l1) * x[s]
            elif value < -l1:
                f += (value + l1) * x[s]
        wanted = (1.0 - y[i] * f - softness * a[i]) / (squares[i] + softness)
        step = max(-a[i], min(bound - a[i], wanted))
        if step != 0.0:
            a[i] += step
            for s in range(len(row)):
                z[row[s]] += step * y[i] * x[s]


class SparDCA(LinearClassifier):
    """A sparse linear SVM: min_w (1/2) ||w||^2 + l1 ||w||_1 + C sum_i max(0, 1 - y_i w'x_i)^q.

    It is solved by coordinate ascent on its dual

        max_a sum_i a_i - [q = 2] sum_i a_i^2/(4 C) - (1/2) ||w||^2,   w = soft(sum_i a_i y_i x_i, l1)

    with a_i >= 0 (and <= C if q = 1), and soft(z, l1) = sign(z) max(|z| - l1, 0).

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss, > 0.
    l1 : float, default=1.0
        Weight of the L1 norm, >= 0.  With `l1_relative` it is a multiple of the smallest value for which w = 0,
        q C max_j |sum_i y_i x_ij|.
    l1_relative : bool, default=False
        Whether l1 is such a multiple.
    q : {1, 2}, default=2
        1 for the hinge loss, 2 for its square.
    tol : float, default=1e-3
        The fit ends when the duality gap is at most tol times the primal objective.
    max_iter : int, default=1000
        Largest number of passes over the rows, each in a random order.
    random_state : int, RandomState instance or None, default=None
        Seed of these orders.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes in sorted order.
    coef_ : ndarray of shape (n_features,), float64
        The weights w.
    n_iter_ : int
        Number of passes.
    objective_, duality_gap_ : float
        The primal objective, and the duality gap relative to it.
    converged_ : bool
        Whether the gap is at most tol.
    n_features_in_ : int
        Number of features.

    References
    ----------
    Shalev-Shwartz, Zhang, arXiv:1211.2717, 2012, section 5; the sparDCA of Tan et al., AAAI 2016.

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

    _parameter_constraints = {  # noqa: RUF012
        "C": [POSITIVE],
        "l1": [NOT_NEGATIVE],
        "l1_relative": ["boolean"],
        "q": [Choice(int, {1, 2})],
        "tol": [NOT_NEGATIVE],
        "max_iter": [COUNT],
        "random_state": SEED,
    }

    def __init__(self, C=1.0, l1=1.0, *, l1_relative=False, q=2, tol=1e-3, max_iter=1000, random_state=None):
        self.C = C
        self.l1 = l1
        self.l1_relative = l1_relative
        self.q = q
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @learns
    def fit(self, X, y, callback=None):
        """Minimise the objective over all rows.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Two classes of any type; decision values above 0 mean the second in sorted order.
        callback : callable, default=None
            `callback(estimator, t)` is called after pass t; returning True ends the fit.

        Returns
        -------
        self
        """
        X, signs = self._begin(X, y)
        self.coef_ = np.zeros(X.shape[1])
        columns, X = occurring(X)
        random = check_random_state(self.random_state)
        bound, softness = (self.C, 0.0) if self.q == 1 else (np.inf, 0.5 / self.C)
        l1 = self.l1 * (self.q * self.C * np.max(np.abs(X.T @ signs), initial=0.0) if self.l1_relative else 1.0)
        squares = np.asarray(X.astype(np.float64).power(2).sum(axis=1)).ravel()
        a, z = np.zeros(len(signs)), np.zeros(X.shape[1])
        for n_iter in range(1, self.max_iter + 1):
            order = random.permutation(len(signs))
            _ascend(X.data, X.indices, X.indptr, signs, order, l1, bound, softness, squares, a, z)
            w = np.sign(z) * np.maximum(np.abs(z) - l1, 0.0)
            self.coef_[columns] = w
            self.n_iter_ = n_iter
            self._measure(X, signs, w, a, l1, softness)
            if callback is not None and callback(self, n_iter):
                return self
            if self.converged_:
                return self
        message = f"The duality gap is {self.duality_gap_:.3g} of the objective after {self.n_iter_} passes."
        warnings.warn(message, ConvergenceWarning, stacklevel=3)
        return self

    def steps(self, n_samples):
        """Return the largest t that a callback of `fit` may see, and the first at which a trace may begin."""
        return self.max_iter, 1

    def ended_at(self):
        """Return the pass after which the fit ended."""
        return self.n_iter_

    def progress(self):
        """Return what a checkpoint keeps: objective, gap and the share of weights other than 0."""
        return {"objective": self.objective_, "duality_gap": self.duality_gap_, **super().progress()}

    def summary(self):
        """Return what a checkpoint keeps, and the passes."""
        return {**super().summary(), "n_iter": self.n_iter_}

    def _measure(self, X, y, w, a, l1, softness):
        loss = np.maximum(0.0, 1.0 - y * (X @ w))
        smooth = 0.5 * (w @ w)
        dual = a.sum() - 0.5 * softness * (a @ a) - smooth
        self.objective_ = float(smooth + l1 * np.abs(w).sum() + self.C * np.sum(loss**self.q))
        self.duality_gap_ = float((self.objective_ - dual) / max(self.objective_, 1e-300))
        self.converged_ = bool(self.duality_gap_ <= self.tol)
