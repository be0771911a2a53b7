"""Select parameters: score the candidates in a grid by cross-validation, and choose one.

The unit of work is a fold of a repeat with all estimators that share a kernel.  They see the same examples in the same
order, so that they can share a pass over the fold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from klr_bench import protocols
from klr_bench.config.locations import folders
from klr_bench.datasets.splits import Prepared, frozen, readonly_view
from klr_bench.errors import exception_text, fail, sanitize
from klr_bench.instantiate import TARGET, EstimatorSpec, Parameters, build, parameters
from klr_bench.metrics.clock import Clock, TimeLimitError, fit_in_child
from klr_bench.metrics.labels import find_metric
from klr_bench.metrics.metric import Metric
from klr_bench.metrics.predictions import Predictions, UnseenClassError, from_decision, predict
from klr_bench.runner.bandwidth import resolve_gamma, resolve_kernel

Score = float | dict[str, str] | None
"""Score of a candidate in a fold: a number, None if it cannot be fitted, or {FAILED: reason} after an error."""
FAILED = "failed"
OF_RUN = frozenset({"kernel", "gamma", "degree", "coef0", "random_state"})
"""Parameters that take the value of the run if they are null."""
MAX_REASON_LENGTH = 500
"""Maximum number of characters of the reason for a failure."""


def candidates(estimator: Parameters, grid: Mapping[str, Sequence[Any]]) -> list[EstimatorSpec]:
    """Return one estimator spec for each combination of the grid's parameter values."""
    return [{**estimator, **dict(zip(grid, values, strict=True))} for values in product(*grid.values())]


def given(estimator: Parameters) -> EstimatorSpec:
    """Return the values of an estimator, without null where it stands for the value of the run."""
    return {name: value for name, value in estimator.items() if value is not None or name not in OF_RUN}


def make(estimator: Parameters, kernel: Parameters, seed: int) -> Any:
    """Build an estimator with kernel parameters and a seed; its own parameters take precedence."""
    seeded = {"random_state": seed} if "random_state" in parameters(estimator[TARGET]) else {}
    return build({**kernel, **seeded, **given(estimator)})


def score_fold(
    learners: Sequence[EstimatorSpec],
    kernel: Parameters | None,
    data: Prepared,
    fold: int,
    *,
    folds: int,
    seed: int,
    nested: bool = True,
    max_examples: int | None = None,
    score: str = "accuracy",
    time_limits_s: Sequence[float | None] | None = None,
) -> list[Score]:
    """Score each estimator on one held-out fold of the training rows.

    The score is None after a ValueError or an ArithmeticError, and {FAILED: reason} after an exceeded time limit or any
    other exception.

    Parameters
    ----------
    folds, max_examples : number of folds, and the number of training rows that are split into folds; gamma and a step
        size of R/sqrt(T) are computed from all training rows
    nested : if False, the fold is the split itself: fit to all training rows and score on the test rows
    score : a metric of predictions; a metric for which lower is better is negated
    time_limits_s : limit of each estimator or None; the limits of estimators that share a pass are added
    """
    resolved = resolve_kernel(kernel, data.X_train, seed)
    arrays = data.X_train, data.y_train, data.X_test, data.y_test
    if nested:
        n = min(len(data.y_train), max_examples or len(data.y_train))
        rows, held_out = data.fold(n, folds, fold)
        arrays = tuple(frozen(array[part]) for part in (rows, held_out) for array in (data.X_train, data.y_train))
    classes = np.unique(arrays[1])
    if len(classes) < 2:
        fail(
            f"the {len(arrays[1])} training rows outside fold {fold} have only one class. Use fewer folds "
            "(selection.folds=), or data with more rows of each class."
        )
    new_estimators = [make(resolve_gamma(learner, data.X_train), resolved, seed) for learner in learners]
    estimators = [
        protocols.call(estimator, "for_rows", len(data.y_train), default=estimator) for estimator in new_estimators
    ]
    metric = find_metric(score, folders())
    limits = [None] * len(estimators) if time_limits_s is None else time_limits_s
    scores: dict[int, Score] = {}
    n_classes = 2 if np.isin(classes, (-1, 1)).all() else max(3, len(classes))  # a fold may lack some
    for group in group_by_pass(estimators, n_classes):
        members, limit = [estimators[i] for i in group], _total([limits[i] for i in group])
        group_scores: Sequence[Score]
        try:
            X, y, X_test, y_test = map(readonly_view, arrays)
            group_scores = score_group(members, X, y, X_test, y_test, metric, limit)
        except UnseenClassError as error:
            fail(f"selection, fold {fold}: {error} Or use fewer folds (selection.folds=), or selection.score=accuracy.")
        except (ValueError, ArithmeticError):  # a fit rejected an example or overflowed
            group_scores = [None] * len(group)
        except TimeLimitError:
            group_scores = _late(limit, len(group))
        except Exception as error:
            group_scores = [{FAILED: sanitize(exception_text(error), MAX_REASON_LENGTH)}] * len(group)
        scores.update(zip(group, group_scores, strict=True))
    return [scores[i] for i in range(len(estimators))]


def group_by_pass(estimators: Sequence[Any], n_classes: int) -> list[list[int]]:
    """Return groups of indices of estimators that can share a pass over the data."""
    groups: dict[Any, list[int]] = {}
    for i, estimator in enumerate(estimators):
        key = protocols.pass_key(estimator, n_classes)
        groups.setdefault(("alone", i) if key is None else ("shared", key), []).append(i)
    return list(groups.values())


def _total(limits: Sequence[float | None]) -> float | None:
    values = [limit for limit in limits if limit is not None]
    return sum(values) if len(values) == len(limits) else None


def score_group(
    estimators: Sequence[Any],
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    metric: Metric,
    time_limit_s: float | None = None,
) -> list[Score]:
    """Fit a group of estimators, and return the score of each one on the test rows.

    The score is None if the estimator rejects an example, and {FAILED: reason} if the fit exceeds the time limit.
    Raises TimeLimitError if an estimator without a callback exceeds it.
    """
    clock = None if time_limit_s is None else Clock(1, 0, lambda _: {}, time_limit_s)
    if len(estimators) == 1:
        estimator = estimators[0]
        if time_limit_s is None:
            estimator.fit(X, y)
        elif protocols.takes_callback(estimator):
            estimator.fit(X, y, callback=clock)
        else:
            estimator = fit_in_child(estimator, X, y, time_limit_s).estimator
    else:
        fitted = estimators[0].fit_together(estimators, X, y, clock)
    if clock and clock.timed_out:
        return _late(time_limit_s, len(estimators))
    if len(estimators) == 1:
        return [selection_score(metric, predict(estimator, X_test, y_test))]
    decisions = fitted.decision_function(X_test)
    return [
        None if refused else selection_score(metric, from_decision(y_test, decision, logistic=bool(logistic)))
        for refused, logistic, decision in zip(fitted.refused, fitted.logistic, decisions.T, strict=True)
    ]


def _late(limit: float | None, n: int) -> list[Score]:
    """Return the scores of n estimators whose pass exceeded the sum of their limits."""
    return [{FAILED: f"not fitted within time_limit_s={(limit or 0.0) / n:g}{' each' * (n > 1)}"}] * n


def selection_score(metric: Metric, predictions: Predictions) -> Score:
    """Return the selection score of predictions: a metric, negated if lower is better.

    Return None if it is NaN, and {FAILED: reason} if the metric cannot be computed for these predictions.
    """
    value = None if metric.of is None else metric.of(predictions)
    if value is None:
        return {FAILED: f"selection.score={metric.name} cannot be computed for this algorithm. Use another score."}
    if math.isnan(value):
        return None
    return -value if metric.better == "lower" else value


def choose(scores: Sequence[Sequence[Score]], tolerance: float = 0.0) -> int | None:
    """Return the index of the first candidate within `tolerance` of the best mean score.

    `scores` has one row per candidate and one column per fold.  A candidate that failed in any fold is never chosen;
    return None if this leaves none.
    """
    means = [_mean(row) for row in scores]
    best = max(means)
    if best == -math.inf:
        return None
    return next(i for i, mean in enumerate(means) if mean >= round(best - tolerance, 12))


def _mean(scores: Sequence[Score]) -> float:
    valid_scores = [score for score in scores if isinstance(score, int | float)]
    return round(float(np.mean(valid_scores)), 12) if len(valid_scores) == len(scores) else -math.inf
