"""Base class of classifiers that learn in one or several passes over the rows."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY
from itertools import chain

import numpy as np
from sklearn.utils.metaestimators import available_if

from klr_bench.estimators.core.binary import BinaryKernelClassifier
from klr_bench.estimators.core.classifier import checked_fit
from klr_bench.estimators.core.kernels import PRECOMPUTED
from klr_bench.estimators.core.parameters import CLASS_WEIGHT, COUNT, estimator, parameter
from klr_bench.estimators.core.rows import in_layout, positive_places
from klr_bench.estimators.online.one_row import Published, row_by_row, short_way
from klr_bench.protocols import FIRST

ENOUGH = 100_000
"""Number of steps after which a further pass improves little."""
MOST_PASSES = 10
"""Largest number of passes if `n_epochs` is None; a learner can have another one."""
SORTED = 50
"""Minimum number of rows for which sorted labels trigger a warning."""


def has_rows(learner):
    """Return True, or raise AttributeError if the kernel is precomputed."""
    if learner.kernel == PRECOMPUTED:
        message = f"{type(learner).__name__}: partial_fit needs rows; with kernel='precomputed' only fit learns."
        raise AttributeError(message)
    return True


def default_passes(n, most=MOST_PASSES):
    """Return the largest number of passes over n rows if `n_epochs` is None."""
    return max(2, min(most, round(ENOUGH / n)))


def run_passes(engine, X, labels, random, factors, check, callback, orders, *, merging, enough):
    """Let an engine learn from rows, pass by pass and block by block.

    Parameters
    ----------
    engine : Engine
        The learner's state and update, see `klr_bench.estimators.online.state.Engine`.
    X, labels : array or CSR matrix of shape (n, d), array of shape (n,) or (m, n)
        Rows, and their labels for each of m functions.
    random : RandomState
        Source of a uniform draw for each row of a block.
    factors : pair of arrays of shape (n,) or None
        Factors of the draws and of the steps, from the weights of the rows; None for 1.
    check, enough, callback : callable
        `check()` raises an error if the last block was refused; `callback(t)`, or None, ends the passes where it
        returns True; `enough()` ends them after the second or a later one.
    orders : iterable of arrays
        The order of the rows in each pass.
    merging : bool
        Whether copies of a row from different passes become one support vector.
    """
    for epoch, order in enumerate(orders):
        if epoch:
            engine.average_from_here()
        stopped = learn_in_order(engine, X, labels, random, factors, check, callback, order)
        if merging:
            engine.merge()
        if stopped or (epoch and enough()):
            break


def learn_in_order(engine, X, labels, random, factors, check, callback, order=None):
    """Let an engine learn from rows once, block by block; return True if the callback ended it.

    The arguments are those of `run_passes`; `order` None is that of X, in which no row is known to come again.
    """
    n = X.shape[0] if order is None else len(order)
    size = engine.rows_at_once(is_watched=callback is not None)
    for start in range(0, n, size):
        block = slice(start, min(start + size, n))
        rows = block if order is None else order[block]
        draws = random.random_sample(block.stop - start)
        of_draws, of_steps = (None if values is None else values[..., rows] for values in factors)
        draws = draws if of_draws is None else draws * of_draws
        engine.learn(X[rows], labels[..., rows], draws, None if order is None else rows, of_steps)
        check()
        if callback is not None and callback(engine.t):
            return True
    return False


@estimator
class OnlineClassifier(BinaryKernelClassifier):
    """Classifier that learns row by row, in one or several passes over the data.

    With more than two classes it learns one function f_k per class, which separates it from the others, all in the same
    passes.

    A subclass has `_engine(X, weights)`, which returns its `Engine`: a new one for rows like X, or the one that it has,
    both with the current parameters; and `_publish()`, which sets the fitted attributes from the engine.  `run_passes`
    does the rest.

    Parameters
    ----------
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

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), dtype of y
        The classes in sorted order.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,), dtype object
        Names of the features, if X is a data frame whose column names are all strings.
    """

    _: KW_ONLY
    average: bool = parameter("boolean", default=False)
    n_epochs: int = parameter(COUNT, default=1)
    shuffle: bool = parameter("boolean", default=True)
    class_weight: dict | str | None = parameter(*CLASS_WEIGHT, default=None)

    dual_coef_, n_support_, n_updates_, n_mistakes_, t_ = (Published() for _ in range(5))
    _most_passes = MOST_PASSES
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
        places = positive_places(weights, len(y))
        n = self._n_first = len(places)
        orders = (places[self._order(n)] for _ in range(self._passes(n)))
        first = next(orders)  # before the engine is made: both may draw random numbers
        learner = self._learning_from(X, y, weights, callback)
        run_passes(*learner, chain([first], orders), merging=self._passes(n) > 1, enough=self._passes_suffice)
        self._n_again = max(self._state.t - n, 0)
        self._publish()
        self._complete(X, y)
        return self

    def _complete(self, X, y):
        """Do nothing; subclasses may override this method to act at the end of `fit`."""

    @available_if(has_rows)
    @row_by_row
    @checked_fit
    def partial_fit(self, X, y, classes=None, sample_weight=None, callback=None):
        """Continue learning from the rows of X in their order; return self.

        The result depends on the sequence of rows only, up to rounding, not on how it is split into calls.  dtype and
        the parameters of kernel, features and budget cannot change after the first call; other parameters hold for the
        rows that follow.

        Parameters
        ----------
        X, y, sample_weight, callback
            As for `fit`; class_weight="balanced" needs all rows, and is refused.
        classes : array of shape (n_classes,), default=None
            All classes; required in the first call if y does not contain all of them.
        """
        first = getattr(self, "_state", None) is None
        X, y, weights = self._next_rows(X, y, classes, sample_weight, first=first)
        if not len(y):
            return self
        if first:
            self._n_first = len(y)
        learn_in_order(*self._learning_from(X, y, weights, callback))
        self._publish()
        self._learn_row = short_way(self) if X.shape[0] == 1 else None
        return self

    def steps(self, n_samples):
        """Return the total number of steps of `fit` and the step number of the first checkpoint."""
        return n_samples * self._passes(n_samples), FIRST

    def progress(self):
        """Return a dict with the number of support vectors, to be stored at a checkpoint."""
        return {"n_support": self.n_support_}

    def summary(self):
        """Return a dict with the number of support vectors, the sparsity and the number of updates."""
        return {
            "n_support": self.n_support_,
            "sparsity": 1.0 - self.n_support_ / (self.t_ - self._n_again),
            "n_updates": self.n_updates_,
        }

    def _is_logistic(self):
        return getattr(self, "loss", None) == "logit"

    def set_params(self, **params):
        """Set parameters, which hold for the rows that follow; return self."""
        self._publish_if_due()
        return super().set_params(**params)

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name != "_learn_row"}

    def _publish_if_due(self):
        due = vars(self).pop("_is_due", False)
        if due:
            self._publish()
        return due

    def _forget(self):
        super()._forget()
        self._state, self._n_again, self._learn_row = None, 0, None
        vars(self).pop("_is_due", None)

    def _dtypes(self):
        return super()._dtypes() if self._state is None else self._state.dtype

    def _learning_from(self, X, y, weights, callback):
        """Return the first arguments of `run_passes` for rows X, classes y and their weights."""
        engine = self._state = self._engine(X, weights)
        rows, labels = in_layout(self._rows(X), engine.sparse), self._signs(y)

        def report(t):
            self._publish()
            return callback(self, t)

        factors = (None, None) if weights is None else self._weight_factors(weights)
        return engine, rows, labels, self._random, factors, self._check, None if callback is None else report

    def _check(self):
        """Raise ValueError if the engine has refused an example."""
        t, value = self._state.failure()
        if t:
            self._publish()
            self._refuse(t, value)
        if getattr(self, "_decided", None) is not None:  # of `Progressive`
            self._note_decided()

    def _weight_factors(self, weights):
        """Return the factors of the draws and of the steps of rows with these weights, or None."""
        return None, weights

    def _passes(self, n):
        return default_passes(n, self._most_passes) if self.n_epochs is None else self.n_epochs

    def _passes_suffice(self):
        """Return False; subclasses may override this method to end `fit` after fewer passes."""
        return False

    def _order(self, n):
        """Return the order of n rows for one pass: a permutation, or their own without `shuffle`."""
        return self._random.permutation(n) if self.shuffle else np.arange(n)

    def _refuse(self, t, f):
        """Raise ValueError because learning from example number t produced a non-finite value."""
        message = (
            f"{type(self).__name__}: at example number {t}, the update or the norm of f is not finite "
            f"(f(x) = {f:g}); use a smaller step size, or scale X."
        )
        raise ValueError(message)


def warn_of_order(estimator, y):
    """Warn if the rows are sorted by class, because the learner then forgets the first class."""
    if len(y) >= SORTED and np.count_nonzero(y[1:] != y[:-1]) < len(estimator.classes_):
        message = f"{type(estimator).__name__}: the rows are sorted by class; use shuffle=True, or permute the rows."
        warnings.warn(message, stacklevel=4)
