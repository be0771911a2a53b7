"""Projectron and Projectron++: perceptrons that project updates onto the support vectors."""

from __future__ import annotations

from klr_bench.estimators.budget.base import BudgetClassifier
from klr_bench.estimators.budget.projectron_state import ProjectronState
from klr_bench.estimators.core.kernels import kernel_of
from klr_bench.estimators.core.parameters import POSITIVE, estimator, parameter


@estimator
class Projectron(BudgetClassifier):
    r"""Perceptron that projects updates onto its support vectors once the budget is full.

    Use it for a mistake-driven learner with a budget that loses little at a full budget.  Each update then takes time
    of the order of budget^2.

    Parameters
    ----------
    budget : int, default=100
        Largest number of support vectors, >= 1, of the last classifier and of the average one; takes 8 budget^2 bytes,
        and time of the order of budget^2 per mistake.  On MAGIC the average has 86.0 % with 414 and 86.1 % with 3443
        (docs/methods/budget_oskl.md).
    average : bool, default=False
        Predict with the average of the f_t; otherwise with the last one.  The average is several points more accurate,
        and has the same support vectors.

    Notes
    -----
    At a mistake, y f(x) <= 0, f grows by y k(x, .) while there is room, and afterwards by its orthogonal projection P
    onto the span of the support vectors:

    .. math::

        f \leftarrow f + y P k(x, \cdot), \quad P k(x, \cdot) = \sum_{j=1}^B d_j k(x_j, \cdot),
        \quad K d = ( k(x_j, x) )_j

    where K is the kernel matrix of the support vectors.  None is ever removed, and an example in their span needs no
    room.  Training is in float64 whatever `dtype`.

    References
    ----------
    Orabona, Keshet, Caputo, Bounded kernel-based online learning, JMLR 10, 2009, figure 2; with a budget in place of
    the threshold eta.

    Examples
    --------
    >>> from klr_bench import Projectron
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = Projectron(budget=6, gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_support_
    (True, 6)
    """

    grows = False  # what is inserted stays

    def _engine(self, X, weights):
        return self._state or ProjectronState(kernel_of(self, X, weights), X, self.budget)


@estimator
class ProjectronPlusPlus(Projectron):
    r"""`Projectron` that also learns from correctly classified examples with a small margin.

    Use it instead of `Projectron` for more accuracy with the same budget, at more updates.

    Parameters
    ----------
    eta : float, default=0.1
        Largest distance delta > 0 from the span, per unit of the loss, at which it learns: with a larger one it learns
        from more examples of a small margin.  0.1 is that of the project's runs (configs/algorithm/projectronpp.yaml).

    Notes
    -----
    These have 0 < y f(x) < 1.  With the loss l = 1 - y f(x), the projection P onto the span of the support vectors and
    delta = ||k(x, .) - P k(x, .)||, it adds y tau P k(x, .) if l > delta / eta, with

    .. math::

        \tau = \min( \frac{l}{\lVert P k(x, \cdot) \rVert^2},
        \frac{2 (l - \delta / \eta)}{\lVert P k(x, \cdot) \rVert^2}, 1 )

    References
    ----------
    Orabona, Keshet, Caputo, Bounded kernel-based online learning, JMLR 10, 2009, figure 3; with a budget in place of
    the threshold for mistakes.

    Examples
    --------
    >>> from klr_bench import ProjectronPlusPlus
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = ProjectronPlusPlus(budget=6, gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_support_
    (True, 6)
    """

    eta: float = parameter(POSITIVE, default=0.1)

    def _engine(self, X, weights):
        engine = super()._engine(X, weights)
        engine.eta = self.eta
        return engine
