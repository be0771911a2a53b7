"""Time of batch kernel logistic regression, compared with scikit-learn's SVC."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import KFold
from sklearn.svm import SVC
from timing import loaded, once

from klr_bench import DualCDKLR
from klr_bench.runner.bandwidth import distance_percentile
from klr_bench.runner.fit import peak_memory_mb, reset_peak_memory

LAM = 1e-4
CASES = {"adult": (32561, True, 256), "ijcnn1": (141691, False, 1024)}
"""Number of rows, whether SVC runs as well, and memory limit of the fit in MB, by data set."""


def fold(name, n):
    """Return CSR training rows, labels and gamma of the first of five folds of the first n rows.

    gamma is at the 5th percentile of distances, as in zhang2012aaai.
    """
    dataset, _ = loaded(name)
    rows = next(KFold(5, shuffle=True, random_state=0).split(np.arange(n)))[0]
    X = sp.csr_matrix(dataset.X[rows])
    return X, dataset.y[rows], 1 / (2 * distance_percentile(X, 5, seed=0) ** 2)


def case(name):
    """Return the results of a data set.

    Each data set runs in a separate process, because a fit can reuse memory that earlier fits freed.
    """
    n, against_svc, memory = CASES[name]
    X, y, gamma = fold(name, n)
    X = X.toarray()  # the data have few features
    learner = DualCDKLR(LAM, tol=1e-3, gamma=gamma, random_state=0)
    learner.fit(X[:2000], y[:2000])
    reset_peak_memory()
    before = peak_memory_mb()
    seconds, _ = once(lambda: learner.fit(X, y))
    row = {
        "dataset": name,
        "n": len(y),
        "lam": LAM,
        "gamma": gamma,
        "dcd_s": seconds,
        "epochs": learner.n_iter_,
        "gap": learner.duality_gap_,
        "dcd_mb": peak_memory_mb() - before,
        "mb_at_most": memory,
    }
    svc = SVC(C=1 / (len(y) * LAM), gamma=gamma, cache_size=4000)
    row["svc_s"] = once(lambda: svc.fit(sp.csr_matrix(X), y))[0] if against_svc else float("nan")
    return row | {"dcd_over_svc": seconds / row["svc_s"], "at_most": 0.6 if against_svc else float("nan")}


def measure(output):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
        yield from processes.map(case, CASES)
