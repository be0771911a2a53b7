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

from klr_bench.errors import KlrBenchError
from klr_bench.estimators.online.base import OnlineKernelClassifier
from klr_bench.estimators.online.many import SharedFit
from klr_bench.experiment.measure.quality import accuracy, quality
from klr_bench.experiment.splits import Prepared, fold_rows
from klr_bench.experiment.targets import TARGET, build, parameters

Spec = dict[str, Any]
"""An estimator: ``_target_`` and parameters."""

KERNEL_PARAMETERS = {"rbf": ("gamma",), "poly": ("gamma", "degree", "coef0"), "linear": ()}
SHARED = ("kernel", "gamma", "degree", "coef0", "dtype", "n_epochs")
"""Parameters that online learners have in common if they are trained in one pass."""
WIDTH_SAMPLE = 2000


def candidates(estimator: Mapping[str, Any], grid: Mapping[str, Sequence[Any]]) -> list[Spec]:
    """Return the estimator with each combination of the grid's values; the last parameter varies fastest."""
    return [{**estimator, **dict(zip(grid, values, strict=True))} for values in product(*grid.values())]


def kernel_of(estimator: Mapping[str, Any], shared: Mapping[str, Any]) -> Spec | None:
    """Return the kernel of an estimator: the shared one but for its own parameters; None if it has no kernel.

    Only what the kernel uses is in it.  An own `gamma` switches the percentile off.
    """
    if "kernel" not in parameters(estimator[TARGET]):
        return None
    given = {**shared, **{name: value for name, value in estimator.items() if value is not None}}
    kernel = {"kernel": given["kernel"]}
    kernel |= {name: given[name] for name in KERNEL_PARAMETERS.get(given["kernel"], ()) if given[name] is not None}
    if kernel.get("degree", 0.5) % 1 == 0:
        kernel["degree"] = int(kernel["degree"])  # some libraries take whole numbers only
    if given["kernel"] == "rbf" and estimator.get("gamma") is None and shared["percentile"] is not None:
        kernel["percentile"] = shared["percentile"]
        if shared.get("multiple", 1.0) != 1.0:
            kernel["multiple"] = shared["multiple"]
    return kernel


def resolve_kernel(kernel: Mapping[str, Any] | None, X_train: Any, seed: int) -> Spec:
    """Return the kernel's parameters for an estimator; gamma comes from the percentile of distances, if one is given.

    sigma is that percentile of the pairwise distances of a sample of the training rows, or a multiple of it; gamma is
    1 / (2 sigma^2).
    """
    if kernel is None:
        return {}
    resolved = {name: value for name, value in kernel.items() if name not in ("percentile", "multiple")}
    if kernel.get("percentile") is not None:
        sigma = kernel.get("multiple", 1.0) * distance_percentile(X_train, kernel["percentile"], seed)
        resolved["gamma"] = 1.0 / (2.0 * sigma**2)
    return resolved


def distance_percentile(X: Any, percentile: float, seed: int) -> float:
    """Return a percentile of the pairwise distances of at most 2,000 rows of X (n, d), drawn with `seed`."""
    from sklearn.metrics import pairwise_distances

    n = X.shape[0]
    rows = np.random.RandomState(seed).permutation(n)[:WIDTH_SAMPLE]
    distances = pairwise_distances(X[rows].astype(np.float64))
    width = float(np.percentile(distances[np.triu_indices(len(rows), k=1)], percentile))
    if not width > 0:
        message = (
            f"kernel.percentile={percentile:g}: that percentile of the distances of training rows is {width:g}, "
            "because many rows are equal; choose a larger one, or set kernel.percentile=null kernel.gamma=<number>."
        )
        raise KlrBenchError(message)
    return width


def make(estimator: Spec, kernel: Spec, seed: int) -> Any:
    """Build an estimator on a resolved kernel; what it names itself comes first."""
    known = parameters(estimator[TARGET])
    given = dict(kernel)
    if "random_state" in known:
        given["random_state"] = seed
    given.update({name: value for name, value in estimator.items() if value is not None and name != TARGET})
    return build({TARGET: estimator[TARGET], **given})


def score_fold(
    learners: Sequence[Spec],
    kernel: Mapping[str, Any] | None,
    data: Prepared,
    fold: int,
    *,
    folds: int,
    seed: int,
    max_examples: int | None = None,
    score: str = "accuracy",
) -> list[float | None]:
    """Return the score of each learner on one held-out fold of the training rows; None where it cannot be fitted.

    `score` is "accuracy", or "log_loss", of which the negative is returned: more is better.

    The folds are those of the first `max_examples` training rows; the kernel's width is that of all of them.
    """
    resolved = resolve_kernel(kernel, data.X_train, seed)
    rows, held_out = fold_rows(min(len(data.y_train), max_examples or len(data.y_train)), folds, fold)
    X, y = data.X_train[rows], data.y_train[rows]
    if len(np.unique(y)) < 2:
        message = (
            f"without fold {fold} the {len(y)} training rows have one class only; use fewer folds (selection.folds=), "
            "or data with more rows of each class."
        )
        raise KlrBenchError(message)
    X_held_out, y_held_out = data.X_train[held_out], data.y_train[held_out]
    estimators = [make(learner, resolved, seed) for learner in learners]
    scores: list[float | None] = [None] * len(estimators)
    for group in sharing(estimators, len(np.unique(y))):
        try:
            found = group_scores([estimators[i] for i in group], X, y, X_held_out, y_held_out, score)
        except (ValueError, ArithmeticError):  # a rule that refuses an example, a step that overflows: not a candidate
            continue
        for i, value in zip(group, found, strict=True):
            scores[i] = value
    return scores


def sharing(estimators: Sequence[Any], n_classes: int) -> list[list[int]]:
    """Return the positions of the estimators in groups: online learners that can share a pass, others alone.

    They can if there are two classes, and if they have the same kernel, precision and number of epochs.
    """
    groups: dict[Any, list[int]] = {}
    for position, estimator in enumerate(estimators):
        online = hasattr(estimator, "_rule") and type(estimator).fit is OnlineKernelClassifier.fit
        key = tuple(getattr(estimator, name) for name in SHARED) if online and n_classes == 2 else position
        groups.setdefault(key, []).append(position)
    return list(groups.values())


def group_scores(
    estimators: Sequence[Any], X: Any, y: Any, X_test: Any, y_test: Any, score: str = "accuracy"
) -> list[float | None]:
    """Return the score of each estimator of a group on the test rows; None where its rule refuses an example."""
    if score == "log_loss":
        return [_negative_log_loss(estimator.fit(X, y), X_test, y_test) for estimator in estimators]
    if len(estimators) == 1:
        return [accuracy(estimators[0].fit(X, y), X_test, y_test)]
    fitted = SharedFit(estimators, X, y)  # type: ignore[no-untyped-call]
    right = np.mean(fitted.predict(X_test) == y_test[:, None], axis=0)  # type: ignore[no-untyped-call]
    return [None if refused else float(share) for refused, share in zip(fitted.refused, right, strict=True)]


def _negative_log_loss(estimator: Any, X: Any, y: Any) -> float | None:
    """Return -log_loss; None for a classifier without probabilities, or where it is not a number."""
    value = quality(estimator, X, y)[0].get("log_loss", math.nan)
    return None if math.isnan(value) else -float(value)


def choose(scores: Sequence[Sequence[float | None]]) -> int | None:
    """Return the candidate with the highest mean score over folds, the first of equals; None if all failed.

    `scores` holds a row a candidate with an entry a fold; one failed fold is as bad as all.
    """
    means = [-math.inf if None in row else round(float(np.mean(row)), 12) for row in scores]  # type: ignore[arg-type]
    best = max(means)
    return means.index(best) if best > -math.inf else None
