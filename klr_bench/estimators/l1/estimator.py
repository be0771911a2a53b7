"""The scikit-learn interface of L1KLR: parameters, validation, features, the loop over iterates."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import validate_data

from klr_bench.estimators.core.classifier import learns
from klr_bench.estimators.core.features import FourierFeatures, KernelFeatures, LinearFeatures
from klr_bench.estimators.core.parameters import COUNT, NOT_NEGATIVE, POSITIVE
from klr_bench.estimators.l1.fitted import L1Classifier
from klr_bench.estimators.l1.matrix import FeatureMatrix
from klr_bench.estimators.l1.problem import Iterate, Problem
from klr_bench.estimators.l1.solvers import SOLVERS, iterates, length

FEATURES = ("kernel", "fourier", "linear")
SECOND_STAGE = 0.1
"""Multiple of lambda that the second stage uses (line 296)."""


class L1KLR(L1Classifier):
    """Sparse kernel logistic regression: min sum_i log(1 + exp(-y_i (w'z_i + b))) + lam ||w||_1.

    z_i are the features of example i.  The losses are added, not averaged.  The intercept b, which the paper does not
    have, is not penalised.  scikit-learn's C is 1/lam.

    Parameters
    ----------
    solver : {"prox_newton", "cgd", "multiscale_fista", "fista", "sgd_c"}, default="prox_newton"
        "prox_newton" is klr-bench's own solver and the fastest; the others are the paper's.
    lam : float, default=1.0
        lambda > 0; with `lam_relative` a multiple of lambda_max, the smallest lambda for which w = 0.
    lam_relative : bool, default=False
        Whether lam is such a multiple.
    features : {"kernel", "fourier", "linear"}, default="kernel"
        Kernel values with all training rows; random Fourier features of the rbf kernel; X itself.
    n_components : int, default=500
        Number D of Fourier features.
    kernel : {"rbf", "poly", "linear"}, default="rbf"
        Kernel for features="kernel": exp(-gamma ||x - z||^2), (gamma x'z + coef0)^degree or x'z.
    gamma : float or None, default=None
        gamma > 0 of the rbf and poly kernels; None is 1 / n_features.  The paper's sigma is gamma^(-1/2).
    degree : float, default=3
        Degree > 0 of the poly kernel.
    coef0 : float, default=1.0
        Constant of the poly kernel.
    fit_intercept : bool, default=True
        Whether there is an intercept b.
    tol : float, default=1e-4
        The fit ends when the duality gap is at most tol times the objective; "sgd_c" ignores it.
    max_iter : int, default=3000
        Largest number of iterations of all solvers but "sgd_c".
    n_epochs : int, default=3
        Passes of "sgd_c" over the rows.
    two_stage : bool, default=False
        Fit again with 0.1 lam, on the features with non-zero coefficients (section 3.2, lines 284-296).
    hessian : {"decreasing", "current"}, default="decreasing"
        H_k of "multiscale_fista": equation 7 or 8.
    adaptive : bool, default=True
        Whether "cgd" adapts its threshold for coordinates, as Yun and Toh do.  Otherwise the threshold stays 0.9, and w
        is as sparse as the optimum.
    warm_start : bool, default=False
        Start from the coefficients of the last fit, if it had as many features; Fourier features are not drawn again.
    random_state : int, RandomState instance or None, default=None
        Seed of the Fourier features and of the order of examples in "sgd_c".
    dtype : {"float32", "float64"} or None, default=None
        Precision of the features; None follows X: float32 stays float32, all else is float64.  Sums over examples are
        float64.
    memory_limit : float, default=3400.0
        MB > 0 that the features of the training rows may take; above it they are computed again in every pass.  1.5
        million rows of 500 float32 features fit, and the whole fit takes less than 4 GB.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes in sorted order.
    coef_ : ndarray of shape (D,), float64
        w; with features="kernel" one element per training row.
    intercept_ : float
        b; 0 without an intercept.
    n_iter_ : int
        Number of iterations; for "sgd_c" of examples.
    objective_, duality_gap_ : float
        The objective, and the duality gap divided by it; both of the last stage.
    converged_ : bool
        Whether the gap is at most tol.
    lam_, lambda_max_ : float
        lambda of the last stage, and the smallest lambda for which w = 0.
    support_vectors_ : ndarray or CSR matrix of shape (n_support_, n_features)
        Training rows with non-zero coefficients; features="kernel" only.
    n_support_ : int
        Number of these rows; features="kernel" only.
    n_features_in_ : int
        Number of features of X.

    References
    ----------
    Qin, Huang, Chandramouli, He, Kumar, 2011, equation 2; lines are cited as in its text.

    Examples
    --------
    >>> from klr_bench import L1KLR
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = L1KLR(lam=0.1, lam_relative=True, gamma=2.0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.converged_
    (True, True)
    >>> model.n_support_ < len(X) / 10
    True
    """

    _parameter_constraints = L1Classifier._parameter_constraints | {
        "solver": [StrOptions(set(SOLVERS))],
        "lam": [POSITIVE],
        "lam_relative": ["boolean"],
        "features": [StrOptions(set(FEATURES))],
        "n_components": [COUNT],
        "fit_intercept": ["boolean"],
        "tol": [NOT_NEGATIVE],
        "max_iter": [COUNT],
        "n_epochs": [COUNT],
        "two_stage": ["boolean"],
        "hessian": [StrOptions({"decreasing", "current"})],
        "adaptive": ["boolean"],
        "warm_start": ["boolean"],
        "memory_limit": [POSITIVE],
    }

    def __init__(
        self,
        solver="prox_newton",
        lam=1.0,
        lam_relative=False,
        features="kernel",
        n_components=500,
        kernel="rbf",
        gamma=None,
        degree=3,
        coef0=1.0,
        fit_intercept=True,
        tol=1e-4,
        max_iter=3000,
        n_epochs=3,
        two_stage=False,
        hessian="decreasing",
        adaptive=True,
        warm_start=False,
        random_state=None,
        dtype=None,
        memory_limit=3400.0,
    ):
        self.solver = solver
        self.lam = lam
        self.lam_relative = lam_relative
        self.features = features
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.n_epochs = n_epochs
        self.two_stage = two_stage
        self.hessian = hessian
        self.adaptive = adaptive
        self.warm_start = warm_start
        self.random_state = random_state
        self.dtype = dtype
        self.memory_limit = memory_limit

    @learns
    def fit(self, X, y, callback=None):
        """Minimise the objective over all rows.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            With features="linear" column-major arrays are not copied.
        y : array of shape (n_samples,)
            Two classes of any type; decision values above 0 mean the second in sorted order.
        callback : callable, default=None
            `callback(estimator, t)` is called after iteration t ("sgd_c": after t examples); returning True ends the
            fit. objective_ and duality_gap_ are computed when they are read.

        Returns
        -------
        self
        """
        before = (self.coef_, self.intercept_) if self.warm_start and "coef_" in vars(self) else None
        problem, random = self.prepare(X, y)
        start = None
        if before is not None and len(before[0]) == problem.matrix.shape[1]:
            start = np.append(*before) if self.fit_intercept else before[0]
        self.solve(problem, random, start, callback)
        return self

    def prepare(self, X, y):
        """Validate, and compute the features; return the problem, without its lambda, and a RandomState."""
        self._validate_params()
        for name in ("support_vectors_", "n_support_"):  # left from a fit on other features
            vars(self).pop(name, None)
        order = None if self.features == "linear" else "C"
        X, y = validate_data(self, X, y, dtype=self._dtypes(), accept_sparse="csr", order=order)
        self._set_classes(y)
        random = check_random_state(self.random_state)
        self._map = self._feature_map(X, random)
        matrix = FeatureMatrix(self._map, X, by_rows=self.solver == "sgd_c", memory_limit=self.memory_limit)
        matrix.warn_if_large()
        return Problem(matrix, self._signs(y), 0.0, intercept=self.fit_intercept), random

    def adopt(self, other):
        """Take the classes and the features of another estimator that has been prepared on the same rows."""
        self.classes_, self.n_features_in_, self._map = other.classes_, other.n_features_in_, other._map
        if "feature_names_in_" in vars(other):
            self.feature_names_in_ = other.feature_names_in_

    def solve(self, problem, random, start=None, callback=None):
        """Run the solver on a prepared problem, from a start (P,) or from w = 0; return the final point, (P,).

        With two stages it is the point of the first stage, a start for the next lambda.
        """
        self.lambda_max_ = checked_lambda_max(problem)
        self.lam_ = self.lam * self.lambda_max_ if self.lam_relative else float(self.lam)
        problem = Problem(problem.matrix, problem.y, self.lam_, intercept=problem.intercept)
        self._places, self.n_iter_ = slice(None), 0
        if self.lam_ >= self.lambda_max_:
            message = f"lam={self.lam_:g} is at least lambda_max={self.lambda_max_:g}: all coefficients are 0."
            warnings.warn(message, stacklevel=4)
            self._finish(Iterate(problem, problem.null_point()))
            return problem.null_point()
        x = problem.null_point() if start is None else np.array(start, dtype=np.float64)
        iterate, stopped = self._run(problem, x, random, callback)
        x = iterate.x
        D = problem.matrix.shape[1]
        if self.two_stage and not stopped and np.any(x[:D]):
            J = np.flatnonzero(x[:D])
            self._places, self.lam_ = J, SECOND_STAGE * self.lam_
            part = problem.take(J)
            part = Problem(part.matrix, part.y, self.lam_, intercept=part.intercept)
            iterate, stopped = self._run(part, np.append(x[J], x[D:]), random, callback)
        self._finish(iterate)
        if not self.converged_ and not stopped and self.solver != "sgd_c":
            message = f"The duality gap is {self.duality_gap_:.3g} of the objective after {self.n_iter_} iterations."
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        return x

    def _run(self, problem, x, random, callback):
        """Go through the solver's iterates; return the last one, and whether the callback stopped there."""
        begun, limit = self.n_iter_, length(self, len(problem.y))[0]
        for t, iterate in enumerate(iterates(self, problem, x, random), 1):
            steps = t if iterate.step is None else iterate.step
            self.n_iter_ = begun + steps
            if callback is not None:
                self._publish(iterate)
                if callback(self, self.n_iter_):
                    return iterate, True
            if iterate.reaches(self.tol) or iterate.stuck or steps >= limit:
                return iterate, False
        raise AssertionError

    def steps(self, n_samples):
        """Return the largest t that a callback of `fit` may see, and the first at which a trace may begin."""
        last, first = length(self, n_samples)
        return last * (1 + self.two_stage), first

    def stand_in(self):
        """Return an estimator with the same solver, whose fit compiles and loads it."""
        return type(self)(solver=self.solver)

    def _feature_map(self, X, random):
        if self.features == "linear":
            return LinearFeatures.of(X)
        if self.features == "kernel":
            return KernelFeatures.of(X, self._kernel())
        drawn = getattr(self, "_map", None)
        if (
            self.warm_start
            and isinstance(drawn, FourierFeatures)
            and drawn.omega.shape == (X.shape[1], self.n_components)
        ):
            return drawn
        return FourierFeatures.of(X, self.n_components, self._kernel().gamma, random)


def checked_lambda_max(problem):
    """Return the smallest lambda for which w = 0; refuse features that are not finite."""
    largest = problem.lambda_max()
    if not np.isfinite(largest):
        message = (
            "L1KLR: the features z_i of some rows are not finite; scale X, or choose another kernel "
            "(a degree that is not whole has no value below 0)."
        )
        raise ValueError(message)
    return largest
