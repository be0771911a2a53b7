"""DUOL: online learning that may also update an older, conflicting support vector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import float64, void

from klr_bench.estimators.budget.base import MANY, BudgetClassifier, Unlimited
from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.kernels import ANY_KERNEL, kernel_of, rows_of
from klr_bench.estimators.core.parameters import POSITIVE, SHARE, estimator, fixed, parameter
from klr_bench.estimators.core.rows import Growing, enlarged, growing_like, stacked
from klr_bench.estimators.core.vectors import add_scaled, first_of_largest
from klr_bench.estimators.kernel_values.operands import nonnegative_diagonal, operands_of
from klr_bench.estimators.online.state import STATES, BlockState, count_example

ROUNDING = 1e-9
"""Margins that updates set to 1 count as 1 up to this difference."""

_vector, _matrix = float64[::1], float64[:, ::1]


@compiled()
def both_steps(loss_t, loss_b, length_t, length_b, w, room_t, room_b):
    """Return the dual-optimal changes of the coefficients of two conflicting examples.

    The changes g and d maximize g loss_t + d loss_b - (length_t g^2 + length_b d^2) / 2 - w g d, with w <= 0.

    0 <= g <= room_t, 0 <= d <= room_b; the losses are >= 0, and so are the steps without the upper bounds.
    """
    determinant = length_t * length_b - w * w
    if determinant > 1e-12 * length_t * length_b:
        g, d = (loss_t * length_b - w * loss_b) / determinant, (loss_b * length_t - w * loss_t) / determinant
        if g <= room_t and d <= room_b:
            return g, d
    g, d = room_t, min((loss_b - w * room_t) / length_b, room_b)
    other_g, other_d = min((loss_t - w * room_b) / length_t, room_t), room_b
    gain = g * loss_t + d * loss_b - 0.5 * (length_t * g * g + length_b * d * d) - w * g * d
    other = other_g * loss_t + other_d * loss_b
    other -= 0.5 * (length_t * other_g * other_g + length_b * other_d * other_d) + w * other_g * other_d
    return (g, d) if gain >= other else (other_g, other_d)


@compiled()
def _conflict(y, row, f, labels, coef, n):
    """Find the support vector that conflicts most with a new example.

    Returns (i, y_i y k(x_i, x)), where the margin y_i f(x_i) is at most 1, and i is -1 if there is none.  Of those that
    conflict equally it is the first.
    """
    conflicts = np.zeros(n, dtype=row.dtype)
    for j in range(n):
        near = coef[j] != 0.0 and labels[j] * f[j] <= 1.0 + ROUNDING
        conflicts[j] = 1.0 if near and labels[j] * y * row[j] < 0.0 else 0.0
    place = first_of_largest(row[:n], conflicts)
    return place, -abs(row[place])


@compiled(void(_matrix, _matrix, _vector, _vector, _vector, _vector, float64, float64, STATES))
def _block(gram, values, labels, f, coef, sums, C, rho, states):
    """Learn from a block of examples.

    gram: kernel values of the n support vectors, in its first n rows and columns; values (b, n + b): those of the
    examples with the support vectors and each other; labels, f, coef (n + b,), of both: labels, values of f,
    coefficients; sums (n + b,): the changes of the coefficients, each times its t.
    """
    n, state = len(labels) - len(values), states[0]
    for i in range(len(values)):
        place, row = n + i, values[i]
        y, length = labels[place], row[place]
        if not count_example(y, f[place], length, state):
            break
        t, loss = state["t"], 1.0 - y * f[place]
        if loss <= ROUNDING:
            continue
        b, w = _conflict(y, row, f, labels, coef, place)
        if b >= 0 and w <= -rho:
            its_length = gram[b, b] if b < n else values[b - n, b]
            room = max(C - labels[b] * coef[b], 0.0)
            step, its_step = both_steps(loss, max(1.0 - labels[b] * f[b], 0.0), length, its_length, w, C, room)
            c = its_step * labels[b]
            coef[b] += c
            sums[b] += c * t
            if b < n:
                add_scaled(f[:n], c, gram[b])
                for j in range(len(values)):
                    f[n + j] += c * values[j, b]
            else:
                add_scaled(f, c, values[b - n])
        else:
            step = min(C, loss / length) if length > 0.0 else C
        coef[place], sums[place] = step * y, step * y * t
        add_scaled(f, step * y, row)


class DoubleState(BlockState):
    """State of a DUOL learner (in float64), kept between blocks of examples.

    Attributes: `support`, the support vectors; `numbers`, their numbers; the rest as in `_block`.
    """

    def __init__(self, kernel, X):
        super().__init__()
        self.sparse = sp.issparse(X)
        self.operands = operands_of(kernel, X).plain
        self.support, self.numbers = growing_like(X), Growing((0,), np.int64)
        self.gram = np.zeros((0, 0))
        self.labels, self.f, self.coef, self.sums = np.zeros((4, 0))

    def _learn_block(self, X, y, C, rho):
        n, b = len(self.support), len(y)
        rows = X.astype(np.float64)
        nonnegative_diagonal(self.operands, rows)
        both = stacked([self.support.rows, X])
        right = self.operands.right(both.astype(np.float64))
        values = np.ascontiguousarray(self.operands.values(self.operands.left(rows), right))
        labels, coef, sums = np.r_[self.labels, y], np.r_[self.coef, np.zeros(b)], np.r_[self.sums, np.zeros(b)]
        f = np.r_[self.f, self.coef @ values[:, :n].T]
        before = self.t
        _block(self.gram, values, labels, f, coef, sums, C, rho, self.states)
        new = np.flatnonzero(coef[n:])
        places = np.r_[np.arange(n), n + new]
        self.labels, self.f, self.coef, self.sums = labels[places], f[places], coef[places], sums[places]
        self.support.append(X[new])
        self.numbers.append(before + new)
        m = n + len(new)
        if m > len(self.gram):
            self.gram = enlarged(self.gram, (2 * m, 2 * m))
        self.gram[n:m, :n], self.gram[n:m, n:m] = values[new, :n], values[np.ix_(new, n + new)]
        self.gram[:n, n:m] = self.gram[n:m, :n].T

    def coefficients(self, *, average):
        """Return the indices of the support vectors, and their averaged or last coefficients."""
        return np.arange(len(self.coef)), self.coef - self.sums / max(self.t, 1) if average else self.coef


@estimator
class DUOL(BudgetClassifier):
    r"""Double updating online learning (DUOL), which can update two coefficients per step.

    Use it for an accurate single pass over some thousand rows.  It stores all kernel values of support vectors with
    each other, so that memory grows with the square of their number.

    Parameters
    ----------
    C : float, default=1.0
        Bound > 0 on the coefficients; the grid of configs/algorithm/duol.yaml is 0.1, 1 and 10.
    rho : float, default=0.1
        Least conflict, in (0, 1], of two examples, for kernels with k(x, x) = 1; with a larger one there are fewer
        double updates.

    Attributes
    ----------
    n_updates_ : int
        Number of insertions; changes of a support vector do not count.

    Notes
    -----
    At an example with y f(x) < 1, the support vector with the smallest w = y_i y k(x_i, x) is selected among those with
    margins y_i f(x_i) <= 1.  If w <= -rho, the coefficients of both are set to those in [0, C] at which the dual
    objective of the SVM,

    .. math::

        \sum_i a_i - \frac{1}{2} \sum_{i,j} a_i a_j y_i y_j k(x_i, x_j), \quad 0 \le a_i \le C,

    is the largest; otherwise the example enters with min(C, (1 - y f(x)) / k(x, x)).

    There is no budget: all kernel values of support vectors with each other are kept, 8 to 32 n_support_^2 bytes.
    Training is in float64 whatever `dtype`.

    References
    ----------
    Zhao, Hoi, Jin, Double updating online learning, JMLR 12, 2011, algorithm 1.

    Examples
    --------
    >>> from klr_bench import DUOL
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> DUOL(gamma=2.0, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    C: float = parameter(POSITIVE, default=1.0)
    rho: float = parameter(SHARE, default=0.1)
    budget: int = fixed(MANY)
    _: KW_ONLY
    kernel: str | Callable[..., Any] = parameter(*ANY_KERNEL, default="rbf")

    _described_by = Unlimited

    def _engine(self, X, weights):
        engine = self._state or DoubleState(kernel_of(self, X, weights), rows_of(self, X))
        engine.parameters = self.C, self.rho
        return engine
