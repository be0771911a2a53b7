"""Kernel values: compiled parts against numpy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from klr_bench import L1KLR, ApproximateKernelLR, DualCDKLR, ImportVectorMachine, fit_many
from klr_bench.estimators.core.kernels import KERNELS as NAMES
from klr_bench.estimators.core.kernels import Kernel, exp_negative, finish, gamma_of, raise_to, sum_exp_negative
from klr_bench.estimators.core.operands import Dense
from tests.estimators.one_pass import OSKL, Forgetron, NonConservativeKLR
from tests.estimators.samples import KERNELS


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
    operands = Dense(function, np.zeros(3, dtype))
    left, right = operands.left(X), operands.right(X)
    values = np.ascontiguousarray(left @ right)
    finish(values, NAMES.index(kernel["kernel"]), float(kernel.get("degree", 3)))
    np.testing.assert_allclose(values, operands.values(left, right), rtol=1e-6)


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
    assert gamma_of(None, X) == 1 / 4
    assert gamma_of(0.3, X) == 0.3
    assert gamma_of("scale", layout(np.ones((5, 4)))) == gamma_of("median", layout(np.ones((5, 4)))) == 1 / 4
    assert gamma_of("median", layout(rows[:1])) == gamma_of("scale", layout(rows[:1]))


def test_the_median_is_that_of_a_thousand_rows_from_all_over():
    X = np.sort(RANDOM.standard_normal((30_000, 1)), axis=0)
    sample = np.abs(np.subtract.outer(X[::29, 0], X[::29, 0]))[np.triu_indices(len(X[::29]), k=1)]
    assert gamma_of("median", X) == pytest.approx(1 / (2 * np.median(sample) ** 2), rel=0.02)


@pytest.mark.parametrize("name", ["scale", "median"])
@pytest.mark.parametrize(
    "estimator",
    [
        NonConservativeKLR(),
        OSKL(random_state=0),
        Forgetron(budget=9),
        DualCDKLR(random_state=0),
        ImportVectorMachine(),
        L1KLR(),
        L1KLR(features="fourier", n_components=20, random_state=0),
        ApproximateKernelLR("fourier", random_state=0),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_fit_with_a_gamma_by_name_is_that_with_the_number(estimator, name):
    by_name = estimator.set_params(gamma=name).fit(ROWS, LABELS).decision_function(ROWS)
    number = estimator.set_params(gamma=gamma_of(name, ROWS)).fit(ROWS, LABELS).decision_function(ROWS)
    np.testing.assert_array_equal(by_name, number)


def test_learners_with_a_gamma_by_name_share_a_pass():
    together = fit_many([OSKL(gamma="scale", R=R, random_state=0) for R in (1, 10)], ROWS, LABELS)
    for learner in together:
        alone = OSKL(gamma="scale", R=learner.R, random_state=0).fit(ROWS, LABELS)
        np.testing.assert_allclose(learner.dual_coef_, alone.dual_coef_)
