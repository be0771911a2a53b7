"""Slow, obvious implementations in float64, one example at a time: what the solvers are compared with.

Nothing here is shared with the package, and nothing is clever: norms are computed from the whole kernel matrix at
every step, and averages by adding whole coefficient vectors.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit


def kernel_matrix(A, B, kernel="rbf", gamma=1.0, degree=3, coef0=1.0):
    """k(a, b) for dense float64 rows a of A and b of B."""
    A, B = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
    if kernel == "rbf":
        return np.exp(-gamma * np.sum((A[:, None, :] - B[None, :, :]) ** 2, axis=2))
    products = np.sum(A[:, None, :] * B[None, :, :], axis=2)
    return products if kernel == "linear" else (gamma * products + coef0) ** degree


def online(K, y, draws, step, radius=np.inf):
    """Run f <- project(s f + c k_t); step(y, f, u, t) answers (insert, s, c).

    Returns the coefficients of the last and of the average classifier, both of length T with zeros for examples that
    were not inserted, the mask of those that were, and the number of mistakes, y f(x) <= 0.
    """
    T = len(y)
    coef, total, inserted, mistakes = np.zeros(T), np.zeros(T), np.zeros(T, dtype=bool), 0
    for t in range(T):
        total += coef
        f = np.sum(coef * K[:, t])
        mistakes += y[t] * f <= 0
        insert, s, c = step(y[t], f, draws[t], t + 1)
        coef *= s
        if insert:
            coef[t] = c
            inserted[t] = True
        norm = np.sqrt(max(coef @ K @ coef, 0))
        if norm > radius:
            coef *= radius / norm
    return coef, total / T, inserted, mistakes


def nc(eta):
    return lambda y, f, u, t: (True, 1, eta * y * expit(-y * f))


def margin(eta):
    def step(y, f, u, t):
        p = (2 - eta) / (2 - eta + eta * expit(y * f))
        return u < p, 1, eta * y * expit(-y * f)

    return step


def auxiliary(eta, h, g, d):
    def loss(z):
        return -log_expit(z)

    def step(y, f, u, t):
        z = y * f
        if h == "log_gamma":
            p = loss(z) / np.logaddexp(np.log(g), -z)
            return u < p, 1, eta * y / (1 + g * np.exp(z))
        if h == "log_one_plus_gamma":
            p = loss(z) / np.logaddexp(0, np.log(g) - z)
            return u < p, 1, eta * y * g / (g + np.exp(z))
        if z <= d:
            return True, 1, eta * y * expit(-z)
        return False, 1, 0

    return step


def loss_derivative(loss, y, f, delta=0.0):
    if loss == "logit":
        return -y * expit(-y * f)
    if loss == "exponential":
        return -y * np.exp(-y * f)
    if loss == "hinge":
        return -y if y * f < 1 else 0.0
    return 2 * (f - y) if abs(y - f) >= delta else 0.0


def oskl(G, eta, loss, delta):
    def step(y, f, u, t):
        slope = loss_derivative(loss, y, f, delta)
        assert abs(slope) <= G
        return u < abs(slope) / G, 1, -eta * G * np.sign(slope)

    return step


def pegasos(lam):
    def step(y, f, u, t):
        return y * f < 1, 1 - 1 / t, y / (lam * t)

    return step


def perceptron():
    return lambda y, f, u, t: (y * f <= 0, 1, y)


def ogd(eta, loss):
    def step(y, f, u, t):
        slope = loss_derivative(loss, y, f)
        return slope != 0, 1, -eta * slope

    return step
