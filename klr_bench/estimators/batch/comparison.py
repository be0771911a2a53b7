"""Choice between one model and those of the leaves of partitions: `leaves_or_centers`."""

from __future__ import annotations

import numpy as np

from klr_bench.estimators.batch.cross_validation import log_losses
from klr_bench.estimators.batch.folds import MOST_COMPARED, MOST_TRAINING
from klr_bench.estimators.batch.leaf_models import LEAF_SIZE, N_PARTITIONS, Labels, LeafModels
from klr_bench.estimators.batch.partition import WeightedRows
from klr_bench.estimators.core.checks import print_progress
from klr_bench.estimators.core.kernels import Kernel
from klr_bench.estimators.core.multiclass import SEEDS

CENTERS, FEW_CENTERS = 3000, 1000
"""Number of centers of one model, and if no narrower kernel is better in leaves."""


def leaves_or_centers(klr, search, kept, y, groups, random):
    """Return `LeafModels` of all rows, or None and the number of centers of one model.

    The leaves are chosen if their loss at the validation rows of the search is lower than that of one model with
    `FEW_CENTERS`.  Both have the settings and feature weights of the round `kept`; `LeafModels` adapt gamma and the
    penalty by some of their training rows, with the rows of each of the `groups` (n,) on one side; None keeps copies
    together.
    """
    ((train, valid),) = search._few(MOST_COMPARED)
    if len(np.unique(search.y[train])) < len(klr.classes_):
        return None, CENTERS
    valid_rows, gamma = search.weighted(valid, kept.weights, kept.shape.width)

    def leaves_of(part):
        X, codes, shares = search.X[part], search.y[part], search.shares[part]
        kernel, lam = Kernel(kept.shape.kernel, gamma), kept.lam * min(MOST_TRAINING / len(codes), 1.0)
        models = LeafModels(len(klr.classes_), kernel, lam, kept.temperature)
        labels = Labels(X, codes, shares, random.randint(SEEDS), None if groups is None else groups[part])
        rows = WeightedRows(X, None, kept.weights, klr._dtype)
        parts = models.divide(rows, labels, random, leaf_size=LEAF_SIZE, steps=[0] * N_PARTITIONS)
        models.fit(rows, labels, random, parts)
        return models

    def loss(model, temperature):
        f = model.decision_function(valid_rows).reshape(len(valid), -1) / temperature
        return np.average(log_losses(f, search.y[valid], is_softmax=True), weights=search.shares[valid])

    leaves = leaves_of(train)
    n = max(len(train), MOST_TRAINING + 1)  # the class that is fitted to all rows
    single = klr._model(kept, gamma, n, random, None, min(FEW_CENTERS, len(train)))
    single.fit(search.weighted(train, kept.weights, kept.shape.width)[0], y[train], search.shares[train])
    of_single, of_leaves = loss(single, kept.temperature), loss(leaves, 1.0)
    print_progress(
        klr, f"validation log loss {of_single:.4f} of one model, {of_leaves:.4f} of {N_PARTITIONS} partitions"
    )
    if of_single <= of_leaves:
        return None, CENTERS if leaves.gamma > gamma else FEW_CENTERS
    return leaves_of(slice(None)), None
