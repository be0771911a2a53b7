"""Time of one pass, compared with lower bounds from products, exponentials, bits and memory."""

from __future__ import annotations

import numpy as np
from timing import ONE_PASS, best, noise

from klr_bench import NonConservativeKLR
from klr_bench.estimators.core.kernels import exp2_negative
from klr_bench.estimators.kernel_values.tiles import sums_of
from klr_bench.estimators.online import engine

N = 32_768
"""Number of examples, about as in Adult."""


def rates():
    """Return rates of sgemm (flop/s) and memory (bytes/s), and times of exponentials and bits.

    The times are seconds per exponential, and per pair of operands of 128 bits.
    """
    random = np.random.RandomState(0)
    square = random.random_sample((1024, 1024)).astype(np.float32)
    products = 2 * 1024**3 / best(lambda: square @ square)
    values = -square[:, :256].copy()
    exponential = min(best(lambda: np.exp2(values)), best(lambda: exp2_negative(values))) / values.size
    long = np.ones(2**26, dtype=np.float32)
    memory = long.nbytes / best(long.sum)
    left, right = (random.randint(0, 2**32, shape, np.uint32).view(np.float32) for shape in ((1024, 4), (4, 256)))
    weights = np.ones(1024, dtype=np.float32)
    bits = best(lambda: sums_of(left, weights, right, 1024, 4, -0.05), 50) / (1024 * 256)
    return products, memory, exponential, bits


def measure(output):
    products, memory, exponential, bits = rates()
    for d, binary in ((10, False), (22, False), (54, False), (123, False), (784, False), (123, True)):
        X, y = noise(N, d)
        X = (X > 0.8).astype(np.float32) if binary else X
        learner = NonConservativeKLR(eta=1.0, gamma=1.0 / d, **ONE_PASS)
        seconds = best(lambda X=X, y=y, learner=learner: learner.fit(X, y), 3)
        starts = np.arange(0, N, engine.BLOCK)
        n_values = sum(start * engine.BLOCK + engine.BLOCK**2 for start in starts)
        width = 4 * 4 if binary else 4 * (d + 2)  # bytes of an operand, which is read once per block
        floor = bits if binary else 2 * (d + 2) / products + exponential
        yield {
            "features": d,
            "binary": binary,
            "sgemm_gflops": products / 1e9,
            "memory_gb_s": memory / 1e9,
            "exponential_ns": exponential * 1e9,
            "bits_ns": bits * 1e9,
            "memory_ns": width / engine.BLOCK / memory * 1e9,
            "floor_ns": floor * 1e9,
            "engine_ns": seconds / n_values * 1e9,
            "ratio": seconds / n_values / floor,
            "target": "" if binary else {10: 2.0, 22: 1.6}.get(d, 1.25),
        }
