"""Confidence-weighted learning: after its step an example is classified correctly with a given probability."""

from __future__ import annotations

import math

from numba import float64
from scipy.special import ndtri
from sklearn.utils._param_validation import Options, StrOptions

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.parameters import POSITIVE
from klr_bench.estimators.linear.base import Weighted
from klr_bench.estimators.linear.confidence import CONFIDENCE, ConfidenceLearner
from klr_bench.estimators.linear.engine import rule


@compiled(float64(float64, float64, float64))
def shrinkage(alpha, v, phi):
    """Return beta = alpha phi / (sqrt(u) + alpha phi v); u is the variance after the update."""
    a = alpha * v * phi
    root = 2.0 * v / (a + math.sqrt(a * a + 4.0 * v))  # sqrt(u) = (-a + sqrt(a^2 + 4 v)) / 2
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
    if m > 0.0:  # the same without cancellation; v phi^2 - m^2 may be negative by rounding
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
    if m > 0.0:  # rewritten as in `confident`
        alpha = 2.0 * (edge - m) * (edge + m) / (root + first)
    else:
        alpha = (root - first) / (2.0 * (n * n + n * v * square))
    return alpha, shrinkage(alpha, v, phi)


@rule
def softly_confident_in_libol(m, v, parameters):
    """As `softly_confident`, but under the root v^2 is 2 v, and the phi^2 next to v is 2 phi."""
    phi, softness = parameters
    if m >= phi * math.sqrt(v):
        return 0.0, 0.0
    square, n = phi * phi, v + softness
    root = phi * math.sqrt(square * m * m * 2.0 * v + 4.0 * n * v * (n + 2.0 * phi * v))
    alpha = max(0.0, (root - m * (2.0 * n + square * v)) / (2.0 * (n * n + n * v * square)))
    return alpha, shrinkage(alpha, v, phi)


class ConfidenceWeighted(ConfidenceLearner):
    r"""Confidence-weighted learning: after its step a row is classified correctly with a given probability.

    The Gaussian over the weights changes as little as possible, by Kullback-Leibler divergence:

    .. math::

        & \min_{\mu, \Sigma} \; D_{KL}(N(\mu, \Sigma) \parallel N(\mu_t, \Sigma_t)) \\
        & \text{such that } y \, \mu^T x \ge \phi \sqrt{x^T \Sigma x}, \qquad \phi = \Phi^{-1}(\text{confidence})

    The step is in closed form: with margin m, variance v, ``psi = 1 + phi^2/2`` and ``xi = 1 + phi^2``, a row with
    ``phi sqrt(v) > m`` gives ``alpha = (-m psi + sqrt(m^2 phi^4/4 + v phi^2 xi)) / (v xi)`` and
    ``beta = alpha phi / (sqrt(u) + alpha phi v)`` with ``u = (-alpha v phi + sqrt(alpha^2 v^2 phi^2 + 4 v))^2 / 4``.
    It insists on every row; where labels are noisy take `SoftConfidenceWeighted` or `AROW`.

    Parameters
    ----------
    confidence : float, default=0.7
        Probability in (0.5, 1).  The usual grid, that of configs/algorithm, is 0.55, 0.6, ..., 0.95; 0.7 is the default
        of the toolbox LIBOL.  On Covertype it matters little: 32.3 % error with cross-validation, which chose 0.95, and
        32.9 % with 0.7 (reference of cw_covtype).
    safeguard : bool, default=True
        Limit what one row adds to the inverse covariance, so that the covariance stays positive definite.  On noisy
        data it shrinks without end; with False, which is the published rule, rounding makes it indefinite, and rows
        whose variance is not positive are skipped: 43.7 % error in place of 32.9 % in the same reference.
    covariance, n_epochs, memory_limit
        See `AROW`.

    Attributes
    ----------
    classes_, coef_, covariance_, n_updates_, n_mistakes_, t_, n_features_in_
        See `AROW`.

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
    _parameter_constraints = ConfidenceLearner._parameter_constraints | {
        "confidence": [CONFIDENCE],
        "safeguard": ["boolean"],
    }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # it insists on each example, also where no plane tells a class apart
        return tags

    def __init__(self, confidence=0.7, safeguard=True, *, covariance="full", n_epochs=1, memory_limit=4000.0):
        super().__init__(covariance, n_epochs, memory_limit)
        self.confidence = confidence
        self.safeguard = safeguard

    def _limit(self, dtype):
        return super()._limit(dtype) if self.safeguard else math.inf

    def _update(self):
        return confident, (ndtri(self.confidence), math.inf)


class SoftConfidenceWeighted(Weighted, ConfidenceLearner):
    r"""Confidence-weighted learning with a loss in place of the constraint: noisy rows have a limited effect.

    .. math::

        & \min_{\mu, \Sigma} \; D_{KL}(N(\mu, \Sigma) \parallel N(\mu_t, \Sigma_t))
        + C \max(0, \phi \sqrt{x^T \Sigma x} - y \, \mu^T x)^q \\
        & \phi = \Phi^{-1}(\text{confidence})

    q is ``variant``.  SCW-I (q = 1): alpha is that of `ConfidenceWeighted`, at most C.  SCW-II (q = 2): with margin m,
    variance v and ``n = v + 1/(2C)``,
    ``alpha = (-(2 m n + phi^2 m v) + phi sqrt(phi^2 m^2 v^2 + 4 n v (n + v phi^2))) / (2 (n^2 + n v phi^2))``.  The
    weight of a row multiplies C.

    Parameters
    ----------
    variant : {1, 2}, default=1
        1 for SCW-I, 2 for SCW-II.  On Covertype SCW-I has the lowest error of all online learners here, 23.1 %, SCW-II
        23.7 % (reference of cw_covtype).
    C : float, default=1.0
        Weight of the loss, > 0.  The usual grid, that of configs/algorithm, is 2^-4, 2^-3, ..., 2^4; on Covertype
        cross-validation chose 1 to 16 for SCW-I and 1/8 to 8 for SCW-II.  C = 1 is the default of the toolbox LIBOL.
    confidence : float, default=0.75
        Probability in (0.5, 1).  The usual grid is 0.55, 0.6, ..., 0.95; on Covertype cross-validation chose 0.8 for
        SCW-I and 0.8 to 0.9 for SCW-II.
    compat : {"libol"} or None, default=None
        "libol": alpha of SCW-II as the toolbox LIBOL 0.3 computes it, which under the root has 2 v in place of v^2 in
        the first term and 2 phi in place of phi^2 in the last bracket.  SCW-I is the same there.  It is for repeating
        published numbers only.
    covariance, n_epochs, memory_limit, class_weight
        See `AROW`.

    Attributes
    ----------
    classes_, coef_, covariance_, n_updates_, n_mistakes_, t_, n_features_in_
        See `AROW`.

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

    _parameter_constraints = (
        ConfidenceLearner._parameter_constraints
        | {
            "confidence": [CONFIDENCE],
            "variant": [Options(int, {1, 2})],
            "C": [POSITIVE],
            "compat": [StrOptions({"libol"}), None],
        }
        | Weighted._parameter_constraints
    )

    def __init__(
        self,
        variant=1,
        C=1.0,
        confidence=0.75,
        *,
        compat=None,
        covariance="full",
        n_epochs=1,
        memory_limit=4000.0,
        class_weight=None,
    ):
        super().__init__(covariance, n_epochs, memory_limit)
        self.class_weight = class_weight
        self.variant = variant
        self.C = C
        self.confidence = confidence
        self.compat = compat

    def _update(self, weights=1.0):
        phi, C = ndtri(self.confidence), self.C * weights
        if self.variant == 1:
            return confident, (phi, C)
        return softly_confident if self.compat is None else softly_confident_in_libol, (phi, 0.5 / C)
