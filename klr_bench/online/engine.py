"""The recursion that every online learner shares, exact and in blocks.

At step t, with f_1 = 0, a learner sees (x_t, y_t), and its rule answers (insert, s_t, c_t):

    f_{t+1} = project_R( s_t f_t + c_t k(x_t, .) ),      project_R(f) = min(1, R / ||f||) f
    ||s f + c k_t||^2 = s^2 ||f||^2 + 2 s c f(x_t) + c^2 k(x_t, x_t)

Kernel values do not depend on the state.  So the next examples are taken as a block: their kernel values with all
support vectors are matrix products in tiles that stay in the cache, and the recursion then runs on the block's own
small kernel matrix.  The decisions are those of a loop over single examples.

f_t = S_t sum_i a_i k(x_i, .): shrinking and projection only change the scale S, and the sum C of the scales so far
gives the average of the f_t, in which example i weighs a_i (C - C_i).  S is folded into the a_i before it gets so
small that C - C_i would lose digits, and at the end of each block.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from numba import boolean, float32, float64, int64, types

from klr_bench.jit import compiled
from klr_bench.rows import Growing, growing_like

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


@compiled(int64(float64[::1], float64[::1], float64[::1], int64, float64, float64))
def _fold(coef, average, since, n, scale, scale_sum):
    """Bring the first n coefficients to scale 1 and scale sum 0, in place."""
    for i in range(n):
        average[i] += coef[i] * (scale_sum - since[i])
        since[i] = 0.0
        coef[i] *= scale
        if abs(coef[i]) < _SMALLEST:
            coef[i] = 0.0
    return n


def _signature(real):
    function = types.FunctionType(RULE_SIGNATURE)
    vector = float64[::1]
    return types.UniTuple(int64, 3)(
        function, vector, float64, vector, vector, real[:, ::1], vector, vector,
        vector, vector, vector, int64, int64, float64[::1], int64[::1],
    )  # fmt: skip


@compiled([_signature(float32), _signature(float64)])
def _recursion(rule, parameters, radius, y, u, gram, diagonal, f, coef, average, since, n_support, t, norm2, inserted):
    """Run the recursion over a block of b examples.

    gram (b, b) and diagonal (b,) are the block's own kernel values, f (b,) the values of the classifier so far.
    coef, average and since have room for n_support + b entries; norm2 (1,) is ||f||^2.  Returns the numbers of
    examples done, inserted (their positions are in `inserted`) and mistaken; a rule that answers c = nan stops it.
    """
    n, n_inserted, n_mistakes = len(y), 0, 0
    scale, scale_sum, squared = 1.0, 0.0, norm2[0]
    for i in range(n):
        value = scale * f[i]
        scale_sum += scale
        insert, shrink, c = rule(y[i], value, u[i], t + i + 1, parameters)
        if math.isnan(c):
            n = i
            break
        n_mistakes += y[i] * value <= 0.0
        scale *= shrink
        squared *= shrink * shrink
        if insert:
            a = c / scale
            slot = n_support + n_inserted
            coef[slot], average[slot], since[slot] = a, 0.0, scale_sum
            inserted[n_inserted] = i
            n_inserted += 1
            for j in range(i + 1, n):
                f[j] += a * gram[i, j]
            squared = max(squared + 2.0 * shrink * c * value + c * c * diagonal[i], 0.0)
        if squared > radius * radius:
            scale *= radius / math.sqrt(squared)
            squared = radius * radius
        if scale < _FOLD_BELOW:
            _fold(coef, average, since, n_support + n_inserted, scale, scale_sum)
            for j in range(i + 1, n):
                f[j] *= scale
            scale, scale_sum = 1.0, 0.0
    _fold(coef, average, since, n_support + n_inserted, scale, scale_sum)
    norm2[0] = squared
    return n, n_inserted, n_mistakes


class OnlineState:
    """What an online learner knows between two blocks.

    Attributes: `support` and `left`, the support vectors as they came and as operands of the kernel; `coef` and
    `average`, float64 coefficients of the last classifier and t times those of the average one; `norm2`, the
    squared norm of the last classifier; `t`, `n_mistakes`.
    """

    def __init__(self, kernel, X, dtype):
        self.kernel = kernel
        self.sparse = sp.issparse(X)
        self.origin = None if self.sparse else X[0].copy()
        self.support = growing_like(X, dtype)
        self.left = growing_like(kernel.left(X[:1], self.origin), dtype)
        self.coef, self.average, self._since = (Growing(0, np.float64) for _ in range(3))
        self.norm2 = np.zeros(1)
        self.t = 0
        self.n_mistakes = 0

    def learn_block(self, rule, parameters, radius, X, y, u):
        """Learn from rows X (b, d) with labels y (b,), -1.0 or +1.0, and uniform draws u (b,).

        Returns the number of examples done; it is less than b where the rule refused an example.
        """
        kernel, n = self.kernel, len(self.coef)
        left, right = kernel.left(X, self.origin), kernel.right(X, self.origin)
        gram = np.ascontiguousarray(kernel.values(left, right))
        f = expand(kernel, self.left.rows, self.coef.rows, right)
        coef, average, since = (store.room(n + len(y)) for store in (self.coef, self.average, self._since))
        inserted = np.empty(len(y), dtype=np.int64)
        done, n_inserted, n_mistakes = _recursion(
            rule, parameters, radius, y, u, gram, kernel.diagonal(X), f, coef, average, since, n, self.t, self.norm2,
            inserted,
        )  # fmt: skip
        for store in (self.coef, self.average, self._since):
            store.use(n + n_inserted)
        self.support.append(X[inserted[:n_inserted]])
        self.left.append(left[inserted[:n_inserted]])
        self.t += done
        self.n_mistakes += n_mistakes
        return done


def expand(kernel, left, coef, right):
    """Return sum_i coef_i k(x_i, z_j) as float64 (m,), for operands of n rows x_i and m rows z_j, tile by tile."""
    f = np.zeros(right.shape[1])
    weights = coef.astype(right.dtype)
    for start in range(0, len(weights), TILE):
        tile = slice(start, start + TILE)
        f += weights[tile] @ kernel.values(left[tile], right)
    return f
