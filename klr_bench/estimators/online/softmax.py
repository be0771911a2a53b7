"""Online kernel logistic regression with more than two classes.

A learner keeps F = (F_1, ..., F_M), one function per class, with sum_k F_k = 0, and P(k|x) is the softmax of F(x).  Let
z be the log-odds of the right class y, and q_k the shares of the others, so that P(k|x) = (1 - sigma(z)) q_k:

    z = F_y - log sum_{k != y} e^{F_k}        -log P(y|x) = log(1 + e^-z)        D = dz/dF = e_y - q

As with two classes, a rule sees z; it answers (insert, c), and then

    F <- project_R( F + (c/2) D k(x, .) ),     ||F||^2 = 2 sum_k ||F_k||^2

With two classes this is the binary learner: D = e_y - e_other, f = F_2 - F_1 gets y c k(x, .), and ||F|| is ||f||.  In
this norm the gradient of the loss has the length r sigma(-z) <= 1 with r = sqrt((1 + |q|^2) / 2), which rules that
sample by the derivative use instead.  The rest is as in `klr_bench.estimators.online.engine`, with one row per class.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY

import numpy as np
from numba import boolean, float32, float64, int64, types

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.losses import softplus
from klr_bench.estimators.core.parameters import COUNT, estimator, parameter
from klr_bench.estimators.online import engine
from klr_bench.estimators.online.base import OnlineKernelClassifier
from klr_bench.estimators.online.engine import _fold, _stores
from klr_bench.estimators.online.one_row import Published
from klr_bench.estimators.online.state import FOLD_BELOW

SUFFICIENT_LOSS = 4.0
"""Sum of losses, multiplied by the step size, after which passes end, as a multiple of the loss of guessing.

On small noisy data further passes fit the noise.
"""

RULE_SIGNATURE = types.Tuple((boolean, float64))(float64, float64, float64, float64[::1])
"""``rule(z, r, u, parameters) -> (insert, c)``, with log-odds, gradient length over sigma(-z), and a uniform draw."""

rule_of_many = compiled(RULE_SIGNATURE)
"""Decorator of an update rule for more than two classes."""


def _signature(real):
    vector, matrix = float64[::1], float64[:, ::1]
    return types.void(
        types.FunctionType(RULE_SIGNATURE), vector, float64, int64[::1], vector, vector, real[:, ::1], vector,
        int64, int64, matrix, _stores(real), _stores(real), matrix, int64[:, ::1], float64,
    )  # fmt: skip


@compiled([_signature(float32), _signature(float64)])
def _recursion(
    rule, parameters, radius, y, u, factors, gram, diagonal, t, n_support, f, stores, block, scalars, counts, tiny
):  # fmt: skip
    """Learn from a block of examples of M classes, one example after the other.

    The b examples have the classes y (b,) in {0, ..., M - 1}.  As in `engine._recursion`, with factors (b,), and with
    one row per class: f (M, b), the sums so far, without the scale; `stores`; `block`; `scalars` (M, 6), the same for
    all classes, with the last z in place of f(x); and `counts`, where mistakes and the refused example are those of row
    0.
    """
    coef, average, since, weights, _ = stores
    new_coef, new_average, new_since, new_weights, new_inserted = block
    n_classes = len(f)
    values, direction = np.empty(n_classes), np.empty(n_classes)
    scale, scale_sum, squared, z, loss = scalars[0, 0], scalars[0, 1], scalars[0, 2], scalars[0, 3], scalars[0, 4]
    for i in range(len(y)):
        right, largest, total = y[i], -math.inf, 0.0
        for k in range(n_classes):
            values[k] = scale * f[k, i]
            if k != right:
                largest = max(largest, values[k])
        for k in range(n_classes):
            direction[k] = -math.exp(values[k] - largest) if k != right else 0.0
            total -= direction[k]
        z = values[right] - largest - math.log(total)
        direction /= total
        direction[right] = 1.0
        length = math.sqrt(0.5 * np.sum(direction * direction))
        insert, c = rule(z, length, u[i], parameters)
        insert, c = insert and factors[i] > 0.0, c * factors[i]
        if not math.isfinite(z + c):
            counts[0, 2] = t + i + 1
            break
        scale_sum += scale
        counts[0, 0] += values[right] <= largest
        loss += softplus(-z)
        if insert:
            for k in range(n_classes):
                a = 0.5 * c * direction[k] / scale
                new_coef[k, i], new_since[k, i], new_weights[k, i], new_inserted[k, i] = a, scale_sum, a, 1
                later, kernel = f[k, i + 1 :], gram[i, i + 1 :]  # slices let the compiler vectorize the loop below
                for j in range(len(later)):
                    later[j] += a * kernel[j]
            squared += 2.0 * c * np.sum(direction * values) + c * c * length * length * diagonal[i]
            squared = max(squared, 0.0)
        if not math.isfinite(squared):
            counts[0, 2] = t + i + 1
            break
        norm = math.sqrt(squared)
        if norm > radius:
            scale *= radius / norm
            squared = radius * radius
        if scale < FOLD_BELOW:
            for k in range(n_classes):
                counts[k, 1] = _fold(
                    coef[k], average[k], since[k], weights[k], counts[k, 1], n_support, scale, scale_sum, tiny
                )
                _fold(new_coef[k], new_average[k], new_since[k], new_weights[k], 0, i + 1, scale, scale_sum, tiny)
                f[k, i + 1 :] *= scale
            scale, scale_sum = 1.0, 0.0
    for k in range(n_classes):
        scalars[k, 0], scalars[k, 1], scalars[k, 2], scalars[k, 3], scalars[k, 4] = scale, scale_sum, squared, z, loss


class SoftmaxState(engine.OnlineState):
    """Engine of a softmax learner, with one row of coefficients per class, and its `update`."""

    groups = ()

    def __init__(self, kernel, X, n_classes):
        super().__init__(kernel, X, range(n_classes))

    def _run(self, y, u, factors, gram, diagonal, f, stores, block, tiny):
        rule, parameters, radius = self.update.rule_of_many, self.update.parameters, self.update.radius
        _recursion(
            rule, np.array(parameters, dtype=np.float64), radius, y, u, factors, gram, diagonal,
            self.t, len(self.support), f, stores, block, self.scalars, self.counts, tiny,
        )  # fmt: skip

    def n_insertions(self):
        """Return the number of insertions, counting each one only once for all classes."""
        return int(self.inserted.columns[0].sum())


@estimator
class SoftmaxKernelClassifier(OnlineKernelClassifier):
    """Online kernel classifier that supports the logistic loss with two or more classes.

    With two classes, and with another loss, it is an `OnlineKernelClassifier`.  With more, f(x) has one value per
    class, which sum to 0, and the probabilities are their softmax.  An example is a mistake if the value of its class
    is not the largest.

    The `Update` of a subclass has a `rule_of_many`, and it may set `_most_passes`.

    Parameters
    ----------
    R : float, default=1e3
        Radius > 0 of the ball in the kernel's space that f is projected into; `inf` for no projection.  Zhang et al.
        choose it among 1, 10, ..., 1e5 by cross-validation, and take 1e5 for RCV1.
    average : bool, default=True
        Predict with the average of the f_t, which the papers' theorems and tables are about; otherwise with the last
        one, which is better where the rows do not come in random order (docs/scale/streams.md).
    n_epochs : int or None, default=None
        Passes of `fit` over the rows, >= 1; the papers make one.  None makes passes until eta times the sum of the
        logistic losses, each before its own step, exceeds that of guessing, n_samples log(n_classes), four times: fewer
        on noisy data.  They are at least 2 and at most 20 for `OSKL` and `MarginKLR`, 10 for the others, and 100,000 /
        n_samples where there are many rows.  A row that is inserted in several passes is one support vector, and the
        average is that of the last pass.

    Attributes
    ----------
    n_mistakes_ : int
        Number of examples that f_t misclassified or left undecided before their own step.
    cumulative_loss_ : float
        sum_t -log P(y_t|x_t), with the f_t before the step t: the loss in the papers' bounds.  Examples of all passes
        count, whatever their weights.  Only with the logistic loss.
    """

    _: KW_ONLY
    average: bool = parameter("boolean", default=True)
    n_epochs: int | None = parameter(COUNT, None, default=None)

    cumulative_loss_ = Published()

    def _scores(self, f):
        return f if self._is_softmax() else super()._scores(f)

    def _passes_suffice(self):
        if self.n_epochs is not None or not self._is_logistic():
            return False
        of_guessing = self._n_first * math.log(len(self.classes_))
        return self._step_size() * self._state.scalars[0, 4] > SUFFICIENT_LOSS * of_guessing

    def pass_key(self, n_classes):
        """Return a key as the base class does, or None if `n_epochs` is None."""
        return None if self.n_epochs is None else super().pass_key(n_classes)

    def _go_on_with(self, classes):
        super()._go_on_with(classes)
        if self._has_many() and isinstance(self._state, SoftmaxState) != self._is_softmax():
            message = f"loss={self.loss!r} differs from the loss of the first call; call fit to start again."
            raise ValueError(message)

    def progress(self):
        """Return a dict with the metrics to store at a checkpoint, including the logistic loss."""
        return super().progress() | self._losses()

    def summary(self):
        """Return the summary of the base class and, for the logistic loss, the cumulative loss."""
        return super().summary() | self._losses()

    def _losses(self):
        return {"cumulative_loss": self.cumulative_loss_} if self._is_logistic() else {}

    def _publish(self):
        super()._publish()
        if self._is_logistic():
            self.cumulative_loss_ = float(self._state.scalars[0, 4])

    def _is_softmax(self):
        return self._has_many() and self._is_logistic()

    def _signs(self, y):
        """Return the labels as -1.0 and +1.0, or as class numbers 0, 1, ... for the softmax."""
        if not self._is_softmax():
            return super()._signs(y)
        return np.searchsorted(self.classes_, y)

    def _engine(self, X, weights):
        if not self._is_softmax():
            return super()._engine(X, weights)
        engine = self._state or SoftmaxState(self._kernel(X, weights), self._rows(X), len(self.classes_))
        engine.update = self._update()
        return engine

    def _is_logistic(self):
        return getattr(self, "loss", "logit") == "logit"
