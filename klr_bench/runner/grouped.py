"""Groups and the order of time in the validation inside estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from klr_bench.datasets.grouping import later_folds
from klr_bench.errors import fail
from klr_bench.estimators.batch.folds import MEDIUM, MOST_COMPARED, MOST_VALIDATION
from klr_bench.estimators.core.rows import evenly_spaced
from klr_bench.protocols import takes_groups

FOLDS, FIRST = 5, 0.75
"""Number of folds for few rows; the share of training rows in the only fold of many rows."""


def with_groups(
    estimator: Any, y: NDArray[Any], groups: NDArray[np.int64] | None, *, is_later: bool
) -> tuple[Any, dict[str, Any]]:
    """Return an estimator whose own validation respects groups, and options of its `fit`.

    `groups` (n,) are codes, or the ranks of the times of the rows if `is_later`, and then validation rows are later
    than training rows.  An estimator whose `fit` takes no groups is returned as it is.  Raises KlrBenchError if no fold
    has training rows of each class.
    """
    if groups is None or not takes_groups(estimator):
        return estimator, {}
    if not is_later:
        return estimator, {"groups": groups}
    n_folds, first = (FOLDS, None) if len(y) <= MEDIUM else (1, FIRST)
    n_classes, folds = len(np.unique(y)), []
    for parts in later_folds(groups, n_folds, first=first):
        train, valid = (
            part[evenly_spaced(len(part), most)]  # type: ignore[no-untyped-call]
            for part, most in zip(parts, (MOST_COMPARED, MOST_VALIDATION), strict=True)
        )
        folds += [(train, valid)] * (len(np.unique(y[train])) == n_classes)
    if not folds:
        fail("data.time: no early part of the rows has all classes; expected rows of each class among the earliest.")
    return estimator.set_params(cv=folds), {}
