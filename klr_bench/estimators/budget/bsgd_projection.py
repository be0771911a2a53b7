"""Budgeted stochastic gradient descent that projects removed support vectors onto the rest.

Wang, Crammer, Vucetic (JMLR 13, 2012), section 4.2.  Without support vector p, f = sum a_i k(x_i, .) changes the least
if the others get a_p d, where K d = k_p, with their kernel matrix K and their kernel values k_p with x_p.  Column p of
the inverse of the kernel matrix of all, q, is -q_p d at the places of the others: a - (a_p / q_p) q is the projection,
and 0 at p.

The upper factor U of the kernel matrix, U'U, is kept.  A support vector adds a column to it, U'w = k, and its squared
distance from the span is k(x, x) - w'w.  Without column p row p is one too many: with r, the rest of it, and V, the
triangle below, U'U is r r' + V'V there, and rotations take r into V.  Each costs O(B^2), as does q.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from numba import float64, int64, types

from klr_bench.estimators.budget.projectron_state import DEPENDENT
from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.losses import derivative
from klr_bench.estimators.core.rows import Growing, enlarged, growing_like, grown
from klr_bench.estimators.core.vectors import TIE
from klr_bench.estimators.kernel_values.operands import nonnegative, operands_of
from klr_bench.estimators.online.state import STATES, BlockState, count_example, decay, settle

_vector, _numbers, _matrix = float64[::1], int64[::1], float64[:, ::1]


# Loops run over array slices, because the compiler does not vectorize loops that start at j = i + 1.
@compiled(types.void(_matrix, int64, int64, _vector), fastmath={"contract"})
def forward(factor, first, m, x):
    """Solve U'z = x for an upper triangular matrix U, and overwrite x with the solution z.

    U is the leading (m, m) part of `factor`; x (m,) must be 0 before the index `first`.
    """
    i = first
    while i + 4 <= m:
        a, b, c, d, z = factor[i, i:m], factor[i + 1, i:m], factor[i + 2, i:m], factor[i + 3, i:m], x[i:m]
        z[0] /= a[0]
        z[1] = (z[1] - a[1] * z[0]) / b[1]
        z[2] = (z[2] - a[2] * z[0] - b[2] * z[1]) / c[2]
        z[3] = (z[3] - a[3] * z[0] - b[3] * z[1] - c[3] * z[2]) / d[3]
        z0, z1, z2, z3 = z[0], z[1], z[2], z[3]
        a, b, c, d, z = a[4:], b[4:], c[4:], d[4:], z[4:]
        for j in range(len(z)):
            z[j] -= a[j] * z0 + b[j] * z1 + c[j] * z2 + d[j] * z3
        i += 4
    for k in range(i, m):
        x[k] /= factor[k, k]
        for j in range(k + 1, m):
            x[j] -= factor[k, j] * x[k]


@compiled(types.void(_matrix, int64, _vector), fastmath={"reassoc", "contract"})
def backward(factor, m, x):
    """Solve U z = x for an upper triangular matrix U, and overwrite x with the solution z.

    U is the leading (m, m) part of `factor`.
    """
    i = m
    while i >= 4:
        i -= 4
        a, b, c, d, z = factor[i, i:m], factor[i + 1, i:m], factor[i + 2, i:m], factor[i + 3, i:m], x[i:m]
        z0, z1, z2, z3 = z[0], z[1], z[2], z[3]
        a4, b4, c4, d4, z4 = a[4:], b[4:], c[4:], d[4:], z[4:]
        for j in range(len(z4)):
            z0 -= a4[j] * z4[j]
            z1 -= b4[j] * z4[j]
            z2 -= c4[j] * z4[j]
            z3 -= d4[j] * z4[j]
        z[3] = z3 / d[3]
        z[2] = (z2 - c[3] * z[3]) / c[2]
        z[1] = (z1 - b[3] * z[3] - b[2] * z[2]) / b[1]
        z[0] = (z0 - a[3] * z[3] - a[2] * z[2] - a[1] * z[1]) / a[0]
    for k in range(i - 1, -1, -1):
        total = x[k]
        for j in range(k + 1, m):
            total -= factor[k, j] * x[j]
        x[k] = total / factor[k, k]


@compiled(types.void(_matrix, int64, int64), fastmath={"contract"})
def without(factor, p, m):
    """Update a Cholesky factor in place after row and column p of the matrix are removed."""
    for i in range(p):
        row = factor[i, p:m]
        for j in range(len(row) - 1):
            row[j] = row[j + 1]
    rest = factor[p, p + 1 : m].copy()  # rest[j] is the entry of row p in column p + 1 + j
    for i in range(p, m - 1):
        row, below, r = factor[i, i + 1 : m - 1], factor[i + 1, i + 1 : m], rest[i - p :]
        length = math.hypot(below[0], r[0])
        cosine, sine = below[0] / length, r[0] / length
        factor[i, i] = length
        for j in range(len(row)):
            old, over = below[j + 1], r[j + 1]
            row[j] = cosine * old + sine * over
            r[j + 1] = cosine * over - sine * old


@compiled()
def _least(m, coef, length):
    """Find the support vector whose term a_i k(x_i, .) in f has the smallest norm.

    Returns its index, and the norm without the scale of f.  Among ties the first one is chosen.
    """
    least = math.inf
    for j in range(m):
        least = min(least, abs(coef[j]) * length[j])
    for j in range(m):
        if abs(coef[j]) * length[j] <= least * (1.0 + TIE):
            return j, least
    return 0, least


@compiled()
def _remove(p, m, coef, average, since, number, column, length, total):
    total[number[p]] = average[p]
    for j in range(p, m - 1):
        coef[j], average[j], since[j] = coef[j + 1], average[j + 1], since[j + 1]
        number[j], column[j], length[j] = number[j + 1], column[j + 1], length[j + 1]


@compiled(
    types.void(
        int64, float64, int64, types.Tuple((_vector, _matrix, _vector)), _matrix,
        types.Tuple((*[_vector] * 4, _numbers, _numbers, _vector)), _numbers, STATES,
    )
)  # fmt: skip
def _block(loss, lam, budget, rows, factor, columns, entered, states):
    """Learn from a block of examples, projecting support vectors when the budget is full.

    `rows` are the labels y (b,) of the b examples, their kernel values (b, n + b) with the n support vectors at the
    start and with each other, and the squares k(x, x) (b,).  `columns` are, per support vector, in the order of their
    insertion: coef, average, since as in `online.strategies.Book`, length, ||k(x_i, .)||, number as there, and column,
    that in the kernel values; with one place more than `budget`, and so is the factor, U; and total, per example that
    was ever inserted.  Written: entered, which of all examples the inserted ones are.
    """
    y, values, squares = rows
    coef, average, since, length, number, column, total = columns
    first, k, q = values.shape[1] - len(y), np.empty(len(coef)), np.empty(len(coef))
    state = states[0]
    before = state["ever"]
    for i in range(len(y)):
        m, f = state["n"], 0.0
        for j in range(m):
            k[j] = values[i, column[j]]
            f += coef[j] * k[j]
        f *= state["scale"]
        if not count_example(y[i], f, squares[i], state):
            return
        t = state["t"]
        if t > 1:  # f_1 = 0 needs no shrinking
            decay(1.0 - 1.0 / t, m, coef, average, since, state)
        slope = derivative(loss, y[i], f, 0.0)
        if slope == 0.0:
            continue
        c, p = -slope / (lam * t) / state["scale"], m
        forward(factor, 0, m, k)
        away = squares[i]
        for j in range(m):
            away -= k[j] * k[j]
        inside = away <= DEPENDENT * squares[i]
        if m == budget and not inside:
            p, least = _least(m, coef, length)
            # an example that would be removed at once is projected without being inserted
            inside = abs(c) * math.sqrt(squares[i]) < least * (1.0 - TIE)
        if inside:
            settle(m, coef, average, since, state)
            backward(factor, m, k)
            for j in range(m):
                coef[j] += c * k[j]
            continue
        factor[:m, m], factor[m, m] = k[:m], math.sqrt(away)
        coef[m], average[m], since[m], length[m] = c, 0.0, state["scale_sum"], math.sqrt(squares[i])
        number[m], column[m] = state["ever"], first + i
        entered[state["ever"] - before] = t - 1
        state["ever"] += 1
        state["n"] += 1
        if m < budget:
            continue
        m = state["n"]
        settle(m, coef, average, since, state)
        q[:m] = 0.0
        q[p] = 1.0
        forward(factor, p, m, q)
        backward(factor, m, q)
        share = coef[p] / q[p]
        for j in range(m):
            coef[j] -= share * q[j]
        without(factor, p, m)
        _remove(p, m, coef, average, since, number, column, length, total)
        state["n"] -= 1


class ProjectingState(BlockState):
    """State that a budgeted SGD learner with projection carries between blocks of rows.

    All numbers are float64.  Attributes: `support`, all examples that were ever inserted, in order, and their `numbers`
    among all; the rest as in `_block`.
    """

    def __init__(self, kernel, X, budget):
        super().__init__()
        self.budget, self.sparse = budget, sp.issparse(X)
        self.operands = operands_of(kernel, X).plain
        self.support, self.numbers = growing_like(X), Growing((0,), np.int64)
        self.factor, self.total = np.zeros((0, 0)), np.zeros(0)
        self.coef, self.average, self.since, self.length = np.zeros((4, 0))
        self.number = np.zeros(0, dtype=np.int64)

    def _learn_block(self, X, y, loss, lam):
        n, before, rows = self.n_slots, self.t, X.astype(np.float64)
        self._extend(len(y))
        left, right = self.operands.both(rows)
        old = self.operands.right(self.support.rows[self.number[:n]].astype(np.float64))
        values = np.hstack([self.operands.values(left, old), self.operands.values(left, right)])
        entered = np.empty(len(y), dtype=np.int64)
        squares = nonnegative(values[:, n:].diagonal().copy(), self.operands.kernel)
        rows = y, np.ascontiguousarray(values), squares
        column = np.arange(len(self.coef))
        columns = self.coef, self.average, self.since, self.length, self.number, column, self.total
        _block(loss, lam, self.budget, rows, self.factor, columns, entered, self.states)
        entered = entered[: self.n_inserted - len(self.support)]
        self.support.append(X[entered - before])
        self.numbers.append(entered)

    def _extend(self, n):
        places = min(self.budget + 1, self.n_slots + n + 1)
        if places > len(self.coef):
            places = min(self.budget + 1, 2 * places)
            for name in ("factor", "coef", "average", "since", "length", "number"):
                values = getattr(self, name)
                setattr(self, name, enlarged(values, (places,) * values.ndim))
        self.total = grown(self.total, self.n_inserted + n)
