"""Base class of all classifiers: validation of rows, labels and weights, and prediction."""

from __future__ import annotations

from operator import is_not

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.metaestimators import available_if

from klr_bench.estimators.core.checks import (
    checked_data,
    distinct_labels,
    refuse_balanced,
    refuse_scale,
    refuse_weightless,
    row_weights,
)
from klr_bench.estimators.core.feature_weights import given_weights, refuse_auto, weighted
from klr_bench.estimators.core.multiclass import fit_classes
from klr_bench.estimators.core.parameters import PRECOMPUTED
from klr_bench.estimators.core.rows import make_writable
from klr_bench.protocols import WEIGHT_LEARNERS


def _has_probabilities(classifier):
    """Return True if decision values are logarithms of odds, otherwise raise AttributeError."""
    if classifier._is_logistic():
        return True
    loss = getattr(classifier, "loss", None)
    why = f"requires loss='logit', got loss={loss!r}" if loss else "requires the logistic loss"
    message = f"{type(classifier).__name__}: predict_proba {why}; use decision_function."
    raise AttributeError(message)


def _is_progressive(classifier):
    return classifier._progressive and not getattr(classifier, "average", False)


class Classifier(ClassifierMixin, BaseEstimator):
    """Base class of all classifiers.

    With two classes `decision_function` returns f, (n_samples,), otherwise the f_k, (n_samples, n_classes); the class
    with the largest is predicted.  If the `loss` is "logit" there are probabilities: for two classes sigmoid(f), for
    more the softmax of `_scores(f)`.

    A subclass has `decision_function`, with the decorator `checked_decision`, and `fit`, with `checked_fit`: one that
    learns all f_k itself, or one for two classes with the decorator `one_vs_rest`.  Then it has `_gather`, too, which
    sets its fitted attributes from those of the learners for two classes in `estimators_`.
    """

    _loss = None
    """Loss of a class that does not have the parameter `loss`."""
    _valid_parameters = None
    """Values of the parameters when they were last validated by `partial_fit`."""
    _fixed = ()
    """Parameters that determine the state and cannot change between calls of `partial_fit`."""
    _draws = False
    """Whether a fit has random numbers, `_random`, from `random_state`."""
    _progressive = False
    """Whether the values by which rows are predicted before they are learned are in `_state.decided`."""
    _decided = None
    """Values f(x) during a call of `partial_fit_scores`, as a list of arrays; otherwise None."""
    _fit_classes = fit_classes
    """Method that fits the learners in `estimators_`."""
    _keeps_rows = False
    """Whether rows of weight 0 are kept because something besides a kernel matrix refers to rows by index."""
    _any_scale = False
    """Whether the squares of the values of X may overflow or underflow."""

    def predict(self, X):
        """Return the predicted class of each row of X; ties go to the first class."""
        f = self.decision_function(X)
        return self.classes_[(f > 0).astype(int) if f.ndim == 1 else np.argmax(f, axis=1)]

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """Return the probability of each class for each row of X, of shape (n_samples, n_classes)."""
        f = self.decision_function(X)
        return np.column_stack([expit(-f), expit(f)]) if f.ndim == 1 else softmax(self._scores(f), axis=1)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X):
        """Return log probabilities, (n_samples, n_classes); none is -inf by underflow."""
        f = self.decision_function(X)
        return np.column_stack([log_expit(-f), log_expit(f)]) if f.ndim == 1 else log_softmax(self._scores(f), axis=1)

    @available_if(_is_progressive)
    def partial_fit_scores(self, X, y, classes=None):
        """Learn from X row by row; return the decision value of each row before learning from it.

        Up to rounding this is `decision_function` of each row between calls of `partial_fit` with one row each, in the
        time of one call.  Not with `average`: the average of the f_t is not known row by row.

        Parameters
        ----------
        X, y, classes
            As for `partial_fit`, with two classes.

        Returns
        -------
        f : array of shape (n_samples,), float64
        """
        name = type(self).__name__
        if len(distinct_labels(getattr(self, "classes_", y if classes is None else classes))) > 2:
            message = f"partial_fit_scores of {name} requires two classes; use predict and partial_fit."
            raise ValueError(message)
        weights = self.class_weight if isinstance(getattr(self, "class_weight", None), dict) else {}
        if not {*np.asarray(y).ravel().tolist()}.isdisjoint(label for label, weight in weights.items() if weight == 0):
            message = f"partial_fit_scores of {name} must learn from all rows; give each class a positive weight."
            raise ValueError(message)
        self._decided = []
        try:
            return np.concatenate([np.zeros(0), *self.partial_fit(X, y, classes)._decided])
        finally:
            del self._decided

    def _is_logistic(self):
        return getattr(self, "loss", self._loss) == "logit"

    def _scores(self, f):
        """Return scores with the probabilities as their softmax, for decision values f (n, m)."""
        return log_expit(f)

    def _has_many(self):
        return len(getattr(self, "classes_", ())) > 2

    def _clear(self):
        """Remove the attributes of an earlier fit."""
        state = vars(self)
        for name in list(state):
            if (name.endswith("_") and not name.startswith("_")) or name in (
                "_state",
                "_n_again",
                "_learn_row",
                "_is_due",
                "_support_vectors",
                "_iterate",
                "_final",
            ):
                del state[name]

    def _validate_params(self):
        """Validate the parameters that do not have their default values."""
        constraints, defaults, changed = self._parameter_constraints, type(self), {}
        for name in constraints:
            value = getattr(self, name)
            if value is not getattr(defaults, name, ...):
                changed[name] = np.bool_(value) if isinstance(value, bool) else value  # not a number
        validate_parameter_constraints(constraints, changed, caller_name=defaults.__name__)

    def _forget(self):
        """Validate the parameters and remove the attributes of an earlier fit."""
        self._validate_params()
        self._clear()
        self._begun_with = dict(zip(self._fixed, map(self.__getattribute__, self._fixed), strict=True))
        if self._draws:
            self._random = check_random_state(self.random_state)

    def _go_on_with(self, classes):
        """Check that `partial_fit` can continue with the current parameters and the given classes.

        Raises ValueError if the classes or fixed parameters have changed.
        """
        parameters, valid = [getattr(self, name) for name in self._parameter_constraints], self._valid_parameters
        if valid is None or any(map(is_not, parameters, valid)):
            self._validate_params()
            self._valid_parameters = parameters
        for name, value in getattr(self, "_begun_with", {}).items():
            now = getattr(self, name)
            if now is not value and not np.array_equal(now, value):
                label = f"The {name!r} parameter of {type(self).__name__}"
                message = f"{label} was {value!r} and cannot change to {now!r}; call fit to start again."
                raise ValueError(message)
        if classes is not None and not np.array_equal(classes, self.classes_):
            named = distinct_labels(classes, "classes")
            if not np.array_equal(named, self.classes_):
                message = f"classes: expected {self.classes_.tolist()} as in the first call, got {named.tolist()}."
                raise ValueError(message)
        if vars(self).pop("_is_loaded", False):
            make_writable(self)

    def _first_rows(self, X, y, sample_weight=None):
        """Forget an earlier fit; validate and return the arguments X, y and sample_weight of `fit`.

        See `_weighted_rows` for the weights.
        """
        self._forget()
        X, y = self._validate(X, y, dtype=self._dtypes(), reset=True)
        self._set_classes(y)
        X, y, weights = self._weighted_rows(X, y, sample_weight, whole=True)
        if not self._any_scale:
            refuse_scale(self, X)
        if isinstance(getattr(self, "feature_weights", None), str):  # "auto"
            (learned_weights,) = WEIGHT_LEARNERS
            self.feature_weights_ = learned_weights(X, y, weights, self.random_state)
            X = weighted(self, X)
        return X, y, weights

    def _next_rows(self, X, y, classes, sample_weight=None, *, first):
        """Validate and return the rows X, the labels y and the weights passed to `partial_fit`.

        Only the first call forgets an earlier fit, and sets features and classes.  `_weighted_rows` has the weights.
        """
        if first:
            refuse_auto(self)
            self._forget()
        else:
            self._go_on_with(classes)
        X, y = self._validate(X, y, dtype=self._dtypes(), reset=first)
        if first:
            self._set_classes(y, classes)
        self._refuse_unknown(y)
        X, y, weights = self._weighted_rows(X, y, sample_weight, whole=False)
        if first:
            if not len(y):
                message = f"{type(self).__name__}: the first call of partial_fit needs a row with a positive weight."
                raise ValueError(message)
            refuse_scale(self, X)
        return X, y, weights

    def _weighted_rows(self, X, y, sample_weight, *, whole):
        """Remove the rows of weight 0; return the other rows, their labels, and their weights.

        The weights (n,) are those of the rows times those of their classes, or None if there are none.  If X is the
        `whole` of the data, each class needs a positive weight.  If something refers to rows by index, no row is
        removed, and weights can be 0.
        """
        if not whole:
            refuse_balanced(self)
        class_weight = getattr(self, "class_weight", None)
        if sample_weight is None and class_weight is None:
            return X, y, None
        weights = row_weights(sample_weight, class_weight, y, self.classes_)
        if weights.all():
            return X, y, weights
        if whole:
            refuse_weightless(self, weights, y)
        if self._keeps_rows or getattr(self, "kernel", None) == PRECOMPUTED:
            return X, y, weights
        rows = np.flatnonzero(weights)
        return X[rows], y[rows], weights[rows]

    def _dtypes(self):
        return getattr(self, "dtype", None) or [np.float64, np.float32]

    def _validate(self, *data, dtype, reset=False):
        """Validate rows X, or X and labels y, and multiply the features by their weights."""
        if reset or not self._is_valid(*data, dtype=dtype):
            order = None if getattr(self, "features", None) == "linear" else "C"  # the rows themselves are not copied
            checked = checked_data(self, *data, dtype=dtype, reset=reset, order=order, accept_large_sparse=True)
            data = checked if len(data) > 1 else (checked,)
        if reset and getattr(self, "feature_weights", None) is not None:
            given_weights(self)
        if "feature_weights_" in vars(self) and hasattr(self, "feature_weights"):
            data = (weighted(self, data[0]), *data[1:])
        return data if len(data) > 1 else data[0]

    def _is_valid(self, X, y=None, *, dtype):
        """Return True if scikit-learn's validation would return X and y unchanged.

        That validation takes longer than learning from a few rows.
        """
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype in (dtype if isinstance(dtype, list) else [dtype])
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and X.flags.c_contiguous
            and (y is None or (type(y) is np.ndarray and y.shape == X.shape[:1]))
            and not hasattr(self, "feature_names_in_")
            and bool(np.isfinite(X).all())
        )

    def _set_classes(self, y, classes=None):
        self.classes_ = distinct_labels(y) if classes is None else distinct_labels(classes, "classes")
        if len(self.classes_) < 2:
            message = f"{type(self).__name__} needs two classes; got one class: {self.classes_.tolist()[0]!r}."
            raise ValueError(message)

    def _signs(self, y):
        """Convert the class labels y (n,) to labels -1.0 and +1.0.

        The result has the shape (n,), with +1.0 for the second class, or (M, n) for M > 2 classes, with +1.0 in row k
        for class k.
        """
        classes = self.classes_
        return np.where(y == (classes[:, None] if len(classes) > 2 else classes[1]), 1.0, -1.0)

    def _refuse_unknown(self, y):
        is_known = np.zeros(len(y), dtype=bool)
        for label in self.classes_:
            is_known |= y == label
        if not is_known.all():
            unknown = np.unique(y[~is_known]).tolist()
            message = f"y has labels {unknown}, but the classes are {self.classes_.tolist()}."
            raise ValueError(message)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = getattr(self, "kernel", None) == PRECOMPUTED
        return tags

    def __setstate__(self, state):
        lacking = set(self._get_param_names()) - set(state or {})
        if lacking:
            names = ", ".join(sorted(lacking))
            message = f"{type(self).__name__}: the stored state is from another version and lacks {names}; fit again."
            raise ValueError(message)
        super().__setstate__(state)
        self._is_loaded = True
