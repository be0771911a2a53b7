"""scripts/references: each is made in a clone, of one commit; after a stop the same command goes on."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.exhaustive  # real runs in a clone
ROOT = Path(__file__).resolve().parents[1]
LEARNER = """
import time


class Slow:
    def fit(self, X, y):
        time.sleep(1)
        self.classes_ = sorted(set(y))
        return self

    def predict(self, X):
        return [self.classes_[0]] * len(X)
"""
ALGORITHM = """# @package algorithms.slow
label: Slow
estimator: {_target_: slow.Slow}
"""
EXPERIMENT = """# @package _global_
defaults:
  - override /dataset: [moons]
  - override /algorithm: [slow]
  - _self_
title: A small one
repeats: 12
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the working tree of this one, a slow learner, and one reference."""
    folder = tmp_path_factory.mktemp("references") / "checkout"
    for name in ("klr_bench", "configs", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copy(ROOT / ".gitignore", folder)
    (folder / "data").mkdir()
    shutil.copy(ROOT / "data" / "README.md", folder / "data")
    (folder / "klr_bench" / "slow.py").write_text(LEARNER, "utf-8")
    (folder / "configs" / "algorithm" / "slow.yaml").write_text(ALGORITHM.replace("slow.Slow", "klr_bench.slow.Slow"))
    (folder / "results" / "reference" / "benchmark").mkdir(parents=True)
    (folder / "scripts" / "tables" / "__main__.py").write_text("", "utf-8")
    git(folder, "init", "--quiet")
    (folder / "configs" / "experiment" / "tiny.yaml").write_text(EXPERIMENT.replace("12", "1"), "utf-8")
    commit(folder, EXPERIMENT)
    return folder


def commit(folder: Path, experiment: str) -> None:
    (folder / "configs" / "experiment" / "small.yaml").write_text(experiment, "utf-8")
    git(folder, "add", "--all")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", "a change")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def script(checkout: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    command = [sys.executable, str(checkout / "scripts" / "references.py"), *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def cells(checkout: Path) -> dict[str, int]:
    folder = checkout / "build" / "references" / "checkout" / "results" / "small" / "cells"
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.json")}


def test_it_goes_on_where_it_was_with_the_commit_of_its_beginning(checkout: Path) -> None:
    """The references that had not begun have this commit, too."""
    first = script(checkout, "small", "tiny", "--busy")
    limit = time.monotonic() + 60
    while not cells(checkout) and time.monotonic() < limit:
        time.sleep(0.05)
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    before, began = cells(checkout), git(checkout, "rev-parse", "HEAD")
    assert 0 < len(before) < 12
    assert not (checkout / "results" / "reference" / "small").exists()

    commit(checkout, EXPERIMENT.replace("12", "13"))
    said, _ = script(checkout, "small", "tiny", "--busy").communicate(timeout=60)
    for name in ("small", "tiny"):
        manifest = yaml.safe_load((checkout / "results" / "reference" / name / "manifest.yaml").read_text("utf-8"))
        assert (manifest["git_commit"], manifest["changed"]) == (began, []), said
    kept = checkout / "results" / "reference" / "small"
    with (kept / "records.csv").open(encoding="utf-8") as file:
        assert [row["status"] for row in csv.DictReader(file)] == ["ok"] * 12
    assert before.items() <= cells(checkout).items()
    assert (kept / "report" / "table.md").exists()
    assert (checkout / "results" / "reference" / "times.csv").read_text("utf-8").startswith("reference,seconds,cores\n")

    done = checkout / "build" / "references" / "done" / "small.json"
    assert json.loads(done.read_text("utf-8"))["complete"]
    said, _ = script(checkout, "small", "--busy").communicate(timeout=60)
    assert said.startswith("0 of 1 to do")


def test_one_reference_is_made_alone_with_the_commit_of_today(checkout: Path) -> None:
    """Other references keep their records, commits and times."""
    times = checkout / "results" / "reference" / "times.csv"
    times.write_text("reference,seconds,cores\nother,5,2\n", "utf-8")
    commit(checkout, EXPERIMENT.replace("12", "1"))
    said, _ = script(checkout, "small", "--busy", "--anew").communicate(timeout=60)
    kept = checkout / "results" / "reference" / "small"
    manifest = yaml.safe_load((kept / "manifest.yaml").read_text("utf-8"))
    assert manifest["git_commit"] == git(checkout, "rev-parse", "HEAD"), said
    assert manifest["machine"]["cpu"]
    assert [line.partition(",")[0] for line in times.read_text("utf-8").splitlines()] == ["reference", "other", "small"]
