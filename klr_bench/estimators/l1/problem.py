"""Objective of L1-regularized logistic regression, with its derivatives and duality gap.

F(w, b) = sum_i v_i log(1 + exp(-y_i (w'z_i + b))) + lam ||w||_1.

v_i are the weights of the examples; in the paper v_i = 1.  A point x (P,) is w, followed by b if there is an
intercept.  `penalty` (P,) is lam for w and 0 for b, so that a solver treats all coordinates alike.  Margins are
m_i = y_i (w'z_i + b), s_i = sigma(-m_i), t_i = v_i s_i.  Qin et al. (2011), equation 2 (line 56); the gap is that of
Koh, Kim and Boyd (2007), which the paper uses to stop (lines 348-352).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import float64
from scipy.special import entr

from klr_bench.estimators.core.jit import compiled, read_only
from klr_bench.estimators.l1.matrix import FeatureMatrix


@dataclass(frozen=True, eq=False)
class Problem:
    """Data and penalty of an L1-regularized logistic regression for two classes.

    The labels y (N,) are -1 or 1, lam >= 0 is the penalty, and weights (N,) may be None for equal weights of 1.
    """

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
        """Number of parameters: one per feature, plus one if there is an intercept."""
        return self.matrix.shape[1] + self.intercept

    @cached_property
    def largest_weight(self):
        """Largest weight, to which the smallest and largest values in the solvers are relative."""
        return self.weights.max(initial=0.0)

    @cached_property
    def typical_weight(self):
        """Median of the positive weights."""
        return np.median(self.weights[self.weights > 0])

    @cached_property
    def penalty(self):
        """L1 penalty of each parameter: `lam` for the coefficients and 0 for the intercept."""
        return np.append(np.full(self.matrix.shape[1], float(self.lam)), np.zeros(int(self.intercept)))

    def products(self, x):
        """Return the margin y_i (w'z_i + b) of each example for the parameter vector x."""
        D = self.matrix.shape[1]
        products = self.matrix.times(x[:D])
        if self.intercept:
            products += x[D]
        products *= self.y
        return products

    def loss(self, margins):
        """Return the weighted sum of the logistic losses for the given margins."""
        return logistic_loss(margins, self.weights)

    def l1(self, x):
        """Return the L1 penalty, lam ||w||_1, of the parameter vector x."""
        return float(self.penalty @ np.abs(x))

    def l1_change(self, x, d):
        """Return the change in the L1 penalty when x changes by d; accurate even for small d."""
        return float(self.penalty @ (np.abs(x + d) - np.abs(x)))

    def search(self, x, margins, d, products, delta, *, armijo, halvings):
        """Return the largest step size in 1, 1/2, 1/4, ... with sufficient decrease, or 0 if none.

        The condition for a step size alpha is F(x + alpha d) <= F(x) + armijo alpha delta.
        """
        alpha = 1.0
        for _ in range(halvings):  # sum the changes of the terms, because subtracting two sums would lose digits
            change = loss_change(margins, alpha * products, self.weights) + self.l1_change(x, alpha * d)
            if change <= armijo * alpha * delta:
                return alpha
            alpha /= 2
        return 0.0

    def slopes(self, margins, *, second=False):
        """Return the gradient, the diagonal of the Hessian, and a lower bound on the minimum.

        The gradient has shape (P,), and so has the diagonal if `second` is True; otherwise it is empty.
        """
        s = probabilities(margins)
        t, h = self.weights * s, self.weights * s * (1 - s) if second else None
        scaled = t
        if self.intercept:  # scale down t in one class, so that its sums over both classes are equal (y't = 0)
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
        """Return the duality gap, which is at least 0, at the parameter vector x."""
        margins = self.products(x) if margins is None else margins
        return max(self.loss(margins) + self.l1(x) - self.slopes(margins)[2], 0.0)

    def null_point(self):
        """Return the parameter vector with zero coefficients and the optimal intercept."""
        x = np.zeros(self.n_points)
        if self.intercept:
            x[-1] = math.log(self.weights[self.y > 0].sum() / self.weights[self.y < 0].sum())
        return x

    def lambda_max(self):
        """Return the smallest `lam` for which the optimal coefficients are all 0.

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
                "The features of some rows are not finite; scale X, or choose another kernel "
                "(a polynomial kernel of fractional degree is undefined for a negative base)."
            )
            raise ValueError(message)
        return largest


@dataclass
class Iterate:
    """Point reached by a solver after an iteration, with its objective and duality gap.

    The objective and the gap are computed when accessed, unless the solver has provided them.

    `gap_bound` is an upper bound of F(x) - min F that the solver obtained at no cost, `gap_known` the duality gap at x,
    `step` the number of steps if it differs from the number of iterates, and `stuck` is True if rounding errors prevent
    further progress.
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
        """Value of the objective at this iterate."""
        if self.objective_known is not None:
            return self.objective_known
        margins = self.problem.products(self.x) if self.margins is None else self.margins
        return self.problem.loss(margins) + self.problem.l1(self.x)

    @cached_property
    def gap(self):
        """Duality gap at this iterate."""
        return self.problem.gap(self.x, self.margins) if self.gap_known is None else self.gap_known

    @property
    def relative_gap(self):
        """Duality gap at this iterate, divided by the objective."""
        return self.gap / max(self.objective, 1e-12 * self.problem.largest_weight)

    def reaches(self, tol):
        """Return True if the relative duality gap is known to be at most `tol`."""
        level = tol * max(self.objective_known or 0.0, 1e-12 * self.problem.largest_weight)
        if self.gap_known is not None:
            return self.gap_known <= level
        return self.gap_bound is not None and self.gap_bound <= level and self.gap <= level


def soft(z, threshold):
    """Apply soft thresholding to z: return sign(z) max(abs(z) - threshold, 0) (equation 5)."""
    return np.sign(z) * np.maximum(np.abs(z) - threshold, 0.0)


_READ = read_only(float64, 1)


@compiled(float64(_READ, _READ))
def logistic_loss(margins, weights):
    """Return the weighted sum of the logistic losses log(1 + exp(-margin))."""
    total = 0.0
    for i in range(len(margins)):
        m = margins[i]
        total += weights[i] * (max(-m, 0.0) + math.log1p(math.exp(-abs(m))))
    return total


@compiled(float64(_READ, _READ, _READ))
def loss_change(margins, change, weights):
    """Return the change in the weighted logistic loss for given changes in the margins.

    It is accurate for small changes c_i: the loss of example i changes by log(1 + s_i (exp(-c_i) - 1)).
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
    """Return the probability of the wrong class, 1 / (1 + exp(margin)), for each margin."""
    t = np.empty(len(margins))
    for i in range(len(margins)):
        e = math.exp(-abs(margins[i]))
        t[i] = (e if margins[i] > 0.0 else 1.0) / (1.0 + e)
    return t
