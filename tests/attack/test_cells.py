"""Cells and tables of results whose numbers cannot be: drawn from the declared ranges of all columns and metrics."""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from klr_bench.files import write_atomic
from klr_bench.metrics.labels import CATALOGUE, METRICS
from klr_bench.report.load import read_results
from klr_bench.results.record import COLUMNS, LONGEST_MESSAGE, RANGES, CellFile, Record, parse_cell, possible
from klr_bench.results.store import Store
from klr_bench.results.variants import Variant
from tests.attack.promise import files_in, rejected

pytestmark = pytest.mark.exhaustive
STORED = [metric.name for metric in CATALOGUE if metric.stored]
BOUNDED = [name for name in STORED if METRICS[name].low > -math.inf]
KEY = "k0"


def cell(**metrics: float) -> CellFile:
    """Return a cell as a run leaves it."""
    variant = Variant({"G": 1})
    record = Record(KEY, "mine", "moons", "nc", variant, {"eta": 1.0}, 0, 3, "ok", "", {"accuracy": 0.9} | metrics)
    return CellFile(record, "c", 1.0, [(1, 0.1, "accuracy", 0.5)], [(0, 50, 0.02, 0.04)], [(0.5, 0.5, 1)])


def plain() -> dict[str, Any]:
    """Return the JSON of a cell."""
    content: dict[str, Any] = json.loads(json.dumps(cell().content()))
    return content


def impossible(draw: Random, name: str) -> float:
    """Return a number that a column cannot have."""
    metric = RANGES[name]
    values: list[float] = [math.nan, *([0.5, 2.5, 2**53 + 2, 1e300] if metric.whole else [])]
    if metric.low > -math.inf:
        values += [metric.low - 1e-3, metric.low - 1, -5.0, -1e300, -math.inf]
    if metric.high < math.inf:
        values += [metric.high + 1e-3 * max(1.0, metric.high), 2 * metric.high + 5, 1e300, math.inf]
    return draw.choice(values)


def test_what_a_run_leaves_is_possible() -> None:
    assert parse_cell(plain(), KEY) == CellFile(**vars(cell()) | {"created": 1.0})
    assert cell().checked().record == cell().record


@pytest.mark.drawn(0.03)
def test_a_cell_with_a_number_that_cannot_be_is_not_believed(draw: Random) -> None:
    content = plain()
    name = draw.choice(BOUNDED)
    content["record"]["metrics"][name] = impossible(draw, name)
    assert parse_cell(content, KEY) is None


@pytest.mark.parametrize("value", [math.nan, True, "0.9", 10**400, None, [0.9], {}, -5, 7])
def test_an_accuracy_that_is_none(value: object) -> None:
    """NaN, true, text, 1e400 and so on in a cell; JSON itself turns 1e400 into infinity."""
    content = plain()
    content["record"]["metrics"]["accuracy"] = value
    assert parse_cell(content, KEY) is None
    assert parse_cell(json.loads(json.dumps(plain()).replace("0.9", "1e400")), KEY) is None


NUMBERS = [0, 1, -1, 0.0, 0.5, 2.0, 2.5, -1e-9, 1e300, 2**53, 2**53 + 2, 10**400, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("name", [*METRICS, "a metric of a user"])
def test_numbers_of_a_cell_are_those_that_are_possible(name: str) -> None:
    """A cell, whose numbers are looked at together, is read if each of them is possible alone."""
    for value in NUMBERS:
        content = plain()
        content["record"]["metrics"][name] = value
        assert (parse_cell(content, KEY) is not None) == possible(name, value), value


PLACES = [
    *[("traces", 0, place, name) for place, name in enumerate(("t", "elapsed_s"))],
    ("traces", 0, 3, "accuracy"),
    *[("reliability", 0, place, name) for place, name in enumerate(("bin", "n", "predicted", "positive"))],
    ("rows", 0, 2, "label"),
]


@pytest.mark.drawn(0.03)
def test_an_entry_with_a_number_that_cannot_be_is_not_believed(draw: Random) -> None:
    kind, entry, place, name = draw.choice(PLACES)
    content = plain()
    content[kind][entry][place] = impossible(draw, name)
    assert parse_cell(content, KEY) is None


@pytest.mark.drawn(0.01)
def test_a_fit_that_reports_what_cannot_be_has_failed(draw: Random) -> None:
    """A learner of a user may say that it has -3 support vectors: the row says so, and is computed again."""
    name = draw.choice(BOUNDED)
    value = impossible(draw, name)
    failed = cell(**{name: value}).checked()
    assert failed.record.status == "error"
    assert failed.record.metrics == {}
    assert failed.record.message.startswith(f"{name}: expected ")
    found = parse_cell(json.loads(json.dumps(failed.content())), KEY)
    assert found is not None
    assert found.record == failed.record


def test_a_checkpoint_of_nan_is_left_out() -> None:
    points = [(1, 0.1, "duality_gap", math.nan), (2, 0.2, "duality_gap", 0.5)]
    assert list(CellFile(cell().record, "c", 1.0, points).checked().checkpoints) == points[1:]


ODD_VARIANTS: list[Any] = [
    *({"G": value} for value in (math.nan, {}, {"a": 1}, [[1]], "a\x1b", "a\nb", "\ud800", [math.nan])),
    *({name: 1} for name in ("a\x1b", "a\nb", "\u202e")),
    *(None, 5, "G=1", [], [["G", 1]]),
]


@pytest.mark.parametrize("variant", ODD_VARIANTS, ids=ascii)
def test_a_variant_of_odd_json_is_not_believed(variant: object) -> None:
    content = plain()
    content["record"]["variant"] = variant
    assert parse_cell(content, KEY) is None


def test_a_message_is_cut_when_it_is_stored(tmp_path: Path) -> None:
    store = Store(tmp_path)
    record = Record(KEY, "mine", "moons", "nc", Variant(), {}, 0, 0, "error", "bad [/red] \x1b[31m\ud800" + "x" * 10**7)
    store.write_cell(CellFile(record, "c", 1.0))
    assert store.rebuild().listed == 1
    assert (tmp_path / "records.csv").stat().st_size < 2 * LONGEST_MESSAGE
    found = store.read_cell(KEY)
    assert found is not None
    assert len(found.message) <= LONGEST_MESSAGE
    assert "(10,000," in found.message
    assert found == Record(**vars(found))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a results folder with two repeats."""
    store = Store(tmp_path)
    for repeat in range(2):
        one = cell()
        record = Record(**{**vars(one.record), "key": f"k{repeat}", "repeat": repeat})
        store.write_cell(CellFile(record, "c", 1.0, one.checkpoints, one.bins, one.rows))
    store.rebuild()
    config = {"name": "mine", "title": "Mine", "repeats": 2, "sweep": {}}
    store.write_manifest({"experiment": "mine", "config": config | {"datasets": {}, "algorithms": {}}})
    return tmp_path


def edit(path: Path, row: int, column: str, value: str) -> None:
    """Put a value into a CSV file whose values have no commas in them but for the JSON ones."""
    import pandas as pd

    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    frame.loc[row, column] = value
    frame.to_csv(path, index=False)


TABLES = {
    "records": [*BOUNDED, "repeat"],
    "traces": ["t", "elapsed_s", "value"],
    "reliability": ["bin", "n", "predicted", "positive"],
    "rows": ["label"],
}


@pytest.mark.drawn(0.03)
def test_a_row_with_a_number_that_cannot_be_is_refused(folder: Path, draw: Random) -> None:
    name = draw.choice(list(TABLES))
    column, row = draw.choice(TABLES[name]), draw.randrange(2)
    value = impossible(draw, "accuracy" if column == "value" else column)
    edit(folder / f"{name}.csv", row, column, repr(value))
    rejected(lambda: read_results(folder), f"{name}.csv: row {row + 1}, {column}: expected ", "got ")


@pytest.mark.parametrize("columns", [("key",), ("repeat",)])
def test_a_row_that_comes_twice_is_refused(folder: Path, columns: tuple[str, ...]) -> None:
    for column in columns:
        edit(folder / "records.csv", 1, column, "k0" if column == "key" else "0")
    rejected(lambda: read_results(folder), "records.csv: row 2: expected another ", "in each row")


@pytest.mark.parametrize("version", [3, 99, 10**30])
@pytest.mark.parametrize("place", ["cells/k0.json", "manifest.yaml"])
def test_what_a_newer_version_wrote_is_neither_read_nor_overwritten(folder: Path, place: str, version: int) -> None:
    path = folder / place
    text = path.read_text(encoding="utf-8")
    for old in ('"schema_version": 2', "schema_version: 2"):
        text = text.replace(old, old.replace("2", str(version)))
    path.write_text(text, encoding="utf-8")
    before = files_in(folder)
    read: Callable[[], object] = Store(folder).read_manifest if place == "manifest.yaml" else Store(folder).rebuild
    rejected(read, "schema_version: expected at most 2, got ", "another results_dir")
    if place != "manifest.yaml":
        rejected(lambda: Store(folder).finished("k0"), "schema_version")
    assert files_in(folder) == before


ANYTHING: list[Any] = [None, 5, True, "x", [], [[1]], {}, {"a": {"b": [1]}}, -1.5, "9" * 4000]
UNREAD = [("versions",), ("git_commit",), ("changed",), ("started",), ("config", "seed"), ("config", "kernel")]


@pytest.mark.parametrize("value", ANYTHING, ids=lambda value: ascii(value)[:20])
@pytest.mark.parametrize("where", UNREAD, ids=".".join)
def test_parts_of_a_manifest_that_nobody_reads_may_be_anything(
    folder: Path, where: tuple[str, ...], value: Any
) -> None:
    path = folder / "manifest.yaml"
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    inner = content
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    assert len(read_results(folder).records) == 2


IRREGULAR: dict[str, Callable[[Path], object]] = {
    "a named pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a link that leads to itself": lambda path: path.symlink_to(path),
}


@pytest.mark.parametrize("got", IRREGULAR)
def test_a_cell_that_is_no_file(folder: Path, got: str) -> None:
    """A run that needs the cell is refused; as the cell of another it is named in the note."""
    path = folder / "cells" / "k1.json"
    path.unlink()
    IRREGULAR[got](path)
    rejected(lambda: Store(folder).finished("k1"), "k1.json: expected a regular file, got", got)
    summary = Store(folder).rebuild()
    assert summary.listed == 1
    assert summary.unreadable == (() if "link" in got else ("k1.json",))


@pytest.mark.parametrize("name", ["records.csv", "traces.csv", "reliability.csv", "rows.csv", "manifest.yaml"])
@pytest.mark.parametrize("got", IRREGULAR)
def test_a_table_that_is_no_file(folder: Path, name: str, got: str) -> None:
    path = folder / name
    path.unlink()
    IRREGULAR[got](path)
    rejected(lambda: read_results(folder), f"{name}: expected a regular file, got {got}")


@pytest.mark.parametrize("name", ["records.csv", "traces.csv", "manifest.yaml", "cells/k0.json"])
def test_a_file_without_end_is_not_read(folder: Path, name: str) -> None:
    os.truncate(folder / name, 10**10)
    read: Callable[[], object] = (
        (lambda: Store(folder).finished("k0")) if "cells" in name else lambda: read_results(folder)
    )
    rejected(read, f"{name}: expected a file of at most ", "got 10,000,000,000")


@pytest.mark.parametrize("content", [b"," * 10**7, b"a" * 10**7, b'"' + b"\n" * 10**6, b"key\n" + b"," * 10**6])
def test_a_header_without_end(folder: Path, content: bytes) -> None:
    (folder / "records.csv").write_bytes(content)
    rejected(lambda: read_results(folder), "records.csv: ", "expected ", "got ")


def test_a_note_of_many_files_is_short(folder: Path) -> None:
    for number in range(2000):
        (folder / "cells" / f"x{number}.json").write_bytes(b"")
    (note,) = Store(folder).rebuild().notes()
    assert len(note) < 700


def test_every_column_of_numbers_has_a_range() -> None:
    changed = copy.deepcopy(dict(RANGES))
    assert {"t", "elapsed_s", "bin", "n", "predicted", "positive", "x1", "x2", "label", "repeat", "seed"} <= set(
        changed
    )
    assert set(STORED) <= set(changed) & set(COLUMNS)
    assert not possible("accuracy", math.nan)
    assert possible("a metric of a user", -1e300)


@pytest.mark.parametrize("name", ["cells", "report"])
def test_a_folder_to_write_to_that_is_a_pipe_is_named(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    message = rejected(lambda: write_atomic(tmp_path / name / "a.json", b"1"), "expected a folder, got a named pipe")
    assert message.startswith(f"{tmp_path / name}: ")
    (tmp_path / "file").write_text("1")
    rejected(lambda: write_atomic(tmp_path / "file" / "in" / "a.json", b"1"), f"{tmp_path / 'file'}: expected a folder")
