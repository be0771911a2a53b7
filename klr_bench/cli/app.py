"""Command ``klr-bench run``: a Hydra application that reports errors as short messages."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import sys
import tempfile
import warnings
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from unittest.mock import patch

import hydra
import yaml
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from klr_bench.cli import EXIT_BAD_INPUT, EXIT_BROKEN_PIPE, EXIT_FAILED, complain
from klr_bench.cli.arguments import OWN_KEYS, Arguments, config_dirs, fixed_keys, name_of_job, prepare, varied
from klr_bench.config import locations as config_files
from klr_bench.config.models import all_keys
from klr_bench.config.resolve import OPEN, validate
from klr_bench.errors import (
    KlrBenchError,
    StoppedError,
    UnavailableError,
    environment_message,
    fail,
    memory_limit,
    nearest,
    sanitize,
)
from klr_bench.files import expanded
from klr_bench.instantiate import import_from_here
from klr_bench.printing import print_line, printable

if TYPE_CHECKING:
    from klr_bench.runner.estimate import Estimate

BAD_INPUT = (
    *(KlrBenchError, HydraException, OmegaConfBaseException, yaml.YAMLError),
    *(ImportError, OSError, ValueError, RecursionError, MemoryError),
)
"""Exceptions caused by user input; any other exception is a bug and keeps its traceback."""
LIST_KEYS = ("dataset", "algorithm", "budget", "figures", "metrics")


class OwnConfigs(SearchPathPlugin):
    """Hydra plugin that adds the user's folder ``./configs`` to the search path."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for folder in config_files.folders()[1:]:
            search_path.append("klr-bench", f"file://{folder}")


@dataclass
class Jobs:
    """Callable object that Hydra calls to run each job with its configuration.

    It never raises SystemExit, which would cancel the remaining jobs.
    """

    arguments: Arguments
    debug: bool
    fixed: frozenset[str]
    """Command-line keys with the same value in all jobs of a sweep."""
    port: int = 0
    """Port of the previous job's page, reused so that a sweep has one address; 0 for any."""
    process: int = field(default_factory=os.getpid)
    running: bool = False
    statuses: list[int] = field(default_factory=list)
    mark: Path | None = None
    """File that is created if a job has failed cells."""
    places: dict[Path, list[str]] = field(default_factory=dict)
    """Overrides of earlier jobs, keyed by results folder."""
    results_dir: str = ""
    """Results folder of the paper's experiments, set after the first of them."""
    sweeps: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Number of runs per name without the swept values, results folder and swept keys."""
    times_left: dict[str, Estimate | None] = field(default_factory=dict)
    """Estimated times of the runs of a dry run, keyed by name."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Experiments of a paper that were left out, with the reason why their data are unavailable."""

    def __call__(self, cfg: DictConfig) -> float | None:
        """Run one job and return its score, or None if the job failed or has no score."""
        self.running = True
        job = HydraConfig.get()
        overrides = [str(word) for word in OmegaConf.to_container(job.overrides.task) or ()]  # not interpolated
        multirun = job.mode == RunMode.MULTIRUN
        score = None
        try:
            score, status = self._run(cfg, overrides, multirun=multirun)
            self.statuses.append(status)
            if status and self.mark is not None:
                self.mark.touch()  # `statuses` is a copy in a worker process of a Hydra launcher
        except BrokenPipeError:
            self.running = False
            raise SystemExit(EXIT_BROKEN_PIPE) from None  # other exceptions would be printed by Hydra
        except BAD_INPUT as error:
            # In a worker process of a Hydra launcher, `statuses` is a copy, so Hydra must pass the error to the parent.
            if os.getpid() != self.process:
                raise
            complain(f"{' '.join(overrides)}: {explain(error)}" if multirun else explain(error), debug=self.debug)
            is_left_out = bool(self.arguments.paper) and isinstance(error, UnavailableError)
            if is_left_out:
                self.left_out[str(cfg.name)] = str(error).partition(" Tried:")[0]
            self.statuses.append(EXIT_FAILED if is_left_out or isinstance(error, StoppedError) else EXIT_BAD_INPUT)
        self.running = False
        return score

    def _run(self, cfg: DictConfig, overrides: list[str], *, multirun: bool) -> tuple[float | None, int]:
        from klr_bench import runner
        from klr_bench.cli.watch import watching
        from klr_bench.console import PlainConsole
        from klr_bench.estimators.core import jit
        from klr_bench.report.figures import check_names

        quiet, dry_run = self.arguments.quiet, self.arguments.dry_run
        console = PlainConsole(soft_wrap=not sys.stdout.isatty())  # lines are not wrapped in a log file
        if jit.is_cold() and not quiet:
            console.print("Compiling the solvers, once per version of klr-bench; this takes a few seconds.")
        if jit.refused:
            console.print(f"{' or '.join(jit.refused)} cannot be written, so compiled code is kept only for this run.")
        sources = [Path(source.path) for source in HydraConfig.get().runtime.config_sources if source.schema == "file"]
        keys = ",".join(key for key, _ in varied(overrides, self.fixed)) if multirun else ""
        sweep = (str(cfg.name), str(cfg.results_dir), keys)
        if multirun and cfg.name is not None:
            cfg.name = name_of_job(str(cfg.name), overrides, self.fixed)
        config = validate(cfg, overrides, sources)
        check_names(config.figures or ())
        place = Path(config.results_dir) / config.name
        if self.places.setdefault(place, overrides) != overrides:  # a sweeper may repeat a job
            fail(f"{place}: an earlier run of this sweep already uses this folder. Omit name= to use a new one.")
        executor = None
        if self.arguments.pdb:
            from klr_bench.runner.executors._debugger import Debugger

            executor = Debugger()
        with ExitStack() as stack:
            if self.arguments.watch and not dry_run and os.getpid() == self.process:
                self.port = stack.enter_context(watching(place, self.port))
            outcome = runner.run(
                config,
                console=console,
                quiet=quiet,
                dry_run=dry_run,
                verbose=self.arguments.verbose,
                debug=self.debug,
                executor=executor,
                overrides=overrides,
            )
        if dry_run:
            self.times_left[config.name] = outcome.time_left
        if keys:
            self.sweeps[sweep] += 1
        if self.arguments.paper and config.name == config.experiment:
            self.results_dir = config.results_dir
        else:
            self.print_next(f"experiment={config.name}", config.results_dir)
        return outcome.score, EXIT_FAILED if outcome.n_failed else 0

    def print_next(self, report: str, results_dir: str) -> None:
        """Print the ``klr-bench report`` command that shows the results."""
        if not (self.arguments.quiet or self.arguments.dry_run):
            place = "" if results_dir == "results" else f" results_dir={shlex.quote(results_dir)}"
            print_line(f"Next: klr-bench report {report}{place}")

    def print_sweeps(self) -> None:
        """Print the ``klr-bench report`` commands that show all runs of a sweep in one table."""
        for (name, results_dir, keys), count in self.sweeps.items():
            if count > 1:
                self.print_next(f"experiment={name} over={keys}", results_dir)

    def print_time_left(self) -> None:
        """Print the total estimated time of several dry runs."""
        estimates = [estimate for estimate in self.times_left.values() if estimate]
        if len(self.times_left) > 1 and estimates:
            unknown = [name for name, estimate in self.times_left.items() if not estimate]
            rest = f", without {', '.join(unknown)}" if unknown else ""
            hours = sum(estimate.seconds for estimate in estimates) / 3600
            total = f"{len(estimates)} runs: about {hours:.2g} h on {estimates[0].cores} cores{rest}"
            print_line(total)

    def print_left_out(self) -> None:
        """Print the experiments of a paper that were left out, with the reasons."""
        lines = [f"  {name}: {reason}" for name, reason in self.left_out.items()]
        sys.stderr.write("".join(f"{printable(line)}\n" for line in ["Left out:", *lines] if lines))


def run(arguments: Sequence[str], *, debug: bool) -> int:
    """Run ``klr-bench run`` with the given arguments and return its exit status."""
    jobs: Jobs | None = None
    try:
        prepared = prepare(arguments)
        jobs = Jobs(prepared, debug, fixed_keys(prepared.hydra))
        return _run(jobs)
    except BrokenPipeError:
        raise
    except BAD_INPUT as error:
        raise KlrBenchError(explain(error)) from error
    except Exception as error:
        if jobs and jobs.running:
            raise
        message = f"Hydra cannot read this command line ({type(error).__name__}: {sanitize(error)})."
        raise KlrBenchError(message) from error


def _run(jobs: Jobs) -> int:
    words = jobs.arguments.hydra
    config_files.check_own([*config_files.folders(), *config_dirs(words)])
    application = hydra.main(str(config_files.config_dir()), "config", version_base="1.3")(jobs)
    Plugins.instance().register(OwnConfigs)  # instance() imports all installed plugins of Hydra
    import_from_here()
    OmegaConf.register_new_resolver("expanded", lambda path: str(expanded(str(path))), replace=True)
    os.environ["HYDRA_FULL_ERROR"] = "1"  # makes Hydra raise exceptions; by default it prints them and exits
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", category=UserWarning, module="hydra")
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        jobs.mark = Path(folder) / "failed"
        if jobs.arguments.dry_run:  # let Hydra create its output folders in a temporary folder
            words = [*words, f"hydra.sweep.dir={folder}", f"hydra.run.dir={folder}"]
        sys.argv = ["klr-bench run", *words]
        # Python 3.14 checks help strings; this is disabled because Hydra has an invalid one (Hydra issue 3121).
        stack.enter_context(patch.object(ArgumentParser, "error", _refuse_flag))
        stack.enter_context(patch.object(ArgumentParser, "_check_help", lambda *_: None, create=True))
        try:
            application()
        except SystemExit as leaving:  # raised by Hydra after --hydra-help, for example
            return leaving.code if leaving.code in (0, EXIT_BROKEN_PIPE) else EXIT_BAD_INPUT
        jobs.statuses += [EXIT_FAILED] * jobs.mark.exists()
    if jobs.results_dir:
        jobs.print_next(f"paper={jobs.arguments.paper}", jobs.results_dir)
    jobs.print_sweeps()
    jobs.print_time_left()
    jobs.print_left_out()
    return max(jobs.statuses, default=0)


def _refuse_flag(parser: ArgumentParser, message: str) -> NoReturn:
    fail(f"{message}. See: klr-bench run --help")


def explain(error: BaseException) -> str:
    """Return a message that explains an exception raised by Hydra, OmegaConf or klr-bench."""
    text = str(error) or str(error.__cause__ or type(error).__name__)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, name = error.missing_cfg_file.rpartition("/")
        if group:
            options = error.options or config_files.names(group, config_files.folders())
            return f"unknown {group} {name!r}.{nearest(name, options)}"
    if isinstance(error, OverrideParseException):
        if "=" not in error.override:
            return _explain_bare_word(error.override)
        reason = sanitize(error.message.splitlines()[0].partition(":")[0])
        return f"cannot read {sanitize(error.override)!r} ({reason}). Quote special characters: key=\"'value'\""
    if isinstance(error, RecursionError):
        return (
            "the configuration is nested too deeply: a `defaults` entry refers to its own file, or an alias "
            "(*name) contains itself. Remove it from your YAML file."
        )
    if isinstance(error, OSError | MemoryError):
        return environment_message(error)
    if isinstance(error, ImportError):
        return f"{text}.{memory_limit()}" if memory_limit() else text
    if isinstance(error, OmegaConfBaseException) and error.full_key:
        return f"{error.full_key}: {text.splitlines()[0]}"
    return _explain_composition(text).strip()


def _explain_bare_word(word: str) -> str:
    searched = config_files.folders()
    groups = [group for group in config_files.GROUPS if word in config_files.names(group, searched)]
    meant = f"{groups[0]}={word}" if groups else ""
    if not groups and Path(word).is_file():
        meant = f"experiment=own_file data.path={sanitize(word)}"
    return f"expected key=value, got {sanitize(word)!r}.{f' Did you mean {meant}?' if meant else ''}"


def _explain_composition(text: str) -> str:
    if text.startswith("Config group override must be"):
        return "expected a name from configs/<group>, as in dataset=moons, got a number or nothing. See: klr-bench list"
    if unknown := re.match(r"Could not (?:override|delete from config\.|delete) '([^'=]*)", text):
        key, keys = unknown[1], [*all_keys(), *config_files.GROUPS, *OWN_KEYS]
        if key in keys:
            return f"~{key}: this key cannot be removed. Give it another value: {key}=... (null for some keys)."
        return f"unknown key {sanitize(key)!r}.{_near(sanitize(key), keys)}"
    if ambiguous := re.match(r"Ambiguous value for argument '(.*)'", text):
        key, _, value = ambiguous[1].lstrip("+").partition("=")
        takes_list = key in LIST_KEYS or key.startswith(("algorithms.", "sweep."))
        listed = f"write '{key}=[{value}]' for a list, or " if takes_list else ""
        return f"{key} has several values: {listed}add -m to run once with each."
    return text


def _near(key: str, keys: Sequence[str]) -> str:
    """Return a hint for an unknown key: the closest known key, or all keys of its section."""
    section, dot, rest = key.lower().partition(".")
    sections = {*OPEN, *(name.partition(".")[0] for name in keys if "." in name)}
    inner = [name for name in keys if name.endswith(f".{key}")]
    close = difflib.get_close_matches(section, sections, n=1)
    if inner or not dot or not close:
        return nearest(
            inner[0] if inner else section, inner or {*sections, *(name for name in keys if "." not in name)}
        )
    inside = [name for name in keys if name.startswith(f"{close[0]}.")] or [f"{close[0]}.{rest}"]
    names = [name.partition(".")[2] for name in inside]
    meant = difflib.get_close_matches(rest, names, n=1)
    return nearest(f"{close[0]}.{meant[0]}" if meant else "", inside)
