"""Choice of parameters by cross-validated log loss: `KernelClassifierCV`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import KW_ONLY
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit, logsumexp
from scipy.stats import rankdata
from sklearn.model_selection import ParameterGrid, StratifiedKFold, check_cv
from sklearn.utils._param_validation import InvalidParameterError, StrOptions
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.checks import checked_decision, checked_fit, print_progress
from klr_bench.estimators.core.kernel_classifier import KernelClassifier
from klr_bench.estimators.core.kernels import ANY_KERNEL, gamma_of
from klr_bench.estimators.core.multiclass import SEEDS
from klr_bench.estimators.core.parameters import (
    CLASS_WEIGHT,
    JOBS,
    PRECOMPUTED,
    VERBOSE,
    Interval,
    estimator,
    fixed,
    parameter,
)
from klr_bench.estimators.core.rows import evenly_spaced
from klr_bench.estimators.core.threads import parallel_map

WIDTHS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Values of gamma, as multiples of 1 / (n_features variance)."""
FOLDS = 5
"""Default number of folds."""
COARSE = 1000
"""Number of training rows with which a whole grid is tried; more rows are used only next to its best point."""
FIRST_FOLDS = 2
"""Number of folds after which values of gamma are left out whose loss is larger by more than a standard error."""
LEAST_ROWS = 10
"""Number of validation rows from which a standard error is computed."""
WORSE = 1.05
"""A path of decreasing penalties ends when the loss is larger than its minimum by this factor."""
GRID = ["array-like", StrOptions({"auto"})]
"""Constraints of a grid."""


@estimator
class KernelClassifierCV(KernelClassifier):
    """Base class of kernel classifiers that choose parameters by cross-validated log loss.

    A subclass has `_plain`, the class whose parameters are chosen; `_grids`, which maps the name of each grid but
    `gammas` to the parameter and its default values; and `_fold_losses(X, y, codes, weights, gamma, settings)`, which
    returns a function of the training and the validation rows of a fold that returns the log losses of the latter,
    (n_settings, n_valid).

    Parameters
    ----------
    gammas : array of shape (n_gammas,) or "auto", default="auto"
        Values > 0 of gamma.  "auto" is 0.03, 0.1, 0.3, 1 and 3 times gamma="scale" for all rows with their weights, and
        a single value for kernels without gamma.  The scores of some of these are nan: folds of more than 1,000
        training rows leave out values that are not next to the best one of 1,000 rows, and after two folds those are
        left out whose loss is larger by more than a standard error.
    cv : int, splitter, iterable or None, default=None
        Number of folds >= 2, which are stratified, shuffled by `random_state`, and not more than the smallest class has
        rows; or an object of scikit-learn that splits the rows; or pairs of indices of training and validation rows.
        None is 5 folds.
    kernel : {"rbf", "poly", "linear", "laplacian", "sigmoid", "precomputed"} or callable, default="rbf"
        As for the class without CV.
    class_weight : dict, "balanced" or None, default=None
        Weights >= 0 of the classes, which multiply the weights of the rows.
    n_jobs : int or None, default=None
        Number of threads; None uses as many as BLAS would, -1 one per core.  The result does not depend on it.
    verbose : int or bool, default=False
        Whether to print the best log loss for each gamma, in the first two folds and the others.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes in sorted order, in the dtype of y.
    best_params_ : dict
        The parameters with the highest mean score; the first such ones in `cv_results_`.
    best_score_ : float
        Their mean score.
    best_index_ : int
        Their index in `cv_results_`.
    cv_results_ : dict
        As that of scikit-learn's `GridSearchCV`: params, a list of dicts; and arrays of shape (n_candidates,):
        mean_test_score, std_test_score, rank_test_score, split0_test_score and so on, and param_gamma and so on.  A
        score is the negative mean log loss of the validation rows, nan if a fit failed or was left out.
    n_support_ : int
        Number of support vectors of `best_estimator_`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,), dtype object
        Names of the features, if X is a data frame whose column names are all strings.
    """

    _copied = ("n_support_",)
    """Attributes of `best_estimator_` that self has, too."""

    gammas: ArrayLike | str = parameter(*GRID, default="auto")
    _: KW_ONLY
    cv: object = parameter("cv_object", None, default=None)
    kernel: str | Callable[..., Any] = parameter(*ANY_KERNEL, default="rbf")
    gamma: str = fixed("scale")
    class_weight: dict | str | None = parameter(*CLASS_WEIGHT, default=None)
    n_jobs: int | None = parameter(*JOBS, default=None)
    verbose: int | bool = parameter(*VERBOSE, default=False)

    @checked_fit
    def fit(self, X, y, sample_weight=None):
        """Choose the parameters, and fit the classifier to all rows; return self.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training rows; for a precomputed kernel its values (n_samples, n_samples).
        y : array of shape (n_samples,)
            Classes of any type; of two classes, decision values above 0 mean the second in sorted order.
        sample_weight : array of shape (n_samples,), default=None
            Weights >= 0 of the rows, which also weight the validation losses.

        Raises
        ------
        ValueError
            If parameters or data are refused, or a class is missing in the training rows of a fold.
        """
        self._keeps_rows = self._has_own_folds()
        X, y, weights = self._first_rows(X, y, sample_weight)
        self._seed = self.random_state if isinstance(self.random_state, Integral) else self._random.randint(SEEDS)
        codes, shares = np.searchsorted(self.classes_, y), np.ones(len(y)) if weights is None else weights
        self._n_rows = np.count_nonzero(shares)
        folds = self._folds(X, codes, shares)
        grids = {name: self._values(of, name, default) for of, (name, default) in self._grids.items()}
        gammas, settings = self._gammas(X, weights), list(ParameterGrid(grids))
        scores = self._fold_scores((X, y, codes, weights), folds, gammas, settings)
        self._rank([{"gamma": gamma, **setting} for gamma in gammas for setting in settings], scores)
        self.best_estimator_ = self._learner(**self.best_params_).fit(X, y, weights)
        for name in self._copied:
            setattr(self, name, getattr(self.best_estimator_, name))
        return self

    @checked_decision
    def decision_function(self, X):
        """Evaluate the decision function at each row of X.

        The result is float64 of shape (n_samples,), or (n_samples, n_classes) for more than two classes.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(self._validate(X, dtype=self._dtypes()))

    def _scores(self, f):
        return self.best_estimator_._scores(f)

    def _learner(self, **parameters):
        """Return a classifier of class `_plain` with the given parameters and those of self."""
        names = self._plain._get_param_names()
        shared = {name: value for name, value in self.get_params(deep=False).items() if name in names}
        return self._plain(**{**shared, "random_state": self._seed, "class_weight": None, **parameters})

    def _gammas(self, X, weights):
        if isinstance(self.gammas, str) and (callable(self.kernel) or self.kernel in ("linear", PRECOMPUTED)):
            return ["scale"]
        return self._values("gammas", "gamma", [float(width * gamma_of("scale", X, weights)) for width in WIDTHS])

    def _values(self, grid, name, default):
        """Return the values in the grid named `grid` of a parameter; refuse invalid ones."""
        values = getattr(self, grid)
        if isinstance(values, str):
            return list(default)
        constraint = next(option for option in self._plain._parameter_constraints[name] if isinstance(option, Interval))
        values = np.asarray(values)
        values = values.tolist() if values.ndim == 1 else []
        if not values or not all(constraint.is_satisfied_by(value) and not isinstance(value, bool) for value in values):
            message = (
                f"The {grid!r} parameter of {type(self).__name__} must be 'auto' or a list of values, each "
                f"{constraint}. Got {getattr(self, grid)!r} instead."
            )
            raise InvalidParameterError(message)
        return values

    def _has_own_folds(self):
        """Return True if the folds are given by the user, for all rows."""
        return self.cv is not None and not isinstance(self.cv, Integral)

    def _folds(self, X, codes, shares):
        """Return the training and the validation rows of each fold, as a list of pairs of indices."""
        rows = np.flatnonzero(shares)  # those of weight 0 are kept for given folds, and for a precomputed kernel
        sizes = class_sizes(self, codes[rows])
        if self._has_own_folds():
            folds = check_cv(self.cv).split(X, codes)
            folds = [[part[shares[part] > 0] for part in map(np.asarray, fold)] for fold in folds]
        else:
            cv = StratifiedKFold(n_folds(self.cv, sizes), shuffle=True, random_state=self._seed)
            folds = [[rows[part] for part in fold] for fold in cv.split(rows, codes[rows])]
        check_folds(self, folds, codes, "fewer folds")
        return folds

    def _fold_scores(self, data, folds, gammas, settings):
        """Return the scores (n_folds, n_gammas n_settings).

        They are nan for values of gamma that are left out.
        """
        codes, weights, begun = data[2], data[3], time.monotonic()
        shares = np.ones(len(codes)) if weights is None else weights
        scores = np.full((len(folds), len(gammas), len(settings)), np.nan)
        is_race, kept = isinstance(self.gammas, str) and len(gammas) > 1, range(len(gammas))
        if is_race and max(len(train) for train, _ in folds) > COARSE:
            kept = self._near_best(data, folds[0], gammas, settings)
        n_first = FIRST_FOLDS if is_race else len(folds)
        for part in filter(len, (range(len(folds))[:n_first], range(len(folds))[n_first:])):
            best, valid = [], np.concatenate([folds[i][1] for i in part])
            for place in kept:
                losses = self._fold_losses(*data, gammas[place], settings)
                of_folds = parallel_map(lambda i: losses(*folds[i]), part)  # noqa: B023
                for i, of_fold in zip(part, of_folds, strict=True):
                    scores[i, place] = -np.average(of_fold, axis=1, weights=shares[folds[i][1]])
                means = np.nan_to_num(scores[part, place].mean(axis=0), nan=-np.inf)
                best.append(np.hstack(of_folds)[np.argmax(means)])
                seconds = time.monotonic() - begun
                print_progress(self, f"gamma {gammas[place]}: log loss {-means.max():.4f}, {seconds:.1f} s")
            kept = [kept[i] for i in unbeaten(np.array(best), shares[valid], 1.0)]
        return scores.reshape(len(folds), -1)

    def _near_best(self, data, fold, gammas, settings):
        """Return the places of the best gamma for few rows of a fold, and of those next to it."""
        n = len(gammas)
        few = [evenly(part, data[2], COARSE) for part in fold]
        if len(np.unique(data[2][few[0]])) < len(self.classes_):
            return range(n)
        rows, places = np.concatenate(few), np.split(np.arange(sum(map(len, few))), [len(few[0])])
        X, y, codes, weights = (None if values is None else values[rows] for values in data)
        shares = None if weights is None else weights[places[1]]

        def loss(gamma):
            losses = self._fold_losses(X, y, codes, weights, gamma, settings)(*places)
            return np.nan_to_num(np.average(losses, axis=1, weights=shares), nan=np.inf).min()

        return neighbors(range(n), int(np.argmin(parallel_map(loss, gammas))))

    def _rank(self, params, scores):
        """Set the attributes of the search from the scores (n_folds, n_candidates)."""
        means = scores.mean(axis=0)
        ordered = np.nan_to_num(means, nan=-np.inf)
        self.best_index_ = int(np.argmax(ordered))
        self.best_params_, self.best_score_ = params[self.best_index_], float(means[self.best_index_])
        self.cv_results_ = {
            "params": params,
            **{f"param_{name}": np.array([candidate[name] for candidate in params]) for name in params[0]},
            **{f"split{i}_test_score": score for i, score in enumerate(scores)},
            "mean_test_score": means,
            "std_test_score": scores.std(axis=0),
            "rank_test_score": rankdata(-ordered, method="min").astype(np.int32),
        }


def neighbors(grid, value):
    """Return a value of a grid and its neighbors on both sides."""
    place = grid.index(value)
    return grid[max(place - 1, 0) : place + 2]


def evenly(rows, codes, n):
    """Return at most n of some rows, evenly spaced over their classes."""
    if len(rows) <= n:
        return rows
    order = np.argsort(codes[rows], kind="stable")
    return rows[np.sort(order[evenly_spaced(len(order), n)])]


def unbeaten(losses, shares, n_errors):
    """Return the places of candidates whose loss is not significantly larger than the least one.

    The means of their losses (n_candidates, n_rows) are at most `n_errors` standard errors larger.  Fewer than
    LEAST_ROWS rows leave out none.
    """
    if losses.shape[1] < LEAST_ROWS:
        return np.arange(len(losses))
    means = np.nan_to_num(np.average(losses, axis=1, weights=shares), nan=np.inf)
    excess = (losses - losses[means.argmin()]) * shares / shares.mean()
    errors = excess.std(axis=1) / math.sqrt(excess.shape[1])
    return np.flatnonzero(~(excess.mean(axis=1) > n_errors * errors))


def class_sizes(estimator, codes):
    """Return the number of rows of each class; raise ValueError if a class has only one row."""
    sizes = np.bincount(codes)
    if sizes.min() < 2:
        label = estimator.classes_[sizes.argmin()]
        message = f"{type(estimator).__name__} needs at least two rows of each class, got one of class {label}."
        raise ValueError(message)
    return sizes


def check_folds(estimator, folds, codes, instead):
    """Raise ValueError if there are no folds, or one lacks validation rows or a class."""
    name = type(estimator).__name__
    if not folds:
        message = f"The 'cv' parameter of {name} must be folds of the rows. Got {estimator.cv!r} instead."
        raise InvalidParameterError(message)
    for i, (train, valid) in enumerate(folds):
        if len(np.unique(codes[train])) < len(estimator.classes_) or not len(valid):
            needed = "training rows of each class and validation rows, with weights above 0"
            message = f"{name}: fold {i} needs {needed}; use {instead}."
            raise ValueError(message)


def n_folds(cv, sizes):
    """Return the number of folds for the parameter cv, at most the size of the smallest class."""
    return max(min(cv or FOLDS, sizes.min()), 2)


def log_losses(f, y, *, is_softmax=False):
    """Return the log loss of each row, for decision values f (n, k) and class indices y (n,).

    With k > 1 the probabilities are the softmax of f, or of the logarithms of sigmoid(f).
    """
    if f.shape[1] == 1:
        return -log_expit(np.where(y == 1, f[:, 0], -f[:, 0]))
    logs = f if is_softmax else log_expit(f)
    return logsumexp(logs, axis=1) - logs[np.arange(len(y)), y]
