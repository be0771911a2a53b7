"""Attacks on data files: damaged and hostile files give the right numbers or one message."""

import bz2
import gzip
import lzma
import os
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from klr_bench.config.models import DatasetConfig
from klr_bench.datasets import class_labels, readers
from klr_bench.datasets.class_labels import LARGEST
from klr_bench.datasets.dataset import dataset_hash, load
from klr_bench.datasets.readers import Arrays, Reading, read
from klr_bench.errors import KlrBenchError
from tests.attack.promise import check_message, rejected
from tests.config.composing import dataset_of

PACK: list[Callable[[bytes], bytes]] = [bytes, gzip.compress, lzma.compress, bz2.compress]
TOKENS = [
    *(b"nan", b"inf", b"-inf", b"1e400", b"-0", b"0x1f", b"1_000", b"1,5", b"\xd9\xa5", b"9" * 400, b"1e-400", b"1d5"),
    *(b"\0", b"\r", b"\r\n", b"\n", b"\n\n", b'"', b'"\n', b"'", b"\x1b[31m", b"\xef\xbb\xbf", b"\xff\xfe", b"\x85"),
    *(b",", b";", b"\t", b"|", b" ", b":", b"#", b"qid:3 ", b"0:1 ", b"-1:2 ", b"2147483647:1 ", b"99999999999:1 "),
    *(b"\xed\xa0\x80", b"\x1f\x8b", b"PK\x03\x04", b"\x93NUMPY", b"<html>", b"a" * 5000),
]


def damaged(content: bytes, draw: Random) -> bytes:
    """Return content that was flipped, cut, enlarged, repeated or swapped in one to three positions."""
    for _ in range(draw.randint(1, 3)):
        at, to = sorted((draw.randrange(len(content) + 1), draw.randrange(len(content) + 1)))
        to = min(to, at + draw.choice([1, 8, 10**6]))
        content = draw.choice(
            [
                lambda a, m, b: a + bytes(byte ^ 1 << draw.randrange(8) for byte in m[:1]) + m[1:] + b,
                lambda a, m, b: a,
                lambda a, m, b: a + b,
                lambda a, m, b: a + draw.choice(TOKENS) + m + b,
                lambda a, m, b: a + m + m + b,
                lambda a, m, b: m + a + b,
                lambda a, m, b: a + draw.randbytes(4) + b,
            ]
        )(content[:at], content[at:to], content[to:])
    return content


def text(kind: str, draw: Random) -> bytes:
    """Return CSV or svmlight text of a few rows of both classes."""
    n, d, names = draw.randint(2, 8), draw.randint(1, 5), draw.choice([["a", "b"], ["1", "-1"], ["0", "1"]])
    X = [[draw.choice([0.0, 1.0, -2.5, 0.125, 1e-3, 3e7]) for _ in range(d)] for _ in range(n)]
    end, base = draw.choice(["\n", "\r\n", "\r"]) if kind == "csv" else "\n", draw.choice([0, 1])
    if kind == "csv":
        lines = [",".join([*map(repr, row), names[i % 2]]) for i, row in enumerate(X)]
        lines = draw.choice([[], [",".join([*(f"x{j}" for j in range(d)), "class"])]]) + lines
    else:
        entries = [" ".join(f"{j + base}:{value!r}" for j, value in enumerate(row) if value or j == 0) for row in X]
        lines = [f"{names[i % 2]} {row}" for i, row in enumerate(entries)]
    return end.join([*lines, *draw.choice([[], [""]])]).encode()


def answered(paths: list[Path], spec: dict[str, Any]) -> Arrays | None:
    """Read a file and check the result; return None if it is refused with a valid message."""
    try:
        arrays = read(paths, Reading(**spec))
    except KlrBenchError as error:
        check_message(str(error), str(paths[0].parent))
        return None
    X, y = arrays.X, arrays.y
    assert (X.dtype, y.dtype) == (np.float32, np.int8)
    assert X.shape[0] == len(y) > 0
    assert (np.abs(X.data if sp.issparse(X) else X) <= LARGEST).all()
    assert set(y.tolist()) <= {-1, 1}
    assert len(arrays.classes) == 2
    return arrays


def slow_csv(content: bytes) -> list[list[float]] | None:
    """Return the numbers of comma-separated text, or None if a simple reader fails."""
    text = content.decode("utf-8-sig", "backslashreplace")
    table = [line.split(",") for line in re.split("\r\n|\n|\r", text) if line.strip()]
    if "class" in table[0] or all(class_labels.parse_number(field) is None for field in table[0]):
        table = table[1:]
    if len({len(row) for row in table}) != 1:
        return None
    try:
        return [[float(field) for field in row[:-1]] for row in table]
    except ValueError:
        return None


def slow_svmlight(content: bytes) -> list[dict[int, float]]:
    """Return the numbers of each row by index."""
    found = []
    for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        pairs = [pair.split(b":") for pair in line.split(b"#")[0].split()[1:] if not pair.startswith(b"qid:")]
        if line.split(b"#")[0].split():
            found.append({int(index): float(value) for index, value in pairs})
    return found


@pytest.mark.exhaustive
@pytest.mark.drawn(0.16)
def test_a_damaged_text_file(draw: Random, tmp_path: Path) -> None:
    path, pack, kind = tmp_path / "a", draw.choice(PACK), draw.choice(["csv", "svmlight"])
    content = damaged(text(kind, draw), draw)
    path.write_bytes(pack(content))
    arrays = answered([path], {"format": kind})
    if arrays is None:
        return
    if kind == "csv":
        expected = slow_csv(content)
        if expected is None:  # another delimiter, or quotes
            assert re.search(rb"[;\t| \"]", content)
        elif not re.search(rb"[;\t|\"]", content):
            np.testing.assert_array_equal(arrays.X, np.array(expected, dtype=np.float32))
        return
    rows = slow_svmlight(content)
    base = 0 if any(0 in row for row in rows) else 1
    assert arrays.X.shape == (len(rows), max(max(row, default=base) for row in rows) - base + 1)
    for i, row in enumerate(rows):
        for index, value in row.items():
            assert arrays.X[i, index - base] == np.float32(value)


NO_FILES: dict[str, tuple[Callable[[Path], None], str]] = {
    "FIFO": (os.mkfifo, "is a named pipe"),
    "folder": (Path.mkdir, "is a folder"),
    "zeros": (lambda path: path.symlink_to("/dev/zero"), "is a device"),
    "dangling": (lambda path: path.symlink_to("nowhere"), "is a link that leads nowhere"),
    "loop": (lambda path: path.symlink_to(path.name), "is a link that leads to itself"),
}


def own_file(path: object) -> DatasetConfig:
    """Return a user's file."""
    return dataset_of({"source": {"format": "file", "path": str(path)}})


@pytest.mark.timeout(60)
@pytest.mark.parametrize("key", ["path", "test_path"])
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_is_no_data(kind: str, key: str, tmp_path: Path) -> None:
    cache, paths = tmp_path / "cache", {"path": tmp_path / "right.csv", key: tmp_path / "wrong.csv"}
    (tmp_path / "right.csv").write_text("1,a\n2,b\n")
    make, reason = NO_FILES[kind]
    make(tmp_path / "wrong.csv")
    spec = dataset_of({"source": {"format": "file", **{name: str(path) for name, path in paths.items()}}})
    for call in (lambda: load("file", spec, cache=cache, mirror=None), lambda: dataset_hash("file", spec)):
        rejected(call, reason)
    assert not cache.exists()


@pytest.mark.parametrize("change", ["rewritten", "removed"])
def test_a_file_that_changes_while_it_is_read(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, layout = tmp_path / "a.csv", readers.layout_of
    path.write_text("x,c\n1,a\n2,b\n")

    def then_changed(*args: Any, **named: Any) -> Any:
        found = layout(*args, **named)
        path.unlink()
        if change == "rewritten":
            path.write_text("x,c\n1,a\n2,b\n3,a\n")
        return found

    monkeypatch.setattr(readers, "layout_of", then_changed)
    reason = "changed while it was being read" if change == "rewritten" else "cannot be read (No such file"
    rejected(lambda: load("file", own_file(path), cache=tmp_path / "cache", mirror=None), reason)
    assert not list((tmp_path / "cache").rglob("*.npy"))
    monkeypatch.undo()
    path.write_text("x,c\n1,a\n2,b\n3,a\n")
    assert load("file", own_file(path), cache=tmp_path / "cache", mirror=None).X.shape == (3, 1)


def zipped_zeros(n: int, piece: bytes) -> bytes:
    """Return a gz whose content is a piece, repeated up to n bytes: its members are equal."""
    return gzip.compress(piece * (2**24 // len(piece))) * (n >> 24)


ROW, BOMB = b"0.5,1,a\n1.5,0,b\n", "decompresses to more than 200 times its size"
BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "rows.gz": (lambda: zipped_zeros(2**32, ROW), BOMB),
    "rows.xz": (lambda: lzma.compress(ROW * 2**18, preset=0) * 99, BOMB),
    "rows.bz2": (lambda: bz2.compress(ROW * 2**15) * 2000, BOMB),
    "zeros.gz": (lambda: zipped_zeros(2**32, b"\0"), "it is not UTF-8 text"),
    "twice.gz": (lambda: gzip.compress(zipped_zeros(2**30, ROW)), "compressed twice"),
    "line.csv": (lambda: b"1," * 2**22, "line 1: expected at most 4,194,304 characters"),
    "line.svm": (lambda: b"1 1:1\n-1 " + b"1:1 " * 2**21, "line 2: expected at most 4,194,304 characters"),
    "quote.csv": (lambda: b'x,c\n1,a\n"' + b"2,b\n" * 2**22, "not delimited text"),
    "index.svm": (lambda: b"1 2147483647:1\n-1 1:1\n", "index 2147483647 is not between 0 and 100000000"),
    "sparse.csv": (lambda: b"", "it is not UTF-8 text"),
}


@pytest.mark.exhaustive
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_quickly(name: str, tmp_path: Path) -> None:
    path, (content, reason) = tmp_path / name, BOMBS[name]
    path.write_bytes(content())
    if name == "sparse.csv":
        os.truncate(path, 2**39)
    rejected(lambda: load("file", own_file(path), cache=tmp_path / "cache", mirror=None), str(path), reason)
