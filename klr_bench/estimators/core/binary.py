"""Base classes of binary classifiers: common parameters, validation and prediction."""

from __future__ import annotations

from dataclasses import KW_ONLY
from operator import is_not

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from klr_bench.estimators.core.classifier import (
    Classifier,
    checked_data,
    distinct_labels,
    refuse_balanced,
    refuse_scale,
    refuse_single,
    refuse_weightless,
    row_weights,
)
from klr_bench.estimators.core.kernels import KERNELS, MORE_KERNELS, PRECOMPUTED, WIDTHS, Kernel, gamma_of
from klr_bench.estimators.core.multiclass import fit_classes
from klr_bench.estimators.core.parameters import NUMBER, POSITIVE, SEED, estimator, parameter
from klr_bench.estimators.core.rows import make_writable

ANY_KERNEL = [StrOptions({*KERNELS, *MORE_KERNELS}), callable]
"""Constraints of `kernel`, for classes that accept all kernels."""


def _has_probabilities(classifier):
    """Return True if decision values are logarithms of odds, otherwise raise AttributeError."""
    if classifier._is_logistic():
        return True
    loss = getattr(classifier, "loss", None)
    why = f"requires loss='logit', got loss={loss!r}" if loss else "requires the logistic loss"
    message = f"{type(classifier).__name__}: predict_proba {why}; use decision_function."
    raise AttributeError(message)


class Probabilities:
    """Mixin for classifiers with class probabilities, computed from decision values.

    They exist if `_is_logistic()` is true.  For more than two classes they are the softmax of `_scores(f)`.
    """

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

    def _is_logistic(self):
        return getattr(self, "loss", "logit") == "logit"

    def _scores(self, f):
        """Return scores with the probabilities as their softmax, for decision values f (n, m)."""
        return log_expit(f)


class BinaryClassifier(Classifier):
    """Base class of binary classifiers, extended to more than two classes by one-vs-rest.

    With two classes `decision_function` returns f, (n_samples,), otherwise the f_k, (n_samples, n_classes); the class
    with the largest is predicted.  A subclass has `decision_function`, and `fit`: one that learns all f_k itself, or
    one for two classes with the decorator `one_vs_rest`.  Then it has `_gather`, too, which sets its fitted
    attributes from those of the learners for two classes in `estimators_`.
    """

    _valid_parameters = None
    """Values of the parameters when they were last validated by `partial_fit`."""
    _fixed = ()
    """Parameters that determine the state and cannot change between calls of `partial_fit`."""

    def _has_many(self):
        return len(getattr(self, "classes_", ())) > 2

    _fit_classes = fit_classes
    """Method that fits the learners in `estimators_`."""

    def _forget(self):
        """Validate the parameters and remove the attributes of an earlier fit."""
        self._validate_params()
        self._clear()
        self._begun_with = {name: getattr(self, name) for name in self._fixed}

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
        self._check_scale(X)
        return X, y, weights

    def _check_scale(self, X):
        """Raise ValueError if squares of the values of X overflow or underflow."""
        refuse_scale(self, X)

    def _next_rows(self, X, y, classes, sample_weight=None, *, first):
        """Validate and return the rows X, the labels y and the weights passed to `partial_fit`.

        Only the first call forgets an earlier fit, and sets features and classes.  `_weighted_rows` has the weights.
        """
        if first:
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
            self._check_scale(X)
        return X, y, weights

    def _weighted_rows(self, X, y, sample_weight, *, whole):
        """Remove the rows of weight 0; return the other rows, their labels, and their weights.

        The weights (n,) are those of the rows times those of their classes, or None if there are none.  If X is the
        `whole` of the data, each class needs a positive weight.  If `_keeps_rows()` is true, no row is removed, and
        weights can be 0.
        """
        if not whole:
            refuse_balanced(self)
        weights = row_weights(sample_weight, getattr(self, "class_weight", None), y, self.classes_)
        if weights is None or weights.all():
            return X, y, weights
        if whole:
            refuse_weightless(self, weights, y)
        if self._keeps_rows():
            return X, y, weights
        rows = np.flatnonzero(weights)
        return X[rows], y[rows], weights[rows]

    def _keeps_rows(self):
        """Return True if something refers to rows by index, such as columns of a kernel matrix."""
        return getattr(self, "kernel", None) == PRECOMPUTED

    def _dtypes(self):
        return [np.float64, np.float32]

    def _validate(self, *data, dtype, reset=False):
        if not reset and self._is_valid(*data, dtype=dtype):
            return data[0] if len(data) == 1 else data
        return checked_data(self, *data, dtype=dtype, reset=reset, order="C", accept_large_sparse=True)

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
        labels = distinct_labels(y) if classes is None else distinct_labels(classes, "classes")
        refuse_single(labels, self)
        self.classes_ = labels

    def _signs(self, y):
        """Convert the class labels y (n,) to labels -1.0 and +1.0.

        The result has the shape (n,), with +1.0 for the second class, or (M, n) for M > 2 classes, with +1.0 in row k
        for class k.
        """
        positive = y == (self.classes_[:, None] if self._has_many() else self.classes_[1])
        return np.where(positive, 1.0, -1.0)

    def _refuse_unknown(self, y):
        is_known = np.zeros(len(y), dtype=bool)
        for label in self.classes_:
            is_known |= y == label
        if not is_known.all():
            unknown = np.unique(y[~is_known]).tolist()
            message = f"y has labels {unknown}, but the classes are {self.classes_.tolist()}."
            raise ValueError(message)


@estimator
class BinaryKernelClassifier(Probabilities, BinaryClassifier):
    """Base class of binary classifiers with a kernel.

    Parameters
    ----------
    kernel : {"rbf", "poly", "linear"}, default="rbf"
        exp(-gamma ||x - z||^2), (gamma x'z + coef0)^degree or x'z.  The papers use the rbf kernel, and (x'z + 1)^2 for
        the texts of RCV1, which is kernel="poly", gamma=1, degree=2, coef0=1.
    gamma : float, {"scale", "auto", "median"} or None, default="scale"
        gamma > 0 of the rbf, poly, laplacian and sigmoid kernels.  "scale" is 1 / (n_features X.var()), "auto" or None
        is 1 / n_features, "median" is 1 / (2 m^2) with the median distance m of rows; computed from the rows of `fit`
        or of the first `partial_fit`, which count as often as their weights say, unlike in scikit-learn's SVC.  Try
        0.1, 0.3, 1 and 3 times the value of "scale", the grid of configs/experiment/own_file.yaml.  The papers use
        1 / (2 s^2) with a percentile s of the distances between training rows: the 20th in Zhang et al., ICML 2013, the
        5th in Zhang et al., AAAI 2012.
    degree : float, default=3
        Degree > 0 of the poly kernel.
    coef0 : float, default=1.0
        Constant of the poly and sigmoid kernels; at 0 or above the poly kernel is positive definite for an integer
        `degree`.
    random_state : int, RandomState instance or None, default=None
        Seed of all random draws; an integer makes results reproducible.
    dtype : {"float32", "float64"} or None, default=None
        Precision of the kernel values; None keeps float32 rows as they are and converts all others to float64.  float32
        takes half the time or less.  Coefficients are always float64.
    """

    _: KW_ONLY
    kernel: str = parameter(StrOptions(set(KERNELS)), default="rbf")
    gamma: float | str | None = parameter(POSITIVE, StrOptions(set(WIDTHS)), None, default="scale")
    degree: float = parameter(POSITIVE, default=3)
    coef0: float = parameter(NUMBER, default=1.0)
    random_state: int | np.random.RandomState | None = parameter(*SEED, default=None)
    dtype: str | None = parameter(StrOptions({"float32", "float64"}), None, default=None)

    def __init__(self, kernel, gamma, degree, coef0, random_state, dtype):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.random_state = random_state
        self.dtype = dtype

    def _forget(self):
        super()._forget()
        self._random = check_random_state(self.random_state)

    def _dtypes(self):
        return super()._dtypes() if self.dtype is None else self.dtype

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == PRECOMPUTED
        return tags

    def _kernel(self, X, weights=None, center=0.0):
        if self.kernel == PRECOMPUTED:
            return Kernel(PRECOMPUTED, matrix=X)
        return Kernel(self.kernel, gamma_of(self.gamma, X, weights, center), self.degree, self.coef0)

    def _rows(self, X):
        """Return X, or a column of the indices of its rows if it is a precomputed kernel matrix."""
        if self.kernel != PRECOMPUTED:
            return X
        n, n_columns = X.shape
        if n != n_columns:
            message = f"kernel='precomputed': expected a square matrix of the training rows, got shape {X.shape}."
            raise ValueError(message)
        return np.arange(n, dtype=X.dtype)[:, None]
