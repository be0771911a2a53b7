"""ALMA: an online learner that approximates the maximum-margin classifier."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

from klr_bench.estimators.budget.base import MANY, BudgetClassifier, Unlimited
from klr_bench.estimators.core.kernels import ANY_KERNEL
from klr_bench.estimators.core.parameters import POSITIVE, SHARE, estimator, fixed, parameter
from klr_bench.estimators.online.passes import Update
from klr_bench.estimators.online.strategies import decide, enter, shrink, strategy


@strategy
def step_inside_the_ball(book, parameters):
    _, margin, C = parameters
    y, state = book.y, book.state
    for i in range(len(y)):
        value, length = decide(book, i), book.length[state["first"] + i]
        if math.isnan(value):
            break
        root = math.sqrt(state["ever"] + 1)
        if length == 0.0 or y[i] * value > margin / root * length:
            continue
        enter(book, i, state["n"], C * y[i] / (root * length), value)
        if state["squared"] > 1.0:
            shrink(book, 1.0 / math.sqrt(state["squared"]))
            state["squared"] = 1.0
    return len(y)


@estimator
class ALMA(BudgetClassifier):
    r"""Approximate large margin algorithm (ALMA), an online learner with a large margin.

    Use it to compare online learners, or for separable data on which a large margin matters.  A pass takes one kernel
    value per row and support vector; the number of support vectors is not limited, and there are no probabilities.

    Parameters
    ----------
    alpha : float, default=0.9
        In (0, 1]; the smaller, the larger the margin and the number of support vectors; 1 updates at mistakes alone.
        The grid of configs/algorithm/alma.yaml is 0.5, 0.7, 0.9 and 1.
    B : float or None, default=None
        B > 0; scales the margin up to which an example gives an update.  None is sqrt(8) / alpha, as in the theorem.
    C : float or None, default=None
        C > 0 of the steps; None is sqrt(2), as in the theorem.

    Notes
    -----
    This is ALMA_p of the paper with p = 2.  On separable data the margin of f reaches at least 1 - alpha times the
    largest possible one.

    Examples have length 1, x^ = k(x, .) / ||k(x, .)||.  One with y <f, x^> <= (1 - alpha) B / sqrt(j) gives update
    number j, a step that gets shorter and a projection into the unit ball:

    .. math::

        f \leftarrow f + \frac{C}{\sqrt{j}} y \hat{x}, \quad f \leftarrow \frac{f}{\max(1, \lVert f \rVert)}

    There is no budget.

    References
    ----------
    Gentile, A new approximate maximal margin classification algorithm, JMLR 2, 2001: the algorithm ALMA_p and theorem
    3, with p = 2 and a kernel.

    Examples
    --------
    >>> from klr_bench import ALMA
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = ALMA(gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_support_ == model.n_updates_ < model.t_
    (True, True)
    """

    alpha: float = parameter(SHARE, default=0.9)
    B: float | None = parameter(POSITIVE, None, default=None)
    C: float | None = parameter(POSITIVE, None, default=None)
    budget: int = fixed(MANY)
    _: KW_ONLY
    kernel: str | Callable[..., Any] = parameter(*ANY_KERNEL, default="rbf")

    _described_by = Unlimited

    def _update(self):
        B = math.sqrt(8.0) / self.alpha if self.B is None else self.B
        return Update(step_inside_the_ball, [(1.0 - self.alpha) * B, math.sqrt(2.0) if self.C is None else self.C])
