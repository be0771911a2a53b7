"""Streams of chunks: the rows of scikit-learn's and NumPy's readers, whatever the blocks, chunks, files and caches."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from klr_bench import OSKL, stream
from klr_bench.datasets import stream_cache
from klr_bench.datasets.readers import chunks as reader_chunks
from klr_bench.datasets.readers import csv, svmlight
from klr_bench.errors import KlrBenchError
from tests.attack.promise import rejected
from tests.datasets.conftest import Write
from tests.datasets.samples import csv_text, rows_of, svmlight_text


def refusal(path: Any, **parameters: Any) -> str:
    return rejected(lambda: list(stream(path, **parameters)))


TEXTS = pytest.mark.parametrize("text", [svmlight_text(), csv_text()], ids=["svmlight", "csv"])


def check_rows(found: tuple[np.ndarray, np.ndarray], expected: tuple[np.ndarray, np.ndarray]) -> None:
    for ours, right in zip(found, expected, strict=True):
        assert ours.dtype == right.dtype
        np.testing.assert_array_equal(ours, right)


# -- the same rows as other readers ----------------------------------------------------------------------


@pytest.mark.parametrize("zero_based", [False, True])
@pytest.mark.parametrize("chunk_rows", [1, 7, 1000])
def test_svmlight_is_what_scikit_learn_reads(write: Write, block: None, chunk_rows: int, zero_based: bool) -> None:
    path = write(svmlight_text(zero_based=zero_based))
    X, y = load_svmlight_file(str(path), dtype=np.float32, zero_based=zero_based)
    rows = stream(path, chunk_rows)
    chunks = list(rows)
    assert [len(y) for _, y in chunks] == [min(chunk_rows, 200 - i) for i in range(0, 200, chunk_rows)]
    for part, _ in chunks:
        assert part.dtype == np.float32
        assert part.indices.dtype == np.int32
        assert part.has_sorted_indices
        assert (np.concatenate([np.diff(row) for row in np.split(part.indices, part.indptr[1:-1])]) > 0).all()
        assert part.shape[1] == rows.n_features == 9
    np.testing.assert_array_equal(rows_of(chunks)[0], X.toarray())
    np.testing.assert_array_equal(rows_of(chunks)[1], y)
    np.testing.assert_array_equal(rows.classes, [0, 1, 2])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("chunk_rows", [1, 7, 1000])
def test_csv_is_what_numpy_reads(write: Write, block: None, chunk_rows: int, delimiter: str) -> None:
    path = write(csv_text(delimiter=delimiter))
    table = np.loadtxt(path, delimiter=delimiter)
    rows = stream(path, chunk_rows, format="csv")
    chunks = list(rows)
    assert [len(y) for _, y in chunks] == [min(chunk_rows, 200 - i) for i in range(0, 200, chunk_rows)]
    assert all(X.dtype == np.float32 and X.flags.c_contiguous for X, _ in chunks)
    np.testing.assert_array_equal(rows_of(chunks)[0], table[:, :-1].astype(np.float32))
    np.testing.assert_array_equal(rows_of(chunks)[1], table[:, -1])
    assert rows.n_features == 9


def test_labels_may_be_words(write: Write, block: None) -> None:
    csv = stream(write("g,1,2\nh,3,4\n7,5,6\n"), label_column=0, format="csv")
    assert rows_of(csv)[1].tolist() == ["g", "h", "7"]
    assert csv.classes.tolist() == ["7", "g", "h"]
    words = stream(write("spam 1:1\nham 1:2\nspam\n"))
    assert rows_of(words)[1].tolist() == ["spam", "ham", "spam"]
    assert words.classes.tolist() == ["ham", "spam"]


def test_labels_have_the_values_of_the_classes_that_are_given(write: Write) -> None:
    path = write("+1 1:1\n-1.0 1:2\n1e0 1:3\n")
    rows = stream(path, classes=[1, -1])
    assert rows.classes.dtype == np.int64
    assert rows.classes.tolist() == [-1, 1]
    assert [y.tolist() for _, y in rows] == [[1, -1, 1]]
    positive = stream(path, positive=-1)
    assert positive.classes.tolist() == [-1, 1]
    assert [y.tolist() for _, y in positive] == [[-1, 1, -1]]


def test_more_labels_than_are_compared_in_turn(write: Write, block: None) -> None:
    labels = [*range(300), *range(299, -1, -1)]
    path = write("".join(f"{label} 1:1\n" for label in labels))
    assert rows_of(stream(path))[1].tolist() == labels


def test_a_header_names_the_label_column(write: Write) -> None:
    path = write("a,label,b\n1,0,2\n3,1,4\n")
    np.testing.assert_array_equal(rows_of(stream(path, label_column="label"))[0], [[1, 2], [3, 4]])


def test_indices_from_0(write: Write) -> None:
    path = write("1 2:1\n0 0:3\n")
    found = stream(path)
    assert found.n_features == 3
    np.testing.assert_array_equal(rows_of(found)[0], [[0, 0, 1], [3, 0, 0]])
    given = stream(path, n_features=4, classes=[0, 1], zero_based=True)
    np.testing.assert_array_equal(rows_of(given)[0], [[0, 0, 1, 0], [3, 0, 0, 0]])
    message = refusal(path, n_features=4, classes=[0, 1])
    assert f"{path}, line 2: the index 0 is not between 1 and 4" in message
    shifted = stream(write("1 2:1\n0 1:3\n"), zero_based=True)
    np.testing.assert_array_equal(rows_of(shifted)[0], [[0, 0, 1], [0, 3, 0]])


def test_lines_that_are_left_to_python_count_for_the_width(write: Write) -> None:
    tie = "1.00000005960464477539"
    np.testing.assert_array_equal(rows_of(stream(write(f"1 1:2\n0 4:{tie}\n")))[0], [[2, 0, 0, 0], [0, 0, 0, 1]])
    ((X, _),) = stream(write(f"1 1:2\n0 0:{tie} 1:1e-70\n"))
    np.testing.assert_array_equal(X.toarray(), [[0, 2], [1, 0]])
    assert X.nnz == 2


# -- files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_compressed_files(write: Write, block: None, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    packed = write(pack(svmlight_text()), f"packed{suffix}")
    check_rows(rows_of(stream(packed, 64)), rows_of(stream(write(svmlight_text()), 64)))


@TEXTS
def test_chunks_run_on_across_files(write: Write, tmp_path: Path, text: bytes) -> None:
    lines = text.splitlines(keepends=True)
    expected = rows_of(stream(write(text)))
    parts = [
        write(b"".join(lines[begin:end]).rstrip(), f"part-{i}.txt")
        for i, (begin, end) in enumerate([(0, 1), (1, 90), (90, 190), (190, 200)])
    ]
    for path in (
        parts,
        str(tmp_path / "part-*.txt"),
        tmp_path / "part-?.txt",
        [parts[0], str(tmp_path / "part-[1-3]*")],
    ):
        chunks = list(stream(path, 64))
        assert [len(y) for _, y in chunks] == [64, 64, 64, 8]
        check_rows(rows_of(chunks), expected)


def test_each_file_may_have_a_header(write: Write) -> None:
    first, second = write("a,b,c\n1,2,0\n", "1"), write("a,b,c\n3,4,1\n", "2")
    third = write("5,6,1\n", "3")
    np.testing.assert_array_equal(
        rows_of(stream([first, second, third], label_column="c"))[0], [[1, 2], [3, 4], [5, 6]]
    )


@pytest.mark.parametrize("skip_rows", [0, 1, 63, 64, 199, 200, 300])
@pytest.mark.parametrize("cached", [False, True])
def test_rows_may_be_skipped(write: Write, tmp_path: Path, block: None, skip_rows: int, cached: bool) -> None:
    path, cache = write(svmlight_text()), tmp_path / "cache" if cached else None
    X, y = rows_of(stream(path, cache=cache))
    chunks = list(stream(path, 64, skip_rows=skip_rows, cache=cache))
    assert sum(len(y) for _, y in chunks) == max(0, 200 - skip_rows)
    assert all(len(y) == 64 for _, y in chunks[:-1])
    if chunks:
        check_rows(rows_of(chunks), (X[skip_rows:], y[skip_rows:]))


def test_memory_stays_bounded(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the file, some blocks and one chunk are in memory."""
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


# -- the cache ----------------------------------------------------------------------------------------------


@pytest.fixture
def no_parsing(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what makes every later reading of text fail."""

    def forbid() -> None:
        def refuse(path: Path) -> None:
            pytest.fail("text was read again")

        monkeypatch.setattr(svmlight, "blocks", refuse)
        monkeypatch.setattr(csv, "blocks", refuse)

    return forbid


@TEXTS
@pytest.mark.parametrize("known", [False, True])
def test_a_second_pass_reads_the_cache(
    write: Write, tmp_path: Path, no_parsing: Callable[[], None], text: bytes, known: bool
) -> None:
    path, given = write(text), {"classes": [0, 1, 2], "n_features": 9} if known else {}
    plain = rows_of(stream(path, **given))
    first = rows_of(stream(path, 30, cache=tmp_path / "cache", **given))
    no_parsing()
    for chunk_rows in (1, 7, 1000):
        second = rows_of(stream(path, chunk_rows, cache=tmp_path / "cache", **given))
        check_rows(first, plain)
        check_rows(second, plain)
    for X, y in stream(path, cache=tmp_path / "cache", **given):
        (X.data if sp.issparse(X) else X)[:] = 0  # a chunk is the caller's own
        y[:] = 0
    np.testing.assert_array_equal(rows_of(stream(path, cache=tmp_path / "cache"))[0], plain[0])


def test_the_cache_serves_other_parameters(write: Write, tmp_path: Path, no_parsing: Callable[[], None]) -> None:
    path, cache = write("1 2:1\n0 1:3\nno 3:1\n"), tmp_path / "cache"
    rows_of(stream(path, cache=cache))
    with pytest.raises(KlrBenchError, match="line 3: the label 'no' is none of the classes 0, 1; "):
        list(stream(path, cache=cache, classes=[0, 1]))
    with pytest.raises(KlrBenchError, match="line 3: the index 3 is not between 1 and 2; "):
        list(stream(path, cache=cache, n_features=2))
    no_parsing()
    classes = ["no", "0", "1"]
    X, y = rows_of(stream(path, cache=cache, classes=classes, n_features=5, zero_based=True))
    np.testing.assert_array_equal(X, [[0, 0, 1, 0, 0], [0, 3, 0, 0, 0], [0, 0, 0, 1, 0]])
    assert y.tolist() == ["1", "0", "no"]


@pytest.mark.parametrize("known", [False, True])
def test_a_pass_that_is_cut_short_leaves_nothing_half_read(write: Write, tmp_path: Path, known: bool) -> None:
    path, given = write(svmlight_text()), {"classes": [0, 1, 2], "n_features": 9} if known else {}
    rows = stream(path, 30, cache=tmp_path / "cache", **given)
    chunks = iter(rows)
    next(chunks)
    del chunks
    expected = rows_of(stream(path, 30, **given))
    for _ in range(2):
        check_rows(rows_of(rows), expected)


def test_what_a_killed_process_left_is_removed(write: Write, tmp_path: Path) -> None:
    path, cache = write(svmlight_text()), tmp_path / "cache"
    list(stream(path, cache=cache))
    (folder,) = [entry for entry in cache.iterdir() if entry.is_dir()]
    folder.rename(f"{folder}.part")
    (folder.with_name(f"{folder.name}.part") / "meta.json").unlink()
    expected = rows_of(stream(path))
    np.testing.assert_array_equal(rows_of(stream(path, cache=cache))[0], expected[0])
    assert [entry.name for entry in cache.iterdir() if entry.is_dir()] == [folder.name]


@pytest.mark.parametrize("name", ["codes", "ends", "indices", "values", "meta.json"])
def test_a_damaged_cache_is_made_anew(write: Write, tmp_path: Path, name: str) -> None:
    path, cache = write(svmlight_text()), tmp_path / "cache"
    expected = rows_of(stream(path, cache=cache))
    (file,) = cache.glob(f"*/{name}")
    file.write_bytes(file.read_bytes()[:-9])
    np.testing.assert_array_equal(rows_of(stream(path, cache=cache))[0], expected[0])
    assert len(list(cache.glob("*/meta.json"))) == 1


@pytest.mark.parametrize("same_time", [False, True])
def test_a_file_that_is_rewritten_with_its_size_is_read_again(write: Write, tmp_path: Path, same_time: bool) -> None:
    path, cache = write("1 1:1\n0 2:2\n"), tmp_path / "cache"
    rows = stream(path, cache=cache)
    list(rows)
    time = path.stat().st_mtime_ns if same_time else 1
    write("1 1:5\n0 2:6\n")
    os.utime(path, ns=(time, time))
    np.testing.assert_array_equal(rows_of(rows)[0], [[5, 0], [0, 6]])
    np.testing.assert_array_equal(rows_of(stream(path, cache=cache))[0], [[5, 0], [0, 6]])


def flipped(path: Path, bit: int) -> None:
    """Flip a bit of a file; its size and time stay."""
    state, content = path.stat(), bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


@pytest.mark.exhaustive
@TEXTS
def test_no_flipped_bit_in_the_cache_changes_a_row(write: Write, tmp_path: Path, text: bytes, monkeypatch) -> None:
    monkeypatch.setattr(stream_cache, "CHECKED_BYTES", 1000)
    path, cache = write(text), tmp_path / "cache"
    expected = rows_of(stream(path, cache=cache))
    (folder,) = [entry for entry in cache.iterdir() if entry.is_dir()]
    files = {file.name: file.read_bytes() for file in sorted(folder.iterdir())}
    draw = np.random.default_rng(0)
    for number in range(150):
        name = [*files][number % len(files)]
        flipped(folder / name, int(draw.integers(8 * len(files[name]))))
        check_rows(rows_of(stream(path, 30, cache=cache)), expected)
        (folder / name).write_bytes(files[name])


def test_a_block_that_is_damaged_is_read_from_the_text_in_the_middle_of_a_pass(
    write: Write, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(stream_cache, "CHECKED_BYTES", 100)
    path, cache = write(svmlight_text()), tmp_path / "cache"
    expected = [X.toarray() for X, _ in stream(path, 7, cache=cache, skip_rows=5)]
    (codes,) = cache.glob("*/codes")
    flipped(codes, 8 * 450)
    found = [X.toarray() for X, _ in stream(path, 7, cache=cache, skip_rows=5)]
    for ours, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, right)


def test_two_passes_at_once_share_a_cache(write: Write, tmp_path: Path) -> None:
    path = write(svmlight_text())
    passes = [iter(stream(path, 30, cache=tmp_path, classes=[0, 1, 2], n_features=9)) for _ in range(2)]
    chunks: list[list[Any]] = [[next(one)] for one in passes]
    for one, parts in zip(passes, chunks, strict=True):
        parts.extend(one)
    expected = rows_of(stream(path, 30))
    for parts in chunks:
        np.testing.assert_array_equal(rows_of(parts)[0], expected[0])


def test_a_cache_that_cannot_be_written_is_one_message(write: Write) -> None:
    path = write("1 1:1\n0 2:2\n")
    assert "choose another one with cache=FOLDER." in refusal(path, cache=path / "cache")


# -- refusals -----------------------------------------------------------------------------------------------

GOOD_SVMLIGHT = "+1 1:0.5 3:2\n# comment\n-1 2:1\n"


def test_an_index_beyond_the_declared_features(write: Write, block: None) -> None:
    path = write(GOOD_SVMLIGHT)
    for classes in (None, [-1, 1]):
        message = refusal(path, n_features=2, classes=classes)
        assert message.startswith(
            f"{path}, line 1: the index 3 is not between 1 and 2; mend the line, or set n_features="
        )


def test_an_unknown_label(write: Write, block: None) -> None:
    for path, line in ((write(GOOD_SVMLIGHT, "svm"), 3), (write("1,1,1\n2,2,-1\n", "csv"), 2)):
        message = refusal(path, classes=[1, 2], n_features=3 if line == 3 else 2)
        assert (
            message
            == f"{path}, line {line}: the label '-1' is none of the classes 1, 2; mend the line or set classes=."
        )


@pytest.mark.parametrize(
    ("content", "parameters", "reason"),
    [
        ("a,b\n", {}, "no rows."),
        ("1\n-1\n", {"format": "svmlight"}, "no row has a feature"),
        ("1,2\n3,\n", {}, "set label_column= if the labels stand elsewhere"),
        ("1,2\n3,4\n", {"n_features": 5}, "1 columns of features, expected n_features=5"),
        ("1,2\n3,4\n", {"label_column": 2}, "no column 2 for the labels"),
        (GOOD_SVMLIGHT, {"positive": 7}, "no row has the label '7' (positive=)."),
    ],
)
def test_other_refusals_name_the_file(write: Write, content: str, parameters: dict[str, Any], reason: str) -> None:
    path = write(content)
    message = refusal(path, **parameters)
    assert message.startswith(str(path))
    assert reason in message


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"chunk_rows": 0}, "chunk_rows=0: expected a whole number, 1 or more."),
        ({"chunk_rows": 1.5}, "chunk_rows=1.5: expected a whole number, 1 or more."),
        ({"skip_rows": -1}, "skip_rows=-1: expected a whole number, 0 or more."),
        ({"n_features": True}, "n_features=True: expected a whole number, 1 to 100000000."),
        ({"n_features": 10**9}, "n_features=1000000000: expected a whole number, 1 to 100000000."),
        ({"format": "svm"}, "format='svm': expected 'svmlight', 'csv' or None."),
        ({"classes": []}, "classes=[]: expected labels, each once, such as [-1, 1]."),
        ({"classes": ["1", "1.0"]}, "classes=['1', '1.0']: expected labels, each once"),
    ],
)
def test_parameters_are_checked(write: Write, parameters: dict[str, Any], reason: str) -> None:
    assert reason in refusal(write(GOOD_SVMLIGHT), **parameters)


def test_files_that_cannot_be_read(tmp_path: Path, write: Write) -> None:
    assert "cannot be read" in refusal(tmp_path / "absent")
    assert "no file; expected a file, a list of files, or a pattern" in refusal(tmp_path / "*.svm")
    assert "no file; " in refusal([])
    cut = write(gzip.compress(svmlight_text(2000))[:-100], "cut.gz")
    assert refusal(cut).startswith(f"{cut}: truncated or corrupted")
    twice = write(gzip.compress(gzip.compress(svmlight_text())), "twice.gz")
    assert "compressed twice" in refusal(twice)


def test_a_line_without_end_is_refused(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_chunks, "BLOCK", 100)
    monkeypatch.setattr(reader_chunks, "LONGEST_LINE", 1000)
    path = write("1 1:1\n1 " + " ".join(f"{i}:1" for i in range(1, 1000)) + "\n")
    assert refusal(path).startswith(f"{path}, line 2: more than 1,000 characters")


# -- with an estimator -------------------------------------------------------------------------------------


def test_a_stopped_fit_goes_on_and_is_the_fit_of_all_rows(write: Write, tmp_path: Path) -> None:
    path = write("".join(f"{i % 2} 1:{i % 7} 2:{i % 5}\n" for i in range(300)))
    X, y = rows_of(stream(path))
    expected = OSKL(gamma=0.5, random_state=0).partial_fit(X, y)
    rows, learner = stream(path, 50), OSKL(gamma=0.5, random_state=0)
    for _, (X, y) in zip(range(3), rows, strict=False):
        learner.partial_fit(X, y, classes=rows.classes)
    for X, y in stream(path, 50, skip_rows=150):
        learner.partial_fit(X, y)
    np.testing.assert_allclose(learner.dual_coef_, expected.dual_coef_)
