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

import numpy as np
from numba import boolean, float64, int64, types

from klr_bench.estimators.core.jit import as_argument, compiled
from klr_bench.estimators.core.losses import softplus
from klr_bench.estimators.online import engine
from klr_bench.estimators.online.engine import FUNCTIONS, _fold, _terms
from klr_bench.estimators.online.state import FOLD_BELOW

RULE_OF_MANY_SIGNATURE = types.Tuple((boolean, float64))(float64, float64, float64, float64[::1])
"""``rule(z, r, u, parameters) -> (insert, c)``, with log-odds, gradient length over sigma(-z), and a uniform draw."""

rule_of_many = compiled(RULE_OF_MANY_SIGNATURE)
"""Decorator of an update rule for more than two classes."""


def _signature(real):
    function, vector, matrix = types.FunctionType(RULE_OF_MANY_SIGNATURE), float64[::1], float64[:, ::1]
    examples = types.Tuple((int64[::1], vector, vector, real[:, ::1], vector))
    return types.void(function, vector, float64, examples, int64, int64, matrix, _terms(real), _terms(real), FUNCTIONS)


@compiled(_signature)
def _recursion(rule, parameters, radius, examples, t, n_support, f, terms, block, functions):
    """Learn from a block of examples of M classes, one example after the other.

    `examples` are the classes y (b,) in {0, ..., M - 1}, draws (b,), factors (b,), and kernel values as in
    `engine._recursion`.  So is the rest, with one function per class: f (M, b), the sums so far, without the scale;
    `terms`; `block`; and `functions`, which are the same but for the first non-zero coefficient, with the last z in
    place of f(x), and mistakes and the refused example only in the first.
    """
    y, u, factors, gram, diagonal = examples
    new_coef, _, new_since, new_weights, new_inserted = block
    n_classes, first = len(f), functions[0]
    values, direction = np.empty(n_classes), np.empty(n_classes)
    scale, scale_sum, squared = first["scale"], first["scale_sum"], first["squared"]
    z, loss = first["last"], first["loss"]
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
            first["refused"] = t + i + 1
            break
        scale_sum += scale
        first["mistakes"] += values[right] <= largest
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
            first["refused"] = t + i + 1
            break
        norm = math.sqrt(squared)
        if norm > radius:
            scale *= radius / norm
            squared = radius * radius
        if scale < FOLD_BELOW:
            for k in range(n_classes):
                leading = functions[k]["leading"]
                functions[k]["leading"] = _fold(terms, k, leading, n_support, scale, scale_sum)
                _fold(block, k, 0, i + 1, scale, scale_sum)
                f[k, i + 1 :] *= scale
            scale, scale_sum = 1.0, 0.0
    for function in functions:
        function["scale"], function["scale_sum"], function["squared"] = scale, scale_sum, squared
        function["last"], function["loss"] = z, loss


class SoftmaxState(engine.OnlineState):
    """Engine of a softmax learner, with one row of coefficients per class, and its `update`."""

    def use(self, updates):
        """Set the update rule and its parameters, of the first of several equal updates."""
        self.groups, self.update = (), updates[0]

    def _run(self, y, u, factors, gram, diagonal, f, terms, block):
        rule, parameters, radius = self.update.rule_of_many, self.update.parameters, self.update.radius
        _recursion(
            as_argument(rule), np.array(parameters, dtype=np.float64), radius, (y, u, factors, gram, diagonal),
            self.t, len(self.numbers), f, terms, block, self.functions,
        )  # fmt: skip

    @property
    def n_insertions(self):
        """Number of insertions, counting each one only once for all classes."""
        return int(self.terms.inserted[0, : len(self.numbers)].sum())
