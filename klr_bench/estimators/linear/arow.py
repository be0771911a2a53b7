"""Adaptive regularisation of weights, and its variant with an adaptive regularisation parameter."""

from __future__ import annotations

from klr_bench.estimators.core.parameters import POSITIVE
from klr_bench.estimators.core.progressive import Progressive
from klr_bench.estimators.linear.base import Weighted
from klr_bench.estimators.linear.confidence import ConfidenceLearner
from klr_bench.estimators.linear.engine import rule


@rule
def adaptive(m, v, parameters):
    if m >= 1.0:
        return 0.0, 0.0
    beta = 1.0 / (v + parameters[0])
    return (1.0 - m) * beta, beta


class AROW(Progressive, Weighted, ConfidenceLearner):
    r"""Adaptive regularisation of weights: a confidence-weighted learner that tolerates noise.

    A row with a margin m below 1 gives, with its variance v:

    .. math::

        & \beta = \frac{1}{v + r}, \qquad \alpha = (1 - m) \, \beta \\
        & \mu \leftarrow \mu + \alpha \, y \, \Sigma x, \qquad \Sigma \leftarrow \Sigma - \beta \, \Sigma x (\Sigma x)^T

    so that the inverse of Sigma is I + sum of x x'/r over the updates.  The weight of a row divides r.

    Parameters
    ----------
    r : float, default=1.0
        Regularisation > 0; a larger one makes smaller steps.  The usual grid, that of configs/algorithm, is 2^-5, 2^-4,
        ..., 2^5.  On Covertype cross-validation chose values from 1/16 to 8, and the error is that of r = 1 (references
        of cw_covtype and cw_covtype_toolbox); on the generated rows of cw_epsilon50k it chose 2^-5, the least.
    covariance : {"full", "diagonal"}, default="full"
        "full": time and memory grow with the square of the number of features.  It is stored in float64 for up to 256
        features, otherwise in the precision of X.  "diagonal": they grow with the number of non-zero features, so it is
        the choice for texts.  The comparisons with Tan et al. (2016, table 2) have "full".
    n_epochs : int, default=1
        Number of passes of ``fit`` over the rows, >= 1.  The published comparisons make one.
    memory_limit : float, default=4000.0
        Largest size in MB of a full covariance, > 0; ``fit`` raises an error if it needs more.  The default is enough
        for 22,000 features in float64 and 31,000 in float32.
    class_weight : dict, "balanced" or None, default=None
        Weights >= 0 of the classes, by which those of the rows are multiplied; "balanced" is n_samples / (n_classes
        n_k) for n_k rows of class k, and is for ``fit`` only: ``partial_fit`` does not have all rows.  The published
        comparisons have None.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes in sorted order, in the dtype of y.
    coef_ : ndarray of shape (n_features,), or (n_classes, n_features) for more than two classes, float64
        The mean of the weights: f(x) = coef_'x, without an intercept; append a constant feature if you need one.  More
        than two classes have one f each, against the rest (``estimators_``), and other attributes one entry per class.
    covariance_ : ndarray of shape (n_features, n_features), or (n_features,) if diagonal
        Covariance of the weights, computed when it is read.
    n_updates_ : int
        Number of rows that changed the weights or their covariance.
    n_mistakes_ : int
        Number of rows with y f(x) <= 0 at their own step.
    t_ : int
        Number of rows seen.
    n_features_in_ : int
        Number of features.

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
    r"""`AROW` with a regularisation per row: an update reduces the variance of the margin to 1/b.

    A row with a margin m below 1 and a variance v above 1/b gives the step of `AROW` with

    .. math::

        r = \frac{v}{b v - 1}, \qquad \frac{1}{v + r} = \frac{b v - 1}{b v^2}

    There is no update if v <= 1/b: learning ends as the covariance shrinks.

    Parameters
    ----------
    b : float, default=1.0
        Inverse of the variance after an update, > 0; a larger one makes more and larger steps.  The usual grid, that of
        configs/algorithm, is 2^-4, 2^-3, ..., 2^4.  On Covertype cross-validation chose 8 or 16 (34.2 % error, 37.5 %
        with 1, which is the default of the toolbox LIBOL; reference of cw_covtype), so begin at the upper end.
    covariance, n_epochs, memory_limit
        See `AROW`.

    Attributes
    ----------
    classes_, coef_, covariance_, n_updates_, n_mistakes_, t_, n_features_in_
        See `AROW`.

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

    _parameter_constraints = ConfidenceLearner._parameter_constraints | {"b": [POSITIVE]}

    def __init__(self, b=1.0, *, covariance="full", n_epochs=1, memory_limit=4000.0):
        super().__init__(covariance, n_epochs, memory_limit)
        self.b = b

    def _update(self):
        return narrow, (self.b,)
