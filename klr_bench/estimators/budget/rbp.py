"""The randomized budget perceptron.

Cavallanti, Cesa-Bianchi, Gentile (Machine Learning 69, 2007).
"""

from __future__ import annotations

import math

from klr_bench.estimators.budget.base import BudgetKernelClassifier
from klr_bench.estimators.budget.engine import N, decide, drop, enter, strategy


@strategy
def replace_at_random(book, parameters):
    budget, y, counts = int(parameters[0]), book.y, book.counts
    for i in range(len(y)):
        value = decide(book, i)
        if math.isnan(value):
            break
        if y[i] * value > 0.0:
            continue
        slot = counts[N]
        if slot == budget:
            slot = int(book.u[i] * budget)
            drop(book, book.column[slot])
        enter(book, i, slot, y[i], value)
    return len(y)


class RandomizedBudgetPerceptron(BudgetKernelClassifier):
    """Adds y k(x, .) at each mistake, y f(x) <= 0; at a full budget a random support vector leaves first.

    Parameters
    ----------
    budget : int >= 1, default=100
        Support vectors at most.
    average, kernel, gamma, degree, coef0, random_state, dtype, n_epochs
        See `BudgetKernelClassifier`, also for the fitted attributes.

    References
    ----------
    Cavallanti, Cesa-Bianchi, Gentile, Machine Learning 69, 2007, figure 2.
    """

    _strategy = replace_at_random

    def __init__(
        self,
        budget=100,
        *,
        average=False,
        kernel="rbf",
        gamma=None,
        degree=3,
        coef0=1.0,
        random_state=None,
        dtype=None,
        n_epochs=1,
    ):
        super().__init__(budget, average, kernel, gamma, degree, coef0, random_state, dtype, n_epochs)
