"""Reference implementation of prototype kernel logistic regression in float64."""

import math

import numpy as np


def kernel(x, u, theta, name="rbf", degree=3, coef0=1.0, lazy=False):
    """Return k(x, u) for two vectors."""
    if name == "rbf":
        on = [k for k in range(len(x)) if x[k] != 0 or not lazy]
        return math.exp(-math.exp(theta) * sum((x[k] - u[k]) ** 2 for k in on))
    product = sum(a * b for a, b in zip(x, u, strict=True))
    return product if name == "linear" else (math.exp(theta) * product + coef0) ** degree


def scores(X, b0, B, U, theta, **options):
    """Return b_y0 + sum_j b_yj k(x_i, u_j), (n, M), for B (M, J) and prototypes U (J, d)."""
    return np.array(
        [
            [b0[y] + sum(B[y, j] * kernel(x, U[j], theta, **options) for j in range(len(U))) for y in range(len(b0))]
            for x in np.asarray(X, dtype=np.float64)
        ]
    )


def loss_of(row, label, loss="logit"):
    """Return -log P(label|x) or the squared hinge loss of the scores of a row; with two classes that of the second."""
    if loss == "squared_hinge":
        classes = [1] if len(row) == 2 else range(len(row))
        return sum(max(0.0, 1 - (1 if c == label else -1) * row[c]) ** 2 for c in classes)
    top = max(row)
    return top + math.log(sum(math.exp(score - top) for score in row)) - row[label]


def objective(X, y, b0, B, U, theta, l1=0.0, l2=0.0, loss="logit", **options):
    """Return the penalized mean loss for labels y (n,) in {0, ..., M - 1}."""
    rows = scores(X, b0, B, U, theta, **options)
    total = sum(loss_of(row, label, loss) for row, label in zip(rows, y, strict=True))
    return total / len(y) + l1 * np.abs(U).sum() + l2 / 2 * np.square(B).sum()


def slopes(function, x, step=1e-5):
    """Return the gradient of a function of a vector by central differences."""
    found = np.zeros(len(x))
    for i in range(len(x)):
        e = np.zeros(len(x))
        e[i] = step
        found[i] = (function(x + e) - function(x - e)) / (2 * step)
    return found
