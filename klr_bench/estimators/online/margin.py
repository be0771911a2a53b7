"""Online kernel logistic regression that samples its updates according to the margin."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from numbers import Real

from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.core.checks import LearningFailed
from klr_bench.estimators.core.losses import sigmoid
from klr_bench.estimators.core.parameters import COUNT, Interval, estimator, parameter
from klr_bench.estimators.online.classifier import BY_RADIUS, RADIUS, OnlineClassifier, SeveralPasses
from klr_bench.estimators.online.engine import rule
from klr_bench.estimators.online.passes import Update
from klr_bench.estimators.online.softmax import rule_of_many


@rule
def gradient_step_by_margin(y, f, u, t, parameters):
    (eta,) = parameters
    if not eta < 2.0:
        return False, 1.0, math.nan
    probability = (2.0 - eta) / (2.0 - eta + eta * sigmoid(y * f))
    return u < probability, 1.0, eta * y * sigmoid(-y * f)


@rule_of_many
def softmax_gradient_step_by_length(z, r, u, parameters):
    (eta,) = parameters
    if not eta < 2.0:
        return False, math.nan
    length = r * sigmoid(-z)
    return u < (2.0 - eta) / (2.0 - eta + eta * (1.0 - length)), eta * sigmoid(-z)


@estimator
class MarginKLR(OnlineClassifier):
    r"""Online kernel logistic regression whose update probability decreases with the margin.

    Use it to compare sparse learners: it stores a share of at least 1 - eta/2 of the rows.  A pass takes one kernel
    value per row and support vector; `OSKL` and `AuxiliaryKLR` can store fewer.

    Parameters
    ----------
    eta : float or "R/sqrt(T)", default=1.0
        Step size in (0, 2); nearer to 2 there are fewer support vectors.  T is the number of rows of the first call.
        The paper compares "R/sqrt(T)" where it is below 2, 0.01, 0.1 and 1; of the three numbers 1 gives the fewest.

    Notes
    -----
    With the margin z = y f(x), an example is drawn with probability p; only then is there a gradient step on the
    logistic loss, f <- project_R( f + eta y (1 - sigma(z)) k(x, .) ), sigma(z) = 1 / (1 + e^-z):

    .. math::

        p = \frac{2 - \eta}{2 - \eta + \eta \sigma(z)}

    p is never below 1 - eta / 2, so that the number of support vectors grows with that of the examples.  With more than
    two classes, sigma(z) in the probability is replaced by 1 minus the length of the gradient, which is at most the
    loss, as the paper's bound requires.

    References
    ----------
    Zhang, Jin, Chen, Bu, He, Efficient online learning for large-scale sparse kernel logistic regression, AAAI 2012:
    algorithm 2, with the bound of theorem 3.

    Examples
    --------
    >>> from klr_bench import MarginKLR
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = MarginKLR(eta=1.9, gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_support_, model.t_
    (True, 73, 1600)
    """

    eta: float | str = parameter(Interval(Real, 0, 2, closed="neither"), StrOptions({BY_RADIUS}), default=1.0)
    R: float = parameter(RADIUS, default=1e3)
    _: KW_ONLY
    average: bool = parameter("boolean", default=True)
    n_epochs: int | None = parameter(COUNT, None, default=None)

    _learns_softmax = True
    _described_by = SeveralPasses
    _loss = "logit"
    _most_passes = 20

    def _update(self):
        return Update(gradient_step_by_margin, [self._step_size()], self.R, softmax_gradient_step_by_length)

    def _refuse(self, t, f):
        eta = self._step_size()
        if eta < 2:
            super()._refuse(t, f)
        message = f"The 'eta' parameter of MarginKLR must be below 2. Got R/sqrt(T) = {eta:g}; use a smaller R."
        raise LearningFailed(message)
