"""Online sparse kernel learning by sampling and smooth losses (OSKL).

Zhang, Yi, Jin, Lin, He (ICML 2013), algorithm 1 and table 1.
"""

from __future__ import annotations

import math

from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.core.binary import POSITIVE
from klr_bench.estimators.core.losses import LOSSES, derivative, sigmoid
from klr_bench.estimators.online.base import RADIUS
from klr_bench.estimators.online.engine import rule
from klr_bench.estimators.online.multiclass import SoftmaxKernelClassifier
from klr_bench.estimators.online.softmax import rule_of_many

SMOOTH_LOSSES = ("logit", "exponential", "square")


@rule
def sampled_sign_step(y, f, u, t, parameters):
    loss, delta, G, step = parameters[0], parameters[1], parameters[2], parameters[3]
    slope = derivative(int(loss), y, f, delta)
    if not abs(slope) <= G:
        return False, 1.0, math.nan
    return u < abs(slope) / G, 1.0, -math.copysign(step, slope)


@rule_of_many
def sampled_direction_step(z, r, u, parameters):
    G, step = parameters[2], parameters[3]
    return u < r * sigmoid(-z) / G, step / r


class OSKL(SoftmaxKernelClassifier):
    """Makes an example a support vector with probability |l'(y, f(x))| / G.

    The update that follows is f <- project_R( f - eta G sign(l'(y, f(x))) k(x, .) ): an unbiased gradient step.  Of
    more than two classes, with the logit loss, |l'| is the length of the gradient, and its direction is in the sign's
    place.

    Parameters
    ----------
    G : float, default=1.0
        Bound on |l'|; the larger, the sparser.  At least 1 for the logit loss; the derivatives of the other two have
        no bound in advance: an example whose derivative exceeds G is a ValueError.
    eta : float > 0, default=None
        Step size; None is 0.9 / (L G).  L is 1 for logit and exponential, 2 / delta for square.
    R : float > 0, default=1e3
        Radius of the ball in the kernel's space; `inf` for none.
    loss : {"logit", "exponential", "square"}, default="logit"
        log(1 + e^-yf), e^-yf, or max((y - f)^2, delta^2).
    delta : float > 0, default=0.1
        Of the square loss.
    average, kernel, gamma, degree, coef0, random_state, dtype, n_epochs
        See `SoftmaxKernelClassifier`, also for the fitted attributes.

    References
    ----------
    Zhang et al., ICML 2013, algorithm 1; losses of table 1.
    """

    _rule = sampled_sign_step
    _rule_of_many = sampled_direction_step
    _parameter_constraints = SoftmaxKernelClassifier._parameter_constraints | {
        "G": [POSITIVE],
        "eta": [POSITIVE, None],
        "R": [RADIUS],
        "loss": [StrOptions(set(SMOOTH_LOSSES))],
        "delta": [POSITIVE],
    }

    def __init__(
        self,
        G=1.0,
        eta=None,
        R=1e3,
        loss="logit",
        delta=0.1,
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
        self.G = G
        self.eta = eta
        self.R = R
        self.loss = loss
        self.delta = delta

    def _validate_params(self):
        super()._validate_params()
        if self.loss == "logit" and self.G < 1:
            message = f"The 'G' parameter of OSKL must be at least G1 = 1, the bound of the logit loss. Got {self.G!r}."
            raise ValueError(message)

    def _rule_arguments(self):
        smoothness = 2.0 / self.delta if self.loss == "square" else 1.0  # L of the paper's table 1
        eta = 0.9 / (smoothness * self.G) if self.eta is None else self.eta
        return [LOSSES[self.loss], self.delta, self.G, eta * self.G], self.R

    def _refuse(self, t, f):
        if self.loss == "logit" or not math.isfinite(f):
            super()._refuse(t, f)
        message = (
            f"OSKL: |l'(y, f(x))| of the {self.loss} loss exceeds G = {self.G:g} at example {t}; "
            f"G must be at least G1, the largest derivative that occurs: use a larger G or a smaller R."
        )
        raise ValueError(message)

    def _is_logistic(self):
        return self.loss == "logit"
