"""Cells land whole or not at all; records.csv is what the cells say, whoever rebuilds it and how often."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.errors import KlrBenchError
from klr_bench.experiment import records
from klr_bench.experiment.records import ADDED, COLUMNS, TRACE_COLUMNS, Record, Store
from klr_bench.experiment.variants import parse_variant, same_value, variant_order, variant_text
from klr_bench.files import read_json, write_atomic, write_json
from klr_bench.report.reading import read_records, read_reliability, read_traces

ROOT = Path(__file__).resolve().parents[2]
TRACES = [(10, 0.5, "accuracy", 0.75), (20, 1.0, "accuracy", 0.8)]
BINS = [(0, 5, 0.03, 0.2), (14, 2, 0.95, 1.0)]


def record(key: str = "k0", **changes: Any) -> Record:
    base = Record(key, "demo", "magic", "oskl", "G=2", {"G": 2, "R": 100.0}, 0, "ok", accuracy=0.1 + 0.2, n_support=7)
    return replace(base, **changes)


def rows(store: Store) -> list[dict[str, str]]:
    with (store.folder / "records.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def python(code: str, *arguments: object, stdout: int | None = None) -> subprocess.Popen[bytes]:
    """Run code in a process of its own, from the root of the checkout."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=stdout)


def test_the_columns_are_those_of_schema_version_1() -> None:
    expected = (
        "key experiment dataset algorithm variant params repeat status message accuracy error_rate log_loss "
        "brier auc sparsity nonzero_fraction n_support n_updates n_iter n_train n_test n_features fit_time_s "
        "predict_time_s peak_memory_mb seed last_accuracy last_n_support ece objective duality_gap pass_time_s "
        "n_selected relevant_found"
    )
    assert (records.SCHEMA_VERSION, " ".join(COLUMNS)) == (1, expected)


def test_a_cell_comes_back_as_it_was_written(tmp_path: Path) -> None:
    store = Store(tmp_path / "results" / "demo")
    store.write_cell(record(message='a "quoted",\nmessage ±'), "c", 1.0, TRACES)
    assert store.read_cell("k0") == record(message='a "quoted",\nmessage ±')
    assert store.read_cell("k1") is None


def test_numpy_scalars_become_numbers(tmp_path: Path) -> None:
    store = Store(tmp_path)
    numbers: dict[str, Any] = {
        "accuracy": np.float32(0.5),
        "n_support": np.int64(3),
        "params": {"R": np.float64(10)},
    }
    store.write_cell(record(**numbers), "c", 1.0, [])
    assert store.read_cell("k0") == record(accuracy=0.5, n_support=3, params={"R": 10.0})


@pytest.mark.parametrize(("status", "finished"), [("ok", True), ("timeout", True), ("error", False), ("killed", False)])
def test_what_failed_is_not_finished(tmp_path: Path, status: str, finished: bool) -> None:
    store = Store(tmp_path)
    store.write_cell(record(status=status), "c", 1.0, [])
    assert store.finished("k0") is finished


def test_records_keep_every_digit(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_cell(record(fit_time_s=1 / 3), "c", 1.0, TRACES)
    store.rebuild()
    assert rows(store)[0]["accuracy"] == repr(0.1 + 0.2)
    frame = read_records(tmp_path / "records.csv")
    assert frame["fit_time_s"][0] == 1 / 3
    assert frame["variant"][0] == "G=2"
    assert json.loads(frame["params"][0]) == {"G": 2, "R": 100.0}
    assert np.isnan(frame["auc"][0])
    assert read_traces(tmp_path / "traces.csv").to_numpy().tolist() == [["k0", *point] for point in TRACES]


def test_bins_are_rebuilt_from_the_cells(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_cell(record("k0", ece=0.1), "c", 1.0, [], BINS)
    store.write_cell(record("k1", repeat=1), "c", 1.0, [])
    store.rebuild()
    assert read_reliability(tmp_path / "reliability.csv").to_numpy().tolist() == [["k0", *entry] for entry in BINS]
    assert read_reliability(tmp_path / "none.csv").empty


def test_cells_of_before_there_were_bins_are_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_cell(record(), "c", 1.0, TRACES)
    path = store.cells / "k0.json"
    content = read_json(path)
    assert content.pop("reliability") == []
    for name in ADDED:
        del content["record"][name]
    write_json(path, content)
    assert Store(tmp_path).rebuild().listed == 1


def test_rows_are_sorted_and_the_file_does_not_depend_on_the_order_of_writing(tmp_path: Path) -> None:
    cells = [
        record(f"k{number}", dataset=dataset, variant=variant, repeat=repeat)
        for number, (dataset, variant, repeat) in enumerate(
            (d, v, r) for d in ("magic", "adult") for v in ("G=10", "G=2", "G=1", "G=cv") for r in (10, 9)
        )
    ]
    contents = []
    for name, order in (("a", cells), ("b", cells[::-1])):
        store = Store(tmp_path / name)
        for cell in order:
            store.write_cell(cell, "c", time.time(), TRACES)
        store.rebuild()
        contents.append([(store.folder / file).read_bytes() for file in ("records.csv", "traces.csv")])
    assert contents[0] == contents[1]
    listed = [(row["dataset"], row["variant"], row["repeat"]) for row in rows(Store(tmp_path / "a"))]
    assert listed[:4] == [
        ("adult", "G=1", "9"),
        ("adult", "G=1", "10"),
        ("adult", "G=2", "9"),
        ("adult", "G=2", "10"),
    ]
    assert [variant for _, variant, _ in listed[8::2]] == ["G=1", "G=2", "G=10", "G=cv"]


def test_only_the_newest_configuration_of_a_column_is_listed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for repeat in (0, 1):
        store.write_cell(record(f"old{repeat}", repeat=repeat), "old", 1.0 + repeat, TRACES)
    store.write_cell(record("new0"), "new", 3.0, [])
    store.write_cell(record("other", variant="G=4"), "old", 1.0, [])
    summary = store.rebuild()
    assert [row["key"] for row in rows(store)] == ["new0", "other"]
    assert read_traces(tmp_path / "traces.csv").empty
    assert (summary.listed, summary.older) == (2, {("magic", "oskl", "G=2", "old"): 2})
    assert summary.notes() == [
        "2 cells of older configurations are not listed: oskl G=2 on magic (2 of configuration old)."
    ]


def test_the_configuration_that_a_run_asks_for_counts_as_the_newest(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_cell(record("a"), "first", 1.0, [])
    store.write_cell(record("b"), "second", 2.0, [])
    store.rebuild(current={"first"})
    assert [row["key"] for row in rows(store)] == ["a"]


DAMAGE = [
    b"",
    b'{"schema_version": 1, "rec',
    b"[1, 2]",
    b"null",
    b"\xff\xfe\x00",
    b"[" * 100_000,
    b'{"schema_version": 1, "config_hash": "c", "created": 1, "record": {"nonsense": 1}, "traces": []}',
]


@pytest.mark.parametrize("content", DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_cell_is_absent_named_and_written_anew(tmp_path: Path, content: bytes) -> None:
    store = Store(tmp_path)
    store.write_cell(record("good"), "c", 1.0, [])
    store.rebuild()
    (store.cells / "k0.json").write_bytes(content)
    assert not store.finished("k0")
    summary = store.rebuild()
    assert (summary.listed, summary.unreadable) == (1, ("k0.json",))
    assert summary.notes() == ["1 cell files cannot be read and are computed again: k0.json."]
    store.write_cell(record(repeat=1), "c", 1.0, [])
    assert store.finished("k0")
    assert store.rebuild() == records.Summary(listed=2)


@pytest.mark.parametrize(
    "changes", [{"repeat": "0"}, {"params": []}, {"accuracy": "high"}, {"variant": None}, {"key": "else"}]
)
def test_a_cell_of_the_wrong_types_is_absent(tmp_path: Path, changes: dict[str, Any]) -> None:
    store = Store(tmp_path)
    store.write_cell(record(), "c", 1.0, [])
    path = store.cells / "k0.json"
    content = read_json(path)
    content["record"] |= changes
    write_json(path, content)
    assert store.read_cell("k0") is None
    assert store.rebuild().unreadable == ("k0.json",)


def test_a_cell_of_another_schema_version_is_absent(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_cell(record(), "c", 1.0, [])
    write_json(store.cells / "k0.json", read_json(store.cells / "k0.json") | {"schema_version": 2})
    assert store.read_cell("k0") is None


def test_a_rebuild_sees_a_cell_that_another_process_replaced(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_cell(record(accuracy=0.5), "c", 1.0, [])
    store.rebuild()
    Store(tmp_path).write_cell(record(accuracy=0.6), "c", 1.0, [])
    store.rebuild()
    assert rows(store)[0]["accuracy"] == "0.6"


@pytest.mark.parametrize("call", ["os.fsync", "pathlib.Path.replace"])
def test_a_kill_in_the_middle_of_writing_leaves_the_old_cell(tmp_path: Path, call: str) -> None:
    store = Store(tmp_path)
    store.write_cell(record(accuracy=0.5), "c", 1.0, [])
    code = f"""
        import os, pathlib, signal, sys
        from tests.experiment.test_records import record, Store
        {call} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        Store(pathlib.Path(sys.argv[1])).write_cell(record(accuracy=0.9), "c", 2.0, [])
    """
    assert python(code, tmp_path).wait() == -signal.SIGKILL
    stored = store.read_cell("k0")
    assert stored is not None
    assert stored.accuracy == 0.5
    assert store.rebuild() == records.Summary(listed=1)
    (part,) = store.cells.glob(".*.part")
    os.utime(part, (0, 0))
    store.rebuild()
    assert not list(store.cells.glob(".*.part")), "what a kill left long ago is swept away"


def test_two_processes_rebuild_at_once(tmp_path: Path) -> None:
    code = """
        import pathlib, sys
        from tests.experiment.test_records import record, Store, TRACES
        store = Store(pathlib.Path(sys.argv[1]))
        variant = sys.argv[2]
        for repeat in range(25):
            store.write_cell(record(f"{variant}-{repeat}", variant=variant, repeat=repeat), "c", 1.0, TRACES)
            store.rebuild()
    """
    processes = [python(code, tmp_path, variant) for variant in ("G=1", "G=2")]
    while any(process.poll() is None for process in processes):
        if (tmp_path / "records.csv").exists():
            assert len(read_records(tmp_path / "records.csv")) <= 50, "a reader never meets half a file"
    assert [process.returncode for process in processes] == [0, 0]
    last = (tmp_path / "records.csv").read_bytes()
    assert Store(tmp_path).rebuild() == records.Summary(listed=50)
    assert (tmp_path / "records.csv").read_bytes() == last
    assert len(read_traces(tmp_path / "traces.csv")) == 100


def test_a_lock_that_is_never_freed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "LOCK_TIMEOUT_S", 0.1)
    code = """
        import filelock, sys, time
        lock = filelock.FileLock(sys.argv[1])
        lock.acquire()
        sys.stdout.write("held\\n")
        sys.stdout.flush()
        time.sleep(60)
    """
    process = python(code, tmp_path / ".lock", stdout=subprocess.PIPE)
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
    with pytest.raises(KlrBenchError, match=r"k0\.json: cannot be written \(.*\).*results_dir="):
        store.write_cell(record(), "c", 1.0, [])
    with pytest.raises(KlrBenchError, match=r"demo: cannot be written"):
        store.rebuild()


def test_the_manifest_comes_back_and_a_damaged_one_is_empty(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.read_manifest() == {}
    store.write_manifest({"experiment": "demo", "config": {"lam": 1e-4, "values": [1, "cv", None]}})
    expected = {"experiment": "demo", "config": {"lam": 1e-4, "values": [1, "cv", None]}, "schema_version": 1}
    assert store.read_manifest() == expected
    (tmp_path / "manifest.yaml").write_bytes(b"config: [1,\xff")
    assert store.read_manifest() == {}


def built(tmp_path: Path) -> Path:
    store = Store(tmp_path)
    store.write_cell(record(), "c", 1.0, [])
    store.rebuild()
    return tmp_path / "records.csv"


def test_a_renamed_column_is_named(tmp_path: Path) -> None:
    path = built(tmp_path)
    path.write_text(path.read_text().replace("fit_time_s", "seconds", 1))
    message = r"no column fit_time_s; schema version 1 has the columns key, .*beside these: seconds\. Run the"
    with pytest.raises(KlrBenchError, match=message):
        read_records(path)


def test_another_schema_version_is_named(tmp_path: Path) -> None:
    path = built(tmp_path)
    (tmp_path / "manifest.yaml").write_text("schema_version: 9\n")
    with pytest.raises(KlrBenchError, match="schema version 9, this klr-bench reads version 1"):
        read_records(path)


def test_columns_are_found_by_name_and_more_of_them_do_no_harm(tmp_path: Path) -> None:
    path = built(tmp_path)
    names, values = (line.split(",") for line in path.read_text().replace('"{""G"": 2, ""R"": 100.0}"', "{}").split())
    path.write_text(",".join([*names[::-1], "extra"]) + "\n" + ",".join([*values[::-1], "1"]) + "\n")
    assert tuple(read_records(path).columns) == COLUMNS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a table with a header"),
        (b"a,b\n1,2,3\n4\n1,2,3,4\n", "expected a table with a header|no column key"),
        (b"\xff\xff,\xff\n", "expected a table with a header"),
    ],
)
def test_a_file_that_is_no_table_is_an_error(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "records.csv").write_bytes(content)
    with pytest.raises(KlrBenchError, match=message):
        read_records(tmp_path / "records.csv")


def test_text_where_a_number_belongs_is_named(tmp_path: Path) -> None:
    path = built(tmp_path)
    path.write_text(path.read_text().replace(repr(0.1 + 0.2), "high"))
    with pytest.raises(KlrBenchError, match=r"row 1, accuracy: expected a number, got 'high'"):
        read_records(path)


def test_no_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KlrBenchError, match=r"records\.csv: cannot be read .*Run the experiment"):
        read_records(tmp_path / "records.csv")
    assert tuple(read_traces(tmp_path / "traces.csv").columns) == TRACE_COLUMNS


def test_workers_do_not_pay_for_pandas() -> None:
    code = "import sys, klr_bench.experiment.records; sys.exit(len({'pandas', 'numpy', 'filelock'} & set(sys.modules)))"
    assert python(code).wait() == 0


NUMBERS = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6, allow_nan=False))


@given(st.lists(NUMBERS, min_size=2, max_size=8))
def test_variants_sort_by_number(values: list[float]) -> None:
    texts = sorted((variant_text({"G": value}) for value in values), key=variant_order)
    numbers = [float(text.removeprefix("G=")) for text in texts]
    assert numbers == sorted(numbers)
    assert sorted([*texts, "G=cv", ""], key=variant_order) == ["", *texts, "G=cv"]


@given(
    st.dictionaries(
        st.from_regex(r"[A-Za-z_]\w{0,5}", fullmatch=True),
        st.one_of(NUMBERS, st.sampled_from(["cv", "logit", True])),
    )
)
def test_the_text_of_a_variant_says_its_values(values: dict[str, Any]) -> None:
    parsed = parse_variant(variant_text(values))
    assert list(parsed) == list(values)
    for name, value in values.items():
        said = parsed[name]
        assert said == str(value) if isinstance(value, str | bool) else float(said) == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (*(1, "1"), True),
        (*("1.0", "1e0"), True),
        (*(1e-4, "0.0001"), True),
        (*("cv", " cv"), True),
        (*("last", "average"), False),
        (*(1, "cv"), False),
        (*("nan", "nan"), True),
        (*(None, "None"), True),
        (*(10, "1"), False),
    ],
)
def test_values_are_compared_as_numbers_where_they_are_numbers(a: object, b: object, equal: bool) -> None:
    assert same_value(a, b) is equal
