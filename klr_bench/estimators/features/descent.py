"""Online gradient descent on features z (D,) of the examples, for one function w'z or for several.

    w_{t+1} = w_t + c_t z_t,      c_t = -eta q_t l'(y_t, w_t'z_t)  for an example of weight q_t

The features of a chunk of examples are computed at once; the loop over the examples then reads each of them twice while
they are in the cache.  That takes less time than the matrix Z Z' of a block of examples, from which all values of f in
the block follow: it has more products than the loop for blocks of more than four examples.

The sum of w_1, ..., w_T is T w_{T+1} - sum_t t c_t z_t, so that the average needs one more product for each chunk.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float32, float64, int64

from klr_bench.estimators.core.jit import compiled
from klr_bench.estimators.core.losses import derivative

MISTAKES, UPDATES, REFUSED = range(3)
"""Places in `counts`: values with y f <= 0, updates, and the number of the refused example, or 0."""

IN_CACHE = 2**17
"""Features of a chunk of examples, about half a megabyte in float32."""


def rows_of_chunk(n_features):
    """Return the number of examples whose features are computed at once."""
    return max(IN_CACHE // n_features, 16)


def _signature(real):
    matrix = float64[:, ::1]
    return float64(int64, float64, real[:, ::1], matrix, float64[::1], matrix, matrix, matrix, int64[::1], int64)


@compiled([_signature(float32), _signature(float64)], fastmath={"reassoc", "contract"})
def _descend(loss, eta, Z, y, factors, weights, steps, values, counts, t):
    """Learn from the features Z (b, D) with labels y (M, b), from example t + 1 on; return the last f.

    Updates the weights (M, D), and sets the steps c (M, b) and the values of f (M, b).
    """
    f = 0.0
    for i in range(Z.shape[0]):
        z = Z[i]
        for k in range(weights.shape[0]):
            w, f = weights[k], 0.0
            for j in range(len(z)):
                f += w[j] * z[j]
            values[k, i] = f
            if not math.isfinite(f):
                counts[REFUSED] = t + i + 1
                return f
            counts[MISTAKES] += y[k, i] * f <= 0.0
            step = -eta * factors[i] * derivative(loss, y[k, i], f, 0.0)
            if step != 0.0:
                counts[UPDATES] += 1
                steps[k, i] = step
                for j in range(len(z)):
                    w[j] += step * z[j]
    return f


class Descent:
    """Gradient descent between two chunks of examples.

    Attributes: `weights` (M, D); `late`, sum_t t c_t z_t, and `n`, the number of examples that it is over; `values`
    (M, b), f of the examples of the last call of `learn`, each by the ones before it.
    """

    def __init__(self, weights):
        self.weights, self.late, self.n = weights, np.zeros_like(weights), 0
        self.values = np.zeros((len(weights), 0))

    def learn(self, loss, eta, Z, y, factors, counts, t):
        """Learn from features Z (b, D) with labels y (M, b), -1.0 or +1.0, and weights (b,), after t other examples.

        Adds to `counts`, and returns the last f.
        """
        steps, self.values = np.zeros((2, *y.shape))
        last = _descend(loss, eta, Z, y, factors, self.weights, steps, self.values, counts, t)
        steps *= np.arange(self.n + 1, self.n + 1 + len(Z))
        self.late += steps.astype(Z.dtype) @ Z
        self.n += len(Z)
        return last

    def sum(self):
        """Return the sum of the weights before each example, (M, D)."""
        return self.n * self.weights - self.late

    def average_from_here(self):
        """Let the sum be that of the weights from now on."""
        self.late[:] = 0.0
        self.n = 0
