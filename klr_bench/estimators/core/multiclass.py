"""One-vs-rest classification, with one binary learner for each class."""

from __future__ import annotations

import inspect
from functools import wraps

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state, column_or_1d

from klr_bench.estimators.core.checks import checked_fit, distinct_labels
from klr_bench.estimators.core.rows import stacked
from klr_bench.estimators.core.threads import parallel_map

SEEDS = 2**31 - 1
"""Upper bound of the drawn seeds."""


def one_vs_rest(method):
    """Decorate `fit` or `partial_fit` of a `Classifier` to fit one learner per class.

    `method` itself, which has the decorator `checked_fit`, is called for two classes and for invalid labels.
    """
    signature, going_on = inspect.signature(method), method.__name__ == "partial_fit"
    fit_each = partial_fit if going_on else fit

    @wraps(method)
    def fitted(self, *args, **kwargs):
        try:
            arguments = signature.bind(self, *args, **kwargs).arguments
        except TypeError:
            return method(self, *args, **kwargs)  # raises TypeError with the name of the method
        if going_on and "classes_" in vars(self):
            many = self._has_many()
        else:
            many = _n_classes(arguments.get("classes") if arguments.get("classes") is not None else arguments["y"]) > 2
        if not many:
            return method(self, *args, **kwargs)
        return fit_each(**arguments)

    return fitted


def _n_classes(labels):
    try:
        return len(distinct_labels(column_or_1d(labels)))
    except (TypeError, ValueError):
        return 0


@checked_fit
def fit(self, X, y, sample_weight=None, callback=None):
    """Fit one learner per class from scratch; return self."""
    before = getattr(self, "estimators_", [])
    X, y, weights = self._first_rows(X, y, sample_weight)
    _begin(self, before if getattr(self, "warm_start", False) else [])
    self._fit_classes(X, [y == label for label in self.classes_], weights, callback)
    self._gather()
    return self


@checked_fit
def partial_fit(self, X, y, classes=None, sample_weight=None, callback=None):
    """Continue learning with one learner per class; return self."""
    first = "estimators_" not in vars(self)
    X, y, weights = self._next_rows(X, y, classes, sample_weight, first=first)
    if not len(y):
        return self
    if first:
        _begin(self)
    elif len({getattr(learner, "t_", None) for learner in self.estimators_}) > 1:
        name = type(self).__name__
        message = f"{name}: the last call was ended before all classes had learned from the same rows; call fit again."
        raise ValueError(message)
    options = {"classes": [False, True]} | ({} if weights is None else {"sample_weight": weights})
    before = getattr(self.estimators_[0], "t_", 0)
    k = 0
    try:
        for k, (learner, label) in enumerate(zip(self.estimators_, self.classes_, strict=True)):
            learner.set_params(**_parameters(self))
            learner.partial_fit(X, y == label, **options, **reporting(self, k, len(y), callback, before))
    except BaseException:
        if k or "classes_" not in vars(self.estimators_[0]):  # a learner has learned, or is cleared
            self._clear()
        raise
    self._gather()
    return self


def _begin(self, before=()):
    """Create one learner per class, or reuse the list `before` if it has one per class.

    All get the same seed, so that they go through the rows in the same order.
    """
    changes, self._ended = {}, False
    if "random_state" in self._get_param_names():
        changes["random_state"] = int(check_random_state(self.random_state).randint(SEEDS))
    if "class_weight" in self._get_param_names():  # rows have weights instead
        changes["class_weight"] = None
    learners = before if len(before) == len(self.classes_) else [clone(self) for _ in self.classes_]
    self.estimators_ = [learner.set_params(**_parameters(self), **changes) for learner in learners]


def _parameters(self):
    excluded = ("random_state", "class_weight")
    return {name: value for name, value in self.get_params(deep=False).items() if name not in excluded}


def reporting(self, k, last, callback, before=0):
    """Return the keyword argument `callback` for the learner of class k, as a dictionary.

    The callback gets the number of steps of all M learners, divided by M; each learner takes at most `last`, after
    `before` in earlier calls.
    """
    if callback is None:
        return {}

    def call(learner, t):
        self._gather()
        steps = k * last + min(t - before, last)
        self._ended = bool(callback(self, before - (-steps // len(self.classes_))))
        return self._ended

    return {"callback": call}


def fit_classes(self, X, ys, weights, callback):
    """Fit the learner of each class, in parallel, or in turn until the callback requests a stop."""
    options = {} if weights is None else {"sample_weight": weights}
    if callback is None:
        parallel_map(lambda k: self.estimators_[k].fit(X, ys[k], **options), range(len(ys)))
        return
    for k, (learner, y) in enumerate(zip(self.estimators_, ys, strict=True)):
        learner.fit(X, y, **options, **reporting(self, k, self.steps(X.shape[0])[0], callback))
        if self._ended:
            return


def fitted_learners(self):
    """Return those learners in `estimators_` that have been fitted."""
    return [learner for learner in self.estimators_ if "classes_" in vars(learner)]


def spread(self, f):
    """Add a column of decision values for each class whose learner is not fitted.

    Classes without a fitted learner get the smallest of the other values.

    For two classes it stays f (n_samples,).
    """
    missing = f.ndim == 2 and len(self.classes_) - f.shape[1]
    return np.hstack([f, np.repeat(f.min(axis=1, keepdims=True), missing, axis=1)]) if missing else f


def in_common(self):
    """Return the union of the learners' support vectors, and each learner's coefficients.

    The learners' `_numbers` (n_support,) identify their rows; -1 is a row that no other learner has.
    """
    learners = fitted_learners(self)
    rows = stacked([learner.support_vectors_ for learner in learners])
    numbers = np.concatenate([learner._numbers for learner in learners])
    alone = np.flatnonzero(numbers < 0)
    numbers[alone] = numbers.max(initial=-1) + 1 + np.arange(len(alone))
    distinct, first, places = np.unique(numbers, return_index=True, return_inverse=True)
    coef, start = np.zeros((len(learners), len(distinct))), 0
    for row, learner in zip(coef, learners, strict=True):
        end = start + len(learner.dual_coef_)
        np.add.at(row, places[start:end], learner.dual_coef_)
        start = end
    return rows[first], coef


def gather(self, names):
    """Set each named attribute to an array of its values in the fitted learners."""
    for name in names:
        setattr(self, name, np.array([getattr(learner, name) for learner in fitted_learners(self)]))
