"""Cross-validation on the training set: the kernel's width, the candidates of a grid, their scores, the choice.

The unit of work is one fold of one repeat, with all learners that share a kernel: they see the same examples in the
same order, so that one pass over the fold may serve them all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from klr_bench import protocols
from klr_bench.config.locations import folders
from klr_bench.datasets.splits import Prepared, fold_rows, frozen, lent
from klr_bench.errors import fail, raised, shown
from klr_bench.instantiate import TARGET, EstimatorSpec, Parameters, build, parameters
from klr_bench.metrics.clock import Clock, TimeLimitError, fit_in_child
from klr_bench.metrics.labels import find_metric
from klr_bench.metrics.metric import Metric
from klr_bench.metrics.predictions import Predictions, from_decision, predict
from klr_bench.runner.bandwidth import resolve_gamma, resolve_kernel

Score = float | dict[str, str] | None
"""Of a candidate in a fold: a number, None where it cannot be fitted, or {FAILED: why} where its code failed."""
FAILED = "failed"
LONGEST_REASON = 500


def candidates(estimator: Parameters, grid: Mapping[str, Sequence[Any]]) -> list[EstimatorSpec]:
    """Return the estimator with each combination of the grid's values; the last parameter varies fastest."""
    return [{**estimator, **dict(zip(grid, values, strict=True))} for values in product(*grid.values())]


def make(estimator: Parameters, kernel: Parameters, seed: int) -> Any:
    """Build an estimator with a resolved kernel; kernel parameters of its own take precedence."""
    known = parameters(estimator[TARGET])
    given = dict(kernel)
    if "random_state" in known:
        given["random_state"] = seed
    given.update({name: value for name, value in estimator.items() if value is not None and name != TARGET})
    return build({TARGET: estimator[TARGET], **given})


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
    """Return the score of each learner on one held-out fold of the training rows; None where it cannot be fitted, and
    the exception in words where its code raised one other than a ValueError or an ArithmeticError.

    `time_limits_s` has one entry per learner, None for no limit.  A learner whose fit takes longer is stopped and
    counts as not fitted; learners that share a pass have the sum of their limits for it.

    `score` is a metric of predictions; of one that is better the lower it is, the negative is returned.

    The folds are those of the first `max_examples` training rows; the kernel's width is that of all of them.  Where
    selection is not `nested`, the fold is the split itself: all training rows, scored on the test rows.
    A step size of R/sqrt(T) is that of a fit to all training rows.
    """
    resolved = resolve_kernel(kernel, data.X_train, seed)
    X, y, X_held_out, y_held_out = _fold(data, fold, folds, max_examples) if nested else _split(data)
    if len(np.unique(y)) < 2:
        fail(
            f"without fold {fold} the {len(y)} training rows have one class only; use fewer folds (selection.folds=), "
            "or data with more rows of each class."
        )
    made = [make(resolve_gamma(learner, data.X_train), resolved, seed) for learner in learners]
    estimators = [protocols.call(estimator, "for_rows", len(data.y_train), default=estimator) for estimator in made]
    scores: list[Score] = [None] * len(estimators)
    metric = find_metric(score, folders())
    limits = [None] * len(estimators) if time_limits_s is None else time_limits_s
    for group in sharing(estimators, len(np.unique(y))):
        members, limit = [estimators[i] for i in group], _total([limits[i] for i in group])
        try:
            arrays = lent(X), lent(y), lent(X_held_out), lent(y_held_out)
            found: list[Score] = [*group_scores(members, *arrays, metric, limit)]
        except (ValueError, ArithmeticError, TimeLimitError):  # a rule that refuses an example, a step that overflows
            found = [None] * len(group)
        except Exception as error:
            found = [{FAILED: shown(raised(error), LONGEST_REASON)}] * len(group)
        for i, value in zip(group, found, strict=True):
            scores[i] = value
    return scores


def _fold(data: Prepared, fold: int, folds: int, max_examples: int | None) -> tuple[Any, ...]:
    """Return X and y to train on, and X and y held out, of one fold of the training rows."""
    rows, held_out = fold_rows(min(len(data.y_train), max_examples or len(data.y_train)), folds, fold)
    return tuple(frozen(array[part]) for part in (rows, held_out) for array in (data.X_train, data.y_train))


def _split(data: Prepared) -> tuple[Any, ...]:
    """Return X and y to train on, and X and y to test on."""
    return data.X_train, data.y_train, data.X_test, data.y_test


def sharing(estimators: Sequence[Any], n_classes: int) -> list[list[int]]:
    """Return the positions of the estimators in groups: those that can share a pass over the data, others alone."""
    groups: dict[Any, list[int]] = {}
    for position, estimator in enumerate(estimators):
        key = protocols.pass_key(estimator, n_classes)
        groups.setdefault(("alone", position) if key is None else ("shared", key), []).append(position)
    return list(groups.values())


def _total(limits: Sequence[float | None]) -> float | None:
    """Return the sum of the limits, None where one of them is None."""
    given = [limit for limit in limits if limit is not None]
    return sum(given) if len(given) == len(limits) else None


def group_scores(
    estimators: Sequence[Any],
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    metric: Metric,
    time_limit_s: float | None = None,
) -> list[Score]:
    """Return the score of each estimator of a group on the test rows.

    None for an estimator whose rule refuses an example, and if the fit takes longer than the limit in seconds.
    Raises TimeLimitError if a fit that takes no callback is stopped.
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
    """Return a metric such that more is better; a failure where there is none, None where it is not a number."""
    value = None if metric.of is None else metric.of(predictions)
    if value is None:
        return {FAILED: f"its predictions have no {metric.name}, by which selection.score chooses; use another score."}
    if math.isnan(value):
        return None
    return -value if metric.better == "lower" else value


def choose(scores: Sequence[Sequence[Score]], tolerance: float = 0.0) -> int | None:
    """Return the first candidate whose mean score over folds is the highest, up to the tolerance; None if all failed.

    `scores` holds a row a candidate with an entry a fold; one failed fold is as bad as all.
    """
    means = [_mean(row) for row in scores]
    best = max(means)
    if best == -math.inf:
        return None
    return next(place for place, mean in enumerate(means) if mean >= round(best - tolerance, 12))


def _mean(scores: Sequence[Score]) -> float:
    """Return the mean of a candidate's scores, minus infinity where it has failed in a fold."""
    numbers = [score for score in scores if isinstance(score, int | float)]
    return round(float(np.mean(numbers)), 12) if len(numbers) == len(scores) else -math.inf
