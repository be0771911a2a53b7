"""Reports can be reproduced: each committed table is generated again from its records."""

import re
import shutil
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import scipy
import yaml

from klr_bench.cli import main
from klr_bench.config.changes import NEUTRAL_KEYS
from klr_bench.config.locations import config_dir
from klr_bench.config.models import RunConfig
from klr_bench.report import FORMATS
from klr_bench.report.load import read_results
from klr_bench.report.papers.reproduction import provenance, source_of
from klr_bench.report.render import document, table_files
from klr_bench.report.table import results_table
from tests.attack.promise import files_in
from tests.config.composing import composed
from tests.report.folders import REFERENCE, reproduction, table

FOLDERS = sorted(path.parent for path in REFERENCE.glob("*/records.csv"))
DECIMAL = re.compile(r"-?\d+\.\d+(?:e-\d+)?")
SHOWN_OR_LOCAL = ("name", "title", "figures", *NEUTRAL_KEYS)
"""Settings that have no effect on records."""


def decimals(text: str) -> list[float]:
    """Return the numbers of a table."""
    return [float(number) for number in DECIMAL.findall(text)]


def settings(config: RunConfig) -> dict[str, Any]:
    """Return the settings that have an effect on records."""
    content = config.model_dump()
    for key in SHOWN_OR_LOCAL:
        *outer, last = key.split(".")
        reduce(getitem, outer, content).pop(last, None)
    for group in ("datasets", "algorithms"):
        for entry in content[group].values():
            for name in ("label", "reference"):
                entry.pop(name, None)
    return content


def test_the_script_has_made_them_all() -> None:
    measured = {path.stem for path in (REFERENCE / "benchmark").glob("*.csv")} - {"machine"}
    made = pd.read_csv(REFERENCE / "times.csv")["reference"]
    assert sorted(made) == sorted([*(folder.name for folder in FOLDERS), *(f"benchmark/{part}" for part in measured)])
    assert len(measured) >= 16
    assert len(FOLDERS) >= 35


def test_the_data_sets_have_the_splits_of_the_references() -> None:
    files = [*(config_dir() / "dataset").glob("*.yaml")]
    entries = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in files}
    for path in (config_dir() / "experiment").glob("*.yaml"):
        entries |= {
            name: entry
            for name, entry in (yaml.safe_load(path.read_text(encoding="utf-8")).get("datasets") or {}).items()
            if "source" in entry
        }
    names = {name for folder in FOLDERS for name in pd.read_csv(folder / "records.csv")["dataset"]}
    names.remove("customers-34f76d")  # a user's file has no name in its seed
    assert {name: entries[name].get("seed_name") for name in names} == {name: name for name in names}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_reference_names_its_commit_and_machine_and_has_the_tables_of_its_records(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klr_bench.report.papers.reproduction.Reproduction", lambda name, *_, only: reproduction(name))
    results = read_results(folder)
    commit, changed = source_of(results.manifest)
    assert re.fullmatch("[0-9a-f]{10}", commit)
    assert not changed
    (sentence,) = provenance({folder.name: results})
    assert f"One commit: {commit}. One machine: " in sentence
    assert "not known" not in sentence
    built = results_table(results)
    assert not any(line.n_missing for block in built.blocks for line in block.lines)
    for name, text in table_files(built, document(built), FORMATS).items():
        path = folder / "report" / name
        committed = path.read_text(encoding="utf-8")
        again = (
            f"{path} does not agree with the records; write it again: "
            f"klr-bench report experiment={folder.name} results_dir=results/reference "
            f"output=results/reference/{folder.name}/report format=md,tex,csv"
        )
        if scipy.__version__.startswith("1.11."):  # the last digits of its statistics differ
            assert decimals(text) == pytest.approx(decimals(committed), rel=1e-8), again
            text, committed = DECIMAL.sub("", text), DECIMAL.sub("", committed)
        assert text == committed, again


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_settings_of_a_reference_are_those_of_its_command_today(folder: Path) -> None:
    manifest = read_results(folder).manifest
    assert settings(manifest.config) == settings(composed(*manifest.command))


def test_a_number_that_the_records_have_is_shown() -> None:
    folder = REFERENCE / "klr_figure5"
    records = pd.read_csv(folder / "records.csv")
    accuracy = records.loc[(records["dataset"] == "ijcnn1") & (records["algorithm"] == "pcd"), "accuracy"]
    assert len(accuracy) == 5
    assert accuracy.mean() == pytest.approx(0.950, abs=1e-3)  # the time limit stops these fits
    (line,) = [line for line in table(folder).blocks[-1].lines if line.algorithm == "pcd"]
    assert line.timed_out
    assert line.entries["accuracy"].mean == pytest.approx(accuracy.mean(), abs=1e-9)
    shown = f"{100 * accuracy.mean():.1f} ± {100 * accuracy.std():.1f}"
    assert f" {shown} |" in (folder / "report" / "table.md").read_text(encoding="utf-8")


def test_a_report_on_the_references_is_written_outside_of_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    at = f"results_dir={REFERENCE}"
    for arguments, written in {
        ("experiment=quickstart", "format=csv"): "quickstart/report/table.csv",
        ("paper=zhang2012aaai", "format=csv"): "papers/zhang2012aaai/numbers.csv",
        ("experiment=quickstart,own_file", "format=html"): "report.html",
    }.items():
        assert main(["report", *arguments, at]) == 0
        file = Path("results", "reference_reports", written)
        assert file.is_file()
        assert str(file) in capsys.readouterr().out


def test_a_second_clone_reports_and_the_references_of_the_first_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The program belongs to this checkout; current folder and results belong to others."""
    for clone in ("one", "other"):
        shutil.copytree(config_dir(), tmp_path / clone / "configs")
        (tmp_path / clone / "klr_bench").mkdir()
        (tmp_path / clone / "klr_bench" / "__init__.py").touch()
    folder = tmp_path / "one" / "results" / "reference"
    shutil.copytree(REFERENCE / "oskl_magic", folder / "oskl_magic", ignore=shutil.ignore_patterns("report"))
    before = sorted(folder.rglob("*")), files_in(folder)
    monkeypatch.chdir(tmp_path / "other")
    for words in (["experiment=oskl_magic", "format=md"], ["paper=zhang2013icml", "format=md"]):
        assert main(["report", *words, f"results_dir={folder}"]) == 0
    assert (sorted(folder.rglob("*")), files_in(folder)) == before
    assert Path("results/reference_reports/oskl_magic/report/table.md").is_file()
    assert caplog.messages == []


def test_an_unknown_paper_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", "paper=tan2016aaai,unknown", "format=csv", f"results_dir={REFERENCE}"]) == 2
    assert "unknown" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]
