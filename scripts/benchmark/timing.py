"""Timing and data of the benchmarks."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from klr_bench.config.datasets import read_dataset
from klr_bench.datasets import default_cache, load
from klr_bench.datasets.splits import make_split, prepare
from klr_bench.runner.bandwidth import distance_percentile

ROOT = Path(__file__).resolve().parents[2]
ONE_PASS = {"n_epochs": 1, "shuffle": False}
"""Parameters for one pass over the rows in the given order, as in the papers."""


def best(function, repeats=5):
    """Return the shortest of several times in seconds, after a warm-up call."""
    function()
    return min(once(function)[0] for _ in range(repeats))


def once(function):
    """Return the time of one call in seconds, and its result."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def loaded(name):
    """Return a data set and its description."""
    spec = read_dataset(name, [ROOT / "configs"])
    return load(name, spec, cache=default_cache(), mirror=os.environ.get("KLR_BENCH_MIRROR")), spec


def paper_data(name):
    """Return scaled float32 training rows, labels, and gamma at the 20th distance percentile."""
    dataset, spec = loaded(name)
    data = prepare(dataset, make_split(dataset, spec.split, 0, 0), spec.scale)
    sigma = distance_percentile(data.X_train, 20, seed=0)
    return data.X_train, data.y_train, 1 / (2 * sigma**2)


def noise(n, d, seed=0):
    """Return float32 rows of uniform noise and labels that depend on the first feature."""
    random = np.random.RandomState(seed)
    X = random.random_sample((n, d)).astype(np.float32)
    return X, np.where(X[:, 0] + 0.3 * random.standard_normal(n) > 0.5, 1, -1)
