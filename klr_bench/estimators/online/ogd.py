"""Online gradient descent in the kernel's feature space, without regularization."""

from __future__ import annotations

from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.core.losses import LOSSES, derivative
from klr_bench.estimators.core.parameters import POSITIVE, estimator, parameter
from klr_bench.estimators.online.classifier import OnlineClassifier
from klr_bench.estimators.online.engine import rule
from klr_bench.estimators.online.passes import Update


@rule
def loss_gradient_step(y, f, u, t, parameters):
    loss, eta = parameters
    slope = derivative(int(loss), y, f, 0.0)
    return slope != 0.0, 1.0, -eta * slope


@estimator
class KernelOGD(OnlineClassifier):
    r"""Online gradient descent in the kernel's feature space, with a choice of five losses.

    Use it to learn online with a loss of your choice.  A pass takes one kernel value per row and support vector, whose
    number is not limited.

    Parameters
    ----------
    eta : float, default=0.5
        Step size > 0; the grid of configs/algorithm/ogd.yaml is 0.01, 0.1, 0.5 and 1.
    loss : {"hinge", "logit", "square", "squared_hinge", "smooth_hinge"}, default="hinge"
        max(0, 1 - yf), log(1 + e^-yf), (y - f)^2, max(0, 1 - yf)^2, or the hinge with a parabola for its corner: (1 -
        yf)^2 / 2 where 0 < yf < 1, 1/2 - yf where yf <= 0.  The three hinges leave out examples with yf >= 1 and are
        sparse; logit and square make every example a support vector, and only logit gives probabilities.

    Notes
    -----
    Each example gives a step against the gradient of its loss l; one with l'(y, f(x)) = 0 changes nothing and is not
    stored:

    .. math::

        f \leftarrow f - \eta l'(y, f(x)) k(x, \cdot)

    References
    ----------
    Kivinen, Smola, Williamson, Online learning with kernels, IEEE Transactions on Signal Processing 52, 2004, section
    III, without regularization.  The smooth hinge is that of Rennie and Srebro, IJCAI multidisciplinary workshop on
    advances in preference handling, 2005.

    Examples
    --------
    >>> from klr_bench import KernelOGD
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = KernelOGD(eta=0.5, gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_support_, model.t_
    (True, 42, 200)
    """

    eta: float = parameter(POSITIVE, default=0.5)
    loss: str = parameter(StrOptions({"hinge", "logit", "square", "squared_hinge", "smooth_hinge"}), default="hinge")

    def _update(self):
        return Update(loss_gradient_step, [LOSSES[self.loss], self.eta])
