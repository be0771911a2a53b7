"""Model of the rows of a leaf of a partition: `Leaf`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from klr_bench.estimators.batch.approximation import move_support
from klr_bench.estimators.batch.dual import DualCDKLR
from klr_bench.estimators.batch.nystroem import NystroemKLR
from klr_bench.estimators.batch.partition import hashed
from klr_bench.estimators.batch.selection import operands_for
from klr_bench.estimators.core.expansion import COLUMNS, decide
from klr_bench.estimators.core.threads import parallel_map
from klr_bench.estimators.kernel_values.operand_base import Operands
from klr_bench.estimators.kernel_values.operands import Dense
from klr_bench.estimators.kernel_values.tiles import WIDTH

CACHE_MB = 1000.0
TOL = 1e-2
"""Relative duality gap at which the fit of a leaf ends."""


@dataclass(frozen=True)
class Leaf:
    """Model of the rows of a leaf."""

    classes: np.ndarray
    """Indices of the classes with rows in the leaf."""
    margin: float
    """T log(1 + n) for n rows and the temperature T.

    A class without rows has minus this value, and the only one of several classes has 0.
    """
    support: np.ndarray | sp.csr_matrix
    coef: np.ndarray
    operands: Operands | None
    """None if there is a single class."""

    def decision_function(self, X, n_classes):
        """Return the values (n, 1) or (n, n_classes) of f at the rows of X (n, d).

        Those of a row do not depend on the other rows.
        """
        k, n = len(self.classes), X.shape[0]
        f = np.full((n, n_classes), -self.margin)
        if k == 1:
            f[:, self.classes] = self.margin if n_classes == 2 else 0.0
        else:
            multiple = self._multiple(X)
            padded = X if n % multiple == 0 else X[np.minimum(np.arange(n + -n % multiple), n - 1)]
            values = decide(self.operands, self.support, self.coef, padded)[:n]
            f[:, self.classes] = values if k > 2 else np.column_stack([-values, values])
        return f if n_classes > 2 else f[:, 1:]

    def _multiple(self, X):
        """Return a number of rows, of whose multiples all products are computed alike.

        BLAS rounds differently for products of other sizes; the values of compiled tiles do not depend on other rows.
        """
        if isinstance(self.operands, Dense) and X.dtype == np.float32:
            return 1 if self.coef.ndim == 1 else WIDTH
        return COLUMNS


def in_this_process(X, jobs):
    """Fit the models of leaves to rows of X in parallel threads, and return them.

    job() returns the indices of the rows of a leaf, and a function that fits a model to these rows.
    """

    def call(job):
        leaf, fit = job()
        return fit(X[leaf])

    return parallel_map(call, jobs)


def fit_leaf(view, codes, weights, lam, kernel, temperature, max_support, seed, X):
    """Fit a model to the rows X (n, d) of a leaf, their class indices and weights (n,).

    `view` are `WeightedRows` of no rows, with the scaling and the weights of the features.
    """
    rows = replace(view, X=X)[:]
    merged, totals = distinct(np.arange(len(codes)), hashed(rows, codes), weights)  # limited features can be equal
    if len(merged) < len(codes):
        rows, codes, weights = rows[merged], codes[merged], totals
    classes, margin = np.unique(codes), temperature * math.log1p(weights.sum())
    if len(classes) == 1:
        return Leaf(classes, margin, rows[:0].copy(), np.empty(0), None)
    shared = {"kernel": kernel.name, "gamma": kernel.gamma, "tol": TOL, "random_state": seed}
    model = DualCDKLR(lam, cache_size=CACHE_MB, **shared).fit(rows, codes, weights)
    if max_support is not None and max_support < len(codes):
        f = model.decision_function(rows)
        model = NystroemKLR(lam, max_support, centers="kmeans++", **shared)
        model.fit(rows, codes, weights)
        if kernel.name == "rbf" and not sp.issparse(rows):
            move_support(model, f, rows, weights, temperature, np.random.RandomState(seed))
    support = model.support_vectors_
    return Leaf(classes, margin, support, model.dual_coef_, operands_for(replace(kernel, gamma=model.gamma), support))


def distinct(leaf, hashes, weights):
    """Return the first of equal rows of a leaf, in their order, and the total weight of each."""
    _, first, places = np.unique(hashes[leaf], return_index=True, return_inverse=True)
    return leaf[np.sort(first)], np.bincount(places, weights[leaf])[np.argsort(first)]
