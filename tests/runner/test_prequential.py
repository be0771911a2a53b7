"""Runs on streams: test on each chunk, then learn; a killed pass continues from its checkpoint."""

import os
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, make_moons
from sklearn.linear_model import SGDClassifier

import klr_bench
from klr_bench import AROW, FOGD, BudgetOSKL
from klr_bench.cli import main
from klr_bench.datasets.preprocessing import scaling_by
from klr_bench.datasets.splits import derived_seed
from klr_bench.results.progress import Count, read_progress
from klr_bench.runner import prequential
from klr_bench.runner.prequential import Pass, read_ahead

TIMES = ["fit_time_s", "predict_time_s", "peak_memory_mb", "load"]
SPLIT = "datasets.stream.split."
OSKL = ["algorithm=[budget_oskl]", "algorithms.budget_oskl.estimator.budget=50"]
MOONS = "datasets.moons.split={stream: true, test_size: null}"
NO_SCORES = "cannot predict each row before learning from it"
SMALL = [f"{SPLIT}chunk=100", f"{SPLIT}window=500", f"{SPLIT}checkpoint=500"]


@pytest.fixture(autouse=True)
def short_passes(monkeypatch):
    """Let short passes have checkpoints, too."""
    monkeypatch.setattr(prequential, "SHORTEST_PASS_S", 0.0)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a folder with two svmlight files of 1,250 rows and a table with three classes."""
    folder = tmp_path_factory.mktemp("files")
    X, y = make_moons(2500, noise=0.3, random_state=0)
    for part in range(2):
        rows = slice(1250 * part, 1250 * (part + 1))
        dump_svmlight_file(X[rows], np.where(y[rows] == 1, 1, -1), str(folder / f"part-{part}.svm"), zero_based=False)
    table = pd.DataFrame(1000 * X, columns=["a", "b"]).assign(kind=np.where(X[:, 0] > 1, "c", np.where(y, "b", "a")))
    table.to_csv(folder / "table.csv", index=False)
    return folder


@pytest.fixture
def place(files, tmp_path, monkeypatch):
    """Copy the files into the current folder."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*overrides: str, parallel: str = "serial") -> int:
    words = ["run", "experiment=stream_own", "data.path=part-*.svm", "data.cache=cache", f"parallel={parallel}"]
    return main([*words, *SMALL, *overrides])


def records(experiment: str = "stream_own") -> pd.DataFrame:
    return pd.read_csv(Path("results") / experiment / "records.csv")


def traces(experiment: str = "stream_own") -> pd.DataFrame:
    return pd.read_csv(Path("results") / experiment / "traces.csv")


def assert_equal_results(experiment: str, other: str) -> None:
    """Compare successful records and all traces, except for times."""
    pairs = []
    for name in (experiment, other):
        rows, windows = records(name), traces(name)
        rows = rows[rows.status == "ok"].drop(columns=["key", "experiment", "message", *TIMES])
        windows = windows[windows.metric != "peak_memory_mb"][["t", "metric", "value"]]
        pairs.append([frame.reset_index(drop=True) for frame in (rows, windows)])
    for ours, theirs in zip(*pairs, strict=True):
        pd.testing.assert_frame_equal(ours, theirs, check_dtype=False)


def add_algorithm(name: str, estimator: str) -> None:
    Path("configs/algorithm").mkdir(parents=True, exist_ok=True)
    Path(f"configs/algorithm/{name}.yaml").write_text(f"# @package algorithms.{name}\nestimator: {{{estimator}}}\n")


def learned_rows() -> list[int]:
    """Return the logged number of rows before each chunk."""
    return [*map(int, Path("log").read_text().split())]


def test_each_chunk_is_tested_on_and_then_learned_from(place):
    assert run(*OSKL, "kernel.percentile=null", "kernel.gamma=2.0") == 0
    (row,) = records().itertuples()
    learner = BudgetOSKL(50, G=10, average=False, gamma=2.0, random_state=derived_seed(row.seed, "", 0, "learner"))
    right, losses = [], []
    for X, y in klr_bench.stream("part-*.svm", 100):
        if hasattr(learner, "classes_"):
            right.append(learner.predict(X) == y)
            losses.append(-np.log(learner.predict_proba(X)[np.arange(len(y)), (y > 0).astype(int)]))
        learner.partial_fit(X, y, classes=[-1, 1])
    assert (row.n_train, row.n_test, row.status) == (2500, 2400, "ok")
    right, losses = np.concatenate(right), np.concatenate(losses)
    assert row.accuracy == pytest.approx(right.mean())
    assert row.log_loss == pytest.approx(losses.mean())
    windows = traces().pivot(index="t", columns="metric", values="value")
    assert [*windows.index] == [500, 1000, 1500, 2000, 2500]
    assert set(windows.columns) == {"accuracy", "log_loss", "n_support", "peak_memory_mb"}
    n = np.array([400, 500, 500, 500, 500])
    assert (windows.accuracy * n).sum() / 2400 == pytest.approx(row.accuracy)
    assert (windows.log_loss * n).sum() / 2400 == pytest.approx(row.log_loss)


@pytest.mark.parametrize(
    ("made", "settings"),
    [
        (BudgetOSKL(20, G=10, average=False, gamma=2.0), ["budget=20", "gamma=2.0"]),
        pytest.param(
            FOGD(20, eta=0.5, loss="logit", gamma=2.0), ["n_components=20", "gamma=2.0"], marks=pytest.mark.exhaustive
        ),
        pytest.param(AROW(r=20, covariance="diagonal"), ["r=20"], marks=pytest.mark.exhaustive),
    ],
    ids=["budget_oskl", "fogd", "arow"],
)
def test_each_row_is_tested_on_and_then_learned_from(place, made, settings, request):
    """Scores equal those of an estimator that predicts and learns row by row."""
    name = request.node.callspec.id
    changes = [f"++algorithms.{name}.estimator.{setting}" for setting in settings]
    assert run(f"algorithm=[{name}]", *changes, f"{SPLIT}test=rows", "data.path=part-0.svm") == 0
    (row,) = records().itertuples()
    if name != "arow":
        made.set_params(random_state=derived_seed(row.seed, "", 0, "learner"))
    (X, y), *later = klr_bench.stream("part-0.svm", 100)
    made.partial_fit(X, y, classes=[-1, 1])
    right, losses = [], []
    for X, y in later:
        for i in range(len(y)):
            f = made.decision_function(X[i])[0]
            right.append((f > 0) == (y[i] > 0))
            losses.append(np.log1p(np.exp(-y[i] * f)))
            made.partial_fit(X[i], y[i : i + 1])
    assert row.accuracy == np.mean(right)
    if name == "arow":
        assert "log_loss" not in {*traces().metric}
    else:
        assert row.log_loss == pytest.approx(np.mean(losses), rel=1e-5)
    windows = traces().pivot(index="t", columns="metric", values="value")
    assert [*windows.index] == [500, 1000, 1250]
    assert [*windows.accuracy] == pytest.approx([part.mean() for part in np.split(np.array(right), [400, 900])])


@pytest.mark.parametrize("n_features", [4, 5])
def test_rows_are_dense_if_that_takes_less_memory(place, monkeypatch, n_features):
    """Each row has two non-zero values."""
    sparse, take = [], Pass.take

    def taken(self, X, y):
        sparse.append(sp.issparse(X))
        take(self, X, y)

    monkeypatch.setattr(Pass, "take", taken)
    assert run(*OSKL, f"data.n_features={n_features}", "data.path=part-0.svm") == 0
    assert sparse == [n_features == 5] * 13


@pytest.fixture
def seen(monkeypatch):
    """Record the number of rows before each chunk, and press Ctrl-C at row 1700 once."""
    found, take = [], Pass.take

    def taken(self, X, y):
        found.append(self.n_rows)
        if self.n_rows == 1700 and found.count(1700) == 1:
            raise KeyboardInterrupt
        take(self, X, y)

    monkeypatch.setattr(Pass, "take", taken)
    return found


@pytest.mark.parametrize(
    ("path", "test", "backend"),
    [
        ("table.csv", "chunks", "serial"),
        *(
            pytest.param(*case, backend, marks=pytest.mark.exhaustive)
            for case in [("part-*.svm", "rows"), ("part-*.svm", "chunks"), ("table.csv", "chunks")]
            for backend in ["serial", "joblib"]
        ),
    ],
)
def test_an_interrupted_pass_continues_from_its_checkpoint(place, seen, test, path, backend):
    """This includes scaled features, more than two classes and other processes."""
    learner = OSKL if path == "part-*.svm" else ["algorithm=[arow]"]
    options = [*learner, f"data.path={path}", f"{SPLIT}test={test}"]
    assert run(*options, "name=undisturbed", parallel="joblib") == 0
    assert run(*options) == 130
    assert run(*options, parallel=backend) == 0
    assert seen == [*range(0, 1701, 100), *(range(1500, 2500, 100) if backend == "serial" else ())]
    assert_equal_results("stream_own", "undisturbed")
    assert not [*Path("results/stream_own/streams").iterdir()]


def test_a_short_pass_is_not_stored(place, seen, monkeypatch):
    monkeypatch.setattr(prequential, "SHORTEST_PASS_S", 1000.0)
    assert run(*OSKL, "parallel=serial") == 130
    assert not Path("results/stream_own/streams").exists()
    assert run(*OSKL, "parallel=serial") == 0
    assert seen == [*range(0, 1701, 100), *range(0, 2500, 100)]


@pytest.mark.parametrize(("window", "ends"), [(1100, [1100, 2200]), (9999, [2500])])
def test_a_last_window_below_half_size_is_dropped(place, window, ends):
    assert run(*OSKL, f"{SPLIT}window={window}") == 0
    assert [*traces().t.unique()] == ends
    assert records().peak_memory_mb[0] > 1


class Logged(BudgetOSKL):
    """Estimator that logs the number of rows seen, and disturbs the run once."""

    def __init__(self, disturb="", at=0):
        super().__init__(50, random_state=0)
        self.disturb = disturb
        self.at = at

    def partial_fit(self, X, y, classes=None, callback=None):
        prequential.SHORTEST_PASS_S = 0.0  # in a worker, which has no fixtures
        seen = getattr(self, "t_", 0)
        with Path("log").open("a") as log:
            log.write(f"{seen}\n")
        if seen == self.at and not Path("disturbed").exists():
            Path("disturbed").touch()
            if "change" in self.disturb:
                part = Path("part-0.svm")
                part.write_bytes(part.read_bytes().replace(b"1:0", b"1:1", 1))
            if "kill" in self.disturb:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().partial_fit(X, y, classes)


@pytest.mark.exhaustive
def test_a_killed_pass_of_a_third_party_learner_starts_again_with_a_warning(place, capfd):
    add_algorithm("logged", "_target_: tests.runner.test_prequential.Logged, disturb: kill, at: 1700")
    Path("disturbed").touch()
    assert run("algorithm=[logged]", "name=undisturbed", parallel="joblib") == 0
    for path in ("disturbed", "log"):
        Path(path).unlink()
    assert run("algorithm=[logged]", parallel="joblib") == 0  # its worker is killed and replaced
    assert learned_rows() == [*range(0, 1701, 100), *range(0, 2500, 100)]
    output = " ".join(capfd.readouterr().err.split())
    assert "logged on part-0-" in output
    assert "restarts from its first row, because " in output
    assert "save_model cannot store tests.runner.test_prequential.Logged." in output
    progress = read_progress(Path("results/stream_own"))
    assert (progress.state, progress.tasks, progress.cells) == ("finished", *2 * [Count(total=1, done=1)])
    assert_equal_results("stream_own", "undisturbed")
    assert not [*Path("results/stream_own/streams").iterdir()]


@pytest.mark.exhaustive
@pytest.mark.parametrize("disturb", ["change", "change and kill"])
def test_a_file_that_changes_during_a_pass_is_refused_and_read_again(place, disturb):
    add_algorithm("logged", f"_target_: tests.runner.test_prequential.Logged, disturb: {disturb}, at: 2400")
    assert run("algorithm=[logged]", parallel="joblib") == 1
    (row,) = records().itertuples()
    assert row.status == "error"
    assert "its data have changed since the run was planned" in row.message
    Path("log").unlink()
    assert run("algorithm=[logged]", parallel="joblib") == 0
    assert learned_rows() == [*range(0, 2500, 100)]
    assert run("algorithm=[logged]", "name=undisturbed", parallel="joblib") == 0
    assert_equal_results("stream_own", "undisturbed")


def test_a_pass_on_two_machines_has_both_names_and_the_higher_load(place, seen, monkeypatch):
    for name, load, status in (("one", 0.5, 130), ("two", 0.1, 0)):
        monkeypatch.setattr(prequential.machine, "host", lambda name=name: name)
        monkeypatch.setattr(prequential.machine, "load", lambda load=load: load)
        assert run(*OSKL) == status
    (row,) = records().itertuples()
    assert (row.host, row.load) == ("one; two", 0.5)


@pytest.mark.exhaustive
def test_a_pass_with_a_damaged_checkpoint_starts_again(place, caplog, seen):
    assert run(*OSKL, "name=undisturbed", parallel="joblib") == 0
    assert run(*OSKL) == 130
    (state,) = Path("results/stream_own/streams").iterdir()
    content = bytearray(state.read_bytes())
    content[len(content) // 2] ^= 4
    state.write_bytes(content)
    assert run(*OSKL) == 0
    assert seen == [*range(0, 1701, 100), *range(0, 2500, 100)]
    assert_equal_results("stream_own", "undisturbed")
    assert "restarts from its first row, because " in caplog.text


def test_other_libraries_learners_with_partial_fit_and_three_classes(place):
    """The CSV file has text labels; the first rows determine the scale."""
    add_algorithm("sklearn", "_target_: sklearn.linear_model.SGDClassifier, loss: log_loss, random_state: 0")
    assert run("algorithm=[sklearn]", "data.path=table.csv") == 0
    (row,) = records().itertuples()
    assert (row.status, row.n_train, row.n_features) == ("ok", 2500, 2)
    model, right, scaling = SGDClassifier(loss="log_loss", random_state=0), 0, None
    for X, y in klr_bench.stream("table.csv", 100):
        scaling = scaling or scaling_by(X, "auto")
        X, y = scaling.transform(X), np.searchsorted(["a", "b", "c"], y)
        right += (model.predict(X) == y).sum() if hasattr(model, "coef_") else 0
        model.partial_fit(X, y, classes=[0, 1, 2])
    assert row.accuracy == pytest.approx(right / 2400)


def test_with_configured_classes_nothing_is_read_in_advance_or_stored(place, capsys):
    assert run(*OSKL) == 0
    assert [*Path("cache/streams").iterdir()]
    shutil.rmtree("cache/streams")
    assert run(*OSKL, f"{SPLIT}classes=[-1, 1]", "data.n_features=2", "name=given") == 0
    assert not Path("cache/streams").exists()
    assert_equal_results("stream_own", "given")
    assert main(["report", "experiment=stream_own"]) == 0
    assert "Budget OSKL" in capsys.readouterr().out


def test_errors_in_files_are_messages_of_records(place):
    classes = [f"{SPLIT}classes=[1, 2]", "data.n_features=2"]
    assert run(*OSKL, *classes) == 1
    assert "part-0.svm" in records().message[0]
    Path("empty.svm").write_text("# nothing but this\n")
    assert run(*OSKL, "data.path=empty.svm", "data.format=svmlight", *classes, "name=empty") == 1
    assert "empty.svm: no rows" in records("empty").message[0]


def test_a_stream_of_one_chunk_cannot_be_tested_on(place):
    assert run(*OSKL, f"{SPLIT}chunk=2500", f"{SPLIT}window=2500") == 1
    assert "expected more than split.chunk=2,500 rows, got 2,500" in records().message[0]


def test_a_time_limit_ends_the_pass(place):
    assert run(*OSKL, "algorithms.budget_oskl.time_limit_s=1e-9") == 0
    (row,) = records().itertuples()
    assert (row.status, row.n_train) == ("timeout", 100)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["algorithm=[oskl]", "algorithms.oskl.grid=null"], "its memory use grows with the length of the stream"),
        (["algorithm=[svc]", "algorithms.svc.grid=null"], "has no partial_fit"),
        (["algorithm=[budget_oskl]", "algorithms.budget_oskl.estimator.average=true", f"{SPLIT}test=rows"], NO_SCORES),
        ([*OSKL, f"{SPLIT}test=cells"], "split.test"),
        (["algorithm=[oskl]"], "combinations of values, but selection on the stream stream is not possible"),
        ([*OSKL, "trace.points=10"], "has no effect on the stream stream"),
        ([*OSKL, "metrics=[accuracy,auc]"], "metrics: on the stream stream, expected accuracy or log_loss of the pred"),
        ([*OSKL, f"{SPLIT}window=50"], "at least the number of rows per chunk, 100"),
        ([*OSKL, "data.test_size=0.2"], "data.test_size=0.2: has no effect on a stream"),
        ([*OSKL, "data.path=nothing-*.svm"], "does not exist"),
        ([*OSKL, "parallel=dask"], "read on one machine"),
        (["dataset=[moons]", "data.path=null", *OSKL, MOONS], "expected one of the formats"),
    ],
)
def test_invalid_stream_settings_give_one_message(place, capsys, given, message):
    small = [] if "dataset=[moons]" in given else SMALL
    assert main(["run", "experiment=stream_own", "data.path=part-*.svm", "data.cache=cache", *small, *given]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not Path("results").exists()


def test_the_next_chunk_is_read_while_one_is_learned_from():
    read = []

    def chunks():
        for number in range(3):
            read.append(number)
            yield number
        message = "line 7"
        raise ValueError(message)

    waiting = read_ahead(chunks())
    assert next(waiting) == 0
    limit = time.monotonic() + 10
    while len(read) < 2 and time.monotonic() < limit:
        time.sleep(0.01)
    assert read == [0, 1], "one ahead, and no more"
    assert [next(waiting), next(waiting)] == [1, 2], "an error of reading comes after the chunks before it"
    with pytest.raises(ValueError, match="line 7"):
        next(waiting)
