"""Readers of svmlight and delimited text: accepted input, rejected input, and messages."""

import bz2
import csv
import gzip
import io
import lzma
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from klr_bench import stream
from klr_bench.datasets.layout import WIDE, layout_of
from klr_bench.datasets.readers import Arrays, Reading, read
from klr_bench.datasets.readers.recognize import detect_format
from klr_bench.errors import KlrBenchError
from tests.attack.promise import rejected
from tests.datasets.conftest import Write
from tests.datasets.samples import rows_of


def svmlight(*paths: Path, **spec: Any) -> Arrays:
    return read(paths, Reading(**{"format": "svmlight"} | spec))


def delimited(*paths: Path, **spec: Any) -> Arrays:
    return read(paths, Reading(**{"format": "csv"} | spec))


READ = {"svmlight": svmlight, "csv": delimited}
KINDS = pytest.mark.parametrize("kind", READ)
ROW = {"svmlight": "{} 1:3\n", "csv": "3,{}\n"}
GOOD = {"svmlight": "+1 1:0.5 3:2\n-1 2:1\n", "csv": "0.5,0,2,1\n0,1,0,-1\n"}
GOOD_X = [[0.5, 0, 2], [0, 1, 0]]

ACCEPTED = [
    *(GOOD["svmlight"], GOOD["svmlight"].rstrip("\n"), "\ufeff" + GOOD["svmlight"]),
    "+1 1:0.5 3:2\r\n-1 2:1\r\n",
    "# a comment\n\n1.0 1:0.5\t3:2   # another\n \t\n-1e0 2:1#and one\n\n",
    "+1 qid:3 1:5e-1 3:2.000\n-1.00 qid:4 2:10E-1\n",
    "  1 1:.5 2:0 3:2\n-1 1:0 2:1. 3:-0\n",
    "+1 0:0.5 2:2\n-1 1:1\n",
    "+1\t1:0.5\t3:2\n-1 \t 2:1\n",
    "1 01:0.50 3:2.00000000000000000000000000000\n-1 2:0.99999999999999999999999999999999999\n",
    *(GOOD["csv"], GOOD["csv"].rstrip("\n")),
    *("0.5,0,2,1\r\n0,1,0,-1\r\n", "0.5,0,2,1\r0,1,0,-1\r", "0.5,0,2,1\r\n0,1,0,-1\r", "0.5,0,2,1\r0,1,0,-1\r\n"),
    "\ufeffa,b,c,label\n0.5,0,2,1\n0,1,0,-1\n",
    "\n\na,b,c,label\n\n0.5,0,2,1\n\n0,1,0,-1\n\n",
    '"a","b, c",c,"the label"\n"0.5",0,2,"1"\n0,1,"0",-1\n',
    '"a\nb",b,c,"the label\n"\n\n"0.5",0,2,"1\n"\n0,1,"0","-1"\n',
    " 0.5 ; 0 ;\t2; 1 \n0;1;-0 ;-1.0\n",
    "  .5  0 2   1  \n0  1 0 -1e0\n",
    "0.5\t0\t2\t+1\n0\t1\t0\t-1\n",
]


@pytest.mark.parametrize("content", ACCEPTED)
def test_unusual_but_valid_text(write: Write, block: None, content: str) -> None:
    path = write(content)
    arrays = read([path], Reading())
    np.testing.assert_array_equal(arrays.X, GOOD_X)
    assert (arrays.X.dtype, arrays.y.dtype) == (np.float32, np.int8)
    assert arrays.X.flags.c_contiguous
    assert arrays.y.tolist() == [1, -1]
    assert arrays.n_train_official is None
    chunks = list(stream(path))
    X, y = rows_of(chunks)
    assert all(X.nnz == np.count_nonzero(X.toarray()) for X, _ in chunks if sp.issparse(X)), "stored zeros"
    np.testing.assert_array_equal(X, GOOD_X)
    assert y.tolist() == [1, -1]


NUMBERS = """
0 -0.0 +1 1. .5 -.5e-3 1e19 -1E+19 1e-400 0e999 1e-45 7.1e-46 1.4e-45 0.1 123456789012345678 123456789012345678.90
1.00000005960464477539 1.000000059604644775390625 1.0000000596046447753906250000000001 8.692932128906250000e-01 16777217
33554434.9999999999 4.9e-324 0.000000000000000000000000000000000000000001 00000000000000000000000000001.5 1e00000001
"""


def near_a_tie(value: float, more: str) -> str:
    """Return the exact midpoint of a float32 and the next one, optionally followed by more digits."""
    single = np.float32(value)
    return f"{Decimal(float(single)) / 2 + Decimal(float(np.nextafter(single, np.float32(np.inf)))) / 2:f}" + more


FLOATS = st.one_of(
    st.floats(-1e17, 1e17).map(repr),
    st.floats(-(2.0**56), 2.0**56, width=32).map(repr),
    st.from_regex(r"[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,2})?", fullmatch=True),
    st.builds(near_a_tie, st.floats(2.0**-10, 2.0**20, width=32), st.sampled_from(["", "1", "00000000000000000001"])),
    st.sampled_from(NUMBERS.split()),
)


@KINDS
@settings(max_examples=300, deadline=None)
@given(texts=st.lists(FLOATS.filter(lambda text: abs(float(text)) < 9e18), min_size=1, max_size=20))
@example(texts=NUMBERS.split())
def test_numbers_are_rounded_to_float32_as_in_python(
    tmp_path_factory: pytest.TempPathFactory, kind: str, texts: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / f"numbers.{kind}"
    before = {"svmlight": "1 1:", "csv": "1,"}[kind]
    path.write_text("".join(f"{before}{text}\n" for text in texts))
    label = 1 if kind == "csv" else None
    X, _ = rows_of(stream(path, format=kind, n_features=1, classes=[1], label_column=label))
    np.testing.assert_array_equal(X[:, 0].astype(np.float32), np.array([float(text) for text in texts], np.float32))


COMPRESS: list[Callable[[bytes], bytes]] = [lzma.compress, gzip.compress, bz2.compress]


@KINDS
@pytest.mark.parametrize("compress", COMPRESS)
def test_compression_is_detected_from_the_content(write: Write, kind: str, compress: Callable[[bytes], bytes]) -> None:
    np.testing.assert_array_equal(READ[kind](write(compress(GOOD[kind].encode()), "train.csv")).X, GOOD_X)
    text = "".join(f"{i % 2} 1:{i * 0.37}\n" if kind == "svmlight" else f"{i * 0.37},{i % 2}\n" for i in range(9999))
    packed = compress(text.encode())
    path = write(packed[:-30])
    rejected(lambda: READ[kind](path), f"{path}: truncated or corrupted")
    middle = len(packed) // 2
    write(packed[:middle] + bytes(64) + packed[middle + 64 :])
    rejected(lambda: READ[kind](path), str(path))


SVMLIGHT = [
    *(GOOD["svmlight"], "\ufeff" + GOOD["svmlight"], "# 1 2 3\n" + GOOD["svmlight"], "1\n-1\n1 3:2\n"),
    *("1 1:1 2:1\n1 1:1\n-1 oops\n", "spam 0:1\nham 1:2\n", "1 qid:7 1:2\n"),
]
CSV = [
    *("1,2,a\n", "1 2 3\n", "x1 x2 y\n1 2 3\n", "2024-01-01 12:30:00,1,2\n", "1\n2\n"),
    *(
        "a,2024-01-01 12:30\n",
        "y;t\na;3.4.2024 12:30\nb;3.4.2024 12:31\n",
        "y\tratio\nwin\t3:1\nloss\t0:2\n",
        'a|"2024-01-01 12:30"\n',
    ),
]


def test_the_format_is_detected(write: Write) -> None:
    for content in SVMLIGHT + CSV:
        assert detect_format(write(content)) == ("svmlight" if content in SVMLIGHT else "csv"), content


RANGE = "is not a number between -1e+19 and 1e+19"
REFUSED_SVMLIGHT = {
    "'3' is not index:value": ["3", "1:1 3"],
    "is not index:value": ["1:1 \0", "1:1\r-1 1:2\r", "w" * 100_000],
    "is not an index (an integer >= 0)": ["a:1", "-1:1", "1.0:1", "1:1 qi:1", "\u0661:1"],
    f"in '1:{{}}' {RANGE}": [
        *(f"1:{text}" for text in ("x", "", "1e", "1_0", "1.2.3", "-", "0x1", "0,5", "1:2", "nan", "inf", "1e39"))
    ],
    "follows index 2; indices must be strictly increasing": ["2:1 1:1", "2:1 2:1"],
    "is not between ": ["200000000:1", "2147483648:1", "9223372036854775808:1", "9" * 5000 + ":1"],
}
REFUSED_CSV = {
    "expected 3 columns as in the first line, got ": ["1,a", "1,2,3,a", "1,2,a,", "1,2\r3,a"],
    f"column 1 ('x1'): '{{}}' {RANGE}": ["one,2,a", ",1,a", "#1,2,a", "inf,1,a"],
    f"column 2 ('x2'): '{{}}' {RANGE}": [
        f"1,{text},a" for text in ("", "NA", "?", "1_0", "2 3", "0x1f", "\u0661", "nan", "1e39", "2e19", "1e400")
    ],
    f"'\\x1b[31m' {RANGE}": ["1,\x1b[31m,a"],
    "is not a valid label (column 3 ('class')); correct the line, or set ": [
        *(f"1,2,{text}" for text in ("", "nan", "inf", "NA", "?", "b" * 2000)),
        '1,2,""',
    ],
}
LINES = [
    *(("svmlight", f"1 {row}", reason) for reason, rows in REFUSED_SVMLIGHT.items() for row in rows),
    *(("svmlight", f"{row} 1:1", "is not a valid label; correct the line.") for row in ("nan", "inf", "w" * 100_000)),
    ("svmlight", "1:0.5 2:1", "the line begins with '1:0.5'; the label is missing."),
    ("svmlight", "1,2 2:1", "the line begins with '1,2'; expected one label"),
    *(("csv", row, reason) for reason, rows in REFUSED_CSV.items() for row in rows),
]


@pytest.mark.parametrize(("kind", "line", "reason"), LINES, ids=lambda value: value[:30])
def test_errors_name_the_line(write: Write, block: None, kind: str, line: str, reason: str) -> None:
    """The line is after the first 4 kB, in which a NUL byte indicates a binary file."""
    start, row = ("# comment\n\n1 1:1\n", "-1 1:{}\n") if kind == "svmlight" else ("x1,x2,class\n1,2,a\n\n", "{},4,b\n")
    row = row.format(f"2.{'0' * 100}")
    path = write(f"{start}{row * 50}{line}\n{row}")
    field = line.partition(":")[2] if kind == "svmlight" else line.split(",")["x2" in reason]
    for call in (lambda: READ[kind](path), lambda: list(stream(path, format=kind))):
        message = rejected(call, reason.replace("{}", field))
        assert message.startswith(f"{path}, line 54")


def test_indices_beyond_the_declared_features(write: Write) -> None:
    path = write("1 1:1\n\n-1 2:1 4:1\n")
    reasons = f"{path}, line 3: the index 4 is not between 0 and 3", "data.n_features="
    rejected(lambda: svmlight(path, n_features=3), *reasons)
    rejected(lambda: svmlight(write("1 0:1\n-1 2:1 3:1\n"), n_features=3), "the index 3 is not between 0 and 2")
    X = svmlight(write("1 100000000:1\n-1 1:1\n")).X
    assert (X.shape, X.nnz) == ((2, 100_000_000), 2)


REFUSED_FILES: list[tuple[str, bytes | str, str]] = [
    *(("svmlight", text, "no rows") for text in ("", "\n\n", "\ufeff", "# comment\n")),
    *(
        ("csv", text, "no rows")
        for text in ("", "\n\n \n", "\ufeff", "only,a,long,header\n", gzip.compress(b"", mtime=0))
    ),
    ("svmlight", "1\n-1\n", "no row has a feature; expected lines such as '+1 3:0.5 7:1'."),
    ("csv", "a\nb\n", "tabs or spaces, got one column, 'a'."),
    ("csv", "1,a\n", "expected 2 to 100 classes in the training file, got 1 class."),
    ("csv", "one,2,a\n1,2,b\n", ", line 1, column 1: 'one' is not a number"),
    ("csv", ",x,class\n0,1,a\n1,2,b\n", "the first column has no name and probably contains the row numbers"),
    ("csv", '"x,class\n1,a\n2,b\n', "not delimited text (the quote opened on"),
    ("csv", 'x,class\n1,a\n"2,b\n' + "3,a\n" * 100, "not delimited text (the quote opened on line 3"),
    ("csv", "x,c\n1,a\n" + "1" * 140_000 + ",b\n", "line 3: a field has more than 131,072"),
    ("csv", "".join(f"{i},L{str(i) * 900}\n" for i in range(1, 9)), "expected two classes, got 8"),
    ("csv", "".join(f"1,{i}\n" for i in range(6_000)), "got 6000 (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...)."),
    *((kind, GOOD["csv"].encode("utf-16"), "it is UTF-16 text; set data.encoding=utf-16 (enc") for kind in READ),
    ("csv", "1,à\n2,ö\n".encode("cp1252"), "line 1: byte 3 of the line, 0xe0, is not UTF-8 text. Set data.encoding="),
    ("svmlight", "à 1:1\nö 1:2\n".encode("cp1252"), "line 1: byte 1 of the line, 0xe0, is not UTF-8 text. Set data"),
    *((kind, b"x,class\n1,a\n\0\0,b\n", "it is not UTF-8 text") for kind in READ),
    ("csv", gzip.compress(bz2.compress(b"1,a\n2,b\n"), mtime=0), "compressed twice"),
    ("csv", gzip.compress(b"1,a\n2,b\n", mtime=0) + b"rubbish", "truncated or corrupted"),
    ("csv", "1,a\n" + "1,\n" * 400_000, "line 2: '' is not a valid label"),  # less than two bytes for each field
    ("csv", 'x,c\n1,a\n2,b\n"' + '\n","' * 1_100_000, "not delimited text (the quote opened on line 4"),
]


@pytest.mark.parametrize(("kind", "content", "reason"), REFUSED_FILES, ids=lambda value: repr(value)[:25])
def test_invalid_files_are_rejected(write: Write, kind: str, content: bytes | str, reason: str) -> None:
    path, good = write(content), write(GOOD[kind], "good")
    assert rejected(lambda: READ[kind](path), reason).startswith(str(path))
    if "no rows" in reason:
        is_row = "header" in str(content)  # of a file without header, as the training file
        rejected(lambda: READ[kind](good, path), "'only' is not a number" if is_row else f"{path}: no rows")
    with suppress(KlrBenchError):  # a test file may have one row or one class
        READ[kind](good, path)


@pytest.mark.parametrize(
    "content", ["+1 3:1 9000:0 9001:2\n-1 1:1\n", f"{'0,' * 9000}2,1\n1,{'0,' * 8999}1,-1\n"], ids=READ
)
def test_many_features_stay_sparse(write: Write, content: str) -> None:
    X = read([write(content)], Reading()).X
    assert sp.issparse(X)
    assert (X.dtype, X.shape, X.has_sorted_indices) == (np.float32, (2, 9001), True)
    assert (X.nnz, X[0, 9000]) == (3, 2), "without the explicit zero"


@KINDS
@pytest.mark.parametrize("labels", ["0 1", "2 4", "-1 +1", "9 10", "ham spam", "1 no", "straße weg"])
def test_labels_of_any_kind(write: Write, kind: str, labels: str) -> None:
    first, second = labels.split()
    path = write(ROW[kind].format(second) + ROW[kind].format(first))
    arrays, turned = READ[kind](path), READ[kind](path, positive=first)
    assert (arrays.classes, arrays.y.tolist()) == ((first, second), [1, -1])
    assert (turned.classes, turned.y.tolist()) == ((second, first), [-1, 1])


@pytest.mark.parametrize("positive", ["1", 1, "+1", 1.0, "1e0", "true", True])
def test_positive_is_compared_by_value(write: Write, positive: Any) -> None:
    label = "true" if str(positive).lower() == "true" else "1.0"  # true: as YAML reads the word
    assert svmlight(write(f"{label} 1:1\n2 1:1\n"), positive=positive).y.tolist() == [1, -1]
    content = "1,9007199254740992\n2,9007199254740993\n3,9007199254740993.0\n4,+9007199254740993\n"
    arrays = delimited(write(content), positive=2**53 + 1)
    assert arrays.y.tolist() == [-1, 1, 1, 1], "whole numbers beyond 2^53 are distinguished"


@KINDS
def test_three_classes(write: Write, kind: str) -> None:
    path = write("".join(ROW[kind].format(label) for label in ["10", "9", "8", "9"]))
    rejected(lambda: READ[kind](path), "train: expected two classes, got 3 (8, 9, 10). To separate one class")
    arrays = READ[kind](path, multiclass=True)
    assert (arrays.classes, arrays.y.dtype, arrays.y.tolist()) == (("8", "9", "10"), np.int8, [2, 1, 0, 1])
    alone = READ[kind](path, positive="8", only=["8", "10"], multiclass=True)
    assert (alone.classes, alone.y.tolist()) == (("10", "8"), [-1, 1])
    rejected(lambda: READ[kind](path, positive="88"), "no row has the label '88' (data.positive). Did you mean '8'?")


TRAIN = {"svmlight": GOOD["svmlight"], "csv": "x1,x2,class\n1,2,1\n3,4,0\n"}


@pytest.mark.parametrize(
    ("train", "test", "X", "y"),
    [
        (TRAIN["svmlight"], "-1 1:7\n", [*GOOD_X, [7, 0, 0]], [1, -1, -1]),
        ("1 2:1\n2\n", "1 3:7\n1\n", [[0, 1, 0], [0, 0, 0], [0, 0, 7], [0, 0, 0]], [1, -1, 1, 1]),
        ("1 0:3 1:4\n2 1:5\n", "1 1:6\n2 2:7\n", [[3, 4, 0], [0, 5, 0], [0, 6, 0], [0, 0, 7]], [1, -1, 1, -1]),
        ("1 1:6\n2 2:7\n", "1 0:3 1:4\n1\n", [[0, 6, 0], [0, 0, 7], [3, 4, 0], [0, 0, 0]], [1, -1, 1, 1]),
        (TRAIN["csv"], "1,2,1\n", [[1, 2], [3, 4], [1, 2]], [1, -1, 1]),
    ],
)
def test_a_test_file_has_the_columns_for_training(write: Write, train: str, test: str, X: Any, y: Any) -> None:
    arrays = read([write(train), write(test, "test")], Reading(positive=1))
    np.testing.assert_array_equal(arrays.X, X)
    assert (arrays.n_train_official, arrays.y.tolist()) == (2, y)


def test_index_0_in_only_one_file_is_a_note(write: Write) -> None:
    train, test = write("1 1:6\n2 2:7\n"), write("1 0:3 1:4\n2\n", "test")
    (note,) = svmlight(train, test).said
    assert note.startswith(
        f"warning: the feature index 0 occurs in {test} (indices 0 to 1), but not in {train} (indices 1 to 2). Ind"
    )
    assert svmlight(train, train).said == svmlight(test, test).said == svmlight(test, write("1\n", "none")).said == ()


@pytest.mark.parametrize(
    ("kind", "test", "reason"),
    [
        ("svmlight", "-1 1:7\n-1 x\n", "test, line 2: 'x' is not index:value"),
        ("csv", "1,2,1\n1,x,1\n", "test, line 2, column 2: 'x' is not a number"),
        ("csv", "1,a\n2,b\n", "as in the training file, got 2 columns with label column 2."),
        ("csv", "x2,x1,class\n1,2,a\n", "test: expected the header of the training file, ['x1', 'x2', 'class'], got ["),
    ],
)
def test_invalid_test_files_are_rejected(write: Write, kind: str, test: str, reason: str) -> None:
    rejected(lambda: READ[kind](write(TRAIN[kind]), write(test, "test")), reason)


@KINDS
def test_one_class_is_rejected_only_for_training(write: Write, kind: str) -> None:
    single, both = write(ROW[kind].format("1") * 2), write(ROW[kind].format("1") + ROW[kind].format("-1"), "two")
    rejected(lambda: READ[kind](single, both), "in the training file, got 2 classes, with no training rows for -1.")
    assert READ[kind](both, single).y.tolist() == [1, -1, 1, 1]


ROWS = [["1", "2.5", "a"], ["-3", "4e2", "b"], ["0", "0", "a"]]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " ", ", ", "   "])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_delimiter_header_and_line_ends_are_detected(write: Write, delimiter: str, newline: str) -> None:
    for rows in (ROWS, [["x1", "x2", "class"], *ROWS]):
        arrays = delimited(write("".join(delimiter.join(row) + newline for row in rows)))
        np.testing.assert_array_equal(arrays.X, [[1, 2.5], [-3, 400], [0, 0]])
        assert (arrays.y.tolist(), arrays.classes) == ([-1, 1, -1], ("a", "b"))


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
@pytest.mark.parametrize(
    ("header", "rows"),
    [
        (None, [["1,5", "2,25", "a"], ["-3,0", "4,5", "b"], ["0,5", "0,1", "a"]]),
        (None, [["1,5 %", "3"], ["25,0 %", "4"], ["0,5 %", "4"]]),
        (None, [["1.234,5", "a"]]),
        (["c,d", "y"], [["1,5", "a"], ["2,5", "b"]]),
    ],
)
def test_a_decimal_comma_is_no_delimiter(
    write: Write, delimiter: str, header: list[str] | None, rows: list[list[str]]
) -> None:
    lines = [*([header] if header else []), *rows]
    found = layout_of(write("".join(delimiter.join(row) + "\n" for row in lines)), None)
    assert (found.delimiter, found.header) == (delimiter, header and tuple(header))


@pytest.mark.parametrize("content", ["a;b,1\nc;d,2\n", "1,5;x,a\n2,6;y,b\n", "x;1,y\n2;3,a\n4;5,b\n"])
def test_a_comma_between_texts_is_a_delimiter(write: Write, content: str) -> None:
    assert layout_of(write(content), None).delimiter == ","


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_quoted_fields_hold_delimiters_and_line_ends(write: Write, block: None, delimiter: str, newline: str) -> None:
    content = f'"a{newline}1"{delimiter}class{newline}' + "".join(
        f'{i}{delimiter}"yes,{newline}{newline}""sure"""{newline}{i}{delimiter}no{newline}' for i in range(30)
    )
    path = write(content)
    arrays = delimited(path)
    assert arrays.classes == ("no", f'yes,{newline}{newline}"sure"')
    np.testing.assert_array_equal(arrays.X[:, 0], np.repeat(np.arange(30), 2))
    np.testing.assert_array_equal(rows_of(stream(path))[0], arrays.X)
    write(content + f"{newline}x{delimiter}no{newline}")
    rejected(lambda: delimited(path), "line 124, column 1")
    write(content + f'1{delimiter}"no\n1,no')
    rejected(lambda: delimited(path), "the quote opened on line 123 is never closed")


HEADERS = [
    ("country,2019,2020,y", "FR,{i}.5,1{i},{label}", None),
    ("2018,2019,2020,2021", "{i}.5,1{i},2,{label}", None),
    ("age,5,y", "{i},{i},{label}", None),
    ("a,b,y", "{i},n,y", None),
    ("shop,1,2,3,4,y", "s{i},{i},3,2,1,{label}", None),
    ("y,2019,2020", "{label},{i}.5,1{i}", 1),
    ("12 months,5 %,y", "{i},{i}.5,{label}", None),
    ("2021-01-01,2021-02-01,y", "{i},{i}.5,{label}", None),
    ("0,1,y", "{i}.5,1{i},{label}", None),
    ("0,1,2,y", "{i}.5,1{i},0,{label}", None),
]


@pytest.mark.parametrize(("header", "row", "label"), HEADERS)
def test_a_header_may_have_numbers(write: Write, header: str, row: str, label: int | None) -> None:
    rows = [row.format(i=i, label=i % 2) for i in range(8)]
    layout = layout_of(write("\n".join([header, *rows])), label)
    assert layout.header == tuple(header.split(","))
    test = write("\n".join([header, rows[0]]), "test")
    assert layout_of(test, label, layout).header == layout.header
    assert layout_of(write("\n".join(rows)), label).header is None


@pytest.mark.parametrize(
    "rows",
    [
        *("5.1,3.5,setosa 4.9,3.0,other 5.0,3.1,other", "2001,2002,c 1999,1998,a 2000,1990,a", "7,8,c 5,6,a 6,5,a"),
        *("?,8,c 5,6,a 6,5,a", "one,8,a 5,6,b 6,5,a", "0.5,1.5,1x 0.4,1.2,1 0.1,1.1,1", "2019,2020,a 1,2,b 3,4,a"),
        *("red,big,a blue,big,b red,small,a", "p,x,s p,x,t e,y,s"),
        *("1,5;2,5;a 3,5;4,5;b", "1.234,5;a", "5%,p,s 6%,q,t", "2021-04-30,p,s 2021-05-01,q,t ,r,u", "$1,p,s $2,q,t"),
    ],
)
def test_a_row_is_not_a_header(write: Write, rows: str) -> None:
    assert layout_of(write(rows.replace(" ", "\n")), None).header is None


@pytest.mark.parametrize(
    ("content", "column", "classes", "X"),
    [
        ("1,a b c d\n2,a b c e\n", None, ("a b c d", "a b c e"), [[1], [2]]),
        ("0,1,2,3,class\n5,6,7,8,a\n6,7,8,9,b\n", None, ("a", "b"), [[5, 6, 7, 8], [6, 7, 8, 9]]),
        ("x,x,c\n1,2,a\n3,4,b\n", None, ("a", "b"), [[1, 2], [3, 4]]),
        ("1,ä\n2,ö\n", None, ("ä", "ö"), [[1], [2]]),
        (gzip.compress(b"x,c\n1,a\n", mtime=0) + gzip.compress(b"2,b\n", mtime=0), None, ("a", "b"), [[1], [2]]),
        *(("class,x1,x2\na,1,2\nb,3,4\n", c, ("a", "b"), [[1, 2], [3, 4]]) for c in ("class", 1, "1", -3, "-3")),
    ],
)
def test_unusual_but_valid_delimited_text(
    write: Write, content: str | bytes, column: Any, classes: tuple[str, str], X: list[list[float]]
) -> None:
    arrays = delimited(write(content), label_column=column)
    assert arrays.classes == classes
    np.testing.assert_array_equal(arrays.X, X)


@pytest.mark.parametrize(
    ("content", "spec", "reason"),
    [
        ("x,class\n1,a\n", {"label_column": "clas"}, "there is no label column 'clas' (data.label); expected the name"),
        ("x,class\n1,a\n", {"label_column": 3}, "no label column 3 (data.label); expected a position from 1 to 2 or f"),
        ("x,class\n1,a\n", {"label_column": 0}, "no label column 0 (data.label); expected a position from 1 to 2 or f"),
        ("x,x,y\n1,2,a\n", {"label_column": "x"}, "several columns have this name, so a position is needed."),
        ("1,a\n2,b\n", {"label_column": "class"}, "the file has no header, so a position is needed."),
        ("1,2,a\n", {"n_features": 5}, "expected n_features=5 feature columns, got 2; omit data.n_features="),
        ("1,2,a\n", {"format": "arff"}, "Unknown file format 'arff'; expected one of csv, svmlight, idx (data.f"),
    ],
)
def test_inconsistent_settings_are_rejected(write: Write, content: str, spec: dict[str, Any], reason: str) -> None:
    rejected(lambda: delimited(write(content), **spec), reason)


def test_numbers_of_a_wide_table_far_from_0_keep_their_digits(write: Write) -> None:
    """The first block of lines does not tell that float32 has too few digits."""
    zeros, times = ",0" * (WIDE + 50), [0 if i < 700 else 1_700_000_000 + i for i in range(1800)]
    path = write("".join(f"{time}{zeros},{i % 2}\n" for i, time in enumerate(times)))
    X = READ["csv"](path, table=1).X
    assert X.dtype == np.float64
    assert X[:, [0]].toarray()[:, 0].tolist() == times


@KINDS
@pytest.mark.parametrize("table", [0, 1])
def test_numbers_far_from_0_keep_their_digits(write: Write, kind: str, table: int) -> None:
    seconds = 1.7e9 + np.random.default_rng(0).permutation(400) * 0.15
    row = {"svmlight": "{1} 1:{0:.2f} 2:0.5\n", "csv": "{0:.2f},0.5,{1}\n"}[kind]
    path = write("".join(row.format(t, i % 2) for i, t in enumerate(seconds)))
    X = READ[kind](path, path, table=table).X
    assert X.dtype == np.float64
    np.testing.assert_allclose(X[:400, 0], seconds, rtol=1e-15)
    assert READ[kind](write(GOOD[kind]), table=table).X.dtype == np.float32


@KINDS
@pytest.mark.parametrize("unit", [1e-320, 1e-300, 1e-46])
def test_numbers_that_are_0_in_float32_are_kept(write: Write, kind: str, unit: float) -> None:
    x = np.arange(1, 61) * unit
    row = {"svmlight": "{1} 1:{0!r} 2:0.5\n", "csv": "{0!r},0.5,{1}\n"}[kind]
    path = write("".join(row.format(float(value), i % 2) for i, value in enumerate(x)))
    for X in (READ[kind](path, path, table=1).X[:60], rows_of(stream(path))[0]):
        np.testing.assert_allclose(X[:, 0], x, rtol=1e-15)


@pytest.mark.parametrize("width", [3, 1999, 2500])
@pytest.mark.parametrize(
    ("option", "name"),
    [
        ({"columns": {"x1": "leave_out"}}, "columns"),
        ({"label_column": "x1"}, "label"),
        ({"group": "x1"}, "group"),
        ({"coerce": True}, "coerce"),
    ],
)
def test_no_option_is_ignored(write: Write, width: int, option: dict[str, Any], name: str) -> None:
    for table in (0, 1):
        path = write(f"+1 1:0.5 {width}:2\n-1 2:1\n")
        with pytest.raises(KlrBenchError, match=rf"data\.{name}\S* (\(.*\) )?has no effect in a LIBSVM file"):
            read([path], Reading(table=table, **option))
    header = [f"x{place}" for place in range(width)]
    rows = [[str((7 * place + i) % 13 % 4) for place in range(width)] + [str(i % 2)] for i in range(30)]
    path = write("\n".join(map(",".join, [[*header, "y"], *rows])))
    reading = Reading(table=1, multiclass=True, **option)
    if width < 2000 or name == "label":
        arrays = read([path], reading)
        assert arrays.X.shape[1] == width - (name in {"columns", "group"})
        labels = [(7 + i) % 13 % 4 if name == "label" else i % 2 for i in range(30)]
        codes = arrays.y if len(arrays.classes) > 2 else arrays.y > 0
        assert [float(arrays.classes[int(code)]) for code in codes] == labels
    else:
        with pytest.raises(KlrBenchError, match=rf"data\.{name} has no effect with more than 2,000 columns"):
            read([path], reading)


def test_the_label_column_of_a_stream_of_libsvm_text_is_refused(write: Write) -> None:
    for column in (1, -1, "y"):
        with pytest.raises(KlrBenchError, match=r"label_column= of stream.* has no effect in a LIBSVM file"):
            stream(write(GOOD["svmlight"]), label_column=column)


@pytest.mark.parametrize("width", [3, 2500])
@pytest.mark.parametrize("label", [None, "y", "x0"])
def test_the_row_numbers_of_pandas_are_no_feature(write: Write, width: int, label: str | None) -> None:
    X = np.random.RandomState(0).rand(30, width).round(3)
    frame = pd.DataFrame(X, columns=[f"x{place}" for place in range(width)])
    frame["x0"] = np.arange(30) % 2
    frame["y"] = np.arange(30) // 15
    path = write(frame.to_csv())
    reading = Reading(table=1, label_column=label)
    if width > 2000:
        with pytest.raises(KlrBenchError, match="the first column has no name and probably contains the row numbers"):
            read([path], reading)
    else:
        assert "row numbers" in "".join(read([path], reading).said)


@pytest.mark.parametrize(
    "titles",
    [[], ["Customers of 2021"], ["Customers of 2021,,"], ["Customers of 2021", "", "a note"], ['"Customers\nof 2021"']],
)
@pytest.mark.parametrize("header", ['a,"long\nname",y', '"long\nname",a,y', 'a,b,"long\nlabel, or y"', "a,b,y"])
@pytest.mark.parametrize("blank", ["", "\n"])
def test_titles_stand_above_a_header_with_line_breaks(write: Write, titles: list[str], header: str, blank: str) -> None:
    rows = "".join(f"{i}.5,{i % 7},{'ab'[i % 2]}\n" for i in range(40))
    content = "".join(f"{title}\n" for title in titles) + (blank if titles else "") + f"{header}\n{rows}"
    layout = layout_of(write(content), None)
    assert layout.header == tuple(next(csv.reader(io.StringIO(header), skipinitialspace=True)))
    arrays = read([write(content)], Reading(table=1))
    assert arrays.X.shape == (40, 2)
    assert ("above the table" in "".join(arrays.said)) == bool(titles)


@pytest.mark.parametrize("blank", [",,\n", ",,\n,,\n", "\n,,\n"])
@pytest.mark.parametrize("value", ["1", "big"])
def test_a_row_of_blank_fields_above_the_header_is_none(write: Write, blank: str, value: str) -> None:
    layout = layout_of(write(f"{blank}colour,size,y\n" + f"red,{value},yes\nblue,{value},no\n" * 5), None)
    assert layout.header == ("colour", "size", "y")


def test_no_row_of_a_test_file_is_a_header_if_the_training_file_has_none(write: Write) -> None:
    train = write("p,x,s\ne,y,t\n" * 20)
    layout = layout_of(train, None)
    assert layout.header is None
    assert layout_of(write("q,z,r\ne,y,t\n"), None, layout).header is None
    assert layout_of(write("q,z,r\n"), None, layout).header is None
    assert layout_of(write(",,\ne,y,t\n"), None, layout).n_skipped == 0
    layout = layout_of(write("5.1,red,yes\n4.9,blue,no\n" * 20), None)
    with pytest.raises(KlrBenchError, match="the first line is a header, but the training file has none"):
        layout_of(write("size,colour,label\n4.9,red,no\n"), None, layout)


def test_row_names_of_r_are_named(write: Write) -> None:
    with pytest.raises(KlrBenchError, match="each row has one field more than the first line, as with the row names"):
        layout_of(write("a,b,y\n" + "".join(f"{i},0.{i},0.2,{'ab'[i % 2]}\n" for i in range(1, 9))), None)


def test_a_title_in_a_workbook_of_two_columns_is_no_header(write: Write) -> None:
    """Other programs write the empty cell beside it."""
    path = write("Survey of 2021,\nx,y\n" + "".join(f"{i}.5,{'ab'[i % 2]}\n" for i in range(9)))
    assert layout_of(path, None).header == ("x", "y")


@pytest.mark.parametrize("before", ["# a comment\n", "+1\n", "+1 # none\n", "\n", "#a,b\n"])
@pytest.mark.parametrize("n", [0, 1, 99, 100, 1000])
def test_libsvm_text_is_recognized_after_lines_without_features(write: Write, before: str, n: int) -> None:
    assert detect_format(write(before * n + GOOD["svmlight"])) == "svmlight"
    assert detect_format(write("#a,b,c\n" * n + "1,2,x\n3,4,y\n")) == "csv"


@pytest.mark.parametrize("indent", ["", " ", "\t"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_byte_order_mark_is_no_token(write: Write, indent: str, n: int) -> None:
    assert detect_format(write(("\ufeff" + indent + "+1 1:0.5\n" + "-1 1:2\n" * n).encode())) == "svmlight"


def test_a_qid_without_a_value_is_refused(write: Write) -> None:
    assert svmlight(write("+1 qid:3 1:0.5\n-1 qid:4 1:2\n")).X.shape == (2, 1)
    with pytest.raises(KlrBenchError, match="line 2: 'qid' is not index:value"):
        svmlight(write("+1 qid:3 1:0.5\n-1 qid 1:2\n"))
