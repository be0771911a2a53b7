"""The command line, by real processes where start-up or signals matter, else in this process."""

from __future__ import annotations

import argparse
import logging
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import platformdirs
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

from klr_bench import __version__, runner
from klr_bench.cli import completion, main
from klr_bench.cli.overrides import name_of_job, prepare
from klr_bench.config import locations as config_files
from klr_bench.config.models import RunConfig
from klr_bench.datasets import cache
from klr_bench.errors import KlrBenchError

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}

Run = Callable[..., int]


def klr_bench(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "klr_bench", *arguments]
    return subprocess.run(command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, check=False)


class Runner:
    """Stands in for `klr_bench.runner.run`: keeps what it is called with."""

    def __init__(self) -> None:
        self.configs: list[RunConfig] = []
        self.options: list[dict[str, Any]] = []
        self.n_failed = 0
        self.error: BaseException | None = None

    def __call__(self, config: RunConfig, *, console: Any, **options: bool) -> SimpleNamespace:
        self.configs.append(config)
        self.options.append(options)
        if self.error is not None:
            raise self.error
        return SimpleNamespace(n_failed=self.n_failed, score=0.5)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Return the runner's stand-in, in an empty current folder; undo what a run changes in the process."""
    stand_in = Runner()
    monkeypatch.setattr(runner, "run", stand_in)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # --info adds one that writes to this stdout
    monkeypatch.chdir(tmp_path)
    handler = signal.getsignal(signal.SIGTERM)
    yield stand_in
    signal.signal(signal.SIGTERM, handler)


# Start-up


HEAVY = {"numpy", "scipy", "sklearn", "pandas", "numba", "matplotlib", "joblib", "hydra", "omegaconf"}
"""Libraries whose import alone takes a good part of a second."""
READERS = {"yaml", "rich", "filelock"}
"""What reads configurations, draws tables, and waits for other processes."""


@pytest.mark.parametrize(
    ("arguments", "spared"),
    [
        (["--help"], HEAVY | READERS),
        (["watch", "--help"], HEAVY | READERS),
        (["show", "algorithm", "oskl"], HEAVY | READERS),
        (["completion", "--words", "klr-bench run kernel.", "21"], HEAVY | READERS),
        (["list"], HEAVY | READERS - {"yaml"}),
        (["data", "info", "magic"], HEAVY),
        (["run", "--cfg", "job"], HEAVY - {"hydra", "omegaconf"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_computes_nothing_imports_nothing_heavy(arguments: list[str], spared: set[str]) -> None:
    code = (
        "import sys; from klr_bench.cli import main; status = main(sys.argv[1:])\n"
        "print(*sys.modules, file=sys.stderr); sys.exit(status)"
    )
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout
    imported = set(done.stderr.split())
    assert "klr_bench.cli" in imported
    assert imported & spared == set()


def test_help_shows_each_verb_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for verb in completion.VERBS:
        assert text.count(f"klr-bench {verb}") >= 2, verb
    assert main([]) == 0
    assert capsys.readouterr().out == text
    assert main(["report", "--help"]) == 0
    assert "klr-bench report experiment=oskl_magic\n" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"klr-bench {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rum"], "unknown command 'rum'. Did you mean 'run'?"),
        (["data", "fech"], "data: unknown command 'fech'. Did you mean 'fetch'?"),
        (["data", "info"], "data info: expected one name, got none."),
        (["data", "info", "magik"], "unknown dataset 'magik'. Did you mean 'magic'?"),
        (["data", "list", "data.cache="], "data.cache: expected data.cache=<value>, got none."),
        (["report"], "report: expected experiment=<name>, got none."),
        (
            ["report", "oskl_magic"],
            "report: expected experiment=<name>, got 'oskl_magic'. Try klr-bench report exper",
        ),
        (["report", "experimnt=x"], "unknown key 'experimnt'. Did you mean 'experiment'?"),
        (["report", "experiment=own_file", "name=mine"], "unknown key 'name'. What ran with name=mine is shown by klr"),
        (["list", "algoritms"], "unknown kind 'algoritms'. Did you mean 'algorithm'?"),
        (
            ["show", "oskl"],
            "show: expected a kind and a name, as in klr-bench show algorithm oskl, got oskl.",
        ),
        (["show", "experiment", "oskl_magik"], "unknown experiment 'oskl_magik'. Did you mean 'oskl_magic'?"),
        (["completion", "tcsh"], "completion: expected bash, zsh or fish, got 'tcsh'."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_words_are_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == 1
    assert out == ""


def shell(line: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell in which klr-bench is "$@"."""
    command = ["bash", "-c", line, "bash", sys.executable, "-m", "klr_bench"]
    return subprocess.run(command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, check=False)


def test_closed_pipes_and_streams_are_no_error(tmp_path: Path) -> None:
    done = shell('set -o pipefail; "$@" list | true; echo $?')
    assert done.stderr == ""
    assert done.stdout in ("0\n", "141\n")  # 0: the pipe took it all before it was closed
    done = shell('set -o pipefail; { sleep 0.1; "$@" run --dry-run; } | true; echo $?', tmp_path)
    assert (done.stdout, done.stderr) == ("141\n", "")
    done = shell('"$@" list algorithms <&- >&-')
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert shell('"$@" nothing 2>&-').returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", ["list", "run --help"])
def test_a_full_standard_output_is_named(arguments: str) -> None:
    done = shell(f'"$@" {arguments} >/dev/full')
    assert done.returncode == 2
    expected = "standard output: cannot be written (No space left on device). Redirect it to another file."
    assert done.stderr == f"error: {expected}\n"


def test_without_a_temporary_folder(
    stub: Runner, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere"])
    assert main(["run", "--dry-run"]) == 2
    expected = "TMPDIR: expected a folder for temporary files, found none that can be written. Set TMPDIR to one."
    assert capsys.readouterr().err == f"error: {expected}\n"


def test_a_data_cache_needs_a_home_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_home(_: str) -> str:
        message = "could not determine the home directory"
        raise RuntimeError(message)

    monkeypatch.setattr(platformdirs, "user_cache_dir", no_home)
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "a" / "b" / "c" / "cache.py"))
    assert main(["data", "list"]) == 2
    assert capsys.readouterr().err.startswith("error: data.cache: expected a folder, found no home folder")


@pytest.mark.parametrize("error", [MemoryError(), MemoryError("can't start new thread")])
def test_too_little_memory_is_named(
    error: MemoryError, stub: Runner, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (600 << 20, resource.RLIM_INFINITY))
    stub.error = error
    assert main(["run"]) == 2
    reason = str(error) or "an allocation failed"
    expected = f"memory: not enough for this command ({reason}). Free some, or use smaller data."
    limit = "The limit of 600 MiB on its memory (ulimit -v) may be too low."
    assert capsys.readouterr().err == f"error: {expected} {limit}\n"


def test_a_real_process_refuses_in_one_line(tmp_path: Path) -> None:
    refused = klr_bench("run", "experiment=oskl_magc", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "error: unknown experiment 'oskl_magc'. Did you mean 'oskl_magic'?\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--cfg", "job"], "results_dir: results"),
        (["--cfg", "hydra", "-p", "hydra.run"], "dir: ."),
        (["--info", "searchpath"], str(config_files.config_dir())),
        (["--hydra-help"], "Hydra"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_flags_of_hydra(arguments: list[str], expected: str, stub: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *arguments]) == 0
    assert expected in capsys.readouterr().out
    assert stub.configs == []


def test_argparse_of_python_3_14_accepts_hydras_parser(stub: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    add_argument = argparse.ArgumentParser.add_argument

    def check_help(parser: argparse.ArgumentParser, action: argparse.Action) -> None:
        if action.help and not isinstance(action.help, str):
            message = "badly formed help string"
            raise ValueError(message)

    def add_checked(parser: Any, *names: str, **options: Any) -> argparse.Action:
        action = add_argument(parser, *names, **options)
        parser._check_help(action)
        return action

    monkeypatch.setattr(argparse._ActionsContainer, "_check_help", check_help, raising=False)
    monkeypatch.setattr(argparse.ArgumentParser, "add_argument", add_checked)
    assert main(["run"]) == 0
    assert len(stub.configs) == 1
    with pytest.raises(ValueError, match="badly formed"):
        argparse.ArgumentParser().add_argument("--x", help=5)  # type: ignore[arg-type]


def test_a_run_leaves_no_stray_files(stub: Runner, tmp_path: Path) -> None:
    assert main(["run"]) == 0
    assert [config.name for config in stub.configs] == ["quickstart"]
    assert stub.options == [{"quiet": False, "dry_run": False, "overrides": []}]
    assert list(tmp_path.iterdir()) == []


def test_own_flags_do_not_reach_hydra(stub: Runner) -> None:
    assert main(["run", "--quiet", "repeats=2", "--dry-run"]) == 0
    assert stub.options == [{"quiet": True, "dry_run": True, "overrides": ["repeats=2"]}]


def test_one_name_and_a_list_are_both_selections(stub: Runner) -> None:
    assert main(["run", "dataset=covtype", "algorithm=[nc,oskl]"]) == 0
    assert main(["run", "dataset=[magic,adult]", "algorithm=oskl"]) == 0
    assert [list(config.datasets) for config in stub.configs] == [["covtype"], ["magic", "adult"]]
    assert [list(config.algorithms) for config in stub.configs] == [["nc", "oskl"], ["oskl"]]


def test_a_multirun_sweeps_into_the_results_folder(stub: Runner, tmp_path: Path) -> None:
    arguments = ["experiment=oskl_magic", "repeats=1,2", "dataset=magic,adult", "results_dir=out, here"]
    assert main(["run", "-m", *arguments]) == 0
    jobs = [(config.name, config.repeats, list(config.datasets)) for config in stub.configs]
    expected = [(f"oskl_magic-repeats-{n}-dataset-{name}", n, [name]) for n in (1, 2) for name in ("magic", "adult")]
    assert jobs == expected, "each run has a results folder of its own"
    assert {config.results_dir for config in stub.configs} == {"out, here"}
    assert [path.name for path in tmp_path.iterdir()] == ["out, here"]


def test_names_of_the_runs_of_a_sweep(stub: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["experiment=oskl_magic,oskl_adult"], ["repeats=1"], ["name=a,b"]):
        assert main(["run", "-m", *arguments]) == 0
    assert main(["run", "-m", "dataset=[moons,digits],[moons]"]) == 0
    assert main(["run", "-m", "seed=1,2", "name='${experiment}_${seed}'"]) == 0
    names = ["oskl_magic", "oskl_adult", "quickstart", "a", "b", "quickstart-dataset-moons-digits"]
    names += ["quickstart-dataset-moons", "quickstart_1", "quickstart_2"]
    assert [config.name for config in stub.configs] == names
    assert main(["run", "-m", "seed=1,2", "name=same"]) == 2
    assert capsys.readouterr().err.startswith("error: seed=2 name=same: results/same: an earlier run of this sweep has")
    assert len(stub.configs) == len(names) + 1


def test_flags_may_stand_behind_any_override(stub: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "experiment=oskl_magic", "~sweep", "-m", "seed=1,2"]) == 0
    assert [config.name for config in stub.configs] == ["oskl_magic-seed-1", "oskl_magic-seed-2"]
    assert [config.sweep for config in stub.configs] == [{}, {}]
    assert main(["run", "oskl_magic", "-m", "seed=1,2"]) == 2
    assert capsys.readouterr().err.startswith("error: expected key=value, got 'oskl_magic'.")


SWEEPER = """
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper

store, target = ConfigStore.instance().store, "hydra_plugins.sampling.SamplingSweeper"
store("sampling", {"_target_": target, "defaults": ["_self_", {"sampler": "counter"}]}, "hydra/sweeper")
for name in ("counter", "count"):
    store(name, {"_target_": "collections.Counter"}, "hydra/sweeper/sampler")


class SamplingSweeper(Sweeper):
    def __init__(self, sampler):
        assert sampler == {}

    def setup(self, **context):
        self.launcher = Plugins.instance().instantiate_launcher(**context)

    def sweep(self, arguments):
        assert arguments == ["seed=1,2"]
        for _ in range(2):
            self.launcher.launch([["seed=1"], ["seed=2"]], initial_job_idx=0)
"""
"""A plugin of Hydra whose settings have a class inside, as Optuna's have, and which comes back to a job."""


@pytest.mark.exhaustive
def test_a_sweeper_of_an_installed_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hydra_plugins").mkdir()
    (tmp_path / "hydra_plugins" / "sampling.py").write_text(SWEEPER)
    monkeypatch.setitem(ENVIRONMENT, "PYTHONPATH", f"{ROOT}{os.pathsep}{tmp_path}")
    arguments = ["run", "-m", "--dry-run", "--quiet", "hydra/sweeper=sampling", "hydra/sweeper/sampler=count"]
    done = klr_bench(*arguments, "seed=1,2", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    names = [line.partition(":")[0] for line in done.stdout.splitlines() if line.startswith("quick")]
    assert names == ["quickstart-seed-1", "quickstart-seed-2"] * 2


def test_a_long_name_of_a_run_is_cut_and_stays_its_own() -> None:
    overrides = [f"algorithms.oskl.estimator.{'x' * 90}={number}" for number in (1, 2)]
    first, second = (name_of_job("mine", [override], ()) for override in overrides)
    assert len(first) == len(second) == 100
    assert first != second
    assert name_of_job("mine", ["+trace.points=3", "repeats=2"], {"repeats"}) == "mine-trace.points-3"


def test_a_dry_run_writes_nothing_and_one_of_a_paper_counts_cells(stub: Runner, tmp_path: Path) -> None:
    assert main(["run", "-m", "repeats=1,2", "--dry-run"]) == 0
    assert len(stub.configs) == 2
    assert main(["run", "paper=prototype_klr", "--dry-run"]) == 0
    assert {(options["quiet"], options["dry_run"]) for options in stub.options[2:]} == {(True, True)}
    assert {config.name for config in stub.configs} >= {"prototypes_curve", "prototypes_mnist"}
    assert list(tmp_path.iterdir()) == []


def test_the_hint_behind_a_run_is_of_what_ran(stub: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    def hints(*arguments: str) -> list[str]:
        main(["run", *arguments])
        return capsys.readouterr().out.splitlines()

    assert hints("results_dir=out here") == ["Next: klr-bench report experiment=quickstart results_dir='out here'"]
    assert hints("--quiet") == hints("--dry-run") == []
    assert hints("paper=tan2016aaai", "results_dir=out") == ["Next: klr-bench report paper=tan2016aaai results_dir=out"]


def test_a_refused_job_does_not_hide_the_others(stub: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "-m", "repeats=1,0,2"]) == 2
    assert [config.repeats for config in stub.configs] == [1, 2]
    assert capsys.readouterr().err == "error: repeats=0: repeats: expected from 1 to 10000, got 0.\n"


def test_the_status_tells_of_failed_cells(stub: Runner) -> None:
    stub.n_failed = 3
    assert main(["run"]) == 1
    assert main(["run", "-m", "repeats=1,2"]) == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KlrBenchError("Margin needs eta < 2."), "Margin needs eta < 2."),
        (ValueError("G must be at least 1."), "G must be at least 1."),
        (
            OSError(28, "No space left on device", "/full"),
            "/full: cannot be used (No space left on device). Choose another path, or mend this one.",
        ),
    ],
)
def test_errors_of_the_runner_are_one_line(
    error: Exception, message: str, stub: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    stub.error = error
    assert main(["run"]) == 2
    assert capsys.readouterr().err == f"error: {message}\n"
    assert main(["run", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_defect_of_ours_keeps_its_traceback(stub: Runner) -> None:
    stub.error = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        main(["run"])


def test_ctrl_c_is_130(stub: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    stub.error = KeyboardInterrupt()
    assert main(["run", "-m", "repeats=1,2"]) == 130
    assert len(stub.configs) == 1
    assert capsys.readouterr().err == "interrupted\n"


def test_sigterm_is_as_ctrl_c() -> None:
    code = (
        "import signal, sys, klr_bench.runner\n"
        "klr_bench.runner.run = lambda *a, **k: (print('running', flush=True), signal.pause())\n"
        "from klr_bench.cli import main\n"
        "sys.exit(main(['run']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, env=ENVIRONMENT, text=True, stdout=-1, stderr=-1
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in err


# run: what Hydra refuses, said better


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("dataset=[magic,adlt]", "unknown dataset 'adlt'. Did you mean 'adult'?"),
        ("figures=[accuracy_suport]", "figures: unknown value 'accuracy_suport'. Did you mean 'accuracy_support'?"),
        ("figures=[5]", "figures[0]: expected text, got 5."),
        ("parallel=proceses", "unknown parallel 'proceses'. Did you mean 'processes'?"),
        ("repeat=3", "unknown key 'repeat'. Did you mean 'repeats'?"),
        ("~repeat", "unknown key 'repeat'. Did you mean 'repeats'?"),
        ("path=mine.csv", "unknown key 'path'. Did you mean 'data.path'?"),
        (
            "data.path=x.csv",
            "data.path= is given, but the dataset is not file. Add experiment=own_file (or dataset=file)",
        ),
        ("dataset=null", "dataset=null: expected a name of configs/dataset, got none."),
        ("experiment=", "experiment=: expected a name of configs/experiment, got none."),
        ("experiment=oskl_magic,oskl_adult", "experiment got several values: add -m to run once with each."),
        ("dataset=magic,adult", "dataset got several values: write dataset=[magic,adult] for a list, or add -m"),
        ("oskl_magic", "expected key=value, got 'oskl_magic'. Did you mean experiment=oskl_magic?"),
        ("whatever", "expected key=value, got 'whatever'."),
        ("name=???", "name: Missing mandatory value: name"),
        ("--dryrun", "unknown flag '--dryrun'. Did you mean '--dry-run'?"),
    ],
)
def test_refusals_name_what_is_near(
    argument: str, message: str, stub: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", argument]) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == 1
    assert (out, stub.configs) == ("", [])


def test_a_bare_path_is_the_users_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stub: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.csv").write_text("x,class\n1,a\n2,b\n")
    assert main(["run", "mine.csv"]) == 2
    assert "Did you mean experiment=own_file data.path=mine.csv?" in capsys.readouterr().err
    assert not stub.configs


def test_a_column_is_named_by_its_number(tmp_path: Path, stub: Runner) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("Größe,x,class\n1,2,a\n2,3,b\n", encoding="utf-8")
    assert main(["run", "experiment=own_file", f"data.path={path}", "data.columns={1: leave_out, x: number}"]) == 0
    assert stub.configs[0].data.columns == {"1": "leave_out", "x": "number"}


# run: values that Hydra's lexer refuses


@pytest.mark.parametrize("path", ["a b,c=d?.csv", "it's", 'say "x"', "a\\", "data/{a}.csv", "é"])
def test_paths_are_taken_as_they_are_written(path: str, stub: Runner) -> None:
    paths = [f"data.path={path}", f"results_dir={path}", f"data.cache={path}", f"data.mirror=~/{path}"]
    assert main(["run", "dataset=file", *paths]) == 0
    config = stub.configs[0]
    assert (config.data.path, config.results_dir, config.data.cache) == (path, path, path)
    assert config.data.mirror == str(Path.home() / path)


@given(st.text(st.sampled_from("ab~ ,=?'\"\\[]{}():#\n%é$"), max_size=10))
def test_quoting_survives_hydras_grammar(text: str) -> None:
    quoted_already = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    [argument] = prepare([f"data.path={text}"]).hydra
    if not quoted_already:
        assert OverridesParser.create().parse_override(argument).value() == text


def test_quotes_of_the_users_own_are_kept() -> None:
    arguments = ['data.path="a, b"', "data.path='c'", "data.mirror=null"]
    assert prepare(arguments).hydra == arguments


# A user's own files


@pytest.fixture
def own_configs(stub: Runner, tmp_path: Path) -> Path:
    """Return a folder with an experiment, a dataset and an algorithm of the user's, the current folder."""
    files = {
        "experiment/mine": "# @package _global_\ndefaults:\n  - override /dataset: [wine]\n"
        "  - override /algorithm: [logistic]\n  - _self_\ntitle: My own\nrepeats: 2\n",
        "dataset/wine": "# @package datasets.wine\nlabel: Wine\nsplit: {test_size: 0.2}\n"
        "source: {format: svmlight, train: {name: wine/wine, sha256: unknown}}\n",
        "algorithm/logistic": "# @package algorithms.logistic\nlabel: LR\n"
        "estimator: {_target_: sklearn.linear_model.LogisticRegression}\ngrid: {C: [1, 10]}\n",
    }
    for name, text in files.items():
        path = tmp_path / "configs" / f"{name}.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return tmp_path


def test_own_files_run(own_configs: Path, stub: Runner) -> None:
    assert main(["run", "experiment=mine"]) == 0
    [config] = stub.configs
    assert (config.name, config.title, config.repeats) == ("mine", "My own", 2)
    assert config.datasets["wine"].label == "Wine"
    assert config.algorithms["logistic"].grid == {"C": [1, 10]}


def test_own_files_are_listed_shown_and_completed(own_configs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    for line in ("mine", "My own", "wine", "logistic", "oskl_magic", "magic"):
        assert line in text
    assert main(["show", "algorithm", "logistic"]) == 0
    path = own_configs / "configs" / "algorithm" / "logistic.yaml"
    assert capsys.readouterr().out == f"# {path}\n{path.read_text()}"
    assert completion.complete("klr-bench run experiment=min", 28) == ["experiment=mine "]


def test_an_unknown_parameter_of_another_librarys_class_is_refused(
    own_configs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "experiment=mine", "algorithms.logistic.estimator.penalti=l1"]) == 2
    assert "unknown key 'algorithms.logistic.estimator.penalti'. Did you mean 'penalty'?" in capsys.readouterr().err


def test_an_own_experiment_that_misspells_is_refused(own_configs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = own_configs / "configs" / "experiment" / "mine.yaml"
    text = experiment.read_text()
    experiment.write_text(text.replace("[wine]", "[whine]"))
    assert main(["run", "experiment=mine"]) == 2
    assert "unknown dataset 'whine'. Did you mean 'wine'?" in capsys.readouterr().err
    experiment.write_text(f"{text}sweep: {{logistik: {{C: [1]}}}}\n")
    assert main(["run", "experiment=mine"]) == 2
    assert "unknown algorithm 'logistik'. Did you mean 'logistic'?" in capsys.readouterr().err
    experiment.write_text(f"{text}repeats: [\n")
    assert main(["run", "experiment=mine"]) == 2
    assert str(experiment) in capsys.readouterr().err


# report


def test_report_is_called_for_each_experiment(stub: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Path, dict[str, Any]]] = []
    monkeypatch.setattr("klr_bench.report.report", lambda folder, **options: calls.append((folder, options)) or [])
    assert main(["report", "experiment=a,b", "results_dir=out", "table=3", "format=[terminal,md]"]) == 0
    assert [folder for folder, _ in calls] == [Path("out/a"), Path("out/b")]
    assert {key: calls[0][1][key] for key in ("table", "formats", "output")} == {
        "table": "3",
        "formats": ["terminal", "md"],
        "output": None,
    }
    assert main(["report", "experiment=a", "output=~/tables"]) == 0
    assert calls[2][1]["output"] == Path.home() / "tables"


# Completion


OSKLS = [f"oskl_{name} " for name in ("adult", "covtype", "covtype_radius", "losses_magic", "magic", "mnist")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        *(("re", ["report "]), ("run --mul", ["--multirun "]), ("run rep", ["repeats="]), ("watch po", ["port="])),
        ("run experiment=osk", [f"experiment={name}" for name in OSKLS]),
        ("run dataset=[magic,mu", ["dataset=[magic,mushrooms"]),
        ("run dataset=[magic,magi", []),
        ("run -m algorithm=nc,os", ["algorithm=nc,oskl", "algorithm=nc,oskl_default"]),
        ("run kernel.perc", ["kernel.percentile="]),
        ("report format=terminal,m", ["format=terminal,md"]),
        ("data fetch mag", ["magic "]),
        ("show algorithm osk", ["oskl ", "oskl_default "]),
        ("list alg", ["algorithms "]),
        ("completion z", ["zsh "]),
        ("run paper=zhang2013", ["paper=zhang2013icml "]),
        ("run metrics=[accuracy,balanced", ["metrics=[accuracy,balanced_accuracy"]),
        ("run figures=[gap", ["figures=[gap_time"]),
        ("run watch=t", ["watch=true "]),
    ],
)
def test_words_that_fit(line: str, expected: list[str]) -> None:
    line = f"klr-bench {line}"
    assert completion.complete(line, len(line)) == expected
    assert completion.complete(f"{line} and more", len(line)) == expected


def test_runs_that_can_be_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for place in ("results/mine", "results/empty", "elsewhere/theirs"):
        Path(place).mkdir(parents=True)
    for place in ("results/mine", "elsewhere/theirs"):
        Path(place, "records.csv").touch()
    for line, expected in (("", "mine"), ("results_dir=elsewhere ", "theirs")):
        typed = f"klr-bench report {line}experiment="
        assert completion.complete(typed, len(typed)) == [f"experiment={expected} "]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("klr-bench run experiment=osk", OSKLS),
        ("klr-bench run dataset=[magic,mu", ["[magic,mushrooms"]),
        ("klr-bench run kernel.perc", ["kernel.percentile="]),
    ],
)
def test_bash_completes(line: str, expected: list[str], tmp_path: Path) -> None:
    command = tmp_path / "klr-bench"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m klr_bench "$@"\n')
    command.chmod(0o755)
    script = f"""
        eval "$(klr-bench completion bash)"
        complete -p klr-bench | grep -q _klr_bench || exit 3
        COMP_LINE='{line}' COMP_POINT={len(line)}
        _klr_bench klr-bench
        printf '%s|' "${{COMPREPLY[@]}}"
    """
    environment = ENVIRONMENT | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("|")[:-1] == expected
