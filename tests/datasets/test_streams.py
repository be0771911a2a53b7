"""Streams yield the same rows as scikit-learn's and NumPy's readers, for any block, chunk, file and cache."""

import gc
import gzip
import os
import re
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from klr_bench import AROW, NystroemKLR, stream
from klr_bench.datasets.readers import chunks as reader_chunks
from klr_bench.datasets.readers import csv, svmlight
from klr_bench.errors import KlrBenchError
from tests.attack.promise import rejected
from tests.datasets.conftest import Patch, Write
from tests.datasets.samples import csv_text, rows_of, svmlight_text

N_ROWS = 200
ZERO_BASED = {"n_features": 4, "classes": [0, 1], "zero_based": True}
TEXTS = pytest.mark.parametrize("text", [svmlight_text(), csv_text()], ids=["svmlight", "csv"])
KNOWN = pytest.mark.parametrize("options", [{}, {"classes": [0, 1, 2], "n_features": 9}], ids=["unknown", "known"])


def check_rows(actual: tuple[np.ndarray, np.ndarray], expected: tuple[np.ndarray, np.ndarray]) -> None:
    for values, reference in zip(actual, expected, strict=True):
        assert values.dtype == reference.dtype
        np.testing.assert_array_equal(values, reference)


def check_lengths(chunks: list[Any], chunk_rows: int) -> None:
    assert [len(y) for _, y in chunks] == [min(chunk_rows, N_ROWS - i) for i in range(0, N_ROWS, chunk_rows)]


@pytest.mark.parametrize("zero_based", [False, True])
@pytest.mark.parametrize("chunk_rows", [1, 7, 1000])
def test_svmlight_rows_match_scikit_learn(write: Write, block: None, chunk_rows: int, zero_based: bool) -> None:
    path = write(svmlight_text(zero_based=zero_based))
    X, y = load_svmlight_file(str(path), dtype=np.float32, zero_based=zero_based)
    rows = stream(path, chunk_rows)
    chunks = list(rows)
    check_lengths(chunks, chunk_rows)
    for part, _ in chunks:
        assert (part.dtype, part.indices.dtype, part.has_sorted_indices) == (np.float32, np.int32, True)
        assert (np.concatenate([np.diff(row) for row in np.split(part.indices, part.indptr[1:-1])]) > 0).all()
        assert part.shape[1] == rows.n_features == 9
    np.testing.assert_array_equal(rows_of(chunks)[0], X.toarray())
    np.testing.assert_array_equal(rows_of(chunks)[1], y)
    np.testing.assert_array_equal(rows.classes, [0, 1, 2])


@pytest.mark.parametrize("delimiter", [",", "\t", " "])
@pytest.mark.parametrize("chunk_rows", [1, 7, 1000])
def test_csv_rows_match_numpy(write: Write, block: None, chunk_rows: int, delimiter: str) -> None:
    path = write(csv_text(delimiter=delimiter))
    table = np.loadtxt(path, delimiter=delimiter)
    rows = stream(path, chunk_rows, format="csv")
    chunks = list(rows)
    check_lengths(chunks, chunk_rows)
    assert all(X.dtype == np.float32 and X.flags.c_contiguous for X, _ in chunks)
    np.testing.assert_array_equal(rows_of(chunks)[0], table[:, :-1].astype(np.float32))
    np.testing.assert_array_equal(rows_of(chunks)[1], table[:, -1])
    assert rows.n_features == 9


@pytest.mark.parametrize(
    ("text", "parameters", "X", "y", "classes"),
    [
        ("g,1,2\nh,3,4\n7,5,6\n", {"label_column": 1}, [[1, 2], [3, 4], [5, 6]], ["g", "h", "7"], ["7", "g", "h"]),
        ("a,label,b\n1,0,2\n3,1,4\n", {"label_column": "label"}, [[1, 2], [3, 4]], [0, 1], [0, 1]),
        ("spam 1:1\nham 1:2\nspam\n", {}, [[1], [2], [0]], ["spam", "ham", "spam"], ["ham", "spam"]),
        ("+1 1:1\n-1.0 1:2\n1e0 1:3\n", {"positive": -1}, [[1], [2], [3]], [-1, 1, -1], [-1, 1]),
        ("1 2:1\n0 0:3\n", {}, [[0, 0, 1], [3, 0, 0]], [1, 0], [0, 1]),
        ("1 2:1\n0 0:3\n", ZERO_BASED, [[0, 0, 1, 0], [3, 0, 0, 0]], [1, 0], [0, 1]),
        # lines that are parsed in Python count for the width, too
        ("1 1:2\n0 4:1.00000005960464477539\n", {}, [[2, 0, 0, 0], [0, 0, 0, 1]], [1, 0], [0, 1]),
        ("1 1:2\n0 0:1.00000005960464477539 1:1e-70\n", {}, [[0, 2], [1, 0]], [1, 0], [0, 1]),
    ],
)
def test_labels_and_columns(
    write: Write, block: None, text: str, parameters: dict[str, Any], X: Any, y: Any, classes: Any
) -> None:
    rows = stream(write(text), **parameters)
    found = rows_of(rows)
    np.testing.assert_array_equal(found[0], X)
    assert (found[1].tolist(), rows.classes.tolist(), rows.n_features) == (y, classes, len(X[0]))


@TEXTS
def test_chunks_span_files(write: Write, tmp_path: Path, text: bytes) -> None:
    lines = text.splitlines(keepends=True)
    expected = rows_of(stream(write(text)))
    parts = [
        write(gzip.compress(b"".join(lines[begin:end]).rstrip()), f"part-{i}.txt")
        for i, (begin, end) in enumerate([(0, 1), (1, 90), (90, 190), (190, 200)])
    ]
    for path in (parts, str(tmp_path / "part-*.txt"), [parts[0], str(tmp_path / "part-[1-3]*")]):
        chunks = list(stream(path, 64))
        check_lengths(chunks, 64)
        check_rows(rows_of(chunks), expected)


@pytest.mark.parametrize("skip_rows", [0, 1, 63, 64, 199, 200, 300])
@pytest.mark.parametrize("cached", [False, True])
def test_rows_may_be_skipped(write: Write, tmp_path: Path, block: None, skip_rows: int, cached: bool) -> None:
    path, cache = write(svmlight_text()), tmp_path / "cache" if cached else None
    X, y = rows_of(stream(path, cache=cache))
    chunks = list(stream(path, 64, skip_rows=skip_rows, cache=cache))
    assert sum(len(y) for _, y in chunks) == max(0, N_ROWS - skip_rows)
    assert all(len(y) == 64 for _, y in chunks[:-1])
    if chunks:
        check_rows(rows_of(chunks), (X[skip_rows:], y[skip_rows:]))


def test_memory_stays_bounded(write: Write, monkeypatch: Patch) -> None:
    """Only a few blocks and one chunk are in memory, however long the file is."""
    monkeypatch.setattr(reader_chunks, "BLOCK", 1 << 16)
    path = write(csv_text(500, 20) * 100)
    rows = stream(path, 500, format="csv", classes=[0, 1, 2])
    next(iter(rows))
    tracemalloc.start()
    assert sum(len(y) for _, y in rows) == 50_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > 1e7
    assert peak < 1e6


def forbid_parsing(monkeypatch: Patch) -> None:
    """Make any later attempt to read the text fail."""
    for reader in (svmlight, csv):
        monkeypatch.setattr(reader, "blocks", lambda path, **options: pytest.fail("text was read again"))


@TEXTS
@KNOWN
def test_a_second_pass_reads_the_cache(
    write: Write, tmp_path: Path, monkeypatch: Patch, block: None, text: bytes, options: dict[str, Any]
) -> None:
    path, cache = write(text), tmp_path / "cache"
    plain = rows_of(stream(path, **options))
    check_rows(rows_of(stream(path, 30, cache=cache, **options)), plain)
    forbid_parsing(monkeypatch)
    for chunk_rows in (1, 7, 1000):
        check_rows(rows_of(stream(path, chunk_rows, cache=cache, **options)), plain)
    for X, y in stream(path, cache=cache, **options):
        (X.data if sp.issparse(X) else X)[:] = 0  # a chunk belongs to the caller
        y[:] = 0
    check_rows(rows_of(stream(path, cache=cache, **options)), plain)


def test_the_cache_serves_other_parameters(write: Write, tmp_path: Path, monkeypatch: Patch) -> None:
    path, cache = write("1 2:1\n0 1:3\nno 3:1\n"), tmp_path / "cache"
    rows_of(stream(path, cache=cache))
    for parameters, reason in (
        ({"classes": [0, 1]}, "line 3: the label 'no' is not one of the classes 0, 1"),
        ({"n_features": 2}, "line 3: the index 3 is not between 1 and 2"),
    ):
        rejected(lambda parameters=parameters: list(stream(path, cache=cache, **parameters)), reason)
    forbid_parsing(monkeypatch)
    classes = ["no", "0", "1"]
    X, y = rows_of(stream(path, cache=cache, classes=classes, n_features=5, zero_based=True))
    np.testing.assert_array_equal(X, [[0, 0, 1, 0, 0], [0, 3, 0, 0, 0], [0, 0, 0, 1, 0]])
    assert y.tolist() == ["1", "0", "no"]


@KNOWN
def test_an_interrupted_pass_leaves_no_incomplete_cache(write: Write, tmp_path: Path, options: dict[str, Any]) -> None:
    path, cache = write(svmlight_text()), tmp_path / "cache"
    expected = rows_of(stream(path, **options))
    next(iter(stream(path, 30, cache=cache, **options)))
    cache.mkdir(exist_ok=True)
    for _ in range(2):
        check_rows(rows_of(stream(path, 30, cache=cache, **options)), expected)
    (archive,) = cache.glob("*.zip")
    archive.rename(f"{archive}.part")  # as a killed process leaves it
    check_rows(rows_of(stream(path, cache=cache, **options)), expected)
    assert {entry.suffix for entry in cache.iterdir()} == {".zip", ".lock"}


@pytest.mark.parametrize("same_time", [False, True])
def test_a_rewritten_file_of_the_same_size_is_read_again(write: Write, tmp_path: Path, same_time: bool) -> None:
    path, cache = write("1 1:1\n0 2:2\n"), tmp_path / "cache"
    rows = stream(path, cache=cache)
    list(rows)
    time = path.stat().st_mtime_ns if same_time else 1
    write("1 1:5\n0 2:6\n")
    os.utime(path, ns=(time, time))
    np.testing.assert_array_equal(rows_of(rows)[0], [[5, 0], [0, 6]])
    np.testing.assert_array_equal(rows_of(stream(path, cache=cache))[0], [[5, 0], [0, 6]])


@TEXTS
def test_a_damaged_cache_never_changes_rows(write: Write, tmp_path: Path, text: bytes, monkeypatch: Patch) -> None:
    monkeypatch.setattr(reader_chunks, "BLOCK", 2000)
    path, cache = write(text), tmp_path / "cache"
    expected = rows_of(stream(path, cache=cache))
    (archive,) = cache.glob("*.zip")
    content = archive.read_bytes()
    draw = np.random.default_rng(0)
    for size in (0, 9, len(content) - 9):
        archive.write_bytes(content[:size])
        check_rows(rows_of(stream(path, 30, cache=cache)), expected)
    for place in draw.integers(len(content), size=60).tolist():
        flipped = bytes([content[place] ^ 1 << int(draw.integers(8))])
        archive.write_bytes(content[:place] + flipped + content[place + 1 :])
        check_rows(rows_of(stream(path, 7, cache=cache, skip_rows=5)), (expected[0][5:], expected[1][5:]))


def test_two_passes_at_once_share_a_cache(write: Write, tmp_path: Path) -> None:
    path = write(svmlight_text())
    passes = [iter(stream(path, 30, cache=tmp_path, classes=[0, 1, 2], n_features=9)) for _ in range(2)]
    chunks: list[list[Any]] = [[next(rows)] for rows in passes]
    for rows, parts in zip(passes, chunks, strict=True):
        parts.extend(rows)
    expected = rows_of(stream(path, 30))
    for parts in chunks:
        np.testing.assert_array_equal(rows_of(parts)[0], expected[0])


GOOD = "+1 1:0.5 3:2\n# comment\n-1 2:1\n"
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (GOOD, {"n_features": 2}, "train, line 1: the index 3 is not between 1 and 2; set data.n_features= (n_features="),
    ("1 2:1\n0 0:3\n", {"n_features": 4, "classes": [0, 1]}, "train, line 2: the index 0 is not between 1 and 4"),
    (GOOD, {"classes": [1, 2], "n_features": 3}, "train, line 3: the label '-1' is not one of the classes 1, 2"),
    ("1,1,1\n2,2,-1\n", {"classes": [1, 2]}, "train, line 2: the label '-1' is not one of the classes 1, 2"),
    (GOOD, {"positive": 7}, "train: no row has the label '7' (positive=)."),
    ("a,b\n", {}, "train: no rows."),
    ("1,2\n3,\n", {}, "set data.label= (label_column= of stream) if the labels are in another column"),
    (GOOD, {"format": "svm"}, "format: expected 'svmlight', 'csv' or None, got 'svm'."),
    (GOOD, {"classes": ["1", "1.0"]}, "classes: expected labels without duplicates"),
    (GOOD, {"classes": ["NA", "EU"]}, "got ['NA', 'EU'] ("),
    (GOOD, {"path": "absent"}, "absent: cannot be read"),
    (GOOD, {"path": "*.svm"}, "*.svm: expected a file, a list of files, or a pattern that"),
    (GOOD, {"cache": "train/cache"}, "could not be written: Not a directory. Make its folder writable, or choose"),
]


@pytest.mark.parametrize(("text", "parameters", "reason"), REFUSED, ids=str)
def test_invalid_input_is_rejected(
    write: Write, tmp_path: Path, monkeypatch: Patch, text: str, parameters: dict[str, Any], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(text)
    rejected(lambda: list(stream(**{"path": "train"} | parameters)), reason)


@pytest.mark.parametrize("parameters", [{"chunk_rows": 0}, {"skip_rows": -1}, {"n_features": 10**9}], ids=str)
def test_numbers_out_of_range_are_rejected(write: Write, parameters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"{next(iter(parameters))} == -?\d+, must be "):
        stream(write(GOOD), **parameters)


def test_a_resumed_fit_equals_a_fit_on_all_rows(write: Write) -> None:
    path = write("".join(f"{i % 2} 1:{i % 7} 2:{i % 5}\n" for i in range(300)))
    expected = AROW().partial_fit(*rows_of(stream(path)))
    rows, learner = stream(path, 50), AROW()
    for _, (X, y) in zip(range(3), rows, strict=False):
        learner.partial_fit(X, y, classes=rows.classes)
    for X, y in stream(path, 50, skip_rows=150):
        learner.partial_fit(X, y)
    np.testing.assert_allclose(learner.coef_, expected.coef_)


@TEXTS
def test_rows_in_a_memory_mapped_file_are_those_of_the_stream(write: Write, tmp_path: Path, text: bytes) -> None:
    rows = stream(write(text), 7)
    X, y = rows.to_memmap(tmp_path / "rows")
    assert isinstance(X, np.memmap)
    assert X.dtype == np.float32
    expected, labels = rows_of(rows)
    np.testing.assert_array_equal(X, expected)
    np.testing.assert_array_equal(y, labels)
    shared: dict[str, Any] = {"n_centers": 20, "gamma": 0.1, "random_state": 0}
    model, usual = (NystroemKLR(**shared).fit(matrix, y) for matrix in (X, np.array(X)))
    np.testing.assert_array_equal(model.dual_coef_, usual.dual_coef_)


def test_nothing_remains_of_a_memory_mapped_file_without_rows(write: Write, tmp_path: Path) -> None:
    path = write("1,2,3\n4,5,6\n")
    with pytest.raises(KlrBenchError, match=r"to_memmap: expected fewer than skip_rows=2 rows, got no others"):
        stream(path, 7, skip_rows=2).to_memmap(tmp_path / "rows")
    with pytest.raises(KlrBenchError):
        stream(write("1,2,3\n4,x,6\n"), 1).to_memmap(tmp_path / "rows")
    assert [*(tmp_path / "rows").iterdir()] == []


SECONDS = 1.7e9 + np.round(60 * np.random.default_rng(0).random(N_ROWS), 3)


@pytest.mark.parametrize("kind", ["csv", "svmlight"])
@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("chunk_rows", [1, 30, 1000])
def test_a_stream_keeps_the_digits_that_float32_lacks(
    write: Write, tmp_path: Path, kind: str, chunk_rows: int, cached: bool
) -> None:
    row = {"csv": "{},{},{}\n", "svmlight": "{2} 1:{0} 2:{1}\n"}[kind]
    rows = "".join(row.format(f"{t:.3f}", i % 7, i % 2) for i, t in enumerate(SECONDS))
    more = "".join(row.format(f"{i % 5}.5", i % 7, i % 2) for i in range(9))
    paths = [write(rows), write(more, "more")]
    stored = stream(paths, chunk_rows, cache=tmp_path / "cache" if cached else None)
    for _ in range(2):
        chunks = list(stored)
        assert {X.dtype for X, _ in chunks} == {np.dtype(np.float64)}, "also for rows that float32 can hold"
        np.testing.assert_array_equal(rows_of(chunks)[0][:N_ROWS, 0], SECONDS)
    X, _ = stored.to_memmap(tmp_path / "rows")
    np.testing.assert_array_equal(X, rows_of(chunks)[0])
    assert {X.dtype for X, _ in stream(paths[1], 2)} == {np.dtype(np.float32)}


def test_index_0_in_only_some_files_is_a_warning(write: Write) -> None:
    from_1, from_0 = write("1 1:1 3:2\n0 2:1\n"), write("1 0:1 2:2\n0 1:1\n", "zero")
    empty = write("1\n0\n", "none")
    expected = (
        f"the feature index 0 occurs in {from_0} (indices 0 to 2), but not in {from_1} (indices 1 to 3). Indices "
        "are counted from 0 in all files; if they begin with 1 in some, features are mixed up"
    )
    with pytest.warns(UserWarning, match=re.escape(expected)):
        list(stream([from_1, from_0, empty]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for paths in ([from_1, from_1, empty], [from_0, from_0], [from_0, empty], [empty, from_1]):
            list(stream(paths, format="svmlight"))
        list(stream([from_1, from_0], zero_based=True, n_features=4, classes=[0, 1]))
    message = f"{from_0}, line 1: the index 0 is not between 1 and 3"
    rejected(lambda: list(stream([from_1, from_0], zero_based=False)), message)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
@TEXTS
def test_every_file_is_closed(write: Write, text: bytes, pack: Any) -> None:
    path = write(pack(text))
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        rows = stream(path, 20)
        list(rows)
        next(iter(rows))
        del rows
        gc.collect()
        assert [str(warning.message) for warning in caught] == []
        path.open("rb")
        gc.collect()
    assert len(caught) == 1, "a file that stays open causes a warning"


@pytest.mark.parametrize("labels", [[0, 1], ["a", "b"], [-1, 1]])
@pytest.mark.parametrize("n_more", [0, 1, 3])
def test_classes_do_not_depend_on_those_of_an_earlier_stream(write: Write, labels: list[Any], n_more: int) -> None:
    path = write("".join(f"{i}.5,{labels[i % 2]}\n" for i in range(40)), "mine.csv")
    more = [*labels, *(["c", "d", "e"] if "a" in labels else [7, 8, 9])][: 2 + n_more]
    cache = path.parent / "cache"
    expected = list(stream(path))
    for classes in (more, None, more):
        rows = stream(path, classes=classes, cache=cache)
        for (X, y), (X0, y0) in zip(rows, expected, strict=True):
            np.testing.assert_array_equal(X, X0)
            np.testing.assert_array_equal(y, y0)
        assert rows.classes.tolist() == (labels if classes is None else more)


@pytest.mark.parametrize(
    "form",
    [
        list,
        tuple,
        set,
        frozenset,
        np.array,
        lambda labels: dict.fromkeys(labels).keys(),
        iter,
        lambda x: (i for i in x),
    ],
)
@pytest.mark.parametrize("labels", [[-1, 1], [2, 5, 9]])
def test_classes_may_be_any_collection(write: Write, form: Any, labels: list[int]) -> None:
    path = write("".join(f"{label} 1:{i + 1}\n" for i in range(9) for label in labels))
    rows = stream(path, classes=form(labels), n_features=1)
    assert rows.classes.tolist() == labels
    assert sum(len(y) for _, y in rows) == 9 * len(labels)


@pytest.mark.parametrize(
    "classes", [[None, 1], "ab", 5, [], [[1, 2], [3, 4]], [1, 1], {1: 2, "a": 3}.items(), object()]
)
def test_other_classes_are_refused(write: Write, classes: Any) -> None:
    assert "classes: expected labels without duplicates" in rejected(lambda: stream(write("1 1:1\n"), classes=classes))


def test_index_0_is_refused_with_advice_that_helps(write: Write) -> None:
    path = write("+1 0:0.5 3:2\n-1 2:1\n")
    message = rejected(lambda: list(stream(path, n_features=4, classes=[-1, 1])), "set zero_based=True, or omit")
    assert "the index 0 is not between 1 and 4" in message
    for advice in ({"zero_based": True, "n_features": 4}, {}):
        assert len(list(stream(path, classes=[-1, 1], **advice))) == 1
