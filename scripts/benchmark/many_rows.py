"""Log loss and time of fits and predictions for 500 to all training rows, on one thread.

Settings are the defaults, except for the number of trees and `max_support`; the rows are those of the part peers.  Fits
to more than 30,000 rows are made once.  KLR_BENCH_ROWS (1,000,000) is the largest number of training rows, and
KLR_BENCH_ROWS_DATASETS (covtype adult) are the data sets.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from peers import REPEATED_S, settings, split, timed
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import log_loss
from timing import once

from klr_bench import KLR, DualCDKLR, NystroemKLR, PartitionedKLR
from klr_bench.runner import machine

DATASETS = os.environ.get("KLR_BENCH_ROWS_DATASETS", "covtype adult").split()
SIZES = (500, 2000, 8000, 30_000, 100_000)
"""Numbers of rows of fits before that to all; one that is nearly all rows is left out."""
REPEATED_ROWS = 30_000
"""Largest number of rows of a fit that is repeated if it is fast."""
FIRST = 2000
"""Number of rows of a fit before the first one that is timed, which triggers compilation, also for float32."""
PREDICTED = 100_000
"""Number of rows that are predicted; test rows are repeated."""
MOST_ROWS = int(os.environ.get("KLR_BENCH_ROWS", "1000000"))


def lightgbm(n_trees):
    return lambda: import_module("lightgbm").LGBMClassifier(n_estimators=n_trees, n_jobs=1, verbose=-1)


METHODS = {
    "PartitionedKLR": (1_000_000, lambda: PartitionedKLR(random_state=0, n_jobs=1)),
    "PartitionedKLR, 200 support vectors": (40_000, lambda: PartitionedKLR(max_support=200, random_state=0, n_jobs=1)),
    "KLR": (100_000, lambda: KLR(random_state=0, n_jobs=1)),
    "NystroemKLR": (100_000, lambda: NystroemKLR(random_state=0, n_jobs=1)),
    "DualCDKLR": (40_000, lambda: DualCDKLR(random_state=0, n_jobs=1)),
    "LightGBM, 100 trees": (1_000_000, lightgbm(100)),
    "LightGBM, 500 trees": (1_000_000, lightgbm(500)),
    "LightGBM, 2,000 trees": (1_000_000, lightgbm(2000)),
    "HistGradientBoosting": (100_000, lambda: HistGradientBoostingClassifier(random_state=0)),
    "RandomForest": (100_000, lambda: RandomForestClassifier(n_jobs=1, random_state=0)),
}
"""Largest number of rows and constructor of each method; LightGBM is left out if it is not installed."""


def measure(output):
    machine.follow(os.getpid())
    for name in DATASETS:
        X, y, X_test, y_test = split(name)
        n = min(len(y), MOST_ROWS)
        for method, (most, make) in METHODS.items():
            if "LightGBM" not in method or find_spec("lightgbm"):
                sizes = [size for size in (*(size for size in SIZES if size < 0.8 * n), n) if size <= most]
                yield from series(name, method, make, sizes, (X, y, X_test, y_test))


def series(name, method, make, sizes, data):
    """Yield the results of a method for increasing numbers of rows of a data set."""
    X, y, X_test, y_test = data
    places, n_test = np.arange(PREDICTED) % len(y_test), min(PREDICTED, len(y_test))
    make().fit(X[:FIRST], y[:FIRST])
    for n in sizes:
        fit = timed(make, X[:n], y[:n], repeated_s=REPEATED_S if n <= REPEATED_ROWS else 0.0)
        predict_s, P = once(lambda model=fit.model: model.predict_proba(X_test[places]))
        yield {
            "dataset": name,
            "method": method,
            "settings": settings(fit.model),
            "n": n,
            "features": X.shape[1],
            "n_test": n_test,
            "seconds": fit.seconds,
            "predict_s": predict_s,
            "accuracy": float(np.mean(fit.model.classes_[P[:n_test].argmax(axis=1)] == y_test[:n_test])),
            "log_loss": log_loss(y_test[:n_test], P[:n_test]),
            "converged": fit.converged,
            "load": fit.load,
            "cpu": machine.processor(),
        }
