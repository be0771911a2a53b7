"""Kernels, operands and feature maps: each kind gives the values of its formula and suits the rows."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from klr_bench import L1KLR
from klr_bench.estimators.core import kernels
from klr_bench.estimators.core.kernels import Kernel, exp2_negative, finish, gamma_of
from klr_bench.estimators.core.vectors import SINGLE_TIE
from klr_bench.estimators.kernel_values import features
from klr_bench.estimators.kernel_values.bits import two_valued
from klr_bench.estimators.kernel_values.features import DrawnRows, FourierFeatures, KernelFeatures, scaled_cosine
from klr_bench.estimators.kernel_values.inverted import CompactIndex, sparse_products
from klr_bench.estimators.kernel_values.operands import Dense, Indexed, Packed, combined, operands_of, origin_of
from klr_bench.estimators.kernel_values.tiles import products_of, sums_and_nearest, sums_of, values_of
from klr_bench.estimators.peers.approximate import ApproximateKernelLR
from tests.estimators import samples
from tests.estimators.samples import CLASSIFIERS, small, spread_out, toy
from tests.reference import kernel as reference
from tests.reference.kernel import kernel_matrix

KERNELS = [Kernel("rbf", 0.05), Kernel("poly", 0.1, 3, 0.5), Kernel("poly", 0.1, 2.5, 1.0), Kernel("linear")]
KERNELS.append(Kernel("laplacian", 0.05))
TOLERANCE = {"float32": 2e-6, "float64": 1e-13}


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
    """Compare values and sums with those of the reference, in float64."""
    kernel = operands.kernel
    left, right = operands.left(X), operands.right(Z)
    options = {name: getattr(kernel, name) for name in ("gamma", "degree", "coef0")}
    dense = (rows.toarray() if sp.issparse(rows) else rows for rows in (X, Z))
    expected = kernel_matrix(*dense, kernel.name, **options)
    scale, values = np.abs(expected).max(), operands.values(left, right)
    assert values.dtype == dtype
    np.testing.assert_allclose(values, expected, rtol=0, atol=TOLERANCE[dtype] * scale)
    weights = np.random.RandomState(5).standard_normal((3, len(expected))).astype(dtype)
    for some in (weights, weights[:1]):
        sums = operands.sums(left, some, right)
        np.testing.assert_allclose(sums, some @ expected, rtol=0, atol=10 * TOLERANCE[dtype] * scale * len(expected))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("kernel", [Kernel("laplacian", 0.3), Kernel("sigmoid", 0.1, coef0=-0.5)], ids=str)
def test_kernels_are_those_of_scikit_learn(kernel, dtype):
    X = (toy(40)[0]).astype(dtype)
    expected = pairwise_kernels(X, X, kernel.name, filter_params=True, gamma=kernel.gamma, coef0=kernel.coef0)
    for layout in (np.asarray, sp.csr_matrix):
        operands = operands_of(kernel, layout(X))
        check(operands, sp.csr_matrix(X), X[:17], dtype)
        np.testing.assert_allclose(operands.values(operands.left(X), operands.right(X)), expected, rtol=1e-5)
        np.testing.assert_allclose(operands.diagonal(operands.rows(X)), np.diag(expected), rtol=1e-6)


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
def test_which_features_may_be_bits(dtype):
    X = (2 * binary(50, 40) - 1 + np.arange(40) % 3).astype(dtype)
    operands = packed(KERNELS[0], X)
    assert len(operands.features.columns) == 40
    check(operands, X[:30], X[30:], dtype)
    assert len(packed(KERNELS[1], X).features.columns) < 40  # of products the zero has to be one of the values
    X = binary(50, 60).astype(dtype)
    X[:, 7], X[:, 8] = 0, 1  # which may get the other value later
    operands = operands_of(KERNELS[0], X)
    assert len(operands.features.columns) == 60
    Z = X.copy()
    Z[3, 7], Z[3, 8] = 1, 0
    assert operands.fitting(Z) is operands
    check(operands, X, Z, dtype)


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


def test_the_kind_suits_the_rows():
    random = np.random.RandomState(0)
    few = random.random_sample((300, 784)) * (random.random_sample(784) < 0.6)
    few[:, :3] = binary(300, 3)
    for X, kind in (
        (sp.random(300, 100, density=0.3, format="csr", random_state=random), Dense),
        (sp.random(300, 5000, density=0.01, format="csr", random_state=random), Indexed),
        (sp.csr_matrix((300, 10_000)), Indexed),
        (random.standard_normal((300, 20)), Dense),
        (with_others(binary(300, 8), 10), Dense),  # too few to pay
        (binary(300, 123), Packed),
        (sp.csr_matrix(binary(300, 123, share=0.1)), Packed),
        (with_others(binary(300, 44), 10), Packed),
        (few, Dense),  # features that never vary tell nothing
    ):
        assert type(operands_of(KERNELS[0], X)) is kind


@settings(max_examples=40)
@given(n=st.integers(0, 20), m=st.integers(0, 20), kernel=st.sampled_from(KERNELS), seed=st.integers(0, 99))
def test_products_by_index(n, m, kernel, seed):
    """They are the products, and the same for few entries in many features."""
    random = np.random.RandomState(seed)
    left, right = (sp.random(k, 60, density=0.1, format="csr", random_state=random) for k in (n, m))
    np.testing.assert_allclose(sparse_products(left, right.T.tocsr()), (left @ right.T).toarray(), rtol=1e-12)
    operands = Indexed(kernel)
    wide = operands.right(spread_out(right))
    assert isinstance(wide, CompactIndex)
    expected = operands.values(left, right.T.tocsr())
    np.testing.assert_array_equal(operands.values(operands.left(spread_out(left)), wide), expected)


def test_powers_of_two_in_single_precision():
    x = -np.concatenate([np.linspace(0, 126, 100_001), np.logspace(-30, 0, 1001)]).astype(np.float32)
    edges = np.array([0.0, 1e-6, 5.0, -126.5, -1e4, -np.inf], dtype=np.float32)
    left = np.array([[0.0, 1.0]], dtype=np.float32)

    def in_place(x):
        values = x[None].copy()
        exp2_negative(values)
        return values[0]

    def in_tile(x):
        return values_of(left, np.stack([np.ones_like(x), x]))[0]

    for power in (in_place, in_tile):
        np.testing.assert_allclose(power(x), np.exp2(x.astype(np.float64)), rtol=2e-7)
        np.testing.assert_array_equal(power(edges)[:3], 1)
        assert (power(edges)[3:] < 2e-38).all()


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 40),
    m=st.integers(1, 150),
    d=st.integers(0, 9),
    n_words=st.integers(0, 5),
    size=st.integers(1, 50),
    k=st.integers(1, 7),
    is_laplacian=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_tiles_are_those_of_a_loop_in_float64(n, m, d, n_words, size, k, is_laplacian, seed):
    random = np.random.RandomState(seed)
    width = n_words + d + 2 * (d > 0)
    left, right = (random.standard_normal(shape).astype(np.float32) for shape in ((n, width), (width, m)))
    left[:, n_words + d + 1 :] = right[n_words + d : width - 1] = 1
    words = [random.randint(0, 2**32, shape, np.uint32) for shape in ((n, n_words), (n_words, m))]
    left[:, :n_words], right[:n_words] = words[0].view(np.float32), words[1].view(np.float32)
    weights, per_bit = random.standard_normal(n).astype(np.float32), -0.03
    differing = np.bitwise_xor(words[0][:, :, None], words[1][None]) if n_words else np.zeros((n, 1, m), np.uint32)
    counts = np.unpackbits(np.ascontiguousarray(np.moveaxis(differing, 1, 2)).view(np.uint8), axis=2).sum(axis=2)
    x, z = left[:, n_words:].astype(np.float64), right[n_words:].astype(np.float64)
    exponents = x @ z
    if is_laplacian and d:
        exponents = np.minimum(x[:, :d, None], z[:d]).sum(axis=1) + x[:, -2:-1] + z[-1]
    expected, scale = np.exp2(np.minimum(exponents + per_bit * counts, 0)), np.abs(weights).sum()
    layout = n_words, per_bit, kernels.LAPLACIAN if is_laplacian else kernels.RBF
    np.testing.assert_allclose(values_of(left, right, *layout), expected, atol=3e-6)
    sums = sums_of(left, weights, right, size, *layout)
    np.testing.assert_allclose(sums / scale, weights @ expected / scale, atol=3e-6)
    many = random.standard_normal((k, n)).astype(np.float32) * (random.random_sample((k, n)) < random.random_sample())
    products = products_of(many, left, right, *layout)
    np.testing.assert_allclose(products / n, many @ expected / n, atol=3e-6)


@pytest.mark.parametrize(("n", "b"), [(16, 1), (23, 70), (500, 33), (1000, 128)])
@pytest.mark.parametrize("n_bits", [0, 50])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_sums_and_the_first_of_the_nearest_rows_are_those_of_all_values(kernel, n, b, n_bits):
    X = with_others(binary(n + b, n_bits), 3).astype("float32")
    X[n // 2] = X[n // 3]  # ties, of which the first is taken
    X[n : n + b // 2] = X[n // 2]
    operands = packed(Kernel(kernel, 0.2), X) if n_bits else Dense(Kernel(kernel, 0.2), origin_of(X))
    (left, right), weights = operands.both(X), np.random.RandomState(0).standard_normal(n).astype(np.float32)
    right, others = map(np.ascontiguousarray, (right, right[:, n:]))
    sums, nearest = sums_and_nearest(left[:n], weights, right, others, left[n:], *operands.layout(left))
    values = kernel_matrix(X[:n], X[n:], kernel, gamma=0.2)
    np.testing.assert_allclose(sums, weights @ values, atol=1e-5 * n)
    np.testing.assert_array_equal(nearest, np.argmax(values >= values.max(axis=0) * (1 - SINGLE_TIE), axis=0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "kernel", [*samples.KERNELS.values(), *({"kernel": "poly", "degree": d} for d in (1, 3, 5, 2.5))]
)
def test_compiled_kernel_values_are_those_of_the_kernel(kernel, dtype):
    X = np.random.RandomState(0).standard_normal((20, 3)).astype(dtype)
    function = Kernel(kernel["kernel"], kernel.get("gamma", 0.1), kernel.get("degree", 3), 2.0)
    operands = Dense(function, np.zeros(3, dtype))
    left, right = operands.left(X), operands.right(X)
    values = np.ascontiguousarray(combined(function, left, right))
    finish(values, kernels.KERNELS.index(kernel["kernel"]), float(kernel.get("degree", 3)))
    np.testing.assert_allclose(values, operands.values(left, right), rtol=3e-6)
    options = {"gamma": function.gamma, "degree": function.degree, "coef0": 2.0}
    np.testing.assert_allclose(values, kernel_matrix(X, X, function.name, **options), rtol=1e-4, atol=1e-5)


RANDOM = np.random.RandomState(3)
ROWS = RANDOM.standard_normal((80, 4)) * [1, 2, 5, 0.1] + 3
LABELS = np.where(ROWS[:, 0] > 3, "b", "a")


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_a_gamma_by_name_is_that_of_the_rows(layout):
    rows = np.where(RANDOM.random_sample(ROWS.shape) < 0.4, 0, ROWS)
    X = layout(rows)
    assert gamma_of("scale", X) == pytest.approx(SVC(gamma="scale").fit(X, LABELS)._gamma)
    distances = [np.linalg.norm(rows[i] - rows[j]) for i in range(80) for j in range(i)]
    assert gamma_of("median", X) == pytest.approx(1 / (2 * np.median(distances) ** 2))
    assert gamma_of(None, X) == gamma_of("auto", X) == SVC(gamma="auto").fit(X, LABELS)._gamma == 1 / 4
    assert gamma_of(0.3, X) == 0.3
    assert gamma_of("scale", layout(np.ones((5, 4)))) == gamma_of("median", layout(np.ones((5, 4)))) == 1 / 4
    assert gamma_of("median", layout(rows[:1])) == gamma_of("scale", layout(rows[:1]))


def test_the_median_is_that_of_a_thousand_rows_from_all_over():
    X = np.sort(RANDOM.standard_normal((30_000, 1)), axis=0)
    sample = np.abs(np.subtract.outer(X[::29, 0], X[::29, 0]))[np.triu_indices(len(X[::29]), k=1)]
    assert gamma_of("median", X) == pytest.approx(1 / (2 * np.median(sample) ** 2), rel=0.02)


BY_GAMMA = [
    small(cls(), random_state=0, budget=9, n_components=30)
    for cls in CLASSIFIERS.values()
    if any("'scale'" in str(option) for option in cls._parameter_constraints.get("gamma", []))
]
BY_GAMMA += [L1KLR(features="fourier", random_state=0), ApproximateKernelLR("fourier", random_state=0)]


@pytest.mark.parametrize("name", ["scale", "auto", "median"])
@pytest.mark.parametrize("estimator", BY_GAMMA, ids=lambda value: repr(value)[:30])
def test_a_fit_with_a_gamma_by_name_is_that_with_the_number(estimator, name):
    by_name = estimator.set_params(gamma=name).fit(ROWS, LABELS).decision_function(ROWS)
    number = estimator.set_params(gamma=gamma_of(name, ROWS)).fit(ROWS, LABELS).decision_function(ROWS)
    np.testing.assert_array_equal(by_name, number)


def test_fourier_features_estimate_the_kernel():
    X, _ = toy()
    Z = FourierFeatures.of(X, 20_000, 0.7, np.random.RandomState(0)).transform(X)
    np.testing.assert_allclose(Z @ Z.T, reference.kernel_matrix(X, X, gamma=0.7), atol=0.05)


@pytest.mark.parametrize("J", [[7, 2, 3], []])
def test_maps_take_features(J):
    X, _ = toy()
    J = np.array(J, dtype=np.intp)
    kernel = KernelFeatures.of(X, Kernel("rbf", 0.7))
    for drawn in (kernel, FourierFeatures.of(X, 20, 0.7, np.random.RandomState(0))):
        np.testing.assert_allclose(drawn.take(J).transform(X), drawn.transform(X)[:, J], rtol=1e-10)
    np.testing.assert_allclose(kernel.transform(X), reference.kernel_matrix(X, X, gamma=0.7), rtol=1e-9)


@pytest.mark.parametrize("at_once", [1, 60, 2**18])
def test_rows_of_omega_can_be_drawn_when_needed(at_once, monkeypatch):
    monkeypatch.setattr(features, "MOST_STORED", 0)
    monkeypatch.setattr(features, "DRAWN_AT_ONCE", at_once)
    X, _ = toy()
    X = sp.csr_matrix(X)
    drawn = FourierFeatures.of(X, 2000 if at_once > 60 else 60, 0.7, np.random.RandomState(0))
    assert isinstance(drawn.omega, DrawnRows)
    Z, J = drawn.transform(X), np.array([7, 2, 3])
    if at_once > 60:
        np.testing.assert_allclose(Z @ Z.T, reference.kernel_matrix(X.toarray(), X.toarray(), gamma=0.7), atol=0.15)
    np.testing.assert_allclose(drawn.take(J).transform(X), Z[:, J], rtol=1e-12, atol=1e-15)
    twice = drawn.take(J).take(np.array([2, 0])).transform(X)
    np.testing.assert_allclose(twice, Z[:, [3, 7]], rtol=1e-12, atol=1e-15)
    of_dense = FourierFeatures.of(X.toarray(), len(drawn.b), 0.7, np.random.RandomState(0))
    np.testing.assert_allclose(of_dense.transform(X), Z, rtol=1e-9, atol=1e-12)
    for rows in (X[:5], X[:5].toarray()):
        np.testing.assert_allclose(drawn.transform(rows), Z[:5], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(drawn.transform(X.astype(np.float32)), Z, atol=1e-5)


ZEROS = [k * math.pi / 2 for k in (0, 1, -1, 2, 1000, -99_999, 300_000)]
NEAR = [value for zero in ZEROS for value in (zero, np.nextafter(zero, -9e9), np.nextafter(zero, 9e9), zero + 1e-9)]


@given(
    st.sampled_from([np.float32, np.float64]),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40),
    st.floats(0, 2 * math.pi),
)
@example(np.float32, NEAR, 0.0)
@example(np.float64, NEAR, 0.0)
@example(np.float64, [1e300], 0.0)
def test_the_cosine_equals_that_of_numpy(dtype, values, b):
    x = np.array([values], dtype=dtype)
    expected, bound = 0.5 * np.cos(x.astype(np.float64) + b), 0.5 * np.finfo(dtype).eps * (2 + np.abs(x) + b)
    scaled_cosine(x, np.full(len(values), b), 0.5)
    assert (np.abs(x - expected) <= np.minimum(bound, 1.0)).all()
