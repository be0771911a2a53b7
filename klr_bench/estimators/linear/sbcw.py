"""Sparse batch confidence-weighted learning: groups of features by a cutting-plane method, a covariance within each.

Tan, Yan, Wang, van den Hengel, Tsang, Shi, "Learning sparse confidence-weighted classifier on very high dimensional
data", AAAI 2016, algorithms 2 and 3.  Tan, Tsang, Wang, "Towards ultrahigh dimensional feature selection for big data",
JMLR 15, 2014, without covariances.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.utils._param_validation import Options

from klr_bench.estimators.core.binary import COUNT, NOT_NEGATIVE, POSITIVE
from klr_bench.estimators.linear.base import LinearClassifier
from klr_bench.estimators.linear.columns import occurring
from klr_bench.estimators.linear.groups import Subproblem

GROUPS = 15
"""Iterations in which the paper selects its features."""


class GroupSelector(LinearClassifier):
    """Algorithm 2: add the features that violate the dual most, as a group; solve for all groups; repeat.

    The score of feature j is |sum_i a_i y_i x_ij|, with equal a_i at the start.  A subclass has `_covariance`.
    """

    _parameter_constraints = {  # noqa: RUF012
        "C": [POSITIVE],
        "q": [Options(int, {1, 2})],
        "n_features_to_select": [COUNT],
        "n_group": [COUNT, None],
        "tol": [NOT_NEGATIVE],
        "n_passes": [COUNT],
        "gap_tol": [NOT_NEGATIVE],
        "sigma": [POSITIVE],
        "memory_limit": [POSITIVE],
        "refit": ["boolean"],
    }

    def __init__(self, C, q, n_features_to_select, n_group, tol, n_passes, gap_tol, sigma, memory_limit, refit):
        self.C = C
        self.q = q
        self.n_features_to_select = n_features_to_select
        self.n_group = n_group
        self.tol = tol
        self.n_passes = n_passes
        self.gap_tol = gap_tol
        self.sigma = sigma
        self.memory_limit = memory_limit
        self.refit = refit

    def fit(self, X, y, callback=None):
        """Select features and learn their weights.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Two classes of any kind; decision values above 0 mean the second in sorted order.
        callback : callable, default=None
            `callback(estimator, t)` is called after iteration t; returning True ends the fit.

        Returns
        -------
        self
        """
        X, signs = self._begin(X, y)
        self.coef_ = np.zeros(X.shape[1])
        self._columns, X = occurring(X)
        problem = Subproblem(X, signs, self.C, self.q, self.sigma, covariance=self._covariance)
        a, thetas, size = np.ones(len(signs)), [], self._group_size()
        free = np.ones(X.shape[1], dtype=bool)
        while True:
            room = min(size, self.n_features_to_select - len(problem.features))
            group = highest(np.where(free, np.abs(X.T @ (a * signs)), 0.0), room)
            self.stopped_by_ = self._reason(problem, group, thetas)
            if self.stopped_by_:
                break
            problem.add(group)
            free[group] = False
            thetas.append(problem.solve(self.n_passes, self.gap_tol))
            a = problem.a
            self._publish(problem, thetas)
            if callback is not None and callback(self, self.n_iter_):
                self.stopped_by_ = "callback"
                break
        self._publish(problem, thetas)
        if self.refit:
            whole = Subproblem(X, signs, self.C, self.q, self.sigma, covariance=self._covariance)
            whole.add(problem.features)
            whole.solve(self.n_passes, self.gap_tol)
            self.coef_[self.selected_features_] = whole.weights
        return self

    def steps(self, n_samples):
        """Return the largest t that a callback of `fit` may see, and the first at which a trace may begin."""
        return -(-self.n_features_to_select // self._group_size()), 1

    def summary(self):
        """Return the share of weights other than 0, and the groups."""
        return {**super().summary(), "n_iter": self.n_iter_}

    def selected_features(self):
        """Return the selected columns of X, in the order in which they were selected; a weight may be 0."""
        return self.selected_features_

    def _group_size(self):
        return self.n_group or -(-self.n_features_to_select // GROUPS)

    def _reason(self, problem, group, thetas):
        """Return the stopping rule that holds, "" if none does."""
        if len(problem.features) == self.n_features_to_select:
            return "n_features_to_select"
        if len(thetas) > 1 and abs(thetas[-1] - thetas[-2]) < self.tol * abs(thetas[-1]):
            return "tol"
        if not len(group):
            return "no_more_features"
        needed = problem.size_mb(group)
        if needed > self.memory_limit:
            message = (
                f"{type(self).__name__}: {len(problem.features) + len(group)} features take {needed:,.1f} MB, more "
                f"than memory_limit={self.memory_limit:g}. Select fewer, or raise memory_limit if the memory is there."
            )
            if not thetas:
                raise ValueError(message)
            warnings.warn(message, stacklevel=3)
            return "memory_limit"
        return ""

    def _publish(self, problem, thetas):
        """Set the fitted attributes."""
        self.selected_features_ = self._columns[problem.features]
        self.coef_[self.selected_features_] = problem.weights
        self.theta_, self.n_iter_ = np.array(thetas), len(thetas)


class SparseBatchConfidenceWeighted(GroupSelector):
    """Groups of r features, within each of which there is a covariance S_k = (I + C X_k'X_k)^-1.

    The weights minimise, nearly, (sigma/2) sum_k m_k^2 + (1/2) (sum_k m_k)^2 + C sum of loss^q with
    m_k^2 = coef_k' S_k^-1 coef_k, so that whole groups may get the weight 0.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss and of the rows in the covariances, > 0.
    q : {1, 2}, default=2
        The hinge loss, or its square.
    n_features_to_select : int, default=100
        Features p at which the selection ends (the third stopping rule).
    n_group : int, default=None
        Features r of a group; None: so many that there are 15 groups, as in the paper.
    tol : float, default=1e-3
        The selection also ends where the dual objective falls by less than this part of it (the first rule).
    n_passes : int, default=1
        Passes of dual coordinate ascent over the rows, in their order, each time a group was added; algorithm 3 is one.
    gap_tol : float, default=1e-3
        Duality gap, relative to the dual objective, at which no further pass is made.
    sigma : float, default=1e-2
    memory_limit : float, default=4000.0
        MB that selected columns and covariances may take: the selection ends with a warning before they take more (the
        second rule), and nothing is selected, with an error, where the first group does.
    refit : bool, default=False
        Whether the weights are learned anew at the end, with all selected features as one group: algorithm 1 on them.
        It is not in the paper: there, (sum_k m_k)^2 takes the weights of most groups to 0.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    coef_ : ndarray of shape (n_features,), float64
        0 but for selected features.
    selected_features_ : ndarray of shape (p,)
        In the order in which they were selected.
    theta_ : ndarray of shape (n_iter_,)
        Dual objectives after each iteration; of exact solutions they fall (theorem 1).
    n_iter_ : int
        Groups.
    stopped_by_ : {"n_features_to_select", "tol", "memory_limit", "no_more_features", "callback"}
        "no_more_features": all others have the score 0.
    n_features_in_ : int

    References
    ----------
    Tan et al. (2016), algorithms 2 and 3.  Steps of algorithm 3 that would go beyond the maximum of the dual
    objective end there: near a tie of two groups its curvature is 1/sigma times what they assume.
    """

    _covariance = True

    def __init__(
        self,
        C=1.0,
        q=2,
        *,
        n_features_to_select=100,
        n_group=None,
        tol=1e-3,
        n_passes=1,
        gap_tol=1e-3,
        sigma=1e-2,
        memory_limit=4000.0,
        refit=False,
    ):
        super().__init__(C, q, n_features_to_select, n_group, tol, n_passes, gap_tol, sigma, memory_limit, refit)


class FeatureGeneratingMachine(GroupSelector):
    """`SparseBatchConfidenceWeighted` without covariances: S_k = I.

    Parameters
    ----------
    C : float, default=10.0
    q, n_features_to_select, n_group, tol, n_passes, gap_tol, sigma, memory_limit, refit
        As there, and so are the fitted attributes; more passes come near the accurate solutions of the original.

    References
    ----------
    Tan, Tsang, Wang (2014), algorithm 2.
    """

    _covariance = False

    def __init__(
        self,
        C=10.0,
        q=2,
        *,
        n_features_to_select=100,
        n_group=None,
        tol=1e-3,
        n_passes=1,
        gap_tol=1e-3,
        sigma=1e-2,
        memory_limit=4000.0,
        refit=False,
    ):
        super().__init__(C, q, n_features_to_select, n_group, tol, n_passes, gap_tol, sigma, memory_limit, refit)


def highest(scores, r):
    """Return the places of the r highest positive scores (d,), fewer if there are fewer, in ascending order.

    Of equal scores the first places are taken.
    """
    least = np.partition(scores, -r)[-r] if 0 < r < len(scores) else 0.0 if r else np.inf
    above = np.flatnonzero(scores > least)
    equal = np.flatnonzero(scores == least)[: r - len(above)] if least > 0.0 else above[:0]
    return np.sort(np.append(above, equal))
