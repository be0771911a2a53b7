"""Forgetron: a kernel perceptron that gradually forgets its oldest support vectors."""

from __future__ import annotations

import math

from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.budget.base import BudgetClassifier
from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.parameters import estimator, parameter
from klr_bench.estimators.online.passes import Update
from klr_bench.estimators.online.strategies import decide, drop, enter, f_at, shrink, strategy

BASIC, SELF_TUNED = 0, 1


@compiled()
def _largest_shrinking_factor(book, a, mu):
    """Return the largest factor phi <= 1 that shrinks f enough to keep the damage acceptable.

    Removals damage f; the limit of the total damage, Q in the paper, is 15/32 of the number of mistakes.  a is the
    coefficient of the oldest support vector r, and mu is y_r f(x_r); both before the shrinking.
    """
    state, d = book.state, abs(a)
    damages, allowed = state["damages"], 15.0 / 32.0 * state["mistakes"]
    square, linear, constant = d * d - 2.0 * d * mu, 2.0 * d, damages - allowed
    phi = 1.0
    if square + linear + constant > 0.0:
        phi = -2.0 * constant / (linear + math.sqrt(linear * linear - 4.0 * square * constant))
    state["damages"] += (d * phi) ** 2 + 2.0 * d * phi * (1.0 - phi * mu)
    return phi


@strategy
def forget_oldest(book, parameters):
    budget, variant, rate, bound = parameters
    y, state = book.y, book.state
    n_computed = len(book.values) - len(y)  # number of oldest support vectors whose kernel values have been computed
    forgotten = 0
    for i in range(len(y)):
        full = state["n"] == budget
        if full and forgotten == n_computed:
            return i
        value = decide(book, i)
        if math.isnan(value):
            break
        if y[i] * value > 0.0:
            continue
        slot = state["turns"] % int(budget) if full else state["n"]
        oldest = book.column[slot]
        enter(book, i, slot, y[i], value)
        if variant == BASIC:
            shrink(book, min(rate, bound / math.sqrt(state["squared"])))
        if full:
            a, f_oldest = state["scale"] * book.coef[oldest], f_at(book, len(y) + forgotten, i + 1)
            if variant == SELF_TUNED:
                phi = _largest_shrinking_factor(book, a, math.copysign(1.0, a) * f_oldest)
                shrink(book, phi)
                a, f_oldest = phi * a, phi * f_oldest
            drop(book, oldest)
            state["squared"] += (a * book.length[oldest]) ** 2 - 2.0 * a * f_oldest
            state["turns"] += 1
            forgotten += 1
    return len(y)


@estimator
class Forgetron(BudgetClassifier):
    r"""Kernel perceptron that shrinks f and removes its oldest support vector (Forgetron).

    Use it to compare learners with a budget, or on streams that drift, since it forgets the oldest support vectors.
    Memory and the time for a row do not grow.

    Parameters
    ----------
    variant : {"basic", "self_tuned"}, default="basic"
        How f shrinks; "basic" agrees with the numbers of Zhang et al. (ICML 2013), "self_tuned" shrinks only as much
        as its bound on the mistakes needs.

    Notes
    -----
    At a mistake, y f(x) <= 0, y k(x, .) is added, f is multiplied by phi, and the oldest support vector is removed if
    there are more than B, the budget.  By then its coefficient is small, and so is the damage.  With f' the function
    after the insertion,

    .. math::

        \phi = \min( (B+1)^{-1 / (2 (B+1))}, \frac{U}{\lVert f' \rVert} ),
        \quad U = \frac{1}{4} \sqrt{\frac{B+1}{\log(B+1)}}

    at every mistake for the variant "basic".  For "self_tuned" phi is the largest number up to 1 that keeps the damage
    of all removals within 15/32 of the number of mistakes, and f shrinks only when a support vector is removed.

    References
    ----------
    Dekel, Shalev-Shwartz, Singer, The Forgetron: a kernel-based perceptron on a budget, SIAM Journal on Computing 37,
    2008, figures 2 and 3.

    Examples
    --------
    >>> from klr_bench import Forgetron
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = Forgetron(budget=20, variant="self_tuned", gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_support_ <= 20
    (True, True)
    """

    variant: str = parameter(StrOptions({"basic", "self_tuned"}), default="basic")

    _by_age = True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # the decision functions of the classes were shrunk by different factors
        return tags

    def _update(self):
        n = int(self.budget) + 1
        variant = SELF_TUNED if self.variant == "self_tuned" else BASIC
        return Update(forget_oldest, [variant, n ** (-1 / (2 * n)), math.sqrt(n / math.log(n)) / 4])
