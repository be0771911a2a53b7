"""Confidence-weighted classifiers: CW (hard constraint), SCW-I and SCW-II (soft constraint)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY

from numba import float64
from scipy.special import ndtri
from sklearn.utils._param_validation import Options, StrOptions

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.parameters import POSITIVE, estimator, parameter
from klr_bench.estimators.linear.base import Weighted
from klr_bench.estimators.linear.confidence import CONFIDENCE, ConfidenceLearner
from klr_bench.estimators.linear.engine import LIMITS, rule


@compiled(float64(float64, float64, float64))
def shrinkage(alpha, v, phi):
    """Return the step size beta of the covariance, given the step size alpha of the mean.

    It is alpha phi / (sqrt(u) + alpha phi v), with the variance of the margin v before and u after the update.
    """
    a = alpha * v * phi
    root = 2.0 * v / (a + math.sqrt(a * a + 4.0 * v))  # sqrt(u) = (-a + sqrt(a^2 + 4 v)) / 2, avoiding cancellation
    return alpha * phi / (root + alpha * phi * v)


@rule
def confident(m, v, parameters):
    phi, bound = parameters
    edge = phi * math.sqrt(v)
    if m >= edge:
        return 0.0, 0.0
    square = phi * phi
    psi, xi = 1.0 + 0.5 * square, 1.0 + square
    root = math.sqrt(0.25 * m * m * square * square + v * square * xi)
    alpha = (-m * psi + root) / (v * xi)
    if m > 0.0:  # the same value, computed without cancellation
        alpha = (edge - m) * (edge + m) / (v * (root + m * psi))
    alpha = min(bound, alpha)
    return alpha, shrinkage(alpha, v, phi)


@rule
def softly_confident(m, v, parameters):
    phi, softness = parameters
    edge = phi * math.sqrt(v)
    if m >= edge:
        return 0.0, 0.0
    square, n = phi * phi, v + softness
    root = phi * math.sqrt(square * m * m * v * v + 4.0 * n * v * (n + v * square))
    first = m * (2.0 * n + square * v)
    if m > 0.0:  # an equivalent formula that avoids cancellation, as in `confident`
        alpha = 2.0 * (edge - m) * (edge + m) / (root + first)
    else:
        alpha = (root - first) / (2.0 * (n * n + n * v * square))
    return alpha, shrinkage(alpha, v, phi)


@rule
def softly_confident_in_libol(m, v, parameters):
    """Return the step sizes of SCW-II as computed by the toolbox LIBOL.

    The expression under the root has 2 v instead of v^2 in the first term, and 2 phi instead of phi^2 in the last.
    """
    phi, softness = parameters
    if m >= phi * math.sqrt(v):
        return 0.0, 0.0
    square, n = phi * phi, v + softness
    root = phi * math.sqrt(square * m * m * 2.0 * v + 4.0 * n * v * (n + 2.0 * phi * v))
    alpha = max(0.0, (root - m * (2.0 * n + square * v)) / (2.0 * (n * n + n * v * square)))
    return alpha, shrinkage(alpha, v, phi)


@estimator
class ConfidenceWeighted(ConfidenceLearner):
    r"""Online confidence-weighted classifier with a Gaussian distribution over the weights.

    Use it for one pass over rows with clean labels and a linear boundary.  A row takes time O(d^2) for d features, and
    with covariance="diagonal", for texts, in proportion to its non-zeros.  It has no probabilities.

    Parameters
    ----------
    confidence : float, default=0.7
        Probability in (0.5, 1) of a correct classification.  The usual grid, used in configs/algorithm, is 0.55, 0.6,
        ..., 0.95; 0.7 is the default of the toolbox LIBOL.  On Covertype it has little effect: 32.3 % error with
        cross-validation, which chose 0.95, and 32.9 % with 0.7 (reference of cw_covtype).
    safeguard : bool, default=True
        Whether to limit how much one row adds to the inverse covariance, so that the covariance stays positive
        definite.  On noisy data it shrinks without limit.  With False, the published rule, rounding makes it
        indefinite, and rows whose variance is not positive are skipped: 44.4 % error instead of 32.9 % in the same
        reference.

    Notes
    -----
    An update changes the Gaussian over the weights as little as possible in Kullback-Leibler divergence, so that the
    row is classified correctly with the probability ``confidence``:

    .. math::

        & \min_{\mu, \Sigma} \; D_{KL}(N(\mu, \Sigma) \parallel N(\mu_t, \Sigma_t)) \\
        & \text{such that } y \, \mu^T x \ge \phi \sqrt{x^T \Sigma x}, \qquad \phi = \Phi^{-1}(\text{confidence})

    The step has a closed form: with margin m, variance v, ``psi = 1 + phi^2/2`` and ``xi = 1 + phi^2``, a row with
    ``phi sqrt(v) > m`` gives ``alpha = (-m psi + sqrt(m^2 phi^4/4 + v phi^2 xi)) / (v xi)`` and
    ``beta = alpha phi / (sqrt(u) + alpha phi v)`` with ``u = (-alpha v phi + sqrt(alpha^2 v^2 phi^2 + 4 v))^2 / 4``.
    Every row is enforced, so `SoftConfidenceWeighted` or `AROW` are better for noisy labels.

    References
    ----------
    Crammer, Dredze, Pereira, "Exact convex confidence-weighted learning", NIPS 2008, figure 1, and JMLR 13, 2012.
    Equations 1 and 2 of Tan et al., AAAI 2016, are the problem.

    Examples
    --------
    >>> from klr_bench import ConfidenceWeighted
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, 20, class_sep=2.0, n_clusters_per_class=1, random_state=0)
    >>> model = ConfidenceWeighted(confidence=0.7).fit(X, y)
    >>> model.score(X, y) > 0.9, model.coef_.shape, model.covariance_.shape
    (True, (20,), (20, 20))
    """

    _fixed = (*ConfidenceLearner._fixed, "safeguard")
    confidence: float = parameter(CONFIDENCE, default=0.7)
    safeguard: bool = parameter("boolean", default=True)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # each update fits its row exactly, so noisy labels cause large errors
        return tags

    def _engine(self, X, weights):
        limits = LIMITS if self.safeguard else dict.fromkeys(LIMITS, math.inf)
        return super()._engine(X, weights, limits=limits)

    def _update(self):
        return confident, (ndtri(self.confidence), math.inf)


@estimator
class SoftConfidenceWeighted(Weighted, ConfidenceLearner):
    r"""Confidence-weighted classifier with a soft constraint, which limits the effect of noise.

    Use it for one pass over many rows with a linear boundary; of the linear learners here it is the one to try first.
    A row takes time O(d^2) for d features, and with covariance="diagonal", for texts, in proportion to its non-zeros.
    It has no probabilities.

    Parameters
    ----------
    variant : {1, 2}, default=1
        1 for SCW-I, 2 for SCW-II.  On Covertype SCW-I has the lowest error of all online linear classifiers here,
        23.1 %, and SCW-II 23.7 % (reference of cw_covtype).
    C : float, default=1.0
        Weight of the loss, > 0.  The usual grid, used in configs/algorithm, is 2^-4, 2^-3, ..., 2^4; on Covertype
        cross-validation chose 1 to 16 for SCW-I and 1/8 to 8 for SCW-II.  C = 1 is the default of the toolbox LIBOL.
    confidence : float, default=0.75
        Probability in (0.5, 1) of a correct classification with zero loss.  The usual grid is 0.55, 0.6, ..., 0.95; on
        Covertype cross-validation chose 0.8 for SCW-I and 0.8 to 0.9 for SCW-II.
    compat : {"libol"} or None, default=None
        "libol" computes alpha of SCW-II as the toolbox LIBOL 0.3 does, with 2 v instead of v^2 in the first term under
        the root, and 2 phi instead of phi^2 in the last bracket; SCW-I does not change.  Use it only to reproduce
        published results.

    Notes
    -----
    It replaces the constraint of `ConfidenceWeighted` by a loss:

    .. math::

        & \min_{\mu, \Sigma} \; D_{KL}(N(\mu, \Sigma) \parallel N(\mu_t, \Sigma_t))
        + C \max(0, \phi \sqrt{x^T \Sigma x} - y \, \mu^T x)^q \\
        & \phi = \Phi^{-1}(\text{confidence})

    q is the parameter ``variant``.  SCW-I (q = 1): alpha is that of `ConfidenceWeighted`, at most C.  SCW-II (q = 2):
    with margin m, variance v and ``n = v + 1/(2C)``, ``alpha = (-(2 m n + phi^2 m v) + phi sqrt(phi^2 m^2 v^2 + 4 n v
    (n + v phi^2))) / (2 (n^2 + n v phi^2))``.  The weight of a row multiplies C.

    References
    ----------
    Wang, Zhao, Hoi, "Exact soft confidence-weighted learning", ICML 2012, propositions 1 and 2.  Hoi, Wang, Zhao,
    "LIBOL: a library for online learning algorithms", JMLR 15, 2014: the toolbox of ``compat="libol"``.

    Examples
    --------
    >>> from klr_bench import SoftConfidenceWeighted
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, 20, class_sep=2.0, n_clusters_per_class=1, random_state=0)
    >>> model = SoftConfidenceWeighted(covariance="diagonal").fit(X, y)
    >>> model.score(X, y) > 0.9, model.coef_.shape, model.covariance_.shape
    (True, (20,), (20,))
    """

    variant: int = parameter(Options(int, {1, 2}), default=1)
    C: float = parameter(POSITIVE, default=1.0)
    confidence: float = parameter(CONFIDENCE, default=0.75)
    _: KW_ONLY
    compat: str | None = parameter(StrOptions({"libol"}), None, default=None)

    def _update(self, weights=1.0):
        phi, C = ndtri(self.confidence), self.C * weights
        if self.variant == 1:
            return confident, (phi, C)
        return softly_confident if self.compat is None else softly_confident_in_libol, (phi, 0.5 / C)
