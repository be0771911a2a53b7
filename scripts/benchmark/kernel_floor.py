"""One pass against its floor: the products at the rate of a large sgemm, and the fastest vectorised exponential."""

from __future__ import annotations

import numpy as np
from timing import ONE_PASS, best, noise

from klr_bench import NonConservativeKLR
from klr_bench.estimators.core.kernels import exp_negative
from klr_bench.estimators.online import engine

N = 32_768
"""Examples: about as many as Adult's."""


def measure(output):
    square = np.random.RandomState(0).random_sample((1024, 1024)).astype(np.float32)
    rate = 2 * 1024**3 / best(lambda: square @ square)
    values = -square[:, :256].copy()
    exponential = min(best(lambda: np.exp(values)), best(lambda: exp_negative(values))) / values.size
    for d in (10, 22, 54, 123, 784):
        X, y = noise(N, d)
        learner = NonConservativeKLR(eta=1.0, gamma=1.0 / d, **ONE_PASS)
        seconds = best(lambda X=X, y=y, learner=learner: learner.fit(X, y), 3)
        starts = np.arange(0, N, engine.BLOCK)
        n_values = sum(start * engine.BLOCK + engine.BLOCK**2 for start in starts)
        floor = 2 * (d + 2) / rate + exponential
        yield {
            "features": d,
            "sgemm_gflops": rate / 1e9,
            "exponential_ns": exponential * 1e9,
            "floor_ns": floor * 1e9,
            "engine_ns": seconds / n_values * 1e9,
            "ratio": seconds / n_values / floor,
            "target": {10: 2.0, 22: 1.6}.get(d, 1.25),
        }
