"""Kernel perceptron, an online learner that updates only when it makes a mistake."""

from __future__ import annotations

from klr_bench.estimators.core.parameters import estimator
from klr_bench.estimators.online.classifier import OnlineClassifier
from klr_bench.estimators.online.engine import rule
from klr_bench.estimators.online.passes import Update


@rule
def step_on_mistake(y, f, u, t, parameters):
    return y * f <= 0.0, 1.0, y


@estimator
class KernelPerceptron(OnlineClassifier):
    r"""Kernel perceptron, which makes each misclassified example a support vector.

    Use it as the simplest online baseline: it has no settings beside the kernel, few support vectors, and no
    probabilities.

    Notes
    -----
    At an example with y f(x) <= 0, and only there,

    .. math::

        f \leftarrow f + y k(x, \cdot)

    There is no step size: a factor would change f and no decision.

    References
    ----------
    Freund and Schapire, Large margin classification using the perceptron algorithm, Machine Learning 37, 1999, section
    3 for the kernel; Rosenblatt, Psychological Review 65, 1958.

    Examples
    --------
    >>> from klr_bench import KernelPerceptron
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = KernelPerceptron(gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_support_ == model.n_mistakes_ == 9
    (True, True)
    """

    def _update(self):
        return Update(step_on_mistake)
