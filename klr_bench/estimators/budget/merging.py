"""Budgeted stochastic gradient descent that merges support vectors of a Gaussian kernel.

Wang, Crammer, Vucetic (JMLR 13, 2012), section 4.3.  Of two support vectors with coefficients of one sign, |a_m| = a
and |a_n| = b >= a, and distance D = gamma ||x_m - x_n||^2, the point z = h x_m + (1-h) x_n takes the place, with

    |a_z| = a u + b v,     u = k(x_m, z) = e^(-D (1-h)^2),     v = k(x_n, z) = e^(-D h^2).

It leaves the least behind, ||a_m k(x_m, .) + a_n k(x_n, .) - a_z k(z, .)||^2, for the h at which |a_z| is the largest.
The paper finds it by golden section search.  The derivative is 0 where, with h = (1 - tanh w) / 2,

    2 w - D tanh w = log(b/a),     w >= 0,

and its largest root is the largest |a_z|: the left side is convex, and Newton's method from (log(b/a) + D) / 2 goes
down to the root.

The distances of the next examples from all points are one matrix product.  That of z from one of them is
h D_mx + (1-h) D_nx - h (1-h) D_mn: a merger in the middle of a block needs no other product.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from numba import float64, int64, types

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.losses import derivative
from klr_bench.estimators.core.rows import Growing, enlarged, grown, refuse_dense
from klr_bench.estimators.core.vectors import TIE, dot
from klr_bench.estimators.kernel_values.operands import operands_of
from klr_bench.estimators.online.passes import BLOCK
from klr_bench.estimators.online.state import STATES, BlockState, count_example, decay

_EQUAL = 1e-12
"""Residuals of two merge partners count as equal up to this share of a^2."""


@compiled(types.UniTuple(float64, 3)(float64, float64, float64))
def merged(a, b, distance):
    """Compute the best merger of two support vectors with coefficients 0 < a <= b.

    `distance` is D, the scaled squared distance between them.  Returns h, |a_z| and the residual.
    """
    ratio = math.log(b / a)
    w = 0.5 * (ratio + distance)
    for _ in range(200):
        tanh = math.tanh(w)
        slope = 2.0 - distance * (1.0 - tanh * tanh)
        step = (2.0 * w - distance * tanh - ratio) / slope if slope > 0.0 else 0.0
        if step <= 1e-15 * (1.0 + w):
            break
        w -= step
    h = 1.0 / (1.0 + math.exp(2.0 * w)) if w < 300.0 else 0.0
    u, v = math.exp(-distance * (1.0 - h) ** 2), math.exp(-distance * h * h)
    squares = -a * a * math.expm1(-2.0 * distance * (1.0 - h) ** 2) - b * b * math.expm1(-2.0 * distance * h * h)
    product = a * b * (math.exp(-distance) - u * v)
    return h, a * u + b * v, max(squares + 2.0 * product, 0.0)


@compiled(float64(float64, float64))
def _farthest(left, a):
    """Return a distance beyond which every merger leaves a residual larger than `left`.

    The larger the partner's coefficient and the farther it is, the more is left.  With b = a and D <= 2, h is 1/2, and
    2 a^2 (1 - e^(-D/2))^2 is left.
    """
    share = math.sqrt(0.5 * (left / (a * a) + _EQUAL))
    return -2.0 * math.log1p(-share) if share < 1.0 - math.exp(-1.0) else math.inf


@compiled()
def least(coef, number):
    """Return the slot of the oldest support vector with the smallest absolute coefficient."""
    smallest = math.inf
    for a in coef:
        smallest = min(smallest, abs(a) if a != 0.0 else math.inf)
    first = -1
    for slot in range(len(coef)):
        near = coef[slot] != 0.0 and abs(coef[slot]) <= smallest * (1.0 + TIE)
        if near and (first < 0 or number[slot] < number[first]):
            first = slot
    return first


@compiled(fastmath={"reassoc", "contract"})
def _distances_from(points, m, gamma, distances):
    for slot in range(len(points)):
        squared = 0.0
        for k in range(points.shape[1]):
            difference = points[slot, k] - points[m, k]
            squared += difference * difference
        distances[slot] = gamma * squared


@compiled()
def partner(coef, distances, number, m):
    """Find the support vector that is best merged with the one in slot m.

    The best one leaves the smallest residual.  Returns (slot, h, |a_z|), where the slot is -1 if no other coefficient
    has the same sign.

    `distances` (B + 1,) are those from m; of equal partners it is the oldest, with the smallest `number` (B + 1,).
    """
    a, nearest = abs(coef[m]), -1
    for slot in range(len(coef)):
        if slot != m and coef[slot] * coef[m] > 0.0 and (nearest < 0 or distances[slot] < distances[nearest]):
            nearest = slot
    if nearest < 0:
        return nearest, 0.0, 0.0
    least = merged(a, abs(coef[nearest]), distances[nearest])[2]
    farthest, left = _farthest(least, a), np.full(len(coef), np.inf)
    for slot in range(len(coef)):
        if slot == m or coef[slot] * coef[m] <= 0.0 or distances[slot] > farthest:
            continue
        left[slot] = merged(a, abs(coef[slot]), distances[slot])[2]
        if left[slot] < least:
            least, farthest = left[slot], _farthest(left[slot], a)
    first = -1
    for slot in range(len(coef)):
        if left[slot] <= least + _EQUAL * a * a and (first < 0 or number[slot] < number[first]):
            first = slot
    h, weight, _ = merged(a, abs(coef[first]), distances[first])
    return first, h, weight


@compiled()
def _place(slot, c, coef, average, since, number, state):
    coef[slot], average[slot] = c / state["scale"], 0.0
    since[slot], number[slot] = state["scale_sum"], state["ever"]
    state["ever"] += 1


@compiled()
def _retire(slot, coef, average, since, number, total, state):
    """Remove the support vector in a slot, but keep its contribution to the averaged model."""
    total[number[slot]] = average[slot] + coef[slot] * (state["scale_sum"] - since[slot])
    coef[slot] = 0.0


_vector, _numbers, _matrix = float64[::1], int64[::1], float64[:, ::1]


@compiled(
    types.void(
        int64, float64, float64, types.Tuple((_vector, *[_matrix] * 5)),
        types.Tuple((_matrix, *[_vector] * 3, _numbers, _vector)), _matrix, _numbers, STATES,
    )
)  # fmt: skip
def _block(loss, lam, gamma, rows, slots, inserted, numbers, states):
    """Learn from a block of examples, merging support vectors when the budget is full.

    `rows` are those of y (b,), the labels of the b examples; X (b, d); distances, values (b, S) and mutual,
    mutual_values (b, b): scaled distances and kernel values of the examples from the S = B + 1 slots and each other.
    `slots` are points (S, d), coef, average, since, number (S,), as in `online.strategies.Book`, and total, per point
    that was ever in f, too.  Written: inserted (2b, d), the new points, and numbers (2b,), which examples they are, -1
    for a merged one.
    """
    y, X, distances, values, mutual, mutual_values = rows
    points, coef, average, since, number, total = slots
    state = states[0]
    before, S = state["ever"], len(coef)
    from_m = np.empty(S)
    for i in range(len(y)):
        value = state["scale"] * dot(coef, values[i], S)
        if not count_example(y[i], value, 0.0, state):
            return
        t = state["t"]
        if t > 1:  # f_1 = 0 needs no shrinking
            decay(1.0 - 1.0 / t, S, coef, average, since, state)
        slope = derivative(loss, y[i], value, 0.0)
        if slope == 0.0:
            continue
        new, n_new = state["free"], state["ever"] - before
        points[new], inserted[n_new], numbers[n_new] = X[i], X[i], t - 1
        _place(new, -slope / (lam * t), coef, average, since, number, state)
        for r in range(i + 1, len(y)):
            distances[r, new], values[r, new] = mutual[r, i], mutual_values[r, i]
        state["n"] += 1
        state["free"] = state["n"]
        if state["n"] < S:
            continue
        m = least(coef, number)
        _distances_from(points, m, gamma, from_m)
        n, h, weight = partner(coef, from_m, number, m)
        if n >= 0:
            apart, c = h * (1.0 - h) * from_m[n], math.copysign(weight * state["scale"], coef[m])
            points[n] = h * points[m] + (1.0 - h) * points[n]
            for r in range(i + 1, len(y)):
                distances[r, n] = max(h * distances[r, m] + (1.0 - h) * distances[r, n] - apart, 0.0)
                values[r, n] = math.exp(-distances[r, n])
            inserted[n_new + 1], numbers[n_new + 1] = points[n], -1
            _retire(n, coef, average, since, number, total, state)
            _place(n, c, coef, average, since, number, state)
        _retire(m, coef, average, since, number, total, state)
        state["n"], state["free"] = S - 1, m


def _dense(X):
    return X.toarray() if sp.issparse(X) else X


class MergingState(BlockState):
    """State that a budgeted SGD learner with merging carries between blocks of rows.

    Points are dense, and distances are float64.

    Attributes: `support`, all points that were ever in f, in order, and their `numbers` among the examples, -1 for
    merged ones; `points`, those in f now; the rest as in `_block`.
    """

    def __init__(self, kernel, X, budget):
        super().__init__()
        n, instead = budget + 3 * BLOCK, "use maintenance='removal' or 'projection'"
        refuse_dense("BSGD", f"{n} dense support vectors and rows", X, n, instead)
        self.sparse = sp.issparse(X)
        X = _dense(X[:1])
        self.gamma, self.origin, self.size = kernel.gamma, X[0].astype(np.float64), budget + 1
        self.operands = operands_of(kernel, X).plain
        self.support, self.numbers = Growing((0, X.shape[1]), X.dtype), Growing((0,), np.int64)
        self.points, self.total = np.zeros((0, X.shape[1])), np.zeros(0)
        self.coef, self.average, self.since = np.zeros((3, 0))
        self.number = np.zeros(0, dtype=np.int64)

    def _learn_block(self, X, y, loss, lam):
        rows = _dense(X).astype(np.float64)
        self._enlarge(len(y))
        inserted, numbers = np.empty((2 * len(y), X.shape[1])), np.empty(2 * len(y), dtype=np.int64)
        distances, mutual = self._distances(rows, self.points), self._distances(rows, rows)
        rows = y, rows, distances, np.exp(-distances), mutual, np.exp(-mutual)
        slots = self.points, self.coef, self.average, self.since, self.number, self.total
        _block(loss, lam, self.gamma, rows, slots, inserted, numbers, self.states)
        new = slice(0, self.n_inserted - len(self.support))
        self.support.append(inserted[new])
        self.numbers.append(numbers[new])

    def _enlarge(self, n):
        slots = min(self.size, self.n_slots + n + 1)
        if slots > len(self.coef):
            slots = min(self.size, 2 * slots)
            for name in ("points", "coef", "average", "since", "number"):
                values = getattr(self, name)
                setattr(self, name, enlarged(values, (slots, *values.shape[1:])))
        self.total = grown(self.total, self.n_inserted + 2 * n)

    def _distances(self, A, B):
        """Return gamma ||a - b||^2 for every row a of the matrix A and every row b of B."""
        A, B = A - self.origin, B - self.origin
        distances = A @ (-2.0 * self.gamma * B.T)
        distances += self.gamma * np.einsum("ij,ij->i", A, A)[:, None]
        distances += self.gamma * np.einsum("ij,ij->i", B, B)
        return np.maximum(distances, 0.0, out=distances)

    def coefficients(self, *, average):
        """Return the indices of the support vectors in `support`, and their coefficients."""
        return super().coefficients(np.flatnonzero(self.coef), average=average)
