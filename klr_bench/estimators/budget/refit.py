"""Kernel logistic regression on given support vectors: the best coefficients, by Newton's method.

For f = sum_j a_j k(x_j, .) the problem is

    min_a  (lam/2) a'Ga + (1/n) sum_i log(1 + exp(-y_i f(x_i))),

with G (B, B) the kernel values among the support vectors.  With G = V D V', a = V D^(-1/2) w has the norm a'Ga = w'w,
and f(x) = w'z(x) for the features z(x) = D^(-1/2) V' (k(x, x_j))_j: linear logistic regression.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from sklearn.linear_model import LogisticRegression

RELATIVE = 1e-10
"""Eigenvalues of G below this share of the largest, or below the rounding of its entries, are taken for 0."""
TOLERANCE = 1e-6
"""Largest entry of the gradient at the end."""


def best_coefficients(operands, support, X, y, lam):
    """Return the coefficients (B,) that solve the problem above.

    `operands` prepare support (B, d) and rows X (n, d); y (n,) is -1.0 or +1.0.  Takes 16 n B bytes.
    """
    right = operands.right(support)
    G = operands.values(operands.left(support), right)
    D, V = eigh(G.astype(np.float64))
    kept = max(np.finfo(G.dtype).eps, RELATIVE) * D[-1] < D
    transform = V[:, kept] / np.sqrt(D[kept])
    Z = operands.values(operands.left(operands.rows(X)), right).astype(np.float64) @ transform
    solver = LogisticRegression(C=1.0 / (lam * len(y)), fit_intercept=False, solver="newton-cholesky", tol=TOLERANCE)
    return transform @ solver.fit(Z, y).coef_[0]
