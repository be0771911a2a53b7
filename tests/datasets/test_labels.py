"""Labels: which spellings are one class, in every reader, and how they come back."""

import re
import warnings
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from klr_bench import load_model, stream
from klr_bench.cli import main
from klr_bench.datasets.class_labels import Labels, look
from klr_bench.datasets.readers import Reading, read
from klr_bench.datasets.readers.user_table import read_frame, take_labels
from klr_bench.errors import KlrBenchError
from klr_bench.printing import printable
from tests.attack.promise import rejected
from tests.datasets.conftest import Write

BIG = 2**53
SPELLINGS = [
    *(
        "0",
        "1",
        "+1",
        "1.0",
        "1.00",
        "01",
        "001",
        "-1",
        "-1.0",
        "-01",
        "1.",
        "1e0",
        "1E0",
        "10e-1",
        ".1",
        "0.1",
        "0.10",
    ),
    *(str(BIG), str(BIG + 1), f"{BIG + 1}.0", f"+{BIG + 1}", f"{BIG}.5", "9007199254740992e0", "1541234567890123456"),
    *("1541234567890123457", str(2**63), str(2**63 + 1), "9" * 40, "1" + "0" * 39 + "1", "1e39", "00501", "501"),
    *("0.1000000000000000055511151231257827", "1e-5", "0.00001", "a", "A", "ja", "jä", "true", "True", "2 0", "1_0"),
]
LISTS = st.lists(
    st.one_of(st.sampled_from(SPELLINGS), st.integers(-(2**70), 2**70).map(str), st.floats(-1e9, 1e9).map(repr)),
    min_size=2,
    max_size=12,
)


def value_in_svmlight(text: str) -> object:
    """Return an exact number if the text is one, as the format has it; otherwise the text."""
    try:
        return Fraction(Decimal(text)) if text.isascii() and "_" not in text else text
    except (InvalidOperation, ValueError):
        return text


def value_in_csv(text: str) -> object:
    """Return a whole number in one of its usual spellings as an integer; otherwise the text."""
    return int(text.partition(".")[0]) if re.fullmatch(r"[+-]?(0|[1-9][0-9]*)(\.0+)?", text) else text


def partition(values: Sequence[object]) -> list[int]:
    """Return the position of the first equal value for each value."""
    return [[*values].index(value) for value in values]


def partitions(kind: str, path: Path) -> dict[str, list[int]]:
    """Return which rows have the same label, in each way of reading a file."""
    found: dict[str, list[int]] = {}
    for name, table in (("file", 1), ("named file", 0)):
        options = {"label_column": 1, "columns": {"2": "number"} if table else {}} if kind == "csv" else {}
        arrays = read([path], Reading(format=kind, multiclass=True, table=table, **options))
        found[name] = partition(arrays.y.tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of labels that look alike
        for name in ("text", "cache"):
            rows = stream(
                path,
                3,
                format=kind,
                label_column=1 if kind == "csv" else None,
                cache=path.parent / f"{path.name}.cache",
            )
            y = np.concatenate([labels for _, labels in rows])
            assert {*y.tolist()} == {*rows.classes.tolist()}
            found[f"stream of the {name}"] = partition(y.tolist())
    if kind == "csv":
        _, y, _ = take_labels(read_frame(path, 1)[0], "column 1")
        found["fit"] = partition(y.tolist())
    return found


@pytest.mark.parametrize("kind", ["csv", "svmlight"])
@settings(max_examples=60, deadline=None)
@given(labels=LISTS)
@example(labels=SPELLINGS)
@example(labels=["1541234567890123456", "1541234567890123457", "7"])
@example(labels=["9e15", "9000000000000000.1", "1"])
def test_two_spellings_are_one_class_in_all_readers_or_in_none(
    tmp_path_factory: pytest.TempPathFactory, kind: str, labels: list[str]
) -> None:
    labels = [label for label in labels if kind == "csv" or " " not in label] + ["x", "y"]
    path = tmp_path_factory.mktemp("labels") / "rows"
    row = "{},{}\n" if kind == "csv" else "{} 1:{}\n"
    path.write_text("".join(row.format(label, 1 + i % 7) for i, label in enumerate(labels)))
    value = value_in_csv if kind == "csv" else value_in_svmlight
    expected = partition([value(label) for label in labels])
    assert {name: found for name, found in partitions(kind, path).items() if found != expected} == {}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_predictions_come_back_as_they_were_spelled(spelling: str, tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text("x,y\n" + "".join(f"{i * i % 7},{(spelling, '7')[i % 2]}\n" for i in range(30)))
    _, y, _ = take_labels(read_frame(path)[0], "y")
    assert {*map(str, y.tolist())} == {spelling, "7"}
    whole = re.fullmatch("0|-?[1-9][0-9]*", spelling) is not None and abs(int(spelling)) < 2**63
    assert y.dtype == np.int64 if whole else y.dtype.kind == "U"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("1541234567890123456 1541234567890123457 7", [1541234567890123456, 1541234567890123457, 7]),
        ("00501 10115 00501", ["00501", "10115", "00501"]),
        ("01 1 01", ["01", "1", "01"]),
    ],
)
def test_the_command_line_predicts_the_labels_of_the_file(
    labels: str,
    expected: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names = labels.split()
    Path("train.csv").write_text("x,y\n" + "".join(f"{3 * (i % 3) + i / 99},{names[i % 3]}\n" for i in range(99)))
    assert main(["fit", "data.path=train.csv", "output=m.skops", "algorithm=oskl_default"]) == 0
    assert f"{len({*names})} classes" in capsys.readouterr().out
    assert main(["predict", "model=m.skops", "data.path=train.csv", "output=p.csv"]) == 0
    assert {line.partition(",")[0] for line in Path("p.csv").read_text().splitlines()[1:]} == {*names}
    assert {*load_model("m.skops").classes_.tolist()} == {*expected}


STREAMED: list[tuple[str, str, list[Any], Any]] = [
    ("svmlight", "+1 -1 +1.0", [1, -1, 1], np.int64),
    ("svmlight", "01 2 1", [1, 2, 1], np.int64),
    ("svmlight", f"{BIG + 1} {BIG} {BIG}", [BIG + 1, BIG, BIG], np.int64),
    ("svmlight", f"{2**63} 1 1", [str(2**63), "1", "1"], np.str_),
    ("svmlight", "0.5 1 5e-1", [0.5, 1, 0.5], np.float64),
    ("csv", "+1 -1 1.0", [1, -1, 1], np.int64),
    ("csv", "0.000000e+00 1.000000e+00 1.000000e+00", [0, 1, 1], np.int64),
    ("csv", "0.5 1 0.5", [0.5, 1, 0.5], np.float64),
    ("csv", "01 2 01", ["01", "2", "01"], np.str_),
    ("csv", "0.5 0.50 0.5", ["0.5", "0.50", "0.5"], np.str_),
    ("csv", f"{BIG + 1} {BIG}.5 1", [f"{BIG + 1}", f"{BIG}.5", "1"], np.str_),
]


@pytest.mark.parametrize(("kind", "labels", "expected", "dtype"), STREAMED)
def test_a_stream_returns_numbers_where_no_label_changes(
    write: Write, kind: str, labels: str, expected: list[Any], dtype: Any
) -> None:
    row = {"csv": "3,{}\n", "svmlight": "{} 1:3\n"}[kind]
    rows = stream(write("".join(map(row.format, labels.split()))), format=kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ((_, y),) = rows
    assert y.tolist() == expected
    assert np.issubdtype(y.dtype, dtype)
    assert rows.classes.tolist() == sorted({*expected})


def test_given_classes_say_whether_labels_are_numbers(write: Write) -> None:
    path = write("3,0.0e+00\n4,01\n5,1\n")
    ((_, y),) = stream(path, classes=[0, 1])
    assert y.tolist() == [0, 1, 1]
    rejected(
        lambda: list(stream(path, classes=["0", "1"])), "line 1: the label '0.0e+00' is not one of the classes 0, 1"
    )
    for classes in ([2**53 + 1.0, 2**54], [-1, 2**63], [0, 0.0], ["1", "1.0"]):
        rejected(lambda classes=classes: stream(path, classes=classes), "classes: expected labels without duplicates")


@pytest.mark.parametrize("positive", ["1", "1e0", 1, 1.0, "+1"])
def test_positive_is_an_exact_label_or_an_equal_number(write: Write, positive: Any) -> None:
    arrays = read([write("3,1.00e+00\n4,2\n")], Reading(format="csv", positive=positive))
    assert arrays.classes == ("2", "1.00e+00")
    exact = read([write("3,01\n4,1\n")], Reading(format="csv", positive="1"))
    assert exact.classes == ("01", "1")
    rejected(lambda: read([write("3,01\n4,1\n")], Reading(format="csv", positive="1.0")), "2 labels equal '1.0' (data")


@pytest.mark.parametrize(
    "same", [("Ja", "ja"), ("a b", "a  b"), ("ﬁ", "fi"), ("é", "e\u0301"), ("x\u200b", "x"), ("01", "1"), ("1e0", "1")]
)
def test_labels_that_look_alike_are_named(
    same: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert look(same[0]) == look(same[1])
    content = "x,y\n" + "".join(f"{i / 7},{[*same, 'other'][i % 3]}\n" for i in range(60))
    Path("train.csv").write_text(content)
    assert main(["fit", "data.path=train.csv", "output=m.skops", "algorithm=nc"]) == 0
    expected = (
        f"warning: labels that look alike are different classes: {' and '.join(map(repr, same))}; correct them if"
    )
    assert printable(expected) in capsys.readouterr().err
    arrays = read([Path("train.csv")], Reading(table=1, multiclass=True))
    assert arrays.said[-1].startswith(expected)
    with pytest.warns(UserWarning, match="labels that look alike are different classes"):
        list(stream("train.csv"))
    assert Labels(["ja", "nein", "1", "2"]).lookalikes() == []


@pytest.mark.parametrize("missing", ["NA", "nan", "?", "NULL", "<NA>", "N/A"])
@pytest.mark.parametrize("labels", ["1 2", "ham spam"])
def test_rows_without_a_label_are_no_class_in_any_format(missing: str, labels: str, write: Write) -> None:
    rows = [(i / 7, [*labels.split(), missing][i % 3]) for i in range(60)]
    read_table = [
        read([write("".join(row), name)] * 2, Reading(table=1, multiclass=True))
        for name, row in (
            ("t.csv", ["x,y\n", *(f"{x},{y}\n" for x, y in rows)]),
            ("t.svm", [f"{y} 1:{x}\n" for x, y in rows]),
        )
    ]
    for arrays in read_table:
        np.testing.assert_array_equal(arrays.X, read_table[0].X)
        np.testing.assert_array_equal(arrays.y, [-1, 1] * 40)
        assert (arrays.n_train_official, arrays.said[-1]) == (40, f"left out: 40 rows without a label ({missing!r})")
    path = write("".join(f"{missing} 1:{x}\n" for x, _ in rows), "t.svm")
    rejected(lambda: read([path], Reading(table=1)), "no row has a label")


def test_a_label_that_counts_as_missing_is_named(write: Write) -> None:
    path = write("x,y\n" + "".join(f"{i},{['NA', 'EU', ''][i % 3]}\n" for i in range(60)))
    expected = (
        "got 1 class. Left out: 40 rows without a label ('NA', empty), which counts as missing; rename it if it is"
    )
    rejected(lambda: read([path], Reading(table=1, multiclass=True)), expected)
    with pytest.raises(KlrBenchError, match=re.escape(expected)):
        take_labels(read_frame(path)[0], "y")
