"""The index of a results folder: the tables are the same with and without it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random

import pytest

from klr_bench.results import store
from klr_bench.results.store import Store
from tests.results.test_store import BINS, ROWS, TRACES, record, write

TABLES = ("records", "traces", "reliability", "rows")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A results folder with an index, all kinds of cells, and user metrics in some of them."""
    monkeypatch.setattr(store, "INDEX_FROM", 1)
    results = Store(tmp_path / "results")
    for number in range(12):
        one = record(f"k{number:02d}", repeat=number, variant={"G": number % 3}, message="=1, \n2")
        one.metrics |= {"own": 0.1 * number, "whole": number} if number % 4 == 1 else {}
        write(results, one, "c", float(number), TRACES[: number % 3], BINS[: number % 2], ROWS[: number % 2])
    write(results, record("old", dataset="x"), "a", 1.0)
    write(results, record("failed", algorithm="nc", status="error", message="no"), "c")
    (results.cells / "damaged.json").write_bytes(b"{")
    results.rebuild()
    return results.folder


@pytest.fixture
def reads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The cells whose files are read from now on."""
    keys: list[str] = []
    real = store._read
    monkeypatch.setattr(store, "_read", lambda path, key: (keys.append(key), real(path, key))[1])
    return keys


def tables(folder: Path) -> dict[str, bytes]:
    return {name: (folder / f"{name}.csv").read_bytes() for name in TABLES}


def rebuilt(folder: Path) -> dict[str, bytes]:
    """Return the tables that a new process makes."""
    for name in TABLES:
        (folder / f"{name}.csv").unlink()
    assert Store(folder).rebuild().unreadable == ("damaged.json",)
    return tables(folder)


def without_index(folder: Path) -> dict[str, bytes]:
    copy = folder.parent / "copy"
    shutil.copytree(folder / "cells", copy / "cells")
    Store(copy).rebuild()
    return tables(copy)


def test_a_new_process_reads_no_file_that_the_index_knows(folder: Path, reads: list[str]) -> None:
    before, results = tables(folder), Store(folder)
    assert rebuilt(folder) == before
    assert reads == ["damaged"]
    assert results.finished("k03")
    assert not results.finished("failed")
    assert reads == ["damaged"]
    assert before == without_index(folder)


def test_new_changed_and_removed_cells_are_noticed(folder: Path, reads: list[str]) -> None:
    write(Store(folder), record("k03", repeat=3, variant={"G": 0}, accuracy=0.6), "c", 3.0)
    write(Store(folder), record("new", repeat=99), "c", 20.0)
    (folder / "cells" / "k05.json").unlink()
    path = folder / "cells" / "k01.json"
    state, content = path.stat(), path.read_bytes()
    with path.open("r+b") as file:
        file.write(content.replace(b'"accuracy": 0.3000', b'"accuracy": 0.2000'))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))  # the same size and time as before
    made = rebuilt(folder)
    assert sorted(reads) == ["damaged", "k01", "k03", "new"]
    assert made == without_index(folder)
    assert b"k05" not in made["records"]
    assert made["records"].count(b",0.6,") == made["records"].count(b",0.20000000000000004,") == 1


def test_an_index_is_written_again_when_a_tenth_is_new(folder: Path) -> None:
    inode = (folder / "cells.index").stat().st_ino
    write(Store(folder), record("one", repeat=20), "c", 20.0)
    Store(folder).rebuild()
    assert (folder / "cells.index").stat().st_ino == inode
    write(Store(folder), record("two", repeat=21), "c", 21.0)
    Store(folder).rebuild()
    assert (folder / "cells.index").stat().st_ino != inode


def test_a_damaged_index_changes_no_table(folder: Path) -> None:
    before, index, draw = tables(folder), folder / "cells.index", Random(0)
    content = index.read_bytes()
    for _ in range(20):
        flipped = bytearray(content)
        flipped[draw.randrange(len(flipped))] ^= 1 << draw.randrange(8)
        index.write_bytes(flipped)
        assert rebuilt(folder) == before
    for other in (b"", b"\xff\xfe" * 100, b"[0]\n[]\n", b"[" * 100_000):
        index.write_bytes(other)
        assert rebuilt(folder) == before
