"""Folds for the search of `KLR`, which keep groups and copies of rows together."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedShuffleSplit, check_cv
from sklearn.utils.validation import check_array, check_consistent_length

from klr_bench.estimators.batch.cross_validation import check_folds, n_folds
from klr_bench.estimators.batch.partition import hashed
from klr_bench.estimators.core.rows import evenly_spaced

SMALL, MEDIUM = 500, 3000
"""Largest numbers of rows for two repeats of five folds, and for five folds; more rows are split once."""
MANY = 5
"""Number of classes from which on folds are not repeated."""
MOST_TRAINING, MOST_COMPARED, MOST_VALIDATION = 10_000, 50_000, 5000
"""Largest numbers of training rows of the search, and of training and validation rows of a fold that is not given."""
MOST_DIFFERING = 0.1
"""Equal rows are copies if pairs of them have different classes at most this often, relative to any pairs of rows."""


def folds_of(estimator, X, y, shares, groups, seed):
    """Return pairs of the indices of training and validation rows.

    The parameter `cv` of the estimator says how many, or which.  y (n,) are class indices.  The indices are those
    among the rows whose shares (n,) are not 0.  Rows with the same value in `groups` (n,) stay together; None keeps
    copies of rows together.  Raises ValueError if the training rows of a fold, given or made of `groups`, lack a
    class.
    """
    if groups is not None:
        groups = check_array(groups, ensure_2d=False, dtype=None, input_name="groups")
        check_consistent_length(X, groups)
    cv, rows = estimator.cv, np.flatnonzero(shares)
    if cv is None or isinstance(cv, Integral):
        X, y = (X, y) if len(rows) == len(y) else (X[rows], y[rows])
        if groups is None:
            return list(_drawn(cv, copies(X, y), y, seed))
        groups = in_order(groups[rows])
        n_groups = [len(np.unique(groups[y == k])) for k in range(len(estimator.classes_))]
        if min(n_groups) < 2:
            label = estimator.classes_[np.argmin(n_groups)]
            what = f"needs at least two groups with rows of each class, got one for class {label}"
            message = f"{type(estimator).__name__} {what}."
            raise ValueError(message)
        folds = list(_drawn(cv, groups, y, seed))
    else:
        places = np.cumsum(shares > 0) - 1
        folds = [[np.asarray(part) for part in fold] for fold in check_cv(cv).split(X, y, groups)]
        folds = [tuple(places[part[shares[part] > 0]] for part in fold) for fold in folds]
        y = y[rows]
    check_folds(estimator, folds, y, "fewer folds, or other groups")
    return folds


def _drawn(cv, codes, y, seed):
    """Yield folds of groups of rows, stratified by the class of the first row of each group."""
    _, first = np.unique(codes, return_index=True)
    labels, y, n = y, y[first], len(y)
    n_valid, sizes = min(len(first) // 4, MOST_VALIDATION), np.bincount(y)
    sizes = sizes[sizes > 0]
    has_many = n > MOST_TRAINING or (n > MEDIUM and len(first) > SMALL)
    if cv is None and has_many and sizes.min() > 1 and n_valid >= len(sizes):
        n_train = min(len(first) - n_valid, MOST_COMPARED)
        splits = StratifiedShuffleSplit(1, test_size=n_valid, train_size=n_train, random_state=seed)
    else:
        n_splits = min(n_folds(cv, sizes), len(first))
        y = y if sizes.min() > 1 else np.zeros_like(y)  # a class that leads a single group cannot be stratified
        n_repeats = 2 if cv is None and n <= SMALL and len(sizes) < MANY else 1
        splits = RepeatedStratifiedKFold(n_splits=n_splits, n_repeats=n_repeats, random_state=seed)
    ends = np.cumsum(np.bincount(codes))[:-1]
    members = None if len(first) == n else np.split(np.argsort(codes, kind="stable"), ends)

    def rows(part, most):
        part = part if members is None else np.concatenate([members[code] for code in part])
        return part[evenly_spaced(len(part), most)]

    for train, valid in splits.split(first, y):
        yield _with_each_class(rows(train, MOST_COMPARED), rows(valid, MOST_VALIDATION), labels, codes)


def _with_each_class(train, valid, y, codes):
    """Return the rows of a fold with at least one group of each class among the training rows."""
    for k in np.setdiff1d(y, y[train]):
        if (y[train] == k).any():  # it came with the group of another class
            continue
        rows = np.flatnonzero(y == k)
        unused = rows[~np.isin(codes[rows], codes[valid])]
        group = codes[unused[0] if len(unused) else rows[0]]
        train, valid = np.union1d(train, np.flatnonzero(codes == group)), valid[codes[valid] != group]
    return train, valid


def copies(X, y):
    """Return codes (n,), the same for equal rows of X unless their classes often differ."""
    return copies_of(hashed(X, np.zeros_like(y)), y)


def copies_of(hashes, y):
    """Return codes (n,), the same for equal hashes of rows unless their classes y often differ.

    A table of a few nominal features has equal rows by chance, which often differ in their class.  Copies do not.  If
    all rows of a class are copies of a single one, no rows count as copies.
    """
    codes, n = in_order(hashes), len(y)
    squares, squares_by_class = (
        np.sum(np.unique(values, return_counts=True)[1] ** 2.0) for values in (codes, codes * (y.max() + 1) + y)
    )
    chance = 1 - np.sum((np.bincount(y) / n) ** 2)
    _, first = np.unique(codes, return_index=True)
    are_copies = squares - squares_by_class <= MOST_DIFFERING * chance * (squares - n)
    return codes if are_copies and np.bincount(y[first], minlength=y.max() + 1).min() > 1 else np.arange(n)


def in_order(values):
    """Return the places (n,) of values among the distinct ones, by first appearance."""
    _, first, codes = np.unique(values, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes]
