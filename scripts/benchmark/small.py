"""Time of fits of few rows, compared with SVC, and of learning row by row."""

from __future__ import annotations

from sklearn.svm import SVC
from timing import best, paper_data

from klr_bench import OSKL, BudgetOSKL, NonConservativeKLR

SIZES = (150, 500, 2000)
ROWS = 1000
"""Number of rows learned one by one, after as many in one call."""


def measure(output):
    X, y, gamma = paper_data("magic")
    for n in SIZES:
        svc = best(lambda n=n: SVC().fit(X[:n], y[:n]), 20)
        for cls in (OSKL, NonConservativeKLR, BudgetOSKL):
            fit = best(lambda n=n, cls=cls: cls(random_state=0).fit(X[:n], y[:n]), 20)
            yield {"what": "fit", "learner": cls.__name__, "n": n, "ms": 1e3 * fit, "svc_ms": 1e3 * svc}
    for model in (OSKL(gamma=gamma, random_state=0), BudgetOSKL(gamma=gamma, random_state=0)):
        model.partial_fit(X[:ROWS], y[:ROWS])

        def learn(model=model):
            for i in range(ROWS, 2 * ROWS):
                model.partial_fit(X[i : i + 1], y[i : i + 1])

        yield _row_by_row(type(model).__name__, learn)
    try:
        from river.linear_model import ALMAClassifier, LogisticRegression
    except ImportError:
        print("river is not installed; its loop is left out")
        return
    rows = [dict(enumerate(row)) for row in X[ROWS : 2 * ROWS].tolist()]
    for model in (LogisticRegression(), ALMAClassifier()):

        def learn_one(model=model):
            for row, label in zip(rows, (y[ROWS : 2 * ROWS] > 0).tolist(), strict=True):
                model.learn_one(row, label)

        yield _row_by_row(f"river {type(model).__name__}", learn_one)


def _row_by_row(name, learn):
    return {"what": "row by row", "learner": name, "n": ROWS, "ms": 1e3 * best(learn, 3), "svc_ms": None}
