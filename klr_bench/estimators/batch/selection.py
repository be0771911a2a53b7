"""Choice of kernel, width, penalty and feature weights by the log loss of validation rows.

A round fits kernel logistic regression for all kernels, widths and penalties; kernel values serve all penalties.
Kernels and widths that are clearly worse than the best one in the first folds are not tried in the others.
The feature weights of the next round are those of this one, times the square root of the root mean squared derivative
of the best f along each feature.  The squared derivatives are the diagonal of the average gradient outer product
(Radhakrishnan, Beaglehole, Pandit, Belkin, Science 2024); without the square root the weights change so much that the
best ones are passed over.
"""

from __future__ import annotations

import math
import threading
import time
from itertools import takewhile

import numpy as np
import scipy.sparse as sp

from klr_bench.estimators.batch.base import KernelBlocks
from klr_bench.estimators.batch.cross_validation import COARSE, WORSE, evenly, neighbors
from klr_bench.estimators.batch.dual import warm_path
from klr_bench.estimators.batch.folds import MEDIUM, MOST_TRAINING
from klr_bench.estimators.batch.grid import Grid, Path, shapes_of, tempered_losses
from klr_bench.estimators.batch.low_rank import factor, low_rank_path
from klr_bench.estimators.core.kernels import Kernel, gamma_of
from klr_bench.estimators.core.rows import with_scaled_columns
from klr_bench.estimators.core.threads import parallel_map
from klr_bench.estimators.kernel_values.operands import Dense, operands_of, origin_of

KERNELS = "rbf", "laplacian"
LAMS = tuple(10.0**-p for p in range(1, 7))
ROUND_ROWS = 1500
"""Largest number of training rows of a fold in the rounds, if there are several folds; the last fits have all."""
ROUND_SHARE = 2 / 3
"""Share of the training rows that a round uses if there is only one split; it uses at least COARSE rows."""
MOST_OF_SPLIT = 5000
"""Largest number of training rows of a single split that the rounds use."""
TIMED_ROUNDS = 3
"""Number of rounds that should end before the deadline; if it is near, the rounds have fewer training rows."""
BEATEN = 1.0, 0.3
"""Standard errors by which the loss of a shape must be larger than the least one to be left out of further folds.

The first number is for the first fold, the second one for the first three.
"""
LEAST_SHARE = 1e-4
"""Added to each mean squared derivative, as a share of their mean, so that no weight becomes 0."""
GAP, MAX_EPOCHS = 1e-2, 30
"""Relative duality gap, or distance from the minimum, at which a fit ends, and its largest number of epochs."""
LEFT, MOST_LEFT = 1e-4, 3e-3
"""Share of the kernel matrix's diagonal at which its factorization ends, and above which its result is not used."""
PROBLEMS = 50
"""Number of binary problems from which on the rank is not limited."""


class Search:
    """Search for the kernel, width, penalty and feature weights with the lowest validation loss.

    X (n, d) are standardized rows, y (n,) class indices, signs (k, n) the labels of the k problems, and shares (n,) the
    weights of the rows.  `folds` are pairs of training and validation rows.  `center` (d,) is the mean of sparse rows.
    A fit begins only if it is expected to end before the `deadline`, a value of `time.monotonic`, apart from the first
    one, and ends after an epoch if it does not.  `unit` is gamma for the width 1, or None for "scale".
    """

    def __init__(self, X, y, signs, shares, folds, center=0.0, deadline=math.inf, unit=None):
        self.X, self.y, self.signs, self.shares, self.center = X, y, signs, shares, center
        self.folds, self.deadline, self.unit, self._memory = folds, deadline, unit, threading.local()
        self._valid = np.concatenate([valid for _, valid in folds])
        self._times = {}  # lists of the times of paths by number of training rows
        self._first = None  # the same for the first path, which may load code

    def is_late(self):
        """Return True after the deadline."""
        return time.monotonic() > self.deadline

    def seconds(self, n):
        """Return the expected time of a path of n training rows, by those with the most rows so far."""
        rows, times = max(self._times.items(), default=self._first or (1, []))
        return float(np.median(times)) * (n / rows) ** 2 if times else 0.0

    def rounds(self, max_rounds, kernels=KERNELS, start=None):
        """Yield a `Round` for equal feature weights, then one for each update, until the deadline.

        `kernels` are the names of those that the first round tries.  `start` are the feature weights (d,), the shape
        and the penalty with which it begins: then it tries their neighbors.  None is equal weights, and all shapes and
        penalties.
        """
        weights, lams = np.ones(self.X.shape[1]), LAMS
        tried = [shape for kernel in kernels for shape in shapes_of(kernel)]
        if start is not None:
            weights, shape, lam = start
            tried, lams = shape.neighbors(), neighbors(LAMS, lam)
        weights = [weights / math.sqrt(np.mean(weights**2))] * len(self.folds)
        is_coarse = self._most_training() > COARSE
        if is_coarse:
            coarse = self.grid(self._few(COARSE), weights, tried, lams)
            if coarse is None:
                return
            tried, lams = coarse.shape.neighbors(), neighbors(LAMS, coarse.lam)
        folds, last = self._few(self._n_rows()), None
        for number in range(max_rounds + 1):
            grid = self.grid(folds, weights, tried, lams, last)
            is_whole = grid is not None and len(grid.paths) == len(folds)
            if is_coarse and not number and (not is_whole or self.is_late()):  # then some fits have ended early
                grid = min(filter(None, (grid, coarse)), key=lambda grid: grid.means.min())
            if grid is None or (number and not is_whole):
                return
            yield grid.round(weights)
            if len(grid.paths) < len(folds):
                return
            if number < max_rounds:
                weights = [updated(*fold) for fold in zip(weights, grid.slopes(), strict=True)]
                tried = grid.shape.neighbors() if is_coarse else shapes_of(grid.shape.kernel)
                lams, last = neighbors(LAMS, grid.lam), grid.shape
                if len(folds) == 1:
                    tried = [shape for shape in tried if shape.width >= grid.shape.width]

    def with_all_rows(self, chosen):
        """Return a round of up to 10,000 training rows with the weights of a round of few, or None."""
        if len(self.folds) == 1 or self._most_training() <= ROUND_ROWS or self.is_late():
            return None
        folds = self._few(MOST_TRAINING)
        grid = self.grid(folds, chosen.fold_weights, chosen.shape.neighbors(), neighbors(LAMS, chosen.lam))
        is_whole = grid is not None and len(grid.paths) == len(self.folds) and not self.is_late()
        return grid.round(chosen.fold_weights) if is_whole else None

    def _n_rows(self):
        """Return the largest number of training rows of a fold in the rounds."""
        n, left = self._most_training(), self.deadline - time.monotonic()
        most = ROUND_ROWS if len(self.folds) > 1 else min(max(int(ROUND_SHARE * n), COARSE), MOST_OF_SPLIT)
        expected = max(TIMED_ROUNDS * len(self.folds) * self.seconds(COARSE), np.finfo(float).tiny)
        return int(min(most, COARSE * max(1.0, math.sqrt(max(left, 0.0) / expected))))

    def _most_training(self):
        return max(len(train) for train, _ in self.folds)

    def _few(self, n):
        """Return the folds with at most n of their training rows, evenly spaced over the classes."""
        return [(evenly(train, self.y, n), valid) for train, valid in self.folds]

    def grid(self, folds, weights, shapes, lams, last=None):
        """Fit a model for each fold, shape and penalty, with the fold's feature weights.

        After the first and the third fold, shapes are left out whose loss is significantly larger than the least one,
        apart from the `last` best one.
        If the time is too short, only the folds are returned that have all paths, or some paths of the first fold, or
        None without any path.
        """
        jobs, paths = [(*fold, of_fold) for fold, of_fold in zip(folds, weights, strict=True)], []
        for part, beaten in zip((jobs[:1], jobs[1:3], jobs[3:]), (*BEATEN, 0.0), strict=True):
            new = parallel_map(self._path_in_time, [(*fold, shape, lams) for fold in part for shape in shapes])
            is_over, new = None in new, [new[i : i + len(shapes)] for i in range(0, len(new), len(shapes))]
            if not paths:
                tried = [i for i, path in enumerate(new[0]) if path is not None]
                if not tried:
                    return None
                shapes, new = [shapes[i] for i in tried], [[new[0][i] for i in tried]]
            paths += takewhile(lambda of_fold: None not in of_fold, new)
            valid = np.concatenate([valid for _, valid in folds[: len(paths)]])
            grid = Grid(shapes, lams, paths, self.y[valid], self.shares[valid])
            if len(paths) == len(folds) or is_over:
                return grid
            kept = [i for i in range(len(shapes)) if i in grid.unbeaten(beaten) or shapes[i] == last]
            shapes, paths = [shapes[i] for i in kept], [[of_fold[i] for i in kept] for of_fold in paths]
        return None

    def improves(self, new, old):
        """Return True if a round has more folds, or a lower loss.

        If rows are few, the difference must be more than a standard error.
        """
        n = len(new.losses)
        if n != len(old.losses):
            return n > len(old.losses)
        valid = self._valid[:n]
        gain = (old.losses - new.losses) * self.shares[valid] / self.shares[valid].mean()
        error = gain.std() / math.sqrt(len(np.unique(valid))) if len(self.y) <= MEDIUM else 0.0
        return gain.mean() > error

    def weighted(self, part, weights, width):
        """Return rows with weighted features, and gamma = width times its unit."""
        rows = with_scaled_columns(self.X[part], weights)
        unit = self.unit or gamma_of("scale", rows, self.shares[part], self.center * weights)
        return rows, float(width * unit)

    def _matrix(self, n_rows, n_columns):
        """Return memory for a matrix, the same for each call in a thread.

        New pages for each matrix would take a quarter of the time of a search.
        """
        size = n_rows * n_columns
        if len(getattr(self._memory, "values", ())) < size:
            self._memory.values = np.empty(size, dtype=self.X.dtype)
        return self._memory.values[:size].reshape(n_rows, n_columns)

    def _path_in_time(self, item):
        """Return the path of an item, or None if it is expected to end after the deadline."""
        begun, n, is_first = time.monotonic(), len(item[0]), self._first is None
        if is_first:
            self._first = n, []
        elif begun + (self.seconds(n) if self._times else 0.0) > self.deadline:
            return None
        path = self._path(*item)
        times = self._first[1] if is_first else self._times.setdefault(n, [])
        times.append(time.monotonic() - begun)
        return path

    def _path(self, train, valid, weights, shape, lams):
        """Fit models for one shape and decreasing penalties to the training rows of a fold."""
        rows, gamma = self.weighted(train, weights, shape.width)
        valid_rows = with_scaled_columns(self.X[valid], weights)
        shares = self.shares[train] / self.shares[train].sum()
        kernel, n = Kernel(shape.kernel, gamma), len(train)
        operands = operands_for(kernel, rows).fitting(valid_rows)
        memory = self._matrix(n + len(valid), n)
        blocks, K = KernelBlocks(operands, rows, math.inf, memory[:n]), memory[n:]
        operands.fill(operands.left(valid_rows), operands.right(rows), K)
        centers, models = solutions(blocks, np.ascontiguousarray(self.signs[:, train]), lams, shares, self.is_late)
        coefs, decisions, means, K = [], [], [], K[:, centers]
        for b in models:
            coefs.append(b)
            decisions.append((K @ b.T.astype(K.dtype)).astype(np.float64))
            losses, _ = tempered_losses(decisions[-1], self.y[valid], self.shares[valid])
            means.append(np.average(losses, weights=self.shares[valid]))
            if means[-1] > WORSE * min(means) or self.is_late():
                break
        return Path(decisions, rows, rows[centers], shares, operands, coefs)


def solutions(blocks, signs, lams, shares, is_late):
    """Return the rows that are centers, and a generator of their coefficients for each penalty.

    A wide kernel has a matrix of low rank, for which Newton's method is faster than coordinate ascent.
    """
    L, pivots, left = factor(blocks.whole, LEFT, largest_rank(blocks.n, len(signs)))
    if left <= MOST_LEFT:
        return pivots, low_rank_path(L, pivots, signs, lams, shares, GAP)
    random = np.random.RandomState(0)
    return slice(None), warm_path(blocks, signs, lams, shares, random, GAP, MAX_EPOCHS, is_late)


def largest_rank(n, m):
    """Return the largest rank at which m problems on n rows are solved by Newton's method."""
    most = min(12 * math.sqrt(n), 1.2e6 / n) if m == 1 else n * max(0.6, m / PROBLEMS)
    return math.ceil(min(most, n))


def updated(weights, slopes):
    """Return the feature weights of the next round, scaled to a mean square of 1."""
    weights = weights * (slopes / max(slopes.mean(), np.finfo(float).tiny) + LEAST_SHARE) ** 0.25
    return weights / math.sqrt(np.mean(weights**2))


def operands_for(kernel, X):
    """Return the operands of a kernel of distances."""
    return operands_of(kernel, X).fitting(X) if sp.issparse(X) else Dense(kernel, origin_of(X))
