"""``klr-bench run``: the Hydra application around the runner, and its errors in one sentence each."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import hydra
import yaml
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from klr_bench.cli.overrides import prepare
from klr_bench.errors import KlrBenchError, nearest
from klr_bench.experiment.config import files as config_files
from klr_bench.experiment.config.schema import all_keys
from klr_bench.experiment.config.validate import validate
from klr_bench.printing import error_message

BAD_INPUT = (
    *(KlrBenchError, HydraException, OmegaConfBaseException, yaml.YAMLError),
    *(ImportError, OSError, ValueError, RecursionError),
)
"""What a user's input can end in; anything else is a defect of ours and keeps its traceback."""

EXIT_FAILED, EXIT_BAD_INPUT = 1, 2


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
    process: int = field(default_factory=os.getpid)
    statuses: list[int] = field(default_factory=list)

    def __call__(self, cfg: DictConfig) -> None:
        from klr_bench.console import PlainConsole
        from klr_bench.estimators.core import jit
        from klr_bench.experiment import runner
        from klr_bench.report.figures import check_names

        job = HydraConfig.get()
        console = PlainConsole(soft_wrap=not sys.stdout.isatty())  # a log is not cut at 80 columns
        try:
            if jit.is_cold() and not self.quiet:
                console.print("Compiling the solvers, once for this version: a few seconds.")
            if jit.refused:
                places = " or ".join(jit.refused)
                console.print(f"{places} cannot be written: compiled code is kept for this run only.")
            sources = [Path(source.path) for source in job.runtime.config_sources if source.schema == "file"]
            config = validate(cfg, job.overrides.task, sources)
            check_names(config.figures or ())
            outcome = runner.run(config, console=console, quiet=self.quiet, dry_run=self.dry_run)
        except BrokenPipeError:
            raise
        except BAD_INPUT as error:
            # In a launcher's worker process our statuses are a copy: there Hydra carries the error home.
            if os.getpid() != self.process:
                raise
            place = f"{' '.join(job.overrides.task)}: " if job.mode == RunMode.MULTIRUN else ""
            complain(f"{place}{explain(error)}", debug=self.debug)
            self.statuses.append(EXIT_BAD_INPUT)
        else:
            self.statuses.append(EXIT_FAILED if outcome.n_failed else 0)


def run(arguments: Sequence[str], *, debug: bool) -> int:
    """Run the Hydra application on these arguments and return the exit status."""
    try:
        return _run(arguments, debug=debug)
    except BrokenPipeError:
        raise
    except BAD_INPUT as error:
        complain(explain(error), debug=debug)
        return EXIT_BAD_INPUT


def _run(arguments: Sequence[str], *, debug: bool) -> int:
    prepared = prepare(arguments)
    config_files.check_own(config_files.folders())
    task = Task(prepared.quiet, prepared.dry_run, debug)
    application = hydra.main(str(config_files.config_dir()), "config", version_base="1.3")(task)
    Plugins.instance().register(OwnConfigs)
    os.environ["HYDRA_FULL_ERROR"] = "1"  # let exceptions through instead of printing them and leaving with 1
    with ExitStack() as stack:
        if prepared.dry_run:  # the folder of a sweep is all that Hydra itself would write
            prepared.hydra.append(f"hydra.sweep.dir={stack.enter_context(tempfile.TemporaryDirectory())}")
        sys.argv = ["klr-bench run", *prepared.hydra]
        try:
            application()
        except SystemExit as leaving:  # after --help, --info and the like, or from argparse
            return leaving.code if isinstance(leaving.code, int) else 0
    return max(task.statuses, default=0)


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
        reason = error.message.splitlines()[0]
        return f"cannot read {error.override!r} ({reason}). Quote special characters: key=\"'value'\""
    if isinstance(error, RecursionError):
        return "the configuration is nested too deeply: an alias of YAML (*name) may contain itself. Write it out."
    text = str(error) or str(error.__cause__ or type(error).__name__)
    if isinstance(error, HydraException):
        return _explain_composition(text)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    if isinstance(error, OmegaConfBaseException) and error.full_key:
        return f"{error.full_key}: {text.splitlines()[0]}"
    return text.strip()


def _explain_bare_word(word: str) -> str:
    searched = config_files.folders()
    groups = [group for group in config_files.GROUPS if word in config_files.names(group, searched)]
    return f"expected key=value, got {word!r}.{f' Did you mean {groups[0]}={word}?' if groups else ''}"


def _explain_composition(text: str) -> str:
    unknown = re.match(r"Could not (?:override|delete from config\.|delete) '([^'=]*)", text)
    if unknown:
        return f"unknown key {unknown[1]!r}.{nearest(unknown[1], _known_keys(unknown[1]))}"
    ambiguous = re.match(r"Ambiguous value for argument '(.*)'", text)
    if ambiguous:
        key, _, value = ambiguous[1].partition("=")
        listed = f"write {key}=[{value}] for a list, or " if key in ("dataset", "algorithm") else ""
        return f"{key} got several values: {listed}add -m to run once with each."
    return text.strip()


def _known_keys(key: str) -> list[str]:
    """Return the keys that the user may have meant: those of the same section, else the top ones."""
    known = [*all_keys(), *config_files.GROUPS]
    same_section = [name for name in known if name.startswith(f"{key.partition('.')[0]}.")]
    return same_section or [name for name in known if "." not in name]
