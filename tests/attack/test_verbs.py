"""report, list, show and data info run no code, even of hostile results."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.attack.promise import files_in, refused
from tests.report.folders import record, write


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with results of one experiment."""
    monkeypatch.chdir(tmp_path)
    config = {"name": "mine", "title": "Mine", "repeats": 1, "sweep": {}}
    rows = [record("nc", "", 0, dataset="moons", accuracy=0.9)]
    write(tmp_path / "results" / "mine", rows, config | {"datasets": {"moons": {}}, "algorithms": {"nc": {}}})
    return tmp_path


TRAP = "import pathlib\npathlib.Path('ran').touch()\nraise RuntimeError\n"
CALL = {"_target_": "os.system", "_args_": ["touch ran"], "command": "touch ran"}
WATCHED = """
import sys
import matplotlib.font_manager  # asks the system for its fonts once, and keeps the list
def watch(event, arguments):
    if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect"):
        sys.stderr.write(f"{event} {arguments[0]}")
sys.addaudithook(watch)
from klr_bench.cli import main
sys.exit(main(sys.argv[1:]))
"""


def hostile(place: Path) -> None:
    """Write executable files to all places that are read, and names of calls to the manifest."""
    folder = place / "results" / "mine"
    for name in ("metric/accuracy2.py", "figure/mine.py", "nc.py", "sitecustomize.py", "klr_bench.py", "yaml.py"):
        for root in (folder, folder / "configs", place / "configs"):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(TRAP, encoding="utf-8")
    (place / "matplotlibrc").write_text("backend: module://nc\naxes.facecolor: red\n", encoding="utf-8")
    path = folder / "manifest.yaml"
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    config = content["config"]
    config["algorithms"] = {"nc": {"estimator": CALL, "grid": {"R": [1]}}}
    config["figures"] = ["mine"]
    content |= {
        "versions": CALL,
        "machine": {"cpu": "x", "_target_": "os.system"},
        "changed": [[1]],
        "started": "9" * 4000,
    }
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    paper = place / "configs" / "paper" / "own"
    paper.mkdir(parents=True)
    about = {"title": "T", "authors": "A", "venue": "V", "year": 2020, "reference": "R"}
    (paper / "paper.yaml").write_text(yaml.safe_dump(about), encoding="utf-8")
    (paper / "paper.py").write_text(TRAP, encoding="utf-8")


READING = ["report experiment=mine format=terminal,md,tex,csv", "list", "show algorithm oskl", "data info moons"]


@pytest.mark.parametrize("words", READING)
def test_what_reads_runs_nothing(place: Path, words: str) -> None:
    """A report starts no process, runs no code of the folder, and writes only to its own folder."""
    hostile(place)
    before = files_in(place)
    command = [sys.executable, "-P", "-c", WATCHED, *words.split()]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    after = files_in(place)
    assert {path: after[path] for path in before} == before
    assert all("report" in path.parts for path in set(after) - set(before))
    assert (after != before) == words.startswith("report")
    assert not (place / "ran").exists()


@pytest.mark.parametrize("section", ["kernel", "data", "trace", "selection", "datasets"])
def test_a_call_in_a_section_of_a_manifest_is_refused(
    place: Path, section: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = place / "results" / "mine" / "manifest.yaml"
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    content["config"][section] = {"moons": CALL} if section == "datasets" else CALL
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    refused(capsys, ["report", "experiment=mine"], f"config.{section}")
    assert not (place / "ran").exists()


def test_a_manifest_names_a_figure_of_its_own_folder_in_vain(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """User figures are read only from ./configs/figure of the current folder."""
    hostile(place)
    (place / "configs" / "figure" / "mine.py").unlink()
    path = place / "results" / "mine" / "manifest.yaml"
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    for name in ("mine", "../results/mine/figure/mine", str(place / "results/mine/figure/mine"), "os", "__init__"):
        content["config"]["figures"] = [name]
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        refused(capsys, ["report", "experiment=mine", "own_figures=true"], "figures: unknown value")
    assert not (place / "ran").exists()
