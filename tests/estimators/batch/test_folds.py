"""Folds of KLR: copies and groups of rows stay together, and splitters are used as in scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from klr_bench import KLR
from klr_bench.estimators.batch import folds
from klr_bench.estimators.batch.folds import copies, folds_of


def noise(n=40, seed=0):
    random = np.random.RandomState(seed)
    return random.standard_normal((n, 3)), random.permutation(np.arange(n) % 2)


def split(X, y, cv=None, groups=None, shares=None):
    estimator = KLR(cv=cv)
    estimator.classes_ = np.unique(y)
    return folds_of(estimator, X, y, np.ones(len(y)) if shares is None else shares, groups, 0)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_a_search_does_not_see_copies_of_its_validation_rows(layout):
    X, y = noise()
    order = np.random.RandomState(1).permutation(160)
    model = KLR(max_rounds=0, random_state=0).fit(layout(np.tile(X, (4, 1))[order]), np.tile(y, 4)[order])
    assert model.best_score_ < -0.65


@pytest.mark.parametrize(("n_classes", "expected"), [(4, 10), (5, 5)])
def test_folds_of_many_classes_are_not_repeated(n_classes, expected):
    X, _ = noise()
    assert len(split(X, np.arange(40) % n_classes)) == expected


def test_equal_rows_with_different_classes_are_no_copies():
    X = np.random.RandomState(0).randint(2, size=(200, 2)).astype(float)
    y = np.random.RandomState(1).randint(2, size=200)
    np.testing.assert_array_equal(copies(X, y), np.arange(200))
    np.testing.assert_array_equal(copies(X, (X[:, 0] > 0).astype(int)), folds.in_order(2 * X[:, 0] + X[:, 1]))
    np.testing.assert_array_equal(copies(np.repeat(np.eye(2), 9, axis=0), np.repeat([0, 1], 9)), np.arange(18))


def test_the_group_that_a_class_needs_is_used_once():
    y, codes = np.array([0, 0, 0, 0, 1, 2, 1, 2]), np.array([0, 0, 1, 1, 2, 2, 3, 3])
    train, valid = folds._with_each_class(np.array([0, 2]), np.array([4, 5, 6, 7]), y, codes)
    np.testing.assert_array_equal(train, [0, 2, 4, 5])
    np.testing.assert_array_equal(valid, [6, 7])
    train, _ = folds._with_each_class(np.array([0, 4, 6]), np.array([2, 3]), y, codes)
    np.testing.assert_array_equal(train, [0, 4, 5, 6])


def test_a_row_twice_has_the_folds_of_a_row_with_weight_two():
    X, y = noise()
    both, once = split(np.vstack([X, X]), np.r_[y, y]), split(X, y)
    for parts, of_once in zip(both, once, strict=True):
        for part, single in zip(parts, of_once, strict=True):
            np.testing.assert_array_equal(np.sort(part), np.sort(np.r_[single, single + 40]))
    counts = np.arange(40) % 3 + 1
    y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    repeated = KLR(max_rounds=1, random_state=0).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    weighted = KLR(max_rounds=1, random_state=0).fit(X, y, counts)
    assert repeated.best_score_ == pytest.approx(weighted.best_score_, rel=1e-2)
    assert abs(repeated.best_score_ / KLR(max_rounds=1, random_state=0).fit(X, y).best_score_ - 1) > 1e-2


def test_the_validation_losses_are_in_the_order_of_the_folds():
    X, _ = noise(60)
    y, weights = (X[:, 0] > 0).astype(int), np.linspace(0.2, 3, 60)
    folds = split(X, y, 3)
    model = KLR(max_rounds=1, cv=folds, random_state=0).fit(X, y, weights)
    valid = np.concatenate([rows for _, rows in folds])
    assert np.average(model.validation_losses_, weights=weights[valid]) == pytest.approx(-model.best_score_)


@pytest.mark.parametrize(("cv", "n"), [(None, 60), (3, 60), (None, 3200)])
def test_groups_stay_together(cv, n):
    y, groups = np.arange(n) % 2, np.arange(n) // 6
    parts = split(np.arange(n * 1.0)[:, None], y, cv, groups)
    assert len(parts) == (10 if n == 60 and cv is None else cv or 1)
    for train, valid in parts:
        assert len(set(groups[train]) & set(groups[valid])) == 0
        assert {*groups[train], *groups[valid]} == {*groups}


@pytest.mark.parametrize("kind", ["few rows", "few groups", "a class leads one group", "many classes"])
def test_rows_that_cannot_be_split_once_have_several_folds(kind):
    random, groups = np.random.RandomState(0), None
    X, y = random.standard_normal((4000, 2)), np.arange(4000) % 2
    if kind == "few rows":
        X = random.randint(2, size=(4000, 2)).astype(float)
        y = X[:, 0].astype(int)
    elif kind == "few groups":
        groups = np.arange(4000) // 601
    elif kind == "a class leads one group":
        groups = np.arange(4000) // 40
        y = np.where(groups == 7, 1 - y, (np.arange(4000) % 40 == 5).astype(int))
    else:
        y = np.arange(4000) // 3 % 1333
    parts = split(X, y, None, groups)
    assert len(parts) >= 2
    for train, valid in parts:
        assert {*y[train]} == {*y}
        assert not {*train} & {*valid}


def test_splitters_get_groups_and_rows_without_weight_are_left_out():
    X, y = noise(60)
    groups, shares = np.arange(60) % 3, np.where(np.arange(60) < 6, 0.0, 1.0)
    for train, valid in split(X, y, LeaveOneGroupOut(), groups, shares):
        assert len(set(groups[6:][train])) == 2
        assert len(train) + len(valid) == 54
        assert len({*groups[6:][valid]}) == 1
    model = KLR(cv=GroupKFold(3), max_rounds=0).fit(X, y, shares, groups=groups)
    by_hand = KLR(cv=GroupKFold(3), max_rounds=0).fit(X[6:], y[6:], groups=groups[6:])
    assert model.best_score_ == pytest.approx(by_hand.best_score_)


def test_groups_are_routed_as_metadata():
    X, y = noise(60)
    groups = np.arange(60) % 3
    with config_context(enable_metadata_routing=True):
        klr = KLR(cv=GroupKFold(3), max_rounds=0).set_fit_request(groups=True)
        routed = make_pipeline(StandardScaler(), klr).fit(X, y, groups=groups)[-1]
    by_hand = KLR(cv=GroupKFold(3), max_rounds=0).fit(X, y, groups=groups)
    assert routed.best_score_ == pytest.approx(by_hand.best_score_)


def test_folds_without_training_rows_of_a_class_are_refused():
    X, y = noise(60)
    with pytest.raises(ValueError, match=r"KLR needs at least two groups with rows of each class, got one for class 0"):
        KLR().fit(X, y, groups=y)
    with pytest.raises(ValueError, match=r"KLR: fold 0 needs training rows of each class"):
        KLR(cv=[(np.flatnonzero(y), np.flatnonzero(1 - y))]).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KLR().fit(X, y, groups=y[:9])


@pytest.mark.parametrize("cv", [None, 3])
def test_folds_of_many_rows_have_limited_sizes_and_training_rows_of_each_class(cv, monkeypatch):
    monkeypatch.setattr(folds, "MOST_COMPARED", 50)
    monkeypatch.setattr(folds, "MOST_VALIDATION", 40)
    X = np.random.RandomState(0).standard_normal((4000, 2))
    y = np.arange(4000) % 2
    y[[7, 3900]] = 2 if cv is None else 1
    parts = split(X, y, cv)
    assert len(parts) == (cv or 1)
    for train, valid in parts:
        assert len(train) <= 50 + (cv is None)
        assert len(valid) <= 40
        assert {*y[train]} == {*y}
        assert not {*train} & {*valid}


@pytest.mark.parametrize(("n", "n_groups", "n_folds"), [(4000, 20, 5), (4000, 1000, 1), (10_002, 20, 1)])
def test_few_groups_have_several_folds(n, n_groups, n_folds):
    parts = split(np.arange(n * 1.0)[:, None], np.arange(n) // n_groups % 2, None, np.arange(n) % n_groups)
    assert len(parts) == n_folds
