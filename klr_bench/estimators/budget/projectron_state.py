"""State of a Projectron: its support vectors, and the coordinates of f in their span.

Let K = L L' be the kernel matrix of the support vectors.  In an orthonormal basis of the span, f is a vector v of
coordinates, its coefficients a solve L'a = v, and the projection P k(x, .) has the coordinates w with L w = k.  Matrix
products give w for a block of examples; the updates within the block work on the matrix of the inner products of the w.

While there is room, a Projectron is a kernel perceptron: w is then computed for the mistakes only.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from numba import boolean, float64, int64, types
from scipy.linalg.lapack import dtrtri

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.rows import Growing, enlarged, growing_like, grown
from klr_bench.estimators.core.vectors import add_scaled, settled, tie_of_sums
from klr_bench.estimators.kernel_values.operands import nonnegative, operands_of
from klr_bench.estimators.online.passes import BLOCK
from klr_bench.estimators.online.state import STATES, BlockState

AHEAD = 512
"""Number of examples per block while the budget is not full."""
PANEL = 128
"""Number of rows of L per matrix product."""
DEPENDENT = 1e-10
"""An example counts as dependent if its squared distance from the span is at most this share of k(x, x)."""


@compiled(int64(float64[::1], float64[:, ::1], float64[:, ::1], float64[::1], int64, boolean, float64,
                float64[::1], int64[::1], float64[:, ::1], float64[::1], STATES))  # fmt: skip
def _block(y, gram, projected, f, room, margins, eta, c, inserted, new, squares, states):
    """Learn from a block of examples; return the number of new support vectors.

    gram and projected (b, b) are the inner products of the k(x_i, .) and of their projections; `projected` changes with
    each insertion.  f (b,) is the function at the start of the block.  Written: c (b,), the steps along the
    projections; inserted (b,), the places of the inserted examples; new (b, b), the coordinates along each new
    direction; squares (1,), the sum of the squared norms of all steps; the mistakes and a refused example in `states`.
    """
    n, state = 0, states[0]
    for i in range(len(y)):
        if not math.isfinite(f[i] + gram[i, i]):
            state["refused"], state["last"] = state["t"] + i + 1, f[i]
            break
        z = y[i] * settled(f[i], tie_of_sums(gram) * math.sqrt(squares[0] * gram[i, i]))
        state["mistakes"] += z <= 0.0
        away = max(gram[i, i] - projected[i, i], 0.0)
        if z <= 0.0:
            c[i] = y[i]
            if n < room and away > DEPENDENT * gram[i, i]:
                # Project the later examples onto the component of example i orthogonal to the support vectors.
                direction, products, its = new[n, i:], gram[i, i:], projected[i, i:]
                for j in range(len(direction)):
                    direction[j] = (products[j] - its[j]) / math.sqrt(away)
                for k in range(i, len(y)):
                    add_scaled(projected[k, i:], direction[k - i], direction)
                inserted[n] = i
                n += 1
        elif margins and z < 1.0 and projected[i, i] > 0.0:
            gain = (1.0 - z) - math.sqrt(away) / eta
            if gain > 0.0:
                c[i] = y[i] * min((1.0 - z) / projected[i, i], 2.0 * gain / projected[i, i], 1.0)
        if c[i] != 0.0:
            squares[0] += c[i] * c[i] * gram[i, i]
            add_scaled(f[i + 1 :], c[i], projected[i, i + 1 :])
    return n


@compiled(types.UniTuple(int64, 2)(float64[::1], float64[:, ::1], float64[::1], int64, int64[::1], float64[::1]))
def _perceptron(y, gram, f, room, mistakes, squares):
    """Process a block of examples as a kernel perceptron until the budget is full.

    The function also stops where f(x) is not finite.  gram (b, b), f (b,) and squares (1,) as in `_block`.  Written:
    the places of the mistakes.  Returned: the numbers of examples seen and of mistakes.
    """
    n = 0
    for i in range(len(y)):
        if not math.isfinite(f[i] + gram[i, i]):
            return i, n
        if y[i] * settled(f[i], tie_of_sums(gram) * math.sqrt(squares[0] * gram[i, i])) <= 0.0:
            if n == room:
                return i, n
            mistakes[n] = i
            n += 1
            squares[0] += gram[i, i]
            add_scaled(f[i:], y[i], gram[i, i:])
    return len(y), n


@compiled(int64(float64[:, ::1], float64[::1], int64[::1], float64[:, ::1]))
def _new_directions(left_over, lengths, inserted, new):
    """Find the examples that are linearly independent of all earlier ones in feature space.

    Returns their number.  left_over (b, b), overwritten: inner products of the k(x_i, .) without their parts in the old
    span; lengths (b,): k(x_i, x_i).  Written: inserted (b,) and new (b, b), as in `_block`.
    """
    n = 0
    for i in range(len(lengths)):
        away = left_over[i, i]
        if away > DEPENDENT * lengths[i]:
            new[n, i:] = left_over[i, i:] / math.sqrt(away)
            for k in range(i + 1, len(lengths)):
                add_scaled(left_over[k, k:], -new[n, k], new[n, k:])
            inserted[n] = i
            n += 1
    return n


class ProjectronState(BlockState):
    """State that a Projectron carries from one block of examples to the next.

    Attributes: `support`, the support vectors; `numbers`, which of the examples they are; `v` and `v_sum`, the
    coordinates of f and the sum of those of the f_t; `a`, the coefficients of f, or None if not computed; `factor`, L;
    `inverses`, those of its diagonal blocks of PANEL rows and columns; `squares`, as in `_block`.
    """

    eta = None
    """That of Projectron++, which also learns from examples with 0 < y f(x) < 1; None for the Projectron."""

    def __init__(self, kernel, X, budget):
        super().__init__()
        self.budget, self.sparse = budget, sp.issparse(X)
        self.operands = operands_of(kernel, X).plain
        self.support, self.numbers = growing_like(X), Growing((0,), np.int64)
        self._left = growing_like(self._operand(X[:1]))
        self.factor, self.inverses = np.zeros((0, 0)), np.zeros((0, PANEL))
        self.v, self.v_sum, self.a = np.zeros(0), np.zeros(0), None
        self.squares = np.zeros(1)

    def _operand(self, X):
        return self.operands.left(X.astype(np.float64))

    def learn(self, X, y, *_):
        """Learn from the rows of X with labels y in {-1, 1}, block by block."""
        start, margins, eta = 0, self.eta is not None, self.eta or 1.0
        while start < len(y) and not self.refused:
            if not margins and self.budget - len(self.support) > AHEAD // 8:
                start += self._learn_as_perceptron(X[start : start + AHEAD], y[start : start + AHEAD])
            else:
                self._learn_block(X[start : start + BLOCK], y[start : start + BLOCK], margins, eta)
                start += BLOCK

    def _learn_as_perceptron(self, X, y):
        """Make perceptron updates until the budget may be full; return the number of rows used."""
        room = self.budget - len(self.support)
        left, k, gram = self._kernel_values(X)
        if self.a is None:
            self.a = self._coefficients(self.v)
        f, mistakes = self.a @ k, np.zeros(len(y), dtype=np.int64)
        seen, m = _perceptron(y, gram, f, room, mistakes, self.squares)
        mistakes = mistakes[:m]
        w, gram = self._coordinates(k[:, mistakes]), gram[np.ix_(mistakes, mistakes)]
        inserted, new, c = np.zeros(m, dtype=np.int64), np.zeros((m, m)), y[mistakes]
        m = _new_directions(gram - w.T @ w, gram.diagonal().copy(), inserted, new)
        inserted, new = inserted[:m], new[:m]
        rows = mistakes[inserted]
        self._insert(self.t + rows, X[rows], left[rows], w[:, inserted], new[:, inserted])
        self._step(np.vstack([w, new]), c, seen - 1 - mistakes, seen)
        self.a = np.append(self.a, c) if m == len(c) else None
        self.states["mistakes"] += len(c)
        if seen < len(y) and len(c) < room:
            self.states["refused"], self.states["last"] = self.t + 1, f[seen]
        return seen

    def _learn_block(self, X, y, margins, eta):
        n, b = len(self.support), len(y)
        left, k, gram = self._kernel_values(X)
        w = self._coordinates(k)
        f = self.v[:n] @ w
        c, inserted, new = np.zeros(b), np.zeros(b, dtype=np.int64), np.zeros((b, b))
        room, states = self.budget - n, self.states
        m = _block(y, gram, w.T @ w, f, room, margins, eta, c, inserted, new, self.squares, states)
        inserted, new, self.a = inserted[:m], new[:m], None
        self._insert(self.t + inserted, X[inserted], left[inserted], w[:, inserted], new[:, inserted])
        self._step(np.vstack([w, new]), c, np.arange(b - 1, -1, -1), b)

    def _kernel_values(self, X):
        left = self._operand(X)
        right = self.operands.right(X.astype(np.float64))
        k = self.operands.values(self._left.rows, right) if len(self.support) else np.zeros((0, X.shape[0]))
        gram = np.ascontiguousarray(self.operands.values(left, right))
        nonnegative(gram.diagonal(), self.operands.kernel)
        return left, k, gram

    def _coordinates(self, k):
        """Project examples onto the span of the support vectors, given their kernel values k."""
        w = np.empty(k.shape)
        for start in range(0, len(k), PANEL):
            rows = slice(start, min(start + PANEL, len(k)))
            rest = k[rows] - self.factor[rows, :start] @ w[:start]
            w[rows] = self._inverse(rows) @ rest
        return w

    def _coefficients(self, v):
        n = len(self.support)
        a = np.empty(n)
        for start in reversed(range(0, n, PANEL)):
            rows = slice(start, min(start + PANEL, n))
            a[rows] = (v[rows] - a[rows.stop :] @ self.factor[rows.stop : n, rows]) @ self._inverse(rows)
        return a

    def _inverse(self, rows):
        return self.inverses[rows, : rows.stop - rows.start]

    def _insert(self, numbers, X, left, old, new):
        """Insert the rows of X as new support vectors.

        X (m, d) are the examples with the indices `numbers` (m,), which have coordinates old (n, m) along the old
        directions and new (m, m) along their own.
        """
        n, m = old.shape
        self.support.append(X)
        self.numbers.append(numbers)
        self._left.append(left)
        self._grow(n + m)
        self.factor[n : n + m, :n], self.factor[n : n + m, n : n + m] = old.T, new.T
        for start in range(n - n % PANEL, n + m, PANEL):
            rows = slice(start, min(start + PANEL, n + m))
            self._inverse(rows)[...] = dtrtri(self.factor[rows, rows], lower=1)[0]

    def _step(self, w, c, behind, b):
        """Add a block's updates to the coordinates of f, and to their sum over all steps.

        Step i is c[i] P k(x_i, .), with coordinates w[:, i]; behind[i] is the number of later examples in the block.
        """
        n = len(w)
        self.v_sum[:n] += b * self.v[:n] + w @ (c * behind)
        self.v[:n] += w @ c
        self.states["t"] += b

    def _grow(self, n):
        self.v, self.v_sum, self.inverses = grown(self.v, n), grown(self.v_sum, n), grown(self.inverses, n)
        if n > len(self.factor):
            self.factor = enlarged(self.factor, (len(self.v), len(self.v)))

    def coefficients(self, *, average):
        """Return the indices of the support vectors, and their averaged or last coefficients."""
        v = self.v_sum / max(self.t, 1) if average else self.v
        return np.arange(len(self.support)), self._coefficients(v)
