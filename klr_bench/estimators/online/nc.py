"""Non-conservative (NC) online kernel logistic regression, which updates at every example."""

from __future__ import annotations

from dataclasses import KW_ONLY

from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.core.losses import sigmoid
from klr_bench.estimators.core.parameters import COUNT, POSITIVE, estimator, parameter
from klr_bench.estimators.online.classifier import BY_RADIUS, RADIUS, OnlineClassifier, SeveralPasses
from klr_bench.estimators.online.engine import rule
from klr_bench.estimators.online.passes import Update
from klr_bench.estimators.online.softmax import rule_of_many


@rule
def gradient_step(y, f, u, t, parameters):
    (eta,) = parameters
    return True, 1.0, eta * y * sigmoid(-y * f)


@rule_of_many
def softmax_gradient_step(z, r, u, parameters):
    (eta,) = parameters
    return True, eta * sigmoid(-z)


@estimator
class NonConservativeKLR(OnlineClassifier):
    r"""Online kernel logistic regression that makes every example a support vector (NC).

    Use it as the reference for sparse learners, which it exceeds in the number of support vectors: all rows.  A pass
    takes time O(n^2 d).

    Parameters
    ----------
    eta : float or "R/sqrt(T)", default=2.0
        Step size > 0; T is the number of rows of the first call.  Zhang et al., AAAI 2012, compare "R/sqrt(T)", 0.01,
        0.1 and 1 in one pass; 2 with several passes was chosen for log loss, see docs/methods/estimators.md.

    Notes
    -----
    This is the reference for the sparse learners, called "Baseline" by Zhang et al., ICML 2013.  Each example,
    with z = y f(x), gives a gradient step and a projection into the ball of radius R:

    .. math::

        f \leftarrow \operatorname{project}_R( f + \eta y (1 - \sigma(z)) k(x, \cdot) ),
        \quad \sigma(z) = \frac{1}{1 + e^{-z}}

    With more than two classes it is the gradient step on the softmax loss.

    References
    ----------
    Zhang, Jin, Chen, Bu, He, Efficient online learning for large-scale sparse kernel logistic regression, AAAI 2012:
    algorithm 1, with the bounds of theorems 1 and 2.

    Examples
    --------
    >>> from klr_bench import NonConservativeKLR
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = NonConservativeKLR(gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.predict_proba(X).shape, model.n_support_
    (True, (200, 2), 200)
    """

    eta: float | str = parameter(POSITIVE, StrOptions({BY_RADIUS}), default=2.0)
    R: float = parameter(RADIUS, default=1e3)
    _: KW_ONLY
    average: bool = parameter("boolean", default=True)
    n_epochs: int | None = parameter(COUNT, None, default=None)

    _learns_softmax = True
    _described_by = SeveralPasses
    _loss = "logit"

    def _update(self):
        return Update(gradient_step, [self._step_size()], self.R, softmax_gradient_step)
