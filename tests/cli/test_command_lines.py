"""Mistakes on the command line of a run: odd words, flags and values."""

from pathlib import Path
from typing import Any

import pytest

from klr_bench.cli import main
from tests.attack.promise import files_in, refused
from tests.cli.conftest import Runner
from tests.conftest import needs_proc

pytestmark = pytest.mark.exhaustive


@pytest.fixture(autouse=True)
def configs(stub: Runner) -> list[Any]:
    """Return the configurations that run."""
    return stub.configs


REFUSED = [
    *(([word], f"expected key=value, got {word!r}.") for word in ("+", "++a", "5", "experiment")),
    *(([word], "unknown key ''|expected a name from configs/|cannot read") for word in ("=", "=5", "~")),
    *(([f"{key}="], f"unknown key {key!r}.") for key in ("key", "a.b.c.d", "hydra.nope")),
    *(([word], "unknown flag") for word in ("-", "--", "-x", "-cn", "--e=x", "--confg-dir=x", "--config-name=x")),
    *(([word], "expected one argument|invalid choice") for word in ("--cfg=nope", "-c")),
    *(([word], "cannot read") for word in ("repeats=[1", "repeats={1", "title='", "title=${", "title=" + "[" * 3900)),
    *(([f"title={word}"], "title: ") for word in ("${nowhere}", "${title}", "${oc.env:NOT_SET}")),
    # names of files
    *(([f"algorithm={name}"], "expected a name from configs/") for name in ("[[nc]]", "[null]", "[5]", "{nc: 1}")),
    *(([f"{group}=5"], "expected a name") for group in ("dataset", "parallel", "algorithm", "experiment")),
    # keys, with the one that is meant
    (["parallel.wrokers=5"], "Known: parallel.address, parallel.backend, parallel.jobqueue, parallel.scheduler_file"),
    (["dataset.moons.split=5"], "Did you mean 'datasets.moons.split'?"),
    (["~dataset"], "~dataset: this key cannot be removed."),
    (["algorithms.nc.estimator=5"], "algorithms.nc.estimator: expected keys and values, got 5."),
    # values out of range
    (["kernel.percentile=null", "kernel.gamma=1e308"], "kernel.gamma: expected from 1e-70 to 1e+70, or null"),
    # settings of Hydra
    (["--config-dir", "/nonexistent"], "not found"),
    (["hydra/launcher=nope"], "unknown hydra/launcher 'nope'."),
    (["hydra.mode=NOPE"], "expected one of|Error merging override hydra.mode=NOPE"),
    pytest.param(["hydra.run.dir=/proc/x"], "/proc/x: cannot be used (No such file or directory)", marks=needs_proc),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "parts"), REFUSED, ids=lambda value: str(value)[:60])
def test_an_odd_command_line_is_refused(
    arguments: list[str], parts: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, configs: list[Any]
) -> None:
    before = files_in(tmp_path)
    assert all(parts.split("|")), "each message has an empty part"
    error = refused(capsys, ["run", *arguments])
    assert any(part in error for part in parts.split("|")), error
    assert configs == []
    assert files_in(tmp_path) == before


@pytest.mark.parametrize(
    "arguments",
    [
        *(["-m", "hydra.sweep.dir=made", "seed=range(1,3)", "hydra/launcher=basic"], ["hydra.run.dir=made"]),
        *(
            ["--mul"],
            ["--info", "plugins"],
            ["--cfg", "hydra", "-p", "hydra.run"],
            ["title=${oc.env:HOME}"],
            ["repeats=${oc.decode:'2'}"],
        ),
        *(["-m", "dataset=glob(moon*)"], ["title='a, b (c) [d]'"], ["~algorithms.nc"], ["~sweep.oskl"]),
    ],
    ids=str,
)
def test_what_is_promised_of_hydra_works(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *arguments]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("lines", "part"),
    [
        ("hydra: null", "hydra: expected keys and values, got None."),
        ("algorithms: [nc]", "algorithms: expected keys and values, got ['nc']."),
        ("defaults: [mine, _self_]", "a `defaults` entry refers to its own file"),
    ],
)
def test_an_experiment_that_cannot_be_merged_is_refused(
    lines: str, part: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "configs" / "experiment"
    folder.mkdir(parents=True)
    base = "" if lines.startswith("defaults") else "defaults: [quickstart, _self_]\n"
    (folder / "mine.yaml").write_text(f"# @package _global_\n{base}{lines}\n")
    refused(capsys, ["run", "experiment=mine"], part)


@pytest.mark.parametrize(
    ("flags", "status"), [([], 2), (["-m"], 0), (["hydra.mode=MULTIRUN"], 0), (["seed=1,2"], 2)], ids=str
)
def test_what_only_a_sweep_may_choose(flags: list[str], status: int, tmp_path: Path, configs: list[Any]) -> None:
    """A choice may be missing until the sweep makes it."""
    folder = tmp_path / "configs" / "experiment"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text(
        "# @package _global_\ndefaults:\n  - quickstart\n  - override /dataset: ???\n  - _self_\n"
    )
    words = ["dataset=moons,digits"] if status == 0 else []
    assert main(["run", "experiment=mine", *flags, *words]) == status
    assert [[*config.datasets] for config in configs] == ([["moons"], ["digits"]] if status == 0 else [])
