"""Kernel logistic regression in the leaves of partitions of the rows: `PartitionedKLR`."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, replace
from functools import partial
from numbers import Integral

import numpy as np
from scipy.special import log_expit, log_softmax, logsumexp
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.batch.klr import KLR
from klr_bench.estimators.batch.leaf import distinct, fit_leaf, in_this_process
from klr_bench.estimators.batch.partition import POWER_STEPS, ROWS, WeightedRows, divided, hashed, shuffled
from klr_bench.estimators.batch.selection import Search
from klr_bench.estimators.core.checks import checked_decision, checked_fit
from klr_bench.estimators.core.classifier import Classifier
from klr_bench.estimators.core.cross_validation import class_sizes
from klr_bench.estimators.core.multiclass import SEEDS
from klr_bench.estimators.core.parameters import (
    CLASS_WEIGHT,
    COUNT,
    JOBS,
    SEED,
    VERBOSE,
    Interval,
    estimator,
    parameter,
)
from klr_bench.estimators.core.rows import slices, stacked
from klr_bench.estimators.core.threads import parallel_map

SEARCH_ROWS = 8000
"""Largest number of rows from which settings and feature weights are chosen."""
OF_EACH_CLASS = 5
"""Number of rows of each class among these, if it has as many."""
TUNED_LEAVES, TUNED_ROWS = 3, 20_000
"""Smallest numbers of leaves, and of their rows, with which width and penalty are chosen."""
WIDTHS, LAMS = (1.0, 2.0, 4.0, 8.0, 16.0), (3.0, 1.0, 0.3, 0.1)
"""Values of gamma and lam that are tried in the leaves, as multiples of those of all rows."""
VALIDATION_SHARE = 0.2


@estimator
class PartitionedKLR(Classifier):
    r"""Kernel logistic regression on parts of the rows, in time proportional to their number.

    Use it for more than about 10,000 rows, where one model for all rows takes too long.  Time and memory are
    proportional to the number of rows; features need no scaling, and the settings are chosen by validation, as by
    `KLR`.

    Parameters
    ----------
    leaf_size : int, default=8000
        Largest number of rows of a leaf, >= 1; only equal rows can be more.  Time is proportional to it, and memory to
        its square.
    n_partitions : int, default=2
        Number of partitions P >= 1.  Time, memory and the time of predictions are proportional to it.
    directions : {"random", "principal"}, default="random"
        Directions that divide the weighted features: random ones, with more variance where the rows have more, or those
        of the largest variance.  With "principal" all partitions but the first have random ones.
    max_support : int or None, default=None
        Largest number of support vectors of a leaf, >= 1; None is all its rows.  Fewer make predictions faster and less
        accurate, and the fit slower.  They are moved as those of `KLR`, unless X is sparse.
    max_rounds : int, default=4
        Largest number of updates of the feature weights, >= 0; 0 keeps all standardized features equal.
    cv : int or None, default=None
        Number of folds, >= 2, of the search on at most 8,000 rows; None chooses them as `KLR` does.
    class_weight : dict, "balanced" or None, default=None
        Weights >= 0 of the classes, which multiply the weights of the rows.  "balanced" shifts the probabilities
        towards the rarer class.
    random_state : int, RandomState instance or None, default=None
        Seed of all random draws.  The result does not depend on the order of the rows.
    n_jobs : int or None, default=None
        Number of threads; None uses as many as BLAS would, -1 one per core.  The result does not depend on it.
    verbose : int or bool, default=False
        Whether to print the progress of the fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes in sorted order.
    partitions_ : list of n_partitions objects
        The hyperplanes of each partition; a single partition if it has a single leaf.
    leaves_ : list of lists
        The models of the leaves of each partition.
    limits_ : ndarray of shape (2, n_features)
        Lowest and highest value of each feature; a value beyond is replaced by the limit.
    mean_, scale_ : ndarray of shape (n_features,)
        Mean and standard deviation of each feature within its limits, as of `KLR`.
    feature_weights_ : ndarray of shape (n_features,)
        Weight of each standardized feature, as of `KLR`.
    temperature_ : float
        T of the probabilities softmax(f / T) of more than two classes in a leaf; 1 for two classes.
    best_params_ : dict
        Chosen `gamma`, the `lam` of a leaf of average weight, and the number of `rounds`.
    cv_results_ : dict of ndarrays
        rounds, width, lam and mean_log_loss of each combination of the search, as of `KLR`, with rounds -1 for those
        tried in leaves, whose width is a multiple of the gamma of the search.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,), dtype object
        Names of the features, if X is a data frame whose column names are all strings.

    Notes
    -----
    .. math::

        P(y \mid x) = \frac{1}{P} \sum_{p=1}^P P_{\ell_p(x)}(y \mid x), \quad
        \min_{f_\ell} \; \frac{\lambda_\ell}{2} {\lVert f_\ell \rVert}^2
        + \frac{1}{n_\ell} \sum_{i \in \ell} \log(1 + e^{-y_i f_\ell(x_i)})

    A partition divides the rows at the median of their projections onto a direction, and each part again, until a part
    has at most `leaf_size` rows; :math:`\ell_p(x)` is the leaf of the row x in partition p.  The model of a leaf is
    that of `DualCDKLR`, fitted to its rows alone.  The probabilities of several partitions, with different directions,
    are averaged, which makes the borders between leaves smooth.  A leaf with n rows of
    one class gives each of the others the probability of this class divided by 1 + n.

    Features are scaled and weighted as by `KLR`, with its search for weights, width and penalty on at most 8,000 rows.
    A narrower kernel is better if more rows are in the same space: therefore 1 to 16 times its gamma and 0.1 to 3 times
    its penalty are tried in some leaves of the first partition, a fifth of whose rows is for validation.

    References
    ----------
    Zhang, Duchi, Wainwright, "Divide and conquer kernel ridge regression", JMLR 16, 2015.  Steinwart, Thomann,
    "liquidSVM", arXiv 1702.06899, 2017: local models in cells.  Beaglehole, Holzmüller, Radhakrishnan, Belkin, "xRFM",
    arXiv 2508.10053, 2025: trees with learned feature weights.

    Examples
    --------
    >>> from klr_bench import PartitionedKLR
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> model = PartitionedKLR(leaf_size=200, max_rounds=0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95, [len(leaves) for leaves in model.leaves_]
    (True, [4, 4])
    """

    leaf_size: int = parameter(COUNT, default=8000)
    _: KW_ONLY
    n_partitions: int = parameter(COUNT, default=2)
    directions: str = parameter(StrOptions({"random", "principal"}), default="random")
    max_support: int | None = parameter(COUNT, None, default=None)
    max_rounds: int = parameter(Interval(Integral, 0, None, closed="left"), default=4)
    cv: int | None = parameter(Interval(Integral, 2, None, closed="left"), None, default=None)
    class_weight: dict | str | None = parameter(*CLASS_WEIGHT, default=None)
    random_state: int | np.random.RandomState | None = parameter(*SEED, default=None)
    n_jobs: int | None = parameter(*JOBS, default=None)
    verbose: int | bool = parameter(*VERBOSE, default=False)

    _loss = "logit"
    _any_scale = True  # the features are standardized

    @checked_fit
    def fit(self, X, y, sample_weight=None):
        """Choose the settings, divide the rows of X and fit a model to each leaf; return self.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training rows; sparse ones are divided by the standard deviations, and stay sparse.  A memory-mapped
            float32 or float64 array is not copied.
        y : array of shape (n_samples,)
            Classes of any type; of two classes, decision values above 0 mean the second in sorted order.
        sample_weight : array of shape (n_samples,), default=None
            Weights >= 0 of the rows, which also weight validation losses.

        Raises
        ------
        ValueError
            If parameters or data are refused, or a class has only one row.
        """
        X, y, weights = self._first_rows(X, y, sample_weight)
        codes, random = np.searchsorted(self.classes_, y), check_random_state(self.random_state)
        class_sizes(self, codes)
        weights = np.ones(len(y)) if weights is None else weights / weights.mean()
        hashes = hashed(X, codes)
        order = shuffled(hashes, weights, random.randint(SEEDS))
        lam = self._search(X, y, codes, weights, order, random)
        rows = self._rows(X)
        tuning = np.random.RandomState(random.randint(SEEDS))
        steps = [POWER_STEPS if self.directions == "principal" and p == 0 else 0 for p in range(self.n_partitions)]
        parts = [divided(rows, order, self.leaf_size, n_steps, random) for n_steps in steps]
        if len(parts[0][1]) == 1:
            del parts[1:]
        self.partitions_ = [partition for partition, _ in parts]
        lam *= min(SEARCH_ROWS, len(y)) * len(parts[0][1]) / len(y)  # the same penalty of a row
        if len(parts[0][1]) > 1:
            lam = self._tune(rows, y, codes, weights, parts[0][1], lam, tuning)
        self.best_params_["lam"] = lam
        view, gamma, T = replace(rows, X=None), self.best_params_["gamma"], self.temperature_

        def job(n_leaves, leaf, seed):
            leaf, totals = distinct(leaf, hashes, weights)
            penalty = lam * len(y) / n_leaves / totals.sum()
            return leaf, partial(fit_leaf, view, codes[leaf], totals, penalty, gamma, T, self.max_support, seed)

        jobs = [partial(job, len(leaves), leaf, random.randint(SEEDS)) for _, leaves in parts for leaf in leaves]
        models = iter(in_this_process(X, jobs))
        self.leaves_ = [[next(models) for _ in leaves] for _, leaves in parts]
        return self

    def _search(self, X, y, codes, weights, order, random):
        """Choose scaling, feature weights and width from the first rows; return the penalty."""
        klr = KLR(max_rounds=self.max_rounds, cv=self.cv, random_state=random.randint(SEEDS), verbose=self.verbose)
        sample = order[:SEARCH_ROWS]
        if len(sample) < len(order):
            of_classes = [order[codes[order] == k][:OF_EACH_CLASS] for k in range(len(self.classes_))]
            sample = np.array([*dict.fromkeys([*np.concatenate(of_classes).tolist(), *sample.tolist()])][:SEARCH_ROWS])
        kept, search, *_ = klr._choose(X[sample], y[sample], weights[sample])
        _, gamma = search.weighted(slice(None), kept.weights, kept.width)
        self._scaling, self._dtype, self.temperature_ = klr._scaling, klr._dtype, klr.temperature_
        self.limits_, self.mean_, self.scale_ = klr.limits_, klr.mean_, klr.scale_
        self.feature_weights_, self.cv_results_ = klr.feature_weights_, klr.cv_results_
        self.best_params_ = klr.best_params_ | {"gamma": gamma}
        return kept.lam

    def _rows(self, X):
        return WeightedRows(X, self._scaling, self.feature_weights_[self._scaling.columns], self._dtype)

    def _tune(self, rows, y, codes, weights, leaves, lam, random):
        """Choose gamma and temperature by validation in some leaves; return the penalty."""
        mixed = [part[: self.leaf_size] for part in leaves if np.ptp(codes[part[: self.leaf_size]])]
        if not mixed:
            return lam
        n_tuned = max(TUNED_LEAVES, TUNED_ROWS // len(mixed[0]))
        places = random.permutation(len(mixed))[:n_tuned]
        parts = [np.split(mixed[place], [math.ceil(VALIDATION_SHARE * len(mixed[place]))]) for place in places]
        folds, lams = [(train, valid) for valid, train in parts], [lam * factor for factor in LAMS]
        signs, unit = np.atleast_2d(self._signs(y)), self.best_params_["gamma"]
        search = Search(rows, codes, signs, weights, folds, unit=unit)
        grid = search.grid(folds, [np.ones(rows.shape[1])] * len(folds), WIDTHS, lams)
        i, j = _chosen(grid.losses, grid.shares, *grid.best)
        if self.verbose:
            print(  # noqa: T201
                f"[PartitionedKLR] {len(leaves)} leaves: validation log loss {grid.means[i, j]:.4f}, "
                f"width {grid.widths[i]:g}, lam {lams[j]:g}",
                flush=True,
            )
        tried = np.argwhere(np.isfinite(grid.means))
        added = {"rounds": -1, "width": np.take(grid.widths, tried[:, 0]), "lam": np.take(lams, tried[:, 1])}
        added["mean_log_loss"] = grid.means[tuple(tried.T)]
        for name, values in self.cv_results_.items():
            self.cv_results_[name] = np.append(values, np.broadcast_to(added[name], len(tried)))
        self.best_params_["gamma"], self.temperature_ = unit * grid.widths[i], float(grid.temperatures[i, j])
        return lams[j]

    @checked_decision
    def decision_function(self, X):
        """Evaluate the decision function at each row of X.

        The result is float64 of shape (n_samples,), the logarithm of the odds, or of shape (n_samples, n_classes), the
        logarithms of the probabilities, for more than two classes.
        """
        check_is_fitted(self, "leaves_")
        X, k = self._validate(X, dtype=self._dtypes()), len(self.classes_)
        rows = stacked(parallel_map(self._rows(X).__getitem__, slices(X.shape[0], ROWS)))
        f = np.empty((len(self.partitions_), rows.shape[0], k if k > 2 else 1))
        jobs = [(p, *leaf) for p, partition in enumerate(self.partitions_) for leaf in partition.leaves(rows)]

        def fill(job):
            p, leaf, part = job
            f[p, part] = self.leaves_[p][leaf].decision_function(rows[part], k)

        parallel_map(fill, jobs)
        if k > 2:
            return _mean(log_softmax(f / self.temperature_, axis=2))
        return _mean(log_expit(f[..., 0])) - _mean(log_expit(-f[..., 0]))

    def _scores(self, f):
        return f


def _chosen(losses, shares, i, j):
    """Return the places of the smallest nearly best width and of the best penalty for it.

    Its loss in `losses` (n_widths, n_lams, n_valid) is at most one standard error above that at i, j.
    """
    excess = (losses - losses[i, j]) * shares / shares.mean()
    means, limits = excess.mean(axis=2), excess.std(axis=2) / math.sqrt(len(shares))
    i = np.argmax((means <= limits).any(axis=1))
    return i, np.argmin(means[i])


def _mean(logs):
    """Return the logarithm of the mean of exp(logs) over the first axis."""
    return logsumexp(logs, axis=0) - math.log(len(logs))
