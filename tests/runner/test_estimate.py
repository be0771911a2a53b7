"""Tests of the estimated time of a run."""

import re
import shutil
from pathlib import Path

import pytest

from klr_bench.cli import main
from klr_bench.config import needs
from klr_bench.config.models import RunConfig
from klr_bench.config.needs import reference_times
from klr_bench.parsing import parse
from klr_bench.report.papers.reading import experiments_of
from klr_bench.results.progress import NAME
from klr_bench.results.store import Store
from klr_bench.runner.estimate import duration, estimate, plan_reference
from klr_bench.runner.plan import group_folds
from tests.config.composing import altered
from tests.runner.small import OSKL, run, small_config, table

REFERENCES = {
    name: measured for name, measured in reference_times().items() if (measured.folder / "records.csv").exists()
}
needs_references = pytest.mark.skipif(not REFERENCES, reason="needs results/reference")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    """Return the configuration of a finished run, whose results are a reference of 100 s on 2 cores."""
    folder = tmp_path_factory.mktemp("finished")
    config = small_config(folder, experiment="tiny", n_jobs=2)
    run(config)
    (folder / "results" / "times.csv").write_text("reference,seconds,cores\ntiny,100,2\n")
    return config


@pytest.fixture
def config(finished: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    """Return the configuration of an equal run in an empty folder."""
    monkeypatch.setattr(needs, "reference_results", lambda: Path(finished.results_dir))
    return altered(finished, results_dir=str(tmp_path / "results"))


def seconds(config: RunConfig) -> float:
    time_left = run(config, dry_run=True)[0].time_left
    assert time_left is not None
    return time_left.seconds


def test_equal_settings_take_as_long_as_the_reference(config: RunConfig) -> None:
    assert seconds(config) == pytest.approx(100)
    assert seconds(altered(config, n_jobs=1)) == pytest.approx(200)
    assert (
        "\ntime: about 2 min on 2 cores, estimated from the reference run (2 min on 2 cores)\n"
        in (run(config, dry_run=True)[1])
    )


def test_the_time_is_proportional_to_repeats_and_selection(config: RunConfig) -> None:
    assert seconds(altered(config, repeats=6)) == pytest.approx(300)
    folds = altered(config, selection=altered(config.selection, folds=6))
    of_cells = table(config_of_reference(config))[["fit_time_s", "predict_time_s"]].sum().sum()
    assert seconds(folds) == pytest.approx(100 + (200 - of_cells) / 2)
    members = altered(config, sweep={"oskl": {"G": [1, 2, 4]}})
    assert 120 < seconds(members) < 130, "10 instead of 8 fits in each fold"
    assert "the reference run (2 min on 2 cores), which lacks 2 of the cells" in run(members, dry_run=True)[1]
    alone = altered(config, algorithms={"oskl": OSKL})
    assert 45 < seconds(alone) < 55, "4 instead of 8 fits in each fold"


def config_of_reference(config: RunConfig) -> RunConfig:
    return altered(config, results_dir=str(needs.reference_results()))


def test_finished_work_takes_no_time(config: RunConfig) -> None:
    run(altered(config, repeats=1))
    assert seconds(config) == pytest.approx(50, rel=0.01)
    run(config)
    assert seconds(config) == 0
    assert "time:" not in run(config, dry_run=True)[1]


def test_without_a_reference_the_latest_run_in_the_folder_counts(config: RunConfig, tmp_path: Path) -> None:
    mine = altered(config, experiment="", repeats=1)
    text = run(mine, dry_run=True)[1]
    assert "time: unknown, because there are no reference results and no earlier run in this folder." in text
    run(mine)
    progress = Path(mine.results_dir) / "tiny" / NAME
    changed = re.sub(r'"started": [\d.]+', '"started": 1000.0', progress.read_text())
    progress.write_text(re.sub(r'"updated": [\d.]+', '"updated": 1090.0', changed))
    more = altered(mine, repeats=3)
    assert seconds(altered(more, n_jobs=1)) == pytest.approx(180), "the first repeat, by one worker, took 90 s"
    assert "estimated from the 6 folds and cells of the latest run in this folder" in run(more, dry_run=True)[1]
    progress.write_text("{")
    assert "time: unknown" in run(more, dry_run=True)[1]


@pytest.mark.parametrize("file", ["manifest.yaml", "records.csv"])
def test_a_damaged_reference_is_not_used(
    config: RunConfig, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(needs.reference_results(), tmp_path / "copy")
    monkeypatch.setattr(needs, "reference_results", lambda: tmp_path / "copy")
    (tmp_path / "copy" / "tiny" / file).write_text("key,experiment\na,b\n")
    assert "time: unknown" in run(config, dry_run=True)[1]


def test_the_users_own_file_has_no_reference(config: RunConfig) -> None:
    own_file = altered(config, data=altered(config.data, path="mine.csv"))
    assert "time: unknown" in run(own_file, dry_run=True)[1]


@needs_references
@pytest.mark.parametrize("name", REFERENCES or [""])
def test_each_reference_gives_its_own_time(name: str, tmp_path: Path) -> None:
    measured = REFERENCES[name]
    config = parse(RunConfig, Store(measured.folder).read_manifest()["config"])
    if config.data.path:
        pytest.skip("a user's own file has no reference")
    cells = plan_reference(config, tmp_path)
    config = altered(config, n_jobs=measured.cores)
    time = estimate(cells, group_folds(cells), tmp_path, config, tmp_path)
    assert time is not None
    if {cell.algorithm for cell in cells} == {*config.algorithms}:
        assert time.seconds == pytest.approx(measured.seconds, rel=0.1)
    else:  # a class no longer exists
        assert bool(cells) == (0 < time.seconds < 1.1 * measured.seconds)


@needs_references
def test_a_paper_has_the_sum_of_its_experiments(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["run", "paper=zhang2013icml", "--dry-run", "n_jobs=2", f"results_dir={tmp_path}"]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    total = re.fullmatch(r"(\d+) runs: about (\S+) h on 2 cores", last)
    assert total
    times = [REFERENCES[name] for name in experiments_of("zhang2013icml")]
    seconds = sum(measured.seconds * measured.cores for measured in times) / 2
    assert float(total[2]) == pytest.approx(seconds / 3600, rel=0.1)


@pytest.mark.parametrize(("value", "text"), [(0.4, "0 s"), (59, "59 s"), (90, "2 min"), (5400, "1.5 h")])
def test_durations(value: float, text: str) -> None:
    assert duration(value) == text
