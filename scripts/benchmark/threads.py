"""Time of fits and predictions with default settings, compared with one thread.

Each case runs in a separate process without the thread limits of this benchmark, on an idle and on a busy machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
from timing import ONE_PASS, best, paper_data

from klr_bench.instantiate import build

LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
BY_ROWS = {"eta": 1.0, **ONE_PASS}
CASES = {
    "NonConservativeKLR, bits": ("NonConservativeKLR", "adult", 30_000, BY_ROWS),
    "NonConservativeKLR, not quite binary": ("NonConservativeKLR", "adult with noise", 20_000, BY_ROWS),
    "NonConservativeKLR, MNIST": ("NonConservativeKLR", "mnist", 15_000, BY_ROWS),
    "MarginKLR": ("MarginKLR", "adult with noise", 20_000, BY_ROWS),
    "AuxiliaryKLR": ("AuxiliaryKLR", "adult with noise", 20_000, BY_ROWS),
    "OSKL": ("OSKL", "adult with noise", 20_000, ONE_PASS),
    "KernelPegasos": ("KernelPegasos", "adult with noise", 20_000, ONE_PASS),
    "KernelPerceptron": ("KernelPerceptron", "adult with noise", 20_000, ONE_PASS),
    "KernelOGD": ("KernelOGD", "adult with noise", 20_000, ONE_PASS),
    "Forgetron": ("Forgetron", "adult with noise", 20_000, {"budget": 1000, **ONE_PASS}),
    "BOGDPlusPlus": ("BOGDPlusPlus", "adult with noise", 20_000, {"budget": 1000, **ONE_PASS}),
    "RandomizedBudgetPerceptron": (
        "RandomizedBudgetPerceptron",
        "adult with noise",
        20_000,
        {"budget": 1000, **ONE_PASS},
    ),
    "Projectron": ("Projectron", "adult with noise", 8_000, {"budget": 500, **ONE_PASS}),
    "DualCDKLR": ("DualCDKLR", "adult with noise", 12_000, {"tol": 1e-2}),
    "PrimalCDKLR": ("PrimalCDKLR", "adult with noise", 6_000, {"tol": 1e-2}),
    "ImportVectorMachine": ("ImportVectorMachine", "adult with noise", 3_000, {"n_candidates": 60}),
    "L1KLR": ("L1KLR", "adult with noise", 6_000, {"lam": 0.1, "lam_relative": True}),
    "PrototypeKLR": ("PrototypeKLR", "adult with noise", 10_000, {}),
    "AROW": ("AROW", "adult with noise", 20_000, {}),
    "SOFS": ("SOFS", "adult with noise", 20_000, {}),
    "SparDCA": ("SparDCA", "adult with noise", 20_000, {}),
    "ApproximateKernelLR": ("estimators.peers.approximate.ApproximateKernelLR", "adult with noise", 8_000, {}),
}
"""Estimator, data set, number of rows and parameters, by case."""


def data(name, n):
    """Return training rows, labels, rows to predict, and gamma."""
    X, y, gamma = paper_data(name.partition(" ")[0])
    if name.endswith("noise"):
        X = X * np.random.RandomState(0).uniform(0.9, 1.1, X.shape[1]).astype(X.dtype)
    return X[:n], y[:n], X[-5000:], gamma


def times(name):
    """Print the seconds of fit and prediction of a case."""
    kind, source, n, parameters = CASES[name]
    X, y, X_test, gamma = data(source, n)
    estimator = build({"_target_": f"klr_bench.{kind}", **parameters})
    settings = {"gamma": gamma, "random_state": 0}
    estimator.set_params(**{key: settings[key] for key in settings if key in estimator.get_params()})
    fit = best(lambda: estimator.fit(X, y))
    print(fit, best(lambda: estimator.predict(X_test)))


def run_in_process(name, limit):
    """Run a case in a separate process, with or without a limit of one thread; return its times."""
    environment = {key: value for key, value in os.environ.items() if key not in LIMITS}
    environment |= {key: "1" for key in LIMITS} if limit else {}
    command = [sys.executable, "-W", "ignore", __file__, name]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()
    return [float(value) for value in output]


@contextmanager
def busy():
    """Keep one core busy with matrix products."""
    code = "import numpy as np\na = np.ones((600, 600), np.float32)\nwhile True: a @ a"
    environment = os.environ | dict.fromkeys(LIMITS, "1")
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def product():
    """Return the time of a matrix product on one thread."""
    a = np.ones((1024, 1024), np.float32)
    return best(lambda: a @ a, 20)


def measure(output):
    alone = product()
    with busy():
        beside = product()
    empty = dict.fromkeys(("fit_ratio_idle", "predict_ratio_idle"), "")
    ratio = {"fit_ratio_beside_busy": beside / alone, "predict_ratio_beside_busy": ""}
    yield {"case": "one product, which has to run at full speed", "fit_one_thread_s": alone, **empty, **ratio}
    for name in CASES:
        limited, free = run_in_process(name, True), run_in_process(name, False)
        with busy():
            limited_beside, free_beside = run_in_process(name, True), run_in_process(name, False)
        yield {
            "case": name,
            "fit_one_thread_s": limited[0],
            "fit_ratio_idle": free[0] / limited[0],
            "predict_ratio_idle": free[1] / limited[1],
            "fit_ratio_beside_busy": free_beside[0] / limited_beside[0],
            "predict_ratio_beside_busy": free_beside[1] / limited_beside[1],
        }


if __name__ == "__main__":
    times(sys.argv[1])
