"""Tiles of rbf kernel values in float32, computed in vector registers.

A block of ROWS x COLUMNS vectors of LANES numbers stays in registers: the exponents are sums of fused multiply-adds and
of counted bits; their powers of 2 are stored, or multiplied by the weights of the rows, and then only the sums are
stored.  numba has no vector type, so the block is built from LLVM instructions; loops over k run when the code runs,
loops over the registers of the block when it is built.

All functions have operands of `klr_bench.estimators.core.operands`, left (n, d) and right (d, m).  Their first
`n_words` columns are bits, each of which contributes `per_bit` where it differs.  Of the other columns the last two
contain the squared norms, and ones in the other operand.
"""

from __future__ import annotations

import numpy as np
from llvmlite import binding, ir
from numba import float32, float64, int64, types, void
from numba.core import cgutils
from numba.extending import intrinsic

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.kernels import EXP2, LOWEST

WIDE = bool(binding.get_host_cpu_features().get("avx512f"))
LANES, ROWS, COLUMNS = (16, 4, 4) if WIDE else (8, 4, 2)
"""Numbers per vector register, and the size of a block, so that its sums and operands fit into the registers."""
SIDE = LANES * COLUMNS
"""Number of columns of a block; operands are padded to a multiple of it."""
_FLOATS, _WORDS = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(ir.IntType(32), LANES)
_ROUND = 12582912.0
"""1.5 * 2^23: adding and subtracting it rounds a float32 to an integer, which then is in its last bits."""


def _constant(value, kind=_FLOATS):
    return ir.Constant(kind, [value if kind is _WORDS else float(np.float32(value))] * LANES)


def _call(builder, name, arguments):
    """Call an LLVM function of vectors, all of one type."""
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


def _exponents(builder, left, right, n_words, per_bit, i, j, n_rows):
    """Return the exponents of a block as a vector of LANES columns for each pair (row, vector).

    left and right are arrays; i and j are the first row and the first column.
    """
    d, m = (cgutils.unpack_tuple(builder, array.shape)[1] for array in (left, right))
    cells = [(r, c) for r in range(n_rows) for c in range(COLUMNS)]
    row_starts = [builder.mul(builder.add(i, i.type(r)), d) for r in range(n_rows)]
    column_starts = [builder.add(j, j.type(c * LANES)) for c in range(COLUMNS)]

    def left_values(k):
        return [_splat(builder, builder.load(builder.gep(left.data, [builder.add(start, k)]))) for start in row_starts]

    def right_values(k):
        row = builder.mul(k, m)
        places = [_vector(builder, right.data, builder.add(row, start)) for start in column_starts]
        return [builder.load(place, align=4) for place in places]

    exponents = {cell: cgutils.alloca_once_value(builder, _constant(0.0)) for cell in cells}
    with builder.if_then(builder.icmp_signed(">", n_words, n_words.type(0))):
        counts = {cell: cgutils.alloca_once_value(builder, _constant(0, _WORDS)) for cell in cells}
        for cell in cells:
            builder.store(_constant(0, _WORDS), counts[cell])
        with cgutils.for_range(builder, n_words) as loop:
            x, z = left_values(loop.index), right_values(loop.index)
            for r, c in cells:
                differing = builder.xor(builder.bitcast(x[r], _WORDS), builder.bitcast(z[c], _WORDS))
                count = _call(builder, "ctpop", [differing])
                builder.store(builder.add(builder.load(counts[r, c]), count), counts[r, c])
        factor = _splat(builder, per_bit)
        for cell in cells:
            number = builder.sitofp(builder.load(counts[cell]), _FLOATS)
            builder.store(builder.fmul(number, factor), exponents[cell])
    with builder.if_then(builder.icmp_signed(">", d, n_words)):
        last = builder.sub(d, d.type(2))
        x, z = left_values(last), right_values(builder.sub(d, d.type(1)))
        for r, c in cells:
            norms = builder.fadd(x[r], z[c])
            builder.store(builder.fadd(builder.load(exponents[r, c]), norms), exponents[r, c])
        with cgutils.for_range(builder, last, start=n_words) as loop:
            x, z = left_values(loop.index), right_values(loop.index)
            for r, c in cells:
                total = _call(builder, "fmuladd", [x[r], z[c], builder.load(exponents[r, c])])
                builder.store(total, exponents[r, c])
    return {cell: builder.load(exponents[cell]) for cell in cells}


def _unwrapped(context, builder, signature, arguments):
    """Return the arguments of an intrinsic, with arrays as structures whose fields can be read."""
    return [
        context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else value
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


def _block_of_values(n_rows):
    """Return an intrinsic that computes the values of a block of `n_rows` rows and SIDE columns.

    Its arguments i and j are the first row and the first column.
    """

    @intrinsic
    def set_block(typing, left, right, n_words, per_bit, i, j, values):
        del typing

        def generate(context, builder, signature, arguments):
            *operands, i, j, values = _unwrapped(context, builder, signature, arguments)
            exponents = _exponents(builder, *operands, i, j, n_rows)
            m = cgutils.unpack_tuple(builder, values.shape)[1]
            for (r, c), exponent in exponents.items():
                row = builder.mul(builder.add(i, i.type(r)), m)
                place = builder.add(builder.add(row, j), j.type(c * LANES))
                builder.store(_exp2(builder, exponent), _vector(builder, values.data, place), align=4)
            return context.get_dummy_value()

        return void(left, right, int64, float32, int64, int64, values), generate

    return set_block


def _block_of_sums(n_rows):
    """Return an intrinsic that adds the weighted values of a block to the sums of its columns."""

    @intrinsic
    def add_block(typing, left, right, n_words, per_bit, i, j, weights, sums):
        del typing

        def generate(context, builder, signature, arguments):
            *operands, i, j, weights, sums = _unwrapped(context, builder, signature, arguments)
            exponents = _exponents(builder, *operands, i, j, n_rows)
            places = [builder.gep(weights.data, [builder.add(i, i.type(r))]) for r in range(n_rows)]
            weight = [_splat(builder, builder.load(place)) for place in places]
            for c in range(COLUMNS):
                place = _vector(builder, sums.data, builder.add(j, j.type(c * LANES)))
                total = builder.load(place, align=4)
                for r in range(n_rows):
                    total = _call(builder, "fmuladd", [weight[r], _exp2(builder, exponents[r, c]), total])
                builder.store(total, place, align=4)
            return context.get_dummy_value()

        return void(left, right, int64, float32, int64, int64, weights, sums), generate

    return add_block


_set_block, _set_row = _block_of_values(ROWS), _block_of_values(1)
_add_block, _add_row = _block_of_sums(ROWS), _block_of_sums(1)
_MATRIX, _VECTOR = (types.Array(float32, n, "C", readonly=True) for n in (2, 1))


@compiled()
def _padded(right, first):
    """Return the columns of a matrix from `first` on, padded with zeros to SIDE columns."""
    panel = np.zeros((right.shape[0], SIDE), dtype=np.float32)
    panel[:, : right.shape[1] - first] = right[:, first:]
    return panel


@compiled()
def _set_columns(left, right, n_words, per_bit, m, values):
    whole = len(left) - len(left) % ROWS
    for j in range(0, m, SIDE):
        for i in range(0, whole, ROWS):
            _set_block(left, right, n_words, per_bit, i, j, values)
        for i in range(whole, len(left)):
            _set_row(left, right, n_words, per_bit, i, j, values)


@compiled()
def _add_columns(left, right, n_words, per_bit, m, weights, sums):
    whole = len(left) - len(left) % ROWS
    for j in range(0, m, SIDE):
        for i in range(0, whole, ROWS):
            _add_block(left, right, n_words, per_bit, i, j, weights, sums)
        for i in range(whole, len(left)):
            _add_row(left, right, n_words, per_bit, i, j, weights, sums)


@compiled(void(_MATRIX, _MATRIX, int64, float64, float32[:, ::1]))
def set_values(left, right, n_words, per_bit, values):
    """Set `values` (n, m) to the kernel values."""
    m, scale = right.shape[1], float32(per_bit)
    whole = m - m % SIDE
    _set_columns(left, right, n_words, scale, whole, values)
    if whole < m:
        rest = np.empty((len(left), SIDE), dtype=np.float32)
        _set_columns(left, _padded(right, whole), n_words, scale, SIDE, rest)
        values[:, whole:] = rest[:, : m - whole]


@compiled(void(_MATRIX, _MATRIX, int64, float64, _VECTOR, float32[::1]))
def add_sums(left, right, n_words, per_bit, weights, sums):
    """Add column sums of the kernel values, weighted by `weights` (n,), to `sums` (m,)."""
    m, scale = right.shape[1], float32(per_bit)
    whole = m - m % SIDE
    _add_columns(left, right, n_words, scale, whole, weights, sums)
    if whole < m:
        rest = np.zeros(SIDE, dtype=np.float32)
        _add_columns(left, _padded(right, whole), n_words, scale, SIDE, weights, rest)
        sums[whole:] += rest[: m - whole]


def values_of(left, right, n_words=0, per_bit=0.0):
    """Return the kernel values (n, m)."""
    values = np.empty((len(left), right.shape[1]), dtype=np.float32)
    set_values(*map(np.ascontiguousarray, (left, right)), n_words, per_bit, values)
    return values


def sums_of(left, weights, right, n_words=0, per_bit=0.0):
    """Return column sums (m,) of the kernel values, weighted by `weights` (n,)."""
    sums = np.zeros(right.shape[1], dtype=np.float32)
    add_sums(*map(np.ascontiguousarray, (left, right)), n_words, per_bit, np.ascontiguousarray(weights), sums)
    return sums
