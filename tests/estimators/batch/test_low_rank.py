"""Low-rank kernel logistic regression compared with NumPy and with SciPy's optimizer."""

import numpy as np
import pytest
from scipy.optimize import minimize

from klr_bench.estimators.batch.low_rank import factor, low_rank_path


def kernel_matrix(gamma, n=60):
    X = np.random.RandomState(0).standard_normal((n, 3))
    return np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_a_factor_leaves_the_share_of_the_diagonal_that_it_returns(real):
    K = kernel_matrix(0.1).astype(real)
    L, pivots, left = factor(K, 1e-3, 60)
    rest = K.astype(float) - L.T.astype(float) @ L
    assert left == pytest.approx(np.trace(rest) / 60, rel=1e-2)
    assert len(set(pivots)) == len(L) < 30
    assert left <= 1e-3 < factor(K, 1e-3, len(L) - 1)[2]
    np.testing.assert_allclose(np.tril(L[:, pivots], -1), 0, atol=1e-6)
    assert rest.diagonal().max() < 0.1
    assert pivots[1] == np.argmin(K[pivots[0]] ** 2)  # the largest diagonal element that is left


def test_a_narrow_kernel_is_given_up_early_if_the_rank_is_limited():
    K = kernel_matrix(10.0)
    assert [len(factor(K, 1e-6, most)[0]) for most in (40, 60)] == [10, 60]


def test_a_path_has_the_minima_of_the_weighted_objectives():
    random, K = np.random.RandomState(1), kernel_matrix(0.1)
    L, pivots, _ = factor(K, 1e-6, 60)
    signs, shares = np.sign(random.standard_normal((2, 60))), random.dirichlet(np.ones(60))
    for lam, coefs in zip((1e-1, 1e-3), low_rank_path(L, pivots, signs, (1e-1, 1e-3), shares, 1e-12), strict=True):
        for y, coef in zip(signs, coefs, strict=True):

            def objective(b, y=y, lam=lam):
                return shares @ np.logaddexp(0, -y * (b @ L)) + lam / 2 * b @ b

            b = minimize(objective, np.zeros(len(L)), tol=1e-10).x
            np.testing.assert_allclose(coef @ K[pivots], b @ L, rtol=1e-3, atol=1e-3)
