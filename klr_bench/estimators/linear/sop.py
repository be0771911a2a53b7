"""Second-order perceptron, an online classifier that whitens the data."""

from __future__ import annotations

from dataclasses import KW_ONLY

from scipy.linalg import solve
from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.core.parameters import POSITIVE, estimator, fixed, parameter
from klr_bench.estimators.linear.confidence import ConfidenceLearner
from klr_bench.estimators.linear.engine import rule


@rule
def second_order(m, v, parameters):
    """Return the step sizes alpha and beta of the second-order perceptron for one row.

    A mistake adds S x (y - x'S w) / (1 + v) to S w; if only S changes, the term with y is missing.
    """
    (always,) = parameters
    beta = 1.0 / (1.0 + v)
    if m <= 0.0:
        return (1.0 - m) * beta, beta
    return (-m * beta, beta) if always else (0.0, 0.0)


@estimator
class SecondOrderPerceptron(ConfidenceLearner):
    r"""Perceptron on data that are whitened online with the correlation matrix of past rows.

    Use it to compare online linear learners on correlated features.  A row takes time O(d^2) for d features; it has no
    probabilities.

    Parameters
    ----------
    a : float, default=1.0
        Scale > 0 of the initial Sigma = a I.  The experiments use 1 (configs/algorithm/sop.yaml); with a larger value
        the data outweigh the initial Sigma sooner.
    update : {"mistakes", "always"}, default="mistakes"
        When Sigma is updated: on mistakes, as published, or at every row, as in the toolbox that Tan et al. used
        (configs/algorithm/sop.yaml).
    compat : {"libol"} or None, default=None
        "libol" follows the toolbox LIBOL 0.3: Sigma is updated at every row, whatever ``update`` is, and predictions
        use w'x, without Sigma, which does not affect the training.  Use it only to reproduce published results: it has
        48.1 % error on Covertype, 33.9 % without it (reference of cw_covtype_toolbox).

    Notes
    -----
    .. math::

        & \hat{y} = \operatorname{sign}(w^T \Sigma x), \qquad w \leftarrow w + y \, x \text{ on a mistake} \\
        & \Sigma^{-1} = \frac{1}{a} I + \sum_i x_i x_i^T

    The sum is over the rows at which Sigma is updated.  The published form adds x to Sigma before predicting; this
    divides w'Sigma x by 1 + v and never changes its sign.  ``coef_`` is Sigma w, or w with ``compat="libol"``.  It is
    not if a row has a squared norm above the limit of ``covariance_``; scale such features.

    References
    ----------
    Cesa-Bianchi, Conconi, Gentile, "A second-order perceptron algorithm", SIAM J. Comput. 34, 2005, figure 3.1.  Hoi,
    Wang, Zhao, "LIBOL: a library for online learning algorithms", JMLR 15, 2014: the toolbox of ``compat="libol"``.

    Examples
    --------
    >>> from klr_bench import SecondOrderPerceptron
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, 20, class_sep=2.0, n_clusters_per_class=1, random_state=0)
    >>> model = SecondOrderPerceptron().fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_updates_ == model.n_mistakes_
    (True, True)
    """

    _fixed = ("a",)
    covariance: str = fixed("full")
    a: float = parameter(POSITIVE, default=1.0)
    update: str = parameter(StrOptions({"mistakes", "always"}), default="mistakes")
    _: KW_ONLY
    compat: str | None = parameter(StrOptions({"libol"}), None, default=None)

    def _engine(self, X, weights):
        return super()._engine(X, weights, variance=self.a)

    def _update(self):
        return second_order, (float(self.update == "always" or self.compat == "libol"),)

    def _publish(self):
        super()._publish()
        if self.compat == "libol":
            S, Sw = self._state.covariance(), self._state.mean
            self.coef_ = solve(S, Sw, assume_a="pos")
