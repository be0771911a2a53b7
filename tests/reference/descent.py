"""Slow, obvious implementations of gradient descent on features, in float64, one example at a time."""

from __future__ import annotations

import numpy as np

from tests.reference.kernel import loss_derivative


def fourier_features(X, n_components, gamma, seed):
    """Z (n, D) of rows X (n, d): products of its rows are about exp(-gamma ||x - x'||^2)."""
    random = np.random.RandomState(seed)
    omega = np.sqrt(2 * gamma) * random.standard_normal((X.shape[1], n_components))
    phase = random.uniform(0, 2 * np.pi, n_components)
    Z = np.zeros((len(X), n_components))
    for i, x in enumerate(np.asarray(X, dtype=np.float64)):
        for j in range(n_components):
            Z[i, j] = np.sqrt(2 / n_components) * np.cos(np.sum(x * omega[:, j]) + phase[j])
    return Z


def descent(Z, y, eta, loss, weights):
    """Return the last w, the average of those before each example, and the numbers of mistakes and of steps."""
    w, total, mistakes, updates = np.zeros(Z.shape[1]), np.zeros(Z.shape[1]), 0, 0
    for z, label, weight in zip(Z, y, weights, strict=True):
        total += w
        f = np.sum(w * z)
        mistakes += label * f <= 0
        step = -eta * weight * loss_derivative(loss, label, f)
        updates += step != 0
        w = w + step * z
    return w, total / len(Z), mistakes, updates


def nogd(K, Y, budget, rank, eta, loss, weights):
    """NOGD of several functions, one for each row of labels Y (M, T), on the same support vectors.

    K (T, T) are the kernel values of the examples.  Returns the support vectors' places, the coefficients (M, n) of the
    last and of the average functions, and the numbers of mistakes and of steps.
    """
    places, mistakes, updates, P = [], 0, 0, None
    a, total = np.zeros(Y.shape), np.zeros(Y.shape)  # coefficients of all examples; their sum over the steps
    w = None
    for t in range(len(K)):
        if P is not None:
            a[:, places] = w @ P.T
        total += a
        f = a @ K[:, t]
        steps = [-eta * weights[t] * loss_derivative(loss, y, value) for y, value in zip(Y[:, t], f, strict=True)]
        mistakes += np.sum(Y[:, t] * f <= 0)
        updates += np.count_nonzero(steps)
        if P is not None:
            w = w + np.outer(steps, P.T @ K[places, t])
        elif np.any(steps):
            a[:, t] = steps
            places.append(t)
            if len(places) == budget:
                P, inverse = nystroem(K[np.ix_(places, places)], rank)
                w = a[:, places] @ inverse
    if P is not None:
        a[:, places] = w @ P.T
    return places, a[:, places], total[:, places] / len(K), mistakes, updates


def nystroem(K, rank):
    """Return V_k D_k^-1/2 and V_k D_k^1/2 (B, k) for the largest eigenvalues of K = V D V'."""
    values, vectors = np.linalg.eigh(K)
    largest = np.argsort(values)[::-1][:rank]
    D, V = values[largest], vectors[:, largest]
    return V / np.sqrt(D), V * np.sqrt(D)
