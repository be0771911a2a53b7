"""Tests of the results store: atomic writes, and tables with and without an index."""

import csv
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.errors import KlrBenchError
from klr_bench.files import read_checked_json, read_json, read_regular, write_atomic, write_checked_json
from klr_bench.metrics.labels import METRICS
from klr_bench.report.load import load_results, read_results
from klr_bench.results import store as store_module
from klr_bench.results.record import COLUMNS, SCHEMA_VERSION, TRACE_COLUMNS, CellFile, Record, parse_cell
from klr_bench.results.store import Store, Summary
from klr_bench.results.variants import Variant, method_name, method_of, read_variant
from tests.conftest import needs_proc

ROOT = Path(__file__).resolve().parents[2]
TRACES = [(10, 0.5, "accuracy", 0.75), (20, 1.0, "accuracy", 0.8)]
BINS = [(0, 5, 0.03, 0.2), (14, 2, 0.95, 1.0)]
ROWS = [(0.5, -1.5, 1)]
MANIFEST = {"experiment": "demo", "config": {"name": "demo", "title": "Demo", "repeats": 1}}


def record(key: str = "k0", **changes: Any) -> Record:
    """Return a record with changed fields and metrics."""
    base = Record(key, "demo", "magic", "oskl", Variant({"G": 2}), {"G": 2, "R": 100.0}, 0, seed=0, status="ok")
    metrics = {name: changes.pop(name) for name in METRICS if name in changes}
    variant = Variant(changes.pop("variant", base.variant))
    return replace(base, metrics={"accuracy": 0.1 + 0.2, "n_support": 7} | metrics, variant=variant, **changes)


def write(store: Store, record: Record, config_hash: str = "c", created: float = 1.0, *more: Any) -> None:
    store.write_cell(CellFile(record, config_hash, created, *more))


def rows(store: Store) -> list[dict[str, str]]:
    with (store.folder / "records.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def python(code: str, *arguments: object, **pipes: int) -> subprocess.Popen[bytes]:
    """Run code in another process, from the root of the checkout."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, **pipes)


def test_the_columns_are_those_of_schema_version_2() -> None:
    identity = "key experiment dataset algorithm variant params repeat seed status message host cpu"
    metrics = [name for name, metric in METRICS.items() if metric.stored]
    assert (SCHEMA_VERSION, " ".join(COLUMNS)) == (2, " ".join([identity, *metrics]))


def test_cells_and_tables_keep_every_digit(tmp_path: Path) -> None:
    store = Store(tmp_path)
    expected = record(fit_time_s=1 / 3, ece=0.1, message='a "quoted",\nmessage ±', host="here", cpu="A CPU")
    write(store, expected, "c", 1.0, TRACES, BINS, ROWS)
    assert [cell.record for cell in store.load()[0]] == [expected]
    store.rebuild()
    store.write_manifest(MANIFEST)
    (row,) = rows(store)
    assert (row["accuracy"], row["n_support"], row["auc"]) == (repr(0.1 + 0.2), "7", "")
    results = read_results(tmp_path)
    frame = results.records
    assert (frame["fit_time_s"][0], frame["variant"][0], frame["params"][0]) == (1 / 3, {"G": 2}, {"G": 2, "R": 100.0})
    assert np.isnan(frame["auc"][0])
    assert results.traces.to_numpy().tolist() == [["k0", *point] for point in TRACES]
    assert results.reliability.to_numpy().tolist() == [["k0", *entry] for entry in BINS]
    assert results.rows.to_numpy().tolist() == [["k0", *entry] for entry in ROWS]
    (tmp_path / "reliability.csv").unlink()
    assert read_results(tmp_path).reliability.empty


def test_numpy_scalars_become_numbers(tmp_path: Path) -> None:
    numbers = {"accuracy": np.float32(0.5), "n_support": np.int64(3), "params": {"R": np.float64(10)}}
    write(Store(tmp_path), CellFile(record(**numbers), "c", 1.0).checked().record)
    (cell,), _ = Store(tmp_path).load()
    assert cell.record == record(accuracy=0.5, n_support=3, params={"R": 10.0})


@pytest.mark.parametrize(("checkpoints", "bins"), [([(0.5, 1.0, "accuracy", 0.5)], []), ([], [(0, 5, 1.00005, 0.2)])])
def test_a_fit_whose_cell_could_not_be_read_has_failed(checkpoints: Any, bins: Any) -> None:
    cell = CellFile(record(), "c", 1.0, checkpoints, bins).checked()
    assert cell.record.status == "error"
    assert "cannot be stored" in cell.record.message
    assert parse_cell(cell.content(), cell.record.key) is not None


def test_manifests_may_be_large(tmp_path: Path) -> None:
    store = Store(tmp_path)
    configurations = {f"method {n}": "0" * 16 for n in range(30_000)}
    store.write_manifest({"configurations": configurations})
    assert store.read_manifest()["configurations"] == configurations


def test_failed_cells_are_not_finished(tmp_path: Path) -> None:
    for status, finished in (("ok", True), ("timeout", True), ("error", False), ("killed", False)):
        write(Store(tmp_path), record(status=status))
        assert Store(tmp_path).finished("k0") is finished


def test_equal_variants_with_different_spellings_stay_as_they_are(tmp_path: Path) -> None:
    variants: list[Any] = [{"G": 1}, {"G": 1.0}, {"G": True}, {"a": 0.0, "b": 1}, {"b": 1, "a": -0.0}, {"G": [1]}]
    for number, variant in enumerate(variants):
        write(Store(tmp_path), record(f"k{number}", variant=variant))
    Store(tmp_path).rebuild()
    texts = {row["key"]: row["variant"] for row in rows(Store(tmp_path))}
    assert texts == {f"k{number}": json.dumps(variant) for number, variant in enumerate(variants)}


def test_true_is_no_one(tmp_path: Path) -> None:
    for number, value in enumerate([1, True, [1], [True], 0, False]):
        write(Store(tmp_path), record(f"k{number}", variant={"G": value}), f"c{number}", float(number))
    Store(tmp_path).rebuild()
    assert len(rows(Store(tmp_path))) == 6


@pytest.mark.parametrize("dataset", ["magic", "sales on web-1a2b3c", "on on", "{} on x"])
@pytest.mark.parametrize("variant", [{}, {"G": 1}, {"loss": "a on b"}, {"loss": "} on {"}])
def test_a_name_of_a_method_is_parsed(dataset: str, variant: dict[str, Any]) -> None:
    assert method_of(method_name(dataset, "nc", json.dumps(variant))) == (dataset, "nc", Variant(variant))
    for other in ("nc", "nc on", '{"G": 1} on magic', 'nc {"G" on magic', "nc " + "[" * 100_000, "nc {" * 9):
        assert isinstance(method_of(other), str)


@pytest.mark.parametrize("spelling", ["1", "1.0"])
def test_one_spelling_of_a_variant_is_listed(spelling: str, tmp_path: Path) -> None:
    for number, value in enumerate([1, 1.0]):
        write(Store(tmp_path), record(f"k{number}", variant={"G": value}), f"c{value}", float(number))
    Store(tmp_path).rebuild(current={f'oskl {{"G": {spelling}}} on magic': f"c{spelling}"})
    assert [row["key"] for row in rows(Store(tmp_path))] == ["k1" if spelling == "1.0" else "k0"]


def test_files_of_every_size_are_read_to_their_end(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for size in (2, 2**16, 3 * 2**16 + 1):
        path.write_bytes(b'"' + b"x" * (size - 2) + b'"')
        assert read_json(path) == "x" * (size - 2)
        with pytest.raises(KlrBenchError, match=f"expected a file of at most {size - 1:,} bytes, got {size:,}"):
            read_regular(path, size - 1)
    if Path("/proc/self/stat").exists():  # whose size is unknown
        assert read_regular("/proc/self/stat", 2**16).startswith(str(os.getpid()).encode())


def test_rows_are_sorted_and_do_not_depend_on_the_order_of_writing(tmp_path: Path) -> None:
    values = [(d, {"G": g}, r) for d in ("magic", "adult") for g in (10, 2, 1, "cv") for r in (10, 9)]
    cells = [record(f"k{n}", dataset=d, variant=v, repeat=r) for n, (d, v, r) in enumerate(values)]
    contents = []
    for name, order in (("a", cells), ("b", cells[::-1])):
        store = Store(tmp_path / name)
        for position, cell in enumerate(order):
            write(store, cell, "c", float(position), TRACES)
        store.rebuild()
        contents.append([(store.folder / file).read_bytes() for file in ("records.csv", "traces.csv")])
    assert contents[0] == contents[1]
    listed = [(row["dataset"], read_variant(row["variant"])["G"], int(row["repeat"])) for row in rows(store)]
    assert listed == [(d, g, r) for d in ("adult", "magic") for g in (1, 2, 10, "cv") for r in (9, 10)]


def test_only_the_newest_configuration_of_a_method_is_listed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for repeat in (0, 1):
        write(store, record(f"old{repeat}", repeat=repeat), "old", 1.0 + repeat, TRACES)
    write(store, record("new0"), "new", 3.0)
    write(store, record("other", variant={"G": 4}), "old", 1.0)
    summary = store.rebuild()
    store.write_manifest(MANIFEST)
    assert [row["key"] for row in rows(store)] == ["new0", "other"]
    assert read_results(tmp_path).traces.empty
    assert summary.listed == 2
    assert summary.notes() == [
        "2 cells of older configurations are omitted: oskl G=2 on magic (2 of configuration old)."
    ]
    for config, keys in (("old", ["old0", "old1", "other"]), ("none yet", ["other"])):
        store.rebuild(current={'oskl {"G": 2} on magic': config})
        assert [row["key"] for row in rows(store)] == keys, "those that the present run asks for"


DAMAGE = [
    *(b"", b"[1, 2]", b"NaN", b"\xff\xfe\x00", b"[" * 100_000, b'{"schema_version": 2, "rec'),
    b'{"schema_version": 2, "config_hash": "c", "created": 1, "record": {"nonsense": 1}, "traces": []}',
]


@pytest.mark.parametrize("content", DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_cell_is_reported_and_computed_again(tmp_path: Path, content: bytes) -> None:
    store = Store(tmp_path)
    write(store, record("good"))
    store.rebuild()
    (store.cells / "k0.json").write_bytes(content)
    assert not store.finished("k0")
    summary = store.rebuild()
    assert (summary.listed, summary.unreadable) == (1, ("k0.json",))
    assert summary.notes() == ["Damaged cell files (1): k0.json. They are left out until they are computed again."]
    assert store.damaged(["good", "k0", "absent"]) == ["k0.json"]
    write(store, record(repeat=1))
    assert store.finished("k0")
    assert store.rebuild() == Summary(listed=2)


@given(st.data())
def test_no_changed_byte_of_a_cell_changes_a_number(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        store = Store(Path(folder))
        write(store, record(), "c", 1.0, TRACES, BINS, ROWS)
        path = store.cells / "k0.json"
        whole, content = store.load(), bytearray(path.read_bytes())
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[place]))
        path.write_bytes(data.draw(st.sampled_from([content, content[:place], content[place:], content[:place] * 2])))
        assert Store(store.folder).load() in (whole, ([], ["k0.json"]))


def changed(tmp_path: Path, change: Callable[[dict[str, Any]], Any]) -> Store:
    """Return a store with one cell whose file has been modified by `change`."""
    store = Store(tmp_path)
    write(store, record(), "c", 1.0, TRACES, BINS, ROWS)
    content = read_checked_json(store.cells / "k0.json")
    change(content)
    write_checked_json(store.cells / "k0.json", content)
    return store


TEXTS = ("key", "experiment", "dataset", "algorithm", "status", "message", "host", "cpu")
BAD_NAMES = ("../x", ".x", "a/b", "a\x1b", "a\n", "\ud800", "")
WRONG = [
    *(("record", {name: value}) for name in TEXTS for value in (None, 5, [])),
    *(("record", {name: value}) for name in ("experiment", "dataset", "algorithm") for value in BAD_NAMES),
    *(
        ("record", {"variant": value})
        for value in (None, "G=2", [], {"a\x1b": 1}, {"G": math.nan}, {"G": {}}, {"G": 10**400})
    ),
    *(("record", {"params": value}) for value in (None, "{}", 5, [["G", 2]])),
    *(("record", {name: value}) for name in ("repeat", "seed") for value in ("0", 0.5, True, [], 10**30)),
    *(("record", {"metrics": value}) for value in (None, "{}", [], {"dataset": 1.0}, {"../x": 1.0})),
    *(("record", {"metrics": {"accuracy": v}}) for v in (None, "0.5", True, [], math.nan, 10**400, 7)),
    *(("record", change) for change in ({"key": "else"}, {"status": "fine"}, {"unknown": 1}, {"repeat": -1})),
    *(("record", {name: "absent"}) for name in ("key", "variant", "repeat", "seed", "status", "params")),
    *((name, value) for name in ("traces", "reliability", "rows") for value in (None, "abc", [5], [[1]], [{}])),
    *(("traces", [[*entry]]) for entry in ((-1, 0.5, "accuracy", 0.5), (1, 1.0, 5, 0.5), (1, 1.0, "../x", 0.5))),
    *(("reliability", [[*entry]]) for entry in ((0.5, 5, 0.1, 0.2), (0, 5, 1.1, 0.2), (0, -1, 0.1, 0.2))),
    *(("rows", [[*entry]]) for entry in ((None, 1.0, 1), (1.0, math.nan, 1), (1.0, 1.0, 0.5))),
    *(("config_hash", value) for value in (None, 5)),
    *(("created", value) for value in (None, "1", True, math.nan, math.inf)),
    *(("schema_version", value) for value in (None, 0, "2")),
    *(("record", value) for value in (None, "text", [], {})),
]


@pytest.mark.parametrize(("part", "value"), WRONG, ids=ascii)
def test_a_cell_with_a_wrong_value_is_damaged(tmp_path: Path, part: str, value: Any) -> None:
    def change(content: dict[str, Any]) -> None:
        whole = content["record"] | value if part == "record" and isinstance(value, dict) and value else value
        content[part] = {k: v for k, v in whole.items() if v != "absent"} if isinstance(whole, dict) else whole

    store = changed(tmp_path, change)
    assert store.rebuild().unreadable == ("k0.json",)


def test_cells_without_optional_parts_are_read(tmp_path: Path) -> None:
    def remove_bins_and_hosts(content: dict[str, Any]) -> None:
        del content["reliability"], content["rows"], content["record"]["host"], content["record"]["cpu"]

    (cell,), _ = changed(tmp_path, remove_bins_and_hosts).load()
    assert cell.record == record()


@pytest.mark.parametrize("call", ["os.fsync", "pathlib.Path.replace"])
def test_a_kill_in_the_middle_of_writing_leaves_the_old_cell(tmp_path: Path, call: str) -> None:
    store = Store(tmp_path)
    write(store, record(accuracy=0.5))
    code = f"""
        import os, pathlib, signal, sys
        from klr_bench.files import write_json
        {call} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        write_json(pathlib.Path(sys.argv[1]), {{}})
    """
    assert python(code, store.cells / "k0.json").wait() == -signal.SIGKILL
    assert store.load()[0][0].record == record(accuracy=0.5)
    assert store.rebuild() == Summary(listed=1)
    (part,) = store.cells.glob(".*.part")
    os.utime(part, (0, 0))
    store.rebuild()
    assert not part.exists(), "an old temporary file is removed"


def test_two_processes_rebuild_at_once(tmp_path: Path) -> None:
    code = """
        import pathlib, sys, time
        from klr_bench.results.record import CellFile, Record
        from klr_bench.results.store import Store
        from klr_bench.results.variants import Variant
        store, number = Store(pathlib.Path(sys.argv[1])), sys.argv[2]
        for repeat in range(25):
            record = Record(f"{number}-{repeat}", "demo", "a", "b", Variant({"G": number}), {}, repeat, 0, "ok")
            store.write_cell(CellFile(record, "c", time.time()))
            store.rebuild()
    """
    Store(tmp_path).write_manifest(MANIFEST)
    processes = [python(code, tmp_path, number) for number in (1, 2)]
    while any(process.poll() is None for process in processes):
        if (tmp_path / "records.csv").exists():
            assert len(read_results(tmp_path).records) <= 50, "a reader never meets half a file"
    assert [process.returncode for process in processes] == [0, 0]
    last = (tmp_path / "records.csv").read_bytes()
    assert Store(tmp_path).rebuild() == Summary(listed=50)
    assert (tmp_path / "records.csv").read_bytes() == last


def test_a_lock_that_is_never_freed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "LOCK_TIMEOUT_S", 0.1)
    with FileLock(tmp_path / ".lock"), pytest.raises(KlrBenchError, match=r"has held the lock .* for 0\.1 s"):
        Store(tmp_path).rebuild()


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_atomic(path, b"old")
    code = """
        import pathlib, resource, sys
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


def test_a_manifest_round_trips_and_a_damaged_one_is_empty(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.read_manifest() == {}
    store.write_manifest(MANIFEST)
    assert store.read_manifest() == MANIFEST | {"schema_version": 2}
    (tmp_path / "manifest.yaml").write_bytes(b"config: [1,\xff")
    assert store.read_manifest() == {}


@given(st.from_regex(r"[-+]?[0-9.]{1,8}[eE][-+]?[0-9]{1,7}|0x[0-9a-f]{4}|[0-9_:.]{1,9}", fullmatch=True) | st.text())
def test_texts_of_a_manifest_stay_texts(text: str) -> None:
    content = {"configurations": {"oskl": text, "nc": [text, 1e-5]}}
    with TemporaryDirectory() as folder:
        Store(Path(folder)).write_manifest(content)
        assert Store(Path(folder)).read_manifest() == content | {"schema_version": 2}


@pytest.fixture
def built(tmp_path: Path) -> Path:
    store = Store(tmp_path)
    write(store, record())
    store.rebuild()
    store.write_manifest(MANIFEST)
    return tmp_path


NUMBER = repr(0.1 + 0.2).encode()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"repeat", b"number", r"expected the columns key, .* repeat, .* \(missing: repeat\)\. Run"),
        (NUMBER, b"high", r"row 1, accuracy: expected a number from 0 to 1, got 'high'"),
        (NUMBER, b"1.9", r"row 1, accuracy: expected a number from 0 to 1, got '1.9'"),
        (None, b"", "expected a table with a header"),
        (None, b"a,b\n1,2,3\n4\n1,2,3,4\n", "row 1: expected 2 values, got 3"),
        (None, b"\xff\xff,\xff\n", "expected a table with a header"),
    ],
)
def test_a_damaged_table_is_an_error(built: Path, old: bytes | None, new: bytes, message: str) -> None:
    path = built / "records.csv"
    path.write_bytes(path.read_bytes().replace(old, new, 1) if old else new)
    with pytest.raises(KlrBenchError, match=message):
        read_results(built)


def test_columns_are_found_by_name_and_further_ones_are_user_metrics(built: Path) -> None:
    path = built / "records.csv"
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    frame[frame.columns[::-1]].assign(extra="1").to_csv(path, index=False)
    found = read_results(built).records
    assert tuple(found.columns) == (*COLUMNS, "extra")
    assert (found["accuracy"][0], found["extra"][0]) == (0.1 + 0.2, 1.0)


@pytest.mark.parametrize(("column", "value"), [("accuracy", "0.9"), ("n_support", "70"), ("dataset", "adult")])
def test_a_table_that_contradicts_its_cells_is_an_error(built: Path, column: str, value: str) -> None:
    frame = pd.read_csv(built / "records.csv", dtype=str, keep_default_na=False)
    before = frame[column][0]
    frame.assign(**{column: value}).to_csv(built / "records.csv", index=False)
    expected = rf"records\.csv: row 1, {column}: expected '{before}' as in cells/k0\.json, got '{value}'\. Run"
    with pytest.raises(KlrBenchError, match=expected):
        read_results(built)
    shutil.rmtree(built / "cells")
    assert read_results(built).records[column].astype(str)[0].removesuffix(".0") == value, "there is nothing to compare"


def test_a_table_that_lacks_a_cell_is_an_error(built: Path) -> None:
    write(Store(built), record("k1", repeat=1))
    write(Store(built), record("old", repeat=1), "older", 0.5)
    Store(built).rebuild()
    assert len(read_results(built).records) == 2
    (built / "records.csv").write_text("".join((built / "records.csv").read_text().splitlines(keepends=True)[:2]))
    with pytest.raises(KlrBenchError, match=r"records\.csv: expected a row for cells/k1\.json, got none\. Run"):
        read_results(built)


@pytest.mark.parametrize("part", ["traces", "reliability", "rows"])
@pytest.mark.parametrize("change", ["value", "removed", "added", "another spelling"])
def test_all_tables_are_compared_with_the_cells(built: Path, part: str, change: str) -> None:
    write(Store(built), record("k1", repeat=1), "c", 1.0, TRACES, BINS, ROWS)
    Store(built).rebuild()
    path = built / f"{part}.csv"
    assert len(read_results(built).records) == 2
    header, first, *others = path.read_text().splitlines()
    key, number, *values = first.split(",")
    lines = {
        "value": [",".join([key, f"{float(number) + 1:g}", *values]), *others],
        "removed": others,
        "added": [first, first, *others],
        "another spelling": [",".join([key, f"{number}{'' if '.' in number else '.'}0", *values]), *others],
    }
    path.write_text("".join(f"{line}\n" for line in (header, *lines[change])))
    if change == "another spelling":
        assert len(getattr(read_results(built), part)) == 1 + len(others)
        return
    with pytest.raises(KlrBenchError, match=rf"{part}\.csv: .*expected .* cells/k1\.json, got .*\. Run the experiment"):
        read_results(built)
    write(Store(built), record("k1", repeat=1))
    Store(built).rebuild()
    assert getattr(read_results(built), part).empty, "nothing is left over when no cell has such rows"


@pytest.mark.parametrize("method", [{"algorithm": "nc"}, {"dataset": "adult"}, {"variant": {"G": 4}}])
def test_a_table_that_lacks_a_method_is_an_error(built: Path, method: dict[str, Any]) -> None:
    write(Store(built), record("k1", **method), "current")
    write(Store(built), record("k2", **method), "other", 2.0)
    other = record(**method)
    name = method_name(other.dataset, other.algorithm, json.dumps(dict(other.variant)))
    for config, keys in (("current", {"k0", "k1"}), ("other", {"k0", "k2"}), ("none yet", {"k0"})):
        Store(built).rebuild({name: config})
        Store(built).write_manifest(MANIFEST | {"configurations": {name: config}})
        assert set(read_results(built).records.key) == keys
        header, *lines = (built / "records.csv").read_text().splitlines(keepends=True)
        (built / "records.csv").write_text("".join([header, *(line for line in lines if line.startswith("k0,"))]))
        if len(keys) == 1:
            continue
        with pytest.raises(KlrBenchError, match=r"records\.csv: expected a row for cells/k.\.json, got none\. Run"):
            read_results(built)


def test_rows_without_a_cell_are_counted_in_a_warning(built: Path, caplog: pytest.LogCaptureFixture) -> None:
    with (built / "records.csv").open("a") as file:
        file.write(
            (built / "records.csv").read_text().splitlines()[-1].replace("k0", "k1").replace(",0,", ",1,", 1) + "\n"
        )
    assert len(read_results(built).records) == 2
    assert caplog.messages == [f"{built}: 1 rows of records.csv cannot be verified, because they have no cell."]


@needs_proc
def test_a_cell_with_a_read_error_is_named(built: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = built / "cells" / "k0.json"
    path.unlink()
    path.symlink_to("/proc/self/mem")
    assert Store(built).damaged(["k0"]) == ["k0.json"]
    assert not Store(built).finished("k0")
    assert Store(built).load() == ([], ["k0.json"])
    assert "Damaged cell files (1): k0.json." in Store(built).rebuild().notes()[0]
    write(Store(built), record())
    assert Store(built).finished("k0")


def test_a_table_is_not_compared_with_cells_of_a_run_that_goes_on(built: Path) -> None:
    now = (built / "records.csv").stat().st_mtime
    for key, repeat, created in (("k0", 0, now), ("k1", 1, now)):
        write(Store(built), record(key, repeat=repeat, accuracy=0.9), "c", created)
    os.utime(built / "records.csv", (now, now))
    assert list(read_results(built).records["accuracy"]) == [0.1 + 0.2]
    write(Store(built), record(accuracy=0.9), "c", now - 1000)
    with pytest.raises(KlrBenchError, match=r"accuracy: expected '0\.9' as in cells/k0\.json"):
        read_results(built)


def test_a_damaged_cell_is_named_when_its_table_is_read(built: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = built / "cells" / "k0.json"
    path.write_text(path.read_text().replace('"accuracy": 0.3', '"accuracy": 0.9'))
    assert read_results(built).records["accuracy"][0] == 0.1 + 0.2
    assert caplog.messages == [
        f"{built}: Damaged cell files (1): k0.json. Their rows of records.csv cannot be verified."
    ]


def test_a_table_that_was_changed_before_its_folder_was_copied_is_an_error(built: Path) -> None:
    now = time.time()
    write(Store(built), record(), "c", now)
    Store(built).rebuild()
    frame = pd.read_csv(built / "records.csv", dtype=str, keep_default_na=False)
    frame.assign(accuracy="0.9").to_csv(built / "records.csv", index=False)
    for path in built.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    with pytest.raises(KlrBenchError, match=r"row 1, accuracy: expected '0\.30000000000000004'"):
        read_results(built)
    for path in built.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def test_an_absent_table_is_an_error(built: Path) -> None:
    (built / "traces.csv").unlink()
    assert tuple(read_results(built).traces.columns) == TRACE_COLUMNS
    with pytest.raises(KlrBenchError, match=r"there\. Run it with: klr-bench run experiment=oskl_magic$"):
        read_results(built / "oskl_magic")
    built.rename(built.parent / "mine")
    with pytest.raises(KlrBenchError, match=r"no experiment of this name\. Did you mean 'mine'\?"):
        read_results(built.parent / "mien")


def test_a_results_folder_is_read_in_python(built: Path) -> None:
    pd.testing.assert_frame_equal(load_results(str(built)), read_results(built).records)
    assert list(load_results(built, "traces").columns) == list(TRACE_COLUMNS)
    with pytest.raises(KlrBenchError, match=r"file: unknown value 'trace'\. Did you mean 'traces'\?"):
        load_results(built, "trace")


NUMBERS = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6, allow_nan=False))
VALUES = st.dictionaries(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True),
    st.one_of(NUMBERS, st.booleans(), st.none(), st.sampled_from(["cv", "logit", "last"])),
)


@given(VALUES)
def test_a_variant_equals_its_values_in_any_order_and_can_be_read_from_json(values: dict[str, Any]) -> None:
    again = Variant(dict(reversed(values.items())))
    assert again == Variant(values) == read_variant(json.dumps(values))
    assert hash(again) == hash(Variant(values))


TABLES = ("records", "traces", "reliability", "rows")


@pytest.fixture
def indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a results folder with an index, all kinds of cells and some user metrics."""
    monkeypatch.setattr(store_module, "INDEX_FROM", 1)
    results = Store(tmp_path / "results")
    for number in range(12):
        row = record(f"k{number:02d}", repeat=number, variant={"G": number % 3}, message="=1, \n2")
        row.metrics |= {"own": 0.1 * number, "whole": number} if number % 4 == 1 else {}
        write(results, row, "c", float(number), TRACES[: number % 3], BINS[: number % 2], ROWS[: number % 2])
    write(results, record("old", dataset="x"), "a", 1.0)
    write(results, record("failed", algorithm="nc", status="error", message="no"), "c")
    (results.cells / "damaged.json").write_bytes(b"{")
    results.rebuild()
    return results.folder


@pytest.fixture
def reads(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the key of each cell file read is appended."""
    keys: list[str] = []
    real = store_module._read
    monkeypatch.setattr(store_module, "_read", lambda path, key: (keys.append(key), real(path, key))[1])
    return keys


def tables(folder: Path) -> dict[str, bytes]:
    return {name: (folder / f"{name}.csv").read_bytes() for name in TABLES}


def rebuilt(folder: Path, *unreadable: str) -> dict[str, bytes]:
    """Return the tables that a new `Store` writes."""
    for name in TABLES:
        (folder / f"{name}.csv").unlink()
    assert Store(folder).rebuild().unreadable == (unreadable or ("damaged.json",))
    return tables(folder)


def without_index(folder: Path) -> dict[str, bytes]:
    copy = folder.with_name("copy")
    shutil.copytree(folder / "cells", copy / "cells")
    Store(copy).rebuild()
    return tables(copy)


def test_a_new_process_reads_no_file_in_the_index(indexed: Path, reads: list[str]) -> None:
    before = tables(indexed)
    assert rebuilt(indexed) == before
    assert [Store(indexed).finished(key) for key in ("k03", "failed")] == [True, False]
    assert reads == ["damaged"]
    assert before == without_index(indexed)


def test_new_changed_and_removed_cells_are_noticed(indexed: Path, reads: list[str]) -> None:
    write(Store(indexed), record("k03", repeat=3, variant={"G": 0}, accuracy=0.6), "c", 3.0)
    write(Store(indexed), record("new", repeat=99), "c", 20.0)
    (indexed / "cells" / "k05.json").unlink()
    path = indexed / "cells" / "k01.json"
    state, content = path.stat(), path.read_bytes()
    with path.open("r+b") as file:
        file.write(content.replace(b'"accuracy": 0.3000', b'"accuracy": 0.2000'))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))  # the same size and time as before
    made = rebuilt(indexed, "damaged.json", "k01.json")
    assert sorted(reads) == ["damaged", "k01", "k03", "new"]
    assert made == without_index(indexed)
    assert all(key not in made["records"] for key in (b"k01", b"k05"))
    assert made["records"].count(b",0.6,") == 1


def test_a_damaged_index_changes_no_table(indexed: Path) -> None:
    before, index, draw = tables(indexed), indexed / "cells.index", Random(0)
    content = index.read_bytes()
    for _ in range(20):
        flipped = bytearray(content)
        flipped[draw.randrange(len(flipped))] ^= 1 << draw.randrange(8)
        index.write_bytes(flipped)
        assert rebuilt(indexed) == before
    for other in (b"", b"\xff\xfe" * 100, b"[0]\n[]\n", b"[" * 100_000):
        index.write_bytes(other)
        assert rebuilt(indexed) == before
