"""Tiles of rbf and laplacian kernel values in float32, computed in vector registers.

A block of ROWS vectors of LANES numbers stays in registers: exponents are sums of fused multiply-adds, or of minima for
the laplacian kernel, and of counted bits; their powers of 2 are stored, or multiplied by the weights of the rows, and
then only the sums are stored.  numba has no vector type, so the block is built from LLVM instructions; loops over k run
when the code runs, loops over the registers of the block when it is built.

All functions have operands of `klr_bench.estimators.kernel_values.operands`, left (n, d) and right (d, m).  Their first
`n_words` columns are bits, each of which contributes `per_bit` where it differs.  Of the other columns the last two
contain half the squared norms, or for the laplacian kernel half the sums, and ones in the other operand.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from llvmlite import binding, ir
from numba import float32, float64, int32, int64, types, void
from numba.core import cgutils

from klr_bench.estimators.core.jit import compiled, instructions, read_only
from klr_bench.estimators.core.kernels import EXP2, LAPLACIAN, LOWEST, RBF
from klr_bench.estimators.core.vectors import SINGLE_TIE
from klr_bench.estimators.kernel_values.bits import add_counts

WIDE = bool(binding.get_host_cpu_features().get("avx512f"))
LANES, ROWS = (16, 12) if WIDE else (8, 8)
"""Numbers per vector register, which are columns, and rows of a block, whose sums and operands fit into registers."""
COLUMNS = 256
"""Number of columns whose right operands stay in the cache, while parts of this length of each row are written."""
SUMMED = 20 * ROWS
"""Number of rows whose weighted kernel values are added in float32 by `sums_and_nearest`."""
VECTORS = 8 if WIDE else 4
WIDTH = VECTORS * LANES
"""Vectors, and numbers, in each of the two rows of products that are computed at once."""
_FLOATS, _WORDS = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(ir.IntType(32), LANES)
_ROUND = 12582912.0
"""1.5 * 2^23: adding and subtracting it rounds a float32 to an integer, which then is in its last bits."""


def _constant(value, kind=_FLOATS):
    return ir.Constant(kind, [value if kind is _WORDS else float(np.float32(value))] * LANES)


def _call(builder, name, arguments):
    """Call an LLVM function whose arguments and result are vectors of the same type."""
    kind = arguments[0].type
    suffix = f"v{LANES}{'f' if kind == _FLOATS else 'i'}32"
    function = ir.FunctionType(kind, [kind] * len(arguments))
    return builder.call(cgutils.get_or_insert_function(builder.module, function, f"llvm.{name}.{suffix}"), arguments)


def _splat(builder, value):
    vector = builder.insert_element(ir.Constant(_FLOATS, ir.Undefined), value, ir.IntType(32)(0))
    return builder.shuffle_vector(vector, ir.Constant(_FLOATS, ir.Undefined), _constant(0, _WORDS))


def _vector(builder, data, place):
    return builder.bitcast(builder.gep(data, [place]), _FLOATS.as_pointer())


def _exp2(builder, x):
    """Return 2^min(x, 0) with a relative error of at most 2e-7, as `exp2_of_negative` does."""
    x = builder.select(builder.fcmp_ordered(">", x, _constant(LOWEST)), x, _constant(LOWEST))
    x = builder.select(builder.fcmp_ordered("<", x, _constant(0.0)), x, _constant(0.0))
    shifted = None if WIDE else builder.fadd(x, _constant(_ROUND))
    k = _call(builder, "nearbyint", [x]) if WIDE else builder.fsub(shifted, _constant(_ROUND))
    r = builder.fsub(x, k)
    value = _constant(EXP2[0])
    for coefficient in EXP2[1:]:
        value = _call(builder, "fmuladd", [value, r, _constant(coefficient)])
    if WIDE:
        return _scaled(builder, value, k)
    exponent = builder.shl(builder.bitcast(shifted, _WORDS), _constant(23, _WORDS))
    return builder.bitcast(builder.add(builder.bitcast(value, _WORDS), exponent), _FLOATS)


def _scaled(builder, value, k):
    """Return value * 2^k, with an instruction of AVX-512."""
    mask, rounding = ir.IntType(16)(-1), ir.IntType(32)(4)
    kind = ir.FunctionType(_FLOATS, [_FLOATS, _FLOATS, _FLOATS, mask.type, rounding.type])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.mask.scalef.ps.512")
    return builder.call(function, [value, k, value, mask, rounding])


def _plus_product(builder, x, z, total):
    return _call(builder, "fmuladd", [x, z, total])


def _plus_minimum(builder, x, z, total):
    return builder.fadd(total, builder.select(builder.fcmp_ordered("<", z, x), z, x))


def _exponents(builder, left, right, n_words, per_bit, kernel, i, j, n_rows):
    """Return the exponents of a block of kernel values: one vector of LANES columns per row.

    left and right are arrays; i and j are the first row and the first column.
    """
    d, m = (cgutils.unpack_tuple(builder, array.shape)[1] for array in (left, right))
    row_starts = [builder.mul(builder.add(i, i.type(r)), d) for r in range(n_rows)]

    def left_values(k):
        return [_splat(builder, builder.load(builder.gep(left.data, [builder.add(start, k)]))) for start in row_starts]

    def right_values(k):
        return builder.load(_vector(builder, right.data, builder.add(builder.mul(k, m), j)), align=4)

    exponents = [cgutils.alloca_once_value(builder, _constant(0.0)) for _ in range(n_rows)]
    with builder.if_then(builder.icmp_signed(">", n_words, n_words.type(0))):
        counts = [cgutils.alloca_once_value(builder, _constant(0, _WORDS)) for _ in range(n_rows)]
        for count in counts:
            builder.store(_constant(0, _WORDS), count)
        with cgutils.for_range(builder, n_words) as loop:
            z = builder.bitcast(right_values(loop.index), _WORDS)
            for x, count in zip(left_values(loop.index), counts, strict=True):
                differing = _call(builder, "ctpop", [builder.xor(builder.bitcast(x, _WORDS), z)])
                builder.store(builder.add(builder.load(count), differing), count)
        factor = _splat(builder, per_bit)
        for count, exponent in zip(counts, exponents, strict=True):
            builder.store(builder.fmul(builder.sitofp(builder.load(count), _FLOATS), factor), exponent)
    with builder.if_then(builder.icmp_signed(">", d, n_words)):
        last = builder.sub(d, d.type(2))
        z = right_values(builder.sub(d, d.type(1)))
        for x, exponent in zip(left_values(last), exponents, strict=True):
            builder.store(builder.fadd(builder.load(exponent), builder.fadd(x, z)), exponent)

        def add(term):
            with cgutils.for_range(builder, last, start=n_words) as loop:
                z = right_values(loop.index)
                for x, exponent in zip(left_values(loop.index), exponents, strict=True):
                    builder.store(term(builder, x, z, builder.load(exponent)), exponent)

        is_laplacian = builder.icmp_signed("==", kernel, kernel.type(LAPLACIAN))
        with builder.if_else(is_laplacian) as (laplacian, rbf):
            with laplacian:
                add(_plus_minimum)
            with rbf:
                add(_plus_product)
    return [builder.load(exponent) for exponent in exponents]


def _unwrapped(context, builder, signature, arguments):
    """Replace the array arguments of an intrinsic by structures whose fields can be read."""
    return [
        context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else value
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


def _interpreted_block(left, right, n_words, per_bit, kernel):
    exponents = np.zeros((len(left), right.shape[1]), dtype=np.float32)
    if n_words < len(right):
        x, z = left[:, n_words:-2], right[n_words:-2]
        exponents += np.minimum(x[:, :, None], z).sum(axis=1) if kernel == LAPLACIAN else x @ z
        exponents += left[:, -2:-1] + right[-1]
    add_counts(exponents, left.view(np.uint32), right.view(np.uint32), n_words, True, per_bit)
    return np.exp2(np.clip(exponents, LOWEST, 0))


def _block_of_values(n_rows):
    """Return an intrinsic that computes a block of n_rows x LANES kernel values.

    Its arguments i and j are the first row and the first column.
    """

    def interpreted(left, right, n_words, per_bit, kernel, i, j, values):
        rows, columns = slice(i, i + n_rows), slice(j, j + LANES)
        values[rows, columns] = _interpreted_block(left[rows], right[:, columns], n_words, per_bit, kernel)

    @instructions(interpreted)
    def set_block(typing, left, right, n_words, per_bit, kernel, i, j, values):

        def generate(context, builder, signature, arguments):
            *operands, i, j, values = _unwrapped(context, builder, signature, arguments)
            exponents = _exponents(builder, *operands, i, j, n_rows)
            m = cgutils.unpack_tuple(builder, values.shape)[1]
            for r, exponent in enumerate(exponents):
                place = builder.add(builder.mul(builder.add(i, i.type(r)), m), j)
                builder.store(_exp2(builder, exponent), _vector(builder, values.data, place), align=4)
            return context.get_dummy_value()

        return void(left, right, int64, float32, int64, int64, int64, values), generate

    return set_block


def _block_of_sums(n_rows):
    """Return an intrinsic that adds the weighted kernel values of a block to column sums.

    It also raises `largest` to the kernel values of the block, if `largest` is not None.
    """

    def interpreted(left, right, n_words, per_bit, kernel, i, j, weights, sums, largest):
        rows, columns = slice(i, i + n_rows), slice(j, j + LANES)
        block = _interpreted_block(left[rows], right[:, columns], n_words, per_bit, kernel)
        sums[columns] += weights[rows] @ block
        if largest is not None:
            largest[columns] = np.maximum(largest[columns], block.max(axis=0))

    @instructions(interpreted)
    def add_block(typing, left, right, n_words, per_bit, kernel, i, j, weights, sums, largest):

        def generate(context, builder, signature, arguments):
            *operands, i, j, weights, sums, largest = _unwrapped(context, builder, signature, arguments)
            exponents = _exponents(builder, *operands, i, j, n_rows)
            targets = [_vector(builder, array.data, j) for array in (sums, largest) if hasattr(array, "data")]
            total, *highest = [builder.load(target, align=4) for target in targets]
            for r, exponent in enumerate(exponents):
                weight = _splat(builder, builder.load(builder.gep(weights.data, [builder.add(i, i.type(r))])))
                value = _exp2(builder, exponent)
                total = _call(builder, "fmuladd", [weight, value, total])
                highest = [builder.select(builder.fcmp_ordered(">", value, other), value, other) for other in highest]
            for target, vector in zip(targets, [total, *highest], strict=True):
                builder.store(vector, target, align=4)
            return context.get_dummy_value()

        return void(left, right, int64, float32, int64, int64, int64, weights, sums, largest), generate

    return add_block


def _interpreted_products(weights, values, places, n_places, pair, j, products):
    nonzero = places[:n_places]
    for row in set(pair):
        products[row, j : j + WIDTH] += weights[row, nonzero] @ values[nonzero]


@instructions(_interpreted_products)
def _add_products(typing, weights, values, places, n_places, pair, j, products):
    """Add the sum of weights[k, i] values[i] over i to products[k, j:], for both k in `pair`.

    The indices i are the first n_places elements of `places`.
    """

    def generate(context, builder, signature, arguments):
        weights, values, places, n_places, pair, j, products = _unwrapped(context, builder, signature, arguments)
        rows = cgutils.unpack_tuple(builder, pair)

        def element(array, row, column):
            return builder.add(builder.mul(row, cgutils.unpack_tuple(builder, array.shape)[1]), column)

        def vectors(array, row, column):
            start = element(array, row, column)
            return [_vector(builder, array.data, builder.add(start, j.type(c * LANES))) for c in range(VECTORS)]

        targets = [vector for row in rows for vector in vectors(products, row, j)]
        sums = [cgutils.alloca_once(builder, _FLOATS) for _ in targets]
        for target, total in zip(targets, sums, strict=True):
            builder.store(builder.load(target, align=4), total)
        with cgutils.for_range(builder, n_places) as loop:
            i = builder.load(builder.gep(places.data, [loop.index]))
            factors = [builder.load(builder.gep(weights.data, [element(weights, row, i)])) for row in rows]
            terms = [builder.load(vector, align=4) for vector in vectors(values, i, j.type(0))]
            for total, (factor, term) in zip(sums, product([_splat(builder, x) for x in factors], terms), strict=True):
                builder.store(_call(builder, "fmuladd", [factor, term, builder.load(total)]), total)
        for target, total in zip(targets, sums, strict=True):
            builder.store(builder.load(total), target, align=4)
        return context.get_dummy_value()

    return void(weights, values, places, int64, pair, int64, products), generate


_set_block, _set_row = _block_of_values(ROWS), _block_of_values(1)
_add_block, _add_row = _block_of_sums(ROWS), _block_of_sums(1)
_MATRIX, _VECTOR = read_only(float32, 2), read_only(float32, 1)


@compiled()
def _padded(right, first, width):
    """Return `width` columns of a matrix from `first` on, padded with zeros."""
    panel = np.zeros((right.shape[0], width), dtype=np.float32)
    columns = right[:, first : first + width]
    panel[:, : columns.shape[1]] = columns
    return panel


@compiled()
def _set_columns(left, right, n_words, per_bit, kernel, m, values):
    whole = len(left) - len(left) % ROWS
    for start in range(0, m, COLUMNS):
        columns = range(start, min(start + COLUMNS, m), LANES)
        for i in range(0, whole, ROWS):
            for j in columns:
                _set_block(left, right, n_words, per_bit, kernel, i, j, values)
        for i in range(whole, len(left)):
            for j in columns:
                _set_row(left, right, n_words, per_bit, kernel, i, j, values)


@compiled()
def _add_columns(left, right, n_words, per_bit, kernel, m, weights, sums):
    whole = len(left) - len(left) % ROWS
    for j in range(0, m, LANES):
        for i in range(0, whole, ROWS):
            _add_block(left, right, n_words, per_bit, kernel, i, j, weights, sums, None)
        for i in range(whole, len(left)):
            _add_row(left, right, n_words, per_bit, kernel, i, j, weights, sums, None)


@compiled(void(_MATRIX, _MATRIX, int64, float64, int64, float32[:, ::1]))
def set_values(left, right, n_words, per_bit, kernel, values):
    """Set `values` (n, m) to the kernel values of n left rows and m right rows."""
    m, scale = right.shape[1], float32(per_bit)
    whole = m - m % LANES
    _set_columns(left, right, n_words, scale, kernel, whole, values)
    if whole < m:
        rest = np.empty((len(left), LANES), dtype=np.float32)
        _set_columns(left, _padded(right, whole, LANES), n_words, scale, kernel, LANES, rest)
        values[:, whole:] = rest[:, : m - whole]


@compiled(void(_MATRIX, _MATRIX, int64, float64, int64, _VECTOR, int64, float64[::1]))
def add_sums(left, right, n_words, per_bit, kernel, weights, size, sums):
    """Add column sums of the kernel values, weighted by `weights` (n,), to `sums` (m,).

    Sums of `size` rows are computed in float32, and added in float64.
    """
    m, scale = right.shape[1], float32(per_bit)
    whole = m - m % LANES
    panel = _padded(right, whole, LANES)
    for start in range(0, len(left), size):
        rows, factors = left[start : start + size], weights[start : start + size]
        added = np.zeros(whole + LANES, dtype=np.float32)
        _add_columns(rows, right, n_words, scale, kernel, whole, factors, added)
        if whole < m:
            _add_columns(rows, panel, n_words, scale, kernel, LANES, factors, added[whole:])
        for j in range(m):
            sums[j] += added[j]


@compiled()
def _add_and_compare(left, right, n_words, per_bit, kernel, weights, sums, largest):
    """Add weighted kernel values to `sums`; store the largest of each ROWS rows in `largest`."""
    whole = len(left) - len(left) % ROWS
    for j in range(0, right.shape[1], LANES):
        for i in range(0, whole, ROWS):
            _add_block(left, right, n_words, per_bit, kernel, i, j, weights, sums, largest[i // ROWS])
        for i in range(whole, len(left)):
            _add_row(left, right, n_words, per_bit, kernel, i, j, weights, sums, largest[i // ROWS])


@compiled(types.Tuple((float64[::1], int64[::1]))(_MATRIX, _VECTOR, _MATRIX, _MATRIX, _MATRIX, int64, float64, int64))
def sums_and_nearest(left, weights, right, others, rows, n_words, per_bit, kernel):
    """Return weighted sums of kernel values (b,), and the indices of the largest values (b,).

    The values are those of n support vectors with each of b rows.  Both have a left and a right operand: `left` (n, d)
    with `weights` (n,), and `right` (d, n or more) for support vectors, `rows` (b, d) and `others` (d, b) for the rows.
    Of values that are equal up to `SINGLE_TIE`, the index is that of the first.  Sums are float64.
    """
    n, b = len(left), len(rows)
    padded, scale = _padded(others, 0, b + -b % LANES), float32(per_bit)
    sums, added = np.zeros(b), np.empty(padded.shape[1], dtype=np.float32)
    largest = np.zeros((-(-n // ROWS), padded.shape[1]), dtype=np.float32)
    for start in range(0, n, SUMMED):
        some, added[:] = slice(start, start + SUMMED), 0.0
        _add_and_compare(left[some], padded, n_words, scale, kernel, weights[some], added, largest[start // ROWS :])
        for j in range(b):
            sums[j] += added[j]
    least, block = largest[0].copy(), np.zeros(len(added), dtype=np.int32)
    for row in largest:
        for j in range(len(row)):
            least[j] = row[j] if row[j] > least[j] else least[j]
    for j in range(len(least)):
        least[j] = least[j] * (1.0 - SINGLE_TIE)
    for k in range(len(largest) - 1, -1, -1):
        row = largest[k]
        for j in range(len(row)):
            block[j] = int32(k) if row[j] >= least[j] else block[j]
    nearest, values = np.empty(b, dtype=np.int64), np.empty((1, right.shape[1]), dtype=np.float32)
    for j in range(b):
        place = block[j] * ROWS
        first = min(place, right.shape[1] - LANES)
        _set_row(rows[j : j + 1], right, n_words, scale, kernel, 0, first, values)
        last = min(place + ROWS, n) - 1
        nearest[j] = last
        for i in range(place, last):
            nearest[j] = min(nearest[j], i if values[0, i] >= least[j] else last)
    return sums, nearest


@compiled()
def _nonzero(first, second, places):
    """Set `places` to the indices where one of two vectors is not 0, and return their number."""
    n = np.uint64(0)
    for i in range(len(first)):  # without a branch, because the processor could not predict it
        places[n] = i
        n += np.uint64((first[i] != 0.0) | (second[i] != 0.0))
    return int64(n)


@compiled(void(_MATRIX, _MATRIX, _MATRIX, int64, float64, int64, float32[:, ::1]))
def add_products(weights, left, right, n_words, per_bit, kernel, products):
    """Add the weights (k, n) times the kernel values (n, m) to `products`.

    The shape of `products` is (k, m rounded up to a multiple of WIDTH).  Weights that are 0 are skipped, in pairs of
    rows that are sorted by the number of nonzero weights.
    """
    k, n = weights.shape
    n_nonzero = np.zeros(k, dtype=np.int64)
    for row in range(k):
        for weight in weights[row]:
            n_nonzero[row] += weight != 0.0
    order = np.argsort(n_nonzero)
    pairs = [(order[p], order[min(p + 1, k - 1)]) for p in range(0, k, 2)]
    places, n_places = np.empty((len(pairs), n + 1), dtype=np.int64), np.zeros(len(pairs), dtype=np.int64)
    for p, (first, second) in enumerate(pairs):
        n_places[p] = _nonzero(weights[first], weights[second], places[p])
    values = np.empty((n, WIDTH), dtype=np.float32)
    for j in range(0, products.shape[1], WIDTH):
        _set_columns(left, _padded(right, j, WIDTH), n_words, float32(per_bit), kernel, WIDTH, values)
        for p, pair in enumerate(pairs):
            _add_products(weights, values, places[p], n_places[p], pair, j, products)


def values_of(left, right, n_words=0, per_bit=0.0, kernel=RBF):
    """Return the kernel values (n, m) of n left rows and m right rows."""
    values = np.empty((len(left), right.shape[1]), dtype=np.float32)
    set_values(*map(np.ascontiguousarray, (left, right)), n_words, per_bit, kernel, values)
    return values


def products_of(weights, left, right, n_words=0, per_bit=0.0, kernel=RBF):
    """Return the weights (k, n) times the kernel values (n, m), as float32 of shape (k, m)."""
    m = right.shape[1]
    products = np.zeros((len(weights), m + -m % WIDTH), dtype=np.float32)
    add_products(*map(np.ascontiguousarray, (weights, left, right)), n_words, per_bit, kernel, products)
    return products[:, :m]


def sums_of(left, weights, right, size, n_words=0, per_bit=0.0, kernel=RBF):
    """Return the weighted column sums (m,) of the kernel values, for weights (n,), as float64.

    Sums of `size` rows are computed in float32, and added in float64.
    """
    sums = np.zeros(right.shape[1])
    left, right, weights = map(np.ascontiguousarray, (left, right, weights))
    add_sums(left, right, n_words, per_bit, kernel, weights, size, sums)
    return sums
