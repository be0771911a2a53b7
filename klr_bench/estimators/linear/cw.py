"""Confidence-weighted learning: an example becomes right with a given probability over the weights.

Crammer, Dredze, Pereira, "Exact convex confidence-weighted learning", NIPS 2008 (the standard-deviation form).
Wang, Zhao, Hoi, "Exact soft confidence-weighted learning", ICML 2012.
"""

from __future__ import annotations

import math

from numba import float64
from scipy.special import ndtri
from sklearn.utils._param_validation import Options

from klr_bench.estimators.core.binary import POSITIVE
from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.linear.base import CONFIDENCE, ConfidenceLearner
from klr_bench.estimators.linear.engine import rule


@compiled(float64(float64, float64, float64))
def shrinkage(alpha, v, phi):
    """Return beta = alpha phi / (sqrt(u) + alpha phi v), where u is the variance of the margin after the update."""
    a = alpha * v * phi
    root = 2.0 * v / (a + math.sqrt(a * a + 4.0 * v))  # sqrt(u) = (-a + sqrt(a^2 + 4 v)) / 2
    return alpha * phi / (root + alpha * phi * v)


@compiled(float64(float64, float64, float64))
def confident_step(m, v, phi):
    """Return alpha of CW, for phi sqrt(v) > m."""
    square = phi * phi
    psi, xi = 1.0 + 0.5 * square, 1.0 + square
    root = math.sqrt(0.25 * m * m * square * square + v * square * xi)
    if m > 0.0:  # (-m psi + root) / (v xi) without the difference of what may be nearly equal
        return (v * square - m * m) / (v * (root + m * psi))
    return (-m * psi + root) / (v * xi)


@rule
def confident(m, v, parameters):
    phi, bound = parameters
    if m >= phi * math.sqrt(v):
        return 0.0, 0.0
    alpha = min(bound, confident_step(m, v, phi))
    return alpha, shrinkage(alpha, v, phi)


@rule
def softly_confident(m, v, parameters):
    phi, softness = parameters
    if m >= phi * math.sqrt(v):
        return 0.0, 0.0
    square, n = phi * phi, v + softness
    root = phi * math.sqrt(square * m * m * v * v + 4.0 * n * v * (n + v * square))
    first = m * (2.0 * n + square * v)
    if m > 0.0:  # as above
        alpha = 2.0 * (v * square - m * m) / (root + first)
    else:
        alpha = (root - first) / (2.0 * (n * n + n * v * square))
    return alpha, shrinkage(alpha, v, phi)


class ConfidenceWeighted(ConfidenceLearner):
    """The least change of N(mean, S), by Kullback-Leibler divergence, with P(y w'x >= 0) >= confidence.

    With phi = Phi^-1(confidence), psi = 1 + phi^2/2, xi = 1 + phi^2, where phi sqrt(v) > m:

        alpha = (-m psi + sqrt(m^2 phi^4/4 + v phi^2 xi)) / (v xi)
        beta = alpha phi / (sqrt(u) + alpha phi v),   u = (-alpha v phi + sqrt(alpha^2 v^2 phi^2 + 4 v))^2 / 4

    Parameters
    ----------
    confidence : float, default=0.7
        In (0.5, 1).
    safeguard : bool, default=True
        Hold back what an example adds to S^-1, so that S stays positive definite.  On noisy data S shrinks without end,
        and without the safeguard rounding makes it indefinite; examples whose variance is not positive are then passed
        over.
    covariance, n_epochs, memory_limit
        See `ConfidenceLearner`, also for the fitted attributes.

    References
    ----------
    Crammer, Dredze, Pereira (2008), figure 1, and JMLR 13 (2012).
    """

    _parameter_constraints = ConfidenceLearner._parameter_constraints | {
        "confidence": [CONFIDENCE],
        "safeguard": ["boolean"],
    }

    def __init__(self, confidence=0.7, safeguard=True, *, covariance="full", n_epochs=1, memory_limit=4000.0):
        super().__init__(covariance, n_epochs, memory_limit)
        self.confidence = confidence
        self.safeguard = safeguard

    def _limit(self, dtype):
        return super()._limit(dtype) if self.safeguard else math.inf

    def _update(self):
        return confident, (ndtri(self.confidence), math.inf)


class SoftConfidenceWeighted(ConfidenceLearner):
    """CW with a loss max(0, phi sqrt(v) - m) in place of the constraint, so that noise does not carry it away.

    SCW-I: alpha is that of CW, at most C.  SCW-II squares the loss; with n = v + 1/(2C)

        alpha = (-(2 m n + phi^2 m v) + phi sqrt(phi^2 m^2 v^2 + 4 n v (n + v phi^2))) / (2 (n^2 + n v phi^2))

    Parameters
    ----------
    variant : {1, 2}, default=1
    C : float, default=1.0
        Weight of the loss.
    confidence : float, default=0.75
        In (0.5, 1).
    covariance, n_epochs, memory_limit
        See `ConfidenceLearner`, also for the fitted attributes.

    References
    ----------
    Wang, Zhao, Hoi (2012), propositions 1 and 2.
    """

    _parameter_constraints = ConfidenceLearner._parameter_constraints | {
        "confidence": [CONFIDENCE],
        "variant": [Options(int, {1, 2})],
        "C": [POSITIVE],
    }

    def __init__(self, variant=1, C=1.0, confidence=0.75, *, covariance="full", n_epochs=1, memory_limit=4000.0):
        super().__init__(covariance, n_epochs, memory_limit)
        self.variant = variant
        self.C = C
        self.confidence = confidence

    def _update(self):
        phi = ndtri(self.confidence)
        return (confident, (phi, self.C)) if self.variant == 1 else (softly_confident, (phi, 0.5 / self.C))
