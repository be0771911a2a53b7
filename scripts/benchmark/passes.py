"""Rate of the passes of NystroemKLR over rows of Covertype, and number of passes of a fit.

Kernel values are computed again in each pass.  KLR_BENCH_PASS_ROWS is the number of rows, by default 200,000.
"""

from __future__ import annotations

import os

import numpy as np
from peers import split
from timing import best, once

from klr_bench import NystroemKLR
from klr_bench.estimators.kernel_values.row_blocks import Centers, Rows

ROWS = int(os.environ.get("KLR_BENCH_PASS_ROWS", "200000"))
CENTERS = (1000, 2000)
NOTHING = 1e-9
"""Size of the cache in MB: kernel values and operands are computed again in each pass."""


def measure(output):
    X, y = (part[:ROWS] for part in split("covtype")[:2])
    signs, shares = np.where(y == y.max(), 1, -1).astype(np.int8)[None], np.full(len(y), 1 / len(y))
    for n_centers in CENTERS:
        model = NystroemKLR(n_centers=n_centers, cache_size=NOTHING, random_state=0)
        model.fit(X[:4000], y[:4000])
        fit_s, _ = once(lambda model=model: model.fit(X, y))
        centers = Centers(model._operands, model.support_vectors_, len(y), NOTHING)
        rows, a = Rows(centers, X, signs, shares, 0), model.dual_coef_[None]
        pass_s = best(lambda rows=rows, a=a: rows.sums("gradient", a), 3)
        yield {
            "n": len(y),
            "features": X.shape[1],
            "centers": n_centers,
            "pass_s": pass_s,
            "rows_a_s": len(y) / pass_s,
            "passes": model.n_passes_,
            "fit_s": fit_s,
            "setup_s": max(fit_s - model.n_passes_ * pass_s, 0.0),
        }
