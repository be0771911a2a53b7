"""Log loss and time of fits and predictions for 500 to all training rows, on one thread.

Settings are the defaults, except for the number of trees and `max_support`; the rows are those of the part peers.  A
method is not fitted to more rows if that is expected to take more than KLR_BENCH_ROWS_S seconds (300), where the time
grows with the square of the number of rows.  KLR_BENCH_ROWS (1,000,000) is the largest number of training rows, and
KLR_BENCH_ROWS_DATASETS (covtype adult) are the data sets.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from peers import settings, split, timed
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import log_loss
from timing import once

from klr_bench import KLR, DualCDKLR, NystroemKLR, PartitionedKLR
from klr_bench.runner import machine

DATASETS = os.environ.get("KLR_BENCH_ROWS_DATASETS", "covtype adult").split()
SIZES = (500, 2000, 8000, 30_000, 100_000, 1_000_000)
FIRST = 500
"""Number of rows of a fit before the first one that is timed, which triggers compilation."""
PREDICTED = 100_000
"""Number of rows that are predicted; test rows are repeated."""
LIMIT_S = float(os.environ.get("KLR_BENCH_ROWS_S", "300"))
MOST_ROWS = int(os.environ.get("KLR_BENCH_ROWS", "1000000"))


def lightgbm(n_trees):
    return lambda: import_module("lightgbm").LGBMClassifier(n_estimators=n_trees, n_jobs=1, verbose=-1)


METHODS = {
    "PartitionedKLR": lambda: PartitionedKLR(random_state=0, n_jobs=1),
    "PartitionedKLR, 200 support vectors": lambda: PartitionedKLR(max_support=200, random_state=0, n_jobs=1),
    "KLR": lambda: KLR(random_state=0, n_jobs=1),
    "NystroemKLR": lambda: NystroemKLR(random_state=0, n_jobs=1),
    "DualCDKLR": lambda: DualCDKLR(random_state=0, n_jobs=1),
    "LightGBM, 100 trees": lightgbm(100),
    "LightGBM, 500 trees": lightgbm(500),
    "LightGBM, 2,000 trees": lightgbm(2000),
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "RandomForest": lambda: RandomForestClassifier(n_jobs=1, random_state=0),
}
"""Constructors; those of LightGBM fail if it is not installed."""


def measure(output):
    del output
    machine.follow(os.getpid())
    for name in DATASETS:
        X, y, X_test, y_test = split(name)
        for method, make in METHODS.items():
            if "LightGBM" not in method or find_spec("lightgbm"):
                yield from series(name, method, make, (X[:MOST_ROWS], y[:MOST_ROWS], X_test, y_test))


def series(name, method, make, data):
    """Yield the results of a method for increasing numbers of rows of a data set."""
    X, y, X_test, y_test = data
    places, n_test = np.arange(PREDICTED) % len(y_test), min(PREDICTED, len(y_test))
    make().fit(X[:FIRST], y[:FIRST])
    n, seconds = 0, 0.0
    for size in sorted({min(size, len(y)) for size in SIZES}):
        if n and seconds * (size / n) ** 2 > LIMIT_S:
            break
        n, fit = size, timed(make, X[:size], y[:size])
        seconds = fit.seconds
        predict_s, P = once(lambda model=fit.model: model.predict_proba(X_test[places]))
        yield {
            "dataset": name,
            "method": method,
            "settings": settings(fit.model),
            "n": n,
            "features": X.shape[1],
            "n_test": n_test,
            "seconds": seconds,
            "predict_s": predict_s,
            "accuracy": float(np.mean(fit.model.classes_[P[:n_test].argmax(axis=1)] == y_test[:n_test])),
            "log_loss": log_loss(y_test[:n_test], P[:n_test]),
            "converged": fit.converged,
            "load": fit.load,
            "cpu": machine.processor(),
        }
