"""The recursion that every online learner shares, exact, in blocks, and for many learners in one pass.

At step t, with f_1 = 0, a learner sees (x_t, y_t), and its rule answers (insert, s_t, c_t):

    f_{t+1} = project_R( s_t f_t + c_t k(x_t, .) ),      project_R(f) = min(1, R / ||f||) f
    ||s f + c k_t||^2 = s^2 ||f||^2 + 2 s c f(x_t) + c^2 k(x_t, x_t)

Kernel values do not depend on the state.  So the next examples are taken as a block: their kernel values with all
support vectors are matrix products in tiles that stay in the cache, and the recursion then runs on the block's own
small kernel matrix.  The decisions are those of a loop over single examples.  Learners that see the same examples
through the same kernel share the tiles: each is multiplied by a matrix of coefficients, a row a learner.

f_t = S_t sum_i a_i k(x_i, .): shrinking and projection only change the scale S, and the sum C of the scales so far
gives the average of the f_t, in which example i weighs a_i (C - C_i).  S is folded into the a_i before it gets so
small that C - C_i would lose digits.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import boolean, float32, float64, int64, types, uint8

from klr_bench.jit import compiled
from klr_bench.kernels import dense_is_cheaper
from klr_bench.rows import GrowingColumns, growing_like, in_layout

BLOCK = 256
"""Examples a block."""
TILE = 1024
"""Support vectors a tile: with a block of 256 its kernel values take 1 MB in float32."""

RULE_SIGNATURE = types.Tuple((boolean, float64, float64))(float64, float64, float64, int64, float64[::1])
"""``rule(y, f, u, t, parameters) -> (insert, s, c)``: label, f_t(x_t), a uniform draw, t = 1, 2, ..."""

rule = compiled(RULE_SIGNATURE)
"""Decorator of the update rule in an algorithm's file."""

_FOLD_BELOW = 1e-3
_SMALLEST = 1e-290  # what decays below this is 0: numbers without full precision are slow, and no f(x) sees them


@dataclass(frozen=True)
class Update:
    """What the engine needs of a learner: its compiled rule, the rule's parameters, the radius R."""

    rule: Any
    parameters: Sequence[float]
    radius: float


def _fold_signature(real):
    vector = float64[::1]
    return int64(vector, vector, vector, real[::1], int64, int64, float64, float64, float64)


@compiled([_fold_signature(float32), _fold_signature(float64)])
def _fold(coef, average, since, weights, first, n, scale, scale_sum, tiny):
    """Bring the coefficients first, ..., n-1 to scale 1 and scale sum 0, in place; return the first that is not 0."""
    leading = first
    for i in range(first, n):
        average[i] += coef[i] * (scale_sum - since[i])
        since[i] = 0.0
        coef[i] *= scale
        if abs(coef[i]) < _SMALLEST:
            coef[i] = 0.0
        weights[i] = coef[i] if abs(coef[i]) >= tiny else 0.0
        if leading == i and coef[i] == 0.0:
            leading = i + 1
    return leading


def _signature(real):
    function = types.FunctionType(RULE_SIGNATURE)
    vector, matrix, marks = float64[::1], float64[:, ::1], uint8[:, ::1]
    return types.void(
        function, int64[::1], matrix, vector, vector, matrix, real[:, ::1], vector, matrix, int64, int64,
        matrix, matrix, matrix, real[:, ::1], matrix, matrix, matrix, real[:, ::1], marks,
        matrix, int64[:, ::1], float64,
    )  # fmt: skip


@compiled([_signature(float32), _signature(float64)])
def _recursion(
    rule, learners, parameters, radii, y, u, gram, diagonal, f, t, n_support,
    coef, average, since, weights, new_coef, new_average, new_since, new_weights, inserted,
    scalars, counts, tiny,
):  # fmt: skip
    """Run the learners with these numbers, which all have this rule, through a block of b examples.

    parameters (len(learners), p) and radii (len(learners),) are theirs; all other matrices have a row for each learner
    of the pass.  gram (b, b) and diagonal (b,) are the block's own kernel values; f (n_learners, b) the sums so far,
    without the scale.  The first `n_support` columns of coef, average, since and weights are those of earlier
    examples, the new_ ones (n_learners, b) those of the block; `inserted` marks who is in.  scalars: scale, sum of
    scales, squared norm, and the last f(x); counts: mistakes, first coefficient that is not 0, and the example at which
    the learner was given up, or 0: its rule answered c = nan, or something is not finite.
    """
    for k, m in enumerate(learners):
        if counts[m, 2]:
            continue
        scale, scale_sum, squared = scalars[m, 0], scalars[m, 1], scalars[m, 2]
        radius, sums = radii[k], f[m]
        for i in range(len(y)):
            value = scale * sums[i]
            insert, shrink, c = rule(y[i], value, u[m, i], t + i + 1, parameters[k])
            scalars[m, 3] = value
            if not math.isfinite(value + c):
                counts[m, 2] = t + i + 1
                break
            scale_sum += scale
            counts[m, 0] += y[i] * value <= 0.0
            scale *= shrink
            squared *= shrink * shrink
            if insert:
                a = c / scale
                new_coef[m, i], new_since[m, i], new_weights[m, i], inserted[m, i] = a, scale_sum, a, 1
                for j in range(i + 1, len(y)):
                    sums[j] += a * gram[i, j]
                squared = max(squared + 2.0 * shrink * c * value + c * c * diagonal[i], 0.0)
            if not math.isfinite(squared):
                counts[m, 2] = t + i + 1
                break
            norm = math.sqrt(squared)
            if norm > radius:
                scale *= radius / norm
                squared = radius * radius
            if scale < _FOLD_BELOW:
                counts[m, 1] = _fold(
                    coef[m], average[m], since[m], weights[m], counts[m, 1], n_support, scale, scale_sum, tiny
                )
                _fold(new_coef[m], new_average[m], new_since[m], new_weights[m], 0, i + 1, scale, scale_sum, tiny)
                for j in range(i + 1, len(y)):
                    sums[j] *= scale
                scale, scale_sum = 1.0, 0.0
        scalars[m, 0], scalars[m, 1], scalars[m, 2] = scale, scale_sum, squared


class OnlineState:
    """What online learners that see the same examples through the same kernel know between two blocks.

    Attributes: `support` and `left`, the examples that any of them has inserted, as they came and as operands of the
    kernel; `coef`, `average`, `since` (float64) and `weights` (as the kernel values), a row a learner; `inserted`,
    who inserted what; `scalars` and `counts`, as `_recursion` has them; `t`, the number of examples.
    """

    def __init__(self, kernel, X, n):
        """Start n learners on rows like those of X, dense or CSR; the origin is the median of the first."""
        self.kernel = kernel
        self.sparse = sp.issparse(X)
        self.by_index = self.sparse and not dense_is_cheaper(X)
        self.origin = None if self.by_index else np.median(in_layout(X[:BLOCK], False), axis=0).astype(X.dtype)
        self._start(n, X)

    def _start(self, n, X):
        self.support = growing_like(X)
        self.left = self.support if self.by_index else growing_like(self.kernel.left(self.origin[None], self.origin))
        self.coef, self.average, self.since = (GrowingColumns(n, np.float64) for _ in range(3))
        self.weights = GrowingColumns(n, X.dtype)
        self.inserted = GrowingColumns(n, np.uint8)
        self.scalars = np.tile([1.0, 0.0, 0.0, 0.0], (n, 1))
        self.counts = np.zeros((n, 3), dtype=np.int64)
        self.t = 0

    def learn_block(self, groups, X, y, u):
        """Learn from rows X (b, d) with labels y (b,), -1.0 or +1.0, and uniform draws u (n_learners, b).

        `groups` are the learners' updates, as `grouped` puts them.
        """
        rows = in_layout(X, self.by_index)
        left, right = self.kernel.left(rows, self.origin), self.kernel.right(rows, self.origin)
        gram = np.ascontiguousarray(self.kernel.values(left, right))
        diagonal = self.kernel.diagonal(rows)
        f = expand(self.kernel, self.left.rows, self.weights.columns, right)
        n, shape = len(self.support), u.shape
        coef, average, since = np.zeros((3, *shape))
        weights, inserted = np.zeros(shape, dtype=X.dtype), np.zeros(shape, dtype=np.uint8)
        tiny = float(np.finfo(X.dtype).tiny)
        for rule, learners, parameters, radii in groups:
            _recursion(
                rule, learners, parameters, radii, y, u, gram, diagonal, f, self.t, n,
                self.coef.array, self.average.array, self.since.array, self.weights.array,
                coef, average, since, weights, inserted, self.scalars, self.counts, tiny,
            )  # fmt: skip
        new = np.flatnonzero(inserted.any(axis=0))
        self.support.append(X[new])
        if not self.by_index:
            self.left.append(left[new])
        for store, block in (
            (self.coef, coef),
            (self.average, average),
            (self.since, since),
            (self.weights, weights),
            (self.inserted, inserted),
        ):
            store.append(block[:, new])
        self.t += len(y)

    @property
    def refused(self):
        """The example at which each learner's rule gave up, or 0, (n_learners,)."""
        return self.counts[:, 2]

    def coefficients(self, i, *, average):
        """Return learner i's coefficients of all examples in `support`: those of its average f_t, or of the last."""
        coef, since = self.coef.columns[i], self.since.columns[i]
        scale, scale_sum = self.scalars[i, :2]
        if average:
            return (self.average.columns[i] + coef * (scale_sum - since)) / self.t
        return coef * scale

    def decide(self, weights, X):
        """Return f (k, m), float64, for rows X (m, d) and k rows of weights for the examples in `support`."""
        f = np.zeros((len(weights), X.shape[0]))
        for start in range(0, X.shape[0], BLOCK):
            block = slice(start, start + BLOCK)
            right = self.kernel.right(in_layout(X[block], self.by_index), self.origin)
            f[:, block] = expand(self.kernel, self.left.rows, weights, right)
        return f

    def alone(self, i):
        """Return the state of learner i as if it had been alone."""
        rows = np.flatnonzero(self.inserted.columns[i])
        state = copy.copy(self)
        state._start(1, self.support.rows)
        state.support.append(self.support.rows[rows])
        if not self.by_index:
            state.left.append(self.left.rows[rows])
        for name in ("coef", "average", "since", "weights", "inserted"):
            getattr(state, name).append(getattr(self, name).columns[i : i + 1, rows])
        state.scalars, state.counts, state.t = self.scalars[i : i + 1].copy(), self.counts[i : i + 1].copy(), self.t
        state.counts[0, 1] = 0  # another numbering
        return state


def grouped(updates):
    """Return (rule, numbers of its learners, parameters, radii) for each rule: it is passed on once a block."""
    groups = {}
    for number, update in enumerate(updates):
        groups.setdefault(id(update.rule), []).append(number)
    return [
        (
            updates[numbers[0]].rule,
            np.array(numbers),
            np.array([updates[number].parameters for number in numbers], dtype=np.float64),
            np.array([updates[number].radius for number in numbers], dtype=np.float64),
        )
        for numbers in groups.values()
    ]


def expand(kernel, left, weights, right):
    """Return f (n_learners, m), float64: sum_i weights[:, i] k(x_i, z_j), tile by tile.

    left and right are operands of n rows x_i and m rows z_j; weights (n_learners, n) are in the kernel's precision.
    """
    f = np.zeros((len(weights), right.shape[1]))
    for start in range(0, weights.shape[1], TILE):
        tile = slice(start, start + TILE)
        f += kernel.sums(left[tile], weights[:, tile], right)
    return f
