"""Adaptive regularisation of weights, and its variant with an adaptive regularisation parameter.

Crammer, Kulesza, Dredze, "Adaptive regularization of weight vectors", NIPS 2009.
Orabona, Crammer, "New adaptive algorithms for online classification", NIPS 2010.
"""

from __future__ import annotations

from klr_bench.estimators.core.parameters import POSITIVE
from klr_bench.estimators.core.progressive import Progressive
from klr_bench.estimators.linear.base import ConfidenceLearner
from klr_bench.estimators.linear.engine import rule
from klr_bench.estimators.linear.weighted import Weighted


@rule
def adaptive(m, v, parameters):
    if m >= 1.0:
        return 0.0, 0.0
    beta = 1.0 / (v + parameters[0])
    return (1.0 - m) * beta, beta


class AROW(Progressive, Weighted, ConfidenceLearner):
    """Adaptive regularisation of weights: if m < 1, beta = 1/(v + r) and alpha = (1 - m) beta, with v = x'Sx.

    m is the margin y mean'x; mean += alpha y S x and S -= beta (S x)(S x)', so that S^-1 = I + sum of x x'/r over the
    updates.  The weight of a row divides r.

    Parameters
    ----------
    r : float, default=1.0
        Regularisation > 0; a larger one makes smaller steps.
    covariance : {"full", "diagonal"}, default="full"
        What is kept of the covariance; see `ConfidenceLearner`.
    n_epochs, memory_limit
        See `ConfidenceLearner`.
    class_weight
        See `Weighted`.

    Attributes
    ----------
    classes_, coef_, covariance_, n_updates_, n_mistakes_, t_, n_features_in_
        See `ConfidenceLearner`.

    References
    ----------
    Crammer, Kulesza, Dredze, NIPS 2009, figure 1.

    Examples
    --------
    >>> from klr_bench import AROW
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, 20, class_sep=2.0, n_clusters_per_class=1, random_state=0)
    >>> model = AROW(r=1.0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> model.coef_.shape, model.covariance_.shape
    ((20,), (20, 20))
    """

    _parameter_constraints = (
        ConfidenceLearner._parameter_constraints | Weighted._parameter_constraints | {"r": [POSITIVE]}
    )

    def __init__(self, r=1.0, *, covariance="full", n_epochs=1, memory_limit=4000.0, class_weight=None):
        super().__init__(covariance, n_epochs, memory_limit)
        self.class_weight = class_weight
        self.r = r

    def _update(self, weights=1.0):
        return adaptive, (self.r / weights,)


@rule
def narrow(m, v, parameters):
    b = parameters[0]
    if m >= 1.0 or b * v <= 1.0:
        return 0.0, 0.0
    beta = (b * v - 1.0) / (b * v * v)  # 1 / (v + r), r = v / (b v - 1)
    return (1.0 - m) * beta, beta


class NAROW(Progressive, ConfidenceLearner):
    """AROW with r = v/(b v - 1) at each example: an update reduces the variance v of the margin to 1/b.

    There is no update if v <= 1/b.

    Parameters
    ----------
    b : float, default=1.0
        Inverse of the variance after an update, > 0.
    covariance : {"full", "diagonal"}, default="full"
        What is kept of the covariance; see `ConfidenceLearner`.
    n_epochs, memory_limit
        See `ConfidenceLearner`.

    Attributes
    ----------
    classes_, coef_, covariance_, n_updates_, n_mistakes_, t_, n_features_in_
        See `ConfidenceLearner`.

    References
    ----------
    Orabona, Crammer, NIPS 2010, section 5.

    Examples
    --------
    >>> from klr_bench import NAROW
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, 20, class_sep=2.0, n_clusters_per_class=1, random_state=0)
    >>> model = NAROW(b=1.0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> model.coef_.shape, model.covariance_.shape
    ((20,), (20, 20))
    """

    _parameter_constraints = ConfidenceLearner._parameter_constraints | {"b": [POSITIVE]}

    def __init__(self, b=1.0, *, covariance="full", n_epochs=1, memory_limit=4000.0):
        super().__init__(covariance, n_epochs, memory_limit)
        self.b = b

    def _update(self):
        return narrow, (self.b,)
