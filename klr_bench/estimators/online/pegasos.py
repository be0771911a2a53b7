"""Kernel Pegasos: stochastic subgradient descent on the SVM objective."""

from __future__ import annotations

import math

from klr_bench.estimators.core.parameters import POSITIVE, estimator, parameter
from klr_bench.estimators.online.classifier import OnlineClassifier
from klr_bench.estimators.online.engine import rule
from klr_bench.estimators.online.passes import Update


@rule
def hinge_step(y, f, u, t, parameters):
    (lam,) = parameters
    shrink = 1.0 - 1.0 / t if t > 1 else 1.0  # f_1 = 0 needs no shrinking
    return y * f < 1.0, shrink, y / (lam * t)


@estimator
class KernelPegasos(OnlineClassifier):
    r"""Kernel Pegasos: stochastic subgradient descent on the objective of the SVM.

    Use it for an SVM from a single pass or a few.  A pass takes one kernel value per row and support vector, whose
    number is not limited; it has no probabilities.

    Parameters
    ----------
    lam : float, default=1e-4
        Regularization lambda > 0; t is not reset between epochs or calls of `partial_fit`.  Zhang et al., ICML 2013,
        choose it among 1e-10, 1e-9, ..., 0.1 by cross-validation; their numbers of support vectors agree with 1e-4 on
        MAGIC and Adult, and with 1e-5 on Covertype.
    project : bool, default=True
        Project into the ball, which contains the solution if the mean weight of the rows is at most 1.  Later versions
        of Pegasos leave it out.
    average : bool, default=False
        Predict with the average of the f_t; otherwise with the last one, whose accuracy is nearer to that of Zhang et
        al., ICML 2013, who do not name theirs.

    Notes
    -----
    The objective is

    .. math::

        \frac{\lambda}{2} \lVert f \rVert^2 + \frac{1}{T} \sum_{t=1}^T \max(0, 1 - y_t f(x_t))

    and the step size 1 / (lam t): at step t, f <- (1 - 1/t) f, plus y / (lam t) k(x, .) if y f(x) < 1; then f is
    projected into the ball of radius 1 / sqrt(lam).

    References
    ----------
    Shalev-Shwartz, Singer, Srebro, Pegasos: primal estimated sub-gradient solver for SVM, ICML 2007, figure 1.

    Examples
    --------
    >>> from klr_bench import KernelPegasos
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = KernelPegasos(lam=0.01, gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_support_, model.t_
    (True, 40, 200)
    """

    lam: float = parameter(POSITIVE, default=1e-4)
    project: bool = parameter("boolean", default=True)

    def _update(self):
        return Update(hinge_step, [self.lam], 1.0 / math.sqrt(self.lam) if self.project else math.inf)
