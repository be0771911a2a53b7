"""Base class of classifiers that learn in one or several passes over the rows."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY

import numpy as np
from sklearn.utils.metaestimators import available_if

from klr_bench.estimators.core.binary import BinaryKernelClassifier
from klr_bench.estimators.core.classifier import checked_fit
from klr_bench.estimators.core.kernels import PRECOMPUTED
from klr_bench.estimators.core.parameters import CLASS_WEIGHT, COUNT, estimator, parameter
from klr_bench.estimators.core.rows import in_layout, positive_places
from klr_bench.estimators.online import engine
from klr_bench.estimators.online.one_row import PUBLISHED, row_by_row, short_way
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


@estimator
class OnlineClassifier(BinaryKernelClassifier):
    """Classifier that learns row by row, in one or several passes over the data.

    With more than two classes it learns one function f_k per class, which separates it from the others, all in the same
    passes.

    A subclass has `_new_state(X, weights)`, which returns the state before the first example; `_learning()`, which
    returns the function that learns from a block of rows; `_refused_at()`; `_dtype_of_rows()`; and `_publish()`, which
    sets the fitted attributes from the state.  A state has `t`, the number of examples seen, `sparse`, whether rows
    come as CSR, and `average_from_here()`, which begins a new average.

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
        weights = self._checked_weights(weights)
        if not self.shuffle:
            warn_of_order(self, y)
        prepared, places = None, positive_places(weights, len(y))
        n_passes = self._passes(len(places))
        for epoch in range(n_passes):
            if epoch:
                self._begin_pass()
            order = places[self._order(len(places))]
            prepared = prepared or self._prepare(X, y, weights)  # after the order: both may draw random numbers
            stopped = self._learn(*prepared, callback, order, order, weights)
            if n_passes > 1:
                self._end_pass()
            if stopped or (epoch and self._passes_suffice()):
                break
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
        weights = self._checked_weights(weights)
        self._learn(*self._prepare(X, y, weights), callback, weights=weights)
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

    def __getattr__(self, name):
        """Set and return a fitted attribute that is due, because rows have been learned one by one."""
        if name in PUBLISHED:
            self._publish_if_due()
        return super().__getattribute__(name)

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
        return super()._dtypes() if self._state is None else self._dtype_of_rows()

    def _prepare(self, X, y, weights=None):
        """Return the rows in the state's layout, their signs, and the function `_learning()`."""
        if self._state is None:
            self._n_first = len(positive_places(weights, len(y)))
            self._state = self._new_state(X, weights)
        return in_layout(self._rows(X), self._state.sparse), self._signs(y), self._learning()

    def _learn(self, X, signs, learn, callback, order=None, numbers=None, weights=None):
        """Learn from all rows, block by block; return True if the callback requested a stop.

        X, signs and learn are what `_prepare` returns; `order` (n,) are the places of the rows in the order of
        learning, None for their own; `numbers` (n,), in that order, tell which rows are the same in another pass, None
        for none; `weights` (n,) are those of the rows.
        """
        n, size = X.shape[0], self._size(callback)
        for start in range(0, n, size):
            block = slice(start, min(start + size, n))
            rows = block if order is None else order[block]
            draws = self._random.random_sample(block.stop - start)
            draws, factors = self._weighted(draws, None if weights is None else weights[rows])
            learn(X[rows], signs[..., rows], draws, None if numbers is None else numbers[block], factors)
            self._refuse_if_needed()
            self._note_decided()
            if callback is not None:
                self._publish()
                if callback(self, self._state.t):
                    return True
        return False

    def _refuse_if_needed(self):
        at, value = self._refused_at()
        if at:
            self._publish()
            self._refuse(at, value)

    def _weighted(self, draws, weights):
        """Return the draws of a block, adapted to its weights, and the factors of its steps."""
        return draws, weights

    def _note_decided(self):
        """Do nothing; `Progressive` overrides this method to store the predictions of a block."""

    def _passes(self, n):
        return default_passes(n, self._most_passes) if self.n_epochs is None else self.n_epochs

    def _passes_suffice(self):
        """Return False; subclasses may override this method to end `fit` after fewer passes."""
        return False

    def _order(self, n):
        """Return the order of n rows for one pass: a permutation, or their own without `shuffle`."""
        return self._random.permutation(n) if self.shuffle else np.arange(n)

    def _begin_pass(self):
        self._state.average_from_here()

    def _checked_weights(self, weights):
        """Return the weights of the rows, or None, if the learner supports them.

        Otherwise the method raises ValueError.
        """
        return weights

    def _end_pass(self):
        self._count_again()

    def _count_again(self):
        """Record how many of the examples seen so far were repetitions of earlier rows."""
        self._n_again = max(self._state.t - self._n_first, 0)

    def _size(self, callback):
        return engine.BLOCK

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
