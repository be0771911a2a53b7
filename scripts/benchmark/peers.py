"""The first half of a data set learned, and the other half predicted, by what a user would pick instead.

Every library is used as it comes, on one thread.  A map into features, for a linear learner, gets as many features as
the accuracy of one pass of OSKL needs, of those tried.  KOL and JSAT take part where there is a program `kol` or `jsat`
on the PATH or in the folder KLR_BENCH_PEERS, called as `kol TRAIN TEST GAMMA` with two LIBSVM files, that prints the
seconds of its pass and its accuracy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

from sklearn.datasets import dump_svmlight_file
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from timing import ONE_PASS, once, paper_data

from klr_bench import OSKL, DualCDKLR

DATASETS = ("magic", "adult", "ijcnn1", "cod_rna")
MOST = 30_000
"""Rows that are learned."""
COMPONENTS = (100, 300, 1000, 3000)
AS_GOOD = 0.002
"""Accuracy below that of OSKL that counts as equal."""


def measure(output):
    del output
    for name in DATASETS:
        X, y, gamma = paper_data(name)
        n = min(len(y) // 2, MOST)
        split = X[:n], y[:n], X[n : 2 * n], y[n : 2 * n]
        ours = OSKL(gamma=gamma, random_state=0, **ONE_PASS)
        OSKL(gamma=gamma, random_state=0).fit(X[:500], y[:500])
        DualCDKLR(gamma=gamma, random_state=0).fit(X[:500], y[:500])
        seconds, accuracy = timed(ours, split)
        common = {"dataset": name, "n": n, "features": X.shape[1], "oskl_s": seconds, "oskl_accuracy": accuracy}
        for peer, of_peer, its_accuracy, settings in others(gamma, split, accuracy):
            yield common | {
                "peer": peer,
                "settings": settings,
                "peer_s": of_peer,
                "peer_accuracy": its_accuracy,
                "time_ratio": of_peer / seconds,
            }


def timed(model, split):
    """Return the seconds of a fit and the accuracy on the other rows."""
    X, y, X_test, y_test = split
    seconds, _ = once(lambda: model.fit(X, y))
    return seconds, model.score(X_test, y_test)


def others(gamma, split, wanted):
    """Yield (name, seconds, accuracy, settings) of the peers."""
    yield "OSKL()", *timed(OSKL(gamma=gamma, random_state=0), split), "as constructed"
    yield "DualCDKLR()", *timed(DualCDKLR(gamma=gamma, random_state=0), split), "as constructed"
    yield "SVC", *timed(SVC(gamma=gamma), split), "C=1"
    yield "liblinear", *timed(LogisticRegression(solver="liblinear"), split), "linear"
    for name, kind in (("Nystroem", Nystroem), ("Fourier features", RBFSampler)):
        heads = {"SGD": lambda: SGDClassifier(loss="log_loss", random_state=0)}
        if find_spec("skglm"):
            from skglm import SparseLogisticRegression

            heads["skglm"] = lambda: SparseLogisticRegression(alpha=1e-4)
        for head, make in heads.items():
            for n_components in COMPONENTS:
                if n_components > len(split[1]):
                    break
                features = kind(gamma=gamma, n_components=n_components, random_state=0)
                seconds, accuracy = timed(make_pipeline(features, make()), split)
                if accuracy >= wanted - AS_GOOD or seconds > 60:
                    break
            yield f"{head} on {name}", seconds, accuracy, f"{n_components} features"
    if find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        yield "LightGBM", *timed(LGBMClassifier(n_jobs=1, verbose=-1), split), "as constructed"
    for name in ("kol", "jsat"):
        program = shutil.which(name, path=os.environ.get("KLR_BENCH_PEERS")) or shutil.which(name)
        if program:
            yield name.upper(), *by_program(program, gamma, split), "one pass"


def by_program(program, gamma, split):
    """Return the seconds and the accuracy that a program prints."""
    X, y, X_test, y_test = split
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "train.svm", Path(folder) / "test.svm"]
        for file, rows, labels in zip(files, (X, X_test), (y, y_test), strict=True):
            dump_svmlight_file(rows, labels, str(file), zero_based=False)
        command = [program, *map(str, files), repr(gamma)]
        seconds, accuracy = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), float(accuracy)
