"""Models of the leaves of partitions, whose probabilities are averaged: `LeafModels`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy.special import log_expit, log_softmax

from klr_bench.estimators.batch.folds import copies, in_order
from klr_bench.estimators.batch.leaf import Leaf, distinct, fit_leaf, in_this_process
from klr_bench.estimators.batch.partition import Partition, divided, hashed, shuffled
from klr_bench.estimators.batch.selection import Search, shapes_of
from klr_bench.estimators.core.kernels import Kernel
from klr_bench.estimators.core.multiclass import SEEDS
from klr_bench.estimators.core.threads import parallel_map

LEAF_SIZE, N_PARTITIONS = 8000, 2
"""Largest number of rows of a leaf, and number of partitions, unless they are given."""
TUNED_LEAVES, TUNED_ROWS = 3, 20_000
"""Smallest numbers of leaves, and of their rows, with which width and penalty are chosen."""
WIDTHS, LAMS = (1.0, 2.0, 4.0, 8.0, 16.0), (3.0, 1.0, 0.3, 0.1)
"""Values of gamma and lam that are tried in the leaves, as multiples of those of all rows."""
VALIDATION_SHARE = 0.2


class Labels:
    """Class indices, weights, groups or None, hashes and a random order of n rows X (n, d).

    The weights > 0 are divided by their mean; None are 1.  The order depends only on the content of the rows and the
    seed: the mean is that of the sorted weights, so that its rounding does not depend on their order.
    """

    def __init__(self, X, codes, weights, seed, groups=None):
        self.codes, self.groups, self.hashes = codes, groups, hashed(X, codes)
        self.weights = np.ones(len(codes)) if weights is None else weights / np.sort(weights).mean()
        self.order = shuffled(self.hashes, self.weights, seed)

    def differ(self, part):
        """Return True if a part has several classes, and several groups if there are groups."""
        return bool(np.ptp(self.codes[part]) and (self.groups is None or np.ptp(self.groups[part])))


@dataclass
class LeafModels:
    """Models of the leaves of several partitions.

    `kernel`, `lam` and `temperature` are those of a model of all rows until `divide` changes them to those of a leaf.
    """

    n_classes: int
    kernel: Kernel
    lam: float
    """Penalty, of a leaf of average weight."""
    temperature: float
    """T of the probabilities softmax(f / T) of more than two classes in a leaf; 1 for two classes."""
    partitions: list[Partition] = field(default_factory=list)
    leaves: list[list[Leaf]] = field(default_factory=list)
    """A list for each partition, with the model of each leaf."""

    gamma = property(lambda self: self.kernel.gamma)

    @property
    def n_support_(self):
        """Number of support vectors of all leaves."""
        return sum(leaf.support.shape[0] for leaves in self.leaves for leaf in leaves)

    def divide(self, rows, labels, random, *, leaf_size, steps, report=None):
        """Divide `WeightedRows` with their `Labels`, and adapt gamma and lam to the leaves.

        Return the indices of the rows of each leaf, a list for each partition.  Each of the numbers in `steps` gives a
        partition, whose directions take so many steps towards the principal ones; a single partition remains if it has
        a single leaf.  report(grid, i, j) is called with the `Grid` of the widths and penalties that were tried in some
        leaves, and the places of the chosen ones.
        """
        tuning = np.random.RandomState(random.randint(SEEDS))
        parts = [divided(rows, labels.order, leaf_size, n_steps, random) for n_steps in steps]
        leaves = parts[0][1]
        if len(leaves) == 1:
            del parts[1:]
        self.partitions = [partition for partition, _ in parts]
        self.lam *= len(leaves)  # the same penalty of a row
        if len(leaves) > 1:
            self._tune(rows, labels, leaves, leaf_size, tuning, report)
        return [leaves for _, leaves in parts]

    def fit(self, rows, labels, random, parts, *, max_support=None, map_leaves=None):
        """Fit a model to each leaf of `parts`, the result of `divide`."""
        n, view, kernel, T = len(labels.codes), replace(rows, X=None), self.kernel, self.temperature

        def job(n_leaves, leaf, seed):
            leaf, totals = distinct(leaf, labels.hashes, labels.weights)
            penalty = self.lam * n / n_leaves / totals.sum()
            return leaf, partial(fit_leaf, view, labels.codes[leaf], totals, penalty, kernel, T, max_support, seed)

        jobs = [partial(job, len(leaves), leaf, random.randint(SEEDS)) for leaves in parts for leaf in leaves]
        models = iter((map_leaves or in_this_process)(rows.X, jobs))
        self.leaves = [[next(models) for _ in leaves] for leaves in parts]

    def _tune(self, rows, labels, leaves, leaf_size, random, report):
        """Choose gamma, lam and temperature by validation in some leaves with several classes."""
        mixed = [part for part in (leaf[:leaf_size] for leaf in leaves) if labels.differ(part)]
        if not mixed:
            return
        n_tuned = max(TUNED_LEAVES, TUNED_ROWS // len(mixed[0]))
        places = random.permutation(len(mixed))[:n_tuned]
        folds = [_fold(rows, labels, mixed[place]) for place in places]
        folds = [fold for fold in folds if np.ptp(labels.codes[fold[0]])]  # groups may have one class each
        if not folds:
            return
        lams = [self.lam * factor for factor in LAMS]
        positive = np.arange(self.n_classes)[:, None] if self.n_classes > 2 else 1
        signs = np.atleast_2d(np.where(labels.codes == positive, 1.0, -1.0))
        search = Search(rows, labels.codes, signs, labels.weights, folds, unit=self.gamma)
        tried = shapes_of(self.kernel.name, WIDTHS)
        grid = search.grid(folds, [np.ones(rows.shape[1])] * len(folds), tried, lams)
        i, j = _chosen(grid.losses, grid.shares, *grid.best)
        self.kernel = replace(self.kernel, gamma=self.gamma * grid.shapes[i].width)
        self.lam, self.temperature = lams[j], float(grid.temperatures[i, j])
        if report is not None:
            report(grid, i, j)

    def decision_function(self, X):
        """Return values at rows X (n, d), whose features are weighted.

        They are the logarithms of the odds (n,) of two classes, or of the probabilities (n, n_classes).
        """
        k = self.n_classes
        f = np.empty((len(self.partitions), X.shape[0], k if k > 2 else 1))
        jobs = [(p, *leaf) for p, partition in enumerate(self.partitions) for leaf in partition.leaves(X)]

        def fill(job):
            p, leaf, part = job
            f[p, part] = self.leaves[p][leaf].decision_function(X[part], k)

        parallel_map(fill, jobs)
        if k > 2:
            return _mean(log_softmax(f / self.temperature, axis=2))
        return _mean(log_expit(f[..., 0])) - _mean(log_expit(-f[..., 0]))


def _fold(rows, labels, part):
    """Return the training and the validation rows of a part in random order.

    Rows of a group stay together, or copies of a row without groups.
    """
    if labels.groups is None:
        groups = copies(rows.X[part], np.unique(labels.codes[part], return_inverse=True)[1])
    else:
        groups = in_order(labels.groups[part])
    is_valid = groups < math.ceil(VALIDATION_SHARE * (groups.max() + 1))
    return part[~is_valid], part[is_valid]


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
    return np.logaddexp.reduce(logs) - math.log(len(logs))
