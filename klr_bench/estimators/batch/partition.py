"""Division of rows into leaves by hyperplanes: `Partition`.

The rows are divided at the median of their projections onto a direction, and each half again, until a part has few
enough rows.  A direction is a random combination of the centered rows B, u = B'g with independent normal g: the sum of
the principal directions, each times its singular value and an independent normal number.  Steps u <- B'B u turn it
towards the first of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import float32, float64, int64, void
from sklearn.utils.sparsefuncs import min_max_axis

from klr_bench.estimators.batch.scaling import Scaling
from klr_bench.estimators.core.jit import compiled, read_only
from klr_bench.estimators.core.multiclass import SEEDS
from klr_bench.estimators.core.rows import check_size, slices, stacked, with_scaled_columns
from klr_bench.estimators.core.threads import parallel_map

DIRECTION_ROWS = 5000
"""Number of rows from which a direction is computed."""
POWER_STEPS = 30
"""Number of steps towards the first principal direction."""
SAMPLE_ROWS = 2**19
"""Largest number of rows that are divided at once."""
PARTS, LEAST_SAMPLE = 16, 100
"""More rows have at most so many parts per SAMPLE_ROWS, and each part at least so many rows of the sample."""
ROWS = 2**14
"""Number of rows that are scaled and projected at a time."""
HASHED_VALUES = 2**22
"""Number of values that are hashed at a time."""


@dataclass(frozen=True)
class WeightedRows:
    """Rows that are scaled, and multiplied by weights of the features, whenever they are read."""

    X: Any
    """Array, which may be memory-mapped, or CSR matrix (n, d)."""
    scaling: Scaling | None
    """None for rows that are scaled already."""
    weights: np.ndarray
    """Weight of each feature that is not constant."""
    dtype: np.dtype

    @property
    def shape(self):
        return self.X.shape[0], len(self.weights)

    def __getitem__(self, part):
        rows = self.X[part] if self.scaling is None else self.scaling.transform(self.X[part], self.dtype)
        rows = with_scaled_columns(rows, self.weights)
        return rows if sp.issparse(rows) else np.ascontiguousarray(rows)


def _signatures(*others):
    """Return signatures, with rows X (n, d) in both precisions and directions (n_nodes, d)."""
    arrays = [read_only(real, 2) for real in (float32, float64)]
    return [void(X, arrays[1], *others) for X in arrays]


@compiled()
def _product(X, i, directions, node):
    """Return the product of row i with the direction of a node.

    Four sums of every fourth term are added in pairs.
    """
    d, a, b, c, e = directions.shape[1], 0.0, 0.0, 0.0, 0.0
    whole = d - d % 4
    for j in range(0, whole, 4):
        a += float64(X[i, j]) * directions[node, j]
        b += float64(X[i, j + 1]) * directions[node, j + 1]
        c += float64(X[i, j + 2]) * directions[node, j + 2]
        e += float64(X[i, j + 3]) * directions[node, j + 3]
    for j in range(whole, d):
        a += float64(X[i, j]) * directions[node, j]
    return (a + b) + (c + e)


@compiled(_signatures(int64[::1], float64[::1]))
def _project(X, directions, nodes, values):
    """Set `values` (n,) to the product of each row with the direction of its node."""
    for i in range(len(nodes)):
        values[i] = _product(X, i, directions, nodes[i])


@compiled(_signatures(read_only(float64, 1), read_only(int64, 2), int64[::1]))
def _route(X, directions, thresholds, children, ends):
    """Set `ends` (n,) to -1 - k for each row in leaf k; the first node is node 0."""
    for i in range(len(ends)):
        node = 0
        while node >= 0:
            node = children[node, int64(_product(X, i, directions, node) > thresholds[node])]
        ends[i] = node


def projections(X, nodes, directions):
    """Return the product (n,) of each row of X with the direction of its node, in float64."""
    values = np.empty(len(nodes))

    def project(part):
        values[part] = _products(X[part], nodes[part], directions)

    parallel_map(project, slices(len(nodes), ROWS))
    return values


def _products(B, nodes, directions):
    """Return `projections` of an array or CSR matrix B.

    The product of a row does not depend on the other rows, unlike with BLAS.
    """
    if sp.issparse(B):
        places = np.repeat(np.arange(B.shape[0]), np.diff(B.indptr))
        return np.bincount(places, B.data * directions[nodes[places], B.indices], B.shape[0])
    values = np.empty(len(nodes))
    _project(B, directions, nodes, values)
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
        check_size("directions", self.directions.shape[1], X.shape[1])
        ends = np.full(X.shape[0], -1)

        def route(part):
            B = X[part]
            if not sp.issparse(B):
                _route(np.ascontiguousarray(B), self.directions, self.thresholds, self.children, ends[part])
                return
            nodes = np.zeros(B.shape[0], dtype=np.int64)
            while (nodes >= 0).any():
                inner = np.maximum(nodes, 0)  # of a leaf, whose result is not used
                is_second = _products(B, inner, self.directions) > self.thresholds[inner]
                nodes = np.where(nodes < 0, nodes, self.children[inner, is_second.astype(int)])
            ends[part] = nodes

        if len(self.children):
            parallel_map(route, slices(len(ends), ROWS))
        order = np.argsort(ends, kind="stable")
        return [(-1 - ends[rows[0]], rows) for rows in np.split(order, np.flatnonzero(np.diff(ends[order])) + 1)]


@dataclass(frozen=True)
class _Subset:
    """Some of the rows of X, which are read whenever they are used."""

    X: Any
    rows: np.ndarray
    shape = property(lambda self: (len(self.rows), self.X.shape[1]))

    def __getitem__(self, places):
        return self.X[self.rows[places]]


def divided(X, order, leaf_size, n_steps, random):
    """Divide the rows of X (n, d) until no part has more than `leaf_size` rows.

    Return the `Partition` and the indices of the rows of each leaf, in their `order` (n,).  Equal rows are in the same
    leaf, which may have more rows for that reason.  Each direction is computed from the first rows of its node, with
    `n_steps` steps towards the first principal one.  Of more than SAMPLE_ROWS rows, the first ones in their order are
    divided into parts; then each part of all rows is divided.
    """
    n = len(order)
    if n <= SAMPLE_ROWS:
        return _halved(X, order, leaf_size, n_steps, random)
    most = max(SAMPLE_ROWS**2 // (PARTS * n), LEAST_SAMPLE)
    top, _ = _halved(_Subset(X, order[:SAMPLE_ROWS]), np.arange(SAMPLE_ROWS), most, n_steps, random)
    ranks, parts = np.empty(n, dtype=np.int64), sorted(top.leaves(X), key=itemgetter(0))
    ranks[order] = np.arange(n)

    def divide(part):
        (_, rows), seed = part
        rows = rows[np.argsort(ranks[rows])]
        of_part = _Subset(X, rows)
        of_part = stacked([of_part[places] for places in slices(len(rows), ROWS)])  # scaled once, in little memory
        partition, leaves = _halved(of_part, np.arange(len(rows)), leaf_size, n_steps, np.random.RandomState(seed))
        return partition, [rows[leaf] for leaf in leaves]

    pairs = parallel_map(divide, zip(parts, random.randint(SEEDS, size=len(parts)), strict=True))
    return _grafted(top, [partition for partition, _ in pairs]), [leaf for _, leaves in pairs for leaf in leaves]


def _grafted(top, parts):
    """Return a partition with a partition in place of each leaf."""
    children, roots, n_nodes, n_leaves = [top.children.copy()], [], len(top.children), 0
    for part in parts:
        roots.append(n_nodes if len(part.children) else -1 - n_leaves)
        children.append(part.children + np.where(part.children < 0, -n_leaves, n_nodes))
        n_nodes, n_leaves = n_nodes + len(part.children), n_leaves + len(part.children) + 1
    ends = top.children < 0
    children[0][ends] = np.array(roots)[-1 - top.children[ends]]
    of_nodes = zip(*((part.directions, part.thresholds) for part in (top, *parts)), strict=True)
    return Partition(*map(np.concatenate, of_nodes), np.concatenate(children))


def _halved(X, order, leaf_size, n_steps, random):
    """Return the same as `divided`, with thresholds that halve all rows of a node."""
    directions, thresholds, children, leaves = [], [], [], []
    level, nodes = [(-1, 0, order)], np.empty(len(order), dtype=np.int64)
    while level:
        of_level = np.zeros((len(level), X.shape[1]))
        for k, (_, _, rows) in enumerate(level):
            nodes[rows] = k
            if len(rows) > leaf_size:
                of_level[k] = _direction(X[rows[:DIRECTION_ROWS]], n_steps, random)
        values = projections(X, nodes, of_level) if of_level.any() else None
        following = []
        for u, (parent, side, rows) in zip(of_level, level, strict=True):
            threshold = _threshold(values[rows]) if u.any() else None
            if parent >= 0:
                children[parent][side] = -1 - len(leaves) if threshold is None else len(children)
            if threshold is None:
                leaves.append(rows)
                nodes[rows] = 0  # a node of each level, whose values for these rows are not used
                continue
            is_first = values[rows] <= threshold
            following += [(len(children), 0, rows[is_first]), (len(children), 1, rows[~is_first])]
            directions.append(u), thresholds.append(threshold), children.append([0, 0])
        level = following
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
