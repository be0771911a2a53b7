"""Tiles of rbf kernel values in float32, computed and summed in vector registers.

A block of ROWS x COLUMNS vectors of LANES numbers stays in registers: the exponents are sums of fused multiply-adds and
of counted bits, their exponentials are multiplied by the weights of the rows, and only the sums are stored.  numba has
no vector type, so the block is built from LLVM instructions; loops over k run when the code runs, loops over the
registers of the block when it is built.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import binding, ir
from numba import float32, float64, int64, types, void
from numba.core import cgutils
from numba.extending import intrinsic

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.kernels import LN2_HIGH, LN2_LOW

WIDE = bool(binding.get_host_cpu_features().get("avx512f"))
LANES, ROWS, COLUMNS = (16, 4, 4) if WIDE else (8, 4, 2)
"""Numbers per vector register, and the size of a block, so that its sums and operands fit into the registers."""
SIDE = LANES * COLUMNS
"""Number of columns of a block; operands are padded to a multiple of it."""
_FLOATS, _WORDS = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(ir.IntType(32), LANES)
_ROUND = 12582912.0
"""1.5 * 2^23: adding and subtracting it rounds a float32 to an integer, which then is in its last bits."""
_POLYNOMIAL = (
    *(0.0013843648, 0.0083741564, 0.041668002, 0.16666432, 0.49999994),
    *(1.0, 1.0),
)
"""Coefficients of a polynomial for exp(r), abs(r) <= log(2) / 2, highest power first.

It nearly minimizes the largest relative error; the constant is 1, so that exp(0) is exact.
"""


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


def _exp(builder, x):
    """Return exp(max(min(x, 0), -87)) with a relative error of at most 3e-7.

    With k = x / log(2), rounded, and r = x - k log(2) it is 2^k exp(r).
    """
    x = builder.select(builder.fcmp_ordered(">", x, _constant(-87.0)), x, _constant(-87.0))
    x = builder.select(builder.fcmp_ordered("<", x, _constant(0.0)), x, _constant(0.0))
    shifted = _call(builder, "fmuladd", [x, _constant(1 / math.log(2)), _constant(_ROUND)])
    k = builder.fsub(shifted, _constant(_ROUND))
    r = _call(builder, "fmuladd", [k, _constant(-LN2_HIGH), x])
    r = _call(builder, "fmuladd", [k, _constant(-LN2_LOW), r])
    value = _constant(_POLYNOMIAL[0])
    for coefficient in _POLYNOMIAL[1:]:
        value = _call(builder, "fmuladd", [value, r, _constant(coefficient)])
    exponent = builder.shl(builder.bitcast(shifted, _WORDS), _constant(23, _WORDS))
    return builder.bitcast(builder.add(builder.bitcast(value, _WORDS), exponent), _FLOATS)


def _block(n_rows):
    """Return an intrinsic that adds the weighted values of `n_rows` rows to SIDE sums.

    Its arguments i and j are the first row and the first column.
    """

    @intrinsic
    def add_block(typing, left, weights, right, sums, n_words, per_bit, i, j):
        del typing

        def generate(context, builder, signature, arguments):
            arrays = [context.make_array(signature.args[k])(context, builder, arguments[k]) for k in range(4)]
            left, weights, right, sums = (array.data for array in arrays)
            n_words, per_bit, i, j = arguments[4:]
            d, m = (cgutils.unpack_tuple(builder, arrays[k].shape)[1] for k in (0, 2))
            cells = [(r, c) for r in range(n_rows) for c in range(COLUMNS)]
            row_starts = [builder.mul(builder.add(i, i.type(r)), d) for r in range(n_rows)]
            column_starts = [builder.add(j, j.type(c * LANES)) for c in range(COLUMNS)]

            def operands(k):
                right_row = builder.mul(k, m)
                z = [
                    builder.load(_vector(builder, right, builder.add(right_row, start)), align=4)
                    for start in column_starts
                ]
                x = [_splat(builder, builder.load(builder.gep(left, [builder.add(start, k)]))) for start in row_starts]
                return x, z

            exponents = {cell: cgutils.alloca_once_value(builder, _constant(0.0)) for cell in cells}
            with builder.if_then(builder.icmp_signed(">", n_words, n_words.type(0))):
                counts = {cell: cgutils.alloca_once_value(builder, _constant(0, _WORDS)) for cell in cells}
                for cell in cells:
                    builder.store(_constant(0, _WORDS), counts[cell])
                with cgutils.for_range(builder, n_words) as loop:
                    x, z = operands(loop.index)
                    for r, c in cells:
                        differing = builder.xor(builder.bitcast(x[r], _WORDS), builder.bitcast(z[c], _WORDS))
                        count = _call(builder, "ctpop", [differing])
                        builder.store(builder.add(builder.load(counts[r, c]), count), counts[r, c])
                factor = _splat(builder, per_bit)
                for cell in cells:
                    number = builder.sitofp(builder.load(counts[cell]), _FLOATS)
                    builder.store(builder.fmul(number, factor), exponents[cell])
            with cgutils.for_range(builder, d, start=n_words) as loop:
                x, z = operands(loop.index)
                for r, c in cells:
                    total = _call(builder, "fmuladd", [x[r], z[c], builder.load(exponents[r, c])])
                    builder.store(total, exponents[r, c])
            weight = [
                _splat(builder, builder.load(builder.gep(weights, [builder.add(i, i.type(r))]))) for r in range(n_rows)
            ]
            for c, start in enumerate(column_starts):
                place = _vector(builder, sums, start)
                total = builder.load(place, align=4)
                for r in range(n_rows):
                    value = _exp(builder, builder.load(exponents[r, c]))
                    total = _call(builder, "fmuladd", [weight[r], value, total])
                builder.store(total, place, align=4)
            return context.get_dummy_value()

        return void(left, weights, right, sums, int64, float32, int64, int64), generate

    return add_block


_add_block, _add_row = _block(ROWS), _block(1)
_MATRIX, _VECTOR = (types.Array(float32, n, "C", readonly=True) for n in (2, 1))


@compiled(void(_MATRIX, _VECTOR, _MATRIX, float32[::1], int64, float64))
def add_sums(left, weights, right, sums, n_words, per_bit):
    """Add weighted column sums of exp(min(x, 0)) to `sums`.

    The exponents x are products of two operands.  left (n, d) and right (d, m) are operands of
    `klr_bench.estimators.core.operands` whose first `n_words` columns are bits; m is a multiple of SIDE, the length
    of `sums`.
    """
    n = left.shape[0]
    whole = n - n % ROWS
    for j in range(0, right.shape[1], SIDE):
        for i in range(0, whole, ROWS):
            _add_block(left, weights, right, sums, n_words, float32(per_bit), i, j)
        for i in range(whole, n):
            _add_row(left, weights, right, sums, n_words, float32(per_bit), i, j)


def sums_of(left, weights, right, n_words=0, per_bit=0.0):
    """Return weighted column sums (m,) of exp(min(x, 0)) for exponents x.

    The exponents are products of the float32 operands left (n, d) and right (d, m), as in `add_sums`.
    """
    m = right.shape[1]
    if m % SIDE:
        whole, right = right, np.zeros((right.shape[0], m + -m % SIDE), dtype=np.float32)
        right[:, :m] = whole
    sums = np.zeros(right.shape[1], dtype=np.float32)
    add_sums(*map(np.ascontiguousarray, (left, weights, right)), sums, n_words, per_bit)
    return sums[:m]
