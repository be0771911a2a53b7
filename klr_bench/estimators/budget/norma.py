"""NORMA: regularized online gradient descent that removes the oldest support vectors."""

from __future__ import annotations

import math

from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.budget.base import BudgetClassifier, refuse_large_lam
from klr_bench.estimators.core.losses import LOSSES, derivative
from klr_bench.estimators.core.parameters import NOT_NEGATIVE, POSITIVE, estimator, parameter
from klr_bench.estimators.online.passes import Update
from klr_bench.estimators.online.strategies import decide, drop, enter, shrink, strategy


@strategy
def step_and_truncate(book, parameters):
    budget, loss, eta, shrinking = parameters
    y, state = book.y, book.state
    for i in range(len(y)):
        value = decide(book, i)
        if math.isnan(value):
            break
        slope = derivative(int(loss), y[i], value, 0.0)
        shrink(book, shrinking)
        if slope == 0.0:
            continue
        slot = state["n"]
        if slot == budget:
            slot = state["turns"] % int(
                budget
            )  # slots are reused in turn, so this slot holds the oldest support vector
            drop(book, book.column[slot])
            state["turns"] += 1
        enter(book, i, slot, -eta * slope, value)
    return len(y)


@estimator
class NORMA(BudgetClassifier):
    r"""Regularized online gradient descent that keeps the newest support vectors (NORMA).

    Use it on streams that drift: it forgets old rows at a fixed rate.  Memory and the time for a row do not grow.

    Parameters
    ----------
    eta : float, default=0.5
        Step size > 0; the grid of configs/algorithm/norma.yaml is 0.1, 0.5 and 1.
    lam : float, default=0.01
        Regularization lambda >= 0, with eta lam < 1.  A budget of a few times 1 / (eta lam) truncates almost nothing;
        a larger budget is of use only with a smaller lam.
    loss : {"hinge", "logit"}, default="hinge"
        max(0, 1 - yf), the soft margin of the paper with rho = 1 and no nu, or log(1 + e^-yf).  Only the second gives
        probabilities, and with it every example is inserted.

    Notes
    -----
    The loss is l(y, f(x)) + (lam/2) ||f||^2.  A step forgets a share of f and adds the gradient of l:

    .. math::

        f \leftarrow (1 - \eta \lambda) f - \eta l'(y, f(x)) k(x, \cdot)

    Then the oldest support vector is removed if there are more than `budget`.  An example with l' = 0 is not stored.
    Where |l'| <= 1 and k(x, x) <= X^2, what is removed has a norm of at most eta X (1 - eta lam)^budget, and f differs
    from its counterpart without a budget that made the same steps by at most X (1 - eta lam)^budget / lam in norm.

    References
    ----------
    Kivinen, Smola, Williamson, Online learning with kernels, IEEE Transactions on Signal Processing 52, 2004: NORMA
    with a constant step size, and the truncation of its proposition 1, which counts all examples where this counts
    those that are stored.

    Examples
    --------
    >>> from klr_bench import NORMA
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = NORMA(budget=30, gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_support_, model.n_updates_ > 30
    (True, 30, True)
    """

    eta: float = parameter(POSITIVE, default=0.5)
    lam: float = parameter(NOT_NEGATIVE, default=0.01)
    loss: str = parameter(StrOptions({"hinge", "logit"}), default="hinge")

    def _validate_params(self):
        super()._validate_params()
        refuse_large_lam(self)

    def _update(self):
        return Update(step_and_truncate, [LOSSES[self.loss], self.eta, 1 - self.eta * self.lam])
