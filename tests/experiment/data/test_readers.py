"""The readers of svmlight and delimited text: what they accept, what they refuse, and in which words."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.data import readers
from klr_bench.experiment.data.readers import Arrays, Reading, read, sniffed_format, stored
from klr_bench.experiment.data.readers.layout import layout_of

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: bytes | str, name: str = "train") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def svmlight(*paths: Path, **spec: Any) -> Arrays:
    return read(paths, Reading(**{"format": "svmlight"} | spec))


def delimited(*paths: Path, **spec: Any) -> Arrays:
    return read(paths, Reading(**{"format": "csv"} | spec))


def refusal(read: Callable[..., Arrays], *paths: Path, **spec: Any) -> str:
    with pytest.raises(KlrBenchError) as caught:
        read(*paths, **spec)
    return str(caught.value)


GOOD = "+1 1:0.5 3:2\n-1 2:1\n"
GOOD_X = [[0.5, 0, 2], [0, 1, 0]]

# -- svmlight: accepted ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        GOOD.rstrip("\n"),
        GOOD.replace("\n", "\r\n"),
        "\ufeff" + GOOD,
        "# a comment\n\n" + GOOD.replace("\n", "  # another\n") + "\n",
        "+1 1:0.5 2:0 3:2\n-1 1:0.0 2:1e0\n",
        "+1 0:0.5 2:2\n-1 1:1\n",
        "+1\t1:0.5\t3:2\n-1 \t 2:1\n",
        "+1 qid:1 1:0.5 3:2\n-1 qid:1 2:1\n",
    ],
    ids=["plain", "no last newline", "CRLF", "BOM", "comments", "zeros", "base 0", "tabs", "qid"],
)
def test_svmlight_accepts(write: Write, content: str) -> None:
    arrays = svmlight(write(content))
    np.testing.assert_array_equal(arrays.X, GOOD_X)
    assert arrays.X.dtype == np.float32
    assert arrays.X.flags.c_contiguous
    assert arrays.y.tolist() == [1, -1]
    assert arrays.y.dtype == np.int8
    assert arrays.n_train_official is None


def test_svmlight_accepts_rows_without_features(write: Write) -> None:
    arrays = svmlight(write("1\n-1 2:1\n1 # nothing\n"))
    np.testing.assert_array_equal(arrays.X, [[0, 0], [0, 1], [0, 0]])
    assert arrays.y.tolist() == [1, -1, 1]


@pytest.mark.parametrize(
    ("first", "second", "classes"),
    [
        ("1", "0", ("0", "1")),
        ("1", "2", ("1", "2")),
        ("4", "2", ("2", "4")),
        ("+1", "-1", ("-1", "+1")),
        ("10", "9", ("9", "10")),
        ("spam", "ham", ("ham", "spam")),
        ("1", "no", ("1", "no")),
        ("straße", "weg", ("straße", "weg")),
    ],
)
@pytest.mark.parametrize("kind", ["svmlight", "csv"])
def test_labels_of_any_kind(write: Write, kind: str, first: str, second: str, classes: tuple[str, str]) -> None:
    row = "{} 1:3\n" if kind == "svmlight" else "3,{}\n"
    path = write(row.format(first) + row.format(second))
    arrays = read([path], Reading(format=kind))
    assert arrays.classes == classes
    assert arrays.y.tolist() == [1 if label == classes[1] else -1 for label in (first, second)]
    turned = read([path], Reading(format=kind, positive=classes[0]))
    assert turned.classes == classes[::-1]
    assert turned.y.tolist() == [-label for label in arrays.y.tolist()]


def test_numbers_are_one_label_however_they_are_spelt(write: Write) -> None:
    arrays = svmlight(write("+1 1:1\n1 1:1\n1.0 1:1\n-1 1:1\n-1.0 1:1\n"))
    assert arrays.y.tolist() == [1, 1, 1, -1, -1]
    assert arrays.classes == ("-1", "+1")


@pytest.mark.parametrize("positive", ["1", 1, "+1", 1.0, "1e0"])
def test_positive_is_compared_by_value(write: Write, positive: Any) -> None:
    assert svmlight(write("1.0 1:1\n2 1:1\n"), positive=positive).y.tolist() == [1, -1]


@pytest.mark.parametrize("positive", ["true", "True", True])
def test_positive_may_be_what_yaml_takes_for_a_truth_value(write: Write, positive: Any) -> None:
    assert delimited(write("1,true\n2,false\n"), positive=positive).classes == ("false", "true")


def test_positive_makes_many_classes_one_against_the_rest(write: Write) -> None:
    arrays = svmlight(write("1 1:1\n2 1:1\n3 1:1\n2 1:2\n"), positive=2)
    assert arrays.y.tolist() == [-1, 1, -1, 1]
    assert arrays.classes == ("not 2", "2")


def test_a_test_file_with_fewer_features(write: Write) -> None:
    arrays = svmlight(write(GOOD), write("-1 1:7\n", "test"))
    np.testing.assert_array_equal(arrays.X, [*GOOD_X, [7, 0, 0]])
    assert arrays.n_train_official == 2
    assert arrays.y.tolist() == [1, -1, -1]


def test_a_test_file_with_more_features(write: Write) -> None:
    arrays = svmlight(write(GOOD), write("-1 4:7\n", "test"))
    np.testing.assert_array_equal(arrays.X, [[0.5, 0, 2, 0], [0, 1, 0, 0], [0, 0, 0, 7]])


@pytest.mark.parametrize("zero_in", ["train", "test"])
def test_train_and_test_count_from_one_base(write: Write, zero_in: str) -> None:
    with_zero, without = "+1 0:3 1:4\n-1 1:5\n", "+1 1:6\n-1 2:7\n"
    contents = (with_zero, without) if zero_in == "train" else (without, with_zero)
    X = svmlight(write(contents[0]), write(contents[1], "test")).X
    rows = [[3, 4, 0], [0, 5, 0]], [[0, 6, 0], [0, 0, 7]]
    np.testing.assert_array_equal(X, np.concatenate(rows if zero_in == "train" else rows[::-1]))


def test_declared_features_make_the_matrix_wider(write: Write) -> None:
    assert svmlight(write(GOOD), n_features=5).X.shape == (2, 5)


def test_many_features_stay_sparse(write: Write) -> None:
    X = svmlight(write("+1 3:1 9000:0 9001:2\n-1 1:1\n")).X
    assert sp.issparse(X)
    assert X.dtype == np.float32
    assert X.shape == (2, 9001)
    assert X.has_sorted_indices
    assert X.nnz == 3  # the explicit zero is gone
    assert X[0, 9000] == 2


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_a_large_matrix_is_kept_dense_where_that_is_no_larger(layout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "DENSE_BYTES", 1)
    X = np.arange(40.0).reshape(8, 5) * ([1, 1, 1, 0, 0] * np.ones((8, 1)))
    assert isinstance(stored(layout(X)), np.ndarray), "23 of 40 numbers"
    X[:, 2] = 0
    assert sp.issparse(stored(layout(X))), "15 of 40"


def test_sparse_matrices_are_stored_with_sorted_indices() -> None:
    unsorted = sp.csr_matrix((np.array([1.0, 2.0]), np.array([7, 3]), np.array([0, 2])), shape=(1, 3000))
    X = stored(unsorted)
    assert X.indices.tolist() == [3, 7]
    assert X.data.tolist() == [2.0, 1.0]


COMPRESS: list[Callable[[bytes], bytes]] = [lzma.compress, gzip.compress, bz2.compress]


@pytest.mark.parametrize("compress", COMPRESS)
@pytest.mark.parametrize("name", ["train.gz", "train.xz", "train.csv"])
def test_compressed_files_are_known_by_their_content(
    write: Write, compress: Callable[[bytes], bytes], name: str
) -> None:
    np.testing.assert_array_equal(svmlight(write(compress(GOOD.encode()), name)).X, GOOD_X)
    np.testing.assert_array_equal(delimited(write(compress(b"3,a\n4,b\n"), name)).X, [[3], [4]])


# -- svmlight: refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 1:nan", "the value of index 1 is not a number between -1e+18 and 1e+18"),
        ("1 1:2 7:inf", "the value of index 7 is not a number between -1e+18 and 1e+18"),
        ("1 1:-Infinity", "the value of index 1 is not a number between -1e+18 and 1e+18"),
        ("1 1:1e39", "the value of index 1 is not a number between -1e+18 and 1e+18"),
        ("1 1:abc", "'abc' in '1:abc' is not a number."),
        ("1 1:1_000", "'1_000' in '1:1_000' is not a number."),
        ("1 1:0,5", "'0,5' in '1:0,5' is not a number."),
        ("1 1:", "'' in '1:' is not a number."),
        ("1 1:2:3", "'2:3' in '1:2:3' is not a number."),
        ("1 a:2", "'a' in 'a:2' is not an index; whole numbers from 0 or 1 are expected."),
        ("1 1.5:2", "'1.5' in '1.5:2' is not an index"),
        ("1 -1:2", "'-1' in '-1:2' is not an index"),
        ("1 1:1 word", "'word' is not index:value."),
        ("1 2:1 1:1", "index 1 stands after index 2; indices must ascend, each only once."),
        ("1 2:1 2:1", "index 2 stands after index 2; indices must ascend, each only once."),
        ("1 99999999999:1", "the index 99999999999 is too large."),
        ("1:1 2:1", "the line begins with '1:1'; a label is missing."),
        ("1,2 2:1", "the line begins with '1,2'; expected one label"),
        ("nan 2:1", "'nan' is not a label; use numbers or words."),
        ("inf 2:1", "'inf' is not a label; use numbers or words."),
    ],
)
def test_svmlight_refuses_with_the_line(write: Write, line: str, reason: str) -> None:
    path = write(f"# comment\n1 1:1\n\n-1 1:2\n{line}\n-1 1:3\n")
    message = refusal(svmlight, path)
    assert message.startswith(f"{path}, line 5: ")
    assert reason in message


def test_svmlight_names_the_test_file(write: Write) -> None:
    train, test = write(GOOD), write("+1 1:1\n-1 x\n", "test")
    assert refusal(svmlight, train, test) == f"{test}, line 2: 'x' is not index:value."


def test_svmlight_refuses_indices_beyond_the_declared_features(write: Write) -> None:
    message = refusal(svmlight, write("1 1:1\n\n-1 2:1 4:1\n"), n_features=3)
    assert "line 3: the index 4 is not between 1 and 3; mend the line, or set data.n_features=" in message
    message = refusal(svmlight, write("1 0:1\n-1 2:1 3:1\n"), n_features=3)
    assert "line 2: the index 3 is not between 0 and 2" in message


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        *((svmlight, content) for content in ["", "\n\n", "\ufeff", "# only a comment\n"]),
        *((delimited, content) for content in ["", "\n\n", "\ufeff", "only,a,header\n"]),
    ],
)
def test_no_rows_are_refused(write: Write, kind: Callable[..., Arrays], content: str) -> None:
    path = write(content)
    assert f"{path}: no rows" in refusal(kind, path)


def test_an_empty_test_file_is_refused(write: Write) -> None:
    test = write("", "test")
    assert f"{test}: no rows" in refusal(svmlight, write(GOOD), test)
    assert f"{test}: no rows" in refusal(delimited, write("1,a\n2,b\n"), test)


def test_svmlight_refuses_a_file_without_any_feature(write: Write) -> None:
    path = write("1\n-1\n")
    assert f"{path}: no row has a feature; lines like '+1 3:0.5 7:1' are expected." in refusal(svmlight, path)


# -- classes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "row"), [(svmlight, "{} 1:3\n"), (delimited, "3,{}\n")], ids=["svmlight", "csv"])
def test_one_and_three_classes_are_refused(write: Write, kind: Callable[..., Arrays], row: str) -> None:
    path = write(row.format("7") * 3)
    assert refusal(kind, path) == f"{path}: all 3 rows have the label '7'; two classes are needed."
    path = write("".join(row.format(label) for label in ["10", "9", "8", "9"]))
    expected = f"{path}: 3 classes (8, 9, 10), two are needed. Choose one against the rest with data.positive=LABEL"
    rest = ", or keep all with data.multiclass=true (multiclass: true in a YAML), for learners that can have them."
    assert refusal(kind, path) == expected + rest


def test_a_label_column_of_numbers_is_refused_in_one_line(write: Write) -> None:
    path = write("".join(f"{i},{i}\n" for i in range(500)))
    message = refusal(delimited, path)
    assert "500 classes (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...), two are needed" in message


@pytest.mark.parametrize(("kind", "row"), [(svmlight, "{} 1:3\n"), (delimited, "3,{}\n")], ids=["svmlight", "csv"])
def test_many_classes_are_kept_where_they_are_wanted(write: Write, kind: Callable[..., Arrays], row: str) -> None:
    path = write("".join(row.format(label) for label in ["10", "9", "8", "9"]))
    arrays = kind(path, multiclass=True)
    assert arrays.classes == ("8", "9", "10")
    assert (arrays.y.dtype, arrays.y.tolist()) == (np.int8, [2, 1, 0, 1])
    two = kind(write("".join(row.format(label) for label in ["b", "a"]), "two"), multiclass=True)
    assert (two.classes, two.y.tolist()) == (("a", "b"), [1, -1])


def test_an_unknown_positive_label_is_refused_with_the_nearest(write: Write) -> None:
    path = write("1,spam\n2,ham\n")
    message = refusal(delimited, path, positive="spamm")
    assert message == f"{path}: no row has the label 'spamm' (data.positive). Did you mean 'spam'?"
    assert "Known: ham, spam." in refusal(delimited, path, positive="x")


def test_a_training_file_with_one_class_is_refused(write: Write) -> None:
    train, test = write("1 1:1\n1 1:2\n"), write("-1 1:1\n", "test")
    expected = f"{train}: all 2 rows of the training file have the label '1'; two classes are needed."
    assert refusal(svmlight, train, test) == expected


def test_a_test_file_with_one_class_is_accepted(write: Write) -> None:
    assert svmlight(write(GOOD), write("+1 1:1\n", "test")).y.tolist() == [1, -1, 1]


# -- delimited text: accepted ----------------------------------------------------------------------------

ROWS = [["1", "2.5", "a"], ["-3", "4e2", "b"], ["0", "0", "a"]]
ROWS_X = [[1, 2.5], [-3, 400], [0, 0]]


def joined(rows: Sequence[Sequence[str]], delimiter: str = ",", newline: str = "\n") -> str:
    return "".join(delimiter.join(row) + newline for row in rows)


@pytest.mark.parametrize("header", [[], [["x1", "x2", "class"]]], ids=["no header", "header"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " ", ", ", "   "])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_delimiter_header_and_line_ends_are_found_out(
    write: Write, header: list[list[str]], delimiter: str, newline: str
) -> None:
    arrays = delimited(write(joined(header + ROWS, delimiter, newline)))
    np.testing.assert_array_equal(arrays.X, ROWS_X)
    assert arrays.X.dtype == np.float32
    assert arrays.y.tolist() == [-1, 1, -1]
    assert arrays.classes == ("a", "b")


@pytest.mark.parametrize("prefix", ["\ufeff", "\n\n", "\ufeffx1,x2,class\n"])
def test_a_bom_and_blank_lines_are_passed_over(write: Write, prefix: str) -> None:
    np.testing.assert_array_equal(delimited(write(prefix + joined(ROWS) + "\n\n")).X, ROWS_X)


def test_quoted_fields_may_hold_the_delimiter(write: Write) -> None:
    arrays = delimited(write('"a,1","class"\n"1","yes, sure"\n"2","no"\n'))
    assert arrays.classes == ("no", "yes, sure")
    np.testing.assert_array_equal(arrays.X, [[1], [2]])


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_quoted_fields_may_hold_line_ends(write: Write, delimiter: str, newline: str) -> None:
    content = f'"a{newline}1"{delimiter}class{newline}' + "".join(
        f'{i}{delimiter}"yes,{newline}{newline}""sure"""{newline}{i}{delimiter}no{newline}' for i in range(30)
    )
    arrays = delimited(write(content))
    assert arrays.classes == ("no", f'yes,{newline}{newline}"sure"')
    np.testing.assert_array_equal(arrays.X[:, 0], np.repeat(np.arange(30), 2))
    assert "line 124, column 1" in refusal(delimited, write(content + f"{newline}x{delimiter}no{newline}"))
    assert "a quote that opens in line 123 is not closed" in refusal(
        delimited, write(content + f'1{delimiter}"no\n1,no')
    )


HEADERS = {
    "years": ("country,2019,2020,y", "FR,{i}.5,1{i},{label}", None),
    "years alone": ("2018,2019,2020,2021", "{i}.5,1{i},2,{label}", None),
    "a name above numbers": ("age,5,y", "{i},{i},{label}", None),
    "months": ("shop,1,2,3,4,y", "s{i},{i},3,2,1,{label}", None),
    "labels in the first column": ("y,2019,2020", "{label},{i}.5,1{i}", 0),
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_header_may_have_numbers(write: Write, case: str) -> None:
    header, row, label = HEADERS[case]
    rows = [row.format(i=i, label=i % 2) for i in range(8)]
    layout = layout_of(write("\n".join([header, *rows])), label)
    assert layout.header == tuple(header.split(","))
    train, test = layout, write("\n".join([header, rows[0]]), "test")
    assert layout_of(test, label, train).header == train.header
    assert layout_of(write("\n".join(rows)), label).header is None


@pytest.mark.parametrize(
    "rows",
    [
        ["5.1,3.5,setosa", "4.9,3.0,other", "5.0,3.1,other"],
        ["2001,2002,c", "1999,1998,a", "2000,1990,a"],
        ["7,8,c", "5,6,a", "6,5,a"],
        ["?,8,c", "5,6,a", "6,5,a"],
        ["one,8,a", "5,6,b", "6,5,a"],
        ["0.5,1.5,1x", "0.4,1.2,1", "0.1,1.1,1"],
        ["2019,2020,a", "1,2,b", "3,4,a"],
    ],
)
def test_a_row_is_not_a_header(write: Write, rows: list[str]) -> None:
    assert layout_of(write("\n".join(rows)), None).header is None


def test_blanks_inside_labels_are_no_delimiter(write: Write) -> None:
    assert delimited(write("1,a b c d\n2,a b c e\n")).classes == ("a b c d", "a b c e")


def test_a_header_of_column_numbers_is_a_header(write: Write) -> None:
    arrays = delimited(write("0,1,2,3,class\n5,6,7,8,a\n6,7,8,9,b\n"))
    np.testing.assert_array_equal(arrays.X, [[5, 6, 7, 8], [6, 7, 8, 9]])


def test_a_first_row_of_small_numbers_is_no_header(write: Write) -> None:
    np.testing.assert_array_equal(delimited(write("0,1,a\n1,0,b\n")).X, [[0, 1], [1, 0]])


@pytest.mark.parametrize("column", ["class", 0, "0", -3, "-3"])
def test_the_label_column_by_name_and_by_position(write: Write, column: Any) -> None:
    content = "class,x1,x2\n" + joined([[row[2], *row[:2]] for row in ROWS])
    arrays = delimited(write(content), label_column=column)
    np.testing.assert_array_equal(arrays.X, ROWS_X)
    assert arrays.classes == ("a", "b")


def test_a_csv_test_file_follows_the_training_rows(write: Write) -> None:
    arrays = delimited(write("x1,x2,class\n" + joined(ROWS)), write(joined(ROWS[:1]), "test"))
    np.testing.assert_array_equal(arrays.X, [*ROWS_X, ROWS_X[0]])
    assert arrays.n_train_official == 3


def test_labels_that_are_not_utf8_stay_distinct(write: Write) -> None:
    assert delimited(write(b"1,\xe4\n2,\xf6\n")).classes == ("\\xe4", "\\xf6")


def test_wide_csv_becomes_sparse(write: Write) -> None:
    rows = [["0"] * 2500 + ["a"], ["0"] * 2499 + ["3", "b"]]
    X = delimited(write(joined(rows))).X
    assert sp.issparse(X)
    assert (X.shape, X.nnz, X[1, 2499], X.dtype) == ((2, 2500), 1, 3, np.float32)


def test_more_rows_than_are_converted_at_a_time(write: Write) -> None:
    content = "".join(f"{i},{i % 2}\n" for i in range(12_345))
    arrays = delimited(write(content))
    np.testing.assert_array_equal(arrays.X[:, 0], np.arange(12_345))
    np.testing.assert_array_equal(arrays.y, 2 * (np.arange(12_345) % 2) - 1)


# -- delimited text: refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1,a", "2 columns, the first line has 3; mend or remove the row."),
        ("1,2,3,a", "4 columns, the first line has 3; mend or remove the row."),
        ("one,2,a", "column 1 ('x1'): 'one' is not a number; mend or remove the row."),
        ("1,,a", "column 2 ('x2'): '' is not a number"),
        ("1,NA,a", "column 2 ('x2'): 'NA' is not a number"),
        ("1,?,a", "column 2 ('x2'): '?' is not a number"),
        ("1,1_0,a", "column 2 ('x2'): '1_0' is not a number"),
        ("1,nan,a", "column 2 ('x2'): 'nan' is not between -1e+18 and 1e+18"),
        ("inf,1,a", "column 1 ('x1'): 'inf' is not between -1e+18 and 1e+18"),
        ("1,1e39,a", "column 2 ('x2'): '1e39' is not between -1e+18 and 1e+18"),
        ("1,2,", "'' is not a label (column 3 ('class')); set data.label= if the labels stand elsewhere."),
        ("1,2,nan", "'nan' is not a label (column 3 ('class'))"),
    ],
)
def test_csv_refuses_with_the_line(write: Write, row: str, reason: str) -> None:
    path = write(f"x1,x2,class\n1,2,a\n\n3,4,b\n{row}\n5,6,a\n")
    message = refusal(delimited, path)
    assert message.startswith(f"{path}, line 5")
    assert reason in message


def test_a_bad_first_row_is_no_header(write: Write) -> None:
    path = write("one,2,a\n1,2,b\n")
    assert f"{path}, line 1, column 1: 'one' is not a number" in refusal(delimited, path)


def test_one_column_is_refused(write: Write) -> None:
    assert "one column, 'a'; features and a label are expected" in refusal(delimited, write("a\nb\n"))


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (
            "clas",
            "no column 'clas' for the labels (data.label); its columns are ['x', 'class']. Did you mean",
        ),
        (2, "no column 2 for the labels (data.label); with 2 columns, 0 to 1 or -1 to -2 are possible."),
        (-3, "no column -3 for the labels"),
    ],
)
def test_an_unknown_label_column_is_refused(write: Write, column: Any, reason: str) -> None:
    path = write("x,class\n1,a\n2,b\n")
    assert reason in refusal(delimited, path, label_column=column)


def test_a_named_label_column_needs_a_header(write: Write) -> None:
    message = refusal(delimited, write("1,a\n2,b\n"), label_column="class")
    assert "no column 'class' for the labels (data.label); it has no header: give a number." in message


def test_row_numbers_of_pandas_are_refused(write: Write) -> None:
    message = refusal(delimited, write(",x,class\n0,1,a\n1,2,b\n"))
    assert "the first column has no name, so it is likely the row numbers that pandas writes" in message


def test_csv_refuses_another_number_of_features_than_declared(write: Write) -> None:
    message = refusal(delimited, write(joined(ROWS)), n_features=5)
    assert "2 columns of features, expected n_features=5" in message


def test_csv_refuses_a_test_file_of_another_form(write: Write) -> None:
    train, test = write("x1,x2,class\n" + joined(ROWS)), write("1,a\n2,b\n", "test")
    message = refusal(delimited, train, test)
    assert f"{test}: 2 columns, the label is column 2; the training file has 3" in message
    test = write("x2,x1,class\n" + joined(ROWS), "test")
    message = refusal(delimited, train, test)
    assert "the header ['x2', 'x1', 'class'] is not that of the training file, ['x1', 'x2', 'class']" in message


# -- any file --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compress", COMPRESS)
@pytest.mark.parametrize("kind", [svmlight, delimited])
def test_truncated_and_corrupted_archives_are_refused(
    write: Write, compress: Callable[[bytes], bytes], kind: Callable[..., Arrays]
) -> None:
    text = "".join(f"{i % 2} 1:{i * 0.37}\n" if kind is svmlight else f"{i * 0.37},{i % 2}\n" for i in range(9999))
    packed = compress(text.encode())
    path = write(packed[:-30])
    assert f"{path}: truncated or corrupted" in refusal(kind, path)
    middle = len(packed) // 2
    path = write(packed[:middle] + bytes(64) + packed[middle + 64 :])
    assert str(path) in refusal(kind, path)


@pytest.mark.parametrize("content", [GOOD.encode("utf-16"), b"PK\x03\x04\0\0", b"\x93NUMPY\1\0"])
@pytest.mark.parametrize("kind", [svmlight, delimited])
def test_files_that_are_no_text_are_refused(write: Write, content: bytes, kind: Callable[..., Arrays]) -> None:
    path = write(content)
    assert f"{path}: not a text file in UTF-8" in refusal(kind, path)


def test_an_unknown_format_is_refused(write: Write) -> None:
    path = write(GOOD)
    message = refusal(svmlight, path, format="arff")
    assert message == "Unknown file format 'arff'; csv, svmlight, idx are known (data.format)."


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (GOOD, "svmlight"),
        ("\ufeff" + GOOD, "svmlight"),
        ("1\n-1\n1 3:2\n", "svmlight"),
        ("1 1:1 2:1\n1 1:1\n-1 oops\n", "svmlight"),
        ("# 1 2 3\n" + GOOD, "svmlight"),
        ("spam 0:1\nham 1:2\n", "svmlight"),
        ("1 qid:7 1:2\n", "svmlight"),
        ("1,2,a\n", "csv"),
        ("1 2 3\n", "csv"),
        ("x1 x2 y\n1 2 3\n", "csv"),
        ("2024-01-01 12:30:00,1,2\n", "csv"),
        ("1\n2\n", "csv"),
    ],
)
def test_the_format_is_found_out(write: Write, content: str, expected: str) -> None:
    assert sniffed_format(write(content)) == expected


# -- round trips -----------------------------------------------------------------------------------------

values = st.floats(-(2.0**59), 2.0**59, width=32)
matrices = st.integers(1, 6).flatmap(
    lambda d: st.lists(st.lists(values | st.just(0.0), min_size=d, max_size=d), min_size=2, max_size=8)
)


@settings(max_examples=60, deadline=None)
@given(rows=matrices, zero_based=st.booleans(), data=st.data())
def test_svmlight_round_trip(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[float]], zero_based: bool, data: st.DataObject
) -> None:
    X = np.array(rows, dtype=np.float32)
    X[0, 0] = 1.0  # the base is known only where the first column is in use
    y = np.array(data.draw(st.lists(st.sampled_from([-1, 1]), min_size=len(X), max_size=len(X))))
    y[:2] = [-1, 1]
    path = tmp_path_factory.getbasetemp() / "round_trip.svm"
    dump_svmlight_file(X.astype(np.float64), y, str(path), zero_based=zero_based)
    arrays = svmlight(path, n_features=X.shape[1])
    np.testing.assert_array_equal(arrays.X, X)
    np.testing.assert_array_equal(arrays.y, y)


words = st.text("abcdefgh ,;'\"|", min_size=1, max_size=6).map(str.strip).filter(bool)


@settings(max_examples=60, deadline=None)
@given(
    rows=matrices,
    labels=st.lists(words, min_size=2, max_size=2, unique=True),
    header=st.booleans(),
    data=st.data(),
)
def test_csv_round_trip(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[list[float]],
    labels: list[str],
    header: bool,
    data: st.DataObject,
) -> None:
    X = np.array(rows, dtype=np.float32)
    y = data.draw(st.lists(st.sampled_from(labels), min_size=len(X), max_size=len(X)))
    y[:2] = labels
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_MINIMAL)
    if header:
        writer.writerow([f"x{i}" for i in range(X.shape[1])] + ["label"])
    writer.writerows([*map(repr, map(float, row)), label] for row, label in zip(X, y, strict=True))
    path = tmp_path_factory.getbasetemp() / "round_trip.csv"
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    arrays = delimited(path)
    np.testing.assert_array_equal(arrays.X, X)
    assert arrays.classes == tuple(sorted(labels))
    assert arrays.y.tolist() == [1 if label == max(labels) else -1 for label in y]
