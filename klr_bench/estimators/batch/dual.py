"""Dual coordinate ascent for kernel logistic regression, without storing the kernel matrix.

With z_i = y_i f(x_i) and b_i = a_i y_i / (n lam), a step in a_i alone of the dual (see `DualCDKLR`), with
q = k(x_i, x_i) / (n lam), solves  z_i + q (a - a_i) + log(a / (1 - a)) = 0  (Yu, Huang, Lin, Machine Learning 2011).
With weights, the share w_i / sum_j w_j stands for 1/n.  The unknown here is the margin m = -log(a / (1 - a)), so that
a = sigma(-m) cannot leave (0, 1) and 1 - a = sigma(m) loses no digits.

An epoch takes the rows in a new random order, block by block.  First f at a block's rows receives the changes of the
earlier blocks of the epoch.  Then a few sweeps run on the block's own small kernel matrix.  By symmetry the same kernel
values carry the changes back to the earlier blocks, so that an epoch computes each pair's kernel value once.
"""

from __future__ import annotations

import numpy as np
from numba import float32, float64, int64, void

from klr_bench.estimators.batch.base import TILE, BatchKLR
from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.losses import sigmoid
from klr_bench.estimators.core.parameters import estimator
from klr_bench.estimators.core.rows import slices
from klr_bench.estimators.core.threads import parallel_map

SWEEPS = 3
"""Number of sweeps over a block's own kernel matrix; their cost is negligible, and more do not help."""


@compiled(float64(float64, float64, float64))
def _step(z, a, q):
    """Solve the equation m = z + q (sigmoid(-m) - a) for m by Newton steps inside a bracket."""
    low, high = z - q * a, z + q * (1.0 - a)
    m = z
    for _ in range(100):
        s = sigmoid(-m)
        excess = m - z - q * (s - a)
        if excess > 0.0:
            high = m
        else:
            low = m
        following = m - excess / (1.0 + q * s * (1.0 - s))
        if not low < following < high:
            following = 0.5 * (low + high)
        moved = abs(following - m)
        m = following
        if moved <= 1e-12 * (1.0 + abs(m)):
            break
    return m


def _signature(real):
    matrix = float64[:, ::1]
    return void(real[:, ::1], int64[:, ::1], matrix, matrix, matrix, matrix, float64[::1])


@compiled([_signature(float32), _signature(float64)], fastmath={"contract", "reassoc"})
def _sweep(gram, orders, y, f, a, margin, scale):
    """Run dual coordinate ascent on one block of rows, updating f, a and margin in place."""
    for order in orders:
        for i in order:
            row = gram[i]
            for k in range(len(y)):
                margin[k, i] = _step(y[k, i] * f[k, i], a[k, i], scale[i] * row[i])
                new = sigmoid(-margin[k, i])
                change = (new - a[k, i]) * y[k, i] * scale[i]
                a[k, i] = new
                values = f[k]
                for j in range(len(values)):
                    values[j] += change * row[j]


class DualAscent:
    """State of dual coordinate ascent for one or more problems on the same rows.

    For m problems on n rows, a = sigma(-margin) and f have shape (m, n).

    The coefficients are b_i = scale_i a_i y_i.
    """

    def __init__(self, blocks, signs, lam, random, b, shares):
        self.blocks, self.y, self.lam, self.random = blocks, signs, lam, random
        self.shares, self.scale = shares, shares / lam
        self.margin, self.f = np.full(signs.shape, 700.0), np.zeros(signs.shape)  # a is too small to affect f
        if b is not None:
            a = np.divide(b * signs, self.scale, out=np.full(signs.shape, 0.5), where=self.scale > 0)
            a = np.clip(a, 1e-15, 1 - 1e-15)
            self.margin = np.log1p(-a) - np.log(a)
        self.a = np.exp(-np.logaddexp(0, self.margin))
        if b is not None:
            self.f = blocks.times(self.b)

    @property
    def b(self):
        return self.a * self.y * self.scale

    def epoch(self):
        """Visit all rows in random order, and yield the number of rows visited after each block."""
        n, blocks = len(self.scale), self.blocks
        order = self.random.permutation(n)
        if blocks.whole is not None:
            _sweep(blocks.whole, order[None], self.y, self.f, self.a, self.margin, self.scale)
            yield n
            return
        left = blocks.left(order)
        changes = np.zeros(self.y.shape, dtype=left.dtype)  # changes to the coefficients b, in processing order
        for block in slices(n, blocks.size):
            rows = order[block]
            right = blocks.right(rows)
            earlier = slices(block.start, TILE)

            def with_earlier(tile, left=left, right=right):
                values = blocks.operands.values(left[tile], right)
                return order[tile], values, changes[:, tile] @ values

            tiles = parallel_map(with_earlier, earlier)
            y, f, a, margin = (values.take(rows, axis=1) for values in (self.y, self.f, self.a, self.margin))
            for _, _, of_changes in tiles:
                f += of_changes
            before = a.copy()
            gram = np.ascontiguousarray(blocks.operands.values(left[block], right))
            orders = np.array([self.random.permutation(len(rows)) for _ in range(SWEEPS)])
            scale = self.scale[rows]
            _sweep(gram, orders, y, f, a, margin, scale)
            changes[:, block] = (a - before) * y * scale
            self.f[:, rows], self.a[:, rows], self.margin[:, rows] = f, a, margin

            def carry_back(tile, own=changes[:, block]):
                others, values, _ = tile
                self.f[:, others] += own @ values.T

            parallel_map(carry_back, tiles)
            tiles = None  # free the memory before the next tiles are computed
            yield block.stop

    def objectives(self):
        """Return the primal and the dual objective of each problem.

        primal - dual = sum_i share_i [l(z_i) - l(m_i) + a_i (z_i - m_i)].
        """
        z = self.y * self.f
        loss = np.logaddexp(0, -z)
        primal = (self.a * z / 2 + loss) @ self.shares
        terms = loss - np.logaddexp(0, -self.margin) + self.a * (z - self.margin)
        return primal, primal - np.maximum(terms, 0) @ self.shares


@estimator
class DualCDKLR(BatchKLR):
    r"""Kernel logistic regression by dual coordinate ascent.

    It minimizes ``(lam/2) ||f||^2 + (1/n) sum_i log(1 + exp(-y_i f(x_i)))`` to a duality gap, by its dual:

    .. math::

        & \max_{0 < a_i < 1} \; -\frac{\lambda}{2} {\lVert f \rVert}^2
        - \frac{1}{n} \sum_i \left[ a_i \log a_i + (1 - a_i) \log(1 - a_i) \right] \\
        & f = \sum_i \frac{a_i y_i}{n \lambda} k(x_i, \cdot)

    Each step solves the problem in one a_i, by Newton steps that stay inside (0, 1).  An epoch takes time O(n^2 d),
    memory for the data and at most ``cache_size`` MB of kernel values.  Few epochs are needed, unless 1 / (n lam) is in
    the thousands and rows are nearly equal.  A warm start clips the coefficients to 0 < b_i y_i n lam < 1.

    References
    ----------
    Keerthi, Duan, Shevade, Poo, Machine Learning 2005: the dual.  Yu, Huang, Lin, Machine Learning 2011, algorithm 5:
    the steps, for linear models.  It is the "DCD" of Zhang, Jin, Chen, Bu, He, AAAI 2012, figure 5.

    Examples
    --------
    >>> from klr_bench import DualCDKLR
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = DualCDKLR(lam=1e-3, gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.duality_gap_ <= model.tol
    (True, True)
    >>> model.predict_proba(X).shape
    (200, 2)
    """

    _solver = staticmethod(DualAscent)
