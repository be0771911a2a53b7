"""The Forgetron: a kernel perceptron that shrinks, and forgets its oldest support vector.

Dekel, Shalev-Shwartz, Singer (SIAM Journal on Computing 37, 2008); as compared in Zhang et al. (ICML 2013).
"""

from __future__ import annotations

import math

from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.budget.base import BudgetKernelClassifier
from klr_bench.estimators.budget.engine import (
    MEMORY,
    MISTAKES,
    SCALE,
    SQUARED,
    TURNS,
    N,
    decide,
    drop,
    enter,
    f_at,
    shrink,
    strategy,
)
from klr_bench.estimators.core.jit import compiled

BASIC, SELF_TUNED = 0, 1


@compiled()
def _gentlest_shrinking(book, a, mu):
    """The largest phi <= 1 that keeps the sum Q of the damages within 15/32 of the number of mistakes.

    a, mu: the coefficient of the oldest support vector r, and y_r f(x_r), before both shrink.
    """
    damages, allowed, d = book.scalars[MEMORY], 15.0 / 32.0 * book.counts[MISTAKES], abs(a)
    square, linear, constant = d * d - 2.0 * d * mu, 2.0 * d, damages - allowed
    phi = 1.0
    if square + linear + constant > 0.0:
        phi = -2.0 * constant / (linear + math.sqrt(linear * linear - 4.0 * square * constant))
    book.scalars[MEMORY] += (d * phi) ** 2 + 2.0 * d * phi * (1.0 - phi * mu)
    return phi


@strategy
def forget_oldest(book, parameters):
    budget, variant, rate, bound = int(parameters[0]), parameters[1], parameters[2], parameters[3]
    y, counts, scalars = book.y, book.counts, book.scalars
    known = len(book.values) - len(y)  # of so many of the oldest there are kernel values
    forgotten = 0
    for i in range(len(y)):
        full = counts[N] == budget
        if full and forgotten == known:
            return i
        value = decide(book, i)
        if math.isnan(value):
            break
        if y[i] * value > 0.0:
            continue
        slot = counts[TURNS] % budget if full else counts[N]
        oldest = book.column[slot]
        enter(book, i, slot, y[i], value)
        if variant == BASIC:
            shrink(book, min(rate, bound / math.sqrt(scalars[SQUARED])))
        if full:
            a, f_oldest = scalars[SCALE] * book.coef[oldest], f_at(book, len(y) + forgotten, i + 1)
            if variant == SELF_TUNED:
                phi = _gentlest_shrinking(book, a, math.copysign(1.0, a) * f_oldest)
                shrink(book, phi)
                a, f_oldest = phi * a, phi * f_oldest
            drop(book, oldest)
            scalars[SQUARED] += (a * book.length[oldest]) ** 2 - 2.0 * a * f_oldest
            counts[TURNS] += 1
            forgotten += 1
    return len(y)


class Forgetron(BudgetKernelClassifier):
    """Adds y k(x, .) at each mistake, y f(x) <= 0, shrinks f, and forgets the oldest if there are more than `budget`.

    f shrinks by phi: with B the budget and f' what it is after the insertion,

    - "basic": phi = min((B+1)^(-1/(2(B+1))), U / ||f'||) at every mistake, U = sqrt((B+1) / log(B+1)) / 4;
    - "self_tuned": the largest phi <= 1 that keeps the damage of all removals within 15/32 of the number of mistakes;
      only where one is removed.

    Parameters
    ----------
    budget : int >= 1, default=100
        Support vectors at most.
    variant : {"basic", "self_tuned"}, default="basic"
        "basic" is what Zhang et al. (ICML 2013) compare.
    average, kernel, gamma, degree, coef0, random_state, dtype, n_epochs
        See `BudgetKernelClassifier`, also for the fitted attributes.

    References
    ----------
    Dekel, Shalev-Shwartz, Singer, SIAM Journal on Computing 37, 2008, figures 2 and 3.
    """

    _strategy = forget_oldest
    _by_age = True
    _parameter_constraints = BudgetKernelClassifier._parameter_constraints | {
        "variant": [StrOptions({"basic", "self_tuned"})],
    }

    def __init__(
        self,
        budget=100,
        variant="basic",
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
        self.variant = variant

    def _strategy_arguments(self):
        n = self.budget + 1
        variant = SELF_TUNED if self.variant == "self_tuned" else BASIC
        return [variant, n ** (-1 / (2 * n)), math.sqrt(n / math.log(n)) / 4]
