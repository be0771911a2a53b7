"""Confidence-weighted learning: after its step an example is classified correctly with a given probability.

The probability is over the distribution of the weights.

Crammer, Dredze, Pereira, "Exact convex confidence-weighted learning", NIPS 2008 (the standard-deviation form).
Wang, Zhao, Hoi, "Exact soft confidence-weighted learning", ICML 2012.
"""

from __future__ import annotations

import math

from numba import float64
from scipy.special import ndtri
from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.parameters import POSITIVE, Choice
from klr_bench.estimators.linear.base import CONFIDENCE, ConfidenceLearner
from klr_bench.estimators.linear.engine import rule
from klr_bench.estimators.linear.weighted import Weighted


@compiled(float64(float64, float64, float64))
def shrinkage(alpha, v, phi):
    """Return beta = alpha phi / (sqrt(u) + alpha phi v), where u is the variance of the margin after the update."""
    a = alpha * v * phi
    root = 2.0 * v / (a + math.sqrt(a * a + 4.0 * v))  # sqrt(u) = (-a + sqrt(a^2 + 4 v)) / 2
    return alpha * phi / (root + alpha * phi * v)


@compiled(float64(float64, float64, float64))
def confident_step(m, v, phi):
    """Return alpha of CW, for phi sqrt(v) > m."""
    square = phi * phi
    psi, xi = 1.0 + 0.5 * square, 1.0 + square
    root = math.sqrt(0.25 * m * m * square * square + v * square * xi)
    if m > 0.0:  # (-m psi + root) / (v xi), rewritten without the difference of nearly equal numbers
        return (v * square - m * m) / (v * (root + m * psi))
    return (-m * psi + root) / (v * xi)


@rule
def confident(m, v, parameters):
    phi, bound = parameters
    if m >= phi * math.sqrt(v):
        return 0.0, 0.0
    alpha = min(bound, confident_step(m, v, phi))
    return alpha, shrinkage(alpha, v, phi)


@rule
def softly_confident(m, v, parameters):
    phi, softness = parameters
    if m >= phi * math.sqrt(v):
        return 0.0, 0.0
    square, n = phi * phi, v + softness
    root = phi * math.sqrt(square * m * m * v * v + 4.0 * n * v * (n + v * square))
    first = m * (2.0 * n + square * v)
    if m > 0.0:  # rewritten as in confident_step
        alpha = 2.0 * (v * square - m * m) / (root + first)
    else:
        alpha = (root - first) / (2.0 * (n * n + n * v * square))
    return alpha, shrinkage(alpha, v, phi)


@rule
def softly_confident_in_libol(m, v, parameters):
    """As `softly_confident`, but under the root v^2 is 2 v, and the phi^2 beside v is 2 phi."""
    phi, softness = parameters
    if m >= phi * math.sqrt(v):
        return 0.0, 0.0
    square, n = phi * phi, v + softness
    root = phi * math.sqrt(square * m * m * 2.0 * v + 4.0 * n * v * (n + 2.0 * phi * v))
    alpha = max(0.0, (root - m * (2.0 * n + square * v)) / (2.0 * (n * n + n * v * square)))
    return alpha, shrinkage(alpha, v, phi)


class ConfidenceWeighted(ConfidenceLearner):
    """Changes N(mean, S) as little as possible, by Kullback-Leibler divergence, so that P(y w'x >= 0) >= confidence.

    With phi = Phi^-1(confidence), psi = 1 + phi^2/2, xi = 1 + phi^2, an example with phi sqrt(v) > m gives

        alpha = (-m psi + sqrt(m^2 phi^4/4 + v phi^2 xi)) / (v xi)
        beta = alpha phi / (sqrt(u) + alpha phi v),   u = (-alpha v phi + sqrt(alpha^2 v^2 phi^2 + 4 v))^2 / 4

    Parameters
    ----------
    confidence : float, default=0.7
        Probability in (0.5, 1).
    safeguard : bool, default=True
        Limit what one example adds to S^-1, so that S stays positive definite.  On noisy data S shrinks without end;
        without the safeguard rounding makes it indefinite, and examples whose variance is not positive are skipped.
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
    Crammer, Dredze, Pereira, NIPS 2008, figure 1, and JMLR 13, 2012.

    Examples
    --------
    >>> from klr_bench import ConfidenceWeighted
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, 20, class_sep=2.0, n_clusters_per_class=1, random_state=0)
    >>> model = ConfidenceWeighted(confidence=0.7).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> model.coef_.shape, model.covariance_.shape
    ((20,), (20, 20))
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
    """CW with a loss max(0, phi sqrt(v) - m) in place of the constraint, so that noisy examples have a limited effect.

    SCW-I: alpha is that of CW, at most C.  SCW-II squares the loss; with n = v + 1/(2C)

        alpha = (-(2 m n + phi^2 m v) + phi sqrt(phi^2 m^2 v^2 + 4 n v (n + v phi^2))) / (2 (n^2 + n v phi^2))

    The weight of a row multiplies C.

    Parameters
    ----------
    variant : {1, 2}, default=1
        1 for SCW-I, 2 for SCW-II.
    C : float, default=1.0
        Weight of the loss, > 0.
    confidence : float, default=0.75
        Probability in (0.5, 1).
    compat : {"libol"} or None, default=None
        "libol": alpha of SCW-II as the toolbox LIBOL 0.3 computes it, which under the root has 2 v in place of v^2 in
        the first term and 2 phi in place of phi^2 in the last bracket.  SCW-I is the same there.
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
    Wang, Zhao, Hoi, ICML 2012, propositions 1 and 2.
    Hoi, Wang, Zhao, "LIBOL: a library for online learning algorithms", JMLR 15, 2014: the toolbox of `compat="libol"`.

    Examples
    --------
    >>> from klr_bench import SoftConfidenceWeighted
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, 20, class_sep=2.0, n_clusters_per_class=1, random_state=0)
    >>> model = SoftConfidenceWeighted(covariance="diagonal").fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> model.coef_.shape, model.covariance_.shape
    ((20,), (20,))
    """

    _parameter_constraints = (
        ConfidenceLearner._parameter_constraints
        | {
            "confidence": [CONFIDENCE],
            "variant": [Choice(int, {1, 2})],
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
