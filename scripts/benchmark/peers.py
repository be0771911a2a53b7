"""Time and accuracy of OSKL, compared with other libraries.

Each library trains on the first half and predicts the second half, with default settings on one thread.  Feature maps
for linear learners get the smallest number of features in COMPONENTS that reaches the accuracy of one pass of OSKL.
KOL and JSAT are included if a program `kol` or `jsat` is on the PATH or in the folder KLR_BENCH_PEERS.  It is called as
`kol TRAIN TEST GAMMA` with two LIBSVM files, and prints the seconds of its pass and its accuracy.
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
MAX_ROWS = 30_000
"""Largest number of training rows."""
COMPONENTS = (100, 300, 1000, 3000)
TOLERANCE = 0.002
"""Largest difference in accuracy that counts as equal to OSKL."""


def measure(output):
    del output
    for name in DATASETS:
        X, y, gamma = paper_data(name)
        n = min(len(y) // 2, MAX_ROWS)
        split = X[:n], y[:n], X[n : 2 * n], y[n : 2 * n]
        ours = OSKL(gamma=gamma, random_state=0, **ONE_PASS)
        OSKL(gamma=gamma, random_state=0).fit(X[:500], y[:500])
        DualCDKLR(gamma=gamma, random_state=0).fit(X[:500], y[:500])
        seconds, accuracy = timed(ours, split)
        common = {"dataset": name, "n": n, "features": X.shape[1], "oskl_s": seconds, "oskl_accuracy": accuracy}
        for peer, peer_seconds, peer_accuracy, settings in others(gamma, split, accuracy):
            yield common | {
                "peer": peer,
                "settings": settings,
                "peer_s": peer_seconds,
                "peer_accuracy": peer_accuracy,
                "time_ratio": peer_seconds / seconds,
            }


def timed(model, split):
    """Return the seconds of a fit and the accuracy on the test rows."""
    X, y, X_test, y_test = split
    seconds, _ = once(lambda: model.fit(X, y))
    return seconds, model.score(X_test, y_test)


def others(gamma, split, target):
    """Yield (name, seconds, accuracy, settings) for each peer."""
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
                if accuracy >= target - TOLERANCE or seconds > 60:
                    break
            yield f"{head} on {name}", seconds, accuracy, f"{n_components} features"
    if find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        yield "LightGBM", *timed(LGBMClassifier(n_jobs=1, verbose=-1), split), "as constructed"
    for name in ("kol", "jsat"):
        program = shutil.which(name, path=os.environ.get("KLR_BENCH_PEERS")) or shutil.which(name)
        if program:
            yield name.upper(), *run_program(program, gamma, split), "one pass"


def run_program(program, gamma, split):
    """Run an external program; return the seconds and the accuracy that it prints."""
    X, y, X_test, y_test = split
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "train.svm", Path(folder) / "test.svm"]
        for file, rows, labels in zip(files, (X, X_test), (y, y_test), strict=True):
            dump_svmlight_file(rows, labels, str(file), zero_based=False)
        command = [program, *map(str, files), repr(gamma)]
        seconds, accuracy = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), float(accuracy)
