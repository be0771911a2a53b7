"""Groups stay together in splits and folds, and later rows are for testing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.config.splitting import Groups, Later
from klr_bench.datasets import load
from klr_bench.datasets.grouping import group_codes, group_folds, later_folds
from klr_bench.datasets.splits import make_split, prepare
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


@given(CODES, st.integers(1, 5), st.sampled_from([0.0, 0.8]))
def test_validation_rows_are_later_than_all_training_rows(ranks: Any, n_folds: int, first: float) -> None:
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
