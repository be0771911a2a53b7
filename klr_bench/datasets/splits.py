"""Divide data sets into training and test rows, in the same way for all algorithms.

A split depends only on the seed, the number of the repeat, and the number, order and labels of the rows.  The name of
a data set has no effect; a `seed_name` is part of the seed.
"""

from __future__ import annotations

import copy
import hashlib
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from klr_bench.config.splitting import Draw, Folds, Groups, Later, Official, Runs, Share, SplitSpec, Stream, Subset
from klr_bench.datasets import Dataset
from klr_bench.datasets.grouping import group_folds, later_folds
from klr_bench.datasets.preprocessing import scaling_by
from klr_bench.errors import fail

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Split:
    """Indices of the training rows (in the order of training) and of the test rows."""

    train: Indices
    test: Indices
    is_later: bool = False
    """True if the test rows are later than the training rows."""


@dataclass(frozen=True)
class Prepared:
    """The training and test arrays of a split, scaled if requested.

    X is float32 (n, d), dense or CSR; y is int8 (n,) with values -1 and +1, or 0, 1, ... Several learners share the
    arrays (see `readonly_view`).  `relevant` holds the indices of the features that determine the labels, if known.
    """

    X_train: Any
    y_train: NDArray[np.int8]
    X_test: Any
    y_test: NDArray[np.int8]
    relevant: NDArray[np.int64] | None = None
    groups: NDArray[np.int64] | None = None
    """Codes (n,) of the groups of the training rows, or the ranks of their times if `is_later`."""
    is_later: bool = False

    def readonly(self) -> Prepared:
        """Return read-only views of the arrays, so that learners cannot modify the data."""
        return Prepared(
            readonly_view(self.X_train),
            readonly_view(self.y_train),
            readonly_view(self.X_test),
            readonly_view(self.y_test),
            self.relevant,
            self.groups,
            self.is_later,
        )

    def fold(self, n: int, n_folds: int, fold: int) -> tuple[Indices, Indices]:
        """Return the indices of training rows and of held-out rows of one fold of the first n rows.

        Groups stay together; in the order of time, held-out rows are later.  Raises KlrBenchError without such a fold.
        """
        if self.groups is None:
            return fold_rows(n, n_folds, fold)
        folds = later_folds(self.groups[:n], n_folds) if self.is_later else group_folds(self.groups[:n], n_folds)
        if fold >= len(folds) or not len(folds[fold][0]) or not len(folds[fold][1]):
            share = np.unique(self.groups[:n], return_counts=True)[1].max() / n
            what = "have the same time" if self.is_later else "are in one group"
            fail(f"{share:.0%} of the training rows {what}, too many for {n_folds} folds (selection.folds=).")
        return folds[fold]


def frozen(array: Any) -> Any:
    """Make an array or a CSR matrix read-only, and return it."""
    for part in (array.data, array.indices, array.indptr) if sp.issparse(array) else (array,):
        part.flags.writeable = False
    return array


def readonly_view(array: Any) -> Any:
    """Return a view of a read-only array or CSR matrix; the view cannot be made writable."""
    if not sp.issparse(array):
        return array.view()
    matrix = copy.copy(array)  # copying keeps the flag that marks the indices as sorted
    matrix.data, matrix.indices, matrix.indptr = (part.view() for part in (array.data, array.indices, array.indptr))
    return matrix


def derived_seed(seed: int, seed_name: str, repeat: int, purpose: str) -> int:
    """Return a seed (below 2^32) derived from the repeat and a purpose such as "split"."""
    digest = hashlib.sha256(f"{seed}/{seed_name}/{repeat}/{purpose}".encode()).digest()
    return int.from_bytes(digest[:4], "little")


def make_split(dataset: Dataset, spec: SplitSpec, seed: int, repeat: int) -> Split:
    """Split a data set into shuffled training rows and test rows.

    Raises KlrBenchError if there is no official split, if the runs do not cover all rows, or if a part would be empty.
    """
    n, n_official = len(dataset.y), dataset.n_train_official or 0
    if isinstance(spec, Official) and not n_official:
        fail(f"{dataset.name}: split: official needs a test file, but the data set has none; use split: test_size.")
    random = np.random.RandomState(derived_seed(seed, dataset.seed_name, repeat, "split"))
    match spec:
        case Folds(folds=folds):
            return _fold(dataset, folds, seed, repeat)
        case Subset(n_train=n_train) | Official(n_train=int(n_train)):
            return _fixed_subset(dataset, n_train, seed, repeat)
        case Draw():
            return _random_draw(dataset, spec, random)
        case Runs(runs=runs):
            lengths = np.repeat(*np.array(runs).T)
            if lengths.sum() != n:
                fail(f"{dataset.name}: split: runs: expected {n} rows in total, got {lengths.sum()}.")
            even = np.repeat(np.arange(len(lengths)) % 2 == 0, lengths)
            return Split(random.permutation(np.flatnonzero(even)), np.flatnonzero(~even))
        case Share(test_size=test_size, stratify=stratify):
            if stratify:
                split = _stratified(dataset, test_size, random)
            else:
                order, n_test = random.permutation(n), math.ceil(round(test_size * n, 6))
                split = Split(order[: n - n_test], order[n - n_test :])
            if not len(split.train) or not len(split.test):
                fail(f"{dataset.name}: with {n} rows, test_size={test_size} leaves the training or the test set empty.")
            return split
        case Groups(test_size=test_size):
            return _whole_groups(dataset, test_size, random)
        case Later(test_size=test_size):
            ranks = _groups(dataset)
            parts = later_folds(ranks, 1, first=1 - test_size)
            if not parts:
                share = np.mean(ranks == ranks.min())
                fail(
                    f"{dataset.name}: split: time: {share:.0%} of the rows have the earliest time, so that none are "
                    "earlier than the test rows; use a smaller data.test_size or another column."
                )
            train, test = parts[0]
            return Split(random.permutation(train), test, is_later=True)
        case Official():
            return Split(random.permutation(n_official), np.arange(n_official, n))
        case Stream():
            message = f"{dataset.name}: a stream cannot be split"
            raise ValueError(message)


def _groups(dataset: Dataset) -> NDArray[np.int64]:
    assert dataset.groups is not None
    return np.asarray(dataset.groups)


def _whole_groups(dataset: Dataset, test_size: float, random: np.random.RandomState) -> Split:
    """Split groups as `_stratified` splits rows, by the class of their first rows."""
    groups = _groups(dataset)
    _, first = np.unique(groups, return_index=True)
    if len(first) < 2:
        fail(f"{dataset.name}: split: group: expected at least two groups, got one.")
    y = np.asarray(dataset.y)[first]
    if 1 < len(first) == len(np.unique(y)):
        fail(
            f"{dataset.name}: split: group: each of the {len(first)} groups begins with another class; expected at "
            "least two groups of a class, which is that of their first row."
        )
    of_groups = _stratified(replace(dataset, y=y), test_size, random)
    is_test = np.isin(groups, of_groups.test)
    return Split(random.permutation(np.flatnonzero(~is_test)), random.permutation(np.flatnonzero(is_test)))


def _stratified(dataset: Dataset, test_size: float, random: np.random.RandomState) -> Split:
    """Split all classes in the same proportion; spread each one evenly over the training order."""
    y = np.asarray(dataset.y)
    counts = np.unique(y, return_counts=True)[1]
    if len(counts) > 1 and counts.max() == 1:
        fail(
            f"{dataset.name}: each of the {len(counts)} classes has only one row; expected at least 2 rows per class. "
            "Check the label column, or set data.label=NAME to use another column."
        )
    test, train, places = [], [], []
    for label in np.unique(y):
        rows = random.permutation(np.flatnonzero(y == label))
        n_test = min(max(round(test_size * len(rows)), 1), len(rows) - 1)
        n_train = len(rows) - n_test
        test.append(rows[:n_test])
        train.append(rows[n_test:])
        places.append((np.arange(n_train) + random.random_sample(n_train)) / n_train)
    test_rows = np.concatenate(test)
    return Split(np.concatenate(train)[np.argsort(np.concatenate(places))], random.permutation(test_rows))


def _random_draw(dataset: Dataset, spec: Draw, random: np.random.RandomState) -> Split:
    order, y = random.permutation(len(dataset.y)), np.asarray(dataset.y)
    values = np.unique(y) if spec.equal_classes else [None]
    groups = [order if value is None else order[y[order] == value] for value in values]
    smallest = min(map(len, groups))
    n_test, odd_test = divmod(spec.n_test, len(groups))
    n_train, odd_train = divmod(spec.n_train or (smallest - n_test) * len(groups), len(groups))
    if odd_test or odd_train or n_test < 1 or n_train < 1 or n_test + n_train > smallest:
        fail(
            f"{dataset.name}: split: n_train={spec.n_train} and n_test={spec.n_test} must be positive multiples "
            f"of {len(groups)} with a sum of at most {len(groups) * smallest}."
        )
    train = np.concatenate([group[n_test : n_test + n_train] for group in groups])
    return Split(random.permutation(train), np.concatenate([group[:n_test] for group in groups]))


def _fold(dataset: Dataset, folds: int, seed: int, repeat: int) -> Split:
    n = len(dataset.y)
    if not 2 <= folds <= n:
        fail(f"{dataset.name}: split: folds: expected an integer from 2 to {n}, the number of rows, got {folds}.")
    order = np.random.RandomState(derived_seed(seed, dataset.seed_name, repeat // folds, "split")).permutation(n)
    train, test = fold_rows(n, folds, repeat % folds)
    random = np.random.RandomState(derived_seed(seed, dataset.seed_name, repeat, "order"))
    return Split(random.permutation(order[train]), order[test])


def _fixed_subset(dataset: Dataset, n_train: int, seed: int, repeat: int) -> Split:
    n, official = len(dataset.y), dataset.n_train_official
    most = n - 1 if official is None else official
    if not 0 < n_train <= most:
        fail(f"{dataset.name}: split: n_train: expected an integer from 1 to {most}, got {n_train!r}.")
    drawn = np.random.RandomState(derived_seed(seed, dataset.seed_name, 0, "split")).permutation(official or n)
    order = np.random.RandomState(derived_seed(seed, dataset.seed_name, repeat, "order")).permutation(n_train)
    return Split(drawn[:n_train][order], drawn[n_train:] if official is None else np.arange(official, n))


def scaling(name: str, scale: str | None, *, sparse: bool) -> str | None:
    """Return the kind of scaling to apply to a data set, or None for no scaling.

    `scale` is the requested kind.  "auto" means no scaling for sparse rows, which scaling would make dense.  Raises
    KlrBenchError if another scaling of sparse rows is requested.
    """
    if scale == "auto" and sparse:
        return None
    if scale is not None and sparse:
        fail(
            f"{name}: scale={scale} would make sparse data dense; scale the file beforehand, or use scale=null "
            "(data.scale=none for your own file)."
        )
    return scale


def prepare(dataset: Dataset, split: Split, scale: str | None) -> Prepared:
    """Select the training and test rows of a split, and scale the features.

    The scaling is computed from the training rows.

    `scale` is a kind of `klr_bench.datasets.preprocessing` or None; for "auto" see `scaling`.  A missing value (NaN) is
    replaced by the training median of its feature, and an indicator feature is added.  The arrays are read-only.
    """
    X_train, X_test = dataset.X[split.train], dataset.X[split.test]
    is_sparse = sp.issparse(X_train)
    impute = not is_sparse and bool(np.isnan(X_train).any() or np.isnan(X_test).any())
    kind = scaling(dataset.name, scale, sparse=is_sparse)
    if impute or kind is not None:
        fitted = scaling_by(X_train, kind, impute=impute)
        X_train, X_test = fitted.transform(X_train), fitted.transform(X_test)
    y_train, y_test = dataset.y[split.train], dataset.y[split.test]
    groups = None if dataset.groups is None else dataset.groups[split.train]
    arrays = frozen(X_train), frozen(y_train), frozen(X_test), frozen(y_test)
    return Prepared(*arrays, dataset.relevant, groups, split.is_later)


def fold_rows(n_train: int, n_folds: int, fold: int) -> tuple[Indices, Indices]:
    """Return the indices of the training rows and of the held-out rows of one fold.

    Folds are contiguous because the rows have already been shuffled.
    """
    bounds = np.linspace(0, n_train, n_folds + 1).astype(int)
    positions = np.arange(n_train)
    held_out = positions[bounds[fold] : bounds[fold + 1]]
    return np.setdiff1d(positions, held_out, assume_unique=True), held_out
