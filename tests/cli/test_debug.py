"""User fits or metrics that raise: the message names the line, the cell has the traceback, --pdb stops."""

import io
import sys
from pathlib import Path

import pytest

from klr_bench.cli import main
from klr_bench.results.store import Store

LEARNER = """\
import numpy as np


class Broken:
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self.solve(X)

    def solve(self, X):
        return X @ np.ones(X.shape[1] + 1)

    def predict(self, X):
        return np.ones(len(X))
"""
METRIC = """\
from klr_bench.metrics.metric import Metric


def broken(predictions):
    return {}["nothing"]


METRIC = Metric("broken", "Broken", unit="percent", better="higher", of=broken)
"""


@pytest.fixture(params=["learner", "metric"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, str, list[str]]:
    """Write a broken learner or metric; return its file and line, its message and the arguments of a run."""
    monkeypatch.chdir(tmp_path)
    run = ["run", "dataset=moons", "repeats=1", "parallel=serial"]
    if request.param == "metric":
        Path("configs/metric").mkdir(parents=True)
        Path("configs/metric/broken.py").write_text(METRIC)
        return (
            "configs/metric/broken.py:5",
            "metric broken: its function raised KeyError: 'nothing'",
            [*run, "algorithm=nc", "metrics=[broken]"],
        )
    module = f"broken_{abs(hash(tmp_path))}"
    Path(f"{module}.py").write_text(LEARNER)
    monkeypatch.syspath_prepend(tmp_path)
    Path("configs/algorithm").mkdir(parents=True)
    yaml = f"# @package algorithms.broken\nlabel: Broken\nestimator: {{_target_: {module}.Broken}}\n"
    Path("configs/algorithm/broken.yaml").write_text(yaml)
    return f"{module}.py:10", "ValueError: matmul: ", [*run, "algorithm=broken"]


def test_the_message_names_the_line_and_the_cell_keeps_the_traceback(
    place: tuple[str, str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    line, error, words = place
    assert main(words) == 1
    printed = capsys.readouterr().out
    assert f"({line})" in printed
    assert "Traceback" not in printed
    (cell,), _ = Store(Path("results/quickstart")).load()
    assert cell.record.message.startswith(error)
    assert cell.record.message.endswith(f"({line})")
    assert cell.traceback.startswith("Traceback (most recent call last)")
    assert f'{line.rpartition(":")[0]}", line {line.rpartition(":")[2]}' in cell.traceback
    assert main([*words, "--debug"]) == 1
    assert cell.traceback in capsys.readouterr().out


def test_the_debugger_opens_at_the_line(
    place: tuple[str, str, list[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line, error, words = place
    monkeypatch.setattr("sys.stdin", io.StringIO("p 20 + 22\nq\n"))
    assert main([*words, "--pdb"]) == 1
    output = capsys.readouterr()
    assert "{}({})".format(*line.rsplit(":", 1)) in output.out
    assert "42" in output.out
    assert error in output.err
    assert "Run it again without --pdb" in " ".join(output.err.split())


def test_a_metric_file_without_a_metric_is_refused_by_a_dry_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("configs/metric").mkdir(parents=True)
    Path("configs/metric/nothing.py").write_text("x = 1\n")
    assert main(["run", "dataset=moons", "algorithm=nc", "metrics=[nothing]", "--dry-run"]) == 2
    assert "nothing.py: expected METRIC = Metric(...), got None." in " ".join(capsys.readouterr().err.split())


def test_fit_imports_modules_of_the_current_folder_and_refuses_what_cannot_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    Path("own_learner.py").write_text(LEARNER)
    Path("configs/algorithm").mkdir(parents=True)
    text = "# @package algorithms.own\nlabel: Own\nestimator: {_target_: own_learner.Broken}\n"
    Path("configs/algorithm/own.yaml").write_text(text)
    Path("table.csv").write_text("a,b,label\n" + "1,2,yes\n3,4,no\n" * 20)
    assert main(["fit", "data.path=table.csv", "algorithm=own", "output=model.skops"]) == 2
    assert "load_model would refuse the type own_learner.Broken." in " ".join(capsys.readouterr().err.split())
