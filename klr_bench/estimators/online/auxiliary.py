"""Online kernel logistic regression that uses an upper bound of the loss: `AuxiliaryKLR`."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from numbers import Real

from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.core.losses import sigmoid, softplus
from klr_bench.estimators.core.parameters import COUNT, NUMBER, POSITIVE, Interval, estimator, parameter
from klr_bench.estimators.online.classifier import BY_RADIUS, RADIUS, OnlineClassifier, SeveralPasses
from klr_bench.estimators.online.engine import rule
from klr_bench.estimators.online.passes import Update
from klr_bench.estimators.online.softmax import rule_of_many

H = {"log_gamma": 0, "log_one_plus_gamma": 1, "hard_cutoff": 2}
"""Codes of the auxiliary functions in the compiled rule."""

LOG_GAMMA, LOG_ONE_PLUS_GAMMA, HARD_CUTOFF = H.values()


@rule
def step_on_auxiliary(y, f, u, t, parameters):
    eta, h, log_gamma, delta = parameters
    z = y * f
    if h == HARD_CUTOFF:
        return z <= delta, 1.0, eta * y * sigmoid(-z)
    loss = softplus(-z)
    if h == LOG_GAMMA:  # the slope is 1 / (1 + gamma e^z)
        bound = log_gamma + softplus(-z - log_gamma)
        slope = sigmoid(-z - log_gamma)
    else:  # the slope is gamma / (gamma + e^z)
        bound = softplus(log_gamma - z)
        slope = sigmoid(log_gamma - z)
    chance = loss / bound if loss < bound else 1.0  # with gamma = 1 the loss equals its bound
    if loss == 0.0 and h == LOG_ONE_PLUS_GAMMA:
        chance = math.exp(-log_gamma)  # the limit for z to infinity, where both underflow
    return u < chance, 1.0, eta * y * slope


@rule_of_many
def softmax_step_on_auxiliary(z, r, u, parameters):
    insert, _, c = step_on_auxiliary(1.0, z, u, 0, parameters)
    return insert, c


@estimator
class AuxiliaryKLR(OnlineClassifier):
    r"""Online kernel logistic regression that updates with probability loss / upper bound.

    Use it for an online model with fewer support vectors than `NonConservativeKLR` and a choice of how fast their
    number grows.  A pass takes one kernel value per row and support vector.  Scale the features first.

    Parameters
    ----------
    eta : float or "R/sqrt(T)", default=3.0
        Step size > 0; T is the number of rows of the first call.  Zhang et al., AAAI 2012, compare "R/sqrt(T)", 0.01,
        0.1 and 1 in one pass; 3 with several passes was chosen for log loss, see docs/methods/estimators.md.
    h : {"log_gamma", "log_one_plus_gamma", "hard_cutoff"}, default="log_gamma"
        The upper bound of the loss.  Zhang et al., AAAI 2012, table 2, have the first.
    aux_gamma : float, default=1.1
        gamma >= 1 of the first two h; a larger one gives fewer support vectors.  2 agrees with the numbers of ICML
        2013, table 3.  From 2 on, confident rows are hardly ever learned from, which harms the probabilities.
    aux_delta : float, default=1.0
        delta of the third h; a smaller one gives fewer support vectors.  configs/experiment/oskl_losses_magic.yaml has
        1.

    Notes
    -----
    The auxiliary function h is an upper bound of the loss l, and the update probability is l(z) / h(z).

    The steps are along the gradient of h.  With z = y f(x), l(z) is log(1 + e^-z), and h is one of three upper bounds:

    - "log_gamma": log(gamma + e^-z);
    - "log_one_plus_gamma": log(1 + gamma e^-z);
    - "hard_cutoff": max(l(z), l(delta)), which updates if and only if z <= delta.

    An example that is drawn gives

    .. math::

        f \leftarrow \operatorname{project}_R( f - \eta h'(z) y k(x, \cdot) ),
        \quad p = \frac{l(z)}{h(z)}

    With gamma = 1 the first two are `NonConservativeKLR`.  With more than two classes z is the log-odds of the right
    class: the softmax loss is l(z), and h(z), as a function of f, is convex and never below it, as the paper's bound
    requires.

    References
    ----------
    Zhang, Jin, Chen, Bu, He, Efficient online learning for large-scale sparse kernel logistic regression, AAAI 2012:
    algorithm 3, with the bound of theorem 4.

    Examples
    --------
    >>> from klr_bench import AuxiliaryKLR
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = AuxiliaryKLR(h="hard_cutoff", aux_delta=0.5, gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_support_, model.t_
    (True, 25, 1400)
    """

    eta: float | str = parameter(POSITIVE, StrOptions({BY_RADIUS}), default=3.0)
    R: float = parameter(RADIUS, default=1e3)
    h: str = parameter(StrOptions(set(H)), default="log_gamma")
    aux_gamma: float = parameter(Interval(Real, 1, None, closed="left"), default=1.1)
    aux_delta: float = parameter(NUMBER, default=1.0)
    _: KW_ONLY
    average: bool = parameter("boolean", default=True)
    n_epochs: int | None = parameter(COUNT, None, default=None)

    _learns_softmax = True
    _described_by = SeveralPasses
    _loss = "logit"

    def _update(self):
        parameters = [self._step_size(), H[self.h], math.log(self.aux_gamma), self.aux_delta]
        return Update(step_on_auxiliary, parameters, self.R, softmax_step_on_auxiliary)
