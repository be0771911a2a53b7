"""Loss functions of margin classifiers and their derivatives, compiled by numba.

Labels y are -1 or +1, f is the value of the classifier, z = y f.
"""

from __future__ import annotations

import math

from numba import float64, int64

from klr_bench.estimators.core.jit import compiled

LOSSES = {"logit": 0, "exponential": 1, "square": 2, "hinge": 3, "squared_hinge": 4, "smooth_hinge": 5}
"""Codes of the losses in compiled code."""

LOGIT, EXPONENTIAL, SQUARE, HINGE, SQUARED_HINGE, SMOOTH_HINGE = LOSSES.values()


@compiled(float64(float64))
def sigmoid(z):
    """Return 1 / (1 + exp(-z)) without overflow."""
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@compiled(float64(float64))
def softplus(z):
    """Return log(1 + exp(z)) without overflow.

    softplus(-z) is the logistic loss at the margin z.
    """
    return max(z, 0.0) + math.log1p(math.exp(-abs(z)))


@compiled(float64(int64, float64, float64, float64))
def derivative(loss, y, f, delta):
    """Return the derivative of a loss l(y, f) with respect to the decision value f.

    The square loss is max((y - f)^2, delta^2), constant where abs(y - f) < delta (Zhang et al., ICML 2013, table 1);
    delta = 0 gives the usual square loss.  The squared hinge is max(0, 1 - yf)^2; the smooth hinge is (1 - yf)^2 / 2
    where 0 < yf < 1, 1/2 - yf below and 0 above.
    """
    if loss == LOGIT:
        return -y * sigmoid(-y * f)
    if loss == EXPONENTIAL:
        return -y * math.exp(-y * f)
    if loss == SQUARE:
        return 2.0 * (f - y) if abs(y - f) >= delta else 0.0
    if loss == SQUARED_HINGE:
        return -2.0 * y * max(0.0, 1.0 - y * f)
    if loss == SMOOTH_HINGE:
        return -y * min(max(0.0, 1.0 - y * f), 1.0)
    return -y if y * f < 1.0 else 0.0
