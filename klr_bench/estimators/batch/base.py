"""Base classes of the batch solvers, with their parameters, validation and prediction."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.binary import BinaryKernelClassifier
from klr_bench.estimators.core.classifier import checked_decision, checked_fit, row_weights, verbose_callback
from klr_bench.estimators.core.expansion import decide, evaluate
from klr_bench.estimators.core.multiclass import spread
from klr_bench.estimators.core.operands import operands_of
from klr_bench.estimators.core.parameters import CLASS_WEIGHT, COUNT, JOBS, NOT_NEGATIVE, POSITIVE, VERBOSE
from klr_bench.estimators.core.threads import parallel_map
from klr_bench.protocols import FIRST

LARGEST = 1024
"""Maximum number of rows per block; larger blocks save no time."""
TILE = 512
"""Number of rows per product of a block, so that its values stay in the cache."""


class ExpansionClassifier(BinaryKernelClassifier):
    """Base class of classifiers that predict with a kernel expansion.

    The expansion is f(x) = sum_i b_i k(x_i, x). With more than two classes there is one function f_k per class.
    """

    @checked_decision
    def decision_function(self, X):
        """Evaluate the decision function at each row of X.

        The result is float64 of shape (n_samples,), or (n_samples, n_classes) for more than two classes.
        """
        check_is_fitted(self, "dual_coef_")
        X = self._validate(X, dtype=self.support_vectors_.dtype)
        f = decide(self._operands, self.support_vectors_, self.dual_coef_, X)
        return spread(self, f)

    def predict_proba(self, X):
        """Return the probability of each class for each row of X, of shape (n_samples, n_classes)."""
        return self._probabilities(X)

    def steps(self, n_samples):
        """Return the number of rows per epoch, and the number of rows at the first checkpoint."""
        return n_samples, FIRST

    def progress(self):
        """Return the number of support vectors, as a metric to store at a checkpoint."""
        return {"n_support": self.n_support_}

    def summary(self):
        """Return the numbers of support vectors and iterations, and the sum of the objectives."""
        n_iter, objective = int(np.max(self.n_iter_)), float(np.sum(self.objective_))
        return {"n_support": self.n_support_, "n_iter": n_iter, "objective": objective}

    def _shares(self, sample_weight, X, y):
        """Return each row's share of the total weight, and the total weight."""
        weights = row_weights(sample_weight, self.class_weight, X, y, self.classes_)
        if weights is None:
            return np.full(X.shape[0], 1.0 / X.shape[0]), X.shape[0]
        total = weights.sum()
        if not 0 < total < np.inf:
            message = f"{type(self).__name__}: the sum of sample_weight must be positive and finite, got {total:g}."
            raise ValueError(message)
        return weights / total, total

    def _begin(self, X, y):
        """Validate the parameters and the data, remove old fitted attributes, and return X and y."""
        self._forget()
        X, y = self._validate(X, y, dtype=self._dtypes(), reset=True)
        self._set_classes(y)
        self._operands = operands_of(self._kernel(X), X).fitting(X)
        return X, y


def usual_lam(n):
    """Return the default regularization strength lam = 1 / (10 n) for n training rows.

    It corresponds to C = 10 of an SVM.
    """
    return 0.1 / n


class KernelBlocks:
    """Kernel matrix of the rows of X, either stored as a whole or computed block by block.

    It is stored if it fits into `limit` MB.
    """

    def __init__(self, operands, X, limit):
        self.operands, self.n = operands, X.shape[0]
        self._rows = operands.rows(X)
        fitting = int(float(limit) * 1e6 / (self.n * X.dtype.itemsize))
        self.whole = None
        if fitting >= self.n:
            self.size = self.n
            self.whole, _ = self.block(np.arange(self.n))
            return
        self.size = min(max(fitting, 1), LARGEST)
        if self.size < 256:  # matrix products of small blocks are slow
            message = (
                f"cache_size={limit:g} MB holds the kernel values of {fitting} of {self.n} rows, "
                f"so the fit uses blocks of {self.size} instead of {LARGEST} rows and is slower."
            )
            warnings.warn(message, stacklevel=5)

    def left(self, rows):
        return self.operands.left(self._rows[rows])

    def right(self, rows):
        return self.operands.right(self._rows[rows])

    def block(self, rows):
        """Return a block of the kernel matrix, and the index in this block of each given row."""
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


def slices(n, size):
    """Return consecutive slices of at most `size` rows that together cover n rows."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


class BatchKLR(ExpansionClassifier):
    """Base class of the kernel logistic regression solvers `DualCDKLR` and `PrimalCDKLR`.

    All classes are solved together, with each kernel value computed once.  A subclass has `_solver(blocks, signs, lam,
    random, b, shares)` for m problems with signs (m, n) and shares of the rows (n,): an object with coefficients `b`
    (m, n); `epoch()`, which yields the number of rows done after each block; and `objectives()`, which ends an epoch
    and returns primal and dual objectives, (m,).
    """

    _parameter_constraints = BinaryKernelClassifier._parameter_constraints | {
        "lam": [POSITIVE, None],
        "tol": [NOT_NEGATIVE],
        "max_iter": [COUNT],
        "cache_size": [POSITIVE],
        "warm_start": ["boolean"],
        "class_weight": CLASS_WEIGHT,
        "n_jobs": JOBS,
        "verbose": VERBOSE,
    }

    def __init__(
        self,
        lam=None,
        *,
        tol=1e-3,
        max_iter=1000,
        cache_size=200,
        warm_start=False,
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=1.0,
        random_state=None,
        dtype=None,
        class_weight=None,
        n_jobs=None,
        verbose=False,
    ):
        self.lam = lam
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.warm_start = warm_start
        super().__init__(kernel, gamma, degree, coef0, random_state, dtype)
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose

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
        X, y = self._begin(X, y)
        signs = np.atleast_2d(self._signs(y))
        m, n = signs.shape
        shares, total = self._shares(sample_weight, X, y)
        if start is not None and start.shape != signs.shape:
            what, last, now = ("rows", start.shape[1], n) if len(start) == m else ("functions", len(start), m)
            message = f"warm_start=True: expected {last} {what} as in the last fit, got {now}."
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
        warnings.warn(message, ConvergenceWarning, stacklevel=3)
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
                f"{type(self).__name__}: the objective is {max(primal):g}; the kernel values are too large, so scale X."
            )
            raise ValueError(message)
        gap = (primal - dual) / primal
        self.objective_, self.dual_objective_, self.duality_gap_ = (
            float(values[0]) if len(primal) == 1 else values for values in (primal, dual, gap)
        )
