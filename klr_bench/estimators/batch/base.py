"""The scikit-learn interface of the batch solvers: parameters, validation, epochs until the gap closes, prediction."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.batch.blocks import KernelBlocks
from klr_bench.estimators.core.binary import BinaryKernelClassifier
from klr_bench.estimators.core.classifier import checked_decision, checked_fit, row_weights, verbose_callback
from klr_bench.estimators.core.expansion import decide
from klr_bench.estimators.core.one_against_rest import spread
from klr_bench.estimators.core.operands import operands_of
from klr_bench.estimators.core.parameters import CLASS_WEIGHT, COUNT, JOBS, NOT_NEGATIVE, POSITIVE, VERBOSE
from klr_bench.protocols import FIRST


class ExpansionClassifier(BinaryKernelClassifier):
    r"""A kernel classifier given by coefficients of training rows.

    .. math::

        f(x) = \sum_i b_i k(x_i, x), \qquad P(\text{second class} \mid x) = \frac{1}{1 + e^{-f(x)}}

    With more than two classes there is one such f_k for each, which tells it from the rest; the probabilities are the
    shares of the ``1 / (1 + exp(-f_k(x)))``.

    Parameters
    ----------
    kernel : {"rbf", "poly", "linear"}, default="rbf"
        ``exp(-gamma ||x - z||^2)``, ``(gamma x'z + coef0)^degree`` or ``x'z``.  "rbf" suits features of a common scale,
        so standardise them or scale them to [0, 1]; "linear" is a test of whether a kernel is needed at all.
    gamma : float, {"scale", "median"} or None, default="scale"
        gamma > 0 of the rbf and poly kernels; None is 1 / n_features, "scale" 1 / (n_features X.var()) as in
        scikit-learn, "median" 1 / (2 m^2) with the median distance m of rows.  "scale" is what all 14 data sets of
        docs/methods/defaults.md have.  Zhang et al. take 1 / (2 s^2), s the 5th (2012) or the 20th (2013) percentile of
        the distances: a narrower kernel than "median".
    degree : float, default=3
        Degree > 0 of the poly kernel.  Zhang et al. (2012, table 2) take 2 for the texts of RCV1.
    coef0 : float, default=1.0
        Constant of the poly kernel, any number.  With gamma=1 the default gives the ``(x'z + 1)^2`` of that table.
    class_weight : dict, "balanced" or None, default=None
        Weights >= 0 of the classes, by which those of the rows are multiplied; "balanced" is n_samples / (n_classes
        n_k) for n_k rows of class k.  The published experiments have None; "balanced" shifts the probabilities towards
        the rarer class.
    verbose : int or bool, default=False
        Whether a fit prints where it stands, about once a second; above 1 whenever a callback would be called.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes in sorted order, in the dtype of y.
    n_features_in_ : int
        Number of features.
    """

    @checked_decision
    def decision_function(self, X):
        """Return f(x) for the rows of X (n_samples, n_features), as float64 (n_samples,) or (n_samples, n_classes)."""
        check_is_fitted(self, "dual_coef_")
        X = self._validate(X, dtype=self.support_vectors_.dtype)
        f = decide(self._operands, self.support_vectors_, self.dual_coef_, X)
        return spread(self, f)

    def predict_proba(self, X):
        """Return the probabilities of the classes, (n_samples, n_classes)."""
        return self._probabilities(X)

    def steps(self, n_samples):
        """Return the rows of one epoch, over which checkpoints are spread, and the first worth a checkpoint.

        A fit goes on beyond them, and so do the checkpoints.
        """
        return n_samples, FIRST

    def progress(self):
        """Return what a checkpoint keeps: the number of support vectors."""
        return {"n_support": self.n_support_}

    def summary(self):
        """Return what the fit has led to: support vectors, iterations and the objective, the sum of all problems'."""
        n_iter, objective = int(np.max(self.n_iter_)), float(np.sum(self.objective_))
        return {"n_support": self.n_support_, "n_iter": n_iter, "objective": objective}

    def _shares(self, sample_weight, X, y):
        """Return the shares of the rows in the loss, (n,), which sum to 1, and the sum of their weights."""
        weights = row_weights(sample_weight, self.class_weight, X, y, self.classes_)
        if weights is None:
            return np.full(X.shape[0], 1.0 / X.shape[0]), X.shape[0]
        if not 0 < weights.sum() < np.inf:
            message = (
                f"{type(self).__name__}: sample_weight: expected some weights above 0, got a sum of {weights.sum():g}."
            )
            raise ValueError(message)
        return weights / weights.sum(), weights.sum()

    def _begin(self, X, y):
        """Validate parameters and data, forget an earlier fit; return X, in its precision, and y."""
        self._forget()
        X, y = self._validate(X, y, dtype=self._dtypes(), reset=True)
        self._set_classes(y)
        self._operands = operands_of(self._kernel(X), X).fitting(X)
        return X, y


def usual_lam(n):
    """Return the weight of the squared norm for n rows where none is given: C = 10 in the terms of an SVM."""
    return 0.1 / n


class BatchKLR(ExpansionClassifier):
    r"""Kernel logistic regression by epochs of coordinate steps over all rows.

    .. math::

        \min_f \; \frac{\lambda}{2} {\lVert f \rVert}^2 + \frac{1}{n} \sum_{i=1}^n \log(1 + e^{-y_i f(x_i)})

    lambda is the parameter ``lam``.  With weights of rows, ``w_i / sum_j w_j`` stands for 1/n.  With more than two
    classes there is one such problem for each, against the rest; all are solved together, and each kernel value is
    computed once for all.

    A subclass returns from ``_solver(blocks, signs, lam, random, b, shares)``, where the signs are (m, n) of m problems
    and the shares (n,) are the ``w_i / sum_j w_j``, an object with the coefficients ``b`` (m, n), float64; ``epoch()``,
    which goes through all rows and yields the number of rows done after each block; and ``objectives()``, which ends an
    epoch and returns the primal and the dual objectives, (m,).

    Parameters
    ----------
    lam : float or None, default=None
        Weight of the squared norm, > 0; None is 1 / (10 n_samples), with the sum of the weights in place of n_samples
        if rows have weights.  That is C = 10 of an SVM; with C = 1 accuracies were up to two points lower
        (docs/methods/defaults.md).  The paper's grid is 1e-5, 1e-4, ..., 1; in the reference of klr_figure5
        cross-validation chose 1e-4 on a9a and on mushrooms, and 1e-5, the least, on ijcnn1.
    tol : float, default=1e-3
        The fit ends when (primal - dual) / primal <= tol, in all problems; tol >= 0.  The experiments have 1e-3.  The
        bounds of the online learners, which need the norm of f, are computed with 1e-4.
    max_iter : int, default=1000
        Largest number of epochs, >= 1.  In the reference of klr_figure5 fits end after 3 or 4.
    cache_size : float, default=200
        MB of kernel values kept at a time, > 0.  If the whole matrix does not fit, its values are computed again in
        each epoch, in blocks that fit.  200 MB hold all values of 5,000 rows in float64, of 7,000 in float32.  Below
        256 rows per block, that is for more than 97,000 rows in float64, a warning says that the fit is slower.
    warm_start : bool, default=False
        Start from the coefficients of the last fit, which must have had as many rows.  Along a grid of lam, True saves
        epochs.
    kernel, gamma, degree, coef0, class_weight, verbose
        See `ExpansionClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed of the order of the rows, which is drawn again for every epoch.  It does not change the solution, only the
        way to it; a number makes the fit repeatable to the last digit.
    dtype : {"float32", "float64"} or None, default=None
        Precision of the kernel values; None follows X: float32 stays float32, all else is float64.  f and the
        coefficients are always float64.  With float32 kernel values a gap below about 1e-6 is not meaningful.
    n_jobs : int or None, default=None
        Threads that compute kernel values; None is as many as BLAS would use, -1 one for each core.  The result does
        not depend on it.

    Attributes
    ----------
    classes_, n_features_in_
        See `ExpansionClassifier`.
    support_vectors_ : ndarray or CSR matrix of shape (n_samples, n_features)
        All training rows, in the precision of the kernel values.
    dual_coef_ : ndarray of shape (n_samples,), or (n_classes, n_samples) for more than two classes, float64
        b of f = sum_i b_i k(x_i, .).  At the solution b_i = y_i sigma(-y_i f(x_i)) / (n lam).
    n_support_ : int
        Number of training rows.
    n_iter_ : int
        Number of whole epochs.
    objective_, dual_objective_, duality_gap_ : float, or ndarray of shape (n_classes,) for more than two classes
        Primal and dual objective and (primal - dual) / primal after the last whole epoch.
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
        """Solve the problem on the given rows; return self.

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
        before = np.atleast_2d(self.dual_coef_) if self.warm_start and "dual_coef_" in vars(self) else None
        X, y = self._begin(X, y)
        signs = np.atleast_2d(self._signs(y))
        m, n = signs.shape
        shares, total = self._shares(sample_weight, X, y)
        if before is not None and before.shape != signs.shape:
            what, last, now = ("rows", before.shape[1], n) if len(before) == m else ("functions", len(before), m)
            message = f"warm_start=True: the last fit was on {last} {what}, this one is on {now}."
            raise ValueError(message)
        callback = verbose_callback(self, callback)
        blocks = KernelBlocks(self._operands, X, self.cache_size)
        lam = usual_lam(total) if self.lam is None else self.lam
        solver = self._solver(blocks, signs, lam, self._random, before, shares)
        self.support_vectors_, self.n_support_, self.n_iter_ = X.copy(), n, 0
        self._publish(np.full(m, np.log(2)), np.zeros(m))
        while self.n_iter_ < self.max_iter:
            for behind in solver.epoch():
                if behind == n:
                    self.n_iter_ += 1
                    self._publish(*solver.objectives())
                    behind = 0
                b = solver.b
                self.dual_coef_ = b if m > 1 else b[0]
                if callback is not None and callback(self, self.n_iter_ * n + behind):
                    return self
            if np.max(self.duality_gap_) <= self.tol:
                return self
        gap = np.max(self.duality_gap_)
        message = f"{type(self).__name__}: the gap is {gap:.2g} > tol after max_iter={self.max_iter}."
        warnings.warn(message, ConvergenceWarning, stacklevel=3)
        return self

    def progress(self):
        """Return what a checkpoint keeps: support vectors, objective and duality gap of the last whole epoch."""
        objective, gap = float(np.sum(self.objective_)), float(np.max(self.duality_gap_))
        return {**super().progress(), "objective": objective, "duality_gap": gap}

    def summary(self):
        """Return what the fit has led to: support vectors, epochs, objective and duality gap."""
        return {**super().summary(), "duality_gap": float(np.max(self.duality_gap_))}

    def _publish(self, primal, dual):
        if not np.isfinite(primal).all():
            message = f"{type(self).__name__}: the objective is {max(primal):g}; values are too large, scale X or lam."
            raise ValueError(message)
        gap = (primal - dual) / primal
        one = len(primal) == 1
        self.objective_, self.dual_objective_, self.duality_gap_ = (
            float(values[0]) if one else values for values in (primal, dual, gap)
        )
