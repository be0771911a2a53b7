"""The scikit-learn interface of L1KLR: parameters, validation, features, the loop over iterates."""

from __future__ import annotations

import warnings
from itertools import islice

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.core.classifier import checked_fit, refuse_weightless, row_weights, verbose_callback
from klr_bench.estimators.core.features import LinearFeatures
from klr_bench.estimators.core.one_against_rest import one_against_rest, reporting
from klr_bench.estimators.core.operands import DENSE_AT_MOST
from klr_bench.estimators.core.parameters import (
    AT_LEAST_ONE,
    CLASS_WEIGHT,
    COMPONENTS,
    COUNT,
    NOT_NEGATIVE,
    PASSES,
    POSITIVE,
    SHARE,
    VERBOSE,
)
from klr_bench.estimators.core.rows import occurring
from klr_bench.estimators.l1.fitted import L1Classifier, checked_lambda_max
from klr_bench.estimators.l1.matrix import FeatureMatrix
from klr_bench.estimators.l1.problem import Iterate, Problem
from klr_bench.estimators.l1.sgd_c import CHUNK
from klr_bench.estimators.l1.solvers import (
    CHECKS_IN_A_PASS,
    REFERENCES,
    SOLVERS,
    at_mean_objective,
    at_objective,
    by_gap,
    iterates,
    length,
)

FEATURES = ("kernel", "fourier", "linear")
SECOND_STAGE = 0.1
"""Multiple of lambda that the second stage uses (line 296)."""


class L1KLR(L1Classifier):
    r"""Sparse kernel logistic regression with an L1 penalty, by five solvers.

    .. math::

        \min_{w, b} \; \sum_{i=1}^n \log(1 + e^{-y_i (w^T z_i + b)}) + \lambda {\lVert w \rVert}_1

    z_i are the features of row i.  The losses are added, not averaged; with weights each is multiplied by its own.  The
    intercept b, which the paper does not have, is not penalised.  scikit-learn's C is 1 / lambda.  With more than two
    classes there is one such problem for each, which tells it from the rest, on the same features: ``estimators_`` has
    their fits, and what is a number for two classes is an array (n_classes,).

    Parameters
    ----------
    solver : {"prox_newton", "cgd", "multiscale_fista", "fista", "sgd_c"}, default="prox_newton"
        "prox_newton" is klr-bench's own solver and the fastest to a small gap: on mnist10k (reference of l1_mnist10k)
        it reaches 1e-4 in 2 to 6 iterations.  The others are the paper's: algorithm 1 with equation 6 ("fista") or with
        equation 7 or 8 ("multiscale_fista"), algorithms 2 and 3 ("cgd") and algorithm 4 ("sgd_c").
    lam : float, default=1.0
        lambda > 0; with ``lam_relative`` a multiple of lambda_max, the smallest lambda for which w = 0.  In the paper
        0.5, 0.2, 0.1 and 0.05 lambda_max (tables 2 and 3), and 0.001 lambda_max on cod-rna (table 5).  In the reference
        of l1_mnist10k these four give 85, 89, 91 and 93 % accuracy with 2, 5, 9 and 16 % of the coefficients.
    lam_relative : bool, default=False
        Whether lam is such a multiple.  True makes a grid that suits any data set and number of rows.
    features : {"kernel", "fourier", "linear"}, default="kernel"
        Kernel values with all training rows, n_samples features; random Fourier features of the rbf kernel; X itself.
        The paper's large sets have "fourier" only (section 4.2.2), because the kernel matrix is too large there.
    n_components : int, default=500
        Number D of Fourier features, 1 to a million.  The paper's accuracies are found with 500 (reference of
        l1_mnist10k); those of one draw scatter by a point or two there, and the error of the kernel falls as 1 /
        sqrt(D).
    kernel : {"rbf", "poly", "linear"}, default="rbf"
        Kernel for features="kernel": ``exp(-gamma ||x - z||^2)``, ``(gamma x'z + coef0)^degree`` or ``x'z``.  "fourier"
        is always of the rbf kernel.
    gamma : float, {"scale", "median"} or None, default="scale"
        gamma > 0 of the rbf and poly kernels, the paper's 1 / sigma^2; None is 1 / n_features, "scale" 1 / (n_features
        X.var()), "median" 1 / (2 m^2) with the median distance m of rows.  The published tables are found with sigma =
        m on MNIST, which is twice the gamma of "median", and with sigma = 3 m on cod-rna.
    fit_intercept : bool, default=True
        Whether there is an intercept b.  False is the paper's problem; True is better where classes have different
        numbers of rows.
    tol : float, default=1e-4
        The fit ends when the duality gap is at most tol times the objective; tol >= 0.  Without a reference "sgd_c"
        ignores it.  1e-4 suits "prox_newton"; for "cgd" and the two FISTAs 1e-2 gives the paper's numbers of non-zero
        coefficients (configs/experiment/l1_mnist10k.yaml), and smaller gaps take many more iterations.
    max_iter : int, default=3000
        Largest number of iterations of all solvers but "sgd_c", >= 1.  The paper allows 3,000 of FISTA and 5,000 of CGD
        (section 4.2.2).
    n_epochs : float, default=3
        Passes of "sgd_c" over the rows, a number > 0 that need not be whole; with a reference the most.  In table 5 of
        the paper 3 on cod-rna and 2 on mnist8m; l1_mnist10k has at most 6, with a reference.
    two_stage : bool, default=False
        Fit again with 0.1 lam, on the features with non-zero coefficients (section 3.2).  In the reference of
        l1_two_stage this adds 1.1 to 1.5 points of accuracy on mnist10k, without more features.
    hessian : {"decreasing", "current"}, default="decreasing"
        H_k of "multiscale_fista": equation 7 or 8.  In the reference of l1_iterations they need the same number of
        iterations within 5 %.
    growth : float, default=1.0
        Factor >= 1 of the last step size with which "fista" and "multiscale_fista" begin the next search.  With 1, as
        in algorithm 1, steps never grow; with 1.25 "multiscale_fista" takes 0.36 to 0.82 times as many iterations
        (reference of l1_iterations).
    threshold : {"adaptive"} or float, default="adaptive"
        "cgd" moves the coordinates whose step is at least this share, in (0, 1], of the largest.  "adaptive" begins
        with 0.9 and changes it as Yun and Toh do, which leaves many small coefficients; with 0.9 throughout w ends as
        sparse as the optimum.  A threshold of 0.7 with tol=0.01 gives the paper's numbers of non-zero coefficients
        (configs/experiment/l1_mnist10k.yaml).
    reference : {"prox_newton", "cgd", "multiscale_fista", "fista"}, float or None, default=None
        Objective > 0 at which the fit ends, or the solver that finds it on the same rows: that of its first iterate
        with a gap of at most tol.  "sgd_c" ends where the mean of its last 20 objectives, one every n_samples / 10
        rows, is within 1 % of it; the others end at or below it.  None: all but "sgd_c" end by the gap.  It is for
        comparisons of times as in section 4.2.1, where SGD-C ends near the objective of CGD; otherwise leave it None.
    warm_start : bool, default=False
        Start from the coefficients of the last fit, if it had as many features; Fourier features are not drawn again.
        `l1_path` does this for a grid of lambdas.
    random_state : int, RandomState instance or None, default=None
        Seed of the Fourier features and of the order of the rows in "sgd_c"; without effect otherwise.
    dtype : {"float32", "float64"} or None, default=None
        Precision of the features; None follows X: float32 stays float32, all else is float64.  Sums over rows are
        float64.  float32 halves the memory of the features.
    memory_limit : float, default=3400.0
        MB > 0 that the features of the training rows may take; above it they are computed again in every pass.  1.5
        million rows of 500 float32 features fit, and the whole fit takes less than 4 GB.
    degree, coef0, class_weight, verbose
        See `DualCDKLR`; the paper has equal classes and no weights.

    Attributes
    ----------
    classes_, n_features_in_
        See `DualCDKLR`.
    coef_ : ndarray of shape (D,), or (n_classes, D) for more than two classes, float64
        w; with features="kernel" one element per training row.
    intercept_ : float
        b; 0 without an intercept.
    n_iter_ : int
        Number of iterations; for "sgd_c" of rows.
    objective_, duality_gap_ : float
        The objective, and the duality gap divided by it; both of the last stage.
    converged_ : bool
        Whether the gap is at most tol, or the fit has ended at the reference.
    lam_, lambda_max_ : float
        lambda of the last stage, and the smallest lambda for which w = 0.
    support_vectors_ : ndarray or CSR matrix of shape (n_support_, n_features)
        Training rows with non-zero coefficients, in any of the problems; features="kernel" only.
    n_support_ : int
        Number of these rows; features="kernel" only.

    References
    ----------
    Qin, Huang, Chandramouli, He, Kumar, "Large-scale sparse kernel logistic regression", 2011, equation 2.  The duality
    gap: Koh, Kim, Boyd, JMLR 8, 2007.

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
        "n_components": [COMPONENTS],
        "fit_intercept": ["boolean"],
        "tol": [NOT_NEGATIVE],
        "max_iter": [COUNT],
        "n_epochs": [PASSES],
        "two_stage": ["boolean"],
        "hessian": [StrOptions({"decreasing", "current"})],
        "growth": [AT_LEAST_ONE],
        "threshold": [StrOptions({"adaptive"}), SHARE],
        "reference": [StrOptions(set(REFERENCES)), POSITIVE, None],
        "warm_start": ["boolean"],
        "memory_limit": [POSITIVE],
        "class_weight": CLASS_WEIGHT,
        "verbose": VERBOSE,
    }

    def __init__(
        self,
        solver="prox_newton",
        lam=1.0,
        lam_relative=False,
        features="kernel",
        n_components=500,
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=1.0,
        fit_intercept=True,
        tol=1e-4,
        max_iter=3000,
        n_epochs=3,
        two_stage=False,
        hessian="decreasing",
        growth=1.0,
        threshold="adaptive",
        reference=None,
        warm_start=False,
        random_state=None,
        dtype=None,
        memory_limit=3400.0,
        class_weight=None,
        verbose=False,
    ):
        self.solver = solver
        self.lam = lam
        self.lam_relative = lam_relative
        self.features = features
        self.n_components = n_components
        super().__init__(kernel, gamma, degree, coef0, random_state, dtype)
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.n_epochs = n_epochs
        self.two_stage = two_stage
        self.hessian = hessian
        self.growth = growth
        self.threshold = threshold
        self.reference = reference
        self.warm_start = warm_start
        self.memory_limit = memory_limit
        self.class_weight = class_weight
        self.verbose = verbose

    @checked_fit
    @one_against_rest
    def fit(self, X, y, sample_weight=None, callback=None):
        """Minimise the objective over all rows; return self.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            With features="linear" column-major arrays are not copied.
        y : array of shape (n_samples,)
            Classes of any type; of two classes, decision values above 0 mean the second in sorted order.
        sample_weight : array of shape (n_samples,), default=None
            Weights >= 0 of the rows, some of each class above 0.
        callback : callable, default=None
            ``callback(estimator, t)`` is called after iteration t ("sgd_c": after t examples); returning True ends the
            fit. ``objective_`` and ``duality_gap_`` are computed when they are read.
        """
        before = self._last()
        problem, random = self.prepare(X, y, sample_weight)
        self.solve(problem, random, self._start(before), callback)
        return self

    def _fit_classes(self, X, ys, weights, callback):
        befores = [learner._last() for learner in self.estimators_]
        first = self.estimators_[0]
        problem, _ = first.prepare(X, ys[0], weights)
        for k, (learner, y, before) in enumerate(zip(self.estimators_, ys, befores, strict=True)):
            learner.adopt(first)
            own = problem.but(y=np.where(y, 1.0, -1.0))
            random = check_random_state(learner.random_state)
            learner.solve(own, random, learner._start(before), **reporting(self, k, len(y), callback))
            if self._ended:
                return

    def prepare(self, X, y, sample_weight=None):
        """Validate, and compute the features; return the problem, without its lambda, and a RandomState."""
        self._forget()
        X, y = self._validate(X, y, dtype=self._dtypes(), reset=True)
        self._set_classes(y)
        if self._has_many():
            message = f"expected two classes, got {len(self.classes_)}; L1KLR().fit learns one against the rest."
            raise ValueError(message)
        random = check_random_state(self.random_state)
        self._map, self._columns = self._feature_map(X, random), slice(None)
        features, rows = self._map, X
        if self.features == "linear" and sp.issparse(X) and X.shape[1] > DENSE_AT_MOST:
            self._columns, rows = occurring(X)  # the other coefficients are 0
            features = LinearFeatures.of(rows)
        by_rows = self.solver == "sgd_c" and self.reference is None
        matrix = FeatureMatrix(features, rows, by_rows=by_rows, memory_limit=self.memory_limit)
        matrix.warn_if_large()
        weights = row_weights(sample_weight, self.class_weight, X, y, self.classes_)
        if weights is not None:
            refuse_weightless(self, weights, y)
        return Problem(matrix, self._signs(y), 0.0, intercept=self.fit_intercept, weights=weights), random

    def solve(self, problem, random, start=None, callback=None):
        """Run the solver on a prepared problem, from a start (P,) or from w = 0; return the final point, (P,).

        With two stages it is the point of the first stage, a start for the next lambda.
        """
        problem, callback = self._with_lam(problem), verbose_callback(self, callback)
        self._places, self.n_iter_, self._stage = self._columns, 0, 1
        if self.lam_ >= self.lambda_max_:
            message = f"lam={self.lam_:g} is at least lambda_max={self.lambda_max_:g}: all coefficients are 0."
            warnings.warn(message, stacklevel=4)
            self._finish(Iterate(problem, problem.null_point()))
            return problem.null_point()
        x = problem.null_point() if start is None else np.array(start, dtype=np.float64)
        reference = self._reference_objective(problem)
        iterate, stopped = self._run(problem, x, random, callback, reference)
        x = iterate.x
        D = problem.matrix.shape[1]
        if self.two_stage and not stopped and np.any(x[:D]):
            J = np.flatnonzero(x[:D])
            self._places = np.arange(self._map.n_features)[self._columns][J]
            self.lam_, self._stage = SECOND_STAGE * self.lam_, 2
            part = problem.take(J).but(lam=self.lam_)
            iterate, stopped = self._run(part, np.append(x[J], x[D:]), random, callback)
        self._finish(iterate)
        self.converged_ = self.converged_ or (reference is not None and self._reached)
        if not self.converged_ and not stopped and self.solver != "sgd_c":
            message = f"The duality gap is {self.duality_gap_:.3g} of the objective after {self.n_iter_} iterations."
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        return x

    def _with_lam(self, problem):
        self.lambda_max_ = checked_lambda_max(problem)
        self.lam_ = self.lam * self.lambda_max_ if self.lam_relative else float(self.lam)
        return problem.but(lam=self.lam_)

    def _run(self, problem, x, random, callback, reference=None):
        """Go through the solver's iterates; return the last one, and whether the callback stopped there."""
        begun, limit = self.n_iter_, length(self, len(problem.y))[0]
        ends, every = by_gap(self.tol), CHUNK
        if reference is not None:
            ends = at_mean_objective(reference) if self.solver == "sgd_c" else at_objective(reference)
            every = max(len(problem.y) // CHECKS_IN_A_PASS, 1)
        for t, iterate in enumerate(iterates(self, problem, x, random, every=every), 1):
            steps = t if iterate.step is None else iterate.step
            self.n_iter_ = begun + steps
            if callback is not None:
                self._publish(iterate)
                if callback(self, self.n_iter_):
                    return iterate, True
            self._reached = ends(iterate)
            if self._reached or iterate.stuck or steps >= limit:
                return iterate, False
        raise AssertionError

    def _reference_objective(self, problem):
        """Return the objective at which the first stage ends, None where the gap ends it."""
        if not isinstance(self.reference, str):
            return self.reference
        other = clone(self).set_params(solver=self.reference)
        for iterate in islice(iterates(other, problem, problem.null_point(), None), self.max_iter):
            if iterate.reaches(self.tol) or iterate.stuck:
                return iterate.objective
        message = f"{self.reference} has found no reference objective in {self.max_iter} iterations."
        warnings.warn(message, ConvergenceWarning, stacklevel=5)
        return None
