"""Public estimator `PrototypeKLR`: kernel logistic regression with learned prototypes."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.core.checks import checked_fit, verbose_callback
from klr_bench.estimators.core.feature_weights import FEATURE_WEIGHTS
from klr_bench.estimators.core.parameters import (
    CLASS_WEIGHT,
    COUNT,
    NOT_NEGATIVE,
    NUMBER,
    POSITIVE,
    SEED,
    VERBOSE,
    Interval,
    estimator,
    parameter,
)
from klr_bench.estimators.prototype.base import PrototypeClassifier
from klr_bench.estimators.prototype.losses import LOSSES


@estimator
class PrototypeKLR(PrototypeClassifier):
    r"""Kernel logistic regression with a few learned prototypes, for two or more classes.

    Use it for a model of a few points, which predicts fast and can be looked at, with probabilities and any number of
    classes.  A fit takes time in proportion to rows and prototypes.  Scale the features first.

    Parameters
    ----------
    n_prototypes : int or None, default=None
        Number J of prototypes, >= 1 and at most n_samples; None is 10, or two per class if that is more, or the number
        of rows if that is less.  The posts have 3 and 5 in the plane and 50 for 7,000 features.  The log loss on ten
        digits is 0.46, 0.21, 0.15 and 0.10 with 5, 10, 20 and 50 (reference of prototypes_curve).
    init : {"random", "kmeans", "archetypes"}, default="random"
        The first prototypes: training rows drawn at random, centers of k-means, or archetypes, which are extreme
        mixtures of rows (first post, question 6), of at most 2,000 rows, made dense.  On the same digits "kmeans" helps
        where prototypes are few (0.40 in place of 0.46 with 5) and where they are not learned.
    learn_prototypes : bool, default=True
        Whether u is learned.  False keeps the first prototypes (Blum), which costs log loss: 0.19 in place of 0.10 with
        50 random rows of the same digits.
    learn_width : bool, default=True
        Whether theta is learned; it has no effect with kernel="linear".
    learn_coef : bool, default=True
        Whether b is learned; False draws all b once from [-1, 1].
    l1 : float, default=0.0
        Weight >= 0 of the Laplacian prior on the prototypes: some of their entries become 0.  With 50 prototypes of
        ten digits 1e-4, 3e-4, 1e-3 and 3e-3 leave 62, 34, 14 and 9 % of the entries, and the log loss grows from 0.10
        to 0.11, 0.14, 0.19 and 0.28.
    loss : {"logit", "squared_hinge"}, default="logit"
        Loss of a row.  "squared_hinge" is ``sum_c max(0, 1 - s_c f_c(x))^2`` with s_c = 1 for the class of the row and
        -1 for the others, and one term with two classes: a large margin in the space of the J kernel values (first
        post, question 5).  It gives no probabilities.
    l2 : float or None, default=None
        Weight >= 0 of a Gaussian prior on all b but b_y0; None is 1 / (20 n_samples).  With 0, as in the posts, b may
        grow without bound.  On noisy tables of some hundred rows 1 / n_samples may be better.
    solver : {"auto", "adam", "lbfgs", "alternating", "gradient"}, default="auto"
        "adam" and "lbfgs" move all parameters at once, on mini-batches and on all rows.  "alternating" makes a pass for
        b, one for u and one for theta in turn, with Adam's steps, and undoes passes that raise the objective.
        "gradient" makes the same passes with plain gradient steps, as in the posts, and may diverge.  "auto" is "lbfgs"
        if stored features of all rows x prototypes are at most 5 million, else "adam".  If only b is learned, the
        problem is convex and solved by L-BFGS in any case.
    learning_rate : float, default=0.1
        Step on mini-batches, > 0, in units of 0.1 for theta, of the spread of the features for u, and for b of 0.3
        divided by the spread of the kernel values at the start (1 in the lazy form).  Adam moves a coordinate by about
        this much, "gradient" by this much times the slope.  Good values on MNIST are 0.3 for "adam" and 0.3 to 3 for
        "gradient"; in the lazy form 0.01 and 10.
    batch_size : int or None, default=128
        Rows of a mini-batch, >= 1, such as 32 for 1,000 rows and 512 for 250,000; None is all rows.
    lazy : bool, default=False
        For sparse data and kernel="rbf": distances over the non-zero features of x; only these features of u move.
        True is the posts' form for 7,000 binary features of which 20 are 1 in a row.
    validation_fraction : float, default=0.0
        Share of the rows in [0, 1) held out to judge convergence, such as 0.05; 0 judges it on the training rows.
        L-BFGS ignores it and learns from all rows.
    tol : float, default=1e-4
        The fit ends after a pass that lowers the objective, or the held-out loss, by less than this share of it;
        tol >= 0.  L-BFGS ends at 0.01 tol, of the objective or of 1 if that is larger.  "adam" makes all passes, as all
        solvers do with 0; 0.005 suits held-out rows.
    max_iter : int, default=100
        Largest number of passes, >= 1; the rate of "adam" decreases to 0 over them.  The experiments have 8 in the
        plane, 10 for 250,000 rows, 40 on MNIST, 300 for "lbfgs".
    kernel : {"rbf", "poly", "linear"}, default="rbf"
        ``exp(-gamma ||x - u||^2)``, ``(gamma x'u + coef0)^degree`` or ``x'u``, with gamma = exp(theta).
    gamma : float or None, default=None
        exp(theta) at the start, > 0.  None is 1 / the median of ``||x - u||^2`` at the start for rbf, 1 / n_features
        for poly.  It is learned from there; with learn_width=False choose it, such as 0.02 on MNIST.
    degree : int, default=3
        Degree >= 1 of the poly kernel.
    random_state : int, RandomState instance or None, default=None
        Seed of the first prototypes, the coefficients that are drawn, and the mini-batches.
    dtype : {"float32", "float64"} or None, default=None
        None follows X: float32 stays float32, all else is float64.  L-BFGS works in float64 in any case.  Choose
        float64 for CSR rows, or with l1 > 0, if rows are far from 0: distances in float32 then lose digits.
    coef0 : float, default=1.0
        Constant of the poly kernel, any number; at 0 or above the kernel is positive definite.
    class_weight : dict, "balanced" or None, default=None
        Weights >= 0 of the classes, which multiply the weights of the rows; "balanced" is n_samples / (n_classes n_k)
        for class k with n_k rows.
    verbose : int or bool, default=False
        True prints the progress of a fit about once per second; values above 1 print a line at each callback.
    feature_weights : array of shape (n_features,), "auto" or None, default=None
        Weights >= 0 by which the columns of X are multiplied in the fit and in predictions; None leaves X as it is.
        ``prototypes_`` are weighted, and gamma is for weighted features.  "auto" learns them as `KLR` does, from dense
        rows, in more time than the fit itself takes.  They include the division by the standard deviations.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes in sorted order, in the dtype of y.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,), dtype object
        Names of the features, if X is a data frame whose column names are all strings.
    prototypes_ : ndarray or CSR matrix of shape (n_prototypes, n_features)
        u, in the precision of the fit; CSR after a fit to CSR rows with more than 8,192 features.  This and the next
        two are copies, which predictions do not read.
    dual_coef_ : ndarray of shape (n_classes, n_prototypes); with two classes (n_prototypes,), for the second
        b without b_y0.
    intercept_ : ndarray of shape (n_classes,); with two classes a float
        b_y0.
    gamma_, objective_ : float
        exp(theta), and the objective on the training rows without those held out.
    converged_ : bool
        Whether the last pass gained too little by the rule of ``tol``; with "adam" its decreasing rate may be the
        reason.
    n_iter_, n_support_ : int
        Numbers of passes and of prototypes.

    Notes
    -----
    The prototypes need not be training rows.

    .. math::

        & P(y \mid x) = \frac{e^{f_y(x)}}{\sum_c e^{f_c(x)}} \\
        & f_y(x) = b_{y0} + \sum_{j=1}^J b_{yj} k(x, u_j)

    The mean log loss + ``l1 sum |u_jk| + (l2/2) sum b_yj^2`` is minimized over b, the prototypes u and the width theta
    of the kernel, ``k = exp(-exp(theta) ||x - u||^2)``.  With two classes only f of the second is learned; the other is
    0.  With ``loss="squared_hinge"`` the model is a support vector machine with J learned support vectors.

    References
    ----------
    Two blog posts on sparse kernel logistic regression, 2010, called prototype_klr in klr-bench's configurations.
    Archetypes: Cutler, Breiman, Technometrics, 1994; Morup, Hansen, Neurocomputing, 2012.
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

    n_prototypes: int | None = parameter(COUNT, None, default=None)
    init: str = parameter(StrOptions({"random", "kmeans", "archetypes"}), default="random")
    learn_prototypes: bool = parameter("boolean", default=True)
    learn_width: bool = parameter("boolean", default=True)
    l1: float = parameter(NOT_NEGATIVE, default=0.0)
    _: KW_ONLY
    learn_coef: bool = parameter("boolean", default=True)
    loss: str = parameter(StrOptions(set(LOSSES)), default="logit")
    l2: float | None = parameter(NOT_NEGATIVE, None, default=None)
    solver: str = parameter(StrOptions({"auto", "adam", "lbfgs", "alternating", "gradient"}), default="auto")
    learning_rate: float = parameter(POSITIVE, default=0.1)
    batch_size: int | None = parameter(COUNT, None, default=128)
    lazy: bool = parameter("boolean", default=False)
    validation_fraction: float = parameter(Interval(Real, 0, 1, closed="left"), default=0.0)
    tol: float = parameter(NOT_NEGATIVE, default=1e-4)
    max_iter: int = parameter(COUNT, default=100)
    kernel: str = parameter(StrOptions({"rbf", "poly", "linear"}), default="rbf")
    gamma: float | None = parameter(POSITIVE, None, default=None)
    degree: int = parameter(COUNT, default=3)
    coef0: float = parameter(NUMBER, default=1.0)
    random_state: int | np.random.RandomState | None = parameter(*SEED, default=None)
    dtype: str | None = parameter(StrOptions({"float32", "float64"}), None, default=None)
    class_weight: dict | str | None = parameter(*CLASS_WEIGHT, default=None)
    verbose: int | bool = parameter(*VERBOSE, default=False)
    feature_weights: ArrayLike | str | None = parameter(*FEATURE_WEIGHTS, default=None)

    @checked_fit
    def fit(self, X, y, sample_weight=None, callback=None):
        """Fit the model to the training rows; return self.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Two or more classes of any type.
        sample_weight : array of shape (n_samples,), default=None
            Weights >= 0 of the rows, some of each class above 0; each term of the loss is multiplied by its own.
        callback : callable, default=None
            ``callback(estimator, t)`` is called at the start, t = 0, and after each pass; returning True ends the fit.

        Raises
        ------
        ValueError
            If parameters or data are refused, such as more prototypes than rows, or lazy=True with dense rows.
        """
        X, y, weights = self._first_rows(X, y, sample_weight)
        self._check_settings(X)
        random = check_random_state(self.random_state)
        solver, rows, held_out = self._rows(X, y, weights, random)
        x = self._first_point(rows, random)
        self.n_iter_, self.converged_, callback = 0, False, verbose_callback(self, callback)
        self._publish(x)
        if callback is None or not callback(self, 0):
            self._learn(solver, x, rows, held_out, random, callback)
        self.objective_ = self._model.objective(self._x, rows)
        return self
