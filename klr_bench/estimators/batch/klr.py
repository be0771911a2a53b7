"""Kernel logistic regression that chooses its settings: `KLR`."""

from __future__ import annotations

import math
import time
from dataclasses import KW_ONLY
from numbers import Integral

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.batch.approximation import move_support
from klr_bench.estimators.batch.comparison import CENTERS, leaves_or_centers
from klr_bench.estimators.batch.cross_validation import class_sizes
from klr_bench.estimators.batch.dual import DualCDKLR
from klr_bench.estimators.batch.folds import MOST_TRAINING, SMALL, folds_of, in_order
from klr_bench.estimators.batch.grid import Shape
from klr_bench.estimators.batch.leaf import CACHE_MB
from klr_bench.estimators.batch.nystroem import NystroemKLR
from klr_bench.estimators.batch.scaling import Scaling
from klr_bench.estimators.batch.selection import KERNELS, PROBLEMS, Search
from klr_bench.estimators.core.checks import checked_decision, checked_fit, print_progress
from klr_bench.estimators.core.classifier import Classifier
from klr_bench.estimators.core.multiclass import SEEDS
from klr_bench.estimators.core.parameters import (
    CLASS_WEIGHT,
    COUNT,
    JOBS,
    POSITIVE,
    SEED,
    VERBOSE,
    Interval,
    estimator,
    parameter,
)
from klr_bench.estimators.core.rows import with_scaled_columns

CENTERS_PER_ROOT, TIMED_ROWS, LEAST_CENTERS = 500, 100_000, 100
"""Used with a time limit: centers per square root of the seconds left, rows from which on fewer, and least number."""
TOL = 1e-5
"""Relative distance of the objective from its minimum at which `NystroemKLR` ends."""
PATIENCE = 2
"""The search ends after so many rounds in turn that do not improve."""


@estimator
class KLR(Classifier):
    r"""Kernel logistic regression that needs no settings and learns weights of the features.

    It is the classifier to try first, if a fit may take seconds to minutes: the features need no scaling, kernel, width
    and penalty are chosen by validation, outliers are limited, and the probabilities have a low log loss.  On two
    threads, 8,000 rows of 50 features take some seconds, and 100,000 rows about half a minute.  `OSKL` and `DualCDKLR`
    with given settings are much faster.

    Parameters
    ----------
    max_support : int or None, default=None
        Largest number of support vectors, >= 1; None is all rows up to 10,000, and for more rows 1,000, 3,000 or
        partitions.
        Fewer make the model smaller, and its predictions faster and less accurate; the fit takes longer.  They are not
        training rows, unless X is sparse or they are 3,000 or more: then they are rows drawn by k-means++.
    max_rounds : int, default=4
        Largest number of updates of the feature weights, >= 0; 0 keeps all standardized features equal, or the weights
        of the last fit.
    cv : int, splitter, iterable or None, default=None
        Number of folds >= 2, not more than the smallest class has rows; or an object of scikit-learn that splits the
        rows; or pairs of indices of training and validation rows.  None chooses the folds by the number of rows, as the
        notes say.  Folds that are not given keep copies of rows together.
    time_limit : float or None, default=None
        Seconds, > 0, exceeded by at most half in usual cases.  The search takes up to half of them, and begins no fit
        that is expected to take longer.  The final fit takes the others, with fewer support vectors if necessary.
    class_weight : dict, "balanced" or None, default=None
        Weights >= 0 of the classes, which multiply the weights of the rows.  "balanced" shifts the probabilities
        towards the rarer class.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of the centers.
    n_jobs : int or None, default=None
        Number of threads; None uses as many as BLAS would, -1 one per core.  The result does not depend on it.
    warm_start : bool, default=False
        Whether the search begins with the kernel, width, penalty and feature weights of the last fit, and tries only
        widths and penalties near them.  It is faster after rows were added.  As rows of the last fit are among the
        validation rows, their losses are a little too low.
    verbose : int or bool, default=False
        Whether to print the validation loss of each round, and of one model and of partitions if both are tried.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes in sorted order.
    model_ : DualCDKLR, NystroemKLR or LeafModels
        The final model, fitted to the weighted features.  LeafModels has a list `partitions` of their hyperplanes, and
        `leaves`, a list of the models of the leaves for each partition.  With moved support vectors, its objective,
        gradient norm and numbers of iterations and passes are those of the fit before.
    n_support_ : int
        Number of support vectors of `model_`.
    limits_ : ndarray of shape (2, n_features)
        Lowest and highest value of each feature; a value beyond is replaced by the limit.
    mean_, scale_ : ndarray of shape (n_features,)
        Weighted mean and standard deviation of each feature within its limits; the latter is 1 for a constant feature.
        After a fit to sparse rows, which are not centered, `mean_` is 0, or the limit nearest to 0; the kernel does not
        depend on it.
    feature_weights_ : ndarray of shape (n_features,)
        Weight of each standardized feature: the larger, the more f depends on the feature.  The mean square is 1 over
        the features that are not constant, whose weight is 0.
    temperature_ : float
        T of the probabilities softmax(f / T) of more than two classes; 1 for two classes, and if `model_` is
        LeafModels, whose f are logarithms of probabilities.
    best_params_ : dict
        Chosen `kernel`, `gamma` and `lam` of `model_`, and the number of `rounds`.  With centers for more than 10,000
        rows, `lam` is the best one of ``cv_results_`` times 10,000 / n_samples.
    cv_results_ : dict of ndarrays
        rounds, kernel, width (a multiple of gamma="scale"), lam, and mean_log_loss of the validation rows for each
        combination that was tried in all folds; those that were tried with fewer rows come first.
    best_score_ : float
        Negative validation log loss of the chosen combination.
    validation_losses_ : ndarray of shape (n_validation_rows,)
        Log loss of each validation row, in the order of the folds; their weighted mean is -`best_score_`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,), dtype object
        Names of the features, if X is a data frame whose column names are all strings.

    Notes
    -----
    .. math::

        & \min_f \; \frac{\lambda}{2} {\lVert f \rVert}^2 + \frac{1}{n} \sum_{i=1}^n \log(1 + e^{-y_i f(x_i)}) \\
        & k(x, z) = \exp \left( -\gamma \sum_j \lvert w_j (x_j - z_j) / s_j \rvert^p \right)

    The kernel is rbf, p = 2, or laplacian, p = 1, which suits classes that depend on single features; validation
    chooses it unless `max_support` is given, for which it is rbf.  Values that deviate from the median of their feature
    by more than ten typical deviations are moved to that limit, so that outliers have no effect; the typical deviation
    is the median of abs(x - median) over the values that differ from the median.  The features are divided by their
    standard deviations s and multiplied by weights w, which are learned; constant features have the weight 0.  The
    weights of a round are those of the last one, times the square root of the root mean squared derivative of f along
    each feature.  The rounds end when two in turn do not improve on the best one.  With several folds, they end with
    the first that is worse, and an improvement is more than a standard error of the validation log loss for up to 3,000
    rows.  The first round tries both kernels and all values of gamma and lambda of a grid, and each of the others the
    kernel of the round before and the penalties next to its best one; with more than 10,000 rows each kernel has its
    own rounds.  This is done in two repeats of 5-fold cross-validation for up to 500 rows of fewer than five classes,
    in one for up to 3,000, and with a single split for more.  After the first fold, and after the third, kernels and
    values of gamma are left out whose loss is significantly larger than the least one, apart from the best ones of the
    round before.  Folds of more than 1,000 training rows try only values of gamma and lambda next to the best ones of
    1,000 rows; the rounds use 1,500 rows of each fold, and two thirds of a single split, at most 5,000.

    The final model is fitted to all rows by `DualCDKLR` for up to 10,000 rows.  For more, `NystroemKLR` with 1,000
    centers and the leaves of two partitions, as of `PartitionedKLR`, are fitted to at most 50,000 rows other than the
    validation rows, and the one with the lower validation log loss is fitted to all rows; `NystroemKLR` has 3,000
    centers then if a narrower kernel was better in leaves.  With `max_support`, `time_limit` or several folds it is
    `NystroemKLR` with 3,000 centers.  With `max_support` it is approximated: support vectors, which begin as rows drawn
    by k-means++, their coefficients and gamma are moved to lower the cross-entropy of its probabilities and those of
    the small model at the training rows.

    With more than two classes, one f per class separates it from all others, and the probabilities are softmax(f / T).
    The temperature T is the number from 1 to 4 with the lowest validation log loss.

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit, Belkin, Science 383, 2024, for the update of the feature weights.  Marteau-Ferey,
    Bach, Rudi, NeurIPS 2019, for the final model.  Approximation of a model's probabilities by a smaller one: Hinton,
    Vinyals, Dean, "Distilling the knowledge in a neural network", 2015.

    Examples
    --------
    >>> from klr_bench import KLR
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = KLR(random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.95
    True
    """

    max_support: int | None = parameter(COUNT, None, default=None)
    _: KW_ONLY
    max_rounds: int = parameter(Interval(Integral, 0, None, closed="left"), default=4)
    cv: object = parameter("cv_object", None, default=None)
    time_limit: float | None = parameter(POSITIVE, None, default=None)
    class_weight: dict | str | None = parameter(*CLASS_WEIGHT, default=None)
    random_state: int | np.random.RandomState | None = parameter(*SEED, default=None)
    n_jobs: int | None = parameter(*JOBS, default=None)
    warm_start: bool = parameter("boolean", default=False)
    verbose: int | bool = parameter(*VERBOSE, default=False)

    _loss = "logit"
    _any_scale = True  # the features are standardized
    _keeps_rows = True  # folds and groups are those of all rows

    @checked_fit
    def fit(self, X, y, sample_weight=None, groups=None, callback=None):
        """Choose the settings and fit the model to the rows of X and their classes y; return self.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training rows; sparse ones are divided by the standard deviations, and stay sparse.
        y : array of shape (n_samples,)
            Classes of any type; of two classes, decision values above 0 mean the second in sorted order.
        sample_weight : array of shape (n_samples,), default=None
            Weights >= 0 of the rows, which also weight means, deviations and validation losses.
        groups : array of shape (n_samples,), default=None
            Rows with the same value are kept in the same fold.  None keeps equal rows of X together, unless their
            classes often differ.
        callback : callable, default=None
            ``callback(estimator, t)`` is called with t = 0 after each round and before partitions are tried, and then
            during the fit of `model_`, as by that class, unless it is LeafModels.  Returning True ends the search,
            leaves out the partitions, or ends the fit.

        Raises
        ------
        ValueError
            If parameters or data are refused, a class has only one row, or the training rows of a fold that is given,
            or made of `groups`, lack a class.
        """
        begun, is_stopped = time.monotonic(), False
        self._validate_params()
        limit = self.time_limit or math.inf
        deadline = begun + limit

        def left():
            return max(deadline - time.monotonic(), 0.0)

        def watch(_, t):
            nonlocal is_stopped
            is_stopped = not left() or (callback is not None and bool(callback(self, t)))
            return is_stopped

        kernels = KERNELS if self.max_support is None else ("rbf",)  # the support vectors of others do not move
        kept, search, y, weights, groups, random = self._choose(
            X, y, sample_weight, kernels, groups, callback, begun + limit / 2
        )
        n_centers = CENTERS
        if self._may_have_leaves(search) and not watch(self, 0):
            leaves, n_centers = leaves_or_centers(self, search, kept, y, groups, random)
            if leaves is not None:
                self.model_, self.temperature_ = leaves, 1.0
                self.best_params_ |= {"gamma": leaves.gamma, "lam": leaves.lam}
                return self
        rows, gamma = search.weighted(slice(None), kept.weights, kept.shape.width)
        seconds = search.seconds(len(y))
        del search  # free its memory
        self.model_ = self._model(kept, gamma, len(y), random, self.max_support, n_centers, seconds, left())
        self.model_.fit(rows, y, weights, callback=watch)
        is_small = self.max_support is not None and self.max_support < min(len(y), CENTERS)
        if is_small and not sp.issparse(rows) and not is_stopped and left():
            half = left() / 2
            end = time.monotonic() + half
            large = self._model(kept, gamma, len(y), random, None, CENTERS, seconds, half)
            f = large.fit(rows, y, weights, callback=lambda *_: time.monotonic() > end).decision_function(rows)
            move_support(self.model_, f, rows, weights, self.temperature_, random, deadline)
        self.best_params_ |= {"gamma": self.model_.gamma, "lam": self.model_.lam}
        return self

    @property
    def n_support_(self):
        return self.model_.n_support_

    def steps(self, n_samples):
        """Return the largest t of the callback, and that of the first checkpoint."""
        is_small = self.max_support is None and n_samples <= MOST_TRAINING
        return (DualCDKLR() if is_small else NystroemKLR()).steps(n_samples)

    def _choose(self, X, y, sample_weight, kernels, groups=None, callback=None, deadline=math.inf, each_kernel=False):
        """Choose one of the kernels, the settings and the feature weights.

        If `each_kernel` is true, or with more than 10,000 rows, each kernel has its own rounds.  Return the best round,
        the search, y, the weights of the rows or None, the codes of their groups or None, and the random numbers.
        """
        start = self._last_result(kernels)
        X, y, weights = self._first_rows(X, y, sample_weight)
        codes = np.searchsorted(self.classes_, y)
        shares = np.ones(len(y)) if weights is None else weights
        class_sizes(self, codes[shares > 0])
        random = check_random_state(self.random_state)
        folds = folds_of(self, X, codes, shares, groups, random.randint(SEEDS))
        groups = None if groups is None else in_order(np.asarray(groups))
        if not shares.all():
            rows = np.flatnonzero(shares)
            groups = None if groups is None else groups[rows]
            X, y, codes, shares, weights = X[rows], y[rows], codes[rows], shares[rows], weights[rows]
        self._scaling = scaling = Scaling.of(X, weights)
        self.limits_, self.mean_, self.scale_ = scaling.limits, scaling.origin, scaling.deviation
        self._dtype = np.dtype(np.float64 if len(y) <= SMALL and len(self.classes_) < PROBLEMS else np.float32)
        rows, signs = scaling.transform(X, self._dtype), np.atleast_2d(self._signs(y))
        center = ((scaling.mean - scaling.origin) / scaling.deviation)[scaling.columns]
        search = Search(rows, codes, signs, shares, folds, center, deadline)
        if start is not None:
            last = start[0][scaling.columns] if len(start[0]) == X.shape[1] else None
            start = None if last is None else (np.where(last > 0, last, 1.0), *start[1:])
        is_divided = start is None and (each_kernel or len(y) > MOST_TRAINING)
        turns = [(kernel,) for kernel in kernels] if is_divided else [kernels]
        kept = self._search(search, turns, callback, start)
        self.feature_weights_ = np.zeros(X.shape[1])
        self.feature_weights_[scaling.columns], self.temperature_ = kept.weights, float(kept.temperature)
        return kept, search, y, weights, groups, random

    def _last_result(self, kernels):
        """Return feature weights, shape and penalty of the last fit, or None without a warm start."""
        if not self.warm_start or "feature_weights_" not in vars(self):
            return None
        best = np.argmin(np.abs(self.cv_results_["mean_log_loss"] + self.best_score_))
        kernel, width, lam = (self.cv_results_[name][best] for name in ("kernel", "width", "lam"))
        return (self.feature_weights_, Shape(kernel, width), lam) if kernel in kernels else None

    def _may_have_leaves(self, search):
        """Return True if the rows are many, and nothing limits the model to a single one."""
        is_limited = self.max_support is not None or self.time_limit is not None
        return len(search.y) > MOST_TRAINING and len(search.folds) == 1 and not is_limited

    def _model(self, kept, gamma, n, random, max_support, n_centers=CENTERS, seconds=0.0, left=math.inf):
        """Return the final model.

        It has few centers if all rows are expected to take more `seconds` than are left.
        """
        shared = {
            "kernel": kept.shape.kernel,
            "gamma": gamma,
            "cache_size": CACHE_MB,
            "random_state": random.randint(SEEDS),
        }
        if max_support is None and n <= MOST_TRAINING and seconds <= left:
            return DualCDKLR(kept.lam, **shared)
        centers = "uniform" if max_support is None else "kmeans++"
        lam = kept.lam * min(MOST_TRAINING / n, 1.0)
        in_time = CENTERS_PER_ROOT * math.sqrt(left * min(TIMED_ROWS / n, 1.0))
        n_centers = int(min(n_centers, max(in_time, LEAST_CENTERS)))
        return NystroemKLR(lam, min(max_support or n_centers, n), centers=centers, tol=TOL, **shared)

    def _search(self, search, turns, callback, start):
        """Search with each group of kernels in `turns`, and return the best round."""
        kept, results, begun, is_stopped = None, [], time.monotonic(), False
        left = search.deadline - begun
        for turn, kernels in enumerate(turns, 1):
            best, n_worse = None, 0
            search.deadline = begun + left * turn / len(turns)
            for number, candidate in enumerate(search.rounds(self.max_rounds, kernels, start)):
                settings = f"{candidate.shape.kernel}, width {candidate.shape.width:g}, lam {candidate.lam:g}"
                seconds = time.monotonic() - begun
                print_progress(
                    self, f"round {number}: validation log loss {candidate.loss:.4f}, {settings}, {seconds:.1f} s"
                )
                results += [{"rounds": number, **result} for result in candidate.results]
                n_worse += 1
                if best is None or search.improves(candidate, best):
                    best, n_worse = candidate, 0
                    if kept is None or search.improves(candidate, kept):
                        kept, self.best_params_ = candidate, {"rounds": number, "kernel": candidate.shape.kernel}
                is_stopped = callback is not None and callback(self, 0)
                is_worse = len(search.folds) > 1 and candidate.loss > best.loss
                if is_stopped or search.is_late() or is_worse or n_worse == PATIENCE:
                    break
            if is_stopped:
                break
        last = None if is_stopped else search.with_all_rows(kept)
        if last is not None:
            kept, results = (
                last,
                results + [{"rounds": self.best_params_["rounds"], **result} for result in last.results],
            )
        self.cv_results_ = {name: np.array([result[name] for result in results]) for name in results[0]}
        self.best_score_, self.validation_losses_ = -float(kept.loss), kept.losses
        return kept

    @checked_decision
    def decision_function(self, X):
        """Evaluate the decision function at each row of X.

        The result is float64 of shape (n_samples,), or (n_samples, n_classes) for more than two classes.
        """
        check_is_fitted(self, "model_")
        rows = self._scaling.transform(self._validate(X, dtype=self._dtypes()), self._dtype)
        return self.model_.decision_function(with_scaled_columns(rows, self.feature_weights_[self._scaling.columns]))

    def _scores(self, f):
        return f / self.temperature_
