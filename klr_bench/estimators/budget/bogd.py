"""Bounded online gradient descent (BOGD), which removes support vectors at random."""

from __future__ import annotations

import math

import numpy as np

from klr_bench.estimators.budget.base import BudgetClassifier, refuse_large_lam
from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.parameters import NOT_NEGATIVE, POSITIVE, estimator, parameter
from klr_bench.estimators.online.passes import Update
from klr_bench.estimators.online.strategies import decide, drop, enter, shrink, strategy

_STRIPE = 64


@compiled(fastmath={"reassoc", "contract", "nnan", "nsz"})
def _sum_of_lengths(coef, length, m):
    total = 0.0
    for j in range(m):
        total += abs(coef[j]) * length[j]
    return total


@compiled()
def removal_scale(budget, sum_of_lengths):
    """Return the scale factor that `removal_weight` applies to the norm of a support vector.

    It is s = (B - 1) / sum_i |a_i| ||k(x_i, .)||, at most 1e300, or 0 if the sum is 0.
    """
    return min((budget - 1) / sum_of_lengths, 1e300) if sum_of_lengths > 0.0 else 0.0


@compiled(fastmath={"nnan", "nsz"})
def removal_weight(a, length, s):
    """Return the unnormalized probability of removing a support vector with coefficient a.

    It is max(0, 1 - s |a| ||k(x_i, .)||), or 0 if a = 0.
    """
    return max(0.0, 1.0 - s * (abs(a) * length)) if a != 0.0 else 0.0  # s alone may be 1e300


@compiled(fastmath={"reassoc", "contract", "nnan", "nsz"})
def _sum_of_weights(coef, length, s):
    total = 0.0
    for j in range(len(coef)):
        total += removal_weight(coef[j], length[j], s)
    return total


@compiled()
def _draw(book, m, s):
    """Draw a support vector with probability proportional to its removal weight.

    Returns its slot and the sum of all weights.
    """
    coef, length, first, n = book.coef, book.length, book.state["first"], book.state["n"]
    sums = np.zeros((n + _STRIPE - 1) // _STRIPE)
    for k in range(len(sums)):
        stripe = slice(k * _STRIPE, min((k + 1) * _STRIPE, first))
        sums[k] = _sum_of_weights(coef[stripe], length[stripe], s)
    for column in range(first, m):
        sums[book.slot[column] // _STRIPE] += removal_weight(coef[column], length[column], s)
    target, drawn = book.u[m - first] * sums.sum(), -1
    for k in range(len(sums)):
        if target >= sums[k] and k + 1 < len(sums):
            target -= sums[k]
            continue
        for slot in range(k * _STRIPE, min((k + 1) * _STRIPE, n)):
            weight = removal_weight(coef[book.column[slot]], length[book.column[slot]], s)
            if weight > 0.0:
                drawn = slot
            target -= weight
            if target < 0.0:
                break
        break
    return drawn, sums.sum()


@compiled(fastmath={"reassoc", "contract", "nnan", "nsz"})
def _enlarge_coefficients(book, m, s, sum_of_weights, cap):
    """Divide each coefficient by the probability that its support vector is not removed.

    The first m columns are processed, and the absolute values are limited to `cap`.
    """
    coef, average, since, length = book.coef, book.average, book.since, book.length
    now, to_p = book.state["scale_sum"], 1.0 / sum_of_weights
    for j in range(m):
        a = coef[j]
        average[j] += a * (now - since[j])
        since[j] = now
        p = to_p * removal_weight(a, length[j], s)
        coef[j] = math.copysign(min(abs(a) / (1.0 - p), cap), a)


@strategy
def replace_and_make_up(book, parameters):
    budget, eta, cap, shrinking, by_length = parameters
    y, state, coef, length = book.y, book.state, book.coef, book.length
    for i in range(len(y)):
        value = decide(book, i)
        if math.isnan(value):
            break
        shrink(book, shrinking)
        if y[i] * value >= 1.0:
            continue
        slot = state["n"]
        if slot == budget:
            m = state["first"] + i
            if by_length:
                s = removal_scale(budget, _sum_of_lengths(coef, length, m))
                slot, sum_of_weights = _draw(book, m, s)
            else:
                s, slot, sum_of_weights = 0.0, int(book.u[i] * budget), budget
            _enlarge_coefficients(book, m, s, sum_of_weights, cap / state["scale"])
            drop(book, book.column[slot])
        enter(book, i, slot, eta * y[i], value)
    return len(y)


@estimator
class BOGD(BudgetClassifier):
    r"""Hinge-loss online gradient descent that removes support vectors at random (BOGD).

    Use it to compare learners with a budget: memory and the time for a row do not grow.  `BudgetOSKL` has probabilities
    and needs no random removal.

    Parameters
    ----------
    eta : float, default=1.0
        Step size > 0.  1, with gamma_max = 1, gives the numbers of Zhang et al., ICML 2013, table 5.
    gamma_max : float, default=1.0
        Bound > 0 on the coefficients in units of eta; gamma of the paper.
    lam : float or None, default=None
        Regularization >= 0, with eta lam < 1; None is 1/T^2, T the number of rows of the first call.  1e-5 gives the
        numbers of support vectors that BOGD++ has in Zhang et al., ICML 2013, on all sets, the default on all but
        Covertype.

    Notes
    -----
    f is multiplied by 1 - eta lam at each example; if y f(x) < 1, eta y k(x, .) is added.  If the budget B is full, a
    support vector leaves first, drawn with probability p_i = 1/B, and the coefficients of the others grow such that f
    stays the same in expectation, up to a bound:

    .. math::

        | a_i | \leftarrow \min( \frac{| a_i |}{1 - p_i}, \eta \gamma_{\max} )

    References
    ----------
    Zhao, Wang, Wu, Jin, Hoi, Fast bounded online gradient descent algorithms for scalable kernel-based online learning,
    ICML 2012, algorithm 1 with uniform sampling.

    Examples
    --------
    >>> from klr_bench import BOGD
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = BOGD(budget=20, gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_support_, model.n_updates_ > 20
    (True, 20, True)
    """

    eta: float = parameter(POSITIVE, default=1.0)
    gamma_max: float = parameter(POSITIVE, default=1.0)
    lam: float | None = parameter(NOT_NEGATIVE, None, default=None)

    _by_length = False

    def _validate_params(self):
        super()._validate_params()
        refuse_large_lam(self)

    def _update(self):
        lam = min(1 / self._n_first**2, 0.5 / self.eta) if self.lam is None else self.lam
        parameters = [self.eta, self.eta * self.gamma_max, 1 - self.eta * lam, self._by_length]
        return Update(replace_and_make_up, parameters)


@estimator
class BOGDPlusPlus(BOGD):
    r"""Variant of `BOGD` that preferentially removes support vectors with small coefficients.

    Use it instead of `BOGD`, at about the same cost: support vectors with large coefficients stay longer.

    Notes
    -----
    With B the budget and a_i the coefficients, support vector i leaves with a probability in proportion to

    .. math::

        \max( 0, 1 - s | a_i | \lVert k(x_i, \cdot) \rVert ),
        \quad s = \frac{B - 1}{\sum_{j=1}^B | a_j | \lVert k(x_j, \cdot) \rVert}

    Where all coefficients and lengths are equal it is 1/B, that of `BOGD`.

    References
    ----------
    Zhao, Wang, Wu, Jin, Hoi, Fast bounded online gradient descent algorithms for scalable kernel-based online learning,
    ICML 2012, algorithm 1 with non-uniform sampling.

    Examples
    --------
    >>> from klr_bench import BOGDPlusPlus
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = BOGDPlusPlus(budget=20, gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_support_, model.n_updates_ > 20
    (True, 20, True)
    """

    _by_length = True
