"""The kernel perceptron.

Rosenblatt (1958); Freund and Schapire (1999) for the kernel form.
"""

from __future__ import annotations

import math

from klr_bench.estimators.online.base import OnlineKernelClassifier
from klr_bench.estimators.online.engine import rule


@rule
def step_on_mistake(y, f, u, t, parameters):
    return y * f <= 0.0, 1.0, y


class KernelPerceptron(OnlineKernelClassifier):
    """Adds y k(x, .) at each mistake, y f(x) <= 0.

    Parameters
    ----------
    average, kernel, gamma, degree, coef0, random_state, dtype, n_epochs
        See `OnlineKernelClassifier`, also for the fitted attributes.

    References
    ----------
    Freund and Schapire, Machine Learning 37, 1999.
    """

    _rule = step_on_mistake

    def __init__(
        self,
        *,
        average=False,
        kernel="rbf",
        gamma=None,
        degree=3,
        coef0=1.0,
        random_state=None,
        dtype=None,
        n_epochs=1,
    ):
        super().__init__(average, kernel, gamma, degree, coef0, random_state, dtype, n_epochs)

    def _rule_arguments(self):
        return [], math.inf
