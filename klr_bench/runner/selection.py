"""Cross-validation on training rows: candidates of a grid, their scores, and the choice.

The unit of work is one fold of one repeat, with all estimators that share a kernel: they see the same examples in the
same order, so that they may share a pass over the fold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from klr_bench import protocols
from klr_bench.config.locations import folders
from klr_bench.datasets.splits import Prepared, fold_rows, frozen, readonly_view
from klr_bench.errors import exception_text, fail, sanitize
from klr_bench.instantiate import TARGET, EstimatorSpec, Parameters, build, parameters
from klr_bench.metrics.clock import Clock, TimeLimitError, fit_in_child
from klr_bench.metrics.labels import find_metric
from klr_bench.metrics.metric import Metric
from klr_bench.metrics.predictions import Predictions, from_decision, predict
from klr_bench.runner.bandwidth import resolve_gamma, resolve_kernel

Score = float | dict[str, str] | None
"""Score of a candidate in a fold: a number, None if it cannot be fitted, or {FAILED: reason} if its code raised."""
FAILED = "failed"
LONGEST_REASON = 500
"""Maximum number of characters of a reason."""


def candidates(estimator: Parameters, grid: Mapping[str, Sequence[Any]]) -> list[EstimatorSpec]:
    """Return the estimator with each combination of grid values; the last varies fastest."""
    return [{**estimator, **dict(zip(grid, values, strict=True))} for values in product(*grid.values())]


def make(estimator: Parameters, kernel: Parameters, seed: int) -> Any:
    """Build an estimator with a resolved kernel; its own kernel parameters take precedence."""
    seeded = {"random_state": seed} if "random_state" in parameters(estimator[TARGET]) else {}
    return build({**kernel, **seeded, **{name: value for name, value in estimator.items() if value is not None}})


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

    The score is None for a ValueError, an ArithmeticError or an exceeded time limit, and {FAILED: reason} for any other
    exception.

    Parameters
    ----------
    folds, max_examples : the folds are those of the first `max_examples` training rows; gamma, and a step size of
        R/sqrt(T), are those for all training rows
    nested : if False, the fold is the split itself: all training rows, scored on the test rows
    score : a metric of predictions; the negative value is returned for a metric that is better the lower it is
    time_limits_s : one entry per estimator, None for no limit; those that share a pass have the sum of their limits
    """
    resolved = resolve_kernel(kernel, data.X_train, seed)
    arrays = data.X_train, data.y_train, data.X_test, data.y_test
    if nested:
        n = min(len(data.y_train), max_examples or len(data.y_train))
        rows, held_out = fold_rows(n, folds, fold)
        arrays = tuple(frozen(array[part]) for part in (rows, held_out) for array in (data.X_train, data.y_train))
    n_classes = len(np.unique(arrays[1]))
    if n_classes < 2:
        fail(
            f"without fold {fold} the {len(arrays[1])} training rows have one class only; use fewer folds "
            "(selection.folds=), or data with more rows of each class."
        )
    built = [make(resolve_gamma(learner, data.X_train), resolved, seed) for learner in learners]
    estimators = [protocols.call(estimator, "for_rows", len(data.y_train), default=estimator) for estimator in built]
    metric = find_metric(score, folders())
    limits = [None] * len(estimators) if time_limits_s is None else time_limits_s
    scores: dict[int, Score] = {}
    for group in sharing(estimators, n_classes):
        members, limit = [estimators[i] for i in group], _total([limits[i] for i in group])
        values: Sequence[Score]
        try:
            X, y, X_test, y_test = map(readonly_view, arrays)
            values = group_scores(members, X, y, X_test, y_test, metric, limit)
        except (
            ValueError,
            ArithmeticError,
            TimeLimitError,
        ):  # for example, an update rule that rejects an example, or a step that overflows
            values = [None] * len(group)
        except Exception as error:
            values = [{FAILED: sanitize(exception_text(error), LONGEST_REASON)}] * len(group)
        scores.update(zip(group, values, strict=True))
    return [scores[i] for i in range(len(estimators))]


def sharing(estimators: Sequence[Any], n_classes: int) -> list[list[int]]:
    """Group the estimators that can share one pass over the data; return index lists."""
    groups: dict[Any, list[int]] = {}
    for i, estimator in enumerate(estimators):
        key = protocols.pass_key(estimator, n_classes)
        groups.setdefault(("alone", i) if key is None else ("shared", key), []).append(i)
    return list(groups.values())


def _total(limits: Sequence[float | None]) -> float | None:
    """Return the sum of the limits, or None if one is None."""
    numbers = [limit for limit in limits if limit is not None]
    return sum(numbers) if len(numbers) == len(limits) else None


def group_scores(
    estimators: Sequence[Any],
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    metric: Metric,
    time_limit_s: float | None = None,
) -> list[Score]:
    """Score each estimator of a group on the test rows.

    None for an estimator whose rule refuses an example, and for all if the fit exceeds the limit in seconds.
    Raises TimeLimitError if a fit without a callback is stopped.
    """
    clock = None if time_limit_s is None else Clock(1, 0, lambda _: {}, time_limit_s)
    if len(estimators) == 1:
        alone = estimators[0]
        if time_limit_s is None:
            alone.fit(X, y)
        elif protocols.takes_callback(alone):
            alone.fit(X, y, callback=clock)
        else:
            alone = fit_in_child(alone, X, y, time_limit_s).estimator
        return [None] if clock and clock.timed_out else [score_of(metric, predict(alone, X_test, y_test))]
    fitted = estimators[0].fit_together(estimators, X, y, clock)
    if clock and clock.timed_out:
        return [None] * len(estimators)
    decisions = fitted.decision_function(X_test)
    return [
        None if refused else score_of(metric, from_decision(y_test, decision, logistic=bool(logistic)))
        for refused, logistic, decision in zip(fitted.refused, fitted.logistic, decisions.T, strict=True)
    ]


def score_of(metric: Metric, predictions: Predictions) -> Score:
    """Return a metric, negated if lower is better.

    Returns a failure if the metric does not apply, and None if it is not a number.
    """
    value = None if metric.of is None else metric.of(predictions)
    if value is None:
        return {FAILED: f"{metric.name} cannot be computed from its predictions; choose another selection.score."}
    if math.isnan(value):
        return None
    return -value if metric.better == "lower" else value


def choose(scores: Sequence[Sequence[Score]], tolerance: float = 0.0) -> int | None:
    """Return the first candidate with the highest mean score, up to the tolerance.

    Returns None if all candidates failed.

    `scores` has one row per candidate and one column per fold; a candidate that failed in a fold is never chosen.
    """
    means = [_mean(row) for row in scores]
    best = max(means)
    if best == -math.inf:
        return None
    return next(i for i, mean in enumerate(means) if mean >= round(best - tolerance, 12))


def _mean(scores: Sequence[Score]) -> float:
    """Return the mean score of a candidate, or minus infinity if it failed in a fold."""
    numbers = [score for score in scores if isinstance(score, int | float)]
    return round(float(np.mean(numbers)), 12) if len(numbers) == len(scores) else -math.inf
