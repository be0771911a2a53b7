"""Time, accuracy and model size with default parameters, compared with other libraries.

The rows are those of the official split of a data set, or a random 80 % of them; features that are not 0 or 1 are
standardized.  Each method is fitted to 1,000 rows, then to more and more, until it has all training rows or the next
fit would take more than LIMIT_S.  The last fit counts; OSKL() is then fitted to the same rows.

KOL and JSAT are included if a program `kol` or `jsat` is on the PATH or in the folder KLR_BENCH_PEERS.  It is called as
`kol TRAIN TEST GAMMA` with two LIBSVM files, and prints the seconds of its pass and its accuracy.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from timing import loaded, once

from klr_bench import KLR, OSKL, DualCDKLR, NystroemKLR, PartitionedKLR
from klr_bench.config.splitting import Official, Share
from klr_bench.datasets.splits import make_split, prepare
from klr_bench.runner import machine

DATASETS = ("magic", "adult", "ijcnn1", "cod_rna", "covtype")
LIMIT_S = 40.0
FIRST = 1000
"""Number of rows of the first fit, which triggers compilation."""
REPEATED_S = 2.0
"""A fit that takes less time is repeated twice, and the shortest time counts."""
CHUNK = 10_000
"""Number of test rows predicted at a time, because TorchKM stores their kernel values."""


class Method(NamedTuple):
    """A classifier with default parameters: its constructor, and the size of its model."""

    make: Callable[[], Any]
    size: Callable[[Any], int]
    unit: str
    package: str = "klr_bench"


def support(model):
    return int(np.sum(model.n_support_))


def coefficients(model):
    return int(np.count_nonzero(model.coef_))


def features_lr(**parameters):
    return make_pipeline(Nystroem(random_state=0, **parameters), LogisticRegression())


METHODS = {
    "OSKL": Method(lambda: OSKL(random_state=0), support, "support vectors"),
    "OSKL, one pass": Method(lambda: OSKL(n_epochs=1, random_state=0), support, "support vectors"),
    "KLR": Method(lambda: KLR(random_state=0), support, "support vectors"),
    "PartitionedKLR": Method(lambda: PartitionedKLR(random_state=0), support, "support vectors"),
    "DualCDKLR": Method(lambda: DualCDKLR(random_state=0), support, "support vectors"),
    "NystroemKLR": Method(lambda: NystroemKLR(random_state=0), support, "centers"),
    "SVC": Method(SVC, support, "support vectors", "sklearn"),
    "liblinear": Method(lambda: LogisticRegression(solver="liblinear"), coefficients, "coefficients", "sklearn"),
    "Nystroem + LR": Method(features_lr, lambda model: coefficients(model[-1]), "centers", "sklearn"),
    "Nystroem (1,000) + LR": Method(
        lambda: features_lr(n_components=1000), lambda model: coefficients(model[-1]), "centers", "sklearn"
    ),
    "LightGBM": Method(
        lambda: import_module("lightgbm").LGBMClassifier(n_jobs=1, verbose=-1),
        lambda model: sum(tree["num_leaves"] for tree in model.booster_.dump_model()["tree_info"]),
        "leaves",
        "lightgbm",
    ),
    "skglm": Method(
        # the default alpha=1 selects no feature
        lambda: import_module("skglm").SparseLogisticRegression(alpha=1e-4),
        coefficients,
        "coefficients",
        "skglm",
    ),
    "TorchKMLogit": Method(
        lambda: import_module("torchkm.estimators").TorchKMLogit(device="cpu", random_state=0),
        lambda model: int(np.count_nonzero(model.alpha_)),
        "support vectors",
        "torchkm",
    ),
}


class Fit(NamedTuple):
    """A fitted model, its time, whether it converged, and the load by other processes."""

    model: Any
    seconds: float
    converged: bool
    load: float | None


def measure(output):
    machine.follow(os.getpid())
    for name in DATASETS:
        yield from compare(name, *split(name))


def split(name):
    """Return training rows, labels, test rows and labels of a data set."""
    dataset, _ = loaded(name)
    way = Official(official=True) if dataset.n_train_official else Share(test_size=0.2)
    data = prepare(dataset, make_split(dataset, way, 0, 0), None)
    X, X_test = (rows.toarray() if sp.issparse(rows) else rows.copy() for rows in (data.X_train, data.X_test))
    numeric = ~((X == 0) | (X == 1)).all(axis=0)
    if numeric.any():
        scaler = StandardScaler().fit(X[:, numeric])
        X[:, numeric], X_test[:, numeric] = scaler.transform(X[:, numeric]), scaler.transform(X_test[:, numeric])
    return X, data.y_train, X_test, data.y_test


def compare(name, X, y, X_test, y_test):
    """Yield the results of each method on a data set; those of a missing package have no values."""

    def accuracy(model):
        return float(np.mean(predicted(model.predict, X_test) == y_test))

    @cache
    def oskl(n):
        """Return seconds and accuracy of OSKL() on the first n rows."""
        fit = timed(METHODS["OSKL"].make, X[:n], y[:n])
        return fit.seconds, accuracy(fit.model)

    share = float(np.mean(y_test == y_test.max()))
    common = {
        "dataset": name,
        "rows": len(y),
        "features": X.shape[1],
        "majority": max(share, 1 - share),
        "limit_s": LIMIT_S,
        "cpu": machine.processor(),
    }
    for method, peer in METHODS.items():
        if find_spec(peer.package) is None:
            yield common | {"method": method, "settings": "not installed"}
            continue
        n, fit = largest(peer, X, y)
        oskl_s, oskl_accuracy = oskl(n)
        yield common | {
            "method": method,
            "settings": settings(fit.model),
            "version": import_module(peer.package).__version__,
            "n": n,
            "seconds": fit.seconds,
            "accuracy": accuracy(fit.model),
            "log_loss": loss(fit.model, X_test, y_test),
            "size": peer.size(fit.model),
            "unit": peer.unit,
            "converged": fit.converged,
            "oskl_s": oskl_s,
            "oskl_accuracy": oskl_accuracy,
            "time_ratio": fit.seconds / oskl_s,
            "load": fit.load,
        }
    for program in ("kol", "jsat"):
        path = shutil.which(program, path=os.environ.get("KLR_BENCH_PEERS")) or shutil.which(program)
        if path is None:
            yield common | {"method": program.upper(), "settings": "not installed"}
            continue
        seconds, correct = run_program(path, 1 / (X.shape[1] * X.var()), (X, y, X_test, y_test))
        oskl_s, oskl_accuracy = oskl(len(y))
        row = {"n": len(y), "seconds": seconds, "accuracy": correct, "oskl_s": oskl_s, "oskl_accuracy": oskl_accuracy}
        yield common | {"method": program.upper(), "settings": "one pass", "time_ratio": seconds / oskl_s} | row


def largest(method, X, y):
    """Return the largest number of rows whose fit should end within the limit, and that fit.

    The expected time grows with the same power of the number of rows as in the last two fits.
    """
    n, power = min(FIRST, len(y)), 2.0
    method.make().fit(X[:n], y[:n])
    fit = timed(method.make, X[:n], y[:n])
    while n < len(y):
        more = min(len(y), 2 * n, int(n * (LIMIT_S / fit.seconds) ** (1 / power)))
        if more < min(1.2 * n, len(y)):
            break
        before, fit = fit.seconds, timed(method.make, X[:more], y[:more])
        power = min(3.5, max(1.0, math.log(fit.seconds / before) / math.log(more / n)))
        n = more
    return n, fit


def timed(make, X, y, repeated_s=REPEATED_S):
    """Fit a new model once, or three times if it takes less than `repeated_s` seconds."""
    times = []
    machine.load()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        while not times or (len(times) < 3 and times[0] < repeated_s):
            model = make()
            times.append(once(lambda model=model: model.fit(X, y))[0])
    converged = all(warning.category.__name__ != "ConvergenceWarning" for warning in caught)
    return Fit(model, min(times), converged, machine.load())


def predicted(function, X):
    return np.concatenate([function(X[start : start + CHUNK]) for start in range(0, len(X), CHUNK)])


def loss(model, X, y):
    """Return the log loss, or NaN if the model as constructed has no probabilities."""
    if not (hasattr(model, "predict_proba") and getattr(model, "probability", True)):
        return float("nan")
    return log_loss(y, predicted(model.predict_proba, X))


def settings(model):
    """Return the constructor call of a model."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    return " + ".join(" ".join(repr(step).split()) for step in steps)


def run_program(program, gamma, split):
    """Run an external program; return the seconds and the accuracy that it prints."""
    X, y, X_test, y_test = split
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "train.svm", Path(folder) / "test.svm"]
        for file, rows, labels in zip(files, (X, X_test), (y, y_test), strict=True):
            dump_svmlight_file(rows, labels, str(file), zero_based=False)
        command = [program, *map(str, files), repr(float(gamma))]
        seconds, accuracy = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), float(accuracy)
