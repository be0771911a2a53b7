"""A run with changed settings is not the reproduction of a paper: its report says so, and no verdict counts it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from klr_bench.cli import main
from klr_bench.config.changes import changed_settings
from klr_bench.config.models import RunConfig
from klr_bench.parsing import parse
from klr_bench.report.load import read_results
from klr_bench.report.papers.verdicts import NotCompared
from klr_bench.runner.manifest import manifest
from tests.report.folders import USUAL, configuration, record, table, write

CHANGED = [
    "kernel.percentile=5",
    "+kernel.degree=2",
    "++sweep.oskl.G=[1]",
    "algorithms.oskl.grid.R=[10]",
    "algorithms.oskl.time_limit_s=9",
    "datasets.magic.split.test_size=0.5",
    "~algorithms.oskl.grid",
    "selection.folds=3",
    "data.scale=none",
]
FREE = ["experiment=oskl_magic", "name=mine", "repeats=2", "seed=1", "algorithm=[oskl]", "dataset=magic", "n_jobs=1"]
FREE += ["results_dir=a", "trace.points=3", "metrics=[auc]", "data.mirror=b", "+title=c"]
PARTS = {"algorithms": ["nc", "oskl"], "datasets": ["magic"]}


def test_settings_of_methods_and_data_are_changes_and_the_rest_is_not() -> None:
    assert changed_settings(FREE) == []
    assert changed_settings([*FREE, *CHANGED]) == [override.lstrip("+") for override in CHANGED]


def changes(overrides: Sequence[str], parts: Mapping[str, Sequence[str]], previous: Mapping[str, Any]) -> object:
    """Return the changes in the manifest of a run of these algorithms and data sets."""
    config = configuration({group: {name: {} for name in names} for group, names in parts.items()})
    return manifest(parse(RunConfig, config), 1, previous, overrides)["changes"]


@pytest.mark.parametrize(
    ("parts", "kept"),
    [(PARTS, False), (PARTS | {"algorithms": ["oskl"]}, True), (PARTS | {"datasets": ["adult"]}, True)],
)
def test_changes_hold_until_all_methods_are_run_without_them(parts: dict[str, list[str]], kept: bool) -> None:
    before = {"labels": {group: dict.fromkeys(names, "") for group, names in PARTS.items()}, "changes": CHANGED[:1]}
    assert changes(FREE, parts, before) == (CHANGED[:1] if kept else [])
    assert changes(CHANGED[3:4], parts, before) == [CHANGED[3], *(CHANGED[:1] if kept else [])]
    assert changes(FREE, parts, {}) == changes(FREE, parts, {"labels": 1, "changes": "text"}) == []


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a run of the experiment oskl_magic with the printed accuracy of OSKL."""
    monkeypatch.chdir(tmp_path)
    rows = [
        record("oskl", "G=1", n, dataset="magic", accuracy=0.855 + away, fit_time_s=0.1)
        for n, away in enumerate((-0.005, 0.0, 0.005))
    ]
    sections = {"experiment": "oskl_magic", "datasets": {"magic": {"label": "MAGIC"}}}
    config = USUAL | sections | {"title": "MAGIC, table 3", "algorithms": {"oskl": {"label": "OSKL"}}, "repeats": 3}
    for name, settings in (("oskl_magic", []), ("wide", ["kernel.percentile=5"]), ("other", [])):
        write(tmp_path / "results" / name, rows, config, changes=settings)
    return tmp_path / "results"


def test_a_table_names_the_run_and_its_changes_and_has_no_verdicts(place: Path) -> None:
    shipped, wide, other = (table(place / name) for name in ("oskl_magic", "wide", "other"))
    titles = ["MAGIC, table 3", "MAGIC, table 3; run wide with kernel.percentile=5", "MAGIC, table 3; run other"]
    assert [shipped.title, wide.title, other.title] == titles
    assert any(match.agrees for match in shipped.compared_matches)
    assert any(match.agrees for match in other.compared_matches)
    measured = [match for match in wide.compared_matches if match.entry and match.entry.mean is not None]
    assert measured
    assert all(match.not_compared is NotCompared.CHANGED for match in measured)
    assert all(match.difference is match.ratio is None for match in measured)


def test_a_changed_run_does_not_count_for_its_paper(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def agreeing() -> str:
        assert main(["report", "paper=zhang2013icml", "format=csv,terminal"]) == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert ("Left out because of changed settings: oskl_magic (kernel.percentile=5)." in printed) == is_changed
        return Path("results/papers/zhang2013icml/numbers.csv").read_text(encoding="utf-8")

    is_changed = False
    assert ",agrees" in agreeing()
    before = read_results(place / "oskl_magic").manifest.changes
    assert before == []
    manifest = place / "oskl_magic" / "manifest.yaml"
    manifest.write_text(manifest.read_text().replace("changes: []", "changes: [kernel.percentile=5]"))
    is_changed = True
    assert ",agrees" not in agreeing()
