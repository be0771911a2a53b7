"""Adaptive regularisation of weights, and its variant with an adaptive regularisation parameter.

Crammer, Kulesza, Dredze, "Adaptive regularization of weight vectors", NIPS 2009.
Orabona, Crammer, "New adaptive algorithms for online classification", NIPS 2010.
"""

from __future__ import annotations

from klr_bench.estimators.core.binary import POSITIVE
from klr_bench.estimators.linear.base import ConfidenceLearner
from klr_bench.estimators.linear.engine import rule


@rule
def adaptive(m, v, parameters):
    if m >= 1.0:
        return 0.0, 0.0
    beta = 1.0 / (v + parameters[0])
    return (1.0 - m) * beta, beta


class AROW(ConfidenceLearner):
    """Where the margin m is below 1, with v = x'Sx:  beta = 1/(v + r), alpha = (1 - m) beta.

    S^-1 is then I plus the sum of x x'/r over the updates.

    Parameters
    ----------
    r : float, default=1.0
        Regularisation > 0; a larger one makes smaller steps.
    covariance, n_epochs, memory_limit
        See `ConfidenceLearner`, also for the fitted attributes.

    References
    ----------
    Crammer, Kulesza, Dredze (2009), figure 1.
    """

    _parameter_constraints = ConfidenceLearner._parameter_constraints | {"r": [POSITIVE]}

    def __init__(self, r=1.0, *, covariance="full", n_epochs=1, memory_limit=4000.0):
        super().__init__(covariance, n_epochs, memory_limit)
        self.r = r

    def _update(self):
        return adaptive, (self.r,)


@rule
def narrow(m, v, parameters):
    b = parameters[0]
    if m >= 1.0 or b * v <= 1.0:
        return 0.0, 0.0
    beta = (b * v - 1.0) / (b * v * v)  # 1 / (v + r), r = v / (b v - 1)
    return (1.0 - m) * beta, beta


class NAROW(ConfidenceLearner):
    """AROW with r = v/(b v - 1) at each example: the variance v becomes 1/b, and there is no update where it is less.

    Parameters
    ----------
    b : float, default=1.0
        The inverse of the variance that an example with an update is left with, > 0.
    covariance, n_epochs, memory_limit
        See `ConfidenceLearner`, also for the fitted attributes.

    References
    ----------
    Orabona, Crammer (2010), section 5.
    """

    _parameter_constraints = ConfidenceLearner._parameter_constraints | {"b": [POSITIVE]}

    def __init__(self, b=1.0, *, covariance="full", n_epochs=1, memory_limit=4000.0):
        super().__init__(covariance, n_epochs, memory_limit)
        self.b = b

    def _update(self):
        return narrow, (self.b,)
