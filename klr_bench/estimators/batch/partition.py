"""Division of rows into leaves by hyperplanes: `Partition`.

The rows are divided at the median of their projections onto a direction, and each half again, until a part has few
enough rows.  A direction is a random combination of the centered rows B, u = B'g with independent normal g, which is
one of the principal directions, each times its singular value and a normal number.  Steps u <- B'B u turn it towards
the first of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numba import float32, float64, int64, types, void
from sklearn.utils.sparsefuncs import min_max_axis

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.rows import slices

DIRECTION_ROWS = 5000
"""Number of rows from which a direction is computed."""
POWER_STEPS = 30
"""Number of steps towards the first principal direction."""
HASHED_VALUES = 2**22
"""Number of values that are hashed at a time."""


def _signature(real):
    return void(types.Array(real, 2, "C", readonly=True), int64[::1], float64[::1], float64[::1])


@compiled([_signature(float32), _signature(float64)])
def _project(X, rows, direction, values):
    """Set `values` (n,) to products of rows with a direction, added feature by feature."""
    for i in range(len(rows)):
        total = 0.0
        for j in range(len(direction)):
            total += float64(X[rows[i], j]) * direction[j]
        values[i] = total


def projections(X, rows, direction):
    """Return X[rows] @ direction in float64.

    The product of a row does not depend on the other rows, unlike with BLAS.
    """
    if sp.issparse(X):
        return X[rows] @ direction
    values = np.empty(len(rows))
    _project(X, rows, direction, values)
    return values


@dataclass(frozen=True)
class Partition:
    """Binary tree of hyperplanes, whose leaves are numbered from 0.

    The rows x with x'u <= threshold at a node go to its first child, the others to its second.
    """

    directions: np.ndarray
    """u of each node, (n_nodes, d)."""
    thresholds: np.ndarray
    children: np.ndarray
    """Indices of the two children of each node, (n_nodes, 2); -1 - k is leaf k."""

    def leaves(self, X):
        """Return the number of each leaf with rows of X (n, d), and their indices, as pairs."""
        found, waiting = [], [(0 if len(self.children) else -1, np.arange(X.shape[0]))]
        while waiting:
            node, rows = waiting.pop()
            if node < 0:
                found.append((-1 - node, rows))
                continue
            is_first = projections(X, rows, self.directions[node]) <= self.thresholds[node]
            parts = zip(self.children[node].tolist(), (rows[is_first], rows[~is_first]), strict=True)
            waiting += [(child, part) for child, part in parts if len(part)]
        return found


def divided(X, rows, leaf_size, n_steps, random):
    """Divide some rows of X (n, d) until no part has more than `leaf_size` rows.

    Return the `Partition` and the indices of the rows of each leaf.  Equal rows are in the same leaf, which may have
    more rows for that reason.  Each direction is computed from the first rows of its node, with `n_steps` steps towards
    the first principal one.
    """
    nodes, leaves, waiting = [], [], [(None, rows)]
    while waiting:
        parent, rows = waiting.pop()
        threshold = None
        if len(rows) > leaf_size:
            direction = _direction(X[rows[:DIRECTION_ROWS]], n_steps, random)
            values = projections(X, rows, direction)
            threshold = _threshold(values)
        if parent is not None:
            nodes[parent][2].append(-1 - len(leaves) if threshold is None else len(nodes))
        if threshold is None:
            leaves.append(rows)
            continue
        waiting += [(len(nodes), rows[values > threshold]), (len(nodes), rows[values <= threshold])]
        nodes.append((direction, threshold, []))
    directions, thresholds, children = zip(*nodes, strict=True) if nodes else ([], [], [])
    shaped = np.reshape(directions, (-1, X.shape[1])), np.array(thresholds, dtype=np.float64)
    return Partition(*shaped, np.reshape(children, (-1, 2)).astype(np.int64)), leaves


def _direction(B, n_steps, random):
    """Return a random direction of length 1 for the rows B (n, d), or 0 if they are all equal."""
    B = B.astype(np.float64)
    mean = np.asarray(B.mean(axis=0)).ravel()
    g = random.standard_normal(B.shape[0])
    for _ in range(n_steps + 1):
        u = B.T @ g - g.sum() * mean
        length = np.sqrt(u @ u)
        u = u / length if length > 0 else u
        g = B @ u - mean @ u
    return u


def _threshold(values):
    """Return the number that divides values most evenly, or None if all are equal.

    It lies between two distinct values; of two such numbers it is the lower one.
    """
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) == 1:
        return None
    place = np.argmin(np.abs(2 * np.cumsum(counts)[:-1] - len(values)))
    low, high = distinct[place], distinct[place + 1]
    middle = low + (high - low) / 2
    return middle if middle < high else low


def hashed(X, codes):
    """Return a hash (n,), uint64, of each row of X (n, d), dense or CSR, and its class index.

    It does not depend on the layout and the precision in which the values are stored, nor on constant features.
    """
    n, d = X.shape
    lowest, highest = min_max_axis(X, axis=0) if sp.issparse(X) else (X.min(axis=0), X.max(axis=0))
    varies = lowest < highest
    factors = np.where(varies, _mixed(np.cumsum(varies).astype(np.uint64)) | np.uint64(1), np.uint64(0))
    of_rows = [_hashes(X[part], factors) for part in slices(n, max(HASHED_VALUES // max(d, 1), 1))]
    return np.concatenate(of_rows) + _mixed(codes.astype(np.uint64))


def _hashes(X, factors):
    if sp.issparse(X):
        sums = np.zeros(X.nnz + 1, dtype=np.uint64)
        np.cumsum(_mixed(_bits(X.data)) * factors[X.indices], out=sums[1:])
        return np.diff(sums[X.indptr])
    return (_mixed(_bits(X)) * factors).sum(axis=1, dtype=np.uint64)


def _bits(values):
    return np.add(values, 0.0, dtype=np.float64).view(np.uint64)  # -0.0 + 0.0 is 0.0


def _mixed(z):
    """Return a hash of each 64-bit integer; that of 0 is 0.

    It is the function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
    """
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def shuffled(hashes, weights, seed):
    """Return a random order of rows that depends only on hashes, weights (n,) and seed.

    Rows with equal hashes and weights are numbered, so that they do not stay next to each other.
    """
    keys = hashes + _mixed(_bits(weights))
    order = np.argsort(keys, kind="stable")
    begins = np.concatenate([[True], np.diff(keys[order]) != 0])
    starts = np.maximum.accumulate(np.where(begins, np.arange(len(keys)), 0))
    numbers = np.empty(len(keys), dtype=np.uint64)
    numbers[order] = np.arange(len(keys)) - starts
    return np.argsort(_mixed(keys ^ _mixed((numbers << np.uint64(32)) + np.uint64(seed + 1))), kind="stable")
