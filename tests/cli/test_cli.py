"""The command line, in separate processes where start-up or signals matter."""

import argparse
import copy
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from klr_bench import __version__
from klr_bench.cli import HELP, app, completion, main
from klr_bench.cli.arguments import name_of_job
from klr_bench.cli.listing import LISTED
from klr_bench.errors import KlrBenchError
from tests.cli.conftest import Runner
from tests.cover import usually

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}
HEAVY = {"numpy", "scipy", "sklearn", "pandas", "numba", "matplotlib", "joblib", "hydra", "omegaconf"}
"""Libraries whose import alone takes a good part of a second."""
READERS = {"yaml", "rich", "filelock"}
"""Libraries that read configurations, draw tables, and wait for other processes."""


@pytest.mark.parametrize(
    ("arguments", "spared"),
    [
        (["--help"], HEAVY | READERS),
        (["show", "algorithm", "oskl"], HEAVY | READERS),
        (["completion", "--words", "klr-bench run kernel.", "21"], HEAVY | READERS),
        (["list"], HEAVY | READERS - {"yaml"}),
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


def test_neither_the_classes_nor_a_run_import_what_only_figures_and_pages_need(tmp_path: Path) -> None:
    # Only the classes: skops, which stores models, imports dask if it is installed, and dask imports jinja2.
    code = (
        "import sys, klr_bench; from klr_bench.cli import main\n"
        "names = [getattr(klr_bench, name) for name in klr_bench.__all__ if name[0].isupper()]\n"
        "status = main(sys.argv[1:]); print(*sys.modules, file=sys.stderr); sys.exit(status)"
    )
    words = ["run", "dataset=breast_cancer", "algorithm=[nc]", "repeats=1", "parallel=serial", "results_dir=made"]
    command = [sys.executable, "-c", code, *words, "data.cache=cache"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made" / "quickstart" / "records.csv").is_file()
    imported = set(done.stderr.split())
    assert "numba" in imported
    assert imported & {"matplotlib", "jinja2", "PIL"} == set()


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return what a command prints, in lines of at most 80 characters."""
    assert main(words) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    return text


def test_help_fits_a_small_terminal_and_each_verb_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--help")
    assert text == printed(capsys)
    assert len(text.splitlines()) <= 24
    assert text.count("\n    klr-bench ") == 3
    for verb in HELP:
        assert re.search(rf"^    {verb} +\w", text, re.MULTILINE)
        details = printed(capsys, verb, "--help")
        assert details.startswith(f"usage: klr-bench {verb} ")
        assert len(details.splitlines()) <= 40
        assert f"\n    klr-bench {verb}" in details or f"$(klr-bench {verb}" in details
    assert "algorithms.oskl.estimator.delta=0.2" in printed(capsys, "run", "--help")
    assert printed(capsys, "--version") == f"klr-bench {__version__}\n"


@pytest.mark.parametrize("kind", [*LISTED, ""])
def test_lists_fit_a_small_terminal(
    kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = printed(capsys, "list", *([f"{kind}s"] if kind else []))
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["list", *([f"{kind}s"] if kind else [])]) == 0
    wide = capsys.readouterr().out
    assert wide.split() == narrow.split()
    if kind != "metric":
        assert 80 < max(map(len, wide.splitlines())) <= 200


def test_algorithms_have_a_class_and_settings(capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(printed(capsys, "list", "algorithms").split())
    assert " OSKL(n_epochs=1, shuffle=False, G=1.0, loss='logit', R=1000.0); cross-validation chooses R" in text
    assert re.search(r" oskl_default OSKL\(\): .*? default parameters .*? OSKL\(\) ", text)
    for words in (["paper", "zhang2013icml"], ["paper=zhang2013icml"]):
        assert main(["show", *words]) == 0
        assert "\ntitle: Online Kernel Learning with" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("rum", "unknown command 'rum'. Did you mean 'run'?"),
        ("data fech", "data: unknown command 'fech'. Did you mean 'fetch'?"),
        ("data info", "data info: expected one name, got none."),
        ("data info magik", "unknown dataset 'magik'. Did you mean 'magic'?"),
        ("data list data.cache=", "data.cache: expected data.cache=<value>, got none."),
        ("report", "report: expected experiment=<name>, got none."),
        ("report oskl_magic", "report: expected experiment=<name>, got 'oskl_magic'. Try klr-bench report exper"),
        ("report experimnt=x", "unknown key 'experimnt'. Did you mean 'experiment'?"),
        ("report experiment=x name=mine", "unknown key 'name'. To show results of a run with name=mine: klr"),
        ("list oskl", "unknown kind 'oskl'. Known: algorithms, .*sources. To print it: klr-bench show algorithm oskl"),
        ("list algoritms", "unknown kind 'algoritms'. Did you mean 'algorithms'?"),
        ("show papr zhang2013icml", "unknown kind 'papr'. Did you mean 'paper'?"),
        ("show paper zhang2013", "unknown paper 'zhang2013'. Did you mean 'zhang2013icml'?"),
        ("show oskl", "show: expected a kind and a name, as in klr-bench show algorithm oskl, got oskl."),
        ("completion tcsh", "completion: expected bash, zsh or fish, got 'tcsh'."),
        ("run dataset=[magic,adlt]", "unknown dataset 'adlt'. Did you mean 'adult'?"),
        ("run figures=[accuracy_suport]", "figures: unknown value 'accuracy_suport'. Did you mean 'accuracy_support'?"),
        ("run repeat=3", "unknown key 'repeat'. Did you mean 'repeats'?"),
        ("run path=mine.csv", "unknown key 'path'. Did you mean 'data.path'?"),
        ("run dataset=null", "dataset: expected a name from configs/dataset, or a list of names .*, got none."),
        ("run experiment=", "experiment: expected a name from configs/experiment, got none."),
        ("run experiment=oskl_magic,oskl_adult", "experiment has several values: add -m to run once with each."),
        *(
            (f"run {key}=a,b", f"{key} has several values: write '{key}=[a,b]' for a list, or add -m to run once")
            for key in (
                "dataset",
                "algorithm",
                "metrics",
                "figures",
                "budget",
                "sweep.oskl.G",
                "algorithms.oskl.grid.R",
            )
        ),
        ("run seed=1,2", "seed has several values: add -m to run once with each."),
        *(
            (f"run {key}={value}", f"{key}: expected text in quotes, as in .* \"'1'\" on a command line, got ")
            for key in ("name", "title", "selection.score")
            for value in (2024, 1.5, "true")
        ),
        ("run oskl_magic", "expected key=value, got 'oskl_magic'. Did you mean experiment=oskl_magic?"),
        ("run oskl_magic -m seed=1,2", "expected key=value, got 'oskl_magic'."),
        ("run mine.csv", "expected key=value, got 'mine.csv'. Did you mean experiment=own_file data.path=mine.csv?"),
        ("run name=???", "name: Missing mandatory value: name"),
        ("run --dryrun", "unknown flag '--dryrun'. Did you mean '--dry-run'?"),
    ],
)
def test_mistakes_are_refused_in_one_line(
    words: str, message: str, stub: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.csv").write_text("x,class\n1,a\n")
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    start, _, end = message.partition(".*")
    assert err.startswith(f"error: {start}")
    assert end in err
    assert err.count("\n") == 1
    assert (out, stub.configs) == ("", [])
    assert [path.name for path in tmp_path.iterdir()] == ["mine.csv"]


def shell(line: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a shell line in which "$@" is klr-bench."""
    command = ["bash", "-c", line, "bash", sys.executable, "-m", "klr_bench"]
    return subprocess.run(command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, check=False)


ALL_CLOSED = "<&- >&- 2>&-"


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    done = shell('set -o pipefail; { sleep 0.1; "$@" run --dry-run; } | true; echo $?', tmp_path)
    assert (done.stdout, done.stderr) == ("141\n", "")


@pytest.mark.parametrize("closed", usually(["<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", ALL_CLOSED], [ALL_CLOSED]))
def test_closed_streams_change_no_status(closed: str, tmp_path: Path) -> None:
    for words, status in (("list", 0), ("nosuch", 2), ("run --dry-run", 0)):
        done = shell(f'"$@" {words} {closed}', tmp_path)
        assert (done.returncode, "Traceback" in done.stderr) == (status, False)


def test_workers_run_without_standard_streams(tmp_path: Path) -> None:
    done = shell('"$@" run dataset=moons algorithm=nc repeats=1 n_jobs=2 <&- >&- 2>&-', tmp_path)
    assert (done.returncode, len((tmp_path / "results/quickstart/records.csv").read_text().splitlines())) == (0, 2)


@pytest.mark.parametrize("words", ["nosuch", "run nosuch", "fit", "nosuch --debug", "run -m seed=1,2 n_jobs=0"])
def test_bad_input_has_its_status_if_nobody_reads_the_message(words: str, tmp_path: Path) -> None:
    done = shell(f'set -o pipefail; {{ sleep 0.1; "$@" {words} 2>&1; }} | true; echo $?', tmp_path)
    assert (done.stdout, done.stderr) == ("2\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_standard_output_is_named() -> None:
    done = shell('"$@" list >/dev/full')
    assert done.returncode == 2
    assert done.stderr.startswith("error: standard output or a file: cannot be used (No space left on device).")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KlrBenchError("Margin needs eta < 2."), "Margin needs eta < 2."),
        (ValueError("G must be at least 1."), "G must be at least 1."),
        (OSError(28, "No space left on device", "/full"), "/full: cannot be used (No space left on device). Fix"),
        (
            MemoryError("no thread"),
            "not enough memory for this command (no thread). Free some memory, or use smaller data.",
        ),
    ],
)
def test_errors_of_the_runner_are_one_line(
    error: Exception, message: str, stub: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    stub.error = error
    assert main(["run"]) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")
    assert main(["run", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_bug_keeps_its_traceback(stub: Runner) -> None:
    stub.error = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        main(["run"])


def test_argparse_of_python_3_14_accepts_hydras_parser(stub: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """argparse refuses a help text that is not a string, such as that of Hydra."""
    add_argument = argparse.ArgumentParser.add_argument

    def add_checked(parser: Any, *names: str, **options: Any) -> argparse.Action:
        action = add_argument(parser, *names, **options)
        if not isinstance(action.help, str | None):
            parser._check_help(action)
        return action

    monkeypatch.setattr(argparse.ArgumentParser, "_check_help", lambda *_: pytest.fail("refused"), raising=False)
    monkeypatch.setattr(argparse.ArgumentParser, "add_argument", add_checked)
    assert main(["run"]) == 0
    assert len(stub.configs) == 1


def test_a_run_gets_its_flags_and_leaves_no_stray_files(
    stub: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run"]) == 0
    assert [config.name for config in stub.configs] == ["quickstart"]
    assert capsys.readouterr().out.splitlines()[-1] == "Next: klr-bench report experiment=quickstart"
    stub.n_failed = 3
    assert main(["run", "--quiet", "repeats=2", "--dry-run"]) == 1
    assert capsys.readouterr().out == ""
    shown = {"quiet": False, "dry_run": False, "verbose": False, "debug": False, "executor": None, "overrides": []}
    assert stub.options == [shown, shown | {"quiet": True, "dry_run": True, "overrides": ["repeats=2"]}]
    assert list(tmp_path.iterdir()) == []


def test_a_multirun_sweeps_into_folders_of_their_own(
    stub: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["experiment=oskl_magic", "~sweep", "-m", "repeats=1,2", "dataset=[magic,adult],adult"]
    assert main(["run", *arguments, "results_dir=out, here"]) == 0
    jobs = [(config.name, config.repeats, list(config.datasets)) for config in stub.configs]
    datasets = {"magic-adult": ["magic", "adult"], "adult": ["adult"]}
    assert jobs == [(f"oskl_magic-repeats-{n}-dataset-{key}", n, datasets[key]) for n in (1, 2) for key in datasets]
    assert {config.results_dir for config in stub.configs} == {"out, here"}
    assert [path.name for path in tmp_path.iterdir()] == ["out, here"]
    shown = capsys.readouterr().out.splitlines()
    assert "Next: klr-bench report experiment=oskl_magic-repeats-1-dataset-adult results_dir='out, here'" in shown
    assert shown[-1] == "Next: klr-bench report experiment=oskl_magic over=repeats,dataset results_dir='out, here'"
    stub.configs.clear()
    assert main(["run", "-m", "seed=1,2", "name=same", "--dry-run"]) == 2
    assert capsys.readouterr().err.startswith("error: seed=2 name=same: results/same: an earlier run of this")
    assert len(stub.configs) == 1


def test_the_runs_of_a_paper(stub: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "paper=prototype_klr", "results_dir=out"]) == 0
    assert {config.name for config in stub.configs} >= {"prototypes_curve", "prototypes_mnist"}
    assert capsys.readouterr().out.splitlines() == ["Next: klr-bench report paper=prototype_klr results_dir=out"]


def test_the_name_of_a_job_has_what_distinguishes_it() -> None:
    assert name_of_job("mine", ["name=mine", "seed=2"], set()) == "mine"
    assert name_of_job("mine", ["+trace.points=3", "repeats=2"], {"repeats"}) == "mine-trace.points-3"
    assert len(name_of_job("mine", [f"algorithms.oskl.estimator.{'x' * 90}=1"], set())) <= 100


def test_a_refused_job_does_not_hide_the_others(stub: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "-m", "repeats=1,0,2"]) == 2
    assert [config.repeats for config in stub.configs] == [1, 2]
    assert capsys.readouterr().err == "error: repeats=0: repeats: expected from 1 to 10000, got 0.\n"


def test_failed_cells_of_jobs_in_other_processes_have_their_status(
    stub: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker process of a Hydra launcher has a copy of the jobs."""
    main_of_hydra = app.hydra.main

    def with_copies(*arguments: Any, **options: Any) -> Any:
        return lambda jobs: main_of_hydra(*arguments, **options)(lambda cfg: copy.deepcopy(jobs)(cfg))

    monkeypatch.setattr(app.hydra, "main", with_copies)
    for n_failed, status in ((0, 0), (1, 1)):
        stub.n_failed = n_failed
        assert main(["run", "-m", "seed=1,2"]) == status
    assert len(stub.configs) == 4


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
        "sys.exit(main(['run', '--quiet']))"
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


@pytest.mark.parametrize("path", ["a b,c=d?.csv", "it's", 'say "x"', "a\\", "a\\'b", "data/{a}.csv", "é#$: %"])
def test_paths_are_taken_as_they_are_written(path: str, stub: Runner) -> None:
    paths = [f"data.path={path}", f"results_dir={path}", f"data.cache={path}", f"data.mirror=~/{path}"]
    assert main(["run", "dataset=file", *paths]) == 0
    config = stub.configs[0]
    assert (config.data.path, config.results_dir, config.data.cache) == (path, path, path)
    assert config.data.mirror == str(Path.home() / path)


HOME_FILE = (
    "# @package _global_\ndefaults:\n  - override /dataset: [moons]\n  - override /algorithm: [nc]\n  - _self_\n"
)


@pytest.mark.parametrize(
    "words",
    [
        ["results_dir=~/x", "-m", "seed=1,2"],
        ["results_dir='~/x'", "-m", "seed=1,2"],
        ["experiment=at_home", "-m", "seed=1,2"],
        ["results_dir=~/x", "paper=prototype_klr"],
        ["hydra.sweep.dir=~/x", "-m", "seed=1,2"],
        ["hydra.run.dir=~/x"],
        ["results_dir=~/x"],
    ],
    ids=" ".join,
)
def test_no_folder_is_named_as_the_home_folder(
    words: list[str], stub: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    Path("configs/experiment").mkdir(parents=True)
    Path("configs/experiment/at_home.yaml").write_text(f"{HOME_FILE}results_dir: ~/x\n")
    assert main(["run", *words]) == 0
    expected = "results" if words[0].startswith("hydra.") else str(tmp_path / "home" / "x")
    assert {config.results_dir for config in stub.configs} == {expected}
    assert {path.name for path in tmp_path.iterdir()} <= {"configs", "home", "results"}


@pytest.fixture
def own_configs(stub: Runner, tmp_path: Path) -> Path:
    """Make a folder with a user's experiment, data set and algorithm the current folder; return it."""
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


def test_own_files_run_and_are_listed_shown_and_completed(
    own_configs: Path, stub: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "experiment=mine"]) == 0
    [config] = stub.configs
    assert (config.name, config.title, config.repeats) == ("mine", "My own", 2)
    assert config.datasets["wine"].label == "Wine"
    assert config.algorithms["logistic"].grid == {"C": [1, 10]}
    assert main(["list"]) == main(["list", "experiments"]) == 0
    text = capsys.readouterr().out
    for line in ("mine", "My own", "wine", "logistic", "oskl_magic", "magic"):
        assert line in text
    assert main(["show", "algorithm", "logistic"]) == 0
    path = own_configs / "configs" / "algorithm" / "logistic.yaml"
    assert capsys.readouterr().out == f"# {path}\n{path.read_text()}"
    assert completion.complete("klr-bench run experiment=min", 28) == ["experiment=mine "]
    assert main(["run", "experiment=mine", "algorithms.logistic.estimator.penalti=l1"]) == 2
    assert "unknown key 'algorithms.logistic.estimator.penalti'. Did you mean 'penalty'?" in capsys.readouterr().err
    experiment = own_configs / "configs" / "experiment" / "mine.yaml"
    experiment.write_text(experiment.read_text().replace("[wine]", "[whine]"))
    assert main(["run", "experiment=mine"]) == 2
    assert "unknown dataset 'whine'. Did you mean 'wine'?" in capsys.readouterr().err


def test_completion_below_the_home_of_nobody_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    line = "klr-bench report results_dir=~nosuchuser/x experiment="
    assert main(["completion", "--words", line, "99"]) == 2
    assert "the user 'nosuchuser' has no home folder" in capsys.readouterr().err


def test_the_other_run_is_a_name_or_a_folder(stub: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Path, Path]] = []
    monkeypatch.setattr(
        "klr_bench.report.compare.pages.report_comparison", lambda *folders, **_: calls.append(folders) or []
    )
    assert main(["report", "experiment=a", "compare=b"]) == main(["report", "experiment=a", "compare=there/b"]) == 0
    assert calls == [(Path("results/a"), Path("results/b")), (Path("results/a"), Path("there/b"))]


OSKLS = [f"oskl_{name} " for name in ("adult", "covtype", "losses_magic", "magic", "mnist")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        *(("re", ["report "]), ("run --mul", ["--multirun "]), ("run rep", ["repeats="]), ("watch po", ["port="])),
        ("run experiment=osk", [f"experiment={name}" for name in OSKLS]),
        ("run dataset=[magic,mu", ["dataset=[magic,mushrooms"]),
        ("run -m algorithm=nc,os", ["algorithm=nc,oskl", "algorithm=nc,oskl_cv", "algorithm=nc,oskl_default"]),
        ("run kernel.perc", ["kernel.percentile="]),
        ("report format=terminal,m", ["format=terminal,md"]),
        ("report experiment=", ["experiment=mine "]),
        ("report results_dir=elsewhere compare=", ["compare=theirs "]),
        ("data fetch mag", ["magic "]),
        ("show algorithm osk", ["oskl ", "oskl_cv ", "oskl_default "]),
        ("run paper=zhang2013", ["paper=zhang2013icml "]),
        ("run metrics=[accuracy,balanced", ["metrics=[accuracy,balanced_accuracy"]),
        ("run watch=t", ["watch=true "]),
        ("fit algorithm=kl", ["algorithm=klr "]),
        (
            "fit data.",
            [
                *("data.path=", "data.label=", "data.positive=", "data.columns=", "data.coerce=", "data.decimal="),
                *("data.scale=", "data.group=", "data.time=", "data.encoding="),
            ],
        ),
        ("predict m", ["model="]),
    ],
)
def test_matching_words(line: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for place in ("results/mine", "elsewhere/theirs"):
        Path(place).mkdir(parents=True)
        Path(place, "records.csv").touch()
    Path("results/empty").mkdir()
    line = f"klr-bench {line}"
    assert completion.complete(line, len(line)) == expected
    assert completion.complete(f"{line} and more", len(line)) == expected


def test_bash_completes(tmp_path: Path) -> None:
    command, line = tmp_path / "klr-bench", "klr-bench run dataset=[magic,mu"
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
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[magic,mushrooms|", "")
