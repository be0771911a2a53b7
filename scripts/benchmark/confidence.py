"""Time of confidence-weighted learners on Covertype, and with 2,000 features."""

from __future__ import annotations

import numpy as np
from numba import float64
from scipy.special import ndtri
from timing import best, loaded

from klr_bench import (
    AROW,
    NAROW,
    BatchConfidenceWeighted,
    ConfidenceWeighted,
    PassiveAggressive,
    SecondOrderPerceptron,
    SoftConfidenceWeighted,
)
from klr_bench.datasets.splits import make_split, prepare
from klr_bench.datasets.synthetic import dense_factors
from klr_bench.estimators.core.jit import as_argument, compiled
from klr_bench.estimators.linear.arow import adaptive
from klr_bench.estimators.linear.cw import confident, softly_confident
from klr_bench.estimators.linear.engine import RULE

LEARNERS = {
    "pa": PassiveAggressive(),
    "sop": SecondOrderPerceptron(update="always"),
    "cw": ConfidenceWeighted(),
    "arow": AROW(),
    "narow": NAROW(16.0),
    "scw1": SoftConfidenceWeighted(1),
    "scw2": SoftConfidenceWeighted(2),
    "bcw1": BatchConfidenceWeighted(q=1),
    "bcw2": BatchConfidenceWeighted(q=2),
}
RULES = {
    "arow": (AROW(), adaptive, (1.0,)),
    "scw1": (SoftConfidenceWeighted(1), confident, (ndtri(0.75), 1.0)),
    "scw2": (SoftConfidenceWeighted(2), softly_confident, (ndtri(0.75), 0.5)),
}
D = 2000
N = 2048
FASTER = {"float64": 6.0, "float32": 4.0}
AROW_S = 15.0


def _signature(real):
    return float64[::1](RULE, float64[::1], real[:, ::1], float64[::1], real[:, ::1])


@compiled(_signature, fastmath={"reassoc", "contract"})
def rank_one(rule, parameters, X, y, S):
    """Learn row by row with rank-one updates of S (d, d); return the mean of the weights (d,).

    S has the precision of X; each update is S -= beta (S x)(S x)'.
    """
    mean, u = np.zeros(len(S)), np.empty_like(X[0])
    for i in range(len(y)):
        x, f, v = X[i], 0.0, 0.0
        for j in range(len(x)):
            row, total = S[j], x[0] * 0
            for k in range(len(x)):
                total += row[k] * x[k]
            u[j] = total
            f += mean[j] * x[j]
            v += total * x[j]
        alpha, beta = rule(y[i] * f, v, parameters)
        if beta != 0.0:
            for j in range(len(x)):
                mean[j] += alpha * y[i] * u[j]
                row, weight = S[j], x.dtype.type(beta) * u[j]
                for k in range(len(x)):
                    row[k] -= weight * u[k]
    return mean


def covtype():
    """Return training rows and labels, and test rows and labels, of covtype_450k."""
    dataset, spec = loaded("covtype_450k")
    data = prepare(dataset, make_split(dataset, spec.split, 0, 0), None)
    return data.X_train, data.y_train, data.X_test, data.y_test


def measure(output):
    X, y, X_test, y_test = covtype()
    seconds, steps = {}, {}
    for name, learner in LEARNERS.items():
        seconds[name] = best(lambda learner=learner: learner.fit(X, y), 3)
        steps[name] = getattr(learner, "pass_time_", seconds[name])
        at_most = 0.5 if name.startswith("bcw") else 1.5
        yield _row(name, len(y), 54, "float32", seconds[name], at_most, np.mean(learner.predict(X_test) != y_test))
    for batch in ("bcw1", "bcw2"):
        for online in ("arow", "scw1"):
            ratio = seconds[online] / seconds[batch]
            yield _ratio(f"{online} over {batch}", len(y), 54, "float32", ratio, 1.8)
            ratio = seconds[online] / steps[batch]
            yield _ratio(f"{online} over the steps of {batch}", len(y), 54, "float32", ratio, 10.0)
    dense, signs = np.array(X, dtype=np.float32), np.where(y == y.max(), 1.0, -1.0)
    plain = best(lambda: rank_one(adaptive, np.ones(1), dense, signs, np.eye(54, dtype=np.float32)), 3)
    yield _ratio("plain loop of arow over bcw1", len(y), 54, "float32", plain / seconds["bcw1"], float("nan"))
    yield from measure_blocks()


def measure_blocks():
    X, y = dense_factors(50_000, D, 100, 0.5, 0.3, 0)
    signs, plain_seconds = np.where(y == 1, 1.0, -1.0), {}
    for real in ("float32", "float64"):
        rows = X[:N].astype(real)
        for name, (learner, rule, parameters) in RULES.items():
            numbers = np.array(parameters, dtype=np.float64)
            blocked = best(lambda learner=learner, rows=rows: learner.fit(rows, y[:N]), 3)

            def loop(rule=as_argument(rule), numbers=numbers, rows=rows, real=real):
                return rank_one(rule, numbers, rows, signs[:N], np.eye(D, dtype=real))

            plain, mean = best(loop, 3), loop()
            plain_seconds[name, real] = plain
            change = np.abs(mean - learner.coef_).max() / np.abs(mean).max()
            agree = np.mean((rows @ mean > 0) == (rows @ learner.coef_ > 0))
            ratio = _ratio(f"plain loop over blocks, {name}", N, D, real, plain / blocked, FASTER[real])
            yield ratio | {"seconds": blocked, "coef_change": change, "same_predictions": agree}
    for name in (*RULES, "bcw1", "pa"):
        learner = LEARNERS[name]
        seconds = best(lambda learner=learner: learner.fit(X, y), 3)
        at_most = AROW_S if name in RULES else float("nan")
        yield _row(name, len(y), D, "float32", seconds, at_most, float("nan"))
        if name == "bcw1":  # the time of a plain loop is proportional to the number of rows
            ratio = plain_seconds["arow", "float32"] * len(y) / N / seconds
            yield _ratio("plain loop of arow over bcw1", len(y), D, "float32", ratio, float("nan"))


EMPTY = {"ratio": "", "at_least": "", "error_rate": "", "coef_change": "", "same_predictions": ""}


def _row(what, n, d, real, seconds, at_most, error):
    row = {"what": what, "n": n, "d": d, "dtype": real, "seconds": seconds, "at_most": at_most}
    return row | EMPTY | {"error_rate": error}


def _ratio(what, n, d, real, ratio, at_least):
    row = {"what": what, "n": n, "d": d, "dtype": real, "seconds": "", "at_most": ""}
    return row | EMPTY | {"ratio": ratio, "at_least": at_least}
