"""Base class of classifiers that learn in one or several passes over the rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY
from itertools import chain, repeat
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.checks import LearningFailed, checked_decision, checked_fit, cleared_by_errors
from klr_bench.estimators.core.classifier import Classifier
from klr_bench.estimators.core.kernels import ANY_KERNEL, WIDTHS, kernel_of, rows_of
from klr_bench.estimators.core.parameters import (
    CLASS_WEIGHT,
    COUNT,
    JOBS,
    NUMBER,
    POSITIVE,
    PRECOMPUTED,
    SEED,
    Interval,
    estimator,
    parameter,
)
from klr_bench.estimators.core.rows import in_layout
from klr_bench.estimators.online.engine import OnlineState
from klr_bench.estimators.online.many import SharedFit, order_key
from klr_bench.estimators.online.one_row import Published, row_by_row, short_way
from klr_bench.estimators.online.passes import default_passes, learn_in_order, run_passes, warn_of_order
from klr_bench.estimators.online.passes_by_validation import has_rare_class, validated_passes
from klr_bench.estimators.online.softmax import SoftmaxState
from klr_bench.protocols import FIRST

RADIUS = Interval(Real, 0, None, closed="right")
"""Constraint of the radius of a ball, which may be infinite."""
SHARED = ("kernel", "gamma", "degree", "coef0", "dtype", "n_epochs", "class_weight")
"""Parameters that learners sharing a pass must have in common."""
BY_RADIUS = "R/sqrt(T)"
"""Step size: the radius divided by the square root of the number of rows in the first call."""
SUFFICIENT_LOSS = 4.0
"""Sum of losses, multiplied by the step size, after which passes end, as a multiple of the loss of guessing.

On small noisy data further passes fit the noise.
"""


def has_rows(learner):
    """Return True, or raise AttributeError if the kernel is precomputed."""
    if learner.kernel == PRECOMPUTED:
        message = f"{type(learner).__name__}: partial_fit needs rows; with kernel='precomputed' only fit learns."
        raise AttributeError(message)
    return True


class SeveralPasses:
    """Descriptions of what learners have that average f and choose the number of passes.

    Parameters
    ----------
    average : bool, default=True
        Predict with the average of the f_t, which the papers' theorems and tables are about; otherwise with the last
        one, which is better where the rows do not come in random order (docs/scale/streams.md).
    n_epochs : int or None, default=None
        Passes of `fit` over the rows, >= 1; the papers make one.  None makes passes until eta times the sum of the
        logistic losses, each before its own step, exceeds that of guessing, n_samples log(n_classes), four times: fewer
        on noisy data.  They are at least 2 and at most 20 for `OSKL` and `MarginKLR`, 10 for the others, and 100,000 /
        n_samples where there are many rows.  If the share of a class, of at least 20 rows, is below 0.3 / n_classes,
        the number is instead the one from 1 on with the lowest log loss of a fifth of the rows, after a fit to the
        others.  A row that is inserted in several passes is one support vector, and the average is that of the last
        pass.

    Attributes
    ----------
    n_mistakes_ : int
        Number of examples that f_t misclassified or left undecided before their own step.
    cumulative_loss_ : float
        sum_t -log P(y_t|x_t), with the f_t before the step t: the loss in the papers' bounds.  Examples of all passes
        count, whatever their weights.  Only with the logistic loss.
    """


@estimator
class OnlineClassifier(Classifier):
    """Classifier that learns row by row, in one or several passes over the data.

    With more than two classes it learns one function f_k per class, which separates it from the others, all in the same
    passes: each kernel value is computed once for all of them.  With `_learns_softmax` and the logistic loss the f_k
    sum to 0, and the probabilities are their softmax.

    A subclass has `_update()`, which returns its `Update`: the compiled rule, its numbers, and the radius R of the ball
    that f is projected into; for `_learns_softmax` also the rule of more than two classes.  If that is not enough, it
    has `_engine(X, weights)`, which returns its `Engine`: a new one for rows like X, or the one that it has, both with
    the current parameters; and `_publish()`, which sets the fitted attributes from the engine.  `run_passes` does the
    rest.

    Parameters
    ----------
    kernel : {"rbf", "poly", "linear", "laplacian", "sigmoid", "precomputed"} or callable, default="rbf"
        exp(-gamma ||x - z||^2), (gamma x'z + coef0)^degree, x'z, exp(-gamma sum_j |x_j - z_j|),
        tanh(gamma x'z + coef0), or a function f(X, Z) that returns the kernel values (n, m) of two blocks of rows.
        With "precomputed" X is the matrix (n_samples, n_samples) of the kernel values of the training rows, for
        predictions those of other rows with the training rows; ``support_vectors_`` are indices in a column, and there
        is no `partial_fit`.  "sigmoid" is not positive semi-definite: no bound holds, and negative squares of ||f||
        count as 0.  The papers use the rbf kernel, and (x'z + 1)^2 for the texts of RCV1, which is kernel="poly",
        gamma=1, degree=2, coef0=1.
    R : float, default=1e3
        Radius > 0 of the ball in the kernel's space that f is projected into; `inf` for no projection.  Zhang et al.
        choose it among 1, 10, ..., 1e5 by cross-validation, and take 1e5 for RCV1.
    average : bool, default=False
        Predict with the average of the f_t; otherwise with the last one.
    n_epochs : int, default=1
        Passes of `fit` over the rows, >= 1; the papers make one.  A row that is inserted in several passes is one
        support vector.
    shuffle : bool, default=True
        Whether `fit` draws an order of the rows for each pass, from `random_state`; otherwise it learns in their order,
        as `partial_fit` does.  Use False if the rows are in random order already, as in the papers' runs; rows sorted
        by class need True.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the weights of the rows.  "balanced" is n_samples / (n_classes n_k) for
        class k with n_k rows, and is for `fit` only.
    n_jobs : int or None, default=None
        Number of threads that compute kernel values; None uses as many as BLAS would, -1 one per core.  The result does
        not depend on it.

    Attributes
    ----------
    support_vectors_ : ndarray or CSR matrix of shape (n_support_, n_features), dtype of the kernel values
        The examples inserted in f, or in any f_k, in the order of their insertion; after several passes in the order of
        the rows.
    dual_coef_ : ndarray of shape (n_support_,), or (n_classes, n_support_) for more than two classes, float64
        Coefficients of the average classifier, (1/T) sum_{t=1..T} f_t, or of the last one, f_{T+1}.  After several
        passes the average is that of the f_t of the last one.
    n_support_ : int
        Number of inserted examples.  An insertion at the last step counts, although its weight in the average is 0.
    n_updates_ : int
        Number of insertions: several passes may insert an example more than once, and in several f_k.
    n_mistakes_ : int
        Number of examples with y f_t(x) <= 0 at their own step, added over all f_k.
    t_ : int
        Number of examples seen, T, in all passes.
    classes_ : ndarray of shape (n_classes,), dtype of y
        The classes in sorted order.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,), dtype object
        Names of the features, if X is a data frame whose column names are all strings.
    """

    _: KW_ONLY
    kernel: str | Callable[..., Any] = parameter(*ANY_KERNEL, default="rbf")
    gamma: float | str | None = parameter(POSITIVE, StrOptions(set(WIDTHS)), None, default="scale")
    degree: float = parameter(POSITIVE, default=3)
    coef0: float = parameter(NUMBER, default=1.0)
    random_state: int | np.random.RandomState | None = parameter(*SEED, default=None)
    dtype: str | None = parameter(StrOptions({"float32", "float64"}), None, default=None)
    average: bool = parameter("boolean", default=False)
    n_epochs: int = parameter(COUNT, default=1)
    shuffle: bool = parameter("boolean", default=True)
    class_weight: dict | str | None = parameter(*CLASS_WEIGHT, default=None)
    n_jobs: int | None = parameter(*JOBS, default=None)

    grows = True
    """True because memory grows with the support vectors; see `klr_bench.protocols`."""
    dual_coef_, n_support_, n_updates_, n_mistakes_, t_, cumulative_loss_ = (Published() for _ in range(6))
    _draws = True
    _fixed = ("kernel", "gamma", "degree", "coef0", "dtype")
    _most_passes = 10
    """Largest number of passes if `n_epochs` is None."""
    _learns_softmax = False
    """Whether more than two classes have one update for all, with the logistic loss."""
    _state = None
    """The engine, or None before the first row."""
    _rows_of_step = None
    """Number of rows T of the step size R/sqrt(T); None is that of the first call."""
    _n_again = 0
    """Number of examples seen again in further passes."""
    _learn_row = None
    """Function that `short_way` returned after the last call of `partial_fit`, or None."""

    @checked_fit
    def fit(self, X, y, sample_weight=None, callback=None):
        """Fit the classifier to X and y from scratch; return self.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Classes of any type; of two classes, decision values above 0 mean the second in sorted order.
        sample_weight : array of shape (n_samples,), default=None
            Weights >= 0 of the rows: each update is, in expectation, that of the weighted loss.
        callback : callable, default=None
            `callback(estimator, t)` is called after each block of examples; returning True ends the fit.
        """
        X, y, weights = self._first_rows(X, y, sample_weight)
        if not self.shuffle:
            warn_of_order(self, y)
        places = np.arange(len(y)) if weights is None else np.flatnonzero(weights)
        n = self._n_first = len(places)
        n_passes, enough = self._passes(n), self._passes_suffice
        if self._chooses_passes() and has_rare_class(self, y):
            n_passes, enough = validated_passes(self, X, y, weights, n_passes, callback), bool
        first = self._order(places)  # before the engine is made: both may draw random numbers
        arguments = self._learning_from(X, y, weights, callback)
        orders = chain([first], map(self._order, repeat(places, n_passes - 1)))
        run_passes(*arguments, orders, merging=n_passes > 1, enough=enough)
        self._n_again = max(self._state.t - n, 0)
        self._publish()
        self._complete(X, y, callback)
        return self

    @available_if(has_rows)
    @row_by_row
    @checked_fit
    def partial_fit(self, X, y, classes=None, sample_weight=None, callback=None):
        """Continue learning from the rows of X in their order; return self.

        The result does not depend, up to rounding, on how the rows are split into calls, apart from what the first call
        determines: gamma="scale" and "median", and values computed from the number of rows.  dtype and the parameters
        of kernel, features and budget cannot change after the first call; other parameters hold for the rows that
        follow.  If an update fails, a ValueError says why, and nothing learned remains.

        Parameters
        ----------
        X, y, sample_weight, callback
            As for `fit`; class_weight="balanced" needs all rows, and is refused.
        classes : array of shape (n_classes,), default=None
            All classes; required in the first call if y does not contain all of them.
        """
        first = self._state is None
        X, y, weights = self._next_rows(X, y, classes, sample_weight, first=first)
        if not len(y):
            return self
        if first:
            self._n_first = len(y)
        arguments = self._learning_from(X, y, weights, callback)
        with cleared_by_errors(self):
            learn_in_order(*arguments)
            self._publish()
        self._learn_row = short_way(self) if X.shape[0] == 1 else None
        return self

    @checked_decision
    def decision_function(self, X):
        """Return the decision values f(x) for the rows x of X.

        The result is float64, of shape (n_samples,) or (n_samples, n_classes).
        """
        check_is_fitted(self, ["dual_coef_", "_state"])
        X = self._validate(X, dtype=self._state.dtype)
        f = self._state.decide(np.atleast_2d(self.dual_coef_).astype(X.dtype), X)
        return np.ascontiguousarray(f.T) if self._has_many() else f[0]

    @property
    def support_vectors_(self):
        """The support vectors, in a matrix of shape (n_support_, n_features).

        Examples stored as bits are unpacked at each access.
        """
        return self._state.support.rows

    def steps(self, n_samples):
        """Return the total number of steps of `fit` and the step number of the first checkpoint."""
        return n_samples * self._passes(n_samples), FIRST

    def progress(self):
        """Return a dict with the metrics to store at a checkpoint."""
        return {"n_support": self.n_support_} | self._losses()

    def summary(self):
        """Return a dict with the number of support vectors, the sparsity and the number of updates."""
        return {
            "n_support": self.n_support_,
            "sparsity": max(1.0 - self.n_support_ / (self.t_ - self._n_again), 0.0),
            "n_updates": self.n_updates_,
        } | self._losses()

    def for_rows(self, n_samples):
        """Set the number of rows T, which determines the step size R/sqrt(T); return self."""
        self._rows_of_step, self._learn_row = n_samples, None
        return self

    def pass_key(self, n_classes):
        """Return a key that is equal for learners that can share a pass over the data.

        Learners with equal keys can share one; the key is None if this learner cannot.  A shared pass is for two
        classes, given numbers of passes and unweighted features, and for learners with the `fit` of this class and the
        same order of rows.
        """
        alone = self.n_epochs is None or getattr(self, "feature_weights", None) is not None
        if n_classes != 2 or alone or type(self).fit is not OnlineClassifier.fit:
            return None
        return OnlineClassifier, order_key(self), *(repr(getattr(self, name, None)) for name in SHARED)

    def fit_together(self, estimators, X, y, callback=None):
        """Fit learners with equal values of `pass_key` in one pass; return a `SharedFit`."""
        return SharedFit(estimators, X, y, callback)

    def set_params(self, **params):
        """Set parameters, which hold for the rows that follow; return self."""
        self._publish_if_due()
        return super().set_params(**params)

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name != "_learn_row"}

    def _engine(self, X, weights):
        n, softmax = len(self.classes_) if self._has_many() else 1, self._is_softmax()
        make = SoftmaxState if softmax else OnlineState
        engine = self._state or make(kernel_of(self, X, weights), rows_of(self, X), range(n))
        if isinstance(engine, SoftmaxState) != softmax:
            message = f"loss={self.loss!r} differs from the loss of the first call; call fit to start again."
            raise ValueError(message)
        engine.use([self._update()] * n)
        return engine

    def _learning_from(self, X, y, weights, callback):
        """Return the first arguments of `run_passes` for rows X, classes y and their weights."""
        rows = rows_of(self, X)
        engine = self._state = self._engine(X, weights)
        rows = in_layout(rows, engine.sparse)
        labels = np.searchsorted(self.classes_, y) if self._is_softmax() else self._signs(y)

        def report(t):
            self._publish()
            return callback(self, t)

        factors = (None, None) if weights is None else self._weight_factors(weights)
        return engine, rows, labels, self._random, factors, self._check, None if callback is None else report

    def _check(self):
        """Raise LearningFailed if the engine has refused an example."""
        t, value = self._state.failure()
        if t:
            self._refuse(t, value)
        if self._decided is not None:
            self._decided.append(self._state.decided)

    def _complete(self, X, y, callback):
        """Finish `fit`, with validated rows and classes."""

    def _publish(self):
        engine = self._state
        coef = engine.coefficients(average=self.average)
        self.dual_coef_ = coef if self._has_many() else coef[0]
        are_merged = "_n_again" in vars(self)  # copies of a row, after the passes of `fit`
        self.n_support_ = len(engine.support if are_merged else np.unique(engine.numbers.rows))
        self.n_updates_ = engine.n_insertions
        self.n_mistakes_, self.t_ = int(engine.functions["mistakes"].sum()), engine.t
        if self._learns_log_loss:
            self.cumulative_loss_ = float(engine.functions["loss"][0])

    def _publish_if_due(self):
        due = "_is_due" in vars(self)
        if due:
            self._publish()
            vars(self).pop("_is_due", None)  # now, because another thread may read an attribute
        return due

    def _dtypes(self):
        if self._state is not None:
            return self._state.dtype
        return self.dtype or [np.float64, np.float32]

    def _scores(self, f):
        return f if self._is_softmax() else super()._scores(f)

    def _is_softmax(self):
        return self._has_many() and self._learns_log_loss

    @property
    def _learns_log_loss(self):
        """True if the loss is logistic, for more than two classes that of the softmax."""
        return self._learns_softmax and self._is_logistic()

    def _losses(self):
        return {"cumulative_loss": self.cumulative_loss_} if self._learns_log_loss else {}

    def _step_size(self):
        if self.eta != BY_RADIUS:
            return self.eta
        return self.R / math.sqrt(self._rows_of_step or self._n_first)

    def _weight_factors(self, weights):
        """Return the factors of the draws and of the steps of rows with these weights, or None."""
        return None, weights

    def _passes(self, n):
        return default_passes(n, self._most_passes) if self.n_epochs is None else self.n_epochs

    def _chooses_passes(self):
        return self.n_epochs is None and self._learns_log_loss

    def _passes_suffice(self):
        """Return True if further passes, whose number is not given, would fit noise."""
        if not self._chooses_passes():
            return False
        of_guessing = self._n_first * math.log(len(self.classes_))
        return self._step_size() * self._state.functions["loss"][0] > SUFFICIENT_LOSS * of_guessing

    def _order(self, places):
        """Return the places of the rows in the order of one pass."""
        return self._random.permutation(places) if self.shuffle else places

    def _refuse(self, t, f):
        """Raise LearningFailed because learning from example number t produced a non-finite value."""
        message = (
            f"{type(self).__name__}: at example number {t}, the update or the norm of f is not finite "
            f"(f(x) = {f:g}); use a smaller step size, or scale X."
        )
        raise LearningFailed(message)
