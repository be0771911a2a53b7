"""Reference implementations of confidence-weighted learners in float64, as in the papers."""

import math
from functools import partial

import numpy as np
from scipy.linalg import sqrtm
from scipy.stats import norm


def online(X, y, step, *, diagonal=False, limit=np.inf):
    """Return the mean (d,), the covariance (d, d) or (d,), and the numbers of updates and mistakes.

    `step(m, v) -> (alpha, beta)`, or None for no update; S^-1 grows by at most limit/||x||^2 x x'.
    """
    d = X.shape[1]
    mean, S = np.zeros(d), np.eye(d)
    updates = mistakes = 0
    for x, label in zip(X.astype(np.float64), y, strict=True):
        m, v = label * (mean @ x), x @ S @ x
        mistakes += m <= 0
        found = step(m, v) if v > 0 else None
        if found is not None:
            alpha, beta = found
            most = limit / (x @ x)
            if beta > most * (1 - beta * v):
                beta = 1 / (1 / most + v)
            Sx = S @ x
            mean = mean + alpha * label * Sx
            S = S - beta * np.outer(Sx, Sx)
            if diagonal:
                S = np.diag(np.diag(S))
            updates += 1
    return mean, np.diag(S) if diagonal else S, updates, mistakes


def arow(r):
    return lambda m, v: ((1 - m) / (v + r), 1 / (v + r)) if m < 1 else None


def narow(b):
    def step(m, v):
        return arow(v / (b * v - 1))(m, v) if v > 1 / b else None

    return step


def _beta(alpha, v, phi):
    u = 0.25 * (-alpha * v * phi + math.sqrt(alpha**2 * v**2 * phi**2 + 4 * v)) ** 2
    return alpha * phi / (math.sqrt(u) + alpha * phi * v)


def cw(confidence, C=math.inf):
    """Return the step of CW or, if C is finite, of SCW-I."""
    phi = norm.ppf(confidence)
    psi, xi = 1 + phi**2 / 2, 1 + phi**2

    def step(m, v):
        if phi * math.sqrt(v) <= m:
            return None
        alpha = max(0.0, (-m * psi + math.sqrt(m**2 * phi**4 / 4 + v * phi**2 * xi)) / (v * xi))
        alpha = min(C, alpha)
        return alpha, _beta(alpha, v, phi)

    return step


def scw2(confidence, C, *, libol=False):
    """SCW-II as published; as LIBOL 0.3 computes it, under the root v^2 is 2 v and the last phi^2 is 2 phi."""
    phi = norm.ppf(confidence)

    def step(m, v):
        if phi * math.sqrt(v) <= m:
            return None
        n, square, last = v + 1 / (2 * C), 2 * v if libol else v**2, 2 * phi if libol else phi**2
        gamma = phi * math.sqrt(phi**2 * m**2 * square + 4 * n * v * (n + v * last))
        alpha = max(0.0, (-(2 * m * n + phi**2 * m * v) + gamma) / (2 * (n**2 + n * v * phi**2)))
        return alpha, _beta(alpha, v, phi)

    return step


scw2_of_libol = partial(scw2, libol=True)


def sop(X, y, a=1.0, *, always=False):
    """Return the perceptron's w, S, and the numbers of updates and mistakes; f(x) = w'Sx, with x itself in S.

    With `always` that is LIBOL's, but that f(x) = 0 is a mistake here whatever the label.
    """
    d = X.shape[1]
    w, precision = np.zeros(d), np.eye(d) / a
    updates = mistakes = 0
    for x, label in zip(X.astype(np.float64), y, strict=True):
        with_x = precision + np.outer(x, x)
        mistake = label * (w @ np.linalg.solve(with_x, x)) <= 0
        if mistake:
            w = w + label * x
        if mistake or always:
            precision = with_x
            updates += x.any()
        mistakes += mistake
    return w, np.linalg.inv(precision), updates, mistakes


def passive_aggressive(X, y, variant, C, weights=None):
    """Return w; the weight of a row multiplies C, or the step of PA."""
    w = np.zeros(X.shape[1])
    for x, label, weight in zip(X.astype(np.float64), y, np.ones(len(y)) if weights is None else weights, strict=True):
        loss = max(0.0, 1 - label * (w @ x))
        if loss > 0 and x.any():
            tau = loss / (x @ x + (1 / (2 * C * weight) if variant == 2 else 0))
            w = w + (weight * tau, min(C * weight, tau), tau)[variant] * label * x
    return w


def bcw(batches, C, q, r=None):
    """Return the mean, S, and the numbers of updates and mistakes after batches (X, y).

    Algorithm 1, with the inverse and its root; r is 1/C if not given.
    """
    d = batches[0][0].shape[1]
    mean, S = np.zeros(d), np.eye(d)
    updates = mistakes = 0
    for X, y in batches:
        S = np.linalg.inv(np.linalg.inv(S) + X.T @ X / (r or 1 / C))
        U = np.real(sqrtm(S))
        w = np.linalg.solve(U, mean)
        for x, label in zip(X @ U, y, strict=True):
            loss = max(0.0, 1 - label * (w @ x))
            mistakes += loss >= 1
            if loss > 0 and x.any():
                squared = x @ x
                w = w + label * x * (min(loss / squared, C) if q == 1 else loss / (squared + 0.5 / C))
                updates += 1
        mean = U @ w
    return mean, S, updates, mistakes
