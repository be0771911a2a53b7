"""Kernel logistic regression in the leaves of partitions of the rows: `PartitionedKLR`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.batch.cross_validation import class_sizes
from klr_bench.estimators.batch.klr import KLR
from klr_bench.estimators.batch.leaf_models import Labels, LeafModels
from klr_bench.estimators.batch.partition import POWER_STEPS, ROWS, WeightedRows
from klr_bench.estimators.batch.selection import KERNELS
from klr_bench.estimators.core.checks import checked_decision, checked_fit, print_progress
from klr_bench.estimators.core.classifier import Classifier
from klr_bench.estimators.core.kernels import Kernel
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


@estimator
class PartitionedKLR(Classifier):
    r"""Kernel logistic regression on parts of the rows, in time proportional to their number.

    Use it for more than about 100,000 rows; from 10,000 rows on `KLR` tries it too, beside one model of all rows.  Time
    and memory are proportional to the number of rows; features need no scaling, and the settings are chosen by
    validation, as by `KLR`.

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
    max_rounds : int, default=8
        Largest number of updates of the feature weights, >= 0; 0 keeps all standardized features equal.  Those
        beyond the 4 of `KLR` lower the log loss on Covertype, where the search is a small part of the time.
    cv : int or None, default=None
        Number of folds, >= 2, of the search on at most 8,000 rows; None chooses them as `KLR` does.
    map_leaves : callable or None, default=None
        Where the leaves are fitted; None is this process.  With `dask_leaves` each leaf is a task of a dask worker.
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
    model_ : LeafModels
        Its list `partitions` has the hyperplanes of each partition, or of a single one if it has a single leaf, and its
        list `leaves` a list of the models of the leaves for each.
    n_support_ : int
        Number of support vectors of all leaves: with several partitions, most rows count several times.
    limits_ : ndarray of shape (2, n_features)
        Lowest and highest value of each feature; a value beyond is replaced by the limit.
    mean_, scale_ : ndarray of shape (n_features,)
        Mean and standard deviation of each feature within its limits, as of `KLR`.
    feature_weights_ : ndarray of shape (n_features,)
        Weight of each standardized feature, as of `KLR`.
    temperature_ : float
        T of the probabilities softmax(f / T) of more than two classes in a leaf; 1 for two classes.
    best_params_ : dict
        Chosen `kernel` and `gamma`, the `lam` of a leaf of average weight, and the number of `rounds`.
    cv_results_ : dict of ndarrays
        rounds, kernel, width, lam and mean_log_loss of each combination of the search, as of `KLR`, with rounds -1
        for those tried in leaves, whose width is a multiple of the gamma of the search.
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
    has at most `leaf_size` rows; the first medians of more than 524,288 rows are those of a random sample of so many.
    :math:`\ell_p(x)` is the leaf of the row x in partition p.  The model of a leaf is that of `DualCDKLR`, fitted to
    its rows alone.  With more than two classes its probabilities are softmax(f / T), also in a leaf with rows of two of
    them, whose decision values are f and -f.  The probabilities of several partitions, with different directions, are
    averaged, which makes the borders between leaves smooth.  A leaf with n rows of one class gives each of the others
    the probability of this class divided by 1 + n.

    Features are scaled and weighted as by `KLR`, with its search for weights, width and penalty on at most 8,000 rows;
    features that are constant there are left out.  A narrower kernel is better if more rows are in the same space:
    therefore 1 to 16 times its gamma and 0.1 to 3 times its penalty are tried in some leaves of the first partition, a
    fifth of whose rows is for validation.

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
    >>> model.score(X, y) > 0.95, [len(leaves) for leaves in model.model_.leaves]
    (True, [4, 4])
    """

    leaf_size: int = parameter(COUNT, default=8000)  # LEAF_SIZE, which a type checker would show by its name
    _: KW_ONLY
    n_partitions: int = parameter(COUNT, default=2)  # N_PARTITIONS
    directions: str = parameter(StrOptions({"random", "principal"}), default="random")
    max_support: int | None = parameter(COUNT, None, default=None)
    max_rounds: int = parameter(Interval(Integral, 0, None, closed="left"), default=8)
    cv: int | None = parameter(Interval(Integral, 2, None, closed="left"), None, default=None)
    map_leaves: Callable[..., Any] | None = parameter(callable, None, default=None)
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
            float32 or float64 array is not copied, unless a row has the weight 0.
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
        labels = Labels(X, codes, weights, random.randint(SEEDS))
        self._search(X, y, labels, random)
        n_leading = 1 if self.directions == "principal" else 0
        steps = [POWER_STEPS if p < n_leading else 0 for p in range(self.n_partitions)]
        rows, options = self._rows(X), {"leaf_size": self.leaf_size, "steps": steps, "report": self._report}
        parts = self.model_.divide(rows, labels, random, **options)
        self.model_.fit(rows, labels, random, parts, max_support=self.max_support, map_leaves=self.map_leaves)
        self.temperature_ = self.model_.temperature
        self.best_params_ |= {"gamma": self.model_.gamma, "lam": self.model_.lam}
        return self

    @property
    def n_support_(self):
        return self.model_.n_support_

    def _search(self, X, y, labels, random):
        """Choose scaling, feature weights, width and penalty from the first rows."""
        klr = KLR(max_rounds=self.max_rounds, cv=self.cv, random_state=random.randint(SEEDS), verbose=self.verbose)
        order, codes = labels.order, labels.codes
        sample, kernels = order[:SEARCH_ROWS], KERNELS if self.max_support is None else ("rbf",)
        if are_some := len(sample) < len(order):
            of_classes = [order[codes[order] == k][:OF_EACH_CLASS] for k in range(len(self.classes_))]
            sample = np.array([*dict.fromkeys([*np.concatenate(of_classes).tolist(), *sample.tolist()])][:SEARCH_ROWS])
        kept, search, *_ = klr._choose(X[sample], y[sample], labels.weights[sample], kernels, each_kernel=are_some)
        _, gamma = search.weighted(slice(None), kept.weights, kept.shape.width)
        self._scaling, self._dtype, self.best_params_ = klr._scaling, klr._dtype, klr.best_params_
        self.limits_, self.mean_, self.scale_ = klr.limits_, klr.mean_, klr.scale_
        self.feature_weights_, self.cv_results_ = klr.feature_weights_, klr.cv_results_
        lam = kept.lam * min(SEARCH_ROWS / len(y), 1.0)
        self.model_ = LeafModels(len(self.classes_), Kernel(kept.shape.kernel, gamma), lam, klr.temperature_)

    def _rows(self, X):
        return WeightedRows(X, self._scaling, self.feature_weights_[self._scaling.columns], self._dtype)

    def _report(self, grid, i, j):
        """Append what was tried in leaves to `cv_results_`, and print what was chosen."""
        tried = np.argwhere(np.isfinite(grid.means))
        kernels, widths = (np.array(values)[tried[:, 0]] for values in zip(*grid.shapes, strict=True))
        added = {"rounds": -1, "kernel": kernels, "width": widths, "lam": np.take(grid.lams, tried[:, 1])}
        added["mean_log_loss"] = grid.means[tuple(tried.T)]
        for name, values in self.cv_results_.items():
            self.cv_results_[name] = np.append(values, np.broadcast_to(added[name], len(tried)))
        loss, width, lam = grid.means[i, j], grid.shapes[i].width, grid.lams[j]
        n_leaves = len(self.model_.partitions[0].children) + 1
        print_progress(self, f"{n_leaves} leaves: validation log loss {loss:.4f}, width {width:g}, lam {lam:g}")

    @checked_decision
    def decision_function(self, X):
        """Evaluate the decision function at each row of X.

        The result is float64 of shape (n_samples,), the logarithm of the odds, or of shape (n_samples, n_classes), the
        logarithms of the probabilities, for more than two classes.
        """
        check_is_fitted(self, "model_")
        X = self._validate(X, dtype=self._dtypes())
        return self.model_.decision_function(stacked(parallel_map(self._rows(X).__getitem__, slices(X.shape[0], ROWS))))

    def _scores(self, f):
        return f
