"""Compute online updates exactly in blocks, for one or many learners at a time.

At step t, with f_1 = 0, a learner sees (x_t, y_t), and its rule answers (insert, s_t, c_t):

    f_{t+1} = project_R( s_t f_t + c_t k(x_t, .) ),      project_R(f) = min(1, R / ||f||) f
    ||s f + c k_t||^2 = s^2 ||f||^2 + 2 s c f(x_t) + c^2 k(x_t, x_t)

The kernel values of a block of examples with all support vectors are matrix products in tiles that stay in the cache;
the recursion then runs on the block's own kernel matrix, with the decisions of a loop over single examples.  Learners
with the same examples and kernel share the tiles: a tile is multiplied by a matrix of coefficients, one row per
learner.  Learners that differ only in R share their state until the norm exceeds the smaller R.

f_t = S_t sum_i a_i k(x_i, .): shrinking and projection only change the scale S.  C is the sum of the scales so far, C_i
its value when example i was inserted; its weight in the average of the f_t is proportional to a_i (C - C_i).
"""

from __future__ import annotations

import copy
import math

import numpy as np
import scipy.sparse as sp
from numba import boolean, float64, from_dtype, int64, types, uint32

from klr_bench.estimators.core.expansion import evaluate
from klr_bench.estimators.core.jit import as_argument, compiled
from klr_bench.estimators.core.losses import softplus
from klr_bench.estimators.core.rows import Growing, enlarged, growing_like
from klr_bench.estimators.core.vectors import settled, tie_of_sums
from klr_bench.estimators.kernel_values.operands import operands_of
from klr_bench.estimators.online.passes import Engine
from klr_bench.estimators.online.state import FOLD_BELOW

BLOCK = 256
"""Number of examples per block."""

RULE_SIGNATURE = types.Tuple((boolean, float64, float64))(float64, float64, float64, int64, float64[::1])
"""``rule(y, f, u, t, parameters) -> (insert, s, c)``, with label, f_t(x_t), a uniform draw, and t = 1, 2, ..."""

rule = compiled(RULE_SIGNATURE)
"""Decorator of the update rule in an algorithm's module."""

FUNCTION = np.dtype(
    [
        *((name, np.float64) for name in ("scale", "scale_sum", "squared", "last", "loss", "squares")),
        *((name, np.int64) for name in ("mistakes", "leading", "refused")),
    ]
)
"""State of a function f: the scale of its coefficients; the sum of the scales so far; ||f||^2; the last f(x), or the
log-odds of more than two classes; the sum of the logistic losses, each before its own step; the sum of the squared
norms of the terms of f; the number of mistakes; the first non-zero coefficient; and the example that was refused, or 0.
"""
FUNCTIONS = types.Array(from_dtype(FUNCTION), 1, "C")
_SMALLEST = 1e-290  # Coefficients below this become 0, because subnormal numbers are slow and do not affect f(x).


@compiled()
def _tiny(weights):
    """Return the smallest normal number in the precision of the weights."""
    return 2.0**-126 if weights.itemsize == 4 else 2.0**-1022


@compiled()
def _fold(terms, m, first, n, scale, scale_sum):
    """Multiply the coefficients of function m by their common scale factor, which becomes 1.

    Coefficients first, ..., n-1 are changed, and belong to the scale sum 0.  Returns the index of the first nonzero
    coefficient.
    """
    coef, average, since, weights, leading = terms[0][m], terms[1][m], terms[2][m], terms[3][m], first
    tiny = _tiny(weights)
    for i in range(first, n):
        average[i] += coef[i] * (scale_sum - since[i])
        since[i] = 0.0
        coef[i] *= scale
        if abs(coef[i]) < _SMALLEST:
            coef[i] = 0.0
        weights[i] = coef[i] if abs(coef[i]) >= tiny else 0.0
        if leading == i and coef[i] == 0.0:
            leading = i + 1
    return leading


def _terms(real):
    matrix = float64[:, ::1]
    return types.Tuple((matrix, matrix, matrix, real[:, ::1], uint32[:, ::1]))


@compiled()
def _copy_row(terms, n, m, new):
    coef, average, since, weights, inserted = terms
    coef[new, :n], average[new, :n], since[new, :n] = coef[m, :n], average[m, :n], since[m, :n]
    weights[new, :n], inserted[new, :n] = weights[m, :n], inserted[m, :n]


def _signature(real):
    function = types.FunctionType(RULE_SIGNATURE)
    vector, numbers, matrix = float64[::1], int64[::1], float64[:, ::1]
    group = types.Tuple((numbers, matrix, vector, numbers))
    examples = types.Tuple((matrix, matrix, matrix, real[:, ::1], vector))
    return types.void(function, group, examples, int64, int64, numbers, matrix, _terms(real), _terms(real), FUNCTIONS)


@compiled(_signature)
def _recursion(rule, group, examples, t, n_support, row, f, terms, block, functions):
    """Process a block of examples with all learners that have the same update rule.

    `group` are the numbers of the learners, with parameters (n, p), radii and the example to begin with.  `examples`
    are labels y, draws u and factors of the steps c, (n_learners, b), and the block's kernel values: gram (b, b), and
    its diagonal (b,).

    row (n_learners,) gives the function of each learner: its record in `functions`, and its row in f (n_learners, b),
    the sums so far, without the scale, and in (coef, average, since, weights, inserted), the first `n_support` columns
    of `terms` for earlier examples and `block` for those of the block.  A learner refuses an example if its rule
    answers c = nan or something is not finite.

    The rule gets f(x) = -1, 0 or 1 if f(x) is that up to a rounding error, which is a share of the root of the sum of
    the squared norms.

    Learners that share a row are adjacent, by decreasing radius.  Only the first of them runs.  When its norm exceeds
    the radius of another, that learner continues in a row of its own.
    """
    learners, parameters, radii, begin = group
    y, u, factors, gram, diagonal = examples
    new_coef, _, new_since, new_weights, new_inserted = block
    for k in range(len(learners)):
        m = row[learners[k]]
        if functions[m]["refused"] or (k > 0 and row[learners[k - 1]] == m):
            continue
        last = k
        while last + 1 < len(learners) and row[learners[last + 1]] == m:
            last += 1
        scale, scale_sum = functions[m]["scale"], functions[m]["scale_sum"]
        squared, squares = functions[m]["squared"], functions[m]["squares"]
        radius, sums, labels, draws, step_factors = radii[k], f[m], y[learners[k]], u[learners[k]], factors[learners[k]]
        for i in range(begin[k], len(labels)):
            value = scale * sums[i]
            decided = settled(value, tie_of_sums(gram) * math.sqrt(squares * abs(diagonal[i])))
            insert, shrink, c = rule(labels[i], decided, draws[i], t + i + 1, parameters[k])
            insert, c = insert and step_factors[i] > 0.0, c * step_factors[i]
            functions[m]["last"] = value
            if not math.isfinite(value + c):
                functions[m]["refused"] = t + i + 1
                break
            scale_sum += scale
            functions[m]["mistakes"] += labels[i] * decided <= 0.0
            functions[m]["loss"] += softplus(-labels[i] * value)
            scale *= shrink
            squared *= shrink * shrink
            squares *= shrink * shrink
            if insert:
                a = c / scale
                squares += c * c * abs(diagonal[i])
                new_coef[m, i], new_since[m, i], new_weights[m, i], new_inserted[m, i] = a, scale_sum, a, 1
                later, values = sums[i + 1 :], gram[i, i + 1 :]  # slices let the compiler vectorize the loop below
                for j in range(len(later)):
                    later[j] += a * values[j]
                squared = max(squared + 2.0 * shrink * c * value + c * c * diagonal[i], 0.0)
            if not math.isfinite(squared):
                functions[m]["refused"] = t + i + 1
                break
            norm = math.sqrt(squared)
            while last > k and norm > radii[last]:
                new = 0
                for taken in row:
                    new = max(new, taken + 1)
                row[learners[last]], begin[last] = new, i + 1
                _copy_row(terms, n_support, m, new)
                _copy_row(block, len(labels), m, new)
                f[new], functions[new] = f[m], functions[m]
                functions[new]["scale"], functions[new]["scale_sum"] = scale * radii[last] / norm, scale_sum
                functions[new]["squared"] = radii[last] * radii[last]
                functions[new]["squares"] = squares * (radii[last] / norm) ** 2
                last -= 1
            if norm > radius:
                scale *= radius / norm
                squared = radius * radius
                squares *= (radius / norm) ** 2
            if scale < FOLD_BELOW:
                leading = functions[m]["leading"]
                functions[m]["leading"] = _fold(terms, m, leading, n_support, scale, scale_sum)
                _fold(block, m, 0, i + 1, scale, scale_sum)
                sums[i + 1 :] *= scale
                scale, scale_sum = 1.0, 0.0
        functions[m]["scale"], functions[m]["scale_sum"] = scale, scale_sum
        functions[m]["squared"], functions[m]["squares"] = squared, squares


def _keep_signature(real):
    return int64[::1](_terms(real), _terms(real), int64)


@compiled(_keep_signature)
def _keep(block, terms, n):
    """Append the columns of inserted examples to `terms`; return their indices in the block."""
    coef, average, since, weights, inserted = terms
    new_coef, new_average, new_since, new_weights, new_inserted = block
    new = np.empty(new_inserted.shape[1], dtype=np.int64)
    m = 0
    for i in range(len(new)):
        if np.any(new_inserted[:, i]):
            new[m] = i
            m += 1
    new = new[:m]
    for k in range(len(coef)):
        for j in range(m):
            coef[k, n + j], average[k, n + j], since[k, n + j] = (
                new_coef[k, new[j]],
                new_average[k, new[j]],
                new_since[k, new[j]],
            )
            weights[k, n + j], inserted[k, n + j] = new_weights[k, new[j]], new_inserted[k, new[j]]
    return new


def _row_signature(real):
    vector, matrix = float64[::1], float64[:, ::1]
    return int64(
        types.FunctionType(RULE_SIGNATURE), matrix, vector, vector, vector, real[:, ::1], vector, int64, int64, matrix,
        _terms(real), FUNCTIONS,
    )  # fmt: skip


@compiled(_row_signature)
def _learn_one(rule, parameters, radii, y, u, gram, diagonal, t, n_support, f, terms, functions):
    """Process one example with one learner; return the number of inserted examples.

    The arguments are those of `_recursion` and `_keep`.
    """
    shape, numbers = (1, 1), np.zeros((2, 1), dtype=np.int64)
    block = (
        np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=gram.dtype),
        np.zeros(shape, dtype=np.uint32),
    )  # fmt: skip
    examples = y.reshape(shape), u.reshape(shape), np.ones(shape), gram, diagonal
    group = numbers[0], parameters, radii, numbers[1]
    _recursion(rule, group, examples, t, n_support, numbers[0], f, terms, block, functions)
    return len(_keep(block, terms, n_support))


def _merge_signature(real):
    matrix = float64[:, ::1]
    merged = types.Tuple((int64[::1], matrix, matrix, matrix, real[:, ::1], uint32[:, ::1]))
    return merged(int64[::1], float64[::1], _terms(real))


@compiled(_merge_signature)
def _merge(numbers, sums, terms):
    """Merge the columns of repeated examples, which have the same row number, by adding them.

    Returns the first place of each number in sorted order, and matrices like `terms` with the merged columns.
    """
    coef, average, since, weights, inserted = terms
    tiny = _tiny(weights)
    first = np.empty_like(numbers)
    place = np.empty_like(numbers)
    m = 0
    for i in np.argsort(numbers, kind="mergesort"):
        if m == 0 or numbers[i] != numbers[first[m - 1]]:
            first[m] = i
            m += 1
        place[i] = m - 1
    shape = coef.shape
    new_coef, new_average, new_since = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    new_weights, new_inserted = np.zeros(shape, dtype=weights.dtype), np.zeros(shape, dtype=inserted.dtype)
    for k in range(len(coef)):
        for i in range(len(numbers)):
            new_coef[k, place[i]] += coef[k, i]
            new_average[k, place[i]] += average[k, i] + coef[k, i] * (sums[k] - since[k, i])
            new_inserted[k, place[i]] += inserted[k, i]
        for j in range(m):
            new_since[k, j] = sums[k]
            new_weights[k, j] = new_coef[k, j] if abs(new_coef[k, j]) >= tiny else 0.0
    return first[:m], new_coef, new_average, new_since, new_weights, new_inserted


class Terms:
    """Matrices with one row per function, one column per support vector, and spare columns.

    Attributes: `coef`, without the scale; `average`, the sum of the coefficients up to `since`, a sum of scales;
    `weights`, the coefficients in the kernel's precision; `inserted`, how often an example was inserted.
    """

    def __init__(self, n, real):
        self.coef, self.average, self.since = np.zeros((3, n, 0))
        self.weights, self.inserted = np.zeros((n, 0), real), np.zeros((n, 0), np.uint32)

    def arrays(self, n_columns=0):
        """Return the matrices, enlarged if they have fewer than `n_columns` columns."""
        room = self.coef.shape[1]
        if n_columns > room:
            shape = len(self.coef), max(n_columns, 2 * room)
            for name, matrix in vars(self).items():
                setattr(self, name, enlarged(matrix, shape))
        return self.coef, self.average, self.since, self.weights, self.inserted

    def replace(self, matrices):
        """Replace the matrices by others."""
        self.coef, self.average, self.since, self.weights, self.inserted = matrices


class OnlineState(Engine):
    """Engine of online learners with the same examples and kernel, one or many.

    Attributes: `groups`, their updates (see `use`); `support` and `left`, the examples that any of them
    has inserted, as rows and operands; `row`, `functions` and `terms`, as in `_recursion`; `numbers`, which rows the
    examples are; `t` examples seen, `averaged_from` before the average begins.
    """

    chunk = watched_chunk = BLOCK

    def __init__(self, kernel, X, row=(0,)):
        """Initialize the state for rows with the layout, dtype and number of columns of X.

        X is dense or CSR, with at least one row.  row (n_learners,) is the result of `shared_rows`.
        """
        self.row = np.array(row)
        self.sparse = sp.issparse(X)
        self.operands = operands_of(kernel, X)
        self._hold(X[:0])
        self.functions = np.zeros(len(self.row), FUNCTION)
        self.functions["scale"] = 1.0
        self.terms, self.numbers = Terms(len(self.row), X.dtype), Growing((0,), np.int64)
        self.t = self.averaged_from = 0

    def _hold(self, rows):
        self.support = self.operands.store(rows).append(rows)
        self.left = self.support
        if not self.operands.left_is_rows:
            left = self.operands.left(rows)
            self.left = growing_like(left).append(left)

    def __getstate__(self):
        terms = copy.copy(self.terms)
        terms.replace([np.ascontiguousarray(matrix[:, : len(self.numbers)]) for matrix in terms.arrays()])
        return super().__getstate__() | {"terms": terms}  # without the spare columns

    def use(self, updates):
        """Set the `Update` of each learner.

        `groups` becomes a list of (rule, learner indices, parameters, radii), where learners that differ only in their
        radius are adjacent, by decreasing radius.
        """
        members, self.groups = {}, []
        for i, update in enumerate(updates):
            members.setdefault(update.rule, []).append((tuple(update.parameters), update.draws, -update.radius, i))
        for rule_of_group, learners in members.items():
            parameters, _, radii, numbers = map(np.array, zip(*sorted(learners), strict=True))
            self.groups.append((as_argument(rule_of_group), numbers, parameters.astype(float), -radii.astype(float)))

    def learn(self, X, y, u, numbers=None, factors=None):
        """Learn from the rows of X with labels y in {-1, 1} and uniform random numbers u.

        X has the shape (b, d); u and the factors have the shape (n_learners, b), or (b,) for all learners.
        """
        b, n = X.shape[0], len(self.numbers)
        operands = self.operands.fitting(X)
        if operands is not self.operands:
            self.operands = operands
            self._hold(self.support.rows)
        if b == len(self.row) == len(self.groups) == 1 and numbers is factors is None and not operands.left_is_rows:
            self._learn_one(*self.groups[0], X, y, u)
            return
        rows = operands.rows(X)
        left, right = operands.both(rows)
        gram = np.ascontiguousarray(operands.values(left, right))
        n_rows, shape = max(self.row.tolist()) + 1, (len(self.row), b)
        terms, f = self.terms.arrays(n + b), np.zeros(shape)
        f[:n_rows] = operands.expand(self.left.rows, self.terms.weights[:n_rows, :n], right)
        coef, average, since = np.zeros((3, *shape))
        block = coef, average, since, np.zeros(shape, X.dtype), np.zeros(shape, np.uint32)
        factors = np.ones(b) if factors is None else factors
        self._run(y, u, factors, gram, operands.diagonal(rows), f, terms, block)
        new = _keep(block, terms, n)
        self.support.append(X[new])
        if not operands.left_is_rows:
            self.left.append(left[new])
        self.numbers.append((np.arange(self.t, self.t + b) if numbers is None else numbers)[new])
        self.t += b

    def _learn_one(self, rule, _, parameters, radii, X, y, u):
        """Learn from one row as `learn` does, in less time."""
        rows, n = self.operands.rows(X), len(self.numbers)
        left, right = self.operands.both(rows)
        terms = self.terms.arrays(n + 1)
        f = self.operands.expand(self.left.rows, self.terms.weights[:, :n], right)
        inserted = _learn_one(
            rule, parameters, radii, y, u, np.zeros((1, 1), X.dtype), self.operands.diagonal(rows), self.t, n, f, terms,
            self.functions,
        )  # fmt: skip
        if inserted:
            self.support.append(X)
            self.left.append(left)
            self.numbers.append([self.t])
        self.t += 1

    def average_from_here(self):
        """Start a new average of the decision function, which ignores all earlier steps."""
        self.terms.average[:] = 0.0
        self.terms.since[:] = self.functions["scale_sum"][:, None]
        self.averaged_from = self.t

    def merge(self):
        """Merge support vectors that are copies of the same row, and sort them by row index.

        Coefficients, and weights in the average, are added: no f_t and no average changes, but for rounding.
        """
        sums, terms = self.functions["scale_sum"].copy(), self.terms
        first, *merged = _merge(self.numbers.rows, sums, terms.arrays())
        terms.replace(merged)
        for rows in [self.numbers, self.support, *([] if self.left is self.support else [self.left])]:
            rows.keep(first)
        self.functions["leading"] = 0

    def _run(self, y, u, factors, gram, diagonal, f, terms, block):
        arguments = np.empty((3, *f.shape))
        arguments[0], arguments[1], arguments[2] = y, u, factors
        examples = *arguments, gram, diagonal
        for rule, learners, parameters, radii in self.groups:
            group = learners, parameters, radii, np.zeros_like(learners)
            _recursion(rule, group, examples, self.t, len(self.numbers), self.row, f, terms, block, self.functions)

    @property
    def n_insertions(self):
        """Number of insertions of support vectors, summed over all learners."""
        return int(self.terms.inserted[self.row, : len(self.numbers)].sum())

    @property
    def refused(self):
        """1-based index of the example at which each learner failed, or 0 if none."""
        return self.functions["refused"][self.row]

    def failure(self):
        """Return the example at which a learner failed, or 0, and its f(x)."""
        functions = self.functions[self.row]
        failed = functions[np.argmax(functions["refused"] > 0)]
        return int(failed["refused"]), float(failed["last"])

    def coefficients(self, row=None, *, average):
        """Return the averaged or last coefficients of all learners, or of some rows, (n, n_support)."""
        m, n, terms = self.row if row is None else row, len(self.numbers), self.terms
        coef, functions = terms.coef[m, :n], self.functions[m][:, None]
        if average:
            total = terms.average[m, :n] + coef * (functions["scale_sum"] - terms.since[m, :n])
            return total / (self.t - self.averaged_from)
        return coef * functions["scale"]

    def decide(self, weights, X):
        """Evaluate k functions at the rows of X; return a float64 array of shape (k, n_samples).

        `weights` (k, n) are the coefficients of the functions for the n support vectors.
        """
        operands = self.operands.fitting(X)
        left = self.left.rows if operands is self.operands else operands.left(self.support.rows)
        return evaluate(operands, left, weights, X)

    def alone(self, i):
        """Return the state that learner i would have if it had been trained alone."""
        m = self.row[i]
        rows = np.flatnonzero(self.terms.inserted[m, : len(self.numbers)])
        state = copy.copy(self)
        state.row = np.zeros(1, dtype=int)
        state._hold(self.support.take(rows))
        state.numbers = Growing((0,), np.int64).append(self.numbers.rows[rows])
        state.terms = copy.copy(self.terms)
        state.terms.replace([matrix[m : m + 1, rows] for matrix in self.terms.arrays()])
        state.functions = self.functions[m : m + 1].copy()
        state.functions["leading"] = 0  # the indices have changed
        return state
