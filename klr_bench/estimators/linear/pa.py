"""Passive-aggressive learning: the least change of the weights that gives an example a margin of 1.

Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, "Online passive-aggressive algorithms", JMLR 7 (2006).
"""

from __future__ import annotations

import math

from sklearn.utils._param_validation import Options

from klr_bench.estimators.core.binary import POSITIVE
from klr_bench.estimators.linear.base import OnlineLinearClassifier
from klr_bench.estimators.linear.engine import rule


@rule
def passive_aggressive(m, v, parameters):
    bound, softness = parameters
    return max(0.0, min(bound, (1.0 - m) / (v + softness))), 0.0


class PassiveAggressive(OnlineLinearClassifier):
    """w <- w + tau y x with the hinge loss l = max(0, 1 - y w'x); there is no covariance.

    Parameters
    ----------
    variant : {0, 1, 2}, default=0
        PA: tau = l / ||x||^2.  PA-I: at most C.  PA-II: tau = l / (||x||^2 + 1/(2C)).
    C : float, default=1.0
        Aggressiveness, of PA-I and PA-II.
    n_epochs
        See `OnlineLinearClassifier`, also for the fitted attributes.

    References
    ----------
    Crammer et al. (2006), figure 1.
    """

    _parameter_constraints = OnlineLinearClassifier._parameter_constraints | {
        "variant": [Options(int, {0, 1, 2})],
        "C": [POSITIVE],
    }

    def __init__(self, variant=0, C=1.0, *, n_epochs=1):
        super().__init__(n_epochs)
        self.variant = variant
        self.C = C

    def _update(self):
        bound = self.C if self.variant == 1 else math.inf
        return passive_aggressive, (bound, 0.5 / self.C if self.variant == 2 else 0.0)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = self.variant == 0  # one noisy example can undo it
        return tags
