"""The index of a results folder: the tables are the same with it and without it, whatever happens to it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.results import row_cache, store
from klr_bench.results.store import Store
from klr_bench.results.variants import Variant
from tests.results.test_store import BINS, ROWS, TRACES, record, write

TABLES = ("records", "traces", "reliability", "rows")


@pytest.fixture(autouse=True)
def small_folders_have_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "INDEX_FROM", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of cells of all kinds, some with metrics of the user's own, and its index."""
    store = Store(tmp_path)
    for number in range(12):
        one = record(f"k{number:02d}", repeat=number, variant={"G": number % 3}, message="=1, \n2")
        one.metrics |= {"own": 0.1 * number} if number % 4 == 1 else {}
        write(store, one, "c", float(number), TRACES[: number % 3], BINS[: number % 2], ROWS[: number % 2])
    write(store, record("old", dataset="x"), "a", 1.0)
    write(store, record("failed", algorithm="nc", status="error", message="no"), "c")
    (tmp_path / "cells" / "damaged.json").write_bytes(b"{")
    store.rebuild()
    return tmp_path


def tables(folder: Path) -> dict[str, bytes]:
    return {name: (folder / f"{name}.csv").read_bytes() for name in TABLES}


def rebuilt(folder: Path) -> dict[str, bytes]:
    """Return the tables that a process makes which starts here."""
    for name in TABLES:
        (folder / f"{name}.csv").unlink()
    summary = Store(folder).rebuild()
    assert summary.unreadable == ("damaged.json",)
    return tables(folder)


def without_index(folder: Path) -> dict[str, bytes]:
    copy = folder.parent / f"{folder.name}-copy"
    shutil.copytree(folder / "cells", copy / "cells")
    Store(copy).rebuild()
    return tables(copy)


def read_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of the cells whose files are read from now on."""
    read: list[str] = []
    real = store._read
    monkeypatch.setattr(store, "_read", lambda path, key: (read.append(key), real(path, key))[1])
    return read


def test_a_new_process_reads_no_file_that_the_index_knows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, read = tables(folder), read_files(monkeypatch)
    assert rebuilt(folder) == before
    assert read == ["damaged"]


def test_the_tables_are_those_without_an_index(folder: Path) -> None:
    assert (folder / "cells.index").exists()
    assert rebuilt(folder) == without_index(folder)


def test_what_is_new_changed_or_gone_is_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = record("k03", repeat=3, variant={"G": 0}, accuracy=0.6)
    write(Store(folder), changed, "c", 3.0)
    write(Store(folder), record("new", repeat=99), "c", 20.0)
    (folder / "cells" / "k05.json").unlink()
    read = read_files(monkeypatch)
    found = rebuilt(folder)
    assert sorted(read) == ["damaged", "k03", "new"]
    assert found == without_index(folder)
    assert b"k05" not in found["records"]
    assert found["records"].count(b",0.6,") == 1


def test_what_is_finished_and_its_numbers_are_those_of_the_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, store = read_files(monkeypatch), Store(folder)
    assert store.finished("k03")
    assert not store.finished("failed")
    assert store.metric("k01", "accuracy") == 0.1 + 0.2
    assert store.metric("k01", "own") == 0.1
    assert [store.metric("k02", name) for name in ("own", "log_loss")] == [None, None]
    assert read == []
    assert not store.finished("nobody")


def test_an_index_is_written_anew_when_a_tenth_is_new(folder: Path) -> None:
    written = (folder / "cells.index").stat().st_ino
    write(Store(folder), record("one", repeat=20), "c", 20.0)
    Store(folder).rebuild()
    assert (folder / "cells.index").stat().st_ino == written
    write(Store(folder), record("two", repeat=21), "c", 21.0)
    Store(folder).rebuild()
    assert (folder / "cells.index").stat().st_ino != written


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe" * 100, b"[0]\n[]\n", b"[" * 100_000], ids=["empty", "binary", "form", "deep"]
)
def test_an_index_that_cannot_be_read_changes_no_table(folder: Path, content: bytes) -> None:
    before = tables(folder)
    (folder / "cells.index").write_bytes(content)
    assert rebuilt(folder) == before


@pytest.mark.exhaustive
def test_no_flipped_bit_in_an_index_changes_a_table(folder: Path) -> None:
    before, index = tables(folder), folder / "cells.index"
    content, draw = index.read_bytes(), Random(0)
    for _ in range(100):
        flipped = bytearray(content)
        flipped[draw.randrange(len(flipped))] ^= 1 << draw.randrange(8)
        index.write_bytes(flipped)
        assert rebuilt(folder) == before


def test_a_cell_that_is_rewritten_with_its_size_and_time_is_read_again(folder: Path) -> None:
    path = folder / "cells" / "k01.json"
    state, content = path.stat(), path.read_bytes()
    assert content.count(b'"accuracy": 0.30000000000000004') == 1
    with path.open("r+b") as file:
        file.write(content.replace(b'"accuracy": 0.3000', b'"accuracy": 0.2000'))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert b",0.20000000000000004," in rebuilt(folder)["records"]


NUMBERS = st.one_of(st.integers(-5, 5), st.floats(allow_nan=False), st.text(max_size=3), st.none())


@given(
    values=st.dictionaries(st.text("abG", min_size=1), NUMBERS, max_size=3),
    own=st.dictionaries(st.text("xyz", min_size=1), st.floats(allow_nan=False), max_size=2),
    text=st.text(max_size=10),
)
def test_lines_come_back_as_they_were(
    values: dict[str, Any], own: dict[str, float], text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    one = record("k", variant=values, message=text)
    one.metrics |= own
    found = row_cache.lines_of(store.CellFile(one, "c", 1.0, TRACES, BINS, ROWS), one.variant)
    path = tmp_path_factory.mktemp("index") / "cells.index"
    row_cache.write_index(path, {"k.json": ((1, 2, 3), found)})
    ((stamp, back),) = row_cache.read_index(path).values()
    assert (stamp, back) == ((1, 2, 3), found)
    assert isinstance(back.variant, Variant)
