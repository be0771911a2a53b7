"""The objective F(w, b), its derivatives, and its duality gap.

F(w, b) = sum_i v_i log(1 + exp(-y_i (w'z_i + b))) + lam ||w||_1.

v_i are the weights of the examples; the paper has none, v_i = 1.  A point x (P,) is w, followed by b if there is an
intercept.  `penalty` (P,) is lam for w and 0 for b, so that a solver treats all coordinates alike.  Margins are
m_i = y_i (w'z_i + b), s_i = sigma(-m_i), t_i = v_i s_i.  Qin et al. (2011), equation 2 (line 56); the gap is that of
Koh, Kim and Boyd (2007), which the paper uses to stop (lines 348-352).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import float64, types
from scipy.special import entr

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.l1.matrix import FeatureMatrix


@dataclass(frozen=True, eq=False)
class Problem:
    """Feature matrix, labels y (N,) in {-1, 1}, lam >= 0, and weights v (N,), None for 1."""

    matrix: FeatureMatrix
    y: np.ndarray
    lam: float
    intercept: bool
    weights: np.ndarray | None = None

    def __post_init__(self):
        if self.weights is None:
            object.__setattr__(self, "weights", np.ones(len(self.y)))

    @property
    def n_points(self):
        """The number P of coordinates."""
        return self.matrix.shape[1] + self.intercept

    @cached_property
    def penalty(self):
        """Penalty weight of each coordinate, (P,): lam for w and 0 for b."""
        return np.append(np.full(self.matrix.shape[1], float(self.lam)), np.zeros(int(self.intercept)))

    def products(self, x):
        """Return y_i (w'z_i + b), (N,): the margins at a point, or their change along a direction."""
        D = self.matrix.shape[1]
        products = self.matrix.times(x[:D])
        if self.intercept:
            products += x[D]
        products *= self.y
        return products

    def loss(self, margins):
        """Return the weighted sum of losses."""
        return logistic_loss(margins, self.weights)

    def l1(self, x):
        """Return lam ||w||_1."""
        return float(self.penalty @ np.abs(x))

    def l1_change(self, x, d):
        """Return lam (||w + d||_1 - ||w||_1), accurate for a small d."""
        return float(self.penalty @ (np.abs(x + d) - np.abs(x)))

    def search(self, x, margins, d, products, delta, *, armijo, halvings):
        """Return the largest step alpha in 1, 1/2, 1/4, ... with sufficient decrease, or 0.

        The condition is F(x + alpha d) <= F(x) + armijo alpha delta.
        """
        alpha = 1.0
        for _ in range(halvings):  # summed term by term, the change is accurate far below the rounding error of F
            change = loss_change(margins, alpha * products, self.weights) + self.l1_change(x, alpha * d)
            if change <= armijo * alpha * delta:
                return alpha
            alpha /= 2
        return 0.0

    def slopes(self, margins, *, second=False):
        """Return the gradient (P,), the Hessian diagonal if `second`, and a lower bound of min F."""
        s = probabilities(margins)
        t, h = self.weights * s, self.weights * s * (1 - s) if second else None
        scaled = t
        if self.intercept:  # shrink t on the class with the larger sum, so that y't = 0
            positive = np.where(self.y > 0, t, 0.0)
            negative = t - positive
            sums, diagonal = self.matrix.sums(np.stack([positive, negative]), h)
            heavy = np.array([positive.sum(), negative.sum()])
            factors = heavy.min() / np.maximum(heavy, np.finfo(float).tiny)
            gradient = np.append(sums[1] - sums[0], heavy[1] - heavy[0])
            correlation = factors[0] * sums[0] - factors[1] * sums[1]
            scaled = factors[0] * positive + factors[1] * negative
            diagonal = np.append(diagonal, h.sum()) if second else np.zeros(0)
        else:
            sums, diagonal = self.matrix.sums((self.y * t)[None], h)
            gradient, correlation = -sums[0], sums[0]
        largest = np.max(np.abs(correlation), initial=0.0)
        feasible = 1.0 if largest <= self.lam else self.lam / largest
        theta = np.divide(feasible * scaled, self.weights, out=np.zeros(len(t)), where=self.weights > 0)
        return gradient, diagonal, float(self.weights @ (entr(theta) + entr(1 - theta)))

    def gap(self, x, margins=None):
        """Return the duality gap at a point x (P,), which is >= 0."""
        margins = self.products(x) if margins is None else margins
        return max(self.loss(margins) + self.l1(x) - self.slopes(margins)[2], 0.0)

    def null_point(self):
        """Return the best point (P,) with w = 0, for which b is the log odds."""
        x = np.zeros(self.n_points)
        if self.intercept:
            x[-1] = math.log(self.weights[self.y > 0].sum() / self.weights[self.y < 0].sum())
        return x

    def lambda_max(self):
        """Return the smallest lam for which w = 0 is optimal.

        Raises ValueError if features are not finite.

        It is ||Z'b||_inf.  With an intercept, b_i = N_-/N for y_i = 1 and -N_+/N for y_i = -1 (equation 16, lines
        326-330, whose sentence swaps the names N_- and N_+); without one b = y/2.  With weights N_- and N_+ are their
        sums, and b_i is multiplied by v_i.
        """
        share = self.weights[self.y < 0].sum() / self.weights.sum() if self.intercept else 0.5
        b = self.weights * np.where(self.y > 0, share, share - 1.0)
        largest = float(np.max(np.abs(self.matrix.sums(b[None])[0][0]), initial=0.0))
        if not np.isfinite(largest):
            message = (
                "L1KLR: the features z_i of some rows are not finite; scale X, or choose another kernel "
                "(a degree that is not whole has no value below 0)."
            )
            raise ValueError(message)
        return largest


@dataclass
class Iterate:
    """State of a solver after an iteration; missing values are computed when accessed.

    `gap_bound` is an upper bound of F(x) - min F that cost nothing, `gap_known` the duality gap of x, `step` the number
    of steps if it is not that of iterates, and `stuck` is True if rounding allows no further progress.
    """

    problem: Problem
    x: np.ndarray
    margins: np.ndarray | None = None
    objective_known: float | None = None
    gap_known: float | None = None
    gap_bound: float | None = None
    step: int | None = None
    stuck: bool = False

    @cached_property
    def objective(self):
        """The objective F(x)."""
        if self.objective_known is not None:
            return self.objective_known
        margins = self.problem.products(self.x) if self.margins is None else self.margins
        return self.problem.loss(margins) + self.problem.l1(self.x)

    @cached_property
    def gap(self):
        """The duality gap at x."""
        return self.problem.gap(self.x, self.margins) if self.gap_known is None else self.gap_known

    @property
    def relative_gap(self):
        """The duality gap divided by F(x)."""
        return self.gap / max(self.objective, 1e-12)

    def reaches(self, tol):
        """Return True if the gap, or the solver's bound of it, is at most tol F(x)."""
        level = tol * max(self.objective_known or 0.0, 1e-12)
        if self.gap_known is not None:
            return self.gap_known <= level
        return self.gap_bound is not None and self.gap_bound <= level and self.gap <= level


def soft(z, threshold):
    """Return the soft threshold sign(z) max(abs(z) - threshold, 0) (equation 5)."""
    return np.sign(z) * np.maximum(np.abs(z) - threshold, 0.0)


_READ = types.Array(float64, 1, "C", readonly=True)


@compiled(float64(_READ, _READ))
def logistic_loss(margins, weights):
    """Return sum_i v_i log(1 + exp(-m_i))."""
    total = 0.0
    for i in range(len(margins)):
        m = margins[i]
        total += weights[i] * (max(-m, 0.0) + math.log1p(math.exp(-abs(m))))
    return total


@compiled(float64(_READ, _READ, _READ))
def loss_change(margins, change, weights):
    """Return sum_i v_i (l(m_i + c_i) - l(m_i)), accurate for small c_i.

    For small c_i the difference is log(1 + s_i (exp(-c_i) - 1)).
    """
    total = 0.0
    for i in range(len(margins)):
        m, c, v = margins[i], change[i], weights[i]
        e = math.exp(-abs(m))
        if abs(c) < 0.5:
            s = (e if m > 0.0 else 1.0) / (1.0 + e)
            total += v * math.log1p(s * math.expm1(-c))
        else:
            after = m + c
            total += v * (max(-after, 0.0) - max(-m, 0.0) + math.log1p(math.exp(-abs(after))) - math.log1p(e))
    return total


@compiled(float64[::1](_READ))
def probabilities(margins):
    """Return s (N,) with s_i = sigma(-m_i)."""
    t = np.empty(len(margins))
    for i in range(len(margins)):
        e = math.exp(-abs(margins[i]))
        t[i] = (e if margins[i] > 0.0 else 1.0) / (1.0 + e)
    return t
