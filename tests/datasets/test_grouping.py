"""Groups stay together in splits and folds, and later rows are for testing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.config.splitting import Groups, Later
from klr_bench.datasets import Dataset, load
from klr_bench.datasets.grouping import group_codes, group_folds, later_folds
from klr_bench.datasets.readers import Reading, read
from klr_bench.datasets.splits import Split, make_split, prepare
from klr_bench.errors import KlrBenchError
from tests.config.composing import dataset_of

CODES = st.lists(st.integers(0, 12), min_size=20, max_size=60).map(np.array)


def cell(row: int) -> str:
    return f"row {row}"


@given(CODES, st.integers(2, 5))
def test_a_fold_of_groups_divides_the_rows_and_no_group(groups: Any, n_folds: int) -> None:
    folds = group_folds(groups, n_folds)
    assert sorted(np.concatenate([valid for _, valid in folds])) == list(range(len(groups)))
    for train, valid in folds:
        assert sorted([*train, *valid]) == list(range(len(groups)))
        assert not {*groups[train]} & {*groups[valid]}


@given(CODES, st.integers(1, 5), st.sampled_from([None, 0.2, 0.8]))
def test_validation_rows_are_later_than_all_training_rows(ranks: Any, n_folds: int, first: float | None) -> None:
    for train, valid in later_folds(ranks, n_folds, first=first):
        assert ranks[train].max() < ranks[valid].min()
        assert sorted(train) == np.flatnonzero(ranks < ranks[valid].min()).tolist()


@pytest.mark.parametrize(
    "times",
    [
        ["3", "10.5", "-2", "3"],
        ["2021-03-01", "2021-12-01", "2020-01-01", "2021-03-01"],
        ["15.3.2021", "1.12.2021", "28.12.2020", "15.3.2021"],
        ["3/15/2021", "12/1/2021", "12/28/2020", "3/15/2021"],
        ["15 Mar 2021", "1 Dec 2021", "28 Dec 2020", "15 March 2021"],
        ["2021-10-31T02:30:00+01:00", "2021-10-31T02:45:00+01:00", "2021-10-31T02:59:00+02:00", "2021-10-31 01:30:00Z"],
    ],
)
def test_times_are_ranked(times: list[str]) -> None:
    assert group_codes(times, cell, is_time=True).tolist() == [1, 2, 0, 1]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a", "NA", "b"], "row 1: expected the group of the row, got none"),
        (["1", "", "2"], "row 1: expected a number or a date, got none"),
        (["2021-01-01", "soon"], "row 1: expected a number or a date in each row, got another value"),
        (["14:30", "15:30"], "row 0: expected a number or a date in each row"),
        (["3/4/2021", "4/5/2021"], "row 0: dates whose day and month cannot be told apart"),
    ],
)
def test_a_group_or_a_time_that_is_none_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(KlrBenchError, match=message):
        group_codes(texts, cell, is_time="group" not in message)


def visits(path: Path, n: int = 60) -> Path:
    """Write a table of visits of 20 patients, of whom some have one class only."""
    rows = [f"p{i % 20},{(7 * i) % 60 // 2},{i % 9},{'ill' if i % 20 < 9 else 'well'}" for i in range(n)]
    path.write_text("\n".join(["patient,day,x,class", *rows]))
    return path


@pytest.fixture
def dataset(tmp_path: Path) -> Callable[..., Any]:
    def of(**split: Any) -> Any:
        source = {"format": "file", "path": str(visits(tmp_path / "visits.csv"))}
        spec = dataset_of({"source": source, "split": split})
        return load("file", spec, cache=tmp_path / "cache", mirror=None)

    return of


@pytest.mark.parametrize("repeat", range(5))
def test_a_split_keeps_patients_together_and_their_column_is_no_feature(
    dataset: Callable[..., Any], repeat: int
) -> None:
    for _ in range(2):  # the second one comes from the cache
        data = dataset(group="patient", test_size=0.25)
    assert data.X.shape == (60, 2)
    assert "groups: column 1 ('patient')" in data.said
    split = make_split(data, Groups(group="patient", test_size=0.25), 0, repeat)
    assert sorted([*split.train, *split.test]) == list(range(60))
    patients = np.arange(60) % 20
    assert not {*patients[split.train]} & {*patients[split.test]}
    assert len({*patients[split.test]}) == 5
    assert len({*data.y[split.test]}) == len({*data.y[split.train]}) == 2
    prepared = prepare(data, split, None)
    for fold in range(3):
        train, valid = prepared.fold(len(split.train), 3, fold)
        assert not {*patients[split.train[train]]} & {*patients[split.train[valid]]}


def test_a_split_by_time_tests_on_the_latest_rows(dataset: Callable[..., Any]) -> None:
    data = dataset(time="day", test_size=0.25)
    assert data.X.shape == (60, 21)  # x, and a column for each patient
    days = np.array([(7 * i) % 60 // 2 for i in range(60)])
    splits = [make_split(data, Later(time="day", test_size=0.25), 0, repeat) for repeat in (0, 1)]
    for split in splits:
        assert days[split.train].max() < days[split.test].min()
        assert 14 <= len(split.test) <= 16
    assert splits[0].train.tolist() != splits[1].train.tolist(), "another order"
    prepared = prepare(data, splits[0], None)
    for fold in range(3):
        train, valid = prepared.fold(len(splits[0].train), 3, fold)
        assert days[splits[0].train[train]].max() < days[splits[0].train[valid]].min()


def test_a_group_changes_the_identity_of_the_data_and_no_other_setting_does(tmp_path: Path) -> None:
    from klr_bench.datasets import dataset_hash

    source = {"format": "file", "path": str(visits(tmp_path / "visits.csv"))}
    splits = [{"test_size": 0.25}, {"group": "patient", "test_size": 0.25}, {"time": "day", "test_size": 0.25}]
    assert len({dataset_hash("file", dataset_of({"source": source, "split": split})) for split in splits}) == 3


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ({"group": "pateint", "test_size": 0.25}, "there is no group column 'pateint'.*Did you mean 'patient'"),
        ({"group": "class", "test_size": 0.25}, "data.group=class: is the label column"),
        ({"time": "patient", "test_size": 0.25}, r"line 2, column 1 \('patient'\): 'p0': expected a number or a date"),
    ],
)
def test_a_wrong_column_is_refused(dataset: Callable[..., Any], split: dict[str, Any], message: str) -> None:
    with pytest.raises(KlrBenchError, match=message):
        dataset(**split)


SIZES = st.lists(st.integers(0, 3_000_000), min_size=2, max_size=30, unique=True)


@given(SIZES, st.sampled_from([1, 1000]))
def test_the_decimal_mark_decides_the_order_of_times(numbers: list[int], divisor: int) -> None:
    expected = np.argsort(np.argsort(numbers)).tolist()
    swap = str.maketrans(",.", ".,")
    texts = [f"{number / divisor:,.{3 if divisor > 1 else 0}f}" for number in numbers]
    assert group_codes([text.translate(swap) for text in texts], cell, is_time=True, decimal=",").tolist() == expected
    if divisor > 1:
        assert group_codes(texts, cell, is_time=True).tolist() == expected


@given(
    st.lists(st.integers(100, 999), min_size=1, max_size=5), st.lists(st.integers(1000, 9999), min_size=1, max_size=5)
)
def test_points_that_may_separate_thousands_are_refused_in_times(few: list[int], many: list[int]) -> None:
    texts = [*map(str, few), *(f"{number:,}".replace(",", ".") for number in many)]
    with pytest.raises(KlrBenchError, match=f"^row {len(few)}: may be thousands.*set data.decimal=comma"):
        group_codes(texts, cell, is_time=True)
    ranks = group_codes(texts, cell, is_time=True, decimal=",")
    assert ranks.tolist() == np.unique([*few, *many], return_inverse=True)[1].tolist()


def test_a_decimal_comma_without_the_option_is_named() -> None:
    with pytest.raises(KlrBenchError, match=r"row 0: .*; for a decimal comma, set data.decimal=comma"):
        group_codes(["1,5", "2,25"], cell, is_time=True)


@given(st.integers(1, 60), st.integers(1, 120), st.sampled_from([None, 0.01, 0.5, 0.99, 0.999]))
def test_any_number_of_rows_in_time_can_be_divided(n: int, n_folds: int, first: float | None) -> None:
    folds = later_folds(np.arange(n), n_folds, first=first)
    assert bool(folds) == (n > 1)
    assert all(train.max() < valid.min() for train, valid in folds)


@pytest.mark.parametrize("test_size", [0.1, 0.5, 0.7, 0.99])
def test_a_split_by_time_has_the_requested_share_of_test_rows(test_size: float) -> None:
    ((train, test),) = later_folds(np.random.default_rng(0).permutation(100), 1, first=1 - test_size)
    assert (len(train), len(test)) == (round(100 * (1 - test_size)), round(100 * test_size))


def of_groups(groups: Any, y: Any = None) -> Dataset:
    X = np.zeros((len(groups), 1), dtype=np.float32)
    y = np.resize([-1, 1], len(groups)) if y is None else y
    return Dataset("toy", X, np.asarray(y, dtype=np.int8), ("a", "b"), None, "", groups=np.asarray(groups))


@given(st.integers(2, 100), st.integers(1, 40), st.sampled_from([0.01, 0.2, 0.5]))
def test_a_split_by_time_says_how_many_rows_have_the_earliest_time(n: int, n_later: int, test_size: float) -> None:
    data = of_groups([0] * n + [1] * n_later)
    if round((1 - test_size) * (n + n_later)) < n:
        with pytest.raises(KlrBenchError, match=f"{n / (n + n_later):.0%} of the rows have the earliest time"):
            make_split(data, Later(time="t", test_size=test_size), 0, 0)
    else:
        split = make_split(data, Later(time="t", test_size=test_size), 0, 0)
        assert len(split.train) == n
        assert len(split.test) == n_later


@pytest.mark.parametrize("labels", [[-1, -1, 1, 1], [-1, 1, 1, -1]])
def test_groups_that_begin_with_different_classes_are_refused(labels: list[int]) -> None:
    with pytest.raises(KlrBenchError, match="each of the 2 groups begins with another class"):
        make_split(of_groups([0, 0, 1, 1], labels), Groups(group="site", test_size=0.5), 0, 0)


@given(CODES, st.integers(2, 12), st.booleans())
def test_folds_without_rows_are_explained_by_the_largest_group(groups: Any, n_folds: int, is_later: bool) -> None:
    rows = np.arange(len(groups))
    data = prepare(of_groups(groups), Split(rows, rows, is_later), None)
    for fold in range(n_folds):
        share, message = np.bincount(groups).max() / len(groups), ""
        try:
            assert all(map(len, data.fold(len(groups), n_folds, fold)))
        except KlrBenchError as error:
            message = str(error)
        assert not message or share >= 1 / (n_folds + is_later) - 1 / len(groups)
        assert not message or message.startswith(f"{share:.0%} of the training rows")


@pytest.mark.parametrize("header", ["0,1,2,3,4,y", "1,2,3,4,5,y", "3,4,5,6,7,y"])
@pytest.mark.parametrize("by", range(5))
def test_columns_whose_names_are_numbers_are_found_by_name(header: str, by: int, tmp_path: Path) -> None:
    names = header.split(",")[:5]
    cells = [[f"{i % 4}", *(f"{(i * k) % 11}.5" for k in range(1, 5))] for i in range(40)]
    rows = [",".join([*row[1 : by + 1], row[0], *row[by + 1 :], "ab"[i % 2]]) for i, row in enumerate(cells)]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join([header, *rows]))
    other = names[by - 1]
    arrays = read([path], Reading(table=1, group=names[by], columns={other: "leave_out"}))
    assert f"groups: column {by + 1} ('{names[by]}')" in arrays.said
    assert arrays.groups is not None
    assert arrays.groups.tolist() == [i % 4 for i in range(40)]
    assert arrays.X.shape == (40, 3)
