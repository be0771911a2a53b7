"""Choose the number of passes by validation if a class is rare: `validated_passes`."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from klr_bench.estimators.core.kernels import kernel_of
from klr_bench.estimators.core.parameters import PRECOMPUTED

RARE = 0.3
"""Share of rows below which a class is rare, times the number of classes."""
LEAST_RARE = 20
"""Number of rows of the rarest class from which on there is a validation."""
HELD_OUT, PATIENCE = 0.2, 2
"""Share of the validation rows, and number of passes without a lower loss after which the validation ends."""


def has_rare_class(estimator, y):
    """Return True if a class of y (n,) is rare, but has enough rows for a validation."""
    counts = np.unique(y, return_counts=True)[1]
    return estimator.kernel != PRECOMPUTED and LEAST_RARE <= counts.min() < RARE / len(counts) * len(y)


def validated_passes(estimator, X, y, weights, most, callback):
    """Return the number of passes, at most `most`, with the lowest validation log loss.

    The validation rows are a stratified share of the rows.  If a class is rare, the losses before the steps, by which
    passes end otherwise, are small from the beginning.  X (n, d) are rows multiplied by their feature weights;
    `weights` (n,) include those of the classes, or are None.  The callback of the fit, or None, is called with t = 0
    after each block of examples, and ends the validation by returning True.
    """
    from sklearn.model_selection import train_test_split  # takes long to import

    places, codes = np.arange(len(y)), np.searchsorted(estimator.classes_, y)
    train, valid = train_test_split(places, test_size=HELD_OUT, stratify=codes, random_state=0)
    settings = {"n_epochs": most, "random_state": 0, "class_weight": None}
    if "feature_weights_" in vars(estimator):  # a gamma given by name depends on them
        settings |= {"feature_weights": None, "gamma": kernel_of(estimator, X, weights).gamma}
    learner = clone(estimator).set_params(**{key: settings[key] for key in settings & estimator.get_params().keys()})
    weights = np.ones(len(y)) if weights is None else weights
    losses = []

    def watch(learner, t):
        if callback is not None and callback(estimator, 0):
            return True
        if t % len(train) == 0:
            logs = learner.predict_log_proba(X[valid])[np.arange(len(valid)), codes[valid]]
            losses.append(-weights[valid] @ logs)
        return len(losses) > PATIENCE + int(np.argmin(losses)) if losses else False

    learner.fit(X[train], y[train], sample_weight=weights[train], callback=watch)
    return 1 + int(np.argmin(losses)) if losses else 1
