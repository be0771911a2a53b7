"""Cells land whole or not at all; records.csv is what the cells say, whoever rebuilds it and how often."""

from __future__ import annotations

import csv
import json
import math
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.errors import KlrBenchError
from klr_bench.files import read_json, read_regular, write_atomic, write_json
from klr_bench.metrics.labels import METRICS
from klr_bench.report.load import load_results, read_results
from klr_bench.results import store as store_module
from klr_bench.results.migrate import parse_variant
from klr_bench.results.record import LATER
from klr_bench.results.store import (
    COLUMNS,
    TRACE_COLUMNS,
    Bin,
    CellFile,
    Checkpoint,
    PlanePoint,
    Record,
    Store,
    read_variant,
)
from klr_bench.results.variants import Variant, variant_text
from tests.conftest import needs_proc

ROOT = Path(__file__).resolve().parents[2]
TRACES = [(10, 0.5, "accuracy", 0.75), (20, 1.0, "accuracy", 0.8)]
BINS = [(0, 5, 0.03, 0.2), (14, 2, 0.95, 1.0)]
ROWS = [(0.5, -1.5, 1)]
MANIFEST = {
    "experiment": "demo",
    "config": {"title": "Demo", "repeats": 1, "datasets": {}, "algorithms": {}, "sweep": {}},
}


def record(key: str = "k0", **changes: Any) -> Record:
    """A record with other values in its fields, and in its metrics."""
    params = {"G": 2, "R": 100.0}
    base = Record(key, "demo", "magic", "oskl", Variant({"G": 2}), params, 0, seed=0, status="ok")
    metrics = {"accuracy": 0.1 + 0.2, "n_support": 7} | {k: v for k, v in changes.items() if k in METRICS}
    other = {name: value for name, value in changes.items() if name not in METRICS}
    if "variant" in other:
        other["variant"] = Variant(other["variant"])
    return replace(base, metrics=metrics, **other)


def write(store: Store, record: Record, config_hash: str = "c", created: float = 1.0, *more: Any) -> None:
    store.write_cell(CellFile(record, config_hash, created, *more))


def rows(store: Store) -> list[dict[str, str]]:
    with (store.folder / "records.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def python(code: str, *arguments: object, **pipes: int) -> subprocess.Popen[bytes]:
    """Run code in a process of its own, from the root of the checkout."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, **pipes)


def test_the_columns_are_those_of_schema_version_2() -> None:
    identity = "key experiment dataset algorithm variant params repeat seed status message host cpu"
    metrics = [name for name, metric in METRICS.items() if metric.stored]
    assert (store_module.SCHEMA_VERSION, " ".join(COLUMNS)) == (2, " ".join([identity, *metrics]))


def test_a_cell_comes_back_as_it_was_written(tmp_path: Path) -> None:
    store = Store(tmp_path / "results" / "demo")
    write(store, record(message='a "quoted",\nmessage ±'), "c", 1.0, TRACES)
    assert store.read_cell("k0") == record(message='a "quoted",\nmessage ±')
    assert store.read_cell("k1") is None


def test_numpy_scalars_become_numbers(tmp_path: Path) -> None:
    store = Store(tmp_path)
    numbers: dict[str, Any] = {
        "accuracy": np.float32(0.5),
        "n_support": np.int64(3),
        "params": {"R": np.float64(10)},
    }
    write(store, record(**numbers), "c", 1.0)
    assert store.read_cell("k0") == record(accuracy=0.5, n_support=3, params={"R": 10.0})


@pytest.mark.parametrize(("status", "finished"), [("ok", True), ("timeout", True), ("error", False), ("killed", False)])
def test_what_failed_is_not_finished(tmp_path: Path, status: str, finished: bool) -> None:
    store = Store(tmp_path)
    write(store, record(status=status), "c", 1.0)
    assert store.finished("k0") is finished


def test_records_keep_every_digit(tmp_path: Path) -> None:
    store = Store(tmp_path)
    write(store, record(fit_time_s=1 / 3), "c", 1.0, TRACES)
    store.rebuild()
    assert rows(store)[0]["accuracy"] == repr(0.1 + 0.2)
    store.write_manifest(MANIFEST)
    found = read_results(tmp_path)
    frame = found.records
    assert frame["fit_time_s"][0] == 1 / 3
    assert frame["variant"][0] == {"G": 2}
    assert frame["params"][0] == {"G": 2, "R": 100.0}
    assert np.isnan(frame["auc"][0])
    assert found.traces.to_numpy().tolist() == [["k0", *point] for point in TRACES]


def test_bins_are_rebuilt_from_the_cells(tmp_path: Path) -> None:
    store = Store(tmp_path)
    write(store, record("k0", ece=0.1), "c", 1.0, [], BINS)
    write(store, record("k1", repeat=1), "c", 1.0)
    store.rebuild()
    store.write_manifest(MANIFEST)
    assert read_results(tmp_path).reliability.to_numpy().tolist() == [["k0", *entry] for entry in BINS]
    (tmp_path / "reliability.csv").unlink()
    assert read_results(tmp_path).reliability.empty


def test_variants_that_are_equal_and_spelt_differently_stay_as_they_are(tmp_path: Path) -> None:
    store = Store(tmp_path)
    spelt: list[Any] = [
        {"G": 1},
        {"G": 1.0},
        {"G": True},
        {"a": 0.0, "b": 1},
        {"b": 1, "a": -0.0},
        {"G": "1"},
        {"G": [1]},
    ]
    for number, variant in enumerate([*spelt, *spelt]):
        write(store, record(f"k{number:02d}", variant=variant))
    Store(tmp_path).rebuild()
    found = {row["key"]: row["variant"] for row in rows(store)}
    assert found == {f"k{number:02d}": json.dumps(variant) for number, variant in enumerate([*spelt, *spelt])}


def test_files_of_every_size_are_read_to_their_end(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for size in (2, 2**16, 3 * 2**16 + 1):
        path.write_bytes(b'"' + b"x" * (size - 2) + b'"')
        assert read_json(path) == "x" * (size - 2)
        assert len(read_regular(path, size)) == size
        with pytest.raises(KlrBenchError, match=f"expected a file of at most {size - 1:,} bytes, got {size:,}"):
            read_regular(path, size - 1)


@needs_proc
def test_a_file_whose_size_is_unknown_is_read_to_its_end() -> None:
    assert read_regular("/proc/self/stat", 2**16).startswith(str(os.getpid()).encode())


def test_cells_of_before_there_were_bins_are_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    write(store, record(), "c", 1.0, TRACES)
    path = store.cells / "k0.json"
    content = read_json(path)
    assert content.pop("reliability") == []
    write_json(path, content)
    assert Store(tmp_path).rebuild().listed == 1


def test_cells_of_before_there_were_machines_are_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    write(store, record(host="here", cpu="A CPU", load=0.25), "c", 1.0)
    path = tmp_path / "cells" / "k0.json"
    found = store.read_cell("k0")
    assert found is not None
    assert (found.host, found.cpu, found.metrics["load"]) == ("here", "A CPU", 0.25)
    content = json.loads(path.read_text())
    del content["record"]["host"], content["record"]["cpu"], content["record"]["metrics"]["load"]
    write_json(path, content)
    earlier = store.read_cell("k0")
    assert earlier is not None
    assert (earlier.host, earlier.cpu) == ("", "")
    content["record"]["host"] = 7
    write_json(path, content)
    assert store.read_cell("k0") is None


def test_rows_are_sorted_and_the_file_does_not_depend_on_the_order_of_writing(tmp_path: Path) -> None:
    cells = [
        record(f"k{number}", dataset=dataset, variant=variant, repeat=repeat)
        for number, (dataset, variant, repeat) in enumerate(
            (d, v, r) for d in ("magic", "adult") for v in ({"G": 10}, {"G": 2}, {"G": 1}, {"G": "cv"}) for r in (10, 9)
        )
    ]
    contents = []
    for name, order in (("a", cells), ("b", cells[::-1])):
        store = Store(tmp_path / name)
        for place, cell in enumerate(order):
            write(store, cell, "c", float(place), TRACES)
        store.rebuild()
        contents.append([(store.folder / file).read_bytes() for file in ("records.csv", "traces.csv")])
    assert contents[0] == contents[1]
    listed = [(row["dataset"], read_variant(row["variant"])["G"], row["repeat"]) for row in rows(Store(tmp_path / "a"))]
    assert listed[:4] == [
        ("adult", 1, "9"),
        ("adult", 1, "10"),
        ("adult", 2, "9"),
        ("adult", 2, "10"),
    ]
    assert [variant for _, variant, _ in listed[8::2]] == [1, 2, 10, "cv"]


def test_only_the_newest_configuration_of_a_column_is_listed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for repeat in (0, 1):
        write(store, record(f"old{repeat}", repeat=repeat), "old", 1.0 + repeat, TRACES)
    write(store, record("new0"), "new", 3.0)
    write(store, record("other", variant={"G": 4}), "old", 1.0)
    summary = store.rebuild()
    store.write_manifest(MANIFEST)
    assert [row["key"] for row in rows(store)] == ["new0", "other"]
    assert read_results(tmp_path).traces.empty
    assert (summary.listed, summary.older) == (2, {("magic", "oskl", Variant({"G": 2}), "old"): 2})
    assert summary.notes() == [
        "2 cells of older configurations are not listed: oskl G=2 on magic (2 of configuration old)."
    ]


def test_the_configuration_that_a_run_asks_for_counts_as_the_newest(tmp_path: Path) -> None:
    store = Store(tmp_path)
    write(store, record("a"), "first", 1.0)
    write(store, record("b"), "second", 2.0)
    store.rebuild(current={"first"})
    assert [row["key"] for row in rows(store)] == ["a"]


DAMAGE = [
    *(b"", b"[1, 2]", b"null", b"NaN", b"1e400", b"\xff\xfe\x00", b"[" * 100_000, b'{"schema_version": 2, "rec'),
    b'{"schema_version": 2, "config_hash": "c", "created": 1, "record": {"nonsense": 1}, "traces": []}',
]


@pytest.mark.parametrize("content", DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_cell_is_absent_named_and_written_anew(tmp_path: Path, content: bytes) -> None:
    store = Store(tmp_path)
    write(store, record("good"), "c", 1.0)
    store.rebuild()
    (store.cells / "k0.json").write_bytes(content)
    assert not store.finished("k0")
    summary = store.rebuild()
    assert (summary.listed, summary.unreadable) == (1, ("k0.json",))
    assert summary.notes() == ["1 cell files cannot be read and are computed again: k0.json."]
    write(store, record(repeat=1), "c", 1.0)
    assert store.finished("k0")
    assert store.rebuild() == store_module.Summary(listed=2)


NOT_BELIEVED = [
    *[("key", "else"), ("status", "fine"), ("unknown", 1), ("repeat", -1), ("repeat", 10**30), ("algorithm", "")],
    *[(field, name) for field in ("experiment", "dataset") for name in ("../x", ".x", "a/b", "a\x1b", "a\n", "\ud800")],
    *[("variant", {"a\x1b": 1}), ("metrics", {"../x": 1.0}), ("metrics", {"a\x1b": 1.0})],
]


@pytest.mark.parametrize(("name", "value"), NOT_BELIEVED, ids=ascii)
def test_a_record_of_another_cell_or_with_other_fields_is_not_believed(tmp_path: Path, name: str, value: Any) -> None:
    assert refused(damaged(tmp_path, lambda content: content["record"].update({name: value})))


WRONG: dict[str, list[Any]] = {
    "str": [None, 5, 1.5, True, [], {}],
    "Variant": [None, "G=2", 5, [], [["G", 2]]],
    "dict[str, Any]": [None, "{}", 5, [], [["G", 2]]],
    "int": [None, "0", 0.5, True, [], {}],
    "int | None": ["0", 0.5, False, [], {}],
    "dict[str, float]": [
        *(None, "{}", 5, []),
        *({"accuracy": value} for value in (None, "0.5", True, [], {}, math.nan, 10**400)),
        {"dataset": 1.0},
    ],
    "float": [None, "1", True, [], {}],
}
"""Values that are not of a declared type, by the type."""
FIELDS = [(field.name, value) for field in fields(Record) for value in WRONG[str(field.type)]]
FIELDS += [(field.name, "absent") for field in fields(Record) if field.name not in LATER]
ENTRIES = {"traces": TRACES[0], "reliability": BINS[0], "rows": ROWS[0]}
KINDS = {"traces": Checkpoint, "reliability": Bin, "rows": PlanePoint}
POSITIONS = [
    (name, [*entry[:position], value, *entry[position + 1 :]])
    for name, entry in ENTRIES.items()
    for position, kind in enumerate(get_args(KINDS[name]))
    for value in WRONG[kind.__name__]
]


def damaged(tmp_path: Path, change: Callable[[dict[str, Any]], Any]) -> Store:
    """A store with one cell, whose file has been changed."""
    store = Store(tmp_path)
    write(store, record(), "c", 1.0, TRACES, BINS, ROWS)
    path = store.cells / "k0.json"
    content = read_json(path)
    change(content)
    write_json(path, content)
    return store


def refused(store: Store) -> bool:
    return store.read_cell("k0") is None and store.rebuild().unreadable == ("k0.json",)


def test_what_is_not_damaged_is_believed(tmp_path: Path) -> None:
    assert not refused(damaged(tmp_path, lambda content: None))


@pytest.mark.parametrize(("name", "value"), FIELDS, ids=str)
def test_a_field_of_another_type_is_never_believed(tmp_path: Path, name: str, value: Any) -> None:
    def change(content: dict[str, Any]) -> None:
        content["record"][name] = value
        if value == "absent":
            del content["record"][name]

    assert refused(damaged(tmp_path, change))


@pytest.mark.parametrize(("name", "entry"), POSITIONS, ids=str)
def test_an_entry_of_another_type_is_never_believed(tmp_path: Path, name: str, entry: list[Any]) -> None:
    assert refused(damaged(tmp_path, lambda content: content[name].append(entry)))


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("value", [None, 5, "abc", {}, [5], [[]], [[1, 2, 3, 4, 5]], ["abcd"], [{}]], ids=str)
def test_entries_of_another_shape_are_never_believed(tmp_path: Path, name: str, value: Any) -> None:
    assert refused(damaged(tmp_path, lambda content: content.update({name: value})))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("config_hash", value) for value in WRONG["str"]),
        *(("created", value) for value in [*WRONG["float"], math.nan, math.inf]),
        *(("schema_version", value) for value in (None, 0, -3, "2", [], {})),
        *(("record", value) for value in (None, 5, "text", [], {})),
    ],
    ids=str,
)
def test_what_stands_around_a_record_is_checked_too(tmp_path: Path, name: str, value: Any) -> None:
    assert refused(damaged(tmp_path, lambda content: content.update({name: value})))


def first_version(content: dict[str, Any]) -> None:
    """Make a cell of schema version 1 of one of version 2: the variant is text, the numbers stand in the record."""
    content["schema_version"] = 1
    metrics = content["record"].pop("metrics")
    content["record"] |= {"variant": "G=2; loss=logit; average=True", "auc": None, **metrics}


def test_a_cell_of_the_first_schema_version_is_upgraded(tmp_path: Path) -> None:
    store = damaged(tmp_path, first_version)
    assert store.read_cell("k0") == record(variant={"G": 2, "loss": "logit", "average": True})
    store.rebuild()
    assert json.loads(rows(store)[0]["variant"]) == {"G": 2, "loss": "logit", "average": True}
    assert read_variant("G=2; loss=logit; average=True") == {"G": 2, "loss": "logit", "average": True}


@pytest.mark.parametrize("change", [{"variant": None}, {"variant": {}}, {"accuracy": "high"}, {"accuracy": math.nan}])
def test_a_damaged_cell_of_the_first_schema_version_is_not(tmp_path: Path, change: dict[str, Any]) -> None:
    def damage(content: dict[str, Any]) -> None:
        first_version(content)
        content["record"] |= change

    assert refused(damaged(tmp_path, damage))


def test_a_rebuild_sees_a_cell_that_another_process_replaced(tmp_path: Path) -> None:
    store = Store(tmp_path)
    write(store, record(accuracy=0.5), "c", 1.0)
    store.rebuild()
    write(Store(tmp_path), record(accuracy=0.6), "c", 1.0)
    store.rebuild()
    assert rows(store)[0]["accuracy"] == "0.6"


@pytest.mark.parametrize("call", ["os.fsync", "pathlib.Path.replace"])
def test_a_kill_in_the_middle_of_writing_leaves_the_old_cell(tmp_path: Path, call: str) -> None:
    store = Store(tmp_path)
    write(store, record(accuracy=0.5), "c", 1.0)
    code = f"""
        import os, pathlib, signal, sys
        from tests.results.test_store import Store, record, write
        {call} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        write(Store(pathlib.Path(sys.argv[1])), record(accuracy=0.9), "c", 2.0)
    """
    assert python(code, tmp_path).wait() == -signal.SIGKILL
    stored = store.read_cell("k0")
    assert stored is not None
    assert stored.metrics["accuracy"] == 0.5
    assert store.rebuild() == store_module.Summary(listed=1)
    (part,) = store.cells.glob(".*.part")
    os.utime(part, (0, 0))
    store.rebuild()
    assert not list(store.cells.glob(".*.part")), "what a kill left long ago is swept away"


def test_two_processes_rebuild_at_once(tmp_path: Path) -> None:
    code = """
        import pathlib, sys
        from tests.results.test_store import TRACES, Store, record, write
        store = Store(pathlib.Path(sys.argv[1]))
        variant = sys.argv[2]
        for repeat in range(25):
            write(store, record(f"{variant}-{repeat}", variant={"G": int(variant)}, repeat=repeat), "c", 1.0, TRACES)
            store.rebuild()
    """
    Store(tmp_path).write_manifest(MANIFEST)
    processes = [python(code, tmp_path, variant) for variant in (1, 2)]
    while any(process.poll() is None for process in processes):
        if (tmp_path / "records.csv").exists():
            assert len(read_results(tmp_path).records) <= 50, "a reader never meets half a file"
    assert [process.returncode for process in processes] == [0, 0]
    last = (tmp_path / "records.csv").read_bytes()
    assert Store(tmp_path).rebuild() == store_module.Summary(listed=50)
    assert (tmp_path / "records.csv").read_bytes() == last
    assert len(read_results(tmp_path).traces) == 100


def test_a_lock_that_is_never_freed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "LOCK_TIMEOUT_S", 0.1)
    code = """
        import filelock, sys
        lock = filelock.FileLock(sys.argv[1])
        lock.acquire()
        sys.stdout.write("held\\n")
        sys.stdout.flush()
        sys.stdin.read()
    """
    process = python(code, tmp_path / ".lock", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(KlrBenchError, match=r"another process has held the lock .* for 0\.1 s"):
            Store(tmp_path).rebuild()
    finally:
        process.kill()
        process.wait()


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_atomic(path, b"old")
    code = """
        import pathlib, resource, signal, sys
        from klr_bench.errors import KlrBenchError
        from klr_bench.files import write_atomic
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            write_atomic(pathlib.Path(sys.argv[1]), b"x" * 5000)
        except KlrBenchError as error:
            assert "table.csv: cannot be written (File too large). Make room" in str(error), error
            sys.exit(7)
    """
    assert python(code, path).wait() == 7
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]
    assert path.read_bytes() == b"old"


def test_a_results_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")
    store = Store(tmp_path / "results" / "demo")
    with pytest.raises(KlrBenchError, match=r"results: expected a folder, got a file\. .*results_dir="):
        write(store, record(), "c", 1.0)
    with pytest.raises(KlrBenchError, match=r"results: expected a folder, got a file"):
        store.rebuild()


def test_the_manifest_comes_back_and_a_damaged_one_is_empty(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.read_manifest() == {}
    store.write_manifest({"experiment": "demo", "config": {"lam": 1e-4, "values": [1, "cv", None]}})
    expected = {"experiment": "demo", "config": {"lam": 1e-4, "values": [1, "cv", None]}, "schema_version": 2}
    assert store.read_manifest() == expected
    (tmp_path / "manifest.yaml").write_bytes(b"config: [1,\xff")
    assert store.read_manifest() == {}


def built(tmp_path: Path) -> Path:
    store = Store(tmp_path)
    write(store, record(), "c", 1.0)
    store.rebuild()
    store.write_manifest(MANIFEST)
    return tmp_path / "records.csv"


def test_a_renamed_column_is_named(tmp_path: Path) -> None:
    path = built(tmp_path)
    path.write_text(path.read_text().replace("repeat", "number", 1))
    message = r"expected the columns key, .* repeat, .*, got key, .* number, .*: no repeat\. Run the"
    with pytest.raises(KlrBenchError, match=message):
        read_results(tmp_path)


def test_another_schema_version_is_named(tmp_path: Path) -> None:
    built(tmp_path)
    (tmp_path / "manifest.yaml").write_text("schema_version: 9\n")
    with pytest.raises(KlrBenchError, match="schema_version: expected at most 2, got 9"):
        read_results(tmp_path)


def test_columns_are_found_by_name_and_more_of_them_are_metrics_of_the_users_own(tmp_path: Path) -> None:
    path = built(tmp_path)
    with path.open(encoding="utf-8", newline="") as file:
        table = [line[::-1] for line in csv.reader(file)]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([[*table[0], "extra"], [*table[1], "1"]])
    frame = read_results(tmp_path).records
    assert tuple(frame.columns) == (*COLUMNS, "extra")
    assert (frame["accuracy"][0], frame["extra"][0]) == (0.1 + 0.2, 1.0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a table with a header"),
        (b"a,b\n1,2,3\n4\n1,2,3,4\n", "row 1: expected 2 values, got 3"),
        (b"\xff\xff,\xff\n", "expected a table with a header"),
    ],
)
def test_a_file_that_is_no_table_is_an_error(tmp_path: Path, content: bytes, message: str) -> None:
    built(tmp_path).write_bytes(content)
    with pytest.raises(KlrBenchError, match=message):
        read_results(tmp_path)


def test_text_where_a_number_belongs_is_named(tmp_path: Path) -> None:
    path = built(tmp_path)
    path.write_text(path.read_text().replace(repr(0.1 + 0.2), "high"))
    with pytest.raises(KlrBenchError, match=r"row 1, accuracy: expected a number from 0 to 1, got 'high'"):
        read_results(tmp_path)


def test_no_file_is_an_error(tmp_path: Path) -> None:
    path = built(tmp_path)
    (tmp_path / "traces.csv").unlink()
    assert tuple(read_results(tmp_path).traces.columns) == TRACE_COLUMNS
    path.unlink()
    with pytest.raises(KlrBenchError, match=r"no records\.csv there\. There is no experiment of this name\."):
        read_results(tmp_path)
    with pytest.raises(KlrBenchError, match=r"there\. Make it with: klr-bench run experiment=oskl_magic\."):
        read_results(tmp_path / "oskl_magic")
    built(tmp_path / "mine")
    with pytest.raises(KlrBenchError, match=r"no experiment of this name\. Did you mean 'mine'\?"):
        read_results(tmp_path / "mien")


def test_a_results_folder_is_read_in_python(tmp_path: Path) -> None:
    folder = built(tmp_path).parent
    store = load_results(str(folder))
    pd.testing.assert_frame_equal(store, read_results(folder).records)
    assert store["accuracy"].dtype == np.float64
    assert list(load_results(folder, "traces").columns) == list(TRACE_COLUMNS)
    with pytest.raises(KlrBenchError, match=r"file: unknown value 'trace'\. Did you mean 'traces'\?"):
        load_results(folder, "trace")
    with pytest.raises(KlrBenchError, match=r"no records\.csv there"):
        load_results(tmp_path / "none")


def test_workers_do_not_pay_for_pandas() -> None:
    code = "import sys, klr_bench.results.store; sys.exit(len({'pandas', 'numpy', 'filelock'} & set(sys.modules)))"
    assert python(code).wait() == 0


NUMBERS = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6, allow_nan=False))


@given(st.lists(NUMBERS, min_size=2, max_size=8))
def test_variants_sort_by_number(values: list[float]) -> None:
    listed = sorted((Variant({"G": value}) for value in values), key=Variant.order)
    assert [variant["G"] for variant in listed] == sorted(values)
    others = [Variant({"G": "cv"}), Variant()]
    assert sorted([*listed, *others], key=Variant.order) == [Variant(), *listed, Variant({"G": "cv"})]


VALUES = st.dictionaries(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True),
    st.one_of(NUMBERS, st.booleans(), st.none(), st.sampled_from(["cv", "logit", "last"])),
)


@given(VALUES)
def test_a_variant_is_its_values_in_any_order(values: dict[str, Any]) -> None:
    again = Variant(dict(reversed(values.items())))
    assert again == Variant(values)
    assert hash(again) == hash(Variant(values))
    assert read_variant(json.dumps(values)) == Variant(values)


@given(VALUES)
def test_the_text_of_a_variant_says_its_values(values: dict[str, Any]) -> None:
    parsed = parse_variant(variant_text(values))
    assert list(parsed) == list(values)
    for name, value in values.items():
        assert parsed[name] == (value if isinstance(value, str | bool | None) else pytest.approx(value, rel=1e-5))
