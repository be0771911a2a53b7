"""Simple, slow reference implementations of online logistic regression with many classes, in float64.

They use probabilities and gradients; norms are computed from the whole kernel matrix at every step.
"""

import numpy as np
from scipy.special import log_softmax, softmax

from tests.reference.kernel import Budgeted


def online(K, y, n_classes, draws, step, radius=np.inf):
    """Run F <- project(F + C k_t), where step(y, f, u) returns C (M,), or None for no update.

    The examples have the classes y (T,), 0, 1, ..., M - 1.

    The result is that of `kernel.online`, with coefficients (M, T) and the losses -log softmax(f)[y].
    """
    f = Budgeted(K)
    f.coef, f.total = np.zeros((2, n_classes, len(y)))
    f.mistakes, f.losses = 0, 0.0
    for t in f:
        values = f.coef @ K[:, t]
        f.mistakes += values[y[t]] <= np.max(np.delete(values, y[t]))
        f.losses -= log_softmax(values)[y[t]]
        change = step(y[t], values, draws[t])
        if change is not None:
            f.coef[:, t], f.inserted[t] = change, True
        f.coef *= min(1, radius / max(np.sqrt(max(2 * np.trace(f.coef @ K @ f.coef.T), 0)), 1e-300))
    return f


def gradient(y, f):
    """Return the gradient of -log softmax(f)[y]."""
    g = softmax(f)
    g[y] = -np.sum(np.delete(g, y))
    return g


def length(g):
    """Return the norm of a gradient that is dual to ||F||^2 = 2 sum_k ||F_k||^2."""
    return np.sqrt(np.sum(g**2) / 2)


def nc(eta):
    return lambda y, f, u: -eta / 2 * gradient(y, f)


def margin(eta):
    def step(y, f, u):
        g = gradient(y, f)
        return -eta / 2 * g if u < (2 - eta) / (2 - eta * length(g)) else None

    return step


def oskl(G, eta):
    eta = eta or 0.9 / G

    def step(y, f, u):
        g = gradient(y, f)
        return -eta / 2 * G * g / length(g) if u < length(g) / G else None

    return step


def auxiliary(eta, h, aux_gamma, aux_delta):
    def step(y, f, u):
        odds = np.exp(f - f[y])  # odds relative to class y
        odds[y] = 0
        loss, others = np.log1p(np.sum(odds)), np.sum(odds)
        if h == "log_gamma":
            bound, slope = np.log(aux_gamma + others), odds / (aux_gamma + others)
        elif h == "log_one_plus_gamma":
            bound, slope = np.log1p(aux_gamma * others), aux_gamma * odds / (1 + aux_gamma * others)
        else:
            bound, slope = max(loss, np.log1p(np.exp(-aux_delta))), odds / (1 + others)
            if bound > loss:
                return None
        slope[y] = -np.sum(slope)
        return -eta / 2 * slope if u < loss / bound else None

    return step
