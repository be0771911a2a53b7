"""Splits: the same for every algorithm, different for every repeat, and nothing of the test rows in the scaling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.data import Dataset
from klr_bench.experiment.splits import derived_seed, fold_rows, make_split, prepare


def dataset(n=20, official=None, name="toy", sparse=False):
    X = np.arange(2.0 * n, dtype=np.float32).reshape(n, 2)
    y = np.where(np.arange(n) % 2, 1, -1).astype(np.int8)
    return Dataset(name, sp.csr_matrix(X) if sparse else X, y, ("a", "b"), official, "hash")


@given(n=st.integers(2, 400), test_size=st.sampled_from([0.1, 0.2, 0.25, 0.5]), seed=st.integers(0, 99))
def test_a_random_split_is_a_partition(n, test_size, seed):
    split = make_split(dataset(n), {"test_size": test_size}, seed, 0)
    assert sorted([*split.train, *split.test]) == list(range(n))
    assert len(split.test) == pytest.approx(test_size * n, abs=1)


@pytest.mark.parametrize(("n", "n_train", "n_test"), [(19020, 15216, 3804), (581012, 464809, 116203)])
def test_split_sizes_are_those_of_the_paper(n, n_train, n_test):
    split = make_split(dataset(n), {"test_size": 0.2}, 0, 0)
    assert (len(split.train), len(split.test)) == (n_train, n_test)


def test_the_official_split_permutes_the_training_rows_only():
    split = make_split(dataset(20, official=15), {"official": True}, 0, 1)
    assert sorted(split.train) == list(range(15))
    assert list(split.train) != list(range(15))
    assert list(split.test) == list(range(15, 20))


@pytest.mark.parametrize("official", [None, 15])
@pytest.mark.parametrize(
    ("asked", "n_train", "n_test"), [({"n_test": 6}, 24, 6), ({"n_test": 6, "n_train": 10}, 10, 6)]
)
def test_rows_are_drawn_from_all(asked, n_train, n_test, official):
    split = make_split(dataset(30, official), asked, 0, 0)
    assert (len(split.train), len(split.test)) == (n_train, n_test)
    rows = [*split.train, *split.test]
    assert len(set(rows)) == n_train + n_test
    assert min(rows) < 15 <= max(rows)
    assert set(split.test) != set(make_split(dataset(30, official), asked, 0, 1).test)


@given(
    n=st.integers(9, 60), n_test=st.sampled_from([2, 4]), n_train=st.sampled_from([None, 2, 4]), seed=st.integers(0, 9)
)
def test_equal_classes_are_equal(n, n_test, n_train, seed):
    uneven = replace(dataset(n), y=np.where(np.arange(n) % 3, -1, 1).astype(np.int8))
    rarer = int((uneven.y > 0).sum())
    asked = {"n_test": n_test, "equal_classes": True} | ({"n_train": n_train} if n_train else {})
    if n_test // 2 + (n_train or 2) // 2 > rarer:
        with pytest.raises(KlrBenchError, match="cannot be drawn from 2 times 3 rows; lower them, to multiples of 2"):
            make_split(uneven, asked, seed, 0)
        return
    split = make_split(uneven, asked, seed, 0)
    assert uneven.y[split.test].sum() == uneven.y[split.train].sum() == 0
    assert (len(split.test), len(split.train)) == (n_test, n_train or 2 * rarer - n_test)
    assert not set(split.test) & set(split.train)


@pytest.mark.parametrize("official", [None, 15])
def test_rows_that_are_drawn_once_differ_in_their_order_alone(official):
    first, second = (make_split(dataset(20, official), {"n_train": 12}, 0, repeat) for repeat in (0, 1))
    assert sorted(first.train) == sorted(second.train)
    assert list(first.train) != list(second.train)
    np.testing.assert_array_equal(first.test, second.test)
    assert len(first.train) == 12
    assert max(first.train) < (official or 20)
    assert sorted(first.test) == ([15, 16, 17, 18, 19] if official else sorted({*range(20)} - {*first.train}))
    other = make_split(dataset(20, official), {"n_train": 12}, 1, 0)
    assert sorted(other.train) != sorted(first.train)


@pytest.mark.parametrize(
    ("official", "n_train", "most"), [(None, 20, 19), (15, 16, 15), (None, 0, 19), (None, 0.5, 19)]
)
def test_refuses_a_number_of_rows_that_there_is_not(official, n_train, most):
    with pytest.raises(KlrBenchError, match=f"n_train: expected a whole number from 1 to {most}, got"):
        make_split(dataset(20, official), {"n_train": n_train}, 0, 0)


def test_even_days_to_train_and_odd_days_to_test():
    split = make_split(dataset(20), {"runs": [[3, 1], [5, 3], [2, 1]]}, 0, 0)  # days of 3, 5, 5, 5, 2 rows
    assert sorted(split.train) == [0, 1, 2, *range(8, 13), 18, 19]
    assert list(split.train) != sorted(split.train)
    assert list(split.test) == [*range(3, 8), *range(13, 18)]
    with pytest.raises(KlrBenchError, match=r"toy: split: runs: of 18 rows in all, but there are 20"):
        make_split(dataset(20), {"runs": [[3, 1], [5, 3]]}, 0, 0)


def test_splits_depend_on_seed_data_set_and_repeat_alone():
    def order(seed=0, name="toy", repeat=0):
        return make_split(dataset(name=name), {"test_size": 0.2}, seed, repeat).train.tolist()

    assert order() == order()
    assert len({tuple(order(*change)) for change in [(), (1,), (0, "other"), (0, "toy", 1)]}) == 4
    assert derived_seed(0, "toy", 0, "split") != derived_seed(0, "toy", 0, "learner")


def test_refuses_what_cannot_be_split():
    with pytest.raises(KlrBenchError, match="official asks for a test file, but there is none"):
        make_split(dataset(), {"official": True}, 0, 0)
    for refused in ({"n_test": 20}, {"n_test": 3, "equal_classes": True}, {"n_test": 2, "n_train": 19}):
        with pytest.raises(KlrBenchError, match=r"toy: split: n_train=.* cannot be drawn from"):
            make_split(dataset(), refused, 0, 0)
    with pytest.raises(KlrBenchError, match=r"test_size=0.2 of 1 rows leaves no row to train or to test"):
        make_split(dataset(1), {"test_size": 0.2}, 0, 0)


def test_scaling_is_fitted_on_the_training_rows():
    split = next(
        split
        for split in (make_split(dataset(), {"test_size": 0.5}, seed, 0) for seed in range(99))
        if {0, 19} <= set(split.test)
    )
    data = prepare(dataset(), split, "minmax")
    assert data.X_test.min() < 0
    assert data.X_test.max() > 1
    assert data.X_train.min() == 0
    assert data.X_train.max() == pytest.approx(1)
    assert data.X_train.dtype == data.X_test.dtype == np.float32
    low, high = dataset().X[split.train].min(axis=0), dataset().X[split.train].max(axis=0)
    np.testing.assert_allclose(data.X_test, (dataset().X[split.test] - low) / (high - low), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(data.y_train, dataset().y[split.train])
    with pytest.raises(KlrBenchError, match="scale=minmax would make sparse data dense"):
        prepare(dataset(sparse=True), split, "minmax")


@given(n=st.integers(10, 200), n_folds=st.integers(2, 10))
def test_folds_hold_out_each_row_once_and_keep_the_order(n, n_folds):
    held_out = []
    for fold in range(n_folds):
        rows, out = fold_rows(n, n_folds, fold)
        assert sorted([*rows, *out]) == list(range(n))
        assert list(rows) == sorted(rows)
        held_out += out.tolist()
    assert held_out == list(range(n))


def test_the_repeats_of_a_cross_validation_are_its_folds():
    rows = dataset(103)
    splits = [make_split(rows, {"folds": 5, "test_size": 0.2}, 0, repeat) for repeat in range(10)]
    for start in (0, 5):
        tested = np.concatenate([split.test for split in splits[start : start + 5]])
        assert sorted(tested) == list(range(103))
    for split in splits:
        assert sorted([*split.train, *split.test]) == list(range(103))
        assert np.any(np.diff(split.train) < 0)
    assert not np.array_equal(splits[0].test, splits[5].test)
    for folds in (1, 104):
        with pytest.raises(KlrBenchError, match="expected at least 2, and not more than the 103 rows"):
            make_split(rows, {"folds": folds}, 0, 0)
