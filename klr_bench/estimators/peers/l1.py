"""L1-regularized logistic regression from other libraries, with the objective of `L1KLR`.

here            sum_i log(1 + exp(-y_i w'z_i)) + lam ||w||_1
scikit-learn    C sum_i log(1 + exp(-y_i w'z_i)) + ||w||_1               C = 1/lam; liblinear and saga
celer           the same
skglm           (1/n) sum_i log(1 + exp(-y_i w'z_i)) + alpha ||w||_1     alpha = lam/n
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY

import numpy as np
from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.core.parameters import COUNT, POSITIVE, estimator, fixed, parameter
from klr_bench.estimators.l1.estimator import L1KLR
from klr_bench.estimators.l1.problem import Iterate

PEERS = ("liblinear", "saga", "skglm", "celer")


@estimator
class L1Peer(L1KLR):
    r"""L1-regularized logistic regression by another library, on the features of `L1KLR`.

    There is no intercept.

    .. math::

        \min_w \; \sum_{i=1}^n \log(1 + e^{-y_i w^T z_i}) + \lambda {\lVert w \rVert}_1

    It is the problem of `L1KLR` with fit_intercept=False, converted to the library's scale.  An intercept is left out
    because liblinear would penalize it.  skglm and celer are installed by ``pip install klr-bench[peers]``.

    Parameters
    ----------
    solver : {"liblinear", "saga", "skglm", "celer"}, default="liblinear"
        liblinear and saga of scikit-learn, or the library of that name.  On mnist10k (reference of l1_mnist10k)
        liblinear takes little more than half the time of saga.
    class_weight : dict, "balanced" or None, default=None
        Weights >= 0 of the classes, which multiply the weights of the rows; None for skglm and celer, which take no
        weights.
    tol : float, default=1e-4
        The library's own tolerance, > 0, which is not a duality gap.  A gap of about 1e-4 of the objective on MNIST
        needs 1e-5 of liblinear, 1e-4 of saga and of celer, and 3e-7 of skglm (configs/algorithm/l1_liblinear.yaml and
        its neighbors).
    max_iter : int, default=10000
        The library's own limit of iterations, >= 1; ``converged_`` is False if it was reached.

    Attributes
    ----------
    n_iter_ : int
        Number of iterations of the library, 0 if it does not report them.
    converged_ : bool
        Whether the library ended before max_iter; always True if it does not report its iterations.

    References
    ----------
    Qin, Huang, Chandramouli, He, Kumar, 2011, equation 2, without the intercept.  liblinear: Fan, Chang, Hsieh, Wang,
    Lin, JMLR 9, 2008; saga: Defazio, Bach, Lacoste-Julien, NIPS 2014; celer: Massias, Gramfort, Salmon, ICML 2018;
    skglm: Bertrand, Klopfenstein, Bannier, Gidel, Massias, NeurIPS 2022.

    Examples
    --------
    >>> from klr_bench.estimators.peers.l1 import L1Peer
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = L1Peer(solver="liblinear", lam=1.0, gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_support_ < len(X) / 4, model.intercept_
    (True, True, 0.0)
    """

    solver: str = parameter(StrOptions(set(PEERS)), default="liblinear")
    _: KW_ONLY
    fit_intercept: bool = fixed(False)
    tol: float = parameter(POSITIVE, default=1e-4)
    max_iter: int = parameter(COUNT, default=10_000)
    n_epochs: float = fixed(3)
    two_stage: bool = fixed(False)
    hessian: str = fixed("decreasing")
    growth: float = fixed(1.0)
    threshold: str = fixed("adaptive")
    reference: None = fixed(None)
    warm_start: bool = fixed(False)
    memory_limit: float = fixed(np.inf)
    verbose: bool = fixed(False)

    def fit(self, X, y, sample_weight=None):
        """Fit with the library to rows X and labels y; return self.

        The library calls no callback; a fit with a time limit therefore runs in a process of its own.
        """
        return super().fit(X, y, sample_weight)

    def steps(self, n_samples):
        """Return (1, 1), because a fit by another library counts as one step."""
        return 1, 1

    def _run(self, problem, x, random, callback, reference=None):
        """Fit with the library; return the solution as an `Iterate`, and True (the fit is complete)."""
        Z = library_layout(self.solver, problem.matrix.stored)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # these warnings concern renamed parameters and convergence
            model = library_model(self.solver, problem.lam, len(problem.y), self.tol, self.max_iter, random)
            options = {} if (problem.weights == 1).all() else {"sample_weight": problem.weights}
            if options and self.solver not in ("liblinear", "saga"):
                message = f"L1Peer: {self.solver} does not support sample weights; use liblinear or saga."
                raise ValueError(message)
            model.fit(Z, problem.y.astype(Z.dtype), **options)
        self.n_iter_ = int(np.max(getattr(model, "n_iter_", 0)))  # celer does not report it
        w = np.ravel(model.coef_).astype(np.float64)
        return Iterate(problem, w, problem.products(w)), True

    def solve(self, problem, random, start=None, callback=None):
        """Solve a prepared problem and set the fitted attributes; return the parameter vector (P,)."""
        x = super().solve(problem, random, start, callback)
        self.converged_ = self.n_iter_ < self.max_iter
        return x


def library_layout(solver, Z):
    """Convert the feature matrix Z to the memory layout and the precision that a library needs."""
    dtype = np.float64 if solver in ("liblinear", "celer") else Z.dtype  # without float32 support
    return np.asarray(Z, dtype=dtype, order="C" if solver in ("liblinear", "saga") else "F")


def library_model(solver, lam, n_samples, tol, max_iter, random=None):
    """Create a library's estimator whose regularization is equivalent to lam.

    Raises ImportError, with what to install, if the library is missing.
    """
    if solver in ("liblinear", "saga"):
        from sklearn.linear_model import LogisticRegression

        options = {"tol": tol, "max_iter": max_iter, "random_state": random}
        return LogisticRegression(penalty="l1", solver=solver, C=1 / lam, fit_intercept=False, **options)
    try:
        if solver == "skglm":
            from skglm import SparseLogisticRegression

            # max_iter limits the number of working sets, max_epochs the number of sweeps over each of them
            return SparseLogisticRegression(alpha=lam / n_samples, fit_intercept=False, tol=tol, max_iter=max_iter)
        from celer import LogisticRegression as CelerLogisticRegression
    except ImportError as error:
        message = f"solver={solver!r} needs the library {solver}; run `pip install klr-bench[peers]` (error: {error})."
        raise ImportError(message) from error
    return CelerLogisticRegression(C=1 / lam, fit_intercept=False, tol=tol, max_iter=max_iter)
