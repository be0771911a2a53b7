"""Choose between treatments of columns by the validation log loss of a small kernel model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.preprocessing import TargetEncoder

from klr_bench.datasets.column import LEAVE_OUT, TEXT, Column
from klr_bench.datasets.column_kinds import as_category
from klr_bench.datasets.frames import Values
from klr_bench.datasets.preprocessing import scaling_by
from klr_bench.estimators.batch.folds import copies_of, in_order
from klr_bench.estimators.batch.partition import hashed

LEAST_ROWS, MOST_ROWS, MOST_CLASSES = 100, 1000, 20
"""Limits on what is validated: with fewer rows or more classes nothing is chosen, and more rows are sampled."""
MANY_FEATURES = 10
"""Number of features of a text column above which other treatments are tried."""
N_FOLDS, N_CENTERS = 5, 200
MANY_GROUPS = 100
"""With more groups than this, a group counts as one row when rows are divided into folds."""
PENALTIES = (1.0, 30.0)
"""Values of C for logistic regression on the features of the kernel, of which the better one counts."""
MOST_ITERATIONS = 200
SMALLEST = 1e-9
"""Lowest predicted probability."""
FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Odd factor of the hashes of earlier columns in that of a row."""


@dataclass(frozen=True)
class Treated:
    """A column of the training rows, and how it is treated."""

    column: Column
    values: Values
    features: NDArray[np.float64]
    """Features (n, width), or codes (n, 1) of the values if the features are shares of the classes."""
    is_free: bool = True
    """False if the user has set the kind of the column."""

    def at(self, rows: NDArray[np.intp]) -> Treated:
        """Return the column of some rows."""
        of, features = self.values.of, self.features[rows]
        if not self.column.width:
            return replace(self, features=features)
        some = [of[row] for row in rows] if isinstance(of, list) else of[rows]
        return replace(self, features=features, values=replace(self.values, of=some))

    def treated_as(self, column: Column) -> Treated:
        """Return the column with another treatment."""
        if column.kind == LEAVE_OUT:
            return replace(self, column=column, features=self.features[:, :0])
        texts = self.values.texts()
        features = column.codes(texts)[:, None].astype(np.float64) if column.classes else column.features(texts)
        return replace(self, column=column, features=features)


def choose_treatments(table: list[Treated], y: NDArray[Any], groups: NDArray[Any] | None) -> list[Treated]:
    """Return a table whose columns are treated such that the validation log loss is low.

    The columns of whole numbers with few values may become text, all of them or none.  A text column of many features
    may become the shares of the classes among the rows with its value, or be left out.  y (n,) are the classes,
    `groups` (n,) the groups of the rows; None keeps copies of rows together.  In the features of the training rows, a
    share is that of other folds.
    """
    classes, codes = np.unique(y, return_inverse=True)
    groups = None if groups is None else in_order(np.asarray(groups))  # type: ignore[no-untyped-call]
    if len(codes) < LEAST_ROWS or not 2 <= len(classes) <= MOST_CLASSES or np.bincount(codes).min() < 2:
        return table
    names = tuple(map(str, classes[1:] if len(classes) == 2 else classes))
    changes = [change for change in _changes(table, names) if change]
    if not changes:
        return table
    if groups is None:
        groups = _copies(table, codes)
    rows = _sample(codes)
    with config_context(transform_output="default"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows of a class, or LogisticRegression did not converge
        chosen = _by_validation(
            [treated.at(rows) for treated in table], changes, codes[rows], None if groups is None else groups[rows]
        )
        changed = [
            old if old.column == new.column else old.treated_as(new.column)
            for old, new in zip(table, chosen, strict=True)
        ]
        return [_encoded(treated, codes, groups) if treated.column.classes else treated for treated in changed]


def _copies(table: Sequence[Treated], codes: NDArray[np.intp]) -> NDArray[Any] | None:
    """Return the same code for equal rows.

    Return None if there are no equal rows, or if their classes often differ.
    """
    hashes = np.zeros(len(codes), dtype=np.uint64)
    for treated in table:
        features = np.nan_to_num(treated.features, nan=np.inf)
        hashes = hashes * FACTOR + hashed(features, np.zeros_like(codes))  # type: ignore[no-untyped-call]
    groups: NDArray[Any] = copies_of(hashes, codes)  # type: ignore[no-untyped-call]
    return groups if groups.max() + 1 < len(codes) else None


def _changes(table: Sequence[Treated], classes: tuple[str, ...]) -> list[dict[int, Column]]:
    """Return the changes to try, as new columns by place.

    The first is that of all whole numbers; each of the others is that of one text column.
    """
    whole: dict[int, Column] = {}
    others: list[dict[int, Column]] = []
    for place, treated in enumerate(table):
        column = treated.column
        if not treated.is_free:
            continue
        if (category := as_category(column, treated.features)) is not None:
            whole[place] = category
        if column.kind == TEXT and column.width > MANY_FEATURES:
            shares = replace(column, values=(*column.values, *column.rare), rare=(), classes=classes)
            others += [{place: shares}, {place: replace(column, kind=LEAVE_OUT, values=(), rare=())}]
    return [whole, *others]


def _sample(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return at most about MOST_ROWS rows, with several of each class if there are."""
    order = np.random.RandomState(0).permutation(len(codes))
    of_classes = [order[codes[order] == k] for k in range(codes.max() + 1)]
    share = MOST_ROWS / len(codes)
    return np.sort(np.concatenate([rows[: max(round(share * len(rows)), N_FOLDS)] for rows in of_classes]))


def _by_validation(
    table: list[Treated], changes: Sequence[Mapping[int, Column]], codes: NDArray[np.intp], groups: NDArray[Any] | None
) -> list[Treated]:
    """Try the changes in turn, and keep those that lower the validation log loss.

    It must fall by more than a standard error of the difference.
    """
    least = _losses(table, codes, groups)
    for change in changes:
        tried = [
            treated.treated_as(change[place]) if place in change else treated for place, treated in enumerate(table)
        ]
        if not sum(treated.column.width for treated in tried):
            continue
        losses = _losses(tried, codes, groups)
        gains = least - losses
        if len(gains) and gains.mean() > gains.std() / len(gains) ** 0.5:
            note = f"validation log loss {losses.mean():.3f}, {least.mean():.3f} otherwise"
            least = losses
            table = [
                replace(treated, column=_noted(treated.column, note)) if place in change else treated
                for place, treated in enumerate(tried)
            ]
    return table


def _noted(column: Column, note: str) -> Column:
    return replace(column, why=note) if column.kind == LEAVE_OUT else replace(column, validation=note)


def _losses(table: Sequence[Treated], codes: NDArray[np.intp], groups: NDArray[Any] | None) -> NDArray[np.float64]:
    """Return the log losses of the validation rows.

    There are none if no fold has training rows of each class.
    """
    losses = [np.empty((len(PENALTIES), 0))]
    for train, valid in _folds(codes, groups):
        if len(np.unique(codes[train])) <= codes.max():
            continue
        in_fold, of_groups = [treated.at(train) for treated in table], None if groups is None else groups[train]
        X = np.hstack([_of_training_rows(treated, codes[train], of_groups) for treated in in_fold])
        new = np.hstack(
            [
                _shares(old, codes[train], treated.features[valid]) if old.column.classes else treated.features[valid]
                for old, treated in zip(in_fold, table, strict=True)
            ]
        )
        scaling = scaling_by(X, "auto", impute=True)
        X, new = scaling.transform(X), scaling.transform(new)
        kernel = Nystroem(gamma=1 / X.shape[1], n_components=min(N_CENTERS, len(train)), random_state=0).fit(X)
        X, new = kernel.transform(X), kernel.transform(new)
        models = [LogisticRegression(C=C, max_iter=MOST_ITERATIONS).fit(X, codes[train]) for C in PENALTIES]
        chosen = [model.predict_proba(new)[np.arange(len(valid)), codes[valid]] for model in models]
        losses.append(-np.log(np.maximum(chosen, SMALLEST)))
    return min(np.hstack(losses), key=np.sum)


def _of_training_rows(treated: Treated, codes: NDArray[np.intp], groups: NDArray[Any] | None) -> NDArray[np.float64]:
    """Return the features (n, width) of training rows, with shares of other folds."""
    if not treated.column.classes:
        return treated.features
    shares = np.empty((len(codes), treated.column.width))
    for train, valid in _folds(codes, groups) or _folds(codes, None):  # the rows may be of one group
        shares[valid] = _shares(treated.at(train), codes[train], treated.features[valid])
    return shares


def _shares(treated: Treated, codes: NDArray[np.intp], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the smoothed shares (m, width) of the classes for codes of values (m, 1)."""
    classes = range(len(treated.column.classes)) if len(treated.column.classes) > 1 else [1]
    encoders = [TargetEncoder(target_type="continuous").fit(treated.features, 1.0 * (codes == k)) for k in classes]
    return np.hstack([encoder.transform(values) for encoder in encoders])


def _encoded(treated: Treated, codes: NDArray[np.intp], groups: NDArray[Any] | None) -> Treated:
    """Return a column whose features are shares of the classes, with these shares."""
    column, every = treated.column, np.append(np.arange(len(treated.column.values)), -1.0)[:, None]
    shares = tuple(map(tuple, _shares(treated, codes, every).tolist()))
    return replace(treated, column=replace(column, shares=shares), features=_of_training_rows(treated, codes, groups))


def _folds(codes: NDArray[np.intp], groups: NDArray[Any] | None) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return the folds of rows, stratified by their classes.

    Each of many groups counts as one row, with the class of its first one.
    """
    n_folds = max(min(N_FOLDS, np.unique(codes, return_counts=True)[1].min()), 2)
    options: dict[str, Any] = {"shuffle": True, "random_state": 0}
    if groups is None:
        return [*StratifiedKFold(n_folds, **options).split(codes, codes)]
    _, first, places = np.unique(groups, return_index=True, return_inverse=True)
    if len(first) > MANY_GROUPS:  # StratifiedGroupKFold takes long
        of_groups = StratifiedKFold(n_folds, **options).split(first, codes[first])
        return [(np.flatnonzero(np.isin(places, a)), np.flatnonzero(np.isin(places, b))) for a, b in of_groups]
    n_folds = min(n_folds, len(first))
    folds = StratifiedGroupKFold(n_folds, **options).split(codes, codes, groups) if n_folds > 1 else ()
    return [(train, valid) for train, valid in folds if len(train) and len(valid)]
