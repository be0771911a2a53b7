"""Adaptive regularization of weights: AROW with fixed r, and NAROW with r chosen per row."""

from __future__ import annotations

from klr_bench.estimators.core.parameters import POSITIVE, estimator, parameter
from klr_bench.estimators.linear.base import Weighted
from klr_bench.estimators.linear.confidence import ConfidenceLearner
from klr_bench.estimators.linear.engine import rule


@rule
def adaptive(m, v, parameters):
    if m >= 1.0:
        return 0.0, 0.0
    (r,) = parameters
    beta = 1.0 / (v + r)
    return (1.0 - m) * beta, beta


@estimator
class AROW(Weighted, ConfidenceLearner):
    r"""Adaptive regularization of weights: a confidence-weighted classifier for noisy data.

    Use it for one pass over many rows with a linear boundary, if labels are noisy.  A row takes time O(d^2) for d
    features, and with covariance="diagonal", for texts, in proportion to its non-zeros.  It has no probabilities.

    Parameters
    ----------
    r : float, default=1.0
        Regularization > 0; a larger value gives smaller steps.  The usual grid, used in configs/algorithm, is 2^-5,
        2^-4, ..., 2^5.  On Covertype cross-validation chose values from 1/16 to 8, with the same error as r = 1
        (references of cw_covtype and cw_covtype_toolbox); on the generated rows of cw_epsilon50k it chose 2^-5, the
        smallest.

    Notes
    -----
    A row with a margin m below 1 and a variance v changes the mean and the covariance of the weights:

    .. math::

        & \beta = \frac{1}{v + r}, \qquad \alpha = (1 - m) \, \beta \\
        & \mu \leftarrow \mu + \alpha \, y \, \Sigma x, \qquad \Sigma \leftarrow \Sigma - \beta \, \Sigma x (\Sigma x)^T

    so that the inverse of Sigma is I plus the sum of x x'/r over the updates.  The weight of a row divides r.

    References
    ----------
    Crammer, Kulesza, Dredze, "Adaptive regularization of weight vectors", NIPS 2009, figure 1.

    Examples
    --------
    >>> from klr_bench import AROW
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, 20, class_sep=2.0, n_clusters_per_class=1, random_state=0)
    >>> model = AROW(r=1.0).fit(X, y)
    >>> model.score(X, y) > 0.95, model.coef_.shape, model.covariance_.shape
    (True, (20,), (20, 20))
    """

    r: float = parameter(POSITIVE, default=1.0)

    _progressive = True

    def _update(self, weights=1.0):
        return adaptive, (self.r / weights,)


@rule
def narrow(m, v, parameters):
    (b,) = parameters
    if m >= 1.0 or b * v <= 1.0:
        return 0.0, 0.0
    beta = (1.0 - 1.0 / (b * v)) / v  # beta = 1 / (v + r) with r = v / (b v - 1)
    return (1.0 - m) * beta, beta


@estimator
class NAROW(ConfidenceLearner):
    r"""Variant of `AROW` that chooses r for each row so that the variance of its margin is 1/b.

    Use it like `AROW`, at the same cost, if r is hard to choose: b limits the variance of a margin instead.

    Parameters
    ----------
    b : float, default=1.0
        Inverse of the variance after an update, > 0; a larger value gives more and larger steps.  The usual grid, used
        in configs/algorithm, is 2^-4, 2^-3, ..., 2^4.  On Covertype cross-validation chose 8 or 16 (34.2 % error, 37.5
        % with 1, the default of the toolbox LIBOL; reference of cw_covtype), so start at the upper end.

    Notes
    -----
    A row with a margin m below 1 and a variance v above 1/b gives the step of `AROW` with

    .. math::

        r = \frac{v}{b v - 1}, \qquad \frac{1}{v + r} = \frac{b v - 1}{b v^2}

    There is no update if v <= 1/b, so learning stops as the covariance shrinks.

    References
    ----------
    Orabona, Crammer, "New adaptive algorithms for online classification", NIPS 2010, section 5.

    Examples
    --------
    >>> from klr_bench import NAROW
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, 20, class_sep=2.0, n_clusters_per_class=1, random_state=0)
    >>> model = NAROW(b=1.0).fit(X, y)
    >>> model.score(X, y) > 0.95, model.coef_.shape, model.covariance_.shape
    (True, (20,), (20, 20))
    """

    b: float = parameter(POSITIVE, default=1.0)

    _progressive = True

    def _update(self):
        return narrow, (self.b,)
