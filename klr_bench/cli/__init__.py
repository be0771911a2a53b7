"""Command line of klr-bench: runs the requested command and reports its errors.

Libraries are imported only by the commands that need them, so that help is fast.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path

from klr_bench.cli.arguments import split_keys
from klr_bench.cli.listing import LISTED, SHOWN, file_text, listing
from klr_bench.config import locations as config_files
from klr_bench.errors import KlrBenchError, environment_message, fail, nearest
from klr_bench.printing import error_message, printable

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

HELP = {
    "run": """\
klr-bench run [key=value ...]    run an experiment, or continue it
    klr-bench run                         run the quickstart (about a minute)
    klr-bench run experiment=oskl_magic repeats=1
    klr-bench run dataset=file data.path=mine.csv 'algorithm=[nc,oskl]'
    Keys:
      experiment   a name; klr-bench list experiments
      paper        run all experiments of a paper; klr-bench list papers
      dataset, algorithm    a name, or a list in quotes: 'dataset=[magic,adult]'
      algorithms.NAME.estimator.PARAMETER    a parameter of an algorithm, as in
                   algorithms.oskl.estimator.delta=0.2
      data.path    your own CSV file; data.label: its label column
      data.mirror  a folder or address with copies of the data sets
      name, results_dir    results are written to results_dir/name
      repeats, seed    the number of repeats; the seed of the splits
      metrics      columns of the table, in quotes: 'metrics=[accuracy,auc]'
      n_jobs       the number of processes; default: one per core
      shard        K/N: run only the K-th of N parts of the cells
      force        true: also compute finished cells again
      watch        true: show the progress on a web page
    Flags: -m (key=a,b: one run with each value), --dry-run (count what would
    run; with --verbose, list it), --quiet (no progress), --debug (tracebacks,
    also of failed fits), --pdb (no worker processes; open the debugger where
    a fit fails).
    All keys with their values: klr-bench run experiment=oskl_magic --cfg job
    Flags of Hydra: klr-bench run --hydra-help
""",
    "fit": """\
klr-bench fit data.path=FILE output=FILE    fit a classifier to a CSV file, and store it
    klr-bench fit data.path=train.csv output=model.skops
    klr-bench fit data.path=train.csv algorithm=oskl_default output=oskl.skops
    Keys:
      data.path    the CSV file
      data.label   name or position of the label column; default: the last one
      data.positive, data.columns, data.coerce, data.decimal, data.scale,
      data.encoding    as in klr-bench run
      data.group   a column, such as a patient: validation rows are of other
                   groups; data.time: validation rows are later
      output       the stored model
      algorithm    default: klr; its parameters are set by, for example,
                   algorithms.klr.estimator.max_support=500
      seed         default: 0
""",
    "check": """\
klr-bench check ALGORITHM    try an algorithm of your own before an experiment
    klr-bench check nearest_mean
    klr-bench check nearest_mean algorithms.nearest_mean.estimator.shrinkage=0.5
    It is fitted to a few rows as in a run: two and three classes, sparse rows,
    chunks, with a callback.  Each line begins with ok, failed, or no for an
    optional part that it does not have.  Exit status: 1 if a check failed.
""",
    "predict": """\
klr-bench predict model=FILE data.path=FILE output=FILE    predict with a stored model
    klr-bench predict model=model.skops data.path=new.csv output=new_classes.csv
    Columns are found by name; a label column is not needed.  The output has the
    predicted class of each row, and the probability of each class.  It is
    compressed if its name ends in .csv.gz, .csv.bz2, .csv.xz or .csv.zip.
    keep=id,name copies columns of the file in front of the predictions.
    data.encoding is the encoding of the file; default: UTF-8
""",
    "report": """\
klr-bench report experiment=NAME    print tables and draw figures of results
    klr-bench report experiment=oskl_magic
    klr-bench report experiment=oskl_magic,oskl_adult format=terminal,md,csv
    klr-bench report experiment=oskl_magic compare=mine    compare two runs
    klr-bench report paper=zhang2013icml    a paper, with verdicts on numbers
    klr-bench report experiment=oskl_magic format=html open=true
    klr-bench report experiment=oskl_magic format=tex label=tab:magic
    Keys:
      experiment   one or several names
      paper        a paper, or all; table: one of its tables
      compare      the other run: a name, or the path of its folder
      over         settings of a sweep, as in over=seed: its runs in one table
      results_dir  X, or X,Y: compare the same experiment in two folders, or
                   archives (.zip) that klr-bench merge has written
      format       terminal, md, tex, csv, pdf (figures) or html (one page)
      output       a folder, or the file of a page; open=true shows the page
      columns      metrics of the table; klr-bench list metrics
      statistics   true: compare all pairs of rows, with intervals and p-values
      own_figures  true: run your own files in ./configs/figure
      caption, label, note (a line below the table), orientation (column, page
                   or landscape): of the LaTeX table
""",
    "site": """\
klr-bench site output=FOLDER    write a static site of all papers and experiments
    klr-bench site output=site results_dir=results/reference
    Keys: output, results_dir, open (true: show it in a browser).
""",
    "watch": """\
klr-bench watch experiment=NAME    show the progress of a run on a web page
    klr-bench watch experiment=oskl_magic open=true    until Ctrl-C
    klr-bench run experiment=oskl_magic watch=true     start a run and watch it
    Keys: experiment, results_dir, port (0: any free port), host (127.0.0.1:
    only this machine; 0.0.0.0: everyone who can reach it), open (true: show
    it in a browser).
""",
    "merge": """\
klr-bench merge RESULTS... into=NAME    join results folders, or write one file
    klr-bench merge site1/results site2/results into=results
    klr-bench merge results into=all.csv    the records of all runs in one table
    klr-bench merge results/oskl_magic into=magic.zip    an archive of a run
    RESULTS is a results folder, or the folder of a run.
    Keys:
      into         a folder: join, for example, the four runs with shard=1/4 to
                   4/4; .csv, .csv.gz or .parquet: a table; .zip: an archive
                   of records, manifest and report, which report reads with
                   results_dir=magic.zip
""",
    "data": """\
klr-bench data list|fetch|verify|info [NAME]    list, fetch and check data sets
    klr-bench data list
    klr-bench data fetch magic adult data.mirror=/mnt/data
    klr-bench data verify
    Keys: data.mirror, data.cache.
""",
    "list": f"""\
klr-bench list [KIND]    list experiments, data sets, algorithms, papers, ...
    klr-bench list
    klr-bench list algorithms
    KIND: {", ".join(f"{kind}s" for kind in LISTED)}.
""",
    "show": f"""\
klr-bench show KIND NAME    print the YAML file of an experiment, algorithm, ...
    klr-bench show experiment oskl_magic
    klr-bench show paper zhang2013icml
    KIND: {", ".join(SHOWN)}.
""",
    "completion": """\
klr-bench completion bash|zsh|fish    print a script for completion with Tab
    eval "$(klr-bench completion bash)"
    eval "$(klr-bench completion zsh)"
    klr-bench completion fish | source
""",
}
"""Help on each command: how it is used and, after two spaces or more, what it does; then examples and keys."""
INTRODUCTION = """\
klr-bench reruns published comparisons of sparse kernel logistic regression.

usage: klr-bench COMMAND [key=value ...]
"""
CLOSING = """\
examples:
    klr-bench run                                 (quickstart, about a minute)
    klr-bench run experiment=oskl_magic repeats=1
    klr-bench report experiment=oskl_magic

klr-bench COMMAND --help shows its keys and more examples.
Exit status: 0 success, 1 failed cells, 2 invalid input, 130 interrupted.
"""
MODULES = {
    "check": "check",
    "fit": "model",
    "merge": "merge",
    "predict": "model",
    "report": "report",
    "site": "report",
    "watch": "watch",
}
"""Modules in klr_bench/cli that implement commands, keyed by command."""
DATA_VERBS = ("list", "fetch", "verify", "info")
DATA_KEYS = ("data.mirror", "data.cache")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in `arguments` (default: sys.argv) and return its exit status."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    _open_streams()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # not every encoding can represent all characters
    try:
        status = _dispatch([argument for argument in arguments if argument != "--debug"], debug=debug)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe
        status = EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        _write_error("interrupted\n")
        status = EXIT_INTERRUPTED
    except (KlrBenchError, OSError, ValueError, RecursionError, MemoryError) as error:
        complain(environment_message(error), debug=debug)
        status = EXIT_BAD_INPUT
    _discard_output()
    return status


def _open_streams() -> None:
    """Connect closed standard streams, as those of a daemon, to the null device."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode)  # noqa: SIM115
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def _discard_output() -> None:
    """Discard output that cannot be written, so that Python does not try again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def complain(message: str, *, debug: bool) -> None:
    """Write an error message to standard error, after a traceback if `debug` is True."""
    _write_error((traceback.format_exc() if debug else "") + error_message(message))


def _write_error(text: str) -> None:
    with suppress(OSError):  # nobody reads it
        sys.stderr.write(text)


def _dispatch(arguments: list[str], *, debug: bool) -> int:
    verb, *rest = arguments or ["--help"]
    if verb in ("--help", "-h", "help"):
        return _print(_overview())
    if verb in ("--version", "-V"):
        from klr_bench import __version__

        return _print(f"klr-bench {__version__}\n")
    if verb not in HELP:
        fail(f"unknown command {verb!r}.{nearest(verb, HELP)} Run `klr-bench --help` to list all commands.")
    if "--help" in rest or "-h" in rest:
        return _print(_help(verb))
    if verb == "run":
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
        from klr_bench.cli.app import run

        return run(rest, debug=debug)
    if verb in MODULES:
        return int(getattr(import_module(f"klr_bench.cli.{MODULES[verb]}"), verb)(rest))
    commands: dict[str, Callable[[list[str]], int]] = {
        "data": _data,
        "list": lambda words: _print(listing(words)),
        "show": lambda words: _print(file_text(words)),
        "completion": _completion,
    }
    return commands[verb](rest)


def _overview() -> str:
    """Return one line per command, and three examples."""
    summaries = ((verb, HELP[verb].splitlines()[0].split("  ", 1)[1].strip()) for verb in HELP)
    return "\n".join([INTRODUCTION, *(f"    {verb:12}{summary}" for verb, summary in summaries), "", CLOSING])


def _help(verb: str) -> str:
    """Return the help on one command."""
    usage, rest = HELP[verb].split("  ", 1)
    return f"usage: {usage}\n\n    {rest.lstrip()}"


def _print(text: str) -> int:
    sys.stdout.write(printable(text))
    return 0


def _data(arguments: list[str]) -> int:
    words, values = split_keys(arguments, DATA_KEYS)
    if not words:
        return _print(_help("data"))
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
        return catalog.verify_(names, searched, cache, console, mirror)
    return catalog.info(names[0], searched, cache, console, mirror)


def _completion(arguments: list[str]) -> int:
    from klr_bench.cli import completion

    if len(arguments) == 3 and arguments[0] == "--words" and arguments[2].isdecimal():
        return _print("".join(f"{word}\n" for word in completion.complete(arguments[1], int(arguments[2][:9]))))
    if len(arguments) != 1 or arguments[0] not in completion.SCRIPTS:
        fail(f"completion: expected bash, zsh or fish, got {' '.join(arguments) or 'none'!r}.")
    return _print(completion.SCRIPTS[arguments[0]])
