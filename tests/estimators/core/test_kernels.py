"""Kernel values: compiled parts against numpy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from klr_bench.estimators.core.kernels import KERNELS as NAMES
from klr_bench.estimators.core.kernels import (
    Kernel,
    dense_is_cheaper,
    exp_negative,
    finish,
    raise_to,
    sparse_products,
    sum_exp_negative,
)
from tests.estimators.samples import KERNELS


def test_sparse_rows_become_dense_where_that_is_cheaper():
    random = np.random.RandomState(0)
    few_features = sp.random(300, 100, density=0.3, format="csr", random_state=random)
    many_features = sp.random(300, 5000, density=0.01, format="csr", random_state=random)
    assert dense_is_cheaper(few_features)
    assert not dense_is_cheaper(many_features)
    assert not dense_is_cheaper(sp.csr_matrix((300, 10_000)))


@settings(max_examples=30)
@given(
    n=st.integers(1, 20), m=st.integers(1, 20), d=st.integers(1, 30), density=st.floats(0, 1), seed=st.integers(0, 99)
)
def test_products_by_index_are_the_products(n, m, d, density, seed):
    random = np.random.RandomState(seed)
    left, right = (sp.random(k, d, density=density, format="csr", random_state=random) for k in (n, m))
    np.testing.assert_allclose(sparse_products(left, right.T.tocsr()), (left @ right.T).toarray(), rtol=1e-12)


def test_the_exponential_of_single_precision():
    x = -np.concatenate([np.linspace(0, 87, 100_001), np.logspace(-30, 0, 1001)]).astype(np.float32)
    y = x[None].copy()
    exp_negative(y)
    np.testing.assert_allclose(y[0], np.exp(x.astype(np.float64)), rtol=3e-7)
    edges = np.array([[0.0, 1e-6, 5.0, -87.5, -1e4, -np.inf]], dtype=np.float32)
    exp_negative(edges)
    np.testing.assert_array_equal(edges[0, :3], 1)
    assert (edges[0, 3:] < 2e-38).all()
    weights, exponents = np.array([1.0, -2.0], dtype=np.float32), np.stack([x, x / 2])
    expected = weights @ np.exp(exponents.astype(np.float64))
    np.testing.assert_allclose(sum_exp_negative(exponents, weights), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("degree", [1, 2, 3, 5, 2.5])
def test_powers(degree):
    values = np.linspace(0.1, 2, 50).reshape(5, 10)
    expected = values**degree
    raise_to(values, degree)
    np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_compiled_kernel_values_are_those_of_the_kernel(kernel, dtype):
    X = np.random.RandomState(0).standard_normal((20, 3)).astype(dtype)
    function = Kernel(kernel["kernel"], kernel.get("gamma", 1.0), kernel.get("degree", 3))
    left, right = function.left(X), function.right(X)
    values = np.ascontiguousarray(left @ right)
    finish(values, NAMES.index(kernel["kernel"]), float(kernel.get("degree", 3)))
    np.testing.assert_allclose(values, function.values(left, right), rtol=1e-6)
