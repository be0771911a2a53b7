"""The scikit-learn interface of PrototypeKLR: parameters, validation, start, the loop over a solver's iterates."""

from __future__ import annotations

import warnings
from numbers import Real

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import validate_data

from klr_bench.estimators.core.classifier import checked_fit, distinct_labels, verbose_callback
from klr_bench.estimators.core.kernels import KERNELS
from klr_bench.estimators.core.operands import DENSE_AT_MOST
from klr_bench.estimators.core.parameters import (
    CLASS_WEIGHT,
    COUNT,
    NOT_NEGATIVE,
    NUMBER,
    POSITIVE,
    SEED,
    VERBOSE,
    Number,
)
from klr_bench.estimators.prototype.joint import adam, coefficients, lbfgs
from klr_bench.estimators.prototype.kernels import PrototypeKernel
from klr_bench.estimators.prototype.model import Layout, Model, Rows
from klr_bench.estimators.prototype.passes import by_gradient, in_batches, on_all_rows
from klr_bench.estimators.prototype.prediction import PrototypeClassifier
from klr_bench.estimators.prototype.start import first_point, unit_of

USUAL = 10
"""Default number of prototypes."""
LBFGS_WORK = 5e6
"""Largest number of stored features of all rows x prototypes for which L-BFGS on all rows is the fastest."""
WATCHED = 20_000
"""Number of rows on which the objective is evaluated after a pass in mini-batches."""


class PrototypeKLR(PrototypeClassifier):
    r"""Kernel logistic regression on a few prototypes that need not be training rows, for two or more classes.

    .. math::

        & P(y \mid x) = \frac{e^{f_y(x)}}{\sum_c e^{f_c(x)}} \\
        & f_y(x) = b_{y0} + \sum_{j=1}^J b_{yj} k(x, u_j)

    The mean log loss + ``l1 sum |u_jk| + (l2/2) sum b_yj^2`` is minimised over b, the prototypes u and the width theta
    of the kernel, ``k = exp(-exp(theta) ||x - u||^2)``.  With two classes only f of the second is learned; the other is
    0.

    Parameters
    ----------
    n_prototypes : int or None, default=None
        Number J of prototypes, >= 1 and at most n_samples; None is 10, or the number of rows if that is less.  The
        posts have 3 and 5 in the plane and 50 for 7,000 features.  In the reference of prototypes_curve the log loss on
        ten digits is 0.53, 0.22, 0.15 and 0.10 with 5, 10, 20 and 50.
    init : {"random", "kmeans"}, default="random"
        The first prototypes: training rows drawn at random, or centres of k-means.  On the same digits "kmeans" helps
        where prototypes are few (0.40 in place of 0.53 with 5) and where they are not learned.
    learn_prototypes, learn_width, learn_coef : bool, default=True
        Whether u, theta and b are learned.  With learn_prototypes=False the prototypes stay at random rows (Blum),
        which costs log loss: 0.19 in place of 0.10 with 50 on the same digits.  With learn_coef=False all b are drawn
        once from [-1, 1].  learn_width has no effect with kernel="linear".
    l1 : float, default=0.0
        Weight >= 0 of the Laplacian prior on the prototypes: some of their entries become 0.  In the reference of
        prototypes_l1, with 50 prototypes of ten digits, 1e-4, 3e-4, 1e-3 and 3e-3 leave 62, 34, 14 and 9 % of the
        entries, and the log loss grows from 0.10 to 0.11, 0.14, 0.19 and 0.28.
    l2 : float, default=1e-4
        Weight >= 0 of a Gaussian prior on all b but b_y0.  With 0, as in the posts, the coefficients of ten prototypes
        grow without bound on small sets (docs/methods/defaults.md).
    solver : {"auto", "adam", "lbfgs", "alternating", "gradient"}, default="auto"
        "adam" and "lbfgs" move all parameters at once, on mini-batches and on all rows.  "alternating" makes a pass for
        b, one for u and one for theta in turn, with Adam's steps, and undoes passes that raise the objective.
        "gradient" makes the same passes with plain gradient steps, as in the posts, and undoes none: it may diverge.
        "auto" is "lbfgs" where stored features of all rows x prototypes are at most 5 million, else "adam".  If only b
        is learned, the problem is convex and is solved by L-BFGS on fixed kernel values, whatever the solver.
    learning_rate : float, default=0.1
        Step on mini-batches, > 0, in units of 0.1 for theta, of the spread of the features for u, and for b of 0.3
        divided by the spread of the kernel values at the start (1 in the lazy form).  Adam moves a coordinate by about
        this much, "gradient" by this much times the slope in the same unit.  Grids of configs/experiment for MNIST:
        0.03, 0.1, 0.3 for "adam", of which 0.3 was chosen, and 0.3, 1, 3 for "gradient".  In the lazy form they have
        0.01 and 10.
    batch_size : int or None, default=128
        Rows of a mini-batch, >= 1; None is all rows, with which "alternating" makes one step per part and pass.  The
        experiments have 32 for 1,000 rows and 512 for 250,000.
    lazy : bool, default=False
        For sparse data and kernel="rbf": distances over the non-zero features of x; only these features of u move.
        True is the posts' form for 7,000 binary features of which 20 are 1 in a row.
    validation_fraction : float, default=0.0
        Share of the rows in [0, 1) held out to judge convergence; 0 judges it on the training rows.  "lbfgs" ignores
        it.  The experiment prototypes_sparse has 0.05.
    tol : float, default=1e-4
        The fit ends after a pass that lowers the objective, or the held-out log loss, by less than this share of it;
        tol >= 0.  With 0 all passes are made; prototypes_sparse has 0.005, with held-out rows.
    max_iter : int, default=100
        Largest number of passes, >= 1; the rate of "adam" decreases to 0 over them.  The experiments have 8 in the
        plane, 10 for 250,000 rows, 40 on MNIST, 300 for "lbfgs".
    kernel : {"rbf", "poly", "linear"}, default="rbf"
        ``exp(-gamma ||x - u||^2)``, ``(gamma x'u + coef0)^degree`` or ``x'u``, with gamma = exp(theta).
    gamma : float or None, default=None
        exp(theta) at the start, > 0.  None is 1 / the median of ``||x - u||^2`` at the start for rbf, 1 / n_features
        for poly.  It is learned from there; with learn_width=False choose it: the grid for MNIST is 0.005 to 0.08, and
        0.02 was chosen (reference of prototypes_mnist).
    degree : int, default=3
        Degree >= 1 of the poly kernel.
    random_state : int, RandomState instance or None, default=None
        Seed of the first prototypes, the coefficients that are drawn, and the mini-batches.
    dtype : {"float32", "float64"} or None, default=None
        None follows X: float32 stays float32, all else is float64.  L-BFGS works in float64 in any case.  Choose
        float64 for CSR rows far from 0: no origin is subtracted from CSR rows in the fit, nor from any rows where l1 >
        0, and distances in float32 then lose digits.
    coef0, class_weight, verbose
        See `DualCDKLR`.

    Attributes
    ----------
    classes_, n_features_in_
        See `DualCDKLR`.
    prototypes_ : ndarray or CSR matrix of shape (n_prototypes, n_features)
        u, in the precision of the fit; CSR after a fit to CSR rows with more than 8,192 features.
    dual_coef_ : ndarray of shape (n_classes, n_prototypes); with two classes (n_prototypes,), for the second
        b without b_y0.
    intercept_ : ndarray of shape (n_classes,); with two classes a float
        b_y0.
    gamma_, objective_ : float
        exp(theta), and the objective on the training rows without those held out.
    converged_ : bool
        Whether the last pass gained less than ``tol``; with "adam" its decreasing rate may be the reason.
    n_iter_, n_support_ : int
        Numbers of passes and of prototypes.

    References
    ----------
    Two blog posts on sparse kernel logistic regression, 2010, called prototype_klr in klr-bench's configurations.
    Adam: Kingma, Ba, ICLR 2015.

    Examples
    --------
    >>> from klr_bench import PrototypeKLR
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = PrototypeKLR(n_prototypes=6, tol=1e-2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.prototypes_.shape
    (True, (6, 2))
    """

    _parameter_constraints = {  # noqa: RUF012
        "n_prototypes": [COUNT, None],
        "init": [StrOptions({"random", "kmeans"})],
        "learn_prototypes": ["boolean"],
        "learn_width": ["boolean"],
        "learn_coef": ["boolean"],
        "l1": [NOT_NEGATIVE],
        "l2": [NOT_NEGATIVE],
        "solver": [StrOptions({"auto", "adam", "lbfgs", "alternating", "gradient"})],
        "learning_rate": [POSITIVE],
        "batch_size": [COUNT, None],
        "lazy": ["boolean"],
        "validation_fraction": [Number(Real, 0, 1, closed="left")],
        "tol": [NOT_NEGATIVE],
        "max_iter": [COUNT],
        "kernel": [StrOptions(set(KERNELS))],
        "gamma": [POSITIVE, None],
        "degree": [COUNT],
        "coef0": [NUMBER],
        "random_state": SEED,
        "dtype": [StrOptions({"float32", "float64"}), None],
        "class_weight": CLASS_WEIGHT,
        "verbose": VERBOSE,
    }

    def __init__(
        self,
        n_prototypes=None,
        init="random",
        learn_prototypes=True,
        learn_width=True,
        l1=0.0,
        *,
        learn_coef=True,
        l2=1e-4,
        solver="auto",
        learning_rate=0.1,
        batch_size=128,
        lazy=False,
        validation_fraction=0.0,
        tol=1e-4,
        max_iter=100,
        kernel="rbf",
        gamma=None,
        degree=3,
        coef0=1.0,
        random_state=None,
        dtype=None,
        class_weight=None,
        verbose=False,
    ):
        self.n_prototypes = n_prototypes
        self.init = init
        self.learn_prototypes = learn_prototypes
        self.learn_width = learn_width
        self.l1 = l1
        self.learn_coef = learn_coef
        self.l2 = l2
        self.solver = solver
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.lazy = lazy
        self.validation_fraction = validation_fraction
        self.tol = tol
        self.max_iter = max_iter
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.random_state = random_state
        self.dtype = dtype
        self.class_weight = class_weight
        self.verbose = verbose

    @checked_fit
    def fit(self, X, y, sample_weight=None, callback=None):
        """Learn from all rows; return self.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Two or more classes of any type.
        sample_weight : array of shape (n_samples,), default=None
            Weights >= 0 of the rows, some of each class above 0; each term of the log loss is multiplied by its own.
        callback : callable, default=None
            ``callback(estimator, t)`` is called at the start, t = 0, and after each pass; returning True ends the fit.

        Raises
        ------
        ValueError
            Parameters out of range, a single class, more prototypes than rows, lazy=True with another kernel.
        """
        self._validate_params()
        dtype = [np.float64, np.float32] if self.dtype is None else self.dtype
        X, y = validate_data(self, X, y, dtype=dtype, accept_sparse="csr", order="C")
        self.classes_ = distinct_labels(y)
        codes = np.searchsorted(self.classes_, y)
        self._check(X)
        random = check_random_state(self.random_state)
        weights = self._weights(sample_weight, X, y)
        self._columns, X = None, self._tidy(X)
        if sp.issparse(X) and X.shape[1] > DENSE_AT_MOST:
            self._columns = np.unique(X.indices)
            X = self._compacted(X)
        rows, held_out = self._rows(X, codes.astype(np.intp), weights, random)
        x = self._start(rows, random)
        self.n_iter_, self.converged_, callback = 0, False, verbose_callback(self, callback)
        self._publish(x)
        if callback is None or not callback(self, 0):
            self._learn(x, rows, held_out, random, callback)
        self.objective_ = self._model.objective(self._x, rows)
        return self

    def _start(self, rows, random):
        n, d = rows.X.shape
        M = 1 if len(self.classes_) == 2 else len(self.classes_)
        J = min(USUAL, n) if self.n_prototypes is None else self.n_prototypes
        kernel = PrototypeKernel(self.kernel, int(self.degree), float(self.coef0), self.lazy)
        self._model = Model(Layout(M, J, d), kernel, float(self.l1), float(self.l2))
        self._origin = rows.origin
        gamma = 1 / self.n_features_in_ if self.gamma is None and self.kernel != "rbf" else self.gamma
        return first_point(self._model, rows, init=self.init, gamma=gamma, learn_coef=self.learn_coef, random=random)

    def _learn(self, x, rows, held_out, random, callback):
        parts = self._parts()
        n, solver = len(rows), self.solver
        if solver == "auto":
            solver = "lbfgs" if rows.X.size * self._model.layout.J <= LBFGS_WORK else "adam"
        if parts == ("b",):
            self._fit_coefficients(x, rows)
            if callback is not None:
                callback(self, self.n_iter_)
        elif solver == "lbfgs":
            self._descend(x, rows, parts, callback)
        else:
            watched = rows if n <= WATCHED else rows.taken(np.sort(random.permutation(n)[:WATCHED]))
            iterates = self._iterates(x, rows, watched, parts, solver, random)
            self._go_on(iterates, watched, held_out, callback, until_end=solver == "adam")

    def _fit_coefficients(self, x, rows):
        K = np.concatenate([self._model.kernel_values(x, X) for X, _, _ in rows.blocks()])
        b = self._model.layout.places["b"]
        options = {"l2": self._model.l2, "tol": 1e-2 * self.tol, "max_iter": 10 * self.max_iter}
        found, self.converged_ = coefficients(K, rows.y, rows.v, x[b], **options)
        x = x.astype(np.float64)
        x[b] = found
        self.n_iter_ = 1
        self._publish(x)

    def _descend(self, x, rows, parts, callback):
        def watch(x):
            self.n_iter_ += 1
            if callback is not None:
                self._publish(x)
                if callback(self, self.n_iter_):
                    raise StopIteration

        rows = Rows(rows.X.astype(np.float64), rows.y, rows.origin, rows.v)
        x, self.converged_ = lbfgs(
            self._model, x, rows, parts, tol=1e-2 * self.tol, max_iter=self.max_iter, callback=watch
        )
        self._publish(x)
        if not self.converged_:
            self._warn()

    def _iterates(self, x, rows, watched, parts, solver, random):
        n = len(rows)
        if solver == "alternating" and (self.batch_size is None or self.batch_size >= n):
            return on_all_rows(self._model, x, rows, parts, max_iter=self.max_iter)
        options = {
            "rate": self.learning_rate,
            "unit": unit_of(self._model, x, rows, self.n_features_in_),
            "batch_size": self.batch_size or n,
            "max_iter": self.max_iter,
            "random": random,
        }
        solve = {"adam": adam, "alternating": in_batches, "gradient": by_gradient}[solver]
        return solve(self._model, x, rows, watched, parts, **options)

    def _go_on(self, iterates, watched, held_out, callback, *, until_end):
        """Go through the iterates until one hardly improves on the last; through all if `until_end`."""
        model = self._model
        if held_out is not None:
            watched, model = held_out, model.without_penalty()
        before = model.objective(self._x, watched)
        best = before, self._x
        for x, undone in iterates:
            self.n_iter_ += 1
            self._publish(x)
            if callback is not None and callback(self, self.n_iter_):
                return
            found = model.objective(x, watched)
            best = min(best, (found, x), key=lambda pair: pair[0]) if held_out is not None else (found, x)
            self.converged_ = not undone and before - found < self.tol * before
            if self.converged_ and not until_end:
                break
            before = found
        self._publish(best[1])
        if self.converged_ or until_end:
            return
        self._warn()

    def _warn(self):
        message = f"PrototypeKLR: the objective still falls after max_iter={self.max_iter} passes."
        warnings.warn(message, ConvergenceWarning, stacklevel=6)
