"""Operands of kernels: every kind gives the values of the formula, and suits the rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from klr_bench.estimators.core import bits
from klr_bench.estimators.core.bits import two_valued
from klr_bench.estimators.core.inverted import CompactIndex, sparse_products
from klr_bench.estimators.core.kernels import Kernel
from klr_bench.estimators.core.operands import Dense, Indexed, Packed, operands_of, origin_of
from klr_bench.estimators.core.rows import occurring
from tests.estimators.samples import spread_out

KERNELS = [Kernel("rbf", 0.05), Kernel("poly", 0.1, 3, 0.5), Kernel("poly", 0.1, 2.5, 1.0), Kernel("linear")]
TOLERANCE = {"float32": 2e-6, "float64": 1e-13}


def formula(kernel, X, Z):
    """Return the kernel values (n, m) of rows X (n, d) and Z (m, d), one at a time, in float64."""
    X, Z = (np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64) for rows in (X, Z))
    values = np.empty((len(X), len(Z)))
    for i, x in enumerate(X):
        for j, z in enumerate(Z):
            values[i, j] = {
                "rbf": np.exp(-kernel.gamma * np.sum((x - z) ** 2)),
                "poly": (kernel.gamma * (x @ z) + kernel.coef0) ** kernel.degree,
                "linear": x @ z,
            }[kernel.name]
    return values


def binary(n, d, seed=0, share=0.3, step=1.0):
    """Return rows (n, d) of 0 and `step`, each feature with both values."""
    random = np.random.RandomState(seed)
    X = (random.random_sample((n, d)) < share) * step
    X[0], X[1] = 0, step
    return X


def with_others(X, n_others, seed=1):
    """Return X with columns of noise in between."""
    noise = np.abs(np.random.RandomState(seed).standard_normal((len(X), n_others)))
    columns = np.hstack([X, noise])
    return columns[:, np.random.RandomState(seed).permutation(columns.shape[1])]


def packed(kernel, X):
    """Return operands with bits for all features of X that have two values, whatever they cost."""
    plain = Dense(kernel, origin_of(X))
    return Packed.of(kernel, two_valued(X, from_zero=kernel.name != "rbf"), plain, X)


def check(operands, X, Z, dtype):
    kernel = operands.kernel
    left, right = operands.left(X), operands.right(Z)
    expected = formula(kernel, X, Z)
    scale = np.abs(expected).max()
    values = operands.values(left, right)
    assert values.dtype == dtype
    np.testing.assert_allclose(values, expected, rtol=0, atol=TOLERANCE[dtype] * scale)
    weights = np.random.RandomState(5).standard_normal((3, len(expected))).astype(dtype)
    for some in (weights, weights[:1]):
        sums = operands.sums(left, some, right)
        np.testing.assert_allclose(sums, some @ expected, rtol=0, atol=10 * TOLERANCE[dtype] * scale * len(expected))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("n_bits", [1, 31, 32, 33, 64, 65, 127, 129, 200])
def test_values_by_bits_are_those_of_the_formula(n_bits, kernel, dtype):
    X, Z = binary(30, n_bits).astype(dtype), binary(17, n_bits, seed=1).astype(dtype)
    for layout in (np.asarray, sp.csr_matrix):
        check(packed(kernel, layout(X)), layout(X), layout(Z), dtype)
    operands = packed(kernel, X)
    assert operands.others is None
    check(operands, sp.csr_matrix(X), Z, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("step", [1.0, -2.0, 0.25])
def test_other_features_stand_beside_the_bits(kernel, step, dtype):
    rows = with_others(binary(60, 70, step=step), 5).astype(dtype)
    for layout in (np.asarray, sp.csr_matrix):
        X, Z = layout(rows[:40]), layout(rows[40:])
        operands = packed(kernel, X)
        assert len(operands.features.rest) == 5
        assert operands.fitting(Z) is operands
        check(operands, X, Z, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_distances_need_no_zero(dtype):
    X = (2 * binary(50, 40) - 1 + np.arange(40) % 3).astype(dtype)
    operands = packed(KERNELS[0], X)
    assert len(operands.features.columns) == 40
    check(operands, X[:30], X[30:], dtype)
    assert len(packed(KERNELS[1], X).features.columns) < 40  # of products the zero has to be one of the values


@settings(max_examples=60, deadline=None)
@given(
    n_bits=st.integers(0, 70), n_others=st.integers(0, 4), wrong=st.integers(0, 5), kernel=st.sampled_from(KERNELS),
    sparse=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_a_row_that_has_other_values_falls_back(n_bits, n_others, wrong, kernel, sparse, seed):
    random = np.random.RandomState(seed)
    X = with_others(binary(40, n_bits, seed), n_others, seed)
    if X.shape[1] == 0:
        return
    Z = X.copy()
    Z[random.randint(0, 40, wrong), random.randint(0, X.shape[1], wrong)] = 0.3
    layout = sp.csr_matrix if sparse else np.asarray
    X, Z = layout(X), layout(Z)
    operands = operands_of(kernel, X).fitting(Z)
    check(operands, X, Z, "float64")
    assert operands.fitting(Z) is operands
    if wrong == 0 and n_bits >= 40:
        assert isinstance(operands, Packed)


@pytest.mark.parametrize("wrong", [1, 99])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_bits_of_sparse_rows_fall_back_to_the_inverted_index(layout, wrong):
    X = binary(300, 100, share=0.04)
    operands = operands_of(KERNELS[0], sp.csr_matrix(X))
    assert isinstance(operands, Packed)
    assert isinstance(operands.plain, Indexed)
    Z = X[100:120].copy()
    Z[3, :wrong] = 0.3
    needed = operands.fitting(layout(Z))
    assert isinstance(needed, Packed if wrong == 1 else Indexed)
    check(needed, sp.csr_matrix(X), layout(Z), "float64")


def test_a_feature_with_one_value_may_get_the_other():
    X = binary(50, 60).astype(np.float32)
    X[:, 7] = 0
    X[:, 8] = 1
    operands = operands_of(KERNELS[0], X)
    assert len(operands.features.columns) == 60
    Z = X.copy()
    Z[3, 7], Z[3, 8] = 1, 0
    assert operands.fitting(Z) is operands
    check(operands, X, Z, "float32")


def test_the_kind_suits_the_rows():
    random = np.random.RandomState(0)
    rbf = KERNELS[0]

    def kind(X):
        return type(operands_of(rbf, X))

    def sparse(n, d, density):
        return sp.random(n, d, density=density, format="csr", random_state=random)

    assert kind(sparse(300, 100, 0.3)) is Dense
    assert kind(sparse(300, 5000, 0.01)) is Indexed
    assert kind(sp.csr_matrix((300, 10_000))) is Indexed
    assert kind(random.standard_normal((300, 20))) is Dense
    assert kind(with_others(binary(300, 8), 10)) is Dense  # too few to pay
    assert kind(binary(300, 123)) is Packed
    assert kind(sp.csr_matrix(binary(300, 123, share=0.1))) is Packed
    assert kind(with_others(binary(300, 44), 10)) is Packed
    few = random.random_sample((300, 784)) * (random.random_sample(784) < 0.6)
    few[:, :3] = binary(300, 3)
    assert kind(few) is Dense  # features that never vary tell nothing


@settings(max_examples=30)
@given(
    n=st.integers(1, 20), m=st.integers(1, 20), d=st.integers(1, 30), density=st.floats(0, 1), seed=st.integers(0, 99)
)
def test_products_by_index_are_the_products(n, m, d, density, seed):
    random = np.random.RandomState(seed)
    left, right = (sp.random(k, d, density=density, format="csr", random_state=random) for k in (n, m))
    np.testing.assert_allclose(sparse_products(left, right.T.tocsr()), (left @ right.T).toarray(), rtol=1e-12)


@settings(max_examples=30)
@given(n=st.integers(0, 20), m=st.integers(0, 20), kernel=st.sampled_from(KERNELS), seed=st.integers(0, 99))
def test_few_entries_in_many_features_have_the_same_kernel_values(n, m, kernel, seed):
    random = np.random.RandomState(seed)
    narrow = [sp.random(k, 60, density=0.1, format="csr", random_state=random) for k in (n, m)]
    left, right = map(spread_out, narrow)
    operands = Indexed(kernel)
    assert isinstance(operands.right(right), CompactIndex)
    expected = operands.values(narrow[0], narrow[1].T.tocsr())
    np.testing.assert_array_equal(operands.values(operands.left(left), operands.right(right)), expected)


def test_bits_can_be_unpacked():
    X = (2 * binary(50, 40) - 1).astype(np.float32)
    features = two_valued(X, from_zero=False)
    np.testing.assert_array_equal(features.unpack(features.pack(X)), X)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("n_others", [0, 3])
def test_packed_rows_come_back_as_they_were(n_others, layout, monkeypatch):
    monkeypatch.setattr(bits, "PACKED_AT_ONCE", 16)
    rows = with_others(binary(50, 40, step=-0.5), n_others).astype(np.float32)
    X = layout(rows)
    store = packed(KERNELS[1], X).store(X)
    assert store.rows.shape == (0, 40 + n_others)
    for part in (slice(0, 3), slice(3, 3), slice(3, 50)):
        store.append(X[part])
    assert len(store) == 50
    assert sp.issparse(store.rows) == sp.issparse(X)
    assert store.rows.dtype == store.dtype == np.float32
    np.testing.assert_array_equal(store.rows.toarray() if sp.issparse(X) else store.rows, rows)


def test_columns_that_occur():
    X = sp.csr_matrix([[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 0.0, 3.0]])
    columns, there = occurring(X)
    assert columns.tolist() == [1, 3]
    np.testing.assert_array_equal(there.toarray(), [[2.0, 1.0], [0.0, 3.0]])
    columns, there = occurring(X.toarray())
    assert columns.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(there.toarray(), X.toarray())
