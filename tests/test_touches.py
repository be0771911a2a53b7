"""User files of docs/add/, in their own folder, appear in the report of a run."""

import csv
import hashlib
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_circles

from klr_bench.cli import main

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^(?:`([\w./]+)`\n\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = ("index", "algorithm", "dataset", "figure", "paper")
WITHIN = "\n## Inside klr-bench\n"
"""Heading of the second half of a page, which is about a checkout."""
TOUCHES = {
    "configs/algorithm/nearest_mean.yaml",
    "configs/dataset/rings.yaml",
    "configs/experiment/mine.yaml",
    "configs/figure/bars.py",
    "configs/metric/recall.py",
    "configs/paper/mine/paper.yaml",
    "configs/paper/mine/tables.csv",
    "my_learner.py",
}


@dataclass(frozen=True)
class Outcome:
    """The text of the report that the commands have printed, and the results folder."""

    report: str
    folder: Path

    def line(self, beginning: str) -> list[str]:
        """Return the words of the line of the report that starts with this text."""
        return next(line for line in self.report.splitlines() if line.startswith(beginning)).split()


def files_and_commands() -> tuple[dict[str, str], list[str]]:
    """Return the files and the commands that the pages show."""
    pages = [(ROOT / "docs" / "add" / f"{name}.md").read_text(encoding="utf-8") for name in PAGES]
    blocks = BLOCK.findall("\n".join(page.split(WITHIN)[0] for page in pages))
    commands = [line for _, language, content in blocks if language == "sh" for line in content.splitlines()]
    return {path: content for path, _, content in blocks if path}, commands


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Write the files and run the commands in their folder, like the script `klr-bench`."""
    folder = tmp_path_factory.mktemp("user")
    files, commands = files_and_commands()
    assert set(files) == TOUCHES
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, encoding="utf-8")
    write_rings(folder / "files" / "rings" / "rings.csv")
    output = [run(command, folder) for command in commands]
    return Outcome(output[-1], folder / "results" / "mine")


def write_rings(path: Path, n: int = 200) -> None:
    """Write rows of two rings with the label in the last column."""
    path.parent.mkdir(parents=True, exist_ok=True)
    X, y = make_circles(n, noise=0.05, factor=0.3, random_state=0)
    rows = [f"{a:.6f},{b:.6f},{name}" for (a, b), name in zip(X, np.where(y, "inner", "outer"), strict=True)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def run(command: str, folder: Path) -> str:
    program, verb, *arguments = shlex.split(command, comments=True)
    assert program == "klr-bench"
    if verb == "run":
        arguments += ["data.cache=cache", "n_jobs=2"]
    # -P: the current folder is not on the path, as in the script; the repository is, in place of an installation.
    line = [sys.executable, "-P", "-m", "klr_bench", verb, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120", "PYTHONSAFEPATH": ""}
    done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_an_algorithm_and_an_experiment(outcome: Outcome) -> None:
    assert outcome.report.startswith("My experiment\n")
    _, _, finished, accuracy, *_ = outcome.line("Nearest mean")
    assert finished == "2/2"
    assert 20 < float(accuracy) < 80  # the rings have the same center
    assert outcome.line("OSKL G=1")[2] == outcome.line("OSKL G=4")[2] == "2/2"


def test_a_data_set_and_a_metric(outcome: Outcome) -> None:
    with (outcome.folder / "records.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    sizes = {(row["dataset"], row["n_train"], row["n_test"], row["n_features"]) for row in rows}
    assert sizes == {("rings", "160", "40", "2")}
    assert outcome.line("Rings")[:3] == ["Rings", "ok", "(%)"]
    recalls = [float(row["recall"]) for row in rows if row["algorithm"] == "oskl"]
    assert len(recalls) == 4
    assert min(recalls) > 0.8
    assert "Recall" in outcome.report


def test_a_figure_and_a_table_of_a_paper(outcome: Outcome) -> None:
    assert {path.name for path in (outcome.folder / "report").iterdir()} >= {"bars.png", "bars.svg"}
    published = [
        line.split()[:4] for line in outcome.report.splitlines() if line.split()[:1] == ["paper"] and "±" in line
    ]
    assert published == [["paper", mean, "±", std] for mean, std in (("50.2", "0.9"), ("99.1", "0.4"), ("98.7", "0.5"))]
    assert "paper: mine, table 1." in outcome.report


def test_the_data_set_is_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A changed file is used in the next run; a file of the same name in another folder is not."""

    def counts(folder: str) -> tuple[str, list[str]]:
        monkeypatch.chdir(tmp_path / folder)
        words = ["dataset=rings", "algorithm=[nc]", "repeats=2", "name=one", "parallel=serial"]
        status = main(["run", *words, "data.mirror=files", "data.cache=../cache"])
        printed = capfd.readouterr()
        assert status == 0, printed.err
        with Path("results/one/records.csv").open(encoding="utf-8") as file:
            rows = [row["n_train"] for row in csv.DictReader(file)]
        return next(line for line in printed.out.splitlines() if "finished" in line)[:46], rows

    page = files_and_commands()[0]["configs/dataset/rings.yaml"]
    for folder, n in (("mine", 200), ("theirs", 100)):
        (tmp_path / folder / "configs" / "dataset").mkdir(parents=True)
        (tmp_path / folder / "configs" / "dataset" / "rings.yaml").write_text(page, encoding="utf-8")
        write_rings(tmp_path / folder / "files" / "rings" / "rings.csv", n)
    computed, found = "2 of 2 cells are finished (0 by", "2 of 2 cells are finished (2 by"
    for folder, beginning, n_train in (("mine", computed, 160), ("theirs", computed, 80), ("mine", found, 160)):
        line, rows = counts(folder)
        assert (line.startswith(beginning), rows) == (True, [str(n_train)] * 2), line
    write_rings(tmp_path / "mine" / "files" / "rings" / "rings.csv", 50)
    for beginning in (computed, found):
        line, rows = counts("mine")
        assert (line.startswith(beginning), rows) == (True, ["40", "40"]), line
    manifest = (tmp_path / "mine" / "results" / "one" / "manifest.yaml").read_text(encoding="utf-8")
    content = (tmp_path / "mine" / "files" / "rings" / "rings.csv").read_bytes()
    declared = f"sha256: {hashlib.sha256(content).hexdigest()}"
    assert declared in manifest
    (tmp_path / "mine" / "files" / "rings" / "rings.csv").unlink()
    assert counts("mine") == (line, rows), "the cache has the last content"
    (tmp_path / "mine" / "configs" / "dataset" / "rings.yaml").write_text(page.replace("sha256: unknown", declared))
    assert counts("mine") == (line, rows), "the key of a declared hash is the same"
