"""Dual coordinate ascent for kernel logistic regression, without storing the kernel matrix.

With z_i = y_i f(x_i) and b_i = a_i y_i / (n lam), a step in a_i alone of the dual (see `DualCDKLR`), with
q = k(x_i, x_i) / (n lam), solves  z_i + q (a - a_i) + log(a / (1 - a)) = 0  (Yu, Huang, Lin, Machine Learning 2011).
With weights, the share w_i / sum_j w_j stands for 1/n.  The unknown here is the margin m = -log(a / (1 - a)), so that
a = sigma(-m) cannot leave (0, 1) and 1 - a = sigma(m) loses no digits.

An epoch takes the rows in a new random order, block by block: a few sweeps run on the block's own small kernel matrix,
and then the changes are added to f at all rows.  Without a stored kernel matrix f receives them in two steps: at a
block's rows those of the earlier blocks, before the sweeps, and by symmetry the same kernel values carry the changes of
the block back to the earlier blocks, so that an epoch computes each pair's kernel value once.  Rows that add little to
the duality gap are left out of a sweep.
"""

from __future__ import annotations

from dataclasses import KW_ONLY

import numpy as np
from numba import float64, int64, void
from numpy.typing import ArrayLike

from klr_bench.estimators.batch.base import TILE, BatchKLR
from klr_bench.estimators.core.feature_weights import FEATURE_WEIGHTS
from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.losses import sigmoid
from klr_bench.estimators.core.parameters import estimator, parameter
from klr_bench.estimators.core.rows import slices
from klr_bench.estimators.core.threads import parallel_map

SWEEPS = 6
"""Number of sweeps over a block's own kernel matrix."""
SIDE = 64
"""Number of rows per block of a stored kernel matrix."""
SKIPPED = 0.3
"""Rows are left out of a sweep while their part of the duality gap is below this share of the mean part."""


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


def _signature(real, *others):
    matrix = float64[:, ::1]
    return void(real[:, ::1], *others, matrix, matrix, matrix, matrix, float64[::1], float64[::1])


@compiled(_signature, fastmath={"contract", "reassoc"})
def _sweep(gram, y, f, a, margin, scale, least):
    """Update decision values, dual variables and margins in place by sweeps over some rows.

    A row with margin m and z = y f adds about a (1 - a) (z - m)^2 / 2 to the duality gap; `least` (m,) is the smallest
    part for which a step is taken, in each problem.
    """
    for _ in range(SWEEPS):
        for i in range(len(gram)):
            row = gram[i]
            for k in range(len(y)):
                z = y[k, i] * f[k, i]
                distance = abs(z - margin[k, i])
                if distance < 1.0 and a[k, i] * (1.0 - a[k, i]) * distance**2 < 2.0 * least[k]:
                    continue
                margin[k, i] = _step(z, a[k, i], scale[i] * row[i])
                new = sigmoid(-margin[k, i])
                change = (new - a[k, i]) * y[k, i] * scale[i]
                a[k, i] = new
                values = f[k]
                for j in range(len(values)):
                    values[j] += change * row[j]


@compiled(lambda real: _signature(real, int64[::1]), fastmath={"contract", "reassoc"})
def _visit(gram, order, y, f, a, margin, scale, least):
    """Update the dual variables of all rows in the given order, using a stored kernel matrix."""
    n, m = len(order), len(y)
    for start in range(0, n, SIDE):
        rows = order[start : start + SIDE].copy()
        size, n_changed = len(rows), 0
        within, of_rows = np.empty((size, size), dtype=gram.dtype), np.empty((4, m, size))
        for i in range(size):
            row = gram[rows[i]]
            for j in range(i + 1):  # by symmetry half of the places in memory are enough
                within[i, j] = within[j, i] = row[rows[j]]
            for k in range(m):
                of_rows[0, k, i], of_rows[1, k, i] = y[k, rows[i]], f[k, rows[i]]
                of_rows[2, k, i], of_rows[3, k, i] = a[k, rows[i]], margin[k, rows[i]]
        _sweep(within, of_rows[0], of_rows[1], of_rows[2], of_rows[3], scale[rows], least)
        changes = np.zeros((m, SIDE + 4))
        for i in range(size):  # move the changed rows, about half of them, to the front: only these are read
            is_changed = False
            for k in range(m):
                changes[k, n_changed] = (of_rows[2, k, i] - a[k, rows[i]]) * y[k, rows[i]] * scale[rows[i]]
                a[k, rows[i]], margin[k, rows[i]] = of_rows[2, k, i], of_rows[3, k, i]
                is_changed |= changes[k, n_changed] != 0.0
            rows[n_changed] = rows[i]
            n_changed += is_changed
        for i in range(0, n_changed, 4):  # four rows at a time, so that f is read and written less often
            last = n_changed - 1
            row, second, third, fourth = (
                gram[rows[i]],
                gram[rows[min(i + 1, last)]],
                gram[rows[min(i + 2, last)]],
                gram[rows[min(i + 3, last)]],
            )
            for k in range(m):
                c = changes[k, i : i + 4]
                if c.any():
                    values = f[k]
                    for j in range(n):
                        values[j] += c[0] * row[j] + c[1] * second[j] + c[2] * third[j] + c[3] * fourth[j]


class DualAscent:
    """State of dual coordinate ascent for one or more problems on the same rows.

    For m problems on n rows, a = sigma(-margin) and f have shape (m, n).

    The coefficients are b_i = scale_i a_i y_i.
    """

    def __init__(self, blocks, signs, lam, random, b, shares):
        self.blocks, self.y, self.lam, self.random = blocks, signs, lam, random
        self.shares, self.scale = shares, shares / lam
        self.margin, self.f = np.full(signs.shape, 700.0), np.zeros(signs.shape)  # a is too small to affect f
        self.least = np.zeros(len(signs))
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
            _visit(blocks.whole, order, self.y, self.f, self.a, self.margin, self.scale, self.least)
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
            scale = self.scale[rows]
            _sweep(gram, y, f, a, margin, scale, self.least)
            changes[:, block] = (a - before) * y * scale
            self.f[:, rows], self.a[:, rows], self.margin[:, rows] = f, a, margin

            def carry_back(tile, block_changes=changes[:, block]):
                others, values, _ = tile
                self.f[:, others] += block_changes @ values.T

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
        gap = np.maximum(terms, 0) @ self.shares
        self.least = SKIPPED * gap
        return primal, primal - gap


def warm_path(blocks, signs, lams, shares, random, tol, max_iter, is_late=lambda: False):
    """Yield the coefficients (m, n) for each penalty; each fit starts from the last solution.

    A fit ends at the relative duality gap `tol`, after `max_iter` epochs, or when `is_late()` becomes true.
    """
    b = None
    for lam in lams:
        ascent = DualAscent(blocks, signs, lam, random, b, shares)
        for _ in range(max_iter):
            list(ascent.epoch())
            primal, dual = ascent.objectives()
            if np.all(primal - dual <= tol * primal) or is_late():
                break
        b = ascent.b
        yield b


@estimator
class DualCDKLR(BatchKLR):
    r"""Kernel logistic regression by dual coordinate ascent.

    Use it for up to some 50,000 scaled rows, if you know gamma and lam or search for them: it solves the problem to a
    duality gap, which states how far the objective is from its minimum.  Every row becomes a support vector.  An epoch
    takes time O(n^2), or O(n^2 d) if the kernel values are not stored, and few are needed; `OSKL` has fewer support
    vectors, and is faster from some 15,000 rows on.

    Notes
    -----
    It minimizes ``(lam/2) ||f||^2 + (1/n) sum_i log(1 + exp(-y_i f(x_i)))`` to a duality gap, by its dual:

    .. math::

        & \max_{0 < a_i < 1} \; -\frac{\lambda}{2} {\lVert f \rVert}^2
        - \frac{1}{n} \sum_i \left[ a_i \log a_i + (1 - a_i) \log(1 - a_i) \right] \\
        & f = \sum_i \frac{a_i y_i}{n \lambda} k(x_i, \cdot)

    Each step solves the problem in one a_i, by Newton steps that stay inside (0, 1).  The kernel values take time O(n^2
    d) once and an epoch O(n^2) per class, if they fit into ``cache_size`` MB; otherwise each epoch computes them
    again.  Few epochs are needed, unless 1 / (n lam) is in the thousands and rows are nearly equal.  There is no
    intercept: an unpenalized one needs sum_i a_i y_i = 0 in the dual, which steps in one a_i cannot keep; `NystroemKLR`
    has one.  A warm start clips the coefficients to 0 < b_i y_i n lam < 1.

    References
    ----------
    Keerthi, Duan, Shevade, Poo, Machine Learning 2005: the dual.  Yu, Huang, Lin, Machine Learning 2011, algorithm 5:
    the steps, for linear models.  Zhang, Jin, Chen, Bu, He, AAAI 2012, figure 5, compare a solver of this dual, "DCD".

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

    _: KW_ONLY
    feature_weights: ArrayLike | str | None = parameter(*FEATURE_WEIGHTS, default=None)

    _solver = staticmethod(DualAscent)
