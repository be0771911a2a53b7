"""Block-wise execution of strategies that insert, remove and rescale support vectors.

A strategy is a compiled function of a `Book`.  It goes through the examples of a block with `decide`, `enter`, `drop`
and `shrink`, and returns how many it has processed.  None of this changes a kernel value: those of a block, with the
support vectors and with each other, are one matrix product, and f(x) is the product of a row with the coefficients.

    columns  0 ... n-1      the n <= B support vectors at the start of the block, one slot each
             n ... n+b-1    the b examples of the block; an inserted example keeps its coefficient here until the end
                            of the block

An example that entered when the sum of the scales was C_i, and is removed or changes its coefficient a_i at C, has
contributed a_i (C - C_i) to the sum of the f_t.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np
import scipy.sparse as sp
from numba import float64, int64, types

from klr_bench.estimators.core.jit import as_argument, compiled, read_only
from klr_bench.estimators.core.kernels import KERNELS
from klr_bench.estimators.core.rows import Growing, enlarged, growing_like, grown, stacked
from klr_bench.estimators.core.vectors import dot, settled, tie_of_sums
from klr_bench.estimators.kernel_values.dense import dense_values
from klr_bench.estimators.kernel_values.operands import nonnegative_diagonal, operands_of
from klr_bench.estimators.online.passes import BLOCK
from klr_bench.estimators.online.state import STATES, BlockState, count_example, decay

LARGE = 16_384
"""With a larger budget, blocks have SHORT rows, so that their kernel values fit into the cache."""
SHORT = 32
NEAR = 1e-3
"""Distance of f(x) from -1, 0 or 1, per unit of ||k(x, .)||, from which on rounding errors are not estimated."""

Book = namedtuple("Book", "values y u f coef average since length number slot column total entered state")
Book.__doc__ = """What a strategy reads and writes: b examples, v next victims, B slots, columns as above.

values (b + v, n + b)   kernel values of the examples, and of the v oldest support vectors, in order
y, u, f (b,)            labels -1.0 or +1.0; uniform draws; f(x) at the step of each example
coef, average, since    per column: a_i, 0 if and only if it is not in f; its contribution to the sum so far; C_i
length, number          per column: ||k(x_i, .)||, and the position among all inserted examples
slot                    per column that is in f: its slot
column (B,)             per slot: its column
total                   per inserted example: its contribution to the sum, once it is removed
entered                 numbers of the inserted examples of the chunk
state                   a `klr_bench.estimators.online.state.STATE`
"""
COLUMNS = Book._fields[4:13]
"""Names of the arrays of a `Book` that outlast a block; the first six are per column."""
_COLUMN_TYPES = types.Tuple((*[float64[::1]] * 4, *[int64[::1]] * 3, float64[::1], int64[::1]))


def _book(real):
    return types.NamedTuple([real[:, ::1], *[float64[::1]] * 3, *_COLUMN_TYPES, STATES.dtype], Book)


def _strategy(real):
    return int64(_book(real), float64[::1])


strategy = compiled(_strategy)
"""Decorator of a strategy: ``strategy(book, parameters) -> number of processed examples``."""


@compiled()
def f_at(book, row, i):
    """Return f(x) for the point x whose kernel values are in the given row of `book.values`.

    f contains the examples of the block before number i.
    """
    return book.state["scale"] * dot(book.coef, book.values[row], book.state["first"] + i)


@compiled()
def decide(book, i):
    """Begin the step for example i; return f(x_i), or nan if a value is not finite.

    f(x_i) is -1, 0 or 1 if it is so up to a rounding error, a share of the root of the sum of the squares of its terms.
    """
    value, m = f_at(book, i, i), book.state["first"] + i
    book.f[i], length = value, book.length[m]
    if settled(value, NEAR * length) != value:
        squares = 0.0
        for j in range(m):
            squares += (book.coef[j] * book.values[i, j]) ** 2
        value = settled(value, tie_of_sums(book.values) * book.state["scale"] * math.sqrt(squares))
    return value if count_example(book.y[i], value, 0.0, book.state) else math.nan


@compiled()
def enter(book, i, slot, c, value):
    """Insert example i of the block into f with coefficient c.

    `slot` is free, or its support vector has just been dropped; `value` is f(x_i).
    """
    state = book.state
    column = state["first"] + i
    book.coef[column], book.average[column], book.since[column] = c / state["scale"], 0.0, state["scale_sum"]
    book.number[column] = state["ever"]
    book.slot[column], book.column[slot] = slot, column
    state["squared"] += 2.0 * c * value + (c * book.length[column]) ** 2
    state["n"] = max(state["n"], slot + 1)
    book.entered[state["ever"]] = state["t"] - 1
    state["ever"] += 1


@compiled()
def drop(book, column):
    """Remove the support vector in `column` from f, but keep its contribution to the average.

    The caller updates the norm.
    """
    earned = book.average[column] + book.coef[column] * (book.state["scale_sum"] - book.since[column])
    book.total[book.number[column]] = earned
    book.coef[column] = 0.0


@compiled()
def shrink(book, phi):
    """Multiply the function f by the factor phi > 0."""
    book.state["squared"] *= phi * phi
    decay(phi, book.state["first"] + len(book.y), book.coef, book.average, book.since, book.state)


@compiled()
def _commit(book, right, left, block_left):
    """Move newly inserted examples from their temporary columns to their permanent slots."""
    first = book.state["first"]
    for slot in range(book.state["n"]):
        column = book.column[slot]
        if column < first:
            continue
        for values in (book.coef, book.average, book.since, book.length):
            values[slot] = values[column]
        book.number[slot] = book.number[column]
        right[:, slot], left[slot] = right[:, column], block_left[column - first]
        book.slot[slot], book.column[slot] = slot, slot


@compiled(int64(types.boolean, int64, int64, int64))
def n_victims(by_age, first, b, budget):
    """Return the number of oldest support vectors that may be removed during a block."""
    return min(first, max(b // 2, 1)) if by_age and first + b > budget else 0


def _block(real):
    matrix, vector = real[:, ::1], float64[::1]
    function, rows = types.FunctionType(_strategy(real)), types.UniTuple(vector, 3)
    return int64(function, vector, matrix, matrix, rows, matrix, matrix, _COLUMN_TYPES, STATES)


@compiled(_block)
def _learn_block(strategy, parameters, values, block_left, rows, left, right, columns, states):
    """Learn from a block with a compiled strategy; return the number of processed examples.

    `rows` are y, u and f of a `Book`, `columns` its COLUMNS.  block_left (b, d'), left (B, d') and right (d', B + b)
    are the operands of the examples, slots and columns.
    """
    book = Book(values, *rows, *columns, states[0])
    done = strategy(book, parameters)
    _commit(book, right, left, block_left)
    return done


def _pass(real):
    matrix, vector = real[:, ::1], float64[::1]
    sizes = types.Tuple((int64, int64, types.boolean))
    layout = types.Tuple((int64, types.boolean, float64, float64, int64, float64))
    operand, rows = read_only(real, 2), types.UniTuple(vector, 3)
    operands = types.Tuple((operand, operand, vector))
    function = types.FunctionType(_strategy(real))
    return types.void(function, vector, sizes, layout, operands, rows, matrix, matrix, _COLUMN_TYPES, STATES)


@compiled(_pass)
def _learn(strategy, parameters, sizes, layout, operands, rows, left, right, columns, states):
    """Learn from dense rows with a compiled strategy, block by block.

    `sizes` are the budget, the number of rows in a block, and whether f at the oldest examples is needed; `layout` is
    a `Packing`, and the number and the degree of the kernel; `operands` are left and right ones of the rows, and
    ||k(x, .)||.  The rest is as in `_learn_block`.
    """
    budget, block, by_age = sizes
    n_words, differ, per_bit, base, kernel, degree = layout
    queries, keys, lengths = operands
    y, u, f = rows
    coef, length, state, start = columns[0], columns[3], states[0], 0
    while start < len(y) and not state["refused"]:
        stop = min(start + block, len(y))
        first, b = state["n"], stop - start
        v = n_victims(by_age, first, b, budget)
        block_left = np.empty((b + v, queries.shape[1]), dtype=queries.dtype)
        block_left[:b] = queries[start:stop]
        for j in range(v):
            block_left[b + j] = left[(state["turns"] + j) % budget]
        right[:, first : first + b], length[first : first + b] = keys[:, start:stop], lengths[start:stop]
        coef[first : first + b] = 0.0
        new = right[:, : first + b].copy()
        values = dense_values(block_left, new, n_words, differ, per_bit, base, kernel, degree)
        state["first"] = first
        of_block = y[start:stop], u[start:stop], f[start:stop]
        start += _learn_block(strategy, parameters, values, block_left, of_block, left, right, columns, states)


class StrategyState(BlockState):
    """State of a learner that uses a strategy, kept between chunks of examples.

    Attributes: `strategy` and its `parameters`, the first of which is the budget; `decided`, f(x) of the examples of
    the last call of `learn`, each by the ones before it; `support`, the rows of all inserted examples, in order, and
    their `numbers` among all; `left` and `right`, the operands of slots and columns, if dense; the rest as in `Book`.
    """

    def __init__(self, kernel, X, budget, by_age):
        """Initialize the state for rows with as many columns as X, which may be dense or CSR.

        `by_age` is True if the strategy needs f at the oldest examples.
        """
        super().__init__()
        self.budget, self.by_age = budget, by_age
        self.sparse = sp.issparse(X)
        self.operands = operands_of(kernel, X)
        self.support, self.numbers = growing_like(X), Growing((0,), np.int64)
        self.left = np.empty((0, self._n_operand_columns(X)), dtype=X.dtype)
        self.right = self.left.T.copy()
        self.decided, self.coef, self.average, self.since, self.length, self.total = np.zeros((6, 0))
        self.number, self.slot, self.column, self.entered = np.zeros((4, 0), dtype=np.int64)

    def learn(self, X, y, u, *_):
        """Learn from the rows of X with labels y in {-1, 1} and uniform random numbers u."""
        size = BLOCK if self.budget <= LARGE else SHORT
        self._fit_operands(X)
        columns, rows = self._make_room(len(y), size), self.operands.rows(X)
        lengths = np.sqrt(nonnegative_diagonal(self.operands, rows))
        learn = self._learn_outside if self.operands.left_is_rows else self._learn_dense
        self.decided, done = np.zeros(len(y)), 0
        while done < len(y) and not self.refused:
            before, ever = self.t - done, self.n_inserted
            done += learn(columns, size, rows[done:], y[done:], u[done:], self.decided[done:], lengths[done:])
            if self.n_inserted > ever:
                entered = self.entered[ever : self.n_inserted]
                self.support.append(X[entered - before])
                self.numbers.append(entered)

    def _n_operand_columns(self, X):
        """Return the number of columns of a left operand, or 0 if the rows themselves are used."""
        return 0 if self.operands.left_is_rows else self.operands.left(X[:1]).shape[1]

    def _fit_operands(self, X):
        """If necessary, switch to operands that can represent X, and convert the support vectors."""
        operands = self.operands.fitting(X)
        if operands is self.operands:
            return
        self.operands = operands
        n, width = self.n_slots, self._n_operand_columns(X)
        rows = self.support.rows[self.number[:n]]
        self.left = np.zeros((len(self.left), width), dtype=X.dtype)
        self.right = np.zeros((width, self.right.shape[1]), dtype=X.dtype)
        if width:
            self.left[:n], self.right[:, :n] = operands.both(rows)

    def _make_room(self, n, size):
        """Make room for n examples; return the COLUMNS of a `Book`."""
        slots, ever = min(self.budget, self.n_slots + n), self.n_inserted + n
        self.left, self.column = grown(self.left, slots), grown(self.column, slots)
        if slots + size > len(self.coef):
            for name in COLUMNS[:6]:
                setattr(self, name, grown(getattr(self, name), slots + size))
            self.right = enlarged(self.right, (len(self.right), len(self.coef)))
        self.total, self.entered = grown(self.total, ever), grown(self.entered, ever)
        return tuple(getattr(self, name) for name in COLUMNS)

    def _learn_dense(self, columns, size, X, y, u, f, lengths):
        operands, kernel = self.operands, self.operands.kernel
        left, right = operands.both(X)
        layout = *operands.packing(X.dtype), KERNELS.index(kernel.name), float(kernel.degree)
        _learn(
            as_argument(self.strategy, X.dtype), self.parameters, (self.budget, size, self.by_age), layout,
            (left, np.ascontiguousarray(right), lengths), (y, u, f), self.left, self.right, columns, self.states,
        )  # fmt: skip
        return len(y)

    def _learn_outside(self, columns, size, X, y, u, f, lengths):
        """Learn from the first rows of X; return the number of rows learned.

        Their kernel values are computed outside of compiled code.
        """
        first, b = self.n_slots, min(size, len(y))
        rows = stacked([self.support.rows[self.number[:first]], X[:b]])
        victims = (self.states["turns"].item() + np.arange(n_victims(self.by_age, first, b, self.budget))) % self.budget
        values = self.operands.values(rows[np.r_[first : first + b, victims]], self.operands.right(rows))
        self.coef[first : first + b], self.length[first : first + b] = 0.0, lengths[:b]
        self.states["first"] = first
        return _learn_block(
            as_argument(self.strategy, X.dtype), self.parameters, values, np.empty((b, 0), X.dtype),
            (y[:b], u[:b], f[:b]), self.left, self.right, columns, self.states,
        )  # fmt: skip
