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
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from klr_bench.estimators.batch.base import KernelBlocks
from klr_bench.estimators.batch.cross_validation import WIDTHS, log_losses
from klr_bench.estimators.batch.dual import warm_path
from klr_bench.estimators.batch.folds import MEDIUM, MOST_TRAINING
from klr_bench.estimators.batch.low_rank import factor, low_rank_path
from klr_bench.estimators.batch.slopes import mean_squared_slopes
from klr_bench.estimators.core.kernels import Kernel, gamma_of
from klr_bench.estimators.core.rows import with_scaled_columns
from klr_bench.estimators.core.threads import parallel_map
from klr_bench.estimators.kernel_values.operands import Dense, operands_of, origin_of

KERNELS = "rbf", "laplacian"
LAMS = tuple(10.0**-p for p in range(1, 7))
COARSE = 1000
"""Number of training rows with which the whole grid is tried; more rows are used only next to its best point."""
ROUND_ROWS = 1500
"""Largest number of training rows of a fold in the rounds, if there are several folds; the last fits have all."""
BEATEN = 1.0, 0.3
"""Standard errors by which the loss of a shape must be larger than the least one to be left out of further folds.

The first number is for the first fold, the second one for the first three.
"""
SLOPE_ROWS = 2000
"""Number of rows whose derivatives are averaged."""
LEAST_SHARE = 1e-4
"""Added to each mean squared derivative, as a share of their mean, so that no weight becomes 0."""
WORSE = 1.05
"""A path of decreasing penalties ends when the loss is larger than its minimum by this factor."""
GAP, MAX_EPOCHS = 1e-2, 30
"""Relative duality gap, or distance from the minimum, at which a fit ends, and its largest number of epochs."""
LEFT, MOST_LEFT = 1e-4, 3e-3
"""Share of the kernel matrix's diagonal at which its factorization ends, and above which its result is not used."""
PROBLEMS = 50
"""Number of binary problems from which on the rank is not limited."""
TEMPERATURES = 2.0 ** np.linspace(0, 2, 9)
"""Temperatures T of the probabilities softmax(f / T) of more than two classes."""


class Shape(NamedTuple):
    """A kernel and its width, a multiple of gamma="scale"."""

    kernel: str
    width: float

    def neighbors(self):
        """Return the shapes of the same kernel with the nearest widths, and the shape itself."""
        return shapes_of(self.kernel, neighbors(WIDTHS, self.width))


@dataclass
class Round:
    """Best shape and penalty for given feature weights, with the loss of each validation row."""

    fold_weights: list
    shape: Shape
    lam: float
    temperature: float
    losses: np.ndarray
    loss: float
    results: list
    """A dict for each shape and penalty: kernel, width, lam, and mean log loss."""

    @property
    def weights(self):
        """The root mean square of the folds' feature weights."""
        return np.sqrt(np.mean(np.square(self.fold_weights), axis=0))


@dataclass
class Path:
    """Models for one shape of the kernel and decreasing penalties.

    `decisions` are their values (n_valid, m) of f at the validation rows, `shares` those of the training rows, and
    `coefs` the coefficients (m, n_centers) of the kernel functions of the centers.
    """

    decisions: list
    rows: np.ndarray
    centers: np.ndarray
    shares: np.ndarray
    kernel: Kernel | None
    coefs: list

    def mean_squared_slopes(self, place):
        """Return each feature's weighted mean squared derivative, summed over the binary problems."""
        n = min(self.rows.shape[0], SLOPE_ROWS)
        shares = self.shares[:n] / self.shares[:n].sum()
        operands = operands_for(self.kernel, self.rows)
        return mean_squared_slopes(operands, self.rows[:n], self.centers, self.coefs[place], shares)


class Grid:
    """Models of shapes and penalties, with their losses at validation rows.

    `paths` has a list for each fold, with a path for each shape.  `losses` (n_shapes, n_lams, n_valid) and `means`
    (n_shapes, n_lams) are inf without a model in each fold.  `best` are the places of the shape and the penalty with
    the least mean.  `y` and `shares` are those of the validation rows.
    """

    def __init__(self, shapes, lams, paths, y, shares):
        self.shapes, self.lams, self.paths, self.shares = shapes, lams, paths, shares
        self.losses = np.full((len(shapes), len(lams), len(y)), np.inf)
        self.means, self.temperatures = (np.full(self.losses.shape[:2], value) for value in (np.inf, 1.0))
        for i in range(len(shapes)):
            for j, of_folds in enumerate(zip(*(of_fold[i].decisions for of_fold in paths), strict=False)):
                self.losses[i, j], self.temperatures[i, j] = tempered_losses(np.concatenate(of_folds), y, shares)
                self.means[i, j] = np.average(self.losses[i, j], weights=shares)
        self.best = np.unravel_index(np.argmin(self.means), self.means.shape)

    shape = property(lambda self: self.shapes[self.best[0]])
    lam = property(lambda self: self.lams[self.best[1]])

    def round(self, weights):
        """Return the `Round` of the best shape and penalty, with the folds' weights."""
        results = [
            {**self.shapes[i]._asdict(), "lam": self.lams[j], "mean_log_loss": float(self.means[i, j])}
            for i, j in np.argwhere(np.isfinite(self.means))
        ]
        chosen = self.temperatures[self.best], self.losses[self.best], self.means[self.best]
        return Round(weights, self.shape, self.lam, *chosen, results)

    def unbeaten(self, n_errors):
        """Return the places of shapes at most so many standard errors above the least loss."""
        losses = self.losses[np.arange(len(self.shapes)), self.means.argmin(axis=1)]
        excess = (losses - losses[self.best[0]]) * self.shares / self.shares.mean()
        errors = excess.std(axis=1) / math.sqrt(excess.shape[1])
        return np.flatnonzero(excess.mean(axis=1) <= n_errors * errors)

    def slopes(self):
        """Return each fold's mean squared derivatives of the best model."""
        shape, lam = self.best
        return [of_fold[shape].mean_squared_slopes(lam) for of_fold in self.paths]


class Search:
    """Search for the kernel, width, penalty and feature weights with the lowest validation loss.

    X (n, d) are standardized rows, y (n,) class indices, signs (k, n) the labels of the k problems, and shares (n,) the
    weights of the rows.  `folds` are pairs of training and validation rows.  `center` (d,) is the mean of sparse rows.
    When `is_late()` becomes true, the fits that have begun end after an epoch.  `unit` is gamma for the width 1, or
    None for "scale".  `kernels` are the names of those that are tried.
    """

    def __init__(self, X, y, signs, shares, folds, center=0.0, is_late=lambda: False, unit=None, kernels=KERNELS):
        self.X, self.y, self.signs, self.shares, self.center = X, y, signs, shares, center
        self.unit, self.kernels = unit, kernels
        self.folds, self.is_late, self._memory = folds, is_late, threading.local()
        self._valid = np.concatenate([valid for _, valid in folds])

    def rounds(self, max_rounds):
        """Yield a `Round` for equal feature weights, and then one for each update of the weights."""
        weights, lams = [np.ones(self.X.shape[1]) for _ in self.folds], LAMS
        tried = [shape for kernel in self.kernels for shape in shapes_of(kernel)]
        is_coarse = len(self.folds[0][0]) > COARSE
        if is_coarse:
            coarse = self.grid(self._few(COARSE), weights, tried, lams)
            if self.is_late():
                yield coarse.round(weights)
                return
            tried, lams = coarse.shape.neighbors(), neighbors(LAMS, coarse.lam)
        folds, last = self._few(ROUND_ROWS if len(self.folds) > 1 else MOST_TRAINING), None
        for number in range(max_rounds + 1):
            grid = self.grid(folds, weights, tried, lams, last)
            if number and len(grid.paths) < len(folds):
                return
            if is_coarse and not number and self.is_late():  # then some fits were ended
                grid = min(grid, coarse, key=lambda grid: grid.means.min())
            yield grid.round(weights)
            if number < max_rounds:
                weights = [updated(*fold) for fold in zip(weights, grid.slopes(), strict=True)]
                tried = grid.shape.neighbors() if is_coarse else shapes_of(grid.shape.kernel)
                lams, last = neighbors(LAMS, grid.lam), grid.shape
                if len(folds) == 1:
                    tried = [shape for shape in tried if shape.width >= grid.shape.width]

    def with_all_rows(self, chosen):
        """Return a round of all training rows with the weights of a round of few, or None."""
        if len(self.folds) == 1 or len(self.folds[0][0]) <= ROUND_ROWS or self.is_late():
            return None
        grid = self.grid(self.folds, chosen.fold_weights, chosen.shape.neighbors(), neighbors(LAMS, chosen.lam))
        return None if self.is_late() else grid.round(chosen.fold_weights)

    def _few(self, n):
        """Return the folds with at most n of their training rows, evenly spaced over the classes."""
        folds = []
        for train, valid in self.folds:
            if len(train) > n:
                order = np.argsort(self.y[train], kind="stable")
                train = train[np.sort(order[np.linspace(0, len(order) - 1, n).astype(int)])]
            folds.append((train, valid))
        return folds

    def grid(self, folds, weights, shapes, lams, last=None):
        """Fit a model for each fold, shape and penalty, with the fold's feature weights.

        After the first and the third fold, shapes are left out whose loss is significantly larger than the least one,
        apart from the `last` best one.
        When time is up, only the folds are returned that have all paths, or some paths of the first fold.
        """
        jobs, paths = [(*fold, of_fold) for fold, of_fold in zip(folds, weights, strict=True)], []
        for part, beaten in zip((jobs[:1], jobs[1:3], jobs[3:]), (*BEATEN, 0.0), strict=True):
            items = [(not paths and i == 0, *fold, shape, lams) for fold in part for i, shape in enumerate(shapes)]
            new = parallel_map(lambda item: self._path(*item[1:]) if item[0] or not self.is_late() else None, items)
            new = [new[i : i + len(shapes)] for i in range(0, len(new), len(shapes))]
            if not paths:
                tried = [i for i, path in enumerate(new[0]) if path is not None]
                shapes, new = [shapes[i] for i in tried], [[new[0][i] for i in tried]]
            paths += [of_fold for of_fold in new if None not in of_fold]
            valid = np.concatenate([valid for _, valid in folds[: len(paths)]])
            grid = Grid(shapes, lams, paths, self.y[valid], self.shares[valid])
            if len(paths) == len(folds) or self.is_late():
                return grid
            kept = [i for i in range(len(shapes)) if i in grid.unbeaten(beaten) or shapes[i] == last]
            shapes, paths = [shapes[i] for i in kept], [[of_fold[i] for i in kept] for of_fold in paths]
        return None

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
        return Path(decisions, rows, rows[centers], shares, kernel, coefs)


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


def shapes_of(kernel, widths=WIDTHS):
    """Return the shapes of a kernel with the given widths."""
    return [Shape(kernel, width) for width in widths]


def neighbors(grid, value):
    """Return a value of a grid and its neighbors on both sides."""
    place = grid.index(value)
    return grid[max(place - 1, 0) : place + 2]


def tempered_losses(f, y, shares):
    """Return the log loss of each row and the temperature T, which minimizes their mean.

    f has shape (n, m).  With one binary problem T is 1; with more, the probabilities are softmax(f / T).
    """
    if f.shape[1] == 1:
        return log_losses(f, y), 1.0
    f = f - f.max(axis=1, keepdims=True)
    scaled = f[None] / TEMPERATURES[:, None, None]
    losses = np.log(np.exp(scaled).sum(axis=2)) - scaled[:, np.arange(len(y)), y]
    best = int(np.argmin(losses @ shares))
    return losses[best], TEMPERATURES[best]


def updated(weights, slopes):
    """Return the feature weights of the next round, scaled to a mean square of 1."""
    weights = weights * (slopes / max(slopes.mean(), np.finfo(float).tiny) + LEAST_SHARE) ** 0.25
    return weights / math.sqrt(np.mean(weights**2))


def operands_for(kernel, X):
    """Return the operands of a kernel of distances."""
    return operands_of(kernel, X).fitting(X) if sp.issparse(X) else Dense(kernel, origin_of(X))
