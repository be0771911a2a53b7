"""OSKL with a budget: the set of support vectors is fixed once the budget is full.

Zhang, Yi, Jin, Lin, He (ICML 2013) mention such a method as future work; this one is described in
docs/methods/budget_oskl.md.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY

import numpy as np
from numba import float32, float64, int64, void
from sklearn.utils._param_validation import StrOptions

from klr_bench.estimators.budget.base import BudgetClassifier
from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.losses import LOSSES, derivative
from klr_bench.estimators.core.parameters import AT_LEAST_ONE, COUNT, POSITIVE, estimator, parameter
from klr_bench.estimators.core.vectors import add_scaled, first_of_largest
from klr_bench.estimators.kernel_values.newton import newton_steps
from klr_bench.estimators.kernel_values.tiles import LANES, set_values, sums_and_nearest
from klr_bench.estimators.online.oskl import SMOOTH_LOSSES, refuse_slope, step_size
from klr_bench.estimators.online.passes import Update
from klr_bench.estimators.online.state import STATES, count_example
from klr_bench.estimators.online.strategies import StrategyState, decide, enter, strategy

TOL = 1e-10
"""Largest estimated distance of the objective from its minimum after a refit, as a share of the objective."""


AT_ONCE = 512
"""Number of rows learned before testing whether the budget is full."""
BLOCK = 64
"""Number of rows per block with a full budget."""


@compiled()
def _inverse_lengths(book):
    inverse = np.zeros(book.values.shape[1], dtype=book.values.dtype)
    for column in book.column[: book.state["n"]]:
        inverse[column] = 1.0 / book.length[column] if book.length[column] > 0.0 else 0.0
    return inverse


@compiled()
def _move(change, place, coef, average, since, state):
    """Add `change` to the coefficient of a support vector."""
    average[place] += coef[place] * (state["scale_sum"] - since[place])
    since[place] = state["scale_sum"]
    coef[place] += change


@strategy
def sample_then_project(book, parameters):
    budget, loss, delta, G, eta = parameters
    y, u, state, coef, length = book.y, book.u, book.state, book.coef, book.length
    inverse = np.zeros(0, dtype=book.values.dtype)
    for i in range(len(y)):
        value = decide(book, i)
        if math.isnan(value):
            break
        slope = derivative(int(loss), y[i], value, delta)
        if not abs(slope) <= G:
            state["refused"] = state["t"]
            break
        slot = state["n"]
        if slot < budget:
            if u[i] < abs(slope) / G:
                enter(book, i, slot, -math.copysign(eta * G, slope), value)
            continue
        if not len(inverse):  # the set of support vectors does not change from here on
            inverse = _inverse_lengths(book)
        nearest = first_of_largest(book.values[i], inverse)
        if nearest >= 0:
            change = -eta * slope * (book.values[i, nearest] / length[nearest] ** 2) / state["scale"]
            _move(change, nearest, coef, book.average, book.since, state)
    return len(y)


@compiled(
    void(
        float64[::1], int64, float64, int64, float32[:, ::1], float32[:, ::1], float64[::1], float64[::1],
        float32[:, ::1], float32[:, ::1], *[float64[::1]] * 3, STATES,
    )
)  # fmt: skip
def _project(
    parameters, n_words, per_bit, kernel, queries, keys, y, f, left, right, coef, average, since, states
):  # fmt: skip
    """Learn like `sample_then_project` with a full budget and a kernel of distances in float32.

    The arguments are those of `strategies._learn`.  The sums of a block take the coefficients before the block; each
    step adds the values of its support vector at the later rows of the block.
    """
    budget, loss, delta, G, eta = parameters
    left, state = left[: int(budget)], states[0]
    for start in range(0, len(y), BLOCK):
        block = slice(start, min(start + BLOCK, len(y)))
        columns, weights = keys[:, block].copy(), coef[: len(left)].astype(np.float32)
        sums, nearest = sums_and_nearest(left, weights, right, columns, queries[block], n_words, per_bit, kernel)
        values = np.empty((len(sums), len(sums)), dtype=np.float32)
        set_values(left[nearest], columns, n_words, per_bit, kernel, values)
        for i in range(len(sums)):
            t = start + i
            f[t] = state["scale"] * sums[i]
            if not count_example(y[t], f[t], 0.0, state):
                return
            slope = derivative(int(loss), y[t], f[t], delta)
            if not abs(slope) <= G:
                state["refused"] = state["t"]
                return
            change = -eta * slope * values[i, i] / state["scale"]
            _move(change, nearest[i], coef, average, since, state)
            add_scaled(sums[i + 1 :], change, values[i, i + 1 :])


class FixedState(StrategyState):
    """State whose support vectors stay the same once the budget is full.

    `refitted` has their coefficients from a refit and the number of examples seen until then, or is None.
    """

    refitted = None

    def _learn_dense(self, columns, size, X, y, u, f, lengths):
        if not self.operands.in_tiles(self.right) or len(y) < LANES or self.budget < LANES:
            return super()._learn_dense(columns, size, X, y, u, f, lengths)
        if self.n_slots < self.budget:
            some = (rows[:AT_ONCE] for rows in (X, y, u, f, lengths))
            return super()._learn_dense(columns, size, *some)
        left, right = self.operands.both(X)
        _project(
            self.parameters, *self.operands.layout(left), left, np.ascontiguousarray(right), y, f, self.left,
            self.right, self.coef, self.average, self.since, self.states,
        )  # fmt: skip
        return len(y)

    def coefficients(self, *, average):
        """Return the indices of the support vectors, and their coefficients."""
        numbers, coef = super().coefficients(average=average)
        return numbers, self.refitted[0] if self.refitted and self.refitted[1] == self.t else coef


@estimator
class BudgetOSKL(BudgetClassifier):
    r"""OSKL that keeps the first `budget` support vectors and projects later updates onto them.

    Use it on many rows or a stream, if the size of the model is given: memory and the time for a row do not grow, and
    the probabilities are those of logistic regression.  `refit=True` is more accurate, for rows that fit into memory.
    Scale the features first.

    Parameters
    ----------
    budget : int, default=100
        Largest number of support vectors, >= 1, of the last classifier and of the average one.
        docs/methods/budget_oskl.md compares 414 to 3443 on MAGIC, where 414 have 85.0 %, 86.5 % with `refit`, and the
        Baseline, in which every row is one, 85.8 %.
    G : float, default=1.0
        Bound >= 1 on |l'|; a larger G fills the budget more slowly, from more examples: about when the sum of the |l'|
        is G budget.  1 is for rows in random order; a larger one is for rows whose distribution changes.  The
        derivatives of the other losses than logit have no bound in advance: an example whose derivative exceeds G
        raises a ValueError, with a full budget too.  The first has 1 (exponential) or 2 (square), and on MAGIC a G of
        10 is enough for the square loss, and with eta = 0.01 for the exponential one.
    eta : float or None, default=None
        Step size > 0; None is 0.9 / (L G), where L, with |l'| <= L l, is 1 for logit and exponential, 2 / delta for
        square.
    loss : {"logit", "exponential", "square"}, default="logit"
        log(1 + e^-yf), e^-yf, or max((y - f)^2, delta^2).  Only the first gives probabilities.
    delta : float, default=0.1
        delta > 0 of the square loss: an example with |y - f| < delta changes nothing.
    average : bool, default=True
        Predict with the average of the f_t; otherwise with the last one, which is the better choice where the rows do
        not come in random order (docs/methods/budget_oskl.md).
    n_epochs : int or None, default=None
        Passes of `fit` over the rows, >= 1.  None is 10, and fewer where there are many rows: 100,000 / n_samples, but
        at least 2.  The average is that of all passes.
    refit : bool, default=False
        Whether `fit` finds the best coefficients of its support vectors at the end, with the solver of `NystroemKLR`.
        Its memory is proportional to budget**2, plus 40 bytes per row and up to 200 MB of kernel values.  The
        coefficients are then those of the average and of the last classifier.  `partial_fit` goes on without them.
    lam : float or None, default=None
        Weight > 0 of the squared norm in `refit`; None is 1 / (10 n_samples), the default of `DualCDKLR`.

    Attributes
    ----------
    n_updates_ : int
        Number of insertions; the steps of a full budget do not count.

    Notes
    -----
    With room, an example becomes a support vector with probability |l'(y, f(x))| / G, with the coefficient -eta G
    sign(l'), as in `OSKL`: an unbiased gradient step.  Without, the gradient is replaced by its orthogonal projection
    onto the line of the support vector whose angle with k(x, .) is the smallest:

    .. math::

        f \leftarrow f - \eta l'(y, f(x)) \frac{k(x, x_j)}{k(x_j, x_j)} k(x_j, \cdot),
        \quad j = \operatorname{argmax}_i \frac{| k(x, x_i) |}{\sqrt{k(x_i, x_i)}}

    Of support vectors with equal angles, up to rounding (2e-5 in single precision, 1e-9 in double), it is the oldest.
    That needs no draw, and no support vector is ever removed.  So the last classifier, the averaged one and all in
    between have the same `budget` support vectors, and the number of examples need not be known.

    With `refit`, for the logit loss alone, the coefficients are found once more, from all rows of `fit`: those of the
    regularized problem on the support vectors, min (lam/2) ||f||^2 + (1/n) sum_i log(1 + exp(-y_i f(x_i))).

    References
    ----------
    Zhang, Yi, Jin, Lin, He, Online kernel learning with a near optimal sparsity bound, ICML 2013, algorithm 1, for what
    happens with room; they name a budget as future work.  The projection onto the nearest support vector is that of
    merging in Wang, Crammer, Vucetic, JMLR 13, 2012, with one of the two kept in its place.

    Examples
    --------
    >>> from klr_bench import BudgetOSKL
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(400, noise=0.1, random_state=0)
    >>> model = BudgetOSKL(budget=20, gamma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, model.n_support_, model.last_classifier().n_support_
    (True, 20, 20)
    """

    G: float = parameter(AT_LEAST_ONE, default=1.0)
    eta: float | None = parameter(POSITIVE, None, default=None)
    loss: str = parameter(StrOptions(set(SMOOTH_LOSSES)), default="logit")
    delta: float = parameter(POSITIVE, default=0.1)
    _: KW_ONLY
    average: bool = parameter("boolean", default=True)
    n_epochs: int | None = parameter(COUNT, None, default=None)
    refit: bool = parameter("boolean", default=False)
    lam: float | None = parameter(POSITIVE, None, default=None)

    grows = False  # what is inserted stays

    def _complete(self, X, y, callback):
        """Optimize all coefficients if `refit` is True and no callback stopped the fit early."""
        if self.refit and self.n_support_ and self.t_ == len(y) * self._passes(len(y)):
            n, lam = len(y), self.lam or 1.0 / (10.0 * len(y))
            operands, signs, shares = self._state.operands.fitting(X), self._signs(y)[None], np.full(n, 1.0 / n)
            random = np.random.RandomState(0)  # a refit must not change the random numbers of a later partial_fit
            for solver in newton_steps(operands, X, self.support_vectors_, signs, shares, lam, random, tol=TOL):
                self._state.refitted = solver.coef()[0], self.t_
                if callback is not None and callback(self, self.t_):
                    break
            self._publish()

    _progressive = True
    _new_engine = FixedState

    def _validate_params(self):
        super()._validate_params()
        if self.refit and self.loss != "logit":
            name = "The 'loss' parameter of BudgetOSKL"
            message = f"{name} must be 'logit' for refit=True. Got {self.loss!r}; use refit=False."
            raise ValueError(message)

    def _update(self):
        return Update(sample_then_project, [LOSSES[self.loss], self.delta, self.G, step_size(self)])

    def _refuse(self, t, f):
        if self.loss == "logit" or not math.isfinite(f):
            super()._refuse(t, f)
        refuse_slope(self, t, "eta")
