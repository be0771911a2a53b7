"""Approximation of a kernel expansion by one with few support vectors, which are moved.

For the probabilities p(f) of an expansion f, sigma(f) for two classes and softmax(f) for more, the support vectors z,
coefficients a and gamma of g_k = sum_j a_kj k(z_j, .), where k(z, x) = exp(-gamma ||z - x||^2), are moved to lower the
mean cross-entropy of p(g) and p(f),

    1/n sum_i w_i [log(1 + e^{g(x_i)}) - p(f(x_i)) g(x_i)]
    or  1/n sum_i w_i [log sum_k e^{g_k(x_i)} - sum_k p_k(f(x_i)) g_k(x_i)].

With r_ik = w_i (p_k(g(x_i)) - p_k(f(x_i))) / n and q_ij = k(z_j, x_i) sum_k r_ik a_kj, its derivatives are

    by z_j           2 gamma sum_i q_ij (x_i - z_j)
    by a_kj          sum_i r_ik k(z_j, x_i)
    by log gamma     -gamma sum_ij q_ij ||z_j - x_i||^2

The steps are those of Adam (Kingma, Ba, ICLR 2015), on random rows.  They are taken in c = a L instead of a, where L is
the Cholesky factor of the kernel matrix of the first z: with a wide kernel the k(z_j, .) are nearly equal and the a
large, so that small steps in a change g much.  For the same reason z_j takes shorter steps if a_j is large.
"""

from __future__ import annotations

import math
import time

import numpy as np
from scipy.special import expit, softmax

from klr_bench.estimators.batch.selection import operands_for
from klr_bench.estimators.core.kernels import Kernel, squared_norms
from klr_bench.estimators.core.threads import parallel_map

N_STEPS, BATCH = 6000, 256
"""Number of steps, and number of rows per step."""
RATE = 0.05
"""Length of the first step, as a share of the kernel width 1 / sqrt(2 gamma) for z, and of the size of c."""
RATE_OF_GAMMA = 0.01
"""Length of the first step in log gamma."""
MEAN, SQUARE, EPSILON = 0.9, 0.99, 1e-10
"""beta_1, beta_2 and epsilon of Adam."""
RIDGE = 1e-2
"""Added to the diagonal of the kernel matrix of z, which limits L^{-1}."""


def approximate(f, X, weights, support, coef, gamma, random, deadline=math.inf):
    """Return support vectors, coefficients and gamma of an expansion that approximates f.

    f (n, m) are the values of m functions at the rows of X (n, d), and weights (n,) those of the rows, or None.
    `support` (J, d), `coef` (m, J) and `gamma` are those of the first expansion.  Fewer steps are taken if the
    `deadline`, a value of `time.monotonic`, is earlier.
    """
    if not coef.any():  # f = 0
        return support, coef, gamma
    targets = probabilities(f).astype(X.dtype)
    shares = np.full(len(X), 1 / BATCH) if weights is None else weights / (weights.mean() * BATCH)
    K, _ = kernel_values(support.astype(np.float64), support.astype(np.float64), gamma)
    L = np.linalg.cholesky(K + RIDGE * np.eye(len(K)))
    c, inverse = coef @ L, np.linalg.inv(L).astype(X.dtype)
    size = np.sqrt(np.mean(c**2))
    of_each = np.minimum(1, size / np.abs(coef).max(axis=0)) / np.sqrt(2 * gamma)
    lengths = [RATE * np.repeat(of_each, X.shape[1]), np.full(c.size, RATE * size), [RATE_OF_GAMMA]]
    x, lengths = (np.concatenate(parts, axis=None) for parts in ([support, c, np.log(gamma)], lengths))

    def expansion():
        z, c, log_gamma = np.split(x.astype(X.dtype), [support.size, -1])
        return z.reshape(support.shape), c.reshape(coef.shape) @ inverse, np.exp(log_gamma[0])

    def slope_of(rows):
        by_z, by_a, by_gamma = slopes(X[rows], targets[rows], shares[rows], *expansion())
        return np.concatenate([by_z, by_a @ inverse.T, by_gamma], axis=None)

    (mean, square), begun = np.zeros((2, len(x))), time.monotonic()
    for t in range(N_STEPS):
        now = time.monotonic()
        if now >= deadline:
            break
        done = max(t / N_STEPS, (now - begun) / (deadline - begun))
        slope = sum(parallel_map(slope_of, np.split(random.randint(len(X), size=BATCH), 2)))
        mean += (1 - MEAN) * (slope - mean)
        square += (1 - SQUARE) * (slope**2 - square)
        spread = np.sqrt(square / (1 - SQUARE ** (t + 1))) + EPSILON
        x -= (1 - done) * lengths * mean / (1 - MEAN ** (t + 1)) / spread
    z, a, gamma = expansion()
    return z, a.astype(np.float64), float(gamma)


def slopes(X, targets, shares, support, coef, gamma):
    """Return the slopes of the cross-entropy by support vectors, coefficients and log gamma.

    The `targets` (n, m) are probabilities, and the `shares` (n,) w_i / n.
    """
    K, D = kernel_values(X, support, gamma)
    R = (shares[:, None] * (probabilities(K @ coef.T) - targets)).astype(X.dtype)
    Q = K * (R @ coef)
    return 2 * gamma * (Q.T @ X - Q.sum(axis=0)[:, None] * support), R.T @ K, -gamma * np.vdot(Q, D)


def probabilities(f):
    """Return the probability of the second of two classes, or of each of several."""
    return softmax(f, axis=1) if f.shape[1] > 1 else expit(f)


def kernel_values(X, Z, gamma):
    """Return the rbf kernel values of the rows of X and Z, and the squared distances."""
    D = np.maximum(squared_norms(X)[:, None] + squared_norms(Z) - 2 * (X @ Z.T), 0)
    return np.exp(-gamma * D), D


def move_support(model, f, rows, weights, temperature, random, deadline=math.inf):
    """Move the support vectors of a model with the rbf kernel to approximate values f.

    f has shape (n,), or (n, n_classes) for probabilities softmax(f / temperature); `rows` (n, d) and `weights` (n,), or
    None, are the training rows.  The steps end before the `deadline`.
    """
    T, f = temperature, f.reshape(len(f), -1)
    start = model.support_vectors_, np.atleast_2d(model.dual_coef_) / T, model.gamma
    model.support_vectors_, coef, model.gamma = approximate(f / T, rows, weights, *start, random, deadline)
    model.dual_coef_, model._operands = (
        T * (coef if len(coef) > 1 else coef[0]),
        operands_for(Kernel("rbf", model.gamma), rows),
    )
