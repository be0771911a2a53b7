"""Kernel logistic regression on a few centers: `NystroemKLR`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import InvalidParameterError, StrOptions
from sklearn.utils.validation import check_array

from klr_bench.estimators.batch.base import ExpansionClassifier, per_problem, usual_lam
from klr_bench.estimators.batch.partition import hashed
from klr_bench.estimators.core.checks import checked_decision, checked_fit, verbose_callback, warn
from klr_bench.estimators.core.feature_weights import FEATURE_WEIGHTS, weighted
from klr_bench.estimators.core.multiclass import SEEDS
from klr_bench.estimators.core.parameters import (
    CLASS_WEIGHT,
    COUNT,
    JOBS,
    NOT_NEGATIVE,
    POSITIVE,
    PRECOMPUTED,
    VERBOSE,
    estimator,
    parameter,
)
from klr_bench.estimators.core.rows import canonical, slices, stacked
from klr_bench.estimators.kernel_values.newton import newton_steps
from klr_bench.estimators.online.oskl import OSKL

KMEANS_ROWS = 20_000
"""Maximum number of rows from which k-means++ draws."""


@estimator
class NystroemKLR(ExpansionClassifier):
    r"""Kernel logistic regression on a few centers, fitted to all rows until it converges.

    Use it for many rows, up to millions and to files larger than memory, if a few thousand centers are enough: time and
    memory grow in proportion to the number of rows, and predictions cost one kernel value per center.  Scale the
    features first.

    Parameters
    ----------
    lam : float or None, default=None
        Weight of the squared norm, > 0; None is 1 / (10 n_samples), with the sum of the weights in place of n_samples
        if rows have weights.  Try 1e-7, 1e-6, ..., 1e-2.
    n_centers : int, default=1000
        Number B >= 1 of centers, at most n_samples.  The time of a pass is proportional to it, and that of the
        preconditioner to its cube.
    centers : {"uniform", "kmeans++", "oskl"} or array of shape (n_centers, n_features), default="uniform"
        The centers: rows drawn at random, rows drawn by k-means++, support vectors of `OSKL`, which are rows drawn with
        a probability that is proportional to the derivative of their loss, or given points, which
        `feature_weights` multiply like the rows.  With a precomputed kernel only "uniform".
    fit_intercept : bool, default=False
        Whether b is learned, without a penalty.
    tol : float, default=1e-8
        The fit ends when the estimated distance of the objective from its minimum is at most tol times the objective;
        tol >= 0, of which values below the machine epsilon of `dtype` (1.2e-7 for float32) count as that.
    max_iter : int, default=30
        Largest number of Newton steps, >= 1; 4 to 8 are usual.
    cache_size : float, default=200
        MB of kernel values in memory, > 0.  If those of all rows with the centers fit, they are computed only once.
    map_rows : callable or None, default=None
        Where the rows are during the fit; None is this process.  With `dask_rows` they are on dask workers, each of
        which sends B numbers per pass.
    random_state : int, RandomState instance or None, default=None
        Seed of the centers and of the rows of the preconditioner.
    dtype : {"float32", "float64"} or None, default=None
        Precision of the kernel values; None follows X: float32 stays float32, all else is float64.  float32 takes half
        the time; the objective then is accurate to about 1e-6.
    n_jobs : int or None, default=None
        Threads that compute kernel values; None is as many as BLAS would use, -1 one for each core.  The result does
        not depend on it.

    Attributes
    ----------
    support_vectors_ : ndarray or CSR matrix of shape (n_support_, n_features)
        The centers.
    dual_coef_ : ndarray of shape (n_support_,), or (n_classes, n_support_) for more than two classes, float64
        Their coefficients.
    intercept_ : float, or ndarray of shape (n_classes,) for more than two classes
        b.
    n_support_ : int
        Number of centers.
    n_iter_, n_passes_ : int
        Numbers of Newton steps and of passes over the rows.
    objective_, gradient_norm_ : float, or ndarray of shape (n_classes,) for more than two classes
        Objective, and the norm of its gradient with respect to f.  The objective is at most
        ``gradient_norm_**2 / (2 lam)`` above its minimum if there is no intercept.

    Notes
    -----
    .. math::

        & \min_{a, b} \; \frac{\lambda}{2} a^T G a + \frac{1}{n} \sum_{i=1}^n \log(1 + e^{-y_i f(x_i)}) \\
        & f = b + \sum_{j=1}^B a_j k(z_j, \cdot), \quad G_{jl} = k(z_j, z_l)

    b is 0 without `fit_intercept`.  The centers z are rows of X, or given; lambda is the parameter ``lam``.  Kernel
    values of the rows are computed again in each of some twenty passes unless they fit into ``cache_size``, so that
    memory grows with the square of the number of centers, and each row takes only about 40 bytes per class, whatever
    its number of features.  With more than two classes there is one f per class (one-vs-rest), on the same centers.

    References
    ----------
    Marteau-Ferey, Bach, Rudi, "Globally convergent Newton methods for ill-conditioned generalized self-concordant
    losses", NeurIPS 2019.

    Examples
    --------
    >>> from klr_bench import NystroemKLR
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> model = NystroemKLR(n_centers=30, gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95, model.support_vectors_.shape
    (True, (30, 2))
    """

    lam: float | None = parameter(POSITIVE, None, default=None)
    n_centers: int = parameter(COUNT, default=1000)
    _: KW_ONLY
    centers: object = parameter(
        StrOptions({"uniform", "kmeans++", "oskl"}), "array-like", "sparse matrix", default="uniform"
    )
    fit_intercept: bool = parameter("boolean", default=False)
    tol: float = parameter(NOT_NEGATIVE, default=1e-8)
    max_iter: int = parameter(COUNT, default=30)
    cache_size: float = parameter(POSITIVE, default=200)
    class_weight: dict | str | None = parameter(*CLASS_WEIGHT, default=None)
    n_jobs: int | None = parameter(*JOBS, default=None)
    map_rows: Callable[..., Any] | None = parameter(callable, None, default=None)
    verbose: int | bool = parameter(*VERBOSE, default=False)
    feature_weights: ArrayLike | str | None = parameter(*FEATURE_WEIGHTS, default=None)

    @checked_fit
    def fit(self, X, y, sample_weight=None, callback=None):
        """Fit the coefficients of the centers to the rows of X and their classes y; return self.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training rows; a memory-mapped float32 or float64 array is not copied without `feature_weights`.
        y : array of shape (n_samples,)
            Classes of any type; of two classes, decision values above 0 mean the second in sorted order.
        sample_weight : array of shape (n_samples,), default=None
            Weights >= 0 of the rows, some above 0.
        callback : callable, default=None
            ``callback(estimator, t)`` is called after Newton step t; returning True ends the fit.

        Raises
        ------
        ValueError
            If parameters or data are refused, or kernel values are so large that the objective is not finite.
        """
        X, y, weights = self._begin(X, y, sample_weight)
        self._refuse_precomputed()
        signs = np.atleast_2d(self._signs(y))
        shares, total = self._shares(weights, len(y))
        lam = usual_lam(total) if self.lam is None else self.lam
        self.support_vectors_ = self._centers(X, y, weights)
        self.n_support_ = self.support_vectors_.shape[0]
        callback = verbose_callback(self, callback)
        for solver in newton_steps(
            self._operands,
            X,
            self.support_vectors_,
            signs,
            shares,
            lam,
            self._random,
            self.tol,
            self.max_iter,
            self.cache_size,
            self.map_rows,
            self.fit_intercept,
        ):
            self._publish(solver)
            if self.n_iter_ and callback is not None and callback(self, self.n_iter_):
                return self
        if solver.unfinished().any():
            message = (
                f"NystroemKLR: after {self.n_iter_} Newton steps the estimated relative distance of the objective "
                f"from its minimum is still {np.max(solver.distance / solver.objective):.1e}."
            )
            warn(message, ConvergenceWarning)
        return self

    @checked_decision
    def decision_function(self, X):
        """Evaluate the decision function at each row of X.

        The result is float64 of shape (n_samples,), or (n_samples, n_classes) for more than two classes.
        """
        return super().decision_function(X) + self.intercept_

    def steps(self, n_samples):
        """Return the maximum number of Newton steps, and the step number of the first checkpoint."""
        return self.max_iter, 1

    def _publish(self, solver):
        if not np.isfinite(solver.objective).all():
            message = f"NystroemKLR: the objective is {np.max(solver.objective):g}; scale X, or increase lam."
            raise ValueError(message)
        coef, intercept = np.split(solver.coef(), [self.n_support_], axis=1)
        norms = np.linalg.norm(solver.gradient, axis=1)
        self.dual_coef_ = coef if len(coef) > 1 else coef[0]
        self.intercept_ = per_problem(intercept.sum(axis=1))
        self.objective_, self.gradient_norm_ = per_problem(solver.objective), per_problem(norms)
        self.n_iter_, self.n_passes_ = solver.n_iter, solver.n_passes

    def _centers(self, X, y, weights):
        """Return the centers, in the layout of X."""
        if not isinstance(self.centers, str):
            return self._given_centers(X)
        rows = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights)
        order, B = self._random.permutation(rows), min(self.n_centers, len(rows))
        if self.centers == "kmeans++":
            from sklearn.cluster import kmeans_plusplus  # a slow import

            sample = np.sort(order[: max(KMEANS_ROWS, B)])
            shares = None if weights is None else weights[sample]
            _, places = kmeans_plusplus(X[sample], B, sample_weight=shares, random_state=self._random)
            return X[np.sort(sample[places])]
        if self.centers == "uniform":
            return X[np.sort(order[:B])]
        support = self._support_of_oskl(X, y, weights, order, B)
        support = support[np.sort(self._random.permutation(support.shape[0])[:B])]
        hashes = np.split(hashed(stacked([support, X]), np.zeros(support.shape[0] + X.shape[0])), [support.shape[0]])
        others = order[~np.isin(hashes[1][order], hashes[0])]
        return stacked([support, X[np.sort(others[: B - support.shape[0]])]])

    def _refuse_precomputed(self):
        """Raise ValueError if the kernel is precomputed but `centers` or `map_rows` need the rows."""
        if self.kernel != PRECOMPUTED:
            return
        if not isinstance(self.centers, str) or self.centers != "uniform" or self.map_rows is not None:
            message = "NystroemKLR: kernel='precomputed' requires centers='uniform' and map_rows=None."
            raise ValueError(message)

    def _given_centers(self, X):
        if not sp.issparse(self.centers) and np.ndim(self.centers) != 2:
            message = (
                "The 'centers' parameter of NystroemKLR must be 'uniform', 'kmeans++', 'oskl' or an array of shape "
                f"(n_centers, n_features). Got {self.centers!r} instead."
            )
            raise InvalidParameterError(message)
        centers = canonical(check_array(self.centers, accept_sparse="csr", dtype=X.dtype, input_name="centers"))
        if centers.shape[1] != X.shape[1]:
            message = f"centers: expected {X.shape[1]} features as in X, got {centers.shape[1]}."
            raise ValueError(message)
        centers = weighted(self, centers)
        self._operands = self._operands.fitting(centers)
        return centers.copy()

    def _support_of_oskl(self, X, y, weights, order, B):
        """Run OSKL until it has B support vectors or has seen all rows; return its support vectors."""
        kernel = {name: getattr(self, name) for name in ("kernel", "degree", "coef0", "dtype")}
        model = OSKL(gamma=self._operands.kernel.gamma, random_state=self._random.randint(SEEDS), **kernel)
        for part in slices(len(order), 4 * B):
            rows = order[part]
            shares = None if weights is None else weights[rows] / weights.mean()
            model.partial_fit(X[rows], y[rows], classes=self.classes_, sample_weight=shares)
            if model.n_support_ >= B:
                break
        return model.support_vectors_
