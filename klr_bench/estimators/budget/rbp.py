"""Randomized budget perceptron, which replaces random support vectors."""

from __future__ import annotations

import math

from klr_bench.estimators.budget.base import BudgetClassifier
from klr_bench.estimators.core.parameters import estimator
from klr_bench.estimators.online.passes import Update
from klr_bench.estimators.online.strategies import decide, drop, enter, strategy


@strategy
def replace_at_random(book, parameters):
    (budget,) = parameters
    y, state = book.y, book.state
    for i in range(len(y)):
        value = decide(book, i)
        if math.isnan(value):
            break
        if y[i] * value > 0.0:
            continue
        slot = state["n"]
        if slot == budget:
            slot = int(book.u[i] * budget)
            drop(book, book.column[slot])
        enter(book, i, slot, y[i], value)
    return len(y)


@estimator
class RandomizedBudgetPerceptron(BudgetClassifier):
    r"""Kernel perceptron that replaces a random support vector once the budget is full.

    Use it as the simplest baseline with a budget.  Memory and the time for a row do not grow.

    Notes
    -----
    At a mistake, y f(x) <= 0, with a full budget and a drawn support vector r, each with probability 1 / budget,

    .. math::

        f \leftarrow f - a_r k(x_r, \cdot) + y k(x, \cdot)

    and while there is room y k(x, .) is added.  The coefficients of the last classifier are -1 or +1.

    References
    ----------
    Cavallanti, Cesa-Bianchi, Gentile, Tracking the best hyperplane with a simple budget perceptron, Machine Learning
    69, 2007, figure 2.

    Examples
    --------
    >>> from klr_bench import RandomizedBudgetPerceptron
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = RandomizedBudgetPerceptron(budget=6, gamma=2.0, random_state=1).fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_support_, model.n_updates_ > 6
    (True, 6, True)
    """

    def _update(self):
        return Update(replace_at_random)
