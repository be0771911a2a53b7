"""Splits: the same for every algorithm, different for every repeat, with scaling fitted on the training rows."""

import hashlib
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.config.splitting import Draw, Folds, Official, Runs, Share, Subset, parse_split
from klr_bench.datasets import Dataset, load
from klr_bench.datasets.splits import derived_seed, fold_rows, make_split, prepare, scaling
from klr_bench.errors import KlrBenchError
from klr_bench.runner.fit import learner_seed
from klr_bench.runner.plan import Source
from tests.config.composing import composed


def dataset(n=20, official=None, seed_name="toy", sparse=False):
    X = np.arange(2.0 * n, dtype=np.float32).reshape(n, 2)
    y = np.where(np.arange(n) % 2, 1, -1).astype(np.int8)
    X = sp.csr_matrix(X) if sparse else X
    return Dataset("toy", X, y, ("a", "b"), official, "hash", seed_name=seed_name)


@given(n=st.integers(2, 400), test_size=st.sampled_from([0.1, 0.2, 0.25, 0.5]), seed=st.integers(0, 99))
def test_a_random_split_is_a_partition(n, test_size, seed):
    split = make_split(dataset(n), Share(test_size=test_size), seed, 0)
    assert sorted([*split.train, *split.test]) == list(range(n))
    assert len(split.test) == pytest.approx(test_size * n, abs=1)


def test_the_official_split_permutes_the_training_rows_only():
    split = make_split(dataset(20, official=15), Official(official=True), 0, 1)
    assert sorted(split.train) == list(range(15))
    assert list(split.train) != list(range(15))
    assert list(split.test) == list(range(15, 20))


@pytest.mark.parametrize("official", [None, 15])
@pytest.mark.parametrize(("spec", "n_train", "n_test"), [(Draw(n_test=6), 24, 6), (Draw(n_test=6, n_train=10), 10, 6)])
def test_rows_are_drawn_from_all(spec, n_train, n_test, official):
    split = make_split(dataset(30, official), spec, 0, 0)
    assert (len(split.train), len(split.test)) == (n_train, n_test)
    rows = [*split.train, *split.test]
    assert len(set(rows)) == n_train + n_test
    assert min(rows) < 15 <= max(rows)
    assert set(split.test) != set(make_split(dataset(30, official), spec, 0, 1).test)


@given(
    n=st.integers(9, 60), n_test=st.sampled_from([2, 4]), n_train=st.sampled_from([None, 2, 4]), seed=st.integers(0, 9)
)
def test_equal_classes_are_equal(n, n_test, n_train, seed):
    uneven = replace(dataset(n), y=np.where(np.arange(n) % 3, -1, 1).astype(np.int8))
    rarer = int((uneven.y > 0).sum())
    spec = Draw(n_test=n_test, n_train=n_train, equal_classes=True)
    if n_test // 2 + (n_train or 2) // 2 > rarer:
        with pytest.raises(KlrBenchError, match=r"must be positive multiples of 2 with a sum of at most 6"):
            make_split(uneven, spec, seed, 0)
        return
    split = make_split(uneven, spec, seed, 0)
    assert uneven.y[split.test].sum() == uneven.y[split.train].sum() == 0
    assert (len(split.test), len(split.train)) == (n_test, n_train or 2 * rarer - n_test)
    assert not set(split.test) & set(split.train)


@pytest.mark.parametrize("official", [None, 15])
def test_rows_drawn_once_differ_only_in_order(official):
    first, second = (make_split(dataset(20, official), Subset(n_train=12), 0, repeat) for repeat in (0, 1))
    assert sorted(first.train) == sorted(second.train)
    assert list(first.train) != list(second.train)
    np.testing.assert_array_equal(first.test, second.test)
    assert len(first.train) == 12
    assert max(first.train) < (official or 20)
    assert sorted(first.test) == ([15, 16, 17, 18, 19] if official else sorted({*range(20)} - {*first.train}))
    other = make_split(dataset(20, official), Subset(n_train=12), 1, 0)
    assert sorted(other.train) != sorted(first.train)


def test_even_days_to_train_and_odd_days_to_test():
    split = make_split(dataset(20), Runs(runs=[[3, 1], [5, 3], [2, 1]]), 0, 0)  # days of 3, 5, 5, 5, 2 rows
    assert sorted(split.train) == [0, 1, 2, *range(8, 13), 18, 19]
    assert list(split.train) != sorted(split.train)
    assert list(split.test) == [*range(3, 8), *range(13, 18)]


def test_splits_depend_only_on_seed_seed_name_and_repeat():
    def order(seed=0, seed_name="toy", repeat=0):
        rows = dataset(seed_name=seed_name)
        names = (replace(rows, name=name, hash=name) for name in ("toy", "renamed"))
        first, second = (make_split(row, Share(test_size=0.2), seed, repeat).train.tolist() for row in names)
        assert first == second
        return first

    assert order() == order()
    assert len({tuple(order(*change)) for change in [(), (1,), (0, "other"), (0, "toy", 1)]}) == 4
    assert derived_seed(0, "toy", 0, "split") != derived_seed(0, "toy", 0, "learner")


def test_neither_the_name_nor_the_format_of_a_file_affects_its_splits(tmp_path):
    random = np.random.default_rng(0)
    X, y = np.round(random.standard_normal((60, 3)), 2), random.permutation(np.arange(60) % 3)
    rows = {
        "rows.csv": "".join(f"{a},{b},{c},{label}\n" for (a, b, c), label in zip(X, y, strict=True)),
        "rows.svm": "".join(f"{label} 1:{a} 2:{b} 3:{c}\n" for (a, b, c), label in zip(X, y, strict=True)),
    }
    splits = []
    for name, content in (*rows.items(), ("renamed.csv", rows["rows.csv"])):
        (tmp_path / name).write_text(content)
        config = composed("dataset=file", f"data.path={tmp_path / name}").datasets["file"]
        loaded = load("file", config, cache=tmp_path / "cache", mirror=None)
        splits.append(make_split(loaded, config.split, 0, 1))
        source = Source("file", loaded.name, config, loaded.hash, tmp_path, None, 0, 1)
        assert learner_seed(source) == derived_seed(0, "", 1, "learner")
    for split in splits[1:]:
        np.testing.assert_array_equal(split.train, splits[0].train)
        np.testing.assert_array_equal(split.test, splits[0].test)


@given(st.lists(st.integers(1, 40), min_size=2, max_size=4), st.floats(0.1, 0.9), st.integers(0, 99))
def test_a_stratified_split_has_the_share_of_each_class_everywhere(sizes, test_size, seed):
    y = np.repeat(np.arange(len(sizes)), sizes).astype(np.int8)
    rows = SimpleNamespace(name="toy", seed_name="toy", y=y, n_train_official=None)
    if max(sizes) == 1:
        expected = rf"toy: each of the {len(sizes)} classes has only one row; expected at least 2 rows per class\."
        with pytest.raises(KlrBenchError, match=expected):
            make_split(rows, Share(test_size=test_size, stratify=True), seed, 0)
        return
    split = make_split(rows, Share(test_size=test_size, stratify=True), seed, 0)
    assert sorted([*split.train, *split.test]) == list(range(len(y)))
    for label, size in enumerate(sizes):
        n_test = int((y[split.test] == label).sum())
        assert n_test == (0 if size == 1 else min(max(round(test_size * size), 1), size - 1))
        at = np.flatnonzero(y[split.train] == label)
        assert len(at) == size - n_test
        for half in (at < len(split.train) / 2, at >= len(split.train) / 2):
            assert abs(half.sum() - len(at) / 2) <= len(sizes) + 1
    again = make_split(rows, Share(test_size=test_size, stratify=True), seed, 1)
    assert len(y) < 12 or split.train.tolist() != again.train.tolist()


@pytest.mark.parametrize(
    ("rows", "spec", "message"),
    [
        (dataset(), Official(official=True), "official needs a test file, but the data set has none"),
        *(
            (dataset(), draw, r"toy: split: n_train=.* must be positive multiples of")
            for draw in (Draw(n_test=20), Draw(n_test=3, equal_classes=True), Draw(n_test=2, n_train=19))
        ),
        (dataset(1), Share(test_size=0.2), r"with 1 rows, test_size=0.2 leaves the training or the test set empty"),
        (dataset(), Runs(runs=[[3, 1], [5, 3]]), r"toy: split: runs: expected 20 rows in total, got 18"),
        (dataset(), Subset(n_train=20), "n_train: expected an integer from 1 to 19, got 20"),
        (dataset(official=15), Subset(n_train=16), "n_train: expected an integer from 1 to 15, got 16"),
        (dataset(), Folds(folds=21), "expected an integer from 2 to 20, the number of rows, got 21"),
    ],
)
def test_invalid_splits_are_rejected(rows, spec, message):
    with pytest.raises(KlrBenchError, match=message):
        make_split(rows, spec, 0, 0)


def test_scaling_is_fitted_on_the_training_rows():
    split = next(
        split
        for split in (make_split(dataset(), Share(test_size=0.5), seed, 0) for seed in range(99))
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
    X = dataset().X.astype(np.float64)
    expected = (X[split.test] - X[split.train].mean(axis=0)) / X[split.train].std(axis=0)
    for scale in ("standard", "auto"):
        np.testing.assert_allclose(prepare(dataset(), split, scale).X_test, expected, rtol=1e-5, atol=1e-6)
    sparse = dataset(sparse=True)
    assert scaling("sparse", "auto", sparse=True) is None
    np.testing.assert_array_equal(prepare(sparse, split, "auto").X_test.toarray(), sparse.X[split.test].toarray())
    with pytest.raises(KlrBenchError, match="scale=minmax would make sparse data dense"):
        prepare(sparse, split, "minmax")


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
    splits = [make_split(rows, Folds(folds=5), 0, repeat) for repeat in range(10)]
    for start in (0, 5):
        tested = np.concatenate([split.test for split in splits[start : start + 5]])
        assert sorted(tested) == list(range(103))
    for split in splits:
        assert sorted([*split.train, *split.test]) == list(range(103))
        assert np.any(np.diff(split.train) < 0)
    assert not np.array_equal(splits[0].test, splits[5].test)


PINNED = [
    ({"test_size": 0.2}, None, "0841ead3034f"),
    ({"official": True}, 80, "68b572ee47b8"),
    ({"official": True, "n_train": 30}, 80, "1cddee8955ee"),
    ({"n_train": 30}, None, "e2f94c2990d3"),
    ({"folds": 5}, None, "c3dbc25aa1f7"),
    ({"runs": [[30, 1], [20, 3], [11, 1]]}, None, "96362164b6f4"),
    ({"n_test": 20}, 80, "4c39d86ccad7"),
    ({"n_test": 20, "n_train": 40}, None, "df6ca33b9771"),
    ({"n_test": 20, "n_train": 40, "equal_classes": True}, None, "37633e2ba978"),
]
"""Hashes of splits of 101 rows, on which finished results depend."""


@pytest.mark.parametrize(("keys", "official", "pinned"), PINNED)
def test_splits_have_not_changed(keys, official, pinned):
    content = hashlib.sha256()
    for seed, repeat in ((0, 0), (0, 1), (7, 6)):
        split = make_split(dataset(101, official), parse_split(keys), seed, repeat)
        content.update(np.concatenate([split.train, [-1], split.test]).astype("<i8").tobytes())
    assert content.hexdigest()[:12] == pinned
    assert parse_split(keys).model_dump() == keys
