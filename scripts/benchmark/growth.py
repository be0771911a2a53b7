"""Time and memory of a pass for increasing numbers of examples."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from timing import ONE_PASS, noise, once

from klr_bench import OSKL
from klr_bench.metrics.clock import peak_memory_mb


def measure(output):
    sizes = [5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 465_000]
    X, y = noise(sizes[-1], 54)
    OSKL(gamma=0.02, **ONE_PASS).fit(X[:2000], y[:2000])
    rows = []
    for n in sizes:
        learner = OSKL(gamma=0.02, random_state=0, **ONE_PASS)
        seconds, _ = once(lambda n=n, learner=learner: learner.fit(X[:n], y[:n]))
        rows.append(
            {
                "n": n,
                "support_vectors": learner.n_support_,
                "fit_s": seconds,
                "ns_a_pair": seconds / (n * learner.n_support_ / 2) * 1e9,
                "peak_memory_mb": peak_memory_mb(),
                "support_mb": learner.support_vectors_.nbytes / 2**20,
            }
        )
        yield rows[-1]
    plot(rows, output / "growth.png")


def plot(rows, path):
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    pairs = np.array([row["n"] * row["support_vectors"] / 2 for row in rows])
    seconds = np.array([row["fit_s"] for row in rows])
    figure, axes = plt.subplots(figsize=(5, 3.5), layout="constrained")
    axes.loglog(pairs, seconds, "ko-", label="one pass of OSKL, 54 features")
    axes.loglog(pairs, seconds[-1] * pairs / pairs[-1], "k:", label="proportional")
    axes.set(xlabel="examples x support vectors / 2", ylabel="seconds")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
