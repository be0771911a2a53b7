"""Conservative online kernel logistic regression that samples by the classification margin.

Zhang, Jin, Chen, Bu, He (AAAI 2012), algorithm 2.
"""

from __future__ import annotations

from numbers import Real

from sklearn.utils._param_validation import Interval

from klr_bench.losses import sigmoid
from klr_bench.online.base import RADIUS, OnlineKernelClassifier
from klr_bench.online.engine import rule


@rule
def gradient_step_by_margin(y, f, u, t, parameters):
    eta = parameters[0]
    probability = (2.0 - eta) / (2.0 - eta + eta * sigmoid(y * f))
    return u < probability, 1.0, eta * y * sigmoid(-y * f)


class MarginKLR(OnlineKernelClassifier):
    """Updates on an example with a probability that falls with its margin.

    With z = y f(x), the probability is (2 - eta) / (2 - eta + eta sigma(z)); the update that follows is
    f <- project_R( f + eta y (1 - sigma(z)) k(x, .) ).

    Parameters
    ----------
    eta : float in (0, 2), default=1.0
        Step size; the nearer to 2, the sparser.
    R : float > 0, default=1e3
        Radius of the ball in the kernel's space; `inf` for none.
    average, kernel, gamma, degree, coef0, random_state, dtype, n_epochs
        See `OnlineKernelClassifier`, also for the fitted attributes.

    References
    ----------
    Zhang et al., AAAI 2012, algorithm 2.
    """

    _rule = gradient_step_by_margin
    _parameter_constraints = OnlineKernelClassifier._parameter_constraints | {
        "eta": [Interval(Real, 0, 2, closed="neither")],
        "R": [RADIUS],
    }

    def __init__(
        self,
        eta=1.0,
        R=1e3,
        *,
        average=True,
        kernel="rbf",
        gamma=None,
        degree=3,
        coef0=1.0,
        random_state=None,
        dtype=None,
        n_epochs=1,
    ):
        super().__init__(average, kernel, gamma, degree, coef0, random_state, dtype, n_epochs)
        self.eta = eta
        self.R = R

    def _rule_arguments(self):
        return [self.eta], self.R

    def _is_logistic(self):
        return True
