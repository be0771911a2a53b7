"""Data files, metrics and learners that are edited while a run uses them."""

import sys
from pathlib import Path

import pytest

from klr_bench.config.models import RunConfig
from klr_bench.results.keys import forget_edited
from tests.config.composing import altered
from tests.runner.small import algorithm, run, small_config, table

N_REPEATS = 3
LEARNER = """
import os
from pathlib import Path
import numpy as np

class Learner:
    def __init__(self, choice=0):
        self.choice = choice

    def fit(self, X, y):
        if len(y) > 4:  # not the warm-up
            folder = Path(os.environ["EDITS"])
            fits = folder / "fits"
            fits.write_text(fits.read_text() + "0")
            for edit in folder.glob(f"{len(fits.read_text())} *"):
                edit.replace(folder / edit.name.partition(" ")[2].replace("|", "/"))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.classes_[0])
"""
METRIC = """
from klr_bench.metrics.metric import Metric
METRIC = Metric("mine", "Mine", of=lambda predictions: 0.0)
"""


def rows(n: int) -> str:
    return "".join(f"{i},{i % 3},{i % 2}\n" for i in range(n))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return the current folder, with a user's data file, metric and learner."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("EDITS", str(tmp_path))
    Path("fits").touch()
    Path("edited_learner.py").write_text(LEARNER)
    Path("mine.csv").write_text(rows(100))
    Path("configs/metric").mkdir(parents=True)
    Path("configs/metric/mine.py").write_text(METRIC)
    yield tmp_path
    sys.modules.pop("edited_learner", None)
    Path("edited_learner.py").write_text("")
    forget_edited()


def config(place: Path, learner: dict) -> RunConfig:
    source = {"format": "file", "path": str(place / "mine.csv")}
    data = {"small": {"label": "Mine", "source": source, "split": {"test_size": 0.2}}}
    shared = {"algorithms": {"mine": learner}, "sweep": {}, "repeats": N_REPEATS}
    return altered(small_config(place), datasets=data, metrics=["accuracy", "mine"], **shared)


def edit(name: str, content: str, fit: int) -> None:
    """Replace a file in the middle of a fit; fits are counted from 1."""
    Path(f"{fit} {name.replace('/', '|')}").write_text(content)


PARENT = algorithm("edited_learner.Learner")
CHILD = algorithm("edited_learner.Learner", time_limit_s=60)


@pytest.mark.parametrize("moment", range(1, N_REPEATS))
def test_data_that_change_during_a_run_are_an_error(place: Path, moment: int) -> None:
    mine = config(place, PARENT)
    edit("mine.csv", rows(60), moment)
    outcome, text = run(mine)
    records = table(mine)
    assert records.status.tolist() == ["ok"] * moment + ["error"] * (N_REPEATS - moment)
    assert records.n_train.tolist() == ["80"] * moment + [""] * (N_REPEATS - moment)
    assert "its data have changed since the run was planned; run the same command again" in text
    assert (run(mine)[0].n_failed, outcome.n_failed) == (0, N_REPEATS - moment)
    assert table(mine).n_train.tolist().count("48") == N_REPEATS


METRIC_EDIT = ("configs/metric/mine.py", METRIC.replace("0.0", "0.9"))
LEARNER_EDIT = ("edited_learner.py", LEARNER.replace('+ "0"', '+ "1"'))


@pytest.mark.parametrize("moment", range(1, N_REPEATS))
@pytest.mark.parametrize(
    ("learner", "name", "content"),
    [
        pytest.param(PARENT, *METRIC_EDIT, id="metric"),
        pytest.param(CHILD, *METRIC_EDIT, id="metric, child", marks=pytest.mark.exhaustive),
        pytest.param(CHILD, *LEARNER_EDIT, id="learner, child", marks=pytest.mark.exhaustive),
    ],
)
def test_edited_code_does_not_get_the_key_of_the_old_code(
    place: Path, learner: dict, name: str, content: str, moment: int
) -> None:
    mine = config(place, learner)
    edit(name, content, moment)
    before = Path(name).read_text()
    _, text = run(mine)
    records = table(mine)
    assert records.status.tolist() == ["ok"] * (moment - 1) + ["error"] * (N_REPEATS - moment + 1)
    assert set(records.get("mine", ())) <= {"", "0.0"}
    assert "has changed since the run was planned; run the same command again" in text
    assert Path("fits").read_text() == "0" * moment, "no cell is fitted in vain"
    Path(name).write_text(before)
    assert forget_edited(), "as a new process does"
    assert run(mine)[0].n_found == moment - 1
    assert table(mine).mine.tolist() == [0.0] * N_REPEATS


def test_a_comment_added_during_a_run_changes_nothing(place: Path) -> None:
    mine = config(place, CHILD)
    edit("edited_learner.py", f"{LEARNER}# a comment", 1)
    assert run(mine)[0].n_failed == 0
    assert table(mine).status.tolist() == ["ok"] * N_REPEATS
