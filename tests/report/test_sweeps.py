"""The runs of a sweep are one table and one figure, with the swept values as rows and on an axis."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from klr_bench.cli import main
from klr_bench.errors import KlrBenchError
from klr_bench.report.derived import with_derived
from klr_bench.report.load import read_results
from klr_bench.report.sweeps import read_sweep, swept_settings
from klr_bench.report.table import results_table
from klr_bench.results.record import CellFile
from tests.report.folders import record, write, write_cells

WIDTH = "kernel.percentile"
Run = Callable[[str, Sequence[str]], None]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that stores a run of two methods; its accuracy is that of its last override in percent."""

    def stored(name: str, overrides: Sequence[str]) -> None:
        texts = overrides[-1].partition("=")[2] if overrides else "1"
        accuracy = float(texts) / 100 if texts.isdigit() else 0.5
        cells = [
            record(algorithm, variant, 0, dataset="magic", accuracy=accuracy, n_train=10, n_test=5, n_features=2)
            for algorithm, variant in (("nc", ""), ("oskl", "G=1"))
        ]
        config = {"experiment": "demo", "datasets": {"magic": {}}, "algorithms": {"nc": {}, "oskl": {}}}
        sweep = {"sweep": {"oskl": {"G": [1]}}}
        write(tmp_path / name, cells, config | sweep, command=["experiment=demo", *overrides], changes=[*overrides])

    return stored


def test_swept_values_are_rows_in_their_order(run: Run, tmp_path: Path) -> None:
    for value in (20, 5, 50):
        run(f"demo-{WIDTH}-{value}", ["repeats=1", f"{WIDTH}={value}"])
    assert swept_settings(tmp_path / "demo") == [WIDTH]
    results = read_sweep(tmp_path / "demo", [WIDTH])
    table = results_table(results)
    lines = [(line.algorithm, dict(line.variant), line.entries["accuracy"].mean) for line in table.blocks[0].lines]
    assert lines == [
        *(("nc", {WIDTH: value}, value / 100) for value in (5, 20, 50)),
        *(("oskl", {"G": 1, WIDTH: value}, value / 100) for value in (5, 20, 50)),
    ]
    assert table.title == f"Demo, over {WIDTH}"
    assert results.records["key"].is_unique
    assert not table.blocks[0].matches


def test_the_smallest_objective_is_that_of_the_same_run(tmp_path: Path) -> None:
    config = {"experiment": "demo", "datasets": {"magic": {}}, "algorithms": {"nc": {}}}
    for seed, last in ((1, 0.5), (2, 0.3)):
        traces = [(1, 1.0, "objective", 0.9), (2, 2.0, "objective", last), (3, 3.0, "objective", last)]
        fit = CellFile(record("nc", "", 0, dataset="magic", fit_time_s=3.0), "c", 1.0, traces)
        changed = [f"seed={seed}"]
        write_cells(tmp_path / f"demo-{seed}", [fit], config, command=["experiment=demo", *changed], changes=changed)
    found = with_derived(read_sweep(tmp_path / "demo", ["seed"]))
    assert found["near_optimal_s"].tolist() == [2.0, 2.0]


@pytest.mark.parametrize("key", ["dataset", "kernel.percentile", "sweep.oskl.G"])
@pytest.mark.parametrize("values", [("[1]", "[2]"), ("[a,b]", "[a]", "[b]"), ("[]", "[1]"), ("1", "[1]", "x")])
def test_swept_values_may_be_lists(key: str, values: Sequence[str], run: Run, tmp_path: Path) -> None:
    for number, value in enumerate(values):
        run(f"demo-{number}", [f"{key}={value}"])
    over = swept_settings(tmp_path / "demo")
    results = read_sweep(tmp_path / "demo", over)
    assert len({repr(variant[key]) for variant in results.records["variant"]}) == len(values)
    assert main(["report", "experiment=demo", f"results_dir={tmp_path}", "format=terminal,md,csv,tex"]) == 0


def test_a_report_has_one_table_and_one_figure(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for value in (5, 20):
        run(f"demo-{WIDTH}-{value}", [f"{WIDTH}={value}"])
    arguments = ["report", "experiment=demo", f"results_dir={tmp_path}", "format=md,csv"]
    assert main(arguments) == 0, "a sweep without a run of its own"
    names = [Path(line).relative_to(tmp_path).as_posix() for line in capsys.readouterr().out.splitlines()]
    files = ["table.md", "table.csv", f"over_{WIDTH}.png", f"over_{WIDTH}.svg"]
    assert names == [f"demo/sweep/{name}" for name in files]
    assert (tmp_path / "demo" / "sweep" / "table.md").read_text().count(f"{WIDTH}=20") == 2
    assert main([*arguments, "over=seed"]) == 2
    assert "over=seed: the runs of demo also differ in kernel.percentile" in capsys.readouterr().err
    assert main([*arguments, "over=kernel.percentle"]) == 2
    assert "Did you mean 'kernel.percentile'?" in capsys.readouterr().err
    assert main([*arguments[:3], "format=html", f"over={WIDTH}"]) == 2
    assert "has no effect on a page" in capsys.readouterr().err


def test_the_experiment_itself_is_a_value_of_the_sweep_if_it_differs_in_nothing_else(run: Run, tmp_path: Path) -> None:
    run("demo-seed-3", ["repeats=1", "seed=3"])
    run("demo-seed-4", ["repeats=1", "seed=4"])
    run("demo", ["repeats=1"])
    assert swept_settings(tmp_path / "demo") == [], "the run itself is shown"
    seeds = [[variant["seed"] for variant in read_sweep(tmp_path / "demo", ["seed"]).records["variant"]]]
    assert seeds == [[0, 0, 3, 3, 4, 4]]
    run("demo", ["repeats=2"])
    assert len(read_sweep(tmp_path / "demo", ["seed"]).records) == 4
    assert read_results(tmp_path / "demo").over == ()


def test_runs_that_cannot_be_combined_are_refused(run: Run, tmp_path: Path) -> None:
    run("demo-seed-1", ["seed=1"])
    with pytest.raises(KlrBenchError, match=r"at least two runs demo-.* with these settings, got demo-seed-1"):
        read_sweep(tmp_path / "demo", ["seed"])
    run("demo-again", ["seed=1"])
    with pytest.raises(KlrBenchError, match="the run demo-seed-1 has the same values as another one"):
        read_sweep(tmp_path / "demo", ["seed"])
    run("other-seed-2", ["seed=2"])
    with pytest.raises(KlrBenchError, match=r"expected at least two runs other-"):
        read_sweep(tmp_path / "other", ["seed"])
