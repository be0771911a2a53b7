"""Bounds on the loss and on the number of support vectors of four online learners.

The learners are NC, Margin, Auxiliary and OSKL; the bounds are those of
Zhang, Jin, Chen, Bu, He (AAAI 2012), theorems 1 to 4; Zhang, Yi, Jin, Lin, He (ICML 2013), theorems 1 and 2.

A learner with f_1 = 0 and constant step eta sees (x_1, y_1), ..., (x_T, y_T), and k(x, x) <= 1.  Its cumulative loss is
sum_t l(y_t f_t(x_t)), l(z) = log(1 + e^-z): each example counts before it is learned from.  f is any function that the
learner is compared with, in the ball ||f|| <= R that the learner projects into (R may be infinite), `loss` is
sum_t l(y_t f(x_t)) and `norm` is ||f||.  A bound minus `loss` bounds the regret.

The sequence is arbitrary, but neither it nor f may depend on the learner's draws: a best f in hindsight, which is a
function of the examples alone, is fine.  The AAAI paper states its theorems for the average classifier and examples
that are drawn independently; that follows from the bounds below, by Jensen's inequality and division by T.  It prints
R^2 where its proofs have ||f - f_1||^2 = ||f||^2, which is smaller and is used here.

Arguments are numbers or arrays, and so are the results.  A bound is infinite where its theorem says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Values = NDArray[np.float64]
AUXILIARY = ("log_gamma", "log_one_plus_gamma", "hard_cutoff")
"""The three auxiliary functions h, as named in `AuxiliaryKLR`."""
LOG_2 = math.log(2.0)
"""Logistic loss of f = 0; times T it is the cumulative loss of a learner that never updates."""
MOST_EXAMPLES = 1e15
"""Upper limit of the search for the first T."""


def nc_loss_bound(T: ArrayLike, loss: ArrayLike, norm: ArrayLike, eta: float) -> Values:
    r"""Return an upper bound on the cumulative loss of `NonConservativeKLR` (NC).

    It is the smaller bound of AAAI 2012, theorems 1 and 2, which hold for every sequence.

    .. math::

        \min( \text{loss} + \frac{\lVert f \rVert^2}{2 \eta} + \frac{\eta T}{2},
        \frac{2}{2 - \eta} \text{loss} + \frac{\lVert f \rVert^2}{\eta (2 - \eta)} )

    With eta = R / sqrt(T) and ||f|| = R the first is loss + R sqrt(T).  The second needs eta < 2, which the paper does
    not say.  Both sum  l(z_t) - l(y_t f(x_t)) <= (||f - f_t||^2 - ||f - f_{t+1}||^2) / (2 eta) + (eta / 2)
    sigma(-z_t)^2,  the first with sigma^2 <= 1, the second with sigma(-z)^2 <= l(z).
    """
    first = np.asarray(loss) + np.square(norm) / (2 * eta) + eta * np.asarray(T) / 2
    return first if eta >= 2 else np.minimum(first, margin_loss_bound(loss, norm, eta))


def margin_loss_bound(loss: ArrayLike, norm: ArrayLike, eta: float) -> Values:
    r"""Return an upper bound on the expected cumulative loss of `MarginKLR`.

    AAAI 2012, theorem 3, for 0 < eta < 2.

    .. math::

        \frac{2}{2 - \eta} \text{loss} + \frac{\lVert f \rVert^2}{\eta (2 - \eta)}

    The probability p_t of a draw is chosen so that  p_t (1 - (eta / 2) sigma(-z_t)) = (2 - eta) / 2.
    """
    if not 0 < eta < 2:
        message = f"margin_loss_bound: expected 0 < eta < 2, as in theorem 3, got eta={eta!r}."
        raise ValueError(message)
    return 2 / (2 - eta) * np.asarray(loss) + np.square(norm) / (eta * (2 - eta))


def auxiliary_loss_bound(T: ArrayLike, h_loss: ArrayLike, norm: ArrayLike, eta: float) -> Values:
    r"""Return an upper bound on the expected cumulative loss of `AuxiliaryKLR`.

    AAAI 2012, theorem 4.

    .. math::

        \sum_{t=1}^T h(y_t f(x_t)) + \frac{\lVert f \rVert^2}{2 \eta} + \frac{\eta M^2 T}{2}

    The sum is `h_loss`, and M = max |h'| = 1 of all three h.  The paper prints R M / sqrt(T) per example, which needs
    its unstated eta = R / (M sqrt(T)).  The comparison is with h, not with the loss: h(z) = log(gamma + e^-z) is never
    below log(gamma), so that from gamma = 2 on the bound is above T log(2), the loss of f = 0, whatever T is.
    """
    return np.asarray(h_loss) + np.square(norm) / (2 * eta) + eta * np.asarray(T) / 2


def auxiliary_values(z: ArrayLike, h: str, gamma: float = 1.0, delta: float = 0.0) -> Values:
    """Return the values h(z) of one of the auxiliary functions h of `AuxiliaryKLR`."""
    z = np.asarray(z, dtype=np.float64)
    if h == "log_gamma":
        return np.logaddexp(math.log(gamma), -z)
    if h == "log_one_plus_gamma":
        return np.logaddexp(0.0, math.log(gamma) - z)
    if h == "hard_cutoff":
        return np.logaddexp(0.0, -np.minimum(z, delta))
    message = f"h: expected {', '.join(AUXILIARY)}, got {h!r}."
    raise ValueError(message)


def margin_support_bound(T: ArrayLike, own_loss: ArrayLike, eta: float) -> Values:
    r"""Return an upper bound on the expected number of support vectors of `MarginKLR`.

    The bound is not in the paper.

    .. math::

        (1 - \frac{\eta}{2}) T + \frac{\eta}{2} \text{own loss}

    `own_loss` is the learner's expected cumulative loss.  p_t = (2 - eta) / (2 - eta + eta s) with s = sigma(z_t) is
    convex in s and so at most 1 - (eta / 2) s, and 1 - s = sigma(-z) <= l(z).
    """
    return (1 - eta / 2) * np.asarray(T) + eta / 2 * np.asarray(own_loss)


def auxiliary_support_bound(own_loss: ArrayLike, h: str, gamma: float = 1.0, delta: float = 0.0) -> Values:
    """Return an upper bound on the expected number of support vectors of `AuxiliaryKLR`.

    The bound is not in the paper:  own_loss / inf h,  where `own_loss` is the learner's expected cumulative loss and
    inf h is log(gamma), 0 (no bound) or l(delta): it draws with probability l(z_t) / h(z_t), and the third h inserts
    only where l(z_t) >= l(delta).
    """
    least = float(auxiliary_values(np.inf, h, gamma, delta))
    return np.asarray(own_loss) / least if least > 0 else np.full(np.shape(own_loss), np.inf)


def oskl_constant(T: ArrayLike, delta: float, G: float = 1.0, G1: float = 1.0) -> Values:
    r"""Return the constant c in the bounds of `OSKL`.

    It is defined in ICML 2013, equation (4), with |l'| <= G1 <= G, and is infinite for T < 18 / (G ln(1/delta)), which
    the theorem excludes.

    .. math::

        c = \max( 2 \sqrt{G_1}, \frac{1}{2} + 16 \ln \frac{m}{\delta},
        \frac{8}{3} \ln \frac{m}{\delta} + \frac{19}{18} \ln \frac{1}{\delta} )

    where m = ceil(log2(G1 T^2)).
    """
    if not 0 < delta < 1:
        message = f"delta: expected a probability between 0 and 1, got {delta!r}."
        raise ValueError(message)
    T = np.asarray(T, dtype=np.float64)
    log_m = np.log(np.maximum(np.ceil(np.log2(G1 * np.maximum(T, 1.0) ** 2)), 1.0) / delta)
    c = np.maximum(0.5 + 16 * log_m, 8 / 3 * log_m + 19 / 18 * math.log(1 / delta))
    return np.where(G * math.log(1 / delta) * T >= 18, np.maximum(c, 2 * math.sqrt(G1)), np.inf)


def oskl_loss_bound(
    T: ArrayLike, loss: ArrayLike, R: float, eta: float, G: float, delta: float, *, L: float = 1.0, G1: float = 1.0
) -> Values:
    r"""Return an upper bound on the cumulative loss of `OSKL`.

    ICML 2013, theorem 1, equation (2).

    .. math::

        \frac{\text{loss} + (\eta G^2 + R^2 / \eta + R G) c}{1 - \gamma} + R c, \quad \gamma = \eta L G < 1

    c is `oskl_constant`.  With (3), `oskl_support_bound`, it holds with probability at least 1 - 2 delta, for a T and
    an f, ||f|| <= R < inf, that are fixed before the draws.  Notes on the printed theorem:

    - "for any f_*" holds for each f_*, not for all at once: lemma 3 is on a martingale that contains f_*(x_t).
    - gamma may be any number from eta L G up to 1; the smallest, used here, gives the smallest bound.
    - Lemmas 1 and 2 are on two events, and lemma 3 on a third, which gives 1 - 3 delta.  1 - 2 delta is right all the
      same: c is six times what (7) and (10), where the first two enter, need.
    - R enters by |f_t(x_t) - f(x_t)| <= 2 R, so that unlike in the bounds above the norm of f does not suffice.
    - R c at the end belongs to the case A_T <= 1/T alone, in which 2 R / T would do.
    """
    gamma = eta * L * G
    if not 0 < gamma < 1:
        message = f"expected 0 < eta * L * G < 1, got {gamma:g}; use an eta below {1 / (L * G):g}."
        raise ValueError(message)
    c = oskl_constant(T, delta, G, G1)
    return (np.asarray(loss) + (eta * G**2 + np.square(R) / eta + R * G) * c) / (1 - gamma) + R * c


def oskl_support_bound(
    T: ArrayLike, own_loss: ArrayLike, G: float, delta: float, *, L: float = 1.0, G1: float = 1.0
) -> Values:
    r"""Return an upper bound on the number of support vectors of `OSKL`.

    ICML 2013, theorem 1, equation (3).

    .. math::

        \frac{3 L}{2 G} \text{own loss} + c

    `own_loss` is the learner's own cumulative loss, or `oskl_loss_bound` of it: then this is the paper's remark 2, on
    the loss of f.  It holds together with `oskl_loss_bound`, and for all steps and R.
    """
    return 1.5 * L / G * np.asarray(own_loss) + oskl_constant(T, delta, G, G1)


def separating_function(T: float, n_points: int) -> tuple[float, float]:
    """Return the cumulative loss and the norm of a function that separates the data.

    The function is f_* of ICML 2013, theorem 2.  The data are those of
    `klr_bench.datasets.synthetic.repeated_points`, with T > n_points.

    f_* has n support vectors and y f_*(x) = ln(T/n) at all n points, which are orthogonal: its loss T log(1 + n/T) is
    at most n, its norm sqrt(n) ln(T/n).  (The paper gives no sequence; its proof is in a supplement.)
    """
    margin = math.log(T / n_points)
    return T * math.log1p(math.exp(-margin)), math.sqrt(n_points) * margin


def few_support_loss(T: ArrayLike, n_points: int) -> Values:
    """Return the minimum expected loss of learners with fewer than `n_points` support vectors.

    ICML 2013, theorem 2, third statement.

    With n = `n_points`, it is T log(2) / n: x_t is one of n orthogonal points with equal probability, whatever came
    before it, and at a point that is no support vector of f_t it is f_t(x_t) = 0.  It holds for every learner, and for
    any labels.
    """
    return np.asarray(T) * LOG_2 / n_points


def first_below(bound: Callable[[float], Any], level: Callable[[float], Any]) -> int | None:
    """Return the smallest T with bound(T) < level(T), or None if the search reaches its limit.

    The limit is MOST_EXAMPLES.  Once it is below the level, the bound must stay below, but for the small steps of
    `oskl_constant`.
    """
    high = 1
    while not bound(high) < level(high):
        high *= 2
        if high > MOST_EXAMPLES:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) < level(middle) else (middle, high)
    return high
