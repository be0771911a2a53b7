"""Sparse linear classifiers that select groups of features by a cutting-plane algorithm."""

from __future__ import annotations

from dataclasses import KW_ONLY

import numpy as np
from sklearn.utils._param_validation import Options

from klr_bench.estimators.core.checks import checked_fit, cleared_by_errors, verbose_callback, warn
from klr_bench.estimators.core.multiclass import one_vs_rest
from klr_bench.estimators.core.parameters import COUNT, NOT_NEGATIVE, POSITIVE, estimator, fixed, parameter
from klr_bench.estimators.core.rows import occurring
from klr_bench.estimators.core.vectors import highest
from klr_bench.estimators.linear.base import WeightedSolver
from klr_bench.estimators.linear.groups import Subproblem


@estimator
class SparseBatchConfidenceWeighted(WeightedSolver):
    r"""Confidence-weighted batch classifier that selects groups of features.

    Use it to select features from rows that arrive in batches.  The first batch usually decides which ones; see
    `FeatureGeneratingMachine` for rows that are all there.

    Parameters
    ----------
    C : float, default=1.0
        Weight > 0 of the loss.
    q : {1, 2}, default=2
        1 for the hinge loss, 2 for its square, as in the experiments; the steps of algorithm 3 are exact for 2.
    n_features_to_select : int, default=100
        Number p >= 1 of features at which the selection stops (the third stopping rule), 30 to 1,000 in the
        experiments.
    n_group : int or None, default=None
        Number >= 1 of features per group; None gives 15 groups, as in the paper.  Each group takes a pass over the
        rows.
    tol : float, default=1e-3
        The selection also stops when the relative change of the dual objective is below tol >= 0 (the first stopping
        rule).  The experiments use 0, so that exactly p features are selected.
    n_passes : int, default=1
        Largest number of passes of dual coordinate ascent over the rows after each new group, >= 1; algorithm 3 makes
        one.  With sigma >= 1 and some ten passes the solutions are nearly the exact ones, which theorem 1 assumes.
        With sigma = 1e-3 even 500 passes may stop at several times the optimal objective.
    gap_tol : float, default=1e-3
        With n_passes > 1, passes stop when the relative duality gap is at most gap_tol >= 0.
    sigma : float, default=1.0
        Weight > 0 of sum_k m_k^2; that of (sum_k m_k)^2 is 1.  The steps of algorithm 3 cannot exceed the maximum of
        the dual objective if sigma >= 1.  The paper has sigma << 1.
    r : float or None, default=None
        Weight of the prior covariance I relative to the rows, > 0, as in `BatchConfidenceWeighted`.  None means 1/C, as
        in equation 6; the covariances then cancel most of the loss, and features are nearly ranked by their
        correlation with the label.
    memory_limit : float, default=4000.0
        Largest size in MB, > 0, of the selected columns and the covariances.  The selection stops with a warning before
        they exceed it (the second stopping rule); if the first group already exceeds it, the fit raises an error.
        The inverses of the covariances, kept for later batches, take as much memory as the covariances.

    Attributes
    ----------
    selected_features_ : ndarray of shape (p,), int
        The selected features in the order of their selection.
    theta_ : ndarray of shape (n_iter_,), float64
        Dual objective after each iteration of the last batch; with exact solutions it decreases (theorem 1).
    n_iter_ : int
        Number of iterations of the last batch: one per new group, and one before them if a batch begins with groups.
    n_batches_ : int
        Number of batches seen.
    stopped_by_ : {"n_features_to_select", "tol", "memory_limit", "no_more_features", "callback"}
        Why the selection stopped; "no_more_features": all other features have a score of 0.

    Notes
    -----
    .. math::

        & \min_w \; \frac{\sigma}{2} \sum_k m_k^2 + \frac{1}{2} \left( \sum_k m_k \right)^2
        + C \sum_{i=1}^n \max(0, 1 - y_i w^T x_i)^q \\
        & m_k^2 = w_k^T (I + X_k^T X_k / r) w_k

    X_k are the columns of group k, w_k its weights and (I + X_k'X_k / r)^-1 their covariance.  The minimum is
    approximated by one pass of dual coordinate ascent after each new group; the squared sum can set the weights of
    whole groups to 0.

    Algorithm 2 adds the features with the highest scores |sum_i a_i y_i x_ij| as a group, solves for the dual
    variables a_i, and repeats.  Initially the a_i are proportional to the weights of the rows.

    ``fit`` takes all rows as one batch; each call of ``partial_fit`` is one batch, as in `BatchConfidenceWeighted`.
    Where the paper leaves later batches open, they first update the covariances of the selected groups and solve for
    their weights starting from u_k, the covariance times sum_i a_i y_i x_ik of the batch before, and then add groups
    while fewer than n_features_to_select features are selected.

    References
    ----------
    Tan et al., AAAI 2016, algorithms 2 and 3, equation 16 with C in place of C/q.  A step of algorithm 3 that would
    exceed the maximum of the dual objective stops there: with sigma < 1, the curvature where two groups are nearly tied
    is 1/sigma times what algorithm 3 assumes.  Algorithm 1 requires both r and C, but equation 6 ties them.

    Examples
    --------
    >>> from klr_bench import SparseBatchConfidenceWeighted
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, 20, class_sep=2.0, n_clusters_per_class=1, random_state=0)
    >>> model = SparseBatchConfidenceWeighted(n_features_to_select=4, n_group=2).fit(X, y)
    >>> model.score(X, y) > 0.9, model.selected_features_.shape, model.n_iter_
    (True, (4,), 2)
    """

    _fixed = ("n_features_to_select", "n_group")
    C: float = parameter(POSITIVE, default=1.0)
    q: int = parameter(Options(int, {1, 2}), default=2)
    _: KW_ONLY
    n_features_to_select: int = parameter(COUNT, default=100)
    n_group: int | None = parameter(COUNT, None, default=None)
    tol: float = parameter(NOT_NEGATIVE, default=1e-3)
    n_passes: int = parameter(COUNT, default=1)
    gap_tol: float = parameter(NOT_NEGATIVE, default=1e-3)
    sigma: float = parameter(POSITIVE, default=1.0)
    r: float | None = parameter(POSITIVE, None, default=None)
    memory_limit: float = parameter(POSITIVE, default=4000.0)

    _regularizes_variance = True

    @one_vs_rest
    @checked_fit
    def fit(self, X, y, sample_weight=None, callback=None):
        """Select features and learn their weights; return self.

        Parameters
        ----------
        X, y
            As for `AROW.fit`.
        sample_weight : array of shape (n_samples,), default=None
            Weights >= 0 of the rows, which multiply C in the loss and 1/r in the covariances.
        callback : callable, default=None
            ``callback(estimator, t)`` is called after iteration t; returning True ends the fit.
        """
        return self._learn(*self._begin_weighted(X, y, sample_weight), callback)

    @one_vs_rest
    @checked_fit
    def partial_fit(self, X, y, classes=None, sample_weight=None, callback=None):
        """Continue learning from the rows as the next batch; return self.

        Parameters
        ----------
        X, y, classes
            As for `AROW.partial_fit`; class_weight="balanced" raises an error, because it needs all rows.
        sample_weight, callback
            As for `fit`.
        """
        X, y, weights = self._next_rows(X, y, classes, sample_weight, first="coef_" not in vars(self))
        if len(y):
            self._learn(X, self._signs(y), self._row_costs(len(y), weights), callback)
        return self

    def _learn(self, X, signs, C, callback):  # no engine of `run_passes`: each step needs all rows of the batch
        if "n_batches_" not in vars(self):
            self.n_batches_, self._groups = 0, []
        columns, X = occurring(X, [j for features, *_ in self._groups for j in features])
        problem = Subproblem(X, signs, C, self.q, self.sigma, self._precisions(C))
        for features, inverse, u in self._groups:
            problem.add(np.searchsorted(columns, features), inverse, u)
        a, thetas, size = C / self.C, [], self._group_size()
        free, callback = np.ones(X.shape[1], dtype=bool), verbose_callback(self, callback)
        while True:
            if len(problem.features):
                thetas.append(problem.solve(self.n_passes, self.gap_tol))
                a = problem.a
            self.selected_features_ = columns[problem.features]
            self.coef_ = np.zeros(self.n_features_in_)
            self.coef_[self.selected_features_] = problem.weights
            self.theta_, self.n_iter_ = np.array(thetas), len(thetas)
            with cleared_by_errors(self):
                ended = thetas and callback is not None and callback(self, self.n_iter_)
            if ended:
                self.stopped_by_ = "callback"
                break
            free[problem.features] = False
            room = min(size, self.n_features_to_select - len(problem.features))
            group = highest(np.where(free, np.abs(X.T @ (a * signs)), 0.0), room)
            self.stopped_by_ = self._reason_to_stop(problem, group, thetas)
            if self.stopped_by_:
                break
            problem.add(group)
        self._groups = [(columns[features], inverse, u) for features, inverse, u in problem.groups()]
        self.n_batches_ += 1
        return self

    def steps(self, n_samples):
        """Return the maximum number of iterations and the iteration number of the first checkpoint."""
        return -(-self.n_features_to_select // self._group_size()), 1

    def _precisions(self, C):
        if not self._regularizes_variance:
            return None
        return C if self.r is None else C / (self.C * self.r)

    def _group_size(self):
        return self.n_group or -(-int(self.n_features_to_select) // 15)  # 15 groups, as in the paper

    def _reason_to_stop(self, problem, group, thetas):
        """Return the reason to stop the selection, or an empty string to continue."""
        if len(problem.features) == self.n_features_to_select:
            return "n_features_to_select"
        if len(thetas) > 1 and abs(thetas[-1] - thetas[-2]) < self.tol * abs(thetas[-1]):
            return "tol"
        if not len(group):
            return "no_more_features"
        needed = problem.size_mb(group)
        if needed > self.memory_limit:
            message = (
                f"{type(self).__name__}: {len(problem.features) + len(group)} features need {needed:,.1f} MB, more "
                f"than memory_limit={self.memory_limit:g}. Select fewer features or increase memory_limit."
            )
            if not thetas:
                raise ValueError(message)
            warn(message)
            return "memory_limit"
        return ""


@estimator
class FeatureGeneratingMachine(SparseBatchConfidenceWeighted):
    r"""Feature generating machine, a linear SVM that selects groups of features.

    Use it to keep some of thousands of features, or groups of them, in a linear model.  With ``n_passes=50`` it
    was the most accurate of our selectors on RCV1 for a given number of features, at ten times the time; with one pass
    `SparDCA` has its accuracy with fewer features.  A round passes over all rows and features.

    Parameters
    ----------
    C : float, default=10.0
        Weight > 0 of the loss.

    Notes
    -----
    .. math::

        \min_w \; \frac{\sigma}{2} \sum_k {\lVert w_k \rVert}^2
        + \frac{1}{2} \left( \sum_k {\lVert w_k \rVert} \right)^2 + C \sum_{i=1}^n \max(0, 1 - y_i w^T x_i)^q

    w_k are the weights of group k.  It is `SparseBatchConfidenceWeighted` without covariances; ``n_passes=50``
    and sigma = 1 give solutions close to those of the original.

    References
    ----------
    Tan, Tsang, Wang, "Towards ultrahigh dimensional feature selection for big data", JMLR 15, 2014, algorithm 2.

    Examples
    --------
    >>> from klr_bench import FeatureGeneratingMachine
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, 20, class_sep=2.0, n_clusters_per_class=1, random_state=0)
    >>> FeatureGeneratingMachine(n_features_to_select=4, n_group=2).fit(X, y).score(X, y) > 0.9
    True
    """

    C: float = parameter(POSITIVE, default=10.0)
    r: None = fixed(None)

    _regularizes_variance = False
