"""Results that a report reads are checked against declared keys and types, from which the cases are generated."""

import copy
import csv
import io
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from klr_bench.cli import main
from klr_bench.config.locations import config_dir, folders
from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.parsing import parse
from klr_bench.report.load import read_results
from klr_bench.report.manifest import read_manifest
from klr_bench.report.papers.model import Paper, Printed
from klr_bench.report.papers.reading import _warn, read_lines, read_paper
from klr_bench.report.render.terminal import MOST_GRIDS
from klr_bench.results.record import CellFile
from tests.attack import promise
from tests.report.folders import record, write, write_cells

Place = tuple[str | int, ...]

CONFIG: dict[str, Any] = {
    "name": "mine",
    "experiment": "mine",
    "title": "Mine",
    "repeats": 1,
    "datasets": {"moons": {"label": "Moons", "source": {"format": "generated"}, "split": {"test_size": 0.2}}},
    "algorithms": {"nc": {"label": "NC", "estimator": {"eta": 1.0}}},
    "sweep": {"nc": {"R": [1.0]}},
    "figures": ["accuracy_support"],
    "metrics": ["accuracy", "n_trees"],
    "against": {"accuracy_gain": {"R": 1.0}},
    "budget": "from:oskl_magic/oskl",
}
MANIFEST: dict[str, Any] = {
    "experiment": "mine",
    "schema_version": 2,
    "config": CONFIG,
    "machine": {"cpu": "A CPU"},
    "labels": {"algorithms": {"nc": "NC"}, "datasets": {"moons": "Moons"}},
    "own_metrics": {"n_trees": Metric("n_trees", "Trees", "count", "lower", "").description()},
}
NC = {"algorithms": ["nc"]}
CAUSE = {
    **{"numbers": {"params": {"R": [1.0]}}, "because": "We do it in another way.", "shown_by": ["mine"]},
    "statements": [{"metric": "accuracy", "of": NC, "relation": "above", "value": 0.5}],
}
PAPER: dict[str, Any] = {
    **{"title": "A paper", "authors": "Somebody", "venue": "Somewhere", "year": 2020, "reference": "Somebody (2020)"},
    "tables": {
        "1": {
            "title": "One",
            "experiments": ["mine"],
            "repeats": 5,
            "counterparts": {"nc": {"R": 1.0}},
            "as_stated": {"nc": "In section 1."},
        }
    },
    "stand_ins": {"moons": "digits"},
    "causes": [CAUSE],
    "absent": [{"numbers": {"dataset": ["adult"]}, "because": "There is no such data."}],
    "claims": [
        {
            **{"says": "It is better.", "where": "section 1", "experiments": ["mine"]},
            "statements": [{"metric": "accuracy", "of": NC, "relation": "above", "value": 0.5}],
        }
    ],
}
LINE = {
    **{"table": "1", "dataset": "digits", "algorithm": "nc", "params": "", "metric": "accuracy"},
    **{"mean": "85.8", "std": "0.4", "unit": "percent", "label": "Baseline"},
}
OTHER_LINE = LINE | {"dataset": "adult", "params": '{"R": 1.0}'}  # the number to which the cause and "absent" refer


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a user's experiment and paper, and results."""
    root = tmp_path_factory.mktemp("attack")
    rows = [record("nc", "R=1.0", 0, dataset="moons", accuracy=0.9, n_support=9, n_train=80, n_trees=3)]
    traces, bins = [(1, 0.1, "accuracy", 0.5), (9, 0.2, "accuracy", 0.9)], [(0, 50, 0.02, 0.04)]
    cells = [CellFile(row, "c", 1.0, traces, bins, [(0.5, 0.5, 1)]) for row in rows]
    folder = write_cells(root / "results" / "mine", cells, CONFIG)
    (folder / "manifest.yaml").write_text(yaml.safe_dump(MANIFEST), encoding="utf-8")
    paper = root / "configs" / "paper" / "own"
    paper.mkdir(parents=True)
    (paper.parents[1] / "experiment").mkdir()
    (paper.parents[1] / "experiment" / "mine.yaml").write_text("# @package _global_\n", encoding="utf-8")
    (paper / "paper.yaml").write_text(yaml.safe_dump(PAPER), encoding="utf-8")
    (paper / "tables.csv").write_text(_csv([LINE, OTHER_LINE]), encoding="utf-8")
    return root


@pytest.fixture
def place(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the folder, which becomes the current folder."""
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _csv(lines: list[dict[str, str]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def check_clear(message: str) -> None:
    """Check that a message names what was expected and what was found, or the valid names."""
    assert ("expected" in message and "got" in message) or re.search("unknown (key|value) ", message), message
    assert "unknown " not in message or "Did you mean" in message or "Known: " in message, message


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> None:
    """Check that the report is refused with a message that contains these words."""
    check_clear(promise.refused(capsys, ["report", "experiment=mine"], *words))


def rejected(read: Callable[[], object], *words: str) -> None:
    check_clear(promise.rejected(read, *words))


def own_lines(place: Path) -> list[Printed]:
    folder = place / "configs" / "paper" / "own"
    return read_lines(folder, parse(Paper, PAPER), METRICS, folders())


def changed(content: Mapping[str, Any], place: Place, value: Any) -> dict[str, Any]:
    new: dict[str, Any] = copy.deepcopy(dict(content))
    inner: Any = new
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return new


def test_the_right_values_are_accepted(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "experiment=mine"]) == 0
    out = capsys.readouterr().out
    assert "85.8" in out
    assert "Trees" in out


STATEMENT = {"metric": 5, "of": {}, "relation": "over", "value": "x", "within": -1, "spreads": True, "nearest": 5}
WRONG: dict[str, list[tuple[Place, list[Any]]]] = {
    "manifest.yaml": [
        (("experiment",), [5, None, "", "../x", "a\x1b[31mb"]),
        (("schema_version",), [0, 1, 3, "2", 2.0, None, True]),
        (("config",), [[], "x", None]),
        (("config", "repeats"), [0, 2.5, "x", float("nan")]),
        (("config", "datasets"), [[], {"a/b": {}}, {"moons": 5}]),
        (("config", "algorithms", "nc", "label"), [5, [], "a\x1b[31mb"]),
        (("config", "sweep", "nc"), [5, {"R": 1.0}, {"R": [{}]}]),
        *((("config", name), [5, [5], ["acuracy\x1b"]]) for name in ("figures", "metrics")),
        (("config", "against"), [[], {"accuracy": {}}]),
        (("machines",), [{}]),
        (("machine", "cpu"), ["a\x1b[31mb"]),
        (("labels", "algorithms"), [[], {"nc": 5}]),
        *((("own_metrics", "n_trees", key), [5, "x"]) for key in ("name", "unit", "better", "whole")),
    ],
    "paper.yaml": [
        *(((name,), [5, None, "a\x1b[31mb"]) for name in ("title", "reference")),
        (("year",), ["2020", 10, 2020.5, None]),
        (("tables",), [[], {"1": 5}, {"1": {"title": "One", "rows": 3}}]),
        *((("tables", "1", key), [0]) for key in ("layout", "repeats", "counterparts", "columns")),
        (("tables", "1", "experiments"), [0, ["mien"], "mine", ["../mine"]]),
        (("stand_ins",), [{"monos": "digits"}, {"moons": "digit"}, {"moons": "../x"}, []]),
        (("causes",), [5, [5], [{"numbers": {}}], [CAUSE | {"because": "no sentence"}]]),
        (("causes", 0, "shown_by"), [[], ["mien"], "mine"]),
        (("causes", 0, "statements"), [[], [5], [{"metric": "accuracy", "of": NC, "relation": "above"}]]),
        (("causes", 0, "numbers"), [5, {"tables": ["1"]}, {"dataset": []}]),
        (("claims",), [5, [{}], [PAPER["claims"][0] | {"share": 0}]]),
        *((("claims", 0, "statements", 0, key), [value]) for key, value in STATEMENT.items()),
        (("abuot",), ["A sentence."]),
    ],
}


@pytest.mark.parametrize(
    ("name", "where", "value"),
    [(name, where, value) for name, keys in WRONG.items() for where, values in keys for value in values],
    ids=lambda value: ascii(value)[:40],
)
def test_a_wrong_value_in_a_manifest_or_a_paper(place: Path, name: str, where: Place, value: Any) -> None:
    folder = place / ("results/mine" if name == "manifest.yaml" else "configs/paper/own")
    content = changed(MANIFEST if name == "manifest.yaml" else PAPER, where, value)
    (folder / name).write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    read = read_manifest if name == "manifest.yaml" else lambda folder: read_paper(folder, folders())
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where).removeprefix(".")
    rejected(lambda: read(folder), name, key)


LINES = {
    "table": ["2", "", "one"],
    "dataset": ["", "digit", "../digits", "a/b", "x\x1b[31m"],
    "algorithm": ["ncc", "nc\x1b[31m", "7"],
    "params": ["{", "[1]", "5", "'a'", "{'R': 1}", "lam=0.1", "[" * 100_000],
    "metric": ["acuracy", "", "n_features", "5"],
    "mean": ["", "x", "nan", "inf", "1,000", "8_5", "1e999999999", "85.8 ", "-50", "101"],
    "std": ["-0.1", "x", "nan", "inf", "0,4"],
    "unit": ["", "percents", "s", "count", "%"],
    "label": ["a\x1b[31mb"],
}


@pytest.mark.parametrize(
    ("column", "value"), [(column, value) for column, values in LINES.items() for value in values], ids=repr
)
def test_a_wrong_line_of_a_paper(place: Path, column: str, value: str) -> None:
    path = place / "configs" / "paper" / "own" / "tables.csv"
    path.write_text(_csv([LINE | {column: value}]), encoding="utf-8")
    named = "unit" if value == "n_features" else column  # a metric that there is, but not printed in percent
    rejected(lambda: own_lines(place), f"tables.csv, line 2: {named}: ")


OTHER_SHAPES = [
    *(("configs/paper/own/tables.csv", content) for content in ("", "table\n1\n", "a,b\n1,2\n", '"unclosed', "\0")),
    *(("configs/paper/own/tables.csv", _csv([LINE, LINE]) + end) for end in ("", "1,2\n")),
    *(
        (f"results/mine/{name}.csv", content)
        for name in ("records", "traces", "reliability", "rows")
        for content in ("", "\0\0", "key\nx\n", "key,key\n1,2,3\n")
    ),
]


@pytest.mark.parametrize(("path", "content"), OTHER_SHAPES)
def test_a_table_of_another_shape(place: Path, capsys: pytest.CaptureFixture[str], path: str, content: str) -> None:
    (place / path).write_text(content, encoding="utf-8")
    refused(capsys, Path(path).name)


WRONG_VALUES: list[tuple[str, str, list[str]]] = [
    ("records", "status", ["", "okay"]),
    ("records", "variant", ["{", "[1]", '{"G": "a\\u001b[31m"}', "{" * 100_000]),
    ("records", "params", ["{", "[1]", "[" * 100_000]),
    ("records", "repeat", ["-1", "0.5", "1e400", "9" * 5000]),
    ("records", "accuracy", ["x", "nan", "1_0", "\u0665", "0x1f", "1,5", "1.9"]),
    *(("records", name, ["a\x1b[31mb", "../x"]) for name in ("key", "dataset", "algorithm")),
    *(("traces", *more) for more in (("key", ["../x"]), ("t", ["-1"]), ("metric", ["a\x1b[31mb"]), ("value", ["x"]))),
    *(("reliability", *more) for more in (("bin", ["-1", "0.5", ""]), ("n", ["inf"]), ("positive", ["x"]))),
    *(("rows", *more) for more in (("x1", ["x", "nan"]), ("label", ["0.5"]))),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "column", "values"), WRONG_VALUES)
def test_wrong_values_in_a_table(place: Path, name: str, column: str, values: list[str]) -> None:
    path = place / "results" / "mine" / f"{name}.csv"
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    for value in values:
        path.write_text(_csv([rows[0] | {column: value}, *rows[1:]]), encoding="utf-8")
        rejected(lambda: read_results(path.parent), f"{name}.csv: row 1, {column}:")


@pytest.mark.parametrize("path", ["results/mine/manifest.yaml", "configs/paper/own/paper.yaml"])
def test_a_tag_runs_nothing(place: Path, capsys: pytest.CaptureFixture[str], path: str) -> None:
    with (place / path).open("a", encoding="utf-8") as file:
        file.write("\ntitle: !!python/object/apply:os.system ['touch ran']\n")
    refused(capsys, Path(path).name)
    assert not (place / "ran").exists()


def test_no_file_is_written_outside_of_the_report(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = place / "results" / "mine" / "records.csv"
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    for name in ("../../evil", "/tmp/evil", "..", ".hidden", "a\\b", " "):
        path.write_text(_csv([rows[0] | {"dataset": name}]), encoding="utf-8")
        before = promise.files_in(place)
        refused(capsys, "dataset")
        assert promise.files_in(place) == before


def test_a_sweep_of_endless_columns_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = {"nc": {f"p{number}": list(range(100)) for number in range(6)}}
    content = changed(MANIFEST, ("config", "sweep"), sweep)
    (place / "results" / "mine" / "manifest.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    refused(capsys, "config.sweep: expected at most 100,000 variants, got 1,000,000,000,000")


def test_a_nearer_paper_of_the_same_name_is_used_with_a_warning(
    place: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    _warn.cache_clear()
    paper = place / "configs" / "paper" / "own"
    paper = paper.rename(paper.with_name("qin2011"))
    assert main(["report", "experiment=mine"]) == 0
    capsys.readouterr()
    (message,) = caplog.messages
    assert message.startswith(f"The paper {paper} is used in place of {config_dir() / 'paper' / 'qin2011'}, which has")
    assert main(["show", "paper", "qin2011"]) == 0
    assert capsys.readouterr().out.startswith(f"# {paper}/paper.yaml\n")


def test_a_terminal_shows_some_of_many_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {"n_train": 9, "n_test": 9, "n_features": 2, "experiment": "mine"}
    names = [f"d{number}" for number in range(MOST_GRIDS + 3)]
    rows = [record("nc", "R=1.0", 0, dataset=name, key=name, accuracy=0.5, **sizes) for name in names]
    write(tmp_path / "mine", rows, CONFIG | {"metrics": ["accuracy"], "against": {}})
    assert main(["report", "experiment=mine", f"results_dir={tmp_path}"]) == 0
    assert "3 more tables are omitted. Use format=md to write all tables." in capsys.readouterr().out
