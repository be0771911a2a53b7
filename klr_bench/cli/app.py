"""``klr-bench run``: the Hydra application around the runner, and its errors in one sentence each."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import hydra
import hydra._internal.hydra as composing
import yaml
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from klr_bench.cli import EXIT_BAD_INPUT, EXIT_BROKEN_PIPE, EXIT_FAILED
from klr_bench.cli.environment import environment_message
from klr_bench.cli.guard import GuardedLoader, check_arguments, unchecked_help
from klr_bench.cli.overrides import OWN_KEYS, fixed_keys, name_of_job, prepare
from klr_bench.errors import KlrBenchError, StoppedError, memory_limit, nearest, shown
from klr_bench.experiment.config import files as config_files
from klr_bench.experiment.config.compose import OPEN, validate
from klr_bench.experiment.config.models import all_keys
from klr_bench.printing import error_message, printable

BAD_INPUT = (
    *(KlrBenchError, HydraException, OmegaConfBaseException, yaml.YAMLError),
    *(ImportError, OSError, ValueError, RecursionError, MemoryError),
)
"""What a user's input can end in; anything else is a defect of ours and keeps its traceback."""


class OwnConfigs(SearchPathPlugin):
    """Append ``./configs`` of the current folder to Hydra's search path."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for folder in config_files.folders()[1:]:
            search_path.append("klr-bench", f"file://{folder}")


@dataclass
class Task:
    """What Hydra calls once a job.  It never raises SystemExit, which would drop the jobs behind it."""

    quiet: bool
    dry_run: bool
    debug: bool
    watch: bool = False
    port: int = 0
    """That of the page of the job before, 0 where there was none: a sweep is watched at one address."""
    paper: str = ""
    """The paper whose experiments are the jobs, or nothing."""
    fixed: frozenset[str] = frozenset()
    """The keys of the command line that are the same for all jobs of a sweep."""
    process: int = field(default_factory=os.getpid)
    running: bool = False
    statuses: list[int] = field(default_factory=list)
    places: dict[Path, list[str]] = field(default_factory=dict)
    """The results folders of the jobs so far, and the overrides of each."""
    results_dir: str = ""
    """Where the experiments of the paper have their results, once one of them has run."""

    def __call__(self, cfg: DictConfig) -> float | None:
        """Run a job; return its score, for a sweeper that looks for the best, None where it has none."""
        from klr_bench.console import PlainConsole
        from klr_bench.estimators.core import jit
        from klr_bench.experiment import runner
        from klr_bench.report.figures import check_names

        self.running = True
        job = HydraConfig.get()
        console = PlainConsole(soft_wrap=not sys.stdout.isatty())  # a log is not cut at 80 columns
        score = None
        try:
            if jit.is_cold() and not self.quiet:
                console.print("Compiling the solvers, once for this version: a few seconds.")
            if jit.refused:
                places = " or ".join(jit.refused)
                console.print(f"{places} cannot be written: compiled code is kept for this run only.")
            sources = [Path(source.path) for source in job.runtime.config_sources if source.schema == "file"]
            if job.mode == RunMode.MULTIRUN and cfg.name is not None:
                cfg.name = name_of_job(str(cfg.name), job.overrides.task, self.fixed)
            config = validate(cfg, job.overrides.task, sources)
            check_names(config.figures or ())
            place = Path(config.results_dir) / config.name
            self._take(place, list(job.overrides.task))
            with self._watched(place):
                outcome = runner.run(
                    config, console=console, quiet=self.quiet, dry_run=self.dry_run, overrides=job.overrides.task
                )
        except BrokenPipeError:
            self.running = False
            raise SystemExit(EXIT_BROKEN_PIPE) from None  # Hydra would print a message about any Exception
        except BAD_INPUT as error:
            # In a launcher's worker process our statuses are a copy: there Hydra carries the error home.
            if os.getpid() != self.process:
                raise
            which = f"{' '.join(job.overrides.task)}: " if job.mode == RunMode.MULTIRUN else ""
            complain(f"{which}{explain(error)}", debug=self.debug)
            self.statuses.append(EXIT_FAILED if isinstance(error, StoppedError) else EXIT_BAD_INPUT)
        else:
            self.statuses.append(EXIT_FAILED if outcome.n_failed else 0)
            score = outcome.score
            if self.paper and config.name == config.experiment:
                self.results_dir = config.results_dir
            else:
                self.say_next(f"experiment={config.name}", config.results_dir)
        self.running = False
        return score

    def say_next(self, report: str, results_dir: str) -> None:
        """Name the command that reports what has run."""
        if not (self.quiet or self.dry_run):
            place = "" if results_dir == "results" else f" results_dir={shlex.quote(results_dir)}"
            sys.stdout.write(printable(f"Next: klr-bench report {report}{place}\n"))

    @contextmanager
    def _watched(self, place: Path) -> Iterator[None]:
        """Serve the page of a job while it runs, if that was asked for; a launcher's worker process serves none."""
        if not self.watch or self.dry_run or os.getpid() != self.process:
            yield
            return
        from klr_bench.cli.watch import watching

        with watching(place, self.port) as self.port:
            yield

    def _take(self, place: Path, overrides: list[str]) -> None:
        """Refuse a results folder that another job of the same sweep has filled; a sweeper may repeat a job."""
        if self.places.setdefault(place, overrides) != overrides:
            message = (
                f"{place}: an earlier run of this sweep has its results there; one table would hold both. Leave name= "
                "out, so that each run gets a name of its own."
            )
            raise KlrBenchError(message)


def run(arguments: Sequence[str], *, debug: bool) -> int:
    """Run the Hydra application on these arguments and return the exit status."""
    task = Task(quiet=False, dry_run=False, debug=debug)
    try:
        return _run(arguments, task)
    except BrokenPipeError:
        raise
    except BAD_INPUT as error:
        complain(explain(error), debug=debug)
    except Exception as error:
        if task.running:
            raise
        complain(f"Hydra cannot read this command line ({type(error).__name__}: {shown(error)}).", debug=debug)
    return EXIT_BAD_INPUT


def _run(arguments: Sequence[str], task: Task) -> int:
    prepared = prepare(arguments)
    task.quiet, task.dry_run, task.watch = prepared.quiet, prepared.dry_run, prepared.watch
    task.paper = prepared.paper
    task.fixed = fixed_keys(prepared.hydra)
    try:
        check_arguments(prepared.hydra)
    except SystemExit:  # --version
        return 0
    config_files.check_own([*config_files.folders(), *_config_dirs(prepared.hydra)])
    application = hydra.main(str(config_files.config_dir()), "config", version_base="1.3")(task)
    Plugins.instance().register(OwnConfigs)  # imports the plugins that are installed
    _find_own_modules()
    composing.ConfigLoaderImpl = GuardedLoader  # type: ignore[attr-defined]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # let exceptions through instead of printing them and leaving with 1
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", category=UserWarning, module="hydra")
        if prepared.dry_run:  # the folders of a run and of a sweep are all that Hydra itself would write
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            prepared.hydra.extend([f"hydra.sweep.dir={folder}", f"hydra.run.dir={folder}"])
        sys.argv = ["klr-bench run", *prepared.hydra]
        stack.enter_context(unchecked_help())
        try:
            application()
        except SystemExit as leaving:  # after --help, --info and the like, from argparse, or for a closed pipe
            if task.running:
                complain(
                    "a module or class of this run raised SystemExit. Take the call of exit out of it.", debug=False
                )
            if leaving.code == EXIT_BROKEN_PIPE and not task.running:
                return EXIT_BROKEN_PIPE
            return EXIT_BAD_INPUT if leaving.code or task.running else 0
    if task.results_dir:
        task.say_next(f"paper={task.paper}", task.results_dir)
    return max(task.statuses, default=0)


def _config_dirs(arguments: Sequence[str]) -> list[Path]:
    """Return the folders that ``--config-dir`` names; Hydra composes their files, too."""
    flag = "--config-dir"
    behind = [following for argument, following in pairwise(arguments) if argument in (flag, "-cd")]
    joined = [argument.partition("=")[2] for argument in arguments if argument.startswith(f"{flag}=")]
    return [Path(folder) for folder in (*behind, *joined)]


def _find_own_modules() -> None:
    """Let a learner be a file beside ./configs; worker processes get the same path.

    The current folder comes last, and after Hydra has looked for its plugins, which it would import from there.
    """
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)


def complain(message: str, *, debug: bool) -> None:
    """Write one message on stderr; with `debug` the traceback of the exception in hand before it."""
    if debug:
        traceback.print_exc()
    sys.stderr.write(error_message(message))


def explain(error: BaseException) -> str:
    """Return what happened and what to do about it, for an exception of Hydra, OmegaConf or ours."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, name = error.missing_cfg_file.rpartition("/")
        if group:
            known = error.options or config_files.names(group, config_files.folders())
            return f"unknown {group} {name!r}.{nearest(name, known)}"
    if isinstance(error, OverrideParseException):
        if "=" not in error.override:
            return _explain_bare_word(error.override)
        reason = shown(error.message.splitlines()[0].partition(":")[0])
        return f"cannot read {shown(error.override)!r} ({reason}). Quote special characters: key=\"'value'\""
    if isinstance(error, RecursionError):
        return (
            "the configuration is nested too deeply: expected files that end, got an entry of `defaults` that leads "
            "back to its own file, or an alias (*name) inside itself. Take it out of your YAML file."
        )
    text = str(error) or str(error.__cause__ or type(error).__name__)
    if isinstance(error, HydraException):
        return _explain_composition(text)
    if isinstance(error, OSError | MemoryError):
        return environment_message(error)
    if isinstance(error, ImportError):
        return f"{text}.{memory_limit()}" if memory_limit() else text
    if isinstance(error, OmegaConfBaseException) and error.full_key:
        return f"{error.full_key}: {text.splitlines()[0]}"
    return text.strip()


def _explain_bare_word(word: str) -> str:
    searched = config_files.folders()
    groups = [group for group in config_files.GROUPS if word in config_files.names(group, searched)]
    meant = f"{groups[0]}={word}" if groups else ""
    if not groups and Path(word).is_file():
        meant = f"experiment=own_file data.path={shown(word)}"
    return f"expected key=value, got {shown(word)!r}.{f' Did you mean {meant}?' if meant else ''}"


def _explain_composition(text: str) -> str:
    unknown = re.match(r"Could not (?:override|delete from config\.|delete) '([^'=]*)", text)
    if unknown:
        return _explain_key(unknown[1])
    if text.startswith("Config group override must be"):
        return "expected a name of configs/<group>, as in dataset=moons, got a number or nothing. See klr-bench list."
    ambiguous = re.match(r"Ambiguous value for argument '(.*)'", text)
    if ambiguous:
        key, _, value = ambiguous[1].partition("=")
        listed = f"write {key}=[{value}] for a list, or " if key in ("dataset", "algorithm") else ""
        return f"{key} got several values: {listed}add -m to run once with each."
    return text.strip()


def _explain_key(key: str) -> str:
    """Say that a key is unknown and which one may be meant, or that it cannot be taken out."""
    known = [*all_keys(), *config_files.GROUPS, *OWN_KEYS]
    if key in known:
        return f"~{key}: this key cannot be taken out. Give it another value: {key}=..., or {key}=null where it may be."
    return f"unknown key {shown(key)!r}.{_near(shown(key), known)}"


def _near(key: str, known: Sequence[str]) -> str:
    """Return the key that is meant, or all there are: of its section, of one with a similar name, or at the top."""
    section, dot, rest = key.partition(".")
    sections = {*OPEN, *(name.partition(".")[0] for name in known if "." in name)}
    close = difflib.get_close_matches(section.lower(), sections, n=1) if dot else []
    inner = [name for name in known if name.endswith(f".{key}")]
    if inner:
        return nearest(inner[0], inner)
    if not close:
        return nearest(key.lower(), {*sections, *(name for name in known if "." not in name)})
    inside = [name.removeprefix(f"{close[0]}.") for name in known if name.startswith(f"{close[0]}.")]
    meant = difflib.get_close_matches(rest.partition(".")[0], inside, n=1) if inside else [rest]
    return (
        f" Did you mean '{close[0]}.{meant[0]}'?" if meant else f" Known: {close[0]}.{f', {close[0]}.'.join(inside)}."
    )
