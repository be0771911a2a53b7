"""Choice of kernel width, penalty and feature weights by the log loss of validation rows.

A round fits kernel logistic regression for all widths and penalties; the kernel values of a width serve all penalties.
The feature weights of the next round are those of this one, times the square root of the root mean squared derivative
of the best f along each feature.  The squared derivatives are the diagonal of the average gradient outer product
(Radhakrishnan, Beaglehole, Pandit, Belkin, Science 2024); without the square root the weights change so much that the
best ones are passed over.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedShuffleSplit

from klr_bench.estimators.batch.base import KernelBlocks
from klr_bench.estimators.batch.dual import warm_path
from klr_bench.estimators.core.cross_validation import WIDTHS, log_losses, n_folds
from klr_bench.estimators.core.kernels import Kernel, gamma_of
from klr_bench.estimators.core.multiclass import SEEDS
from klr_bench.estimators.core.operands import Dense, operands_of, origin_of
from klr_bench.estimators.core.rows import in_layout, slices, with_scaled_columns
from klr_bench.estimators.core.threads import parallel_map

LAMS = tuple(10.0**-p for p in range(1, 7))
SMALL, MEDIUM = 500, 3000
"""Largest numbers of rows for two repeats of five folds, and for five folds; more rows are split once."""
MOST_TRAINING, MOST_VALIDATION = 10_000, 5000
"""Maximum numbers of training and validation rows of a single split."""
COARSE = 2000
"""Number of training rows with which the whole grid is tried; more rows are used only next to its best point."""
SLOPE_ROWS = 2000
"""Number of rows whose derivatives are averaged."""
SLOPE_VALUES = 2**20
"""Number of derivatives, and of kernel values, that are computed at a time."""
LEAST_SHARE = 1e-4
"""Added to each mean squared derivative, as a share of their mean, so that no weight becomes 0."""
WORSE = 1.05
"""A path of decreasing penalties ends when the loss is larger than its minimum by this factor."""
GAP, MAX_EPOCHS = 1e-2, 30
"""Relative duality gap at which a fit ends, and its largest number of epochs."""
TEMPERATURES = 2.0 ** np.linspace(0, 2, 9)
"""Temperatures T of the probabilities softmax(f / T) of more than two classes."""


@dataclass
class Round:
    """Best width and penalty for given feature weights, with the loss of each validation row."""

    weights: np.ndarray
    width: float
    lam: float
    temperature: float
    losses: np.ndarray
    loss: float
    results: list
    """A dict for each width and penalty: width, lam, and mean log loss."""


@dataclass
class Path:
    """Models for one kernel width and decreasing penalties.

    `decisions` are their values (n_valid, m) of f at the validation rows; `shares` are those of the training rows.
    """

    decisions: list
    rows: np.ndarray
    shares: np.ndarray
    gamma: float
    coefs: list

    def mean_squared_slopes(self, place):
        """Return each feature's weighted mean squared derivative, summed over the binary problems."""
        n, d = min(self.rows.shape[0], SLOPE_ROWS), self.rows.shape[1]
        shares = self.shares[:n] / self.shares[:n].sum()
        operands, total = rbf(self.rows, self.gamma), np.zeros(d)
        right = operands.right(self.rows)
        for part in slices(n, max(SLOPE_VALUES // max(d, self.rows.shape[0]), 1)):
            X = self.rows[part]
            K, X = operands.values(operands.left(X), right), in_layout(X, sparse=False)
            for coef in self.coefs[place]:
                terms = K * coef.astype(K.dtype)
                slopes = 2 * self.gamma * (terms @ self.rows - X * terms.sum(axis=1, keepdims=True))
                total += shares[part] @ slopes.astype(np.float64) ** 2
        return total


class Search:
    """Search for the kernel width, penalty and feature weights with the lowest validation loss.

    X (n, d) are standardized rows, y (n,) class indices, signs (k, n) the labels of the k problems, and shares (n,) the
    weights of the rows.  `cv` is the number of folds, None to choose it, or a list of pairs of indices of training and
    validation rows.  `center` (d,) is the mean of sparse rows.  `unit` is gamma for the width 1, or None for "scale".
    """

    def __init__(self, X, y, signs, shares, cv, random, center=0.0, unit=None):
        self.X, self.y, self.signs, self.shares, self.center, self.unit = X, y, signs, shares, center, unit
        self._memory = threading.local()
        self.folds = cv if isinstance(cv, list) else list(_splits(y, cv, random.randint(SEEDS)).split(X, y))
        self._valid = np.concatenate([valid for _, valid in self.folds])

    def rounds(self, max_rounds):
        """Yield a `Round` for equal feature weights, and then one for each update of the weights."""
        weights, widths, lams = [np.ones(self.X.shape[1]) for _ in self.folds], WIDTHS, LAMS
        if len(self.folds[0][0]) > 2 * COARSE:
            few = [(train[:COARSE], valid) for train, valid in self.folds]
            *_, best, place = self.grid(few, weights, widths, lams)
            widths, lams = neighbors(WIDTHS, widths[best]), neighbors(LAMS, lams[place])
        for number in range(max_rounds + 1):
            paths, losses, temperatures, means, best, place = self.grid(self.folds, weights, widths, lams)
            results = [
                {"width": widths[i], "lam": lams[j], "mean_log_loss": float(means[i, j])}
                for i, j in np.argwhere(np.isfinite(means))
            ]
            mean_weights = np.sqrt(np.mean(np.square(weights), axis=0))
            chosen = widths[best], lams[place], temperatures[best, place], losses[best, place], means[best, place]
            yield Round(mean_weights, *chosen, results)
            if number < max_rounds:
                slopes = [path[best].mean_squared_slopes(place) for path in paths]
                weights = [updated(*fold) for fold in zip(weights, slopes, strict=True)]
                lams = neighbors(LAMS, lams[place])
                if len(self.y) > MEDIUM:
                    widths = neighbors(WIDTHS, widths[best])

    def grid(self, folds, weights, widths, lams):
        """Fit a model for each fold, kernel width and penalty, with the fold's feature weights.

        Return the paths of each fold; the losses of all validation rows, the temperature and the mean loss for each
        width and penalty, inf without a model in each fold; and the places in widths and lams of the lowest mean.
        """
        jobs = [(*fold, of_fold, width, lams) for fold, of_fold in zip(folds, weights, strict=True) for width in widths]
        paths = parallel_map(lambda job: self._path(*job), jobs)
        paths = [paths[i : i + len(widths)] for i in range(0, len(jobs), len(widths))]
        y, shares = self.y[self._valid], self.shares[self._valid] / self.shares[self._valid].sum()
        losses = np.full((len(widths), len(lams), len(y)), np.inf)
        temperatures, means = np.ones(losses.shape[:2]), np.full(losses.shape[:2], np.inf)
        for i in range(len(widths)):
            for j, of_folds in enumerate(zip(*(of_fold_paths[i].decisions for of_fold_paths in paths), strict=False)):
                losses[i, j], temperatures[i, j] = tempered_losses(np.concatenate(of_folds), y, shares)
                means[i, j] = losses[i, j] @ shares
        return paths, losses, temperatures, means, *np.unravel_index(np.argmin(means), means.shape)

    def improves(self, new, old):
        """Return True if a round lowers the loss (by more than a standard error if rows are few)."""
        gain = (old.losses - new.losses) * self.shares[self._valid] / self.shares[self._valid].mean()
        return gain.mean() > (gain.std() / math.sqrt(len(self.y)) if len(self.y) <= MEDIUM else 0.0)

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

    def _path(self, train, valid, weights, width, lams):
        """Fit models for one width and decreasing penalties to the training rows of a fold."""
        rows, gamma = self.weighted(train, weights, width)
        valid_rows = with_scaled_columns(self.X[valid], weights)
        shares = self.shares[train] / self.shares[train].sum()
        operands, random = rbf(rows, gamma).fitting(valid_rows), np.random.RandomState(0)
        n = len(train)
        memory = self._matrix(n + len(valid), n)
        blocks, K = KernelBlocks(operands, rows, math.inf, memory[:n]), memory[n:]
        operands.fill(operands.left(valid_rows), operands.right(rows), K)
        coefs, decisions, means, signs = [], [], [], np.ascontiguousarray(self.signs[:, train])
        for b in warm_path(blocks, signs, lams, shares, random, GAP, MAX_EPOCHS):
            coefs.append(b)
            decisions.append((K @ b.T.astype(K.dtype)).astype(np.float64))
            losses, _ = tempered_losses(decisions[-1], self.y[valid], self.shares[valid])
            means.append(np.average(losses, weights=self.shares[valid]))
            if means[-1] > WORSE * min(means):
                break
        return Path(decisions, rows, shares, gamma, coefs)


def _splits(y, cv, seed):
    n = len(y)
    if cv is None and n > MEDIUM:
        n_valid = min(n // 4, MOST_VALIDATION)
        n_train = min(n - n_valid, MOST_TRAINING)
        return StratifiedShuffleSplit(1, test_size=n_valid, train_size=n_train, random_state=seed)
    n_repeats, n_splits = 2 if cv is None and n <= SMALL else 1, n_folds(cv, np.bincount(y))
    return RepeatedStratifiedKFold(n_splits=n_splits, n_repeats=n_repeats, random_state=seed)


def neighbors(grid, value):
    """Return a value of a grid and its neighbors on both sides."""
    place = grid.index(value)
    return grid[max(place - 1, 0) : place + 2]


def tempered_losses(f, y, shares):
    """Return the log loss of each row and the temperature T, which minimizes their mean.

    f has shape (n, m).  With one binary problem T is 1; with more, the probabilities are softmax(f / T).
    """
    temperatures = TEMPERATURES if f.shape[1] > 1 else (1.0,)
    losses = [log_losses(f / temperature, y, is_softmax=True) for temperature in temperatures]
    best = int(np.argmin([np.sum(loss * shares) for loss in losses]))
    return losses[best], temperatures[best]


def updated(weights, slopes):
    """Return the feature weights of the next round, scaled to a mean square of 1."""
    weights = weights * (slopes / max(slopes.mean(), np.finfo(float).tiny) + LEAST_SHARE) ** 0.25
    return weights / math.sqrt(np.mean(weights**2))


def rbf(X, gamma):
    """Return operands (see `klr_bench.estimators.core.operands`) of the rbf kernel."""
    kernel = Kernel("rbf", gamma)
    return operands_of(kernel, X).fitting(X) if sp.issparse(X) else Dense(kernel, origin_of(X))
