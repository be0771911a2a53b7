"""Command line of klr-bench: runs the requested command and reports its errors.

Libraries are imported only by the commands that need them, so that help is fast.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path

from klr_bench.cli.arguments import split_keys
from klr_bench.config import locations as config_files
from klr_bench.config.locations import KINDS
from klr_bench.errors import KlrBenchError, environment_message, fail, nearest
from klr_bench.files import expanded
from klr_bench.printing import error_message, printable

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

HELP = {
    "run": """\
klr-bench run [key=value ...]                   run an experiment, or continue it
    klr-bench run                                   run the quickstart, which takes a minute
    klr-bench run experiment=oskl_magic repeats=1
    klr-bench run dataset=file data.path=mine.csv algorithm=[nc,oskl]
    Flags: -m (key=a,b: one run with each value), --cfg job, --dry-run, --quiet, --debug, --help (all keys).
""",
    "fit": """\
klr-bench fit data.path=FILE output=FILE        fit a classifier to your own CSV file and store it
    klr-bench fit data.path=train.csv output=model.skops
    klr-bench fit data.path=train.csv data.label=left algorithm=oskl_default output=model.skops
    Keys: data.path, data.label (name or position of the label column; default: the last one), data.positive,
    data.columns and data.scale (as in klr-bench run), output (the model), algorithm (default: klr), seed (default: 0),
    and parameters of the estimator, such as algorithms.klr.estimator.max_support=500.
""",
    "predict": """\
klr-bench predict model=FILE data.path=FILE output=FILE    predict the classes of new rows with a stored model
    klr-bench predict model=model.skops data.path=new.csv output=predictions.csv
    Columns are found by name; a label column is not needed.  The output has the predicted class of each row, and
    the probability of each class.
""",
    "report": """\
klr-bench report experiment=NAME                print tables and draw figures of finished results
    klr-bench report experiment=oskl_magic
    klr-bench report experiment=oskl_magic,oskl_adult format=terminal,md,tex,csv
    klr-bench report paper=zhang2013icml            all tables of a paper, with a verdict on each number
    klr-bench report experiment=oskl_magic,budget_magic format=html output=magic.html open=true
    klr-bench report experiment=oskl_magic format=tex,pdf columns=accuracy,n_support caption="MAGIC" label=tab:magic
    klr-bench report experiment=oskl_magic compare=mine    compare two runs and test their differences
    Keys: experiment, compare (the other run: a name, or the path of its folder), paper (a name, or all), results_dir
    (X,Y: compare the same experiment in two folders), table (of the paper), format (terminal, md, tex, csv,
    pdf: the figures, html: one page), output (a folder, or the file of a page), open (true: show the page in a
    browser), columns (metrics of the table), statistics (true: all pairs of rows are compared, with intervals and
    p-values), own_figures (true: run your own files in ./configs/figure).  For LaTeX: caption, label,
    note (a line below), orientation (column, page, landscape).
""",
    "site": """\
klr-bench site output=FOLDER                    write a static site: one page per paper and experiment
    klr-bench site output=site results_dir=results/reference
    Keys: output, results_dir, open (true: show it in a browser).
""",
    "watch": """\
klr-bench watch experiment=NAME                 show the progress of a run on a web page until Ctrl-C
    klr-bench watch experiment=oskl_magic open=true
    klr-bench run experiment=oskl_magic watch=true  start a run and show its progress
    Keys: experiment, results_dir, port (0: any free port), host (127.0.0.1: only this machine; 0.0.0.0: everyone who
    can reach it), open (true: show it in a browser).
""",
    "merge": """\
klr-bench merge RESULTS... into=FOLDER          join results folders, such as those of the shards of a run
    klr-bench merge site1/results site2/results into=results
    It joins, for example, the results of klr-bench run experiment=oskl_covtype shard=1/4 and of the other three.
""",
    "data": """\
klr-bench data list|fetch|verify|info [NAME]    list, fetch and check the data sets
    klr-bench data list
    klr-bench data fetch magic adult data.mirror=/mnt/data
    klr-bench data verify
    Keys: data.mirror, data.cache.
""",
    "list": """\
klr-bench list [KIND]                           print the names of experiments, datasets, sources and algorithms
    klr-bench list
    klr-bench list algorithms
""",
    "show": """\
klr-bench show KIND NAME                        print the YAML file of an experiment, dataset, source or algorithm
    klr-bench show experiment oskl_magic
    klr-bench show algorithm oskl
""",
    "completion": """\
klr-bench completion bash|zsh|fish              print a script that completes commands, names and keys
    eval "$(klr-bench completion bash)"
    eval "$(klr-bench completion zsh)"
    klr-bench completion fish | source
""",
}
INTRODUCTION = "klr-bench reruns published comparisons of sparse kernel logistic regression.\n"
CLOSING = """\
klr-bench --version                             print the version

Exit status: 0 success, 1 a cell failed or has conflicting results, 2 invalid input, 130 interrupted.
"""
MODULES = {"fit": "model", "predict": "model", "report": "report", "site": "report", "watch": "watch"}
"""Modules of the commands that have one."""
DATA_VERBS = ("list", "fetch", "verify", "info")
MERGE_KEYS = ("into",)
DATA_KEYS = ("data.mirror", "data.cache")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in `arguments` (default: sys.argv) and return its exit status."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # escape characters that the encoding cannot represent
    try:
        status = _dispatch([argument for argument in arguments if argument != "--debug"], debug=debug)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe.  Without this line, Python would report the error again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return EXIT_INTERRUPTED
    except (KlrBenchError, OSError, ValueError, RecursionError, MemoryError) as error:
        complain(environment_message(error), debug=debug)
        return EXIT_BAD_INPUT
    return status


def complain(message: str, *, debug: bool) -> None:
    """Write an error message to standard error, after a traceback if `debug` is True."""
    if debug:
        traceback.print_exc()
    sys.stderr.write(error_message(message))


def _dispatch(arguments: list[str], *, debug: bool) -> int:
    verb, *rest = arguments or ["--help"]
    if verb in ("--help", "-h", "help"):
        return _print("\n".join([INTRODUCTION, *HELP.values(), CLOSING]))
    if verb in ("--version", "-V"):
        from klr_bench import __version__

        return _print(f"klr-bench {__version__}\n")
    if verb not in HELP:
        fail(f"unknown command {verb!r}.{nearest(verb, HELP)} Run `klr-bench --help` to list all commands.")
    if verb == "run":
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
        from klr_bench.cli.app import run

        return run(rest, debug=debug)
    if "--help" in rest or "-h" in rest:
        return _print(HELP[verb])
    if verb in MODULES:
        return int(getattr(import_module(f"klr_bench.cli.{MODULES[verb]}"), verb)(rest))
    commands: dict[str, Callable[[list[str]], int]] = {
        "merge": _merge,
        "data": _data,
        "list": _list,
        "show": _show,
        "completion": _completion,
    }
    return commands[verb](rest)


def _print(text: str) -> int:
    sys.stdout.write(printable(text))
    return 0


def _merge(arguments: list[str]) -> int:
    words, values = split_keys(arguments, MERGE_KEYS)
    if not words or "into" not in values:
        missing = "into=FOLDER" if words else "results folders"
        fail(f"merge: expected {missing}, got none. Try klr-bench merge RESULTS1 RESULTS2 into=results")
    from klr_bench.results.merge import merge

    merged = merge([expanded(word) for word in words], Path(values["into"]))
    for one in merged:
        _print(f"{one.sentence()}\n" + "".join(f"  {conflict}\n" for conflict in one.conflicts))
    return EXIT_FAILED if any(one.conflicts for one in merged) else 0


def _data(arguments: list[str]) -> int:
    words, values = split_keys(arguments, DATA_KEYS)
    if not words:
        return _print(HELP["data"])
    verb, *names = words
    if verb not in DATA_VERBS:
        fail(f"data: unknown command {verb!r}.{nearest(verb, DATA_VERBS)}")
    if (verb == "info" and len(names) != 1) or (verb == "list" and names):
        expected = "one name" if verb == "info" else "no name"
        fail(f"data {verb}: expected {expected}, got {' '.join(names) or 'none'}.")
    from klr_bench.console import PlainConsole
    from klr_bench.datasets import catalog
    from klr_bench.datasets.cache import default_cache

    console, searched = PlainConsole(), config_files.folders()
    config_files.check_own(searched)
    cache = Path(values["data.cache"]) if "data.cache" in values else default_cache()
    mirror = values.get("data.mirror") or os.environ.get("KLR_BENCH_MIRROR") or None
    if verb == "list":
        return catalog.list_(searched, cache, console)
    if verb == "fetch":
        return catalog.fetch_(names, searched, cache, mirror, console)
    if verb == "verify":
        return catalog.verify_(names, searched, cache, console)
    return catalog.info(names[0], searched, cache, console)


def _list(arguments: list[str]) -> int:
    searched = config_files.folders()
    for kind in [_kind(argument) for argument in arguments] or KINDS:
        rows = []
        for name in config_files.names(kind, searched):
            content = config_files.read(config_files.find(kind, name, searched))
            about = content.get("title") or content.get("reference")
            rows.append([name, str(content.get("label") or ""), str(about or "")])
        widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
        _print(f"{kind}s\n")
        for row in rows:
            cells = [f"{cell:{width}}" for cell, width in zip(row, widths, strict=True) if width]
            _print(f"  {'  '.join(cells).rstrip()}\n")
    return 0


def _kind(word: str) -> str:
    if word.removesuffix("s") not in KINDS:
        fail(f"unknown kind {word!r}.{nearest(word, KINDS)}")
    return word.removesuffix("s")


def _show(arguments: list[str]) -> int:
    if len(arguments) != 2:
        got = " ".join(arguments) or "none"
        fail(f"show: expected a kind and a name, as in klr-bench show algorithm oskl, got {got}.")
    path = config_files.find(_kind(arguments[0]), arguments[1], config_files.folders())
    return _print(f"# {path}\n{path.read_text(encoding='utf-8', errors='backslashreplace')}")


def _completion(arguments: list[str]) -> int:
    from klr_bench.cli import completion

    if len(arguments) == 3 and arguments[0] == "--words" and arguments[2].isdecimal():
        return _print("".join(f"{word}\n" for word in completion.complete(arguments[1], int(arguments[2][:9]))))
    if len(arguments) != 1 or arguments[0] not in completion.SCRIPTS:
        fail(f"completion: expected bash, zsh or fish, got {' '.join(arguments) or 'none'!r}.")
    return _print(completion.SCRIPTS[arguments[0]])
