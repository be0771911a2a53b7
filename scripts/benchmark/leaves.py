"""PartitionedKLR on a memory-mapped file that is larger than the memory of the process.

KLR_BENCH_LEAF_ROWS is the number of rows, by default 5,000,000, of KLR_BENCH_LEAF_FEATURES (100) float32 features.  The
fit is made on all cores, in a process whose data segment is limited to 80 % of the file; its pages, which the system
frees when memory is short, do not count.  To shorten the fit, there is one partition of small leaves, whose support
vectors are moved in 100 steps instead of 6,000.  The parts of the fit are timed, for the estimate of a fit to a billion
rows.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from klr_bench import PartitionedKLR
from klr_bench.estimators.batch import approximation, leaf, leaf_models, partitioned
from klr_bench.runner import machine

ROWS, D = (int(os.environ.get(f"KLR_BENCH_LEAF_{name}", n)) for name, n in (("ROWS", 5_000_000), ("FEATURES", 100)))
LEAF_SIZE, SUPPORT, STEPS = 1000, 30, 100
"""Largest numbers of rows and of support vectors of a leaf, and number of steps in which the latter are moved."""
CHUNK, TESTED = 100_000, 100_000
LIMIT = 0.8
"""Memory limit of the process, as a share of the size of the file."""


def measure(output):
    with tempfile.TemporaryDirectory() as folder:
        X, y = (np.lib.format.open_memmap(f"{folder}/{name}.npy", "w+", kind, shape) for name, kind, shape in FILES)
        random = np.random.default_rng(0)
        for start in range(0, len(X), CHUNK):
            X[start : start + CHUNK], y[start : start + CHUNK] = generated(random, len(X[start : start + CHUNK]))
        X.flush(), y.flush()
        machine.follow(os.getpid())
        machine.load()
        command = [sys.executable, __file__, folder]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        yield json.loads(done.stdout) | {"load": machine.load(), "cpu": machine.processor()}


FILES = (("X", np.float32, (ROWS, D)), ("y", np.int8, (ROWS,)))


def generated(random, n):
    """Return rows of D features, and their classes, which depend on three of them."""
    X = random.random((n, D), dtype=np.float32)
    f = np.sin(9 * X[:, 0]) * np.cos(9 * X[:, 1]) + 0.5 * np.sin(6 * X[:, 2])
    return X, (f + 0.1 * random.standard_normal(n) > 0).astype(np.int8)


seconds = {}


@contextmanager
def clock(name):
    begun = time.perf_counter()
    yield
    seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - begun


def timed(name, function):
    def call(*arguments, **parameters):
        with clock(name):
            return function(*arguments, **parameters)

    return call


def main(folder):
    """Fit the rows of a folder with limited memory, and print the results."""
    X, y = (np.load(Path(folder) / f"{name}.npy", mmap_mode="r") for name in ("X", "y"))
    limit = int(LIMIT * X.nbytes)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    partitioned.Labels = timed("order_s", partitioned.Labels)
    leaf_models.divided = timed("divide_s", leaf_models.divided)
    leaf_models.LeafModels._tune = timed("tune_s", leaf_models.LeafModels._tune)
    approximation.N_STEPS = STEPS
    parameters = {"max_support": SUPPORT, "n_partitions": 1, "random_state": 0, "n_jobs": os.cpu_count()}
    model = PartitionedKLR(LEAF_SIZE, map_leaves=timed("leaves_s", leaf.in_this_process), **parameters)
    with clock("fit_s"):
        model.fit(X, y)
    X_test, y_test = generated(np.random.default_rng(1), TESTED)
    with clock("predict_s"):
        predicted = model.predict(X_test)
    leaves = [len(part) for part in model.model_.leaves]
    row = {"n": len(y), "features": D, "threads": model.n_jobs, "file_mb": X.nbytes / 1e6, "limit_mb": limit / 1e6}
    row |= {"leaf_size": LEAF_SIZE, "partitions": len(leaves), "leaves": leaves[0]}
    row |= {"levels": int(np.ceil(np.log2(leaves[0]))), "max_support": SUPPORT, **seconds}
    print(json.dumps(row | {"accuracy": float(np.mean(predicted == y_test))}))


if __name__ == "__main__":
    main(sys.argv[1])
