"""Cells and tables with impossible values, drawn from the declared ranges of all columns and metrics."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pytest

from klr_bench.files import read_checked_json, write_checked_json
from klr_bench.metrics.labels import CATALOG, METRICS
from klr_bench.report.load import read_results
from klr_bench.results.record import COLUMNS, LONGEST_MESSAGE, RANGES, CellFile, Record, parse_cell
from klr_bench.results.store import Store
from klr_bench.results.variants import Variant
from tests.attack.promise import files_in, rejected

pytestmark = pytest.mark.exhaustive
STORED = [metric.name for metric in CATALOG if metric.stored]
BOUNDED = [name for name in STORED if METRICS[name].low > -math.inf]
KEY = "k0"


def cell(**metrics: float) -> CellFile:
    """Return the cell of a run."""
    variant = Variant({"G": 1})
    record = Record(KEY, "mine", "moons", "nc", variant, {"eta": 1.0}, 0, 3, "ok", "", {"accuracy": 0.9} | metrics)
    return CellFile(record, "c", 1.0, [(1, 0.1, "accuracy", 0.5)], [(0, 50, 0.02, 0.04)], [(0.5, 0.5, 1)])


def plain() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(json.dumps(cell().content()))
    return content


def impossible(draw: Random, name: str) -> float:
    """Return an impossible value of a column."""
    metric = RANGES[name]
    values: list[float] = [math.nan, *([0.5, 2.5, 2**53 + 2, 1e300] if metric.whole else [])]
    if metric.low > -math.inf:
        values += [metric.low - 1e-3, metric.low - 1, -5.0, -1e300, -math.inf]
    if metric.high < math.inf:
        values += [metric.high + 1e-3 * max(1.0, metric.high), 2 * metric.high + 5, 1e300, math.inf]
    return draw.choice(values)


def test_a_possible_cell_is_read() -> None:
    assert parse_cell(plain(), KEY) == cell()
    points = [(1, 0.1, "duality_gap", math.nan), (2, 0.2, "duality_gap", 0.5)]
    checked = CellFile(cell().record, "c", 1.0, points).checked()
    assert (checked.record, list(checked.checkpoints)) == (cell().record, points[1:]), "without the point of nan"
    assert set(STORED) <= set(RANGES) & set(COLUMNS)


PLACES = [
    *[("traces", place, name) for place, name in enumerate(("t", "elapsed_s"))],
    ("traces", 3, "accuracy"),
    *[("reliability", place, name) for place, name in enumerate(("bin", "n", "predicted", "positive"))],
    ("rows", 2, "label"),
]


@pytest.mark.drawn(0.06)
def test_a_cell_with_an_impossible_value_is_damaged(draw: Random) -> None:
    content = plain()
    if draw.random() < 0.5:
        name = draw.choice(BOUNDED)
        content["record"]["metrics"][name] = impossible(draw, name)
    else:
        kind, place, name = draw.choice(PLACES)
        content[kind][0][place] = impossible(draw, name)
    assert parse_cell(content, KEY) is None


@pytest.mark.drawn(0.01)
def test_a_fit_that_reports_an_impossible_value_has_failed(draw: Random) -> None:
    name = draw.choice(BOUNDED)
    failed = cell(**{name: impossible(draw, name)}).checked()
    assert (failed.record.status, failed.record.metrics) == ("error", {})
    assert failed.record.message.startswith(f"{name}: expected ")
    again = parse_cell(json.loads(json.dumps(failed.content())), KEY)
    assert again is not None
    assert again.record == failed.record


def test_a_message_is_cut_when_it_is_stored(tmp_path: Path) -> None:
    store = Store(tmp_path)
    record = Record(KEY, "mine", "moons", "nc", Variant(), {}, 0, 0, "error", "bad [/red] \x1b[31m\ud800" + "x" * 10**7)
    store.write_cell(CellFile(record, "c", 1.0))
    assert store.rebuild().listed == 1
    assert (tmp_path / "records.csv").stat().st_size < 2 * LONGEST_MESSAGE
    (stored,), _ = store.load()
    assert len(stored.record.message) <= LONGEST_MESSAGE
    assert "(10,000," in stored.record.message


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A results folder with two repeats."""
    store = Store(tmp_path)
    for repeat in range(2):
        template = cell()
        record = Record(**{**vars(template.record), "key": f"k{repeat}", "repeat": repeat})
        store.write_cell(CellFile(record, "c", 1.0, template.checkpoints, template.bins, template.rows))
    store.rebuild()
    config = {"name": "mine", "title": "Mine", "repeats": 2, "sweep": {}}
    store.write_manifest({"experiment": "mine", "config": config | {"datasets": {}, "algorithms": {}}})
    return tmp_path


def edit(path: Path, row: int, column: str, value: str) -> None:
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
def test_a_table_with_an_impossible_value_is_refused(folder: Path, draw: Random) -> None:
    name = draw.choice(list(TABLES))
    column, row = draw.choice(TABLES[name]), draw.randrange(2)
    value = impossible(draw, "accuracy" if column == "value" else column)
    edit(folder / f"{name}.csv", row, column, repr(value))
    rejected(lambda: read_results(folder), f"{name}.csv: row {row + 1}, {column}: expected ", "got ")


@pytest.mark.parametrize(("column", "value"), [("key", "k0"), ("repeat", "0")])
def test_a_duplicate_row_is_refused(folder: Path, column: str, value: str) -> None:
    edit(folder / "records.csv", 1, column, value)
    rejected(lambda: read_results(folder), "records.csv: row 2: expected another ", "in each row")


@pytest.mark.parametrize("place", ["cells/k0.json", "manifest.yaml"])
def test_files_of_a_newer_version_are_neither_read_nor_overwritten(folder: Path, place: str) -> None:
    path = folder / place
    if place == "manifest.yaml":
        path.write_text(path.read_text().replace("ion: 2", "ion: 99"))
    else:
        write_checked_json(path, read_checked_json(path) | {"schema_version": 99})
    before = files_in(folder)
    read: Callable[[], object] = Store(folder).read_manifest if place == "manifest.yaml" else Store(folder).rebuild
    rejected(read, "schema_version: expected at most 2, got 99", "another results_dir")
    if place != "manifest.yaml":
        rejected(lambda: Store(folder).finished("k0"), "schema_version")
    assert files_in(folder) == before


ODD: dict[str, Callable[[Path], object]] = {
    "a named pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a link that leads to itself": lambda path: path.symlink_to(path),
    "10,000,000,000": lambda path: (path.touch(), os.truncate(path, 10**10)),
}


@pytest.mark.parametrize("got", ODD)
@pytest.mark.parametrize("name", ["records.csv", "traces.csv", "manifest.yaml", "cells/k1.json"])
def test_anything_but_a_regular_file_of_a_possible_size_is_refused(folder: Path, name: str, got: str) -> None:
    path = folder / name
    path.unlink()
    ODD[got](path)
    is_cell = "cells" in name
    read: Callable[[], object] = (lambda: Store(folder).finished("k1")) if is_cell else lambda: read_results(folder)
    rejected(read, f"{name}: expected a ", f"got {got}")
    if is_cell and "000" not in got:
        summary = Store(folder).rebuild()
        assert (summary.listed, summary.unreadable) == (1, () if "link" in got else ("k1.json",))


@pytest.mark.parametrize("content", [b"," * 10**7, b"a" * 10**7, b'"' + b"\n" * 10**6, b"key\n" + b"," * 10**6])
def test_a_huge_header_is_refused(folder: Path, content: bytes) -> None:
    (folder / "records.csv").write_bytes(content)
    rejected(lambda: read_results(folder), "records.csv: ", "expected ", "got ")
