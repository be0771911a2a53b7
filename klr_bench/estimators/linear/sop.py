"""The second-order perceptron: the perceptron on data that are whitened as they come.

Cesa-Bianchi, Conconi, Gentile, "A second-order perceptron algorithm", SIAM J. Comput. 34 (2005).
"""

from __future__ import annotations

from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.core.binary import POSITIVE
from klr_bench.estimators.linear.base import ConfidenceLearner
from klr_bench.estimators.linear.engine import rule


@rule
def second_order(m, v, parameters):
    """The step of coef_ = S w: (S w)_new = S w + S x (y - x'S w) / (1 + v) where w changes, without the y where not."""
    beta = 1.0 / (1.0 + v)
    if m <= 0.0:
        return (1.0 - m) * beta, beta
    return (-m * beta, beta) if parameters[0] else (0.0, 0.0)


class SecondOrderPerceptron(ConfidenceLearner):
    """Predicts sign(w'Sx) with the perceptron's w; on a mistake w += y x.  S^-1 = I/a + sum of x x' over the updates.

    That x itself should be in S before it is classified divides w'Sx by 1 + v, and changes no sign.  `coef_` is S w.

    Parameters
    ----------
    a : float, default=1.0
        S is a I at first, a > 0.
    update : {"mistakes", "always"}, default="mistakes"
        When S is updated: on mistakes, as published, or at every example, as in LIBOL.
    covariance, n_epochs, memory_limit
        See `ConfidenceLearner`, also for the fitted attributes.

    References
    ----------
    Cesa-Bianchi, Conconi, Gentile (2005), figure 3.1.
    """

    _parameter_constraints = ConfidenceLearner._parameter_constraints | {
        "a": [POSITIVE],
        "update": [StrOptions({"mistakes", "always"})],
    }

    def __init__(self, a=1.0, update="mistakes", *, covariance="full", n_epochs=1, memory_limit=4000.0):
        super().__init__(covariance, n_epochs, memory_limit)
        self.a = a
        self.update = update

    def _first_variance(self):
        return self.a

    def _update(self):
        return second_order, (float(self.update == "always"),)
