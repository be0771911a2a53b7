"""Budgeted stochastic gradient descent: Pegasos with a limited number of support vectors."""

from __future__ import annotations

import math

from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.budget.base import BudgetClassifier
from klr_bench.estimators.budget.bsgd_projection import ProjectingState
from klr_bench.estimators.budget.merging import MergingState
from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.kernels import kernel_of
from klr_bench.estimators.core.losses import LOSSES, derivative
from klr_bench.estimators.core.parameters import POSITIVE, estimator, parameter
from klr_bench.estimators.core.vectors import tie
from klr_bench.estimators.online.passes import Update
from klr_bench.estimators.online.strategies import decide, drop, enter, shrink, strategy

MAINTENANCE = {"merging": MergingState, "projection": ProjectingState}
"""Budget maintenance methods other than removal, with the states of their learners."""


@compiled(fastmath={"reassoc", "contract", "nnan", "nsz"})
def _least_norm(coef, length, m):
    least = 1e300
    for j in range(m):
        norm = abs(coef[j]) * length[j]
        least = min(least, norm if coef[j] != 0.0 else 1e300)
    return least


@compiled()
def _least(book):
    """Find the support vector whose term a_i k(x_i, .) in f has the smallest norm.

    Returns its slot, and the norm without the scale of f.  Among ties the oldest one is chosen.
    """
    coef, length, number = book.coef, book.length, book.number
    least = _least_norm(coef, length, book.state["first"] + len(book.y))
    first, oldest, most = 0, book.state["ever"], least * (1.0 + tie(book.values))
    for slot in range(book.state["n"]):
        j = book.column[slot]
        if number[j] < oldest and abs(coef[j]) * length[j] <= most:
            first, oldest = slot, number[j]
    return first, least


@strategy
def step_and_remove_least(book, parameters):
    budget, loss, lam = parameters
    y, state = book.y, book.state
    for i in range(len(y)):
        value = decide(book, i)
        if math.isnan(value):
            break
        t, slope = state["t"], derivative(int(loss), y[i], value, 0.0)
        if t > 1:  # f_1 = 0 needs no shrinking
            shrink(book, 1.0 - 1.0 / t)
        if slope == 0.0:
            continue
        c, slot = -slope / (lam * t), state["n"]
        if slot == budget:
            slot, least = _least(book)
            if abs(c) * book.length[state["first"] + i] < state["scale"] * least * (1.0 - tie(book.values)):
                continue  # the term of the new support vector is so small that it would be removed at once
            drop(book, book.column[slot])
        enter(book, i, slot, c, value)
    return len(y)


@estimator
class BSGD(BudgetClassifier):
    r"""Pegasos that removes, projects or merges a support vector when the budget is exceeded.

    Use it to compare learners with a budget.  Removal costs least; projection and merging lose less, and take time of
    the order of budget^2 and of the budget for each update.

    Parameters
    ----------
    lam : float, default=1e-4
        Regularization lambda > 0; t is not reset between epochs or calls of `partial_fit`.  The grid of
        configs/algorithm/bsgd.yaml is 1e-6, 1e-5, ..., 0.01.
    loss : {"hinge", "logit"}, default="hinge"
        max(0, 1 - yf) or log(1 + e^-yf).  Only the second gives probabilities, and with it every example is inserted.
    maintenance : {"removal", "projection", "merging"}, default="removal"
        How room is made.  Projection takes 8 budget^2 bytes.  Projection and merging are in float64 whatever `dtype`,
        merging on dense rows.  With 414 to 3443 support vectors on MAGIC and Adult, the last classifier is better by
        merging than by removal, by one to eight points (docs/methods/budget_oskl.md).
    average : bool, default=False
        Predict with the average of the f_t; otherwise with the last one.  With merging it keeps all merged points, too.

    Attributes
    ----------
    n_updates_ : int
        Number of insertions, without examples that would be removed at once or are in the span of the support vectors,
        and without merged points.

    Notes
    -----
    Minimizes (lam/2) ||f||^2 + (1/T) sum l(y, f(x)) with step size 1 / (lam t).  At step t

    .. math::

        f \leftarrow (1 - \frac{1}{t}) f - \frac{l'(y, f(x))}{\lambda t} k(x, \cdot)

    With more than `budget` support vectors, the one with the smallest |a_i| ||k(x_i, .)|| (among ties the oldest)

    - "removal": is removed.  With the hinge loss all |a_i| are equal; if all k(x, x) are equal, too, as those of the
      rbf kernel, it is always the oldest that goes;
    - "projection": is removed, and the others change such that f changes the least; each update takes time of the order
      of budget^2.  An example in the span of the support vectors changes their coefficients and needs no room;
    - "merging": is merged with the one that leaves the least behind, of those with a coefficient of the same sign, to a
      point between them; if there is none it is removed.  Of the rbf kernel alone.

    References
    ----------
    Wang, Crammer, Vucetic, Breaking the curse of kernelization, JMLR 13, 2012: algorithm 1, with removal, projection or
    merging as in section 4; the place of a merged point is exact, where the paper searches for it.

    Examples
    --------
    >>> from klr_bench import BSGD
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = BSGD(budget=30, lam=0.01, gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_support_, model.n_updates_ > 30
    (True, 30, True)
    >>> for maintenance in ("projection", "merging"):
    ...     model = BSGD(budget=10, lam=0.01, maintenance=maintenance, gamma=2.0, random_state=0).fit(X, y)
    ...     print(model.score(X, y) > 0.9)
    True
    True
    """

    lam: float = parameter(POSITIVE, default=1e-4)
    loss: str = parameter(StrOptions({"hinge", "logit"}), default="hinge")
    maintenance: str = parameter(StrOptions({"removal", *MAINTENANCE}), default="removal")

    _fixed = (*BudgetClassifier._fixed, "maintenance")

    def _validate_params(self):
        super()._validate_params()
        if self.maintenance == "merging" and self.kernel != "rbf":
            instead = "use maintenance='projection'"
            message = f"The 'kernel' parameter of BSGD must be 'rbf' for merging. Got {self.kernel!r}; {instead}."
            raise ValueError(message)

    def _engine(self, X, weights):
        if self.maintenance not in MAINTENANCE:
            return super()._engine(X, weights)
        engine = self._state or MAINTENANCE[self.maintenance](kernel_of(self, X, weights), X, self.budget)
        engine.parameters = self._update().parameters
        return engine

    def _update(self):
        return Update(step_and_remove_least, [LOSSES[self.loss], self.lam])
