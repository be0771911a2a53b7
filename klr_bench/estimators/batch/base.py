"""Base classes of the batch solvers: common parameters, validation and prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.checks import checked_decision, checked_fit, verbose_callback, warn
from klr_bench.estimators.core.expansion import decide, evaluate
from klr_bench.estimators.core.kernel_classifier import KernelClassifier
from klr_bench.estimators.core.kernels import ANY_KERNEL, kernel_of, rows_of
from klr_bench.estimators.core.multiclass import spread
from klr_bench.estimators.core.parameters import (
    CLASS_WEIGHT,
    COUNT,
    JOBS,
    NOT_NEGATIVE,
    POSITIVE,
    VERBOSE,
    estimator,
    parameter,
)
from klr_bench.estimators.core.rows import slices
from klr_bench.estimators.core.threads import parallel_map
from klr_bench.estimators.kernel_values.operands import nonnegative_diagonal, operands_of
from klr_bench.protocols import FIRST

LARGEST = 1024
"""Maximum number of rows per block; larger blocks save no time."""
TILE = 512
"""Number of rows per product of a block, so that its values stay in the cache."""


@estimator
class ExpansionClassifier(KernelClassifier):
    """Base class of classifiers that predict with a kernel expansion.

    The expansion is f(x) = sum_i b_i k(x_i, x). With more than two classes there is one function f_k per class.

    Parameters
    ----------
    kernel : {"rbf", "poly", "linear", "laplacian", "sigmoid", "precomputed"} or callable, default="rbf"
        ``exp(-gamma ||x - z||^2)``, ``(gamma x'z + coef0)^degree``, ``x'z``, ``exp(-gamma sum_j |x_j - z_j|)``,
        ``tanh(gamma x'z + coef0)``, or a function ``f(X, Z)`` that returns the kernel values (n, m) of two blocks of
        rows.  With "precomputed" X is the matrix (n_samples, n_samples) of the kernel values of the training rows, for
        predictions those of other rows with the training rows, and ``support_vectors_`` are indices in a column.
        "rbf" suits features of a common scale, so standardize them or scale them to [0, 1]; "linear" shows whether a
        kernel is needed at all.  "sigmoid" is not positive semi-definite: `DualCDKLR` finds a stationary point, and a
        solver that cannot work with the kernel values raises a ValueError.
    gamma : float, {"scale", "auto", "median"} or None, default="scale"
        gamma > 0 of the rbf, poly, laplacian and sigmoid kernels; "auto" or None is 1 / n_features, "scale"
        1 / (n_features X.var()), "median" 1 / (2 m^2) with the median distance m of rows.  Both count a row as often as
        its weight says, unlike scikit-learn's SVC.  Zhang et al. use 1 / (2 s^2), where s is the 5th (AAAI 2012) or the
        20th (ICML 2013) percentile of the distances: a narrower kernel than "median".
    degree : float, default=3
        Degree > 0 of the poly kernel.  Zhang et al. (AAAI 2012, table 2) use 2 for the texts of RCV1.
    coef0 : float, default=1.0
        Constant of the poly and sigmoid kernels, any number.  With kernel="poly", gamma=1 and degree=2 the default
        gives ``(x'z + 1)^2``.
    class_weight : dict, "balanced" or None, default=None
        Weights >= 0 of the classes, by which those of the rows are multiplied; "balanced" is n_samples / (n_classes
        n_k) for n_k rows of class k.  The published experiments have None; "balanced" shifts the probabilities towards
        the rarer class.
    verbose : int or bool, default=False
        True prints the progress of a fit about once per second; values above 1 print a line at each callback.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes in sorted order, in the dtype of y.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,), dtype object
        Names of the features, if X is a data frame whose column names are all strings.
    """

    _: KW_ONLY
    kernel: str | Callable[..., Any] = parameter(*ANY_KERNEL, default="rbf")

    @checked_decision
    def decision_function(self, X):
        """Evaluate the decision function at each row of X.

        The result is float64 of shape (n_samples,), or (n_samples, n_classes) for more than two classes.
        """
        check_is_fitted(self, "dual_coef_")
        X = self._validate(X, dtype=self.support_vectors_.dtype)
        f = decide(self._operands, self.support_vectors_, self.dual_coef_, X)
        return spread(self, f)

    def steps(self, n_samples):
        """Return the number of rows per epoch, and the number of rows at the first checkpoint."""
        return n_samples, FIRST

    def progress(self):
        """Return the number of support vectors, as a metric to store at a checkpoint."""
        return {"n_support": self.n_support_}

    def summary(self):
        """Return the numbers of support vectors and iterations, and the total objective."""
        n_iter, objective = int(np.max(self.n_iter_)), float(np.sum(self.objective_))
        return {"n_support": self.n_support_, "n_iter": n_iter, "objective": objective}

    def _shares(self, weights, n):
        """Return each row's share of the total weight, and the total weight."""
        if weights is None:
            return np.full(n, 1.0 / n), n
        total = weights.sum()
        return weights / total, total

    def _begin(self, X, y, sample_weight=None):
        """Validate parameters and data, and forget an earlier fit; return X, y and the weights."""
        X, y, weights = self._first_rows(X, y, sample_weight)
        rows = rows_of(self, X)
        self._operands = operands_of(kernel_of(self, X, weights), rows).fitting(rows)
        return rows, y, weights


def usual_lam(n):
    """Return the default regularization strength lam = 1 / (10 n) for n training rows.

    It corresponds to C = 10 of an SVM.
    """
    return 0.1 / n


def per_problem(values):
    """Return an array with one value per problem, or a float if there is only one."""
    return float(values[0]) if len(values) == 1 else values


class KernelBlocks:
    """Kernel matrix of the rows of X, either stored as a whole or computed block by block.

    It is stored if it fits into `limit` MB, in the matrix `memory` if that is given.
    """

    def __init__(self, operands, X, limit, memory=None):
        self.operands, self.n = operands, X.shape[0]
        self._rows = operands.rows(X)
        fitting = int(min(float(limit) * 1e6 / (self.n * X.dtype.itemsize), self.n))
        self.whole = None
        if fitting >= self.n:
            self.size = self.n
            left, right = operands.both(self._rows)
            self.whole = np.empty((self.n, self.n), dtype=self._rows.dtype) if memory is None else memory
            parallel_map(lambda tile: operands.fill(left[tile], right, self.whole[tile]), slices(self.n, TILE))
            return
        self.size = min(max(fitting, 1), LARGEST)
        if self.size < 256:  # matrix products of small blocks are slow
            message = (
                f"cache_size={limit:g} MB holds the kernel values of {fitting} of {self.n} rows, "
                f"so the fit uses blocks of {self.size} rows instead of {LARGEST} and is slower."
            )
            warn(message)

    def left(self, rows):
        return self.operands.left(self._rows[rows])

    def right(self, rows):
        return self.operands.right(self._rows[rows])

    def block(self, rows):
        """Return a block of the kernel matrix, and the index of each given row within this block."""
        if self.whole is not None:
            return self.whole, rows
        left, block = self.left(rows), np.empty((len(rows), self.n), dtype=self._rows.dtype)

        def fill(tile):
            block[:, tile] = self.operands.values(left, self.right(tile))

        parallel_map(fill, slices(self.n, TILE))
        return block, np.arange(len(rows))

    def times(self, b):
        """Multiply each row of the coefficient matrix b by the kernel matrix."""
        b = b.astype(self._rows.dtype)
        if self.whole is not None:
            return (b @ self.whole).astype(np.float64)
        return evaluate(self.operands, self.left(slice(None)), b, self._rows)


@estimator
class BatchKLR(ExpansionClassifier):
    """Base class of the kernel logistic regression solvers `DualCDKLR` and `PrimalCDKLR`.

    All classes are solved together, with each kernel value computed once.  A subclass has `_solver(blocks, signs, lam,
    random, b, shares)` for m problems with signs (m, n) and shares of the rows (n,): an object with coefficients `b`
    (m, n); `epoch()`, which yields the number of rows done after each block; and `objectives()`, which ends an epoch
    and returns primal and dual objectives, (m,).

    Parameters
    ----------
    lam : float or None, default=None
        Weight of the squared norm, > 0; None is 1 / (10 n_samples), with the sum of the weights in place of n_samples
        if rows have weights: C = 10 of an SVM (docs/methods/estimators.md).  The paper's grid is 1e-5, 1e-4, ..., 1, of
        which cross-validation chose 1e-4 on a9a and on mushrooms, and 1e-5 on ijcnn1 (reference of klr_figure5).
    tol : float, default=1e-3
        The fit ends when (primal - dual) / primal <= tol, in all problems; tol >= 0.  The norm of f needs 1e-4.
    max_iter : int, default=1000
        Largest number of epochs, >= 1.  In the reference of klr_figure5 fits end after 3 or 4.
    cache_size : float, default=200
        MB of kernel values in memory, > 0: 200 MB hold those of 5,000 rows in float64, of 7,000 in float32.  Those of
        more rows are computed again in each epoch, in blocks; blocks below 256 rows (more than 97,000 rows in float64)
        are slower, with a warning.
    warm_start : bool, default=False
        Start from the coefficients of the last fit, to as many rows; along a grid of lam it saves epochs.
    random_state : int, RandomState instance or None, default=None
        Seed of the order of the rows, drawn for every epoch; a number makes the fit repeatable to the last digit.
    dtype : {"float32", "float64"} or None, default=None
        Precision of the kernel values; None follows X: float32 stays float32, all else is float64.  With float32 a gap
        below about 1e-6 is not meaningful.
    n_jobs : int or None, default=None
        Threads that compute kernel values; None is as many as BLAS would use, -1 one for each core.

    Attributes
    ----------
    support_vectors_ : ndarray or CSR matrix of shape (n_samples, n_features)
        All training rows with positive weight, and with kernel="precomputed" those without, in the precision of the
        kernel values.
    dual_coef_ : ndarray of shape (n_samples,), or (n_classes, n_samples) for more than two classes, float64
        b of f = sum_i b_i k(x_i, .).  At the solution b_i = y_i sigma(-y_i f(x_i)) / (n lam).
    n_support_ : int
        Number of training rows.
    n_iter_ : int
        Number of whole epochs.
    objective_, dual_objective_, duality_gap_ : float, or ndarray of shape (n_classes,) for more than two classes
        Primal and dual objective and (primal - dual) / primal after the last whole epoch.
    """

    lam: float | None = parameter(POSITIVE, None, default=None)
    _: KW_ONLY
    tol: float = parameter(NOT_NEGATIVE, default=1e-3)
    max_iter: int = parameter(COUNT, default=1000)
    cache_size: float = parameter(POSITIVE, default=200)
    warm_start: bool = parameter("boolean", default=False)
    class_weight: dict | str | None = parameter(*CLASS_WEIGHT, default=None)
    n_jobs: int | None = parameter(*JOBS, default=None)
    verbose: int | bool = parameter(*VERBOSE, default=False)

    @checked_fit
    def fit(self, X, y, sample_weight=None, callback=None):
        """Fit the classifier to the rows of X and their classes y, and return self.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Classes of any type; of two classes, decision values above 0 mean the second in sorted order.
        sample_weight : array of shape (n_samples,), default=None
            Weights >= 0 of the rows, some above 0.
        callback : callable, default=None
            ``callback(estimator, t)`` is called after each block of rows, t rows after the start (n_samples per epoch).
            The coefficients are then the current ones, the objectives those of the last whole epoch.  Returning True
            ends the fit.

        Raises
        ------
        ValueError
            If parameters or data are refused, or kernel values are so large that an objective is not finite.
        """
        start = np.atleast_2d(self.dual_coef_) if self.warm_start and "dual_coef_" in vars(self) else None
        X, y, weights = self._begin(X, y, sample_weight)
        nonnegative_diagonal(self._operands, X)
        signs = np.atleast_2d(self._signs(y))
        m, n = signs.shape
        shares, total = self._shares(weights, n)
        if start is not None and start.shape != signs.shape:
            what, last, now = ("rows", start.shape[1], n) if len(start) == m else ("functions", len(start), m)
            message = f"warm_start=True: the number of {what} must be {last} as in the last fit, got {now}."
            raise ValueError(message)
        callback = verbose_callback(self, callback)
        blocks = KernelBlocks(self._operands, X, self.cache_size)
        lam = usual_lam(total) if self.lam is None else self.lam
        solver = self._solver(blocks, signs, lam, self._random, start, shares)
        self.support_vectors_, self.n_support_, self.n_iter_ = X.copy(), n, 0
        self._publish(np.full(m, np.log(2)), np.zeros(m))
        while self.n_iter_ < self.max_iter:
            for n_done in solver.epoch():
                if n_done == n:
                    self.n_iter_ += 1
                    self._publish(*solver.objectives())
                self.dual_coef_ = solver.b if m > 1 else solver.b[0]
                if callback is not None and callback(self, self.n_iter_ * n + n_done % n):
                    return self
            if np.max(self.duality_gap_) <= self.tol:
                return self
        gap = np.max(self.duality_gap_)
        message = f"{type(self).__name__}: the duality gap {gap:.2g} exceeds tol after max_iter={self.max_iter} epochs."
        warn(message, ConvergenceWarning)
        return self

    def progress(self):
        """Return the number of support vectors, the objective and the duality gap.

        The objective and the gap are those of the last complete epoch.
        """
        gap = float(np.max(self.duality_gap_))
        return {**super().progress(), "objective": float(np.sum(self.objective_)), "duality_gap": gap}

    def summary(self):
        """Return the numbers of support vectors and epochs, the objective and the duality gap."""
        return {**super().summary(), "duality_gap": float(np.max(self.duality_gap_))}

    def _publish(self, primal, dual):
        if not np.isfinite(primal).all():
            message = (
                f"{type(self).__name__}: the objective is {max(primal):g}; scale X to make the kernel values smaller."
            )
            raise ValueError(message)
        gap = (primal - dual) / primal
        self.objective_, self.dual_objective_, self.duality_gap_ = map(per_problem, (primal, dual, gap))
