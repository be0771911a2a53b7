"""Online logistic regression of many classes, slow and obvious, in float64: what the learners are compared with.

Everything is in terms of probabilities and gradients; the norm comes from the whole kernel matrix at every step.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax, softmax


def online(K, y, n_classes, draws, step, radius=np.inf):
    """Run F <- project(F + C k_t) over examples of the classes y (T,), 0, 1, ...; step(y, f, u) answers C (M,) or None.

    Returns the coefficients of the last and of the average classifier, both (M, T), the mask of those that were
    inserted, the number of mistakes, and the sum of the losses -log softmax(f)[y].
    """
    T = len(y)
    coef, total = np.zeros((n_classes, T)), np.zeros((n_classes, T))
    inserted, mistakes, losses = np.zeros(T, dtype=bool), 0, 0.0
    for t in range(T):
        total += coef
        f = coef @ K[:, t]
        mistakes += f[y[t]] <= np.max(np.delete(f, y[t]))
        losses -= log_softmax(f)[y[t]]
        change = step(y[t], f, draws[t])
        if change is not None:
            coef[:, t] = change
            inserted[t] = True
        norm = np.sqrt(max(2 * np.trace(coef @ K @ coef.T), 0))
        if norm > radius:
            coef *= radius / norm
    return coef, total / T, inserted, mistakes, losses


def gradient(y, f):
    """The gradient of -log softmax(f)[y]."""
    g = softmax(f)
    g[y] = -np.sum(np.delete(g, y))
    return g


def length(g):
    """The norm of a gradient that goes with 2 sum_k ||F_k||^2."""
    return np.sqrt(np.sum(g**2) / 2)


def nc(eta):
    return lambda y, f, u: -eta / 2 * gradient(y, f)


def margin(eta):
    def step(y, f, u):
        g = gradient(y, f)
        return -eta / 2 * g if u < (2 - eta) / (2 - eta * length(g)) else None

    return step


def oskl(G, eta):
    def step(y, f, u):
        g = gradient(y, f)
        return -eta / 2 * G * g / length(g) if u < length(g) / G else None

    return step


def auxiliary(eta, h, gamma, delta):
    def step(y, f, u):
        odds = np.exp(f - f[y])  # against class y
        odds[y] = 0
        loss, others = np.log1p(np.sum(odds)), np.sum(odds)
        if h == "log_gamma":
            bound, slope = np.log(gamma + others), odds / (gamma + others)
        elif h == "log_one_plus_gamma":
            bound, slope = np.log1p(gamma * others), gamma * odds / (1 + gamma * others)
        else:
            bound, slope = max(loss, np.log1p(np.exp(-delta))), odds / (1 + others)
            if bound > loss:
                return None
        slope[y] = -np.sum(slope)
        return -eta / 2 * slope if u < loss / bound else None

    return step
