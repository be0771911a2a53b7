"""Models of kernels, widths and penalties, with their losses at validation rows: `Grid`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from klr_bench.estimators.batch.cross_validation import WIDTHS, log_losses, neighbors, unbeaten
from klr_bench.estimators.batch.slopes import mean_squared_slopes
from klr_bench.estimators.core.rows import evenly_spaced

SLOPE_ROWS = 2000
"""Largest number of training rows over which squared derivatives are averaged; they are evenly spaced."""
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

    `decisions` are their values (n_valid, m) of f at the validation rows, `shares` those of the training rows,
    `operands` those of the kernel, and `coefs` the coefficients (m, n_centers) of the kernel functions of the centers.
    """

    decisions: list
    rows: np.ndarray
    centers: np.ndarray
    shares: np.ndarray
    operands: Any
    coefs: list

    def mean_squared_slopes(self, place):
        """Return each feature's weighted mean squared derivative, summed over the binary problems."""
        some = evenly_spaced(self.rows.shape[0], SLOPE_ROWS)
        shares = self.shares[some] / self.shares[some].sum()
        return mean_squared_slopes(self.operands, self.rows[some], self.centers, self.coefs[place], shares)


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
        return unbeaten(self.losses[np.arange(len(self.shapes)), self.means.argmin(axis=1)], self.shares, n_errors)

    def slopes(self):
        """Return each fold's mean squared derivatives of the best model."""
        shape, lam = self.best
        return [of_fold[shape].mean_squared_slopes(lam) for of_fold in self.paths]


def shapes_of(kernel, widths=None):
    """Return the shapes of a kernel with the given widths, or with `WIDTHS`."""
    return [Shape(kernel, width) for width in widths or WIDTHS]


def tempered_losses(f, y, shares):
    """Return the log loss of each row and the temperature T, which minimizes their mean.

    f has shape (n, m).  With one binary problem T is 1; with more, the probabilities are softmax(f / T).
    """
    if f.shape[1] == 1:
        return log_losses(f, y), 1.0
    f = f - f.max(axis=1, keepdims=True)
    own = f[np.arange(len(y)), y]
    losses = np.array([np.log(np.exp(f / T).sum(axis=1)) - own / T for T in TEMPERATURES])
    best = int(np.argmin(losses @ shares))
    return losses[best], TEMPERATURES[best]
