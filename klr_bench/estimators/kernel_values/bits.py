"""Detect two-valued features, store them as bits, and count the bits.

Where each of k features has the values a_j and a_j + v, with one v for all, the squared distance of two rows in these
features is v^2 times the number of bits in which they differ; and where all a_j are 0, their product is v^2 times the
number of bits that both have.  A loop over words of bits takes a fraction of the time of a matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numba import boolean, float32, float64, int64, uint32, uint64, void

from klr_bench.estimators.core.jit import compiled, instructions, read_only
from klr_bench.estimators.core.rows import Growing

LOOKED_AT = 1024
"""Number of rows in which two-valued features are detected; later rows may have other values."""
PACKED_AT_ONCE = 4096
"""Number of rows whose bits are unpacked at a time."""
SAME_STEP = 8
"""Relative difference, as a multiple of the machine epsilon, up to which two steps count as equal."""
WORDS = {np.dtype(np.float32): np.dtype(np.uint32), np.dtype(np.float64): np.dtype(np.uint64)}
"""Integer type of a word of bits, as wide as the floating-point type."""

FOUR = 4
"""Number of words processed per loop iteration, so that counts are loaded and stored rarely."""


@dataclass(frozen=True)
class TwoValued:
    """Description of the features of a data set that take only two values.

    `columns` (k,) holds the column indices of these features. Each takes the value `base` or `other`, which differ by
    `step`. The features `rest` (d - k,) may have any value.
    """

    columns: np.ndarray
    base: np.ndarray
    other: np.ndarray
    step: float
    rest: np.ndarray

    @cached_property
    def is_all(self):
        """True if all features take only two values."""
        return len(self.rest) == 0

    @cached_property
    def in_csr(self):
        """True if each stored entry of a CSR matrix corresponds to a set bit.

        This requires that all features have two values and all bases are 0.
        """
        return self.is_all and not self.base.any()

    def n_words(self, dtype):
        """Return the number of words that hold the bits of one row.

        A word is as wide as a number of the floating-point type `dtype`.
        """
        return -(-len(self.columns) // (8 * WORDS[dtype].itemsize))

    def misfits(self, X):
        """Return a mask of the supposedly two-valued features that have a third value in X."""
        if sp.issparse(X) and self.in_csr:
            wrong = (X.data != self.other[X.indices]) & (X.data != 0)
            return np.isin(self.columns, X.indices[wrong])
        values = self._values(X)
        fits = values == self.base
        fits |= values == self.other
        return ~fits.all(axis=0)

    def without(self, misfits):
        """Return a copy that no longer treats the features selected by a mask as two-valued."""
        keep = ~misfits
        rest = np.sort(np.concatenate([self.rest, self.columns[misfits]]))
        return TwoValued(self.columns[keep], self.base[keep], self.other[keep], self.step, rest)

    def pack(self, X):
        """Convert the two-valued features of the rows of X to bits, packed into words."""
        word = WORDS[X.dtype]
        words = np.zeros((X.shape[0], self.n_words(X.dtype) * word.itemsize), dtype=np.uint8)
        for start in range(0, X.shape[0], PACKED_AT_ONCE):
            rows = slice(start, start + PACKED_AT_ONCE)
            packed = np.packbits(self._bits(X[rows]), axis=1, bitorder="little")
            words[rows, : packed.shape[1]] = packed
        return words.view(word)

    def unpack(self, words):
        """Convert words of bits back to the values of the two-valued features."""
        bits = np.unpackbits(words.view(np.uint8), axis=1, count=len(self.columns), bitorder="little")
        return np.where(bits.astype(bool), self.other, self.base)

    def _bits(self, X):
        if not (sp.issparse(X) and self.in_csr):
            return self._values(X) == self.other
        bits = np.zeros(X.shape, dtype=bool)
        bits[np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices] = X.data != 0
        return bits

    def _values(self, X):
        if sp.issparse(X):
            X = X.toarray()
        return X if self.is_all else X[:, self.columns]


class PackedRows:
    """Growing store of rows whose two-valued features are kept as bits."""

    def __init__(self, features, like):
        """Create an empty store for rows with the layout and the data type of the array `like`."""
        self._features, self._sparse, self.dtype = features, sp.issparse(like), like.dtype
        self._words = Growing((0, features.n_words(like.dtype)), WORDS[like.dtype])
        self._rest = Growing((0, len(features.rest)), like.dtype)

    def __len__(self):
        return len(self._words)

    def append(self, X):
        """Append the rows of X to the store, and return self."""
        self._words.append(self._features.pack(X))
        rest = X[:, self._features.rest]
        self._rest.append(rest.toarray() if sp.issparse(rest) else rest)
        return self

    def keep(self, places):
        """Keep only the rows with the given indices, in this order."""
        for store in (self._words, self._rest):
            store.keep(places)

    @property
    def rows(self):
        """All stored rows as a dense or CSR matrix, unpacked at each access."""
        return self.take(np.arange(len(self)))

    def take(self, places):
        """Return the stored rows with the given indices, as a dense or CSR matrix."""
        if not self._sparse:
            return self._unpacked(places)
        starts = range(0, max(len(places), 1), PACKED_AT_ONCE)
        parts = [sp.csr_matrix(self._unpacked(places[start : start + PACKED_AT_ONCE])) for start in starts]
        return sp.vstack(parts, format="csr")

    def _unpacked(self, part):
        features, words, rest = self._features, self._words.rows[part], self._rest.rows[part]
        rows = np.empty((len(words), len(features.columns) + len(features.rest)), dtype=self.dtype)
        rows[:, features.columns] = features.unpack(words)
        rows[:, features.rest] = rest
        return rows


def two_valued(X, *, from_zero):
    """Detect the features that take only two values in the first rows of X.

    `from_zero`: one of the values must be 0.  A feature with one value, 0 or the step of the others, may get the other
    one later; it is among them unless most are of this kind.
    """
    rows = X[:LOOKED_AT]
    if sp.issparse(rows):
        rows = rows.toarray()
    low, high = rows.min(axis=0), rows.max(axis=0)
    step = high - low
    two = np.logical_or(rows == low, rows == high).all(axis=0) & (step > 0)
    if step.all() and not two.any():
        return TwoValued(np.arange(0), low[:0], high[:0], 1.0, np.arange(len(step)))
    if from_zero:
        two &= (low == 0) | (high == 0)
    steps, counts = np.unique(step[two] if two.any() else np.abs(low[low != 0]), return_counts=True)
    common = steps[np.argmax(counts)] if len(steps) else rows.dtype.type(1)
    two &= np.abs(step - common) <= SAME_STEP * np.finfo(rows.dtype).eps * common
    single = (step == 0) & np.isin(np.abs(low), [0, common])
    if two.sum() >= single.sum() or (two | single).all():
        two |= single
    base = np.where((high == 0) | (step == 0), 0, low).astype(rows.dtype)
    other = np.where(low == high, np.where(low == 0, common, low), np.where(high == 0, low, high)).astype(rows.dtype)
    columns = np.flatnonzero(two)
    return TwoValued(columns, base[columns], other[columns], float(common), np.flatnonzero(~two))


@instructions(lambda word: int(word).bit_count())
def _n_bits(typing, word):

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return word(word), generate


@compiled(fastmath=True)
def _differing(row, w, of_a, of_b, of_c, of_d, j):
    return (
        _n_bits(row[w] ^ of_a[j])
        + _n_bits(row[w + 1] ^ of_b[j])
        + _n_bits(row[w + 2] ^ of_c[j])
        + _n_bits(row[w + 3] ^ of_d[j])
    )


@compiled(fastmath=True)
def _common(row, w, of_a, of_b, of_c, of_d, j):
    return (
        _n_bits(row[w] & of_a[j])
        + _n_bits(row[w + 1] & of_b[j])
        + _n_bits(row[w + 2] & of_c[j])
        + _n_bits(row[w + 3] & of_d[j])
    )


@compiled(fastmath=True)
def _count(row, right, n_words, differ, counts):
    """Count the bits that differ between `row` and each column of `right`.

    Without `differ`, count the bits that both have.  The loops go over columns, so that they vectorize.
    """
    counts[:] = 0
    rest = n_words - n_words % FOUR
    for w in range(rest, n_words):
        words = right[w]
        if differ:
            for j in range(len(counts)):
                counts[j] += _n_bits(row[w] ^ words[j])
        else:
            for j in range(len(counts)):
                counts[j] += _n_bits(row[w] & words[j])
    for w in range(0, rest, FOUR):
        a, b, c, d = right[w], right[w + 1], right[w + 2], right[w + 3]
        if differ:
            for j in range(len(counts)):
                counts[j] += _differing(row, w, a, b, c, d, j)
        else:
            for j in range(len(counts)):
                counts[j] += _common(row, w, a, b, c, d, j)


def _signatures(of):
    return [of(float32, read_only(uint32, 2)), of(float64, read_only(uint64, 2))]


@compiled(_signatures(lambda real, words: void(words, words, int64, boolean, real[::1], real[:, ::1])))
def tabulate(left, right, n_words, differ, table, values):
    """Set `values` to the table entry for the bit count of each pair of rows."""
    counts = np.empty(right.shape[1], dtype=right.dtype)
    for i in range(len(left)):
        _count(left[i], right, n_words, differ, counts)
        row = values[i]
        for j in range(len(counts)):
            row[j] = table[counts[j]]


@compiled(_signatures(lambda real, words: real[::1](words, words, int64, boolean, real[::1], real[:])))
def sum_tabulated(left, right, n_words, differ, table, weights):
    """Look up the table entry of each bit count; return weighted sums over the rows of `left`.

    Element j is sum_i weights[i] table[count_ij], for the bit counts of row i and column j.
    """
    counts = np.empty(right.shape[1], dtype=right.dtype)
    sums = np.zeros(right.shape[1], dtype=table.dtype)
    for i in range(len(left)):
        _count(left[i], right, n_words, differ, counts)
        for j in range(len(counts)):
            sums[j] += weights[i] * table[counts[j]]
    return sums


@compiled(_signatures(lambda real, words: void(real[:, ::1], words, words, int64, boolean, float64)))
def add_counts(products, left, right, n_words, differ, per_bit):
    """Add `per_bit` times the bit count of each pair of rows to `products`."""
    counts = np.empty(right.shape[1], dtype=right.dtype)
    scale = products.dtype.type(per_bit)
    for i in range(len(left)):
        _count(left[i], right, n_words, differ, counts)
        row = products[i]
        for j in range(len(counts)):
            row[j] += scale * counts[j]
