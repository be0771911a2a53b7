"""Validation losses that ``klr-bench fit`` prints, beside those of simpler models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state

from klr_bench.estimators.batch.folds import folds_of
from klr_bench.estimators.batch.klr import KLR
from klr_bench.estimators.core.multiclass import SEEDS

MOST_ITERATIONS = 1000


def validation_losses(classifier: Any, X: NDArray[Any], y: NDArray[Any], groups: NDArray[np.int64] | None) -> str:
    """Compare the validation log loss of a fitted `KLR` with those of simpler models.

    The result is a sentence.  All models have the same folds.  X (n, d) are the training rows, y (n,) their classes,
    and `groups` (n,) their groups or None.  A loss is a mean over validation rows, beside its standard error, which
    takes rows of one group for one observation.  The result is "" for other classifiers, and after a search that ended
    before it had tried all folds.
    """
    if not isinstance(classifier, KLR):
        return ""
    codes = np.searchsorted(classifier.classes_, y)
    seed = check_random_state(classifier.random_state).randint(SEEDS)  # as in `fit`
    folds = folds_of(  # type: ignore[no-untyped-call]
        classifier, X, codes, np.ones(len(y)), groups, seed
    )
    rows = np.concatenate([valid for _, valid in folds])
    if len(rows) != len(classifier.validation_losses_):
        return ""
    losses = {type(classifier).__name__: classifier.validation_losses_}
    for name, model in (
        ("logistic regression", LogisticRegression(max_iter=MOST_ITERATIONS)),
        ("the constant", DummyClassifier(strategy="prior")),
    ):
        fitted = [(model.fit(X[train], codes[train]).predict_proba(X[valid]), valid) for train, valid in folds]
        chosen = [shares[np.arange(len(valid)), codes[valid]] for shares, valid in fitted]
        losses[name] = -np.log(np.maximum(np.concatenate(chosen), np.finfo(float).tiny))
    units = rows if groups is None else groups[rows]
    listed = ", ".join(f"{name} {loss.mean():.4f} ± {_error(loss, units):.4f}" for name, loss in losses.items())
    return f"validation log loss and standard error: {listed}"


def _error(losses: NDArray[np.float64], units: NDArray[Any]) -> float:
    """Return the standard error of the mean of losses; those of one unit are not independent."""
    sums = np.bincount(units, losses - losses.mean())
    return float(np.sqrt((sums**2).sum()) / len(losses))
