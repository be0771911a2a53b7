"""What Hydra is never told to do: run code that the user has not named, log elsewhere, start a billion jobs.

Hydra itself would load a pickle (``--experimental-rerun``), call any function that stands under ``hydra.callbacks`` or
in its logging, and build the whole product of a sweep before its first job.
"""

from __future__ import annotations

import math
import re
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import get_args_parser
from hydra.core.config_store import ConfigNode, ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Glob, Override, RangeSweep, Sweep
from hydra.core.plugins import Plugins
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from klr_bench.errors import KlrBenchError, nearest, shown
from klr_bench.experiment.config import files as config_files
from klr_bench.experiment.config.files import GROUPS

MOST_JOBS = 10_000
ALLOWED = (
    *("hydra.run.dir", "hydra.sweep.dir", "hydra.sweep.subdir", "hydra.mode"),
    *("hydra/launcher", "hydra/sweeper", "hydra.launcher", "hydra.sweeper"),
)
"""Keys of Hydra that may be set, and those below them."""
SILENT: dict[str, Any] = {"version": 1, "root": None, "disable_existing_loggers": False}
FIXED: dict[str, Any] = {
    "callbacks": {},
    "job_logging": SILENT,
    "hydra_logging": SILENT,
    "searchpath": [],
    "output_subdir": None,
    "job.chdir": False,
    "job.env_set": {},
    "job.env_copy": [],
}
"""Keys of the section `hydra` that no YAML file may change, and their values."""
TARGET = "_target_"
ESSENTIAL = re.compile(r"(algorithms\.[^.]+\.estimator|datasets\.[^.]+\.source)(\._target_)?")
"""Keys without which an entry of a section is none."""
NO_STEM = re.compile(r"/|^\.*$|\.yaml$")


class GuardedLoader(ConfigLoaderImpl):
    """Hydra's loader of configurations: looks at the section `hydra` before Hydra follows it, and composes once.

    Hydra composes the configuration of a run twice: first to read `hydra.mode`, where it swallows what fails.
    """

    _first: tuple[list[str], DictConfig | Exception] | None = None
    """The overrides that the first composition was made of, and how it ended."""

    def load_configuration(
        self,
        config_name: str | None,
        overrides: list[str],
        run_mode: RunMode,
        from_shell: bool = True,
        validate_sweep_overrides: bool = True,
    ) -> DictConfig:
        """Compose a configuration; KlrBenchError where its section `hydra` would run code."""
        if validate_sweep_overrides:
            parsed = OverridesParser.create().parse_overrides(overrides)
            self.validate_sweep_overrides_legal(parsed, run_mode, from_shell)
        composed = self._composed_before(overrides, run_mode)
        if composed is None:
            try:
                composed = super().load_configuration(config_name, overrides, run_mode, from_shell, False)
                if config_name is not None:  # else that of Hydra's own help
                    check_hydra(composed.hydra)
            except Exception as error:
                composed = error
        if not validate_sweep_overrides:
            self._first = ([*overrides], composed)
        if isinstance(composed, Exception):
            raise composed
        return composed

    def _composed_before(self, overrides: Sequence[str], run_mode: RunMode) -> DictConfig | Exception | None:
        """Return the end of the first composition where all that Hydra has added since is the mode; at most once."""
        first, self._first = self._first, None
        mode = f"hydra.mode={run_mode.name}"
        if first is None or [*overrides] != [*first[0], mode]:
            return None
        composed = first[1]
        if not isinstance(composed, Exception):
            if OmegaConf.missing_keys(composed.hydra.runtime.choices):  # which only a sweep may choose
                return None
            composed.hydra.mode = run_mode
            composed.hydra.overrides.hydra.append(mode)
        return composed


def check_hydra(section: DictConfig) -> None:
    """Refuse a composed section `hydra` that calls something, or that says where to log and to work."""
    for key, expected in FIXED.items():
        value = OmegaConf.select(section, key, default=None)
        plain = OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
        if plain != expected and (plain or expected):
            message = f"hydra.{key}: this setting of Hydra is not used by klr-bench; leave it out of your YAML file."
            raise KlrBenchError(message)
    plugins = Plugins.instance().class_name_to_class
    for kind in ("launcher", "sweeper"):
        content = section[kind]
        if OmegaConf.is_config(content):
            content = OmegaConf.to_container(content, resolve=True)
        target = content.pop(TARGET, None) if isinstance(content, dict) else content
        known = [*_targets(ConfigStore.instance().repo["hydra"][kind])]  # what the installed plugins name themselves
        unknown = [inner for inner in _targets(content) if inner not in known]
        if target not in plugins or unknown:
            got = target if target not in plugins else unknown[0]
            message = f"hydra.{kind}: expected the settings of an installed {kind} of Hydra, got {TARGET}: {got}."
            raise KlrBenchError(message)
        batch = content.get("max_batch_size")
        if batch is not None and (type(batch) is not int or batch < 1):
            message = f"hydra.{kind}.max_batch_size: expected a whole number of at least 1, or null, got {batch!r}."
            raise KlrBenchError(message)
        if isinstance(params := content.get("params"), dict):
            _check_jobs(OverridesParser.create().parse_overrides([f"{key}={value}" for key, value in params.items()]))


def _targets(content: Any) -> Iterator[Any]:
    """Yield the value of each `_target_`, at any depth."""
    if isinstance(content, ConfigNode):
        content = OmegaConf.to_container(content.node)
    if isinstance(content, Mapping) and TARGET in content:
        yield content[TARGET]
    for entry in content.values() if isinstance(content, Mapping) else content if isinstance(content, list) else ():
        yield from _targets(entry)


@contextmanager
def unchecked_help() -> Iterator[None]:
    """Keep argparse of Python 3.14 from checking help texts: one of Hydra's is not a string (Hydra issue 3121)."""
    ArgumentParser._check_help = lambda *_: None  # type: ignore[attr-defined]
    try:
        yield
    finally:
        del ArgumentParser._check_help  # type: ignore[attr-defined]  # the inherited method is used again


def check_arguments(arguments: Sequence[str]) -> None:
    """Refuse what Hydra does not read, keys of Hydra that klr-bench does not use, and sweeps without end."""
    with unchecked_help():
        parser = get_args_parser()
    parser.error = _refuse_flags  # type: ignore[method-assign, assignment]
    given = parser.parse_args(list(arguments))
    if given.package and not given.cfg:
        _refuse_flags("--package: has no effect without --cfg")
    for word in given.overrides:
        key = word.lstrip("+~").partition("=")[0]
        package = key.partition("@")[2].rpartition(":")[2]
        known = any(key == name or key.startswith((f"{name}.", f"{name}/")) for name in ALLOWED)
        if _is_hydras(package) or (_is_hydras(key) and not known):
            message = f"{shown(key)}: klr-bench does not use this setting of Hydra.{nearest(key, ALLOWED)}"
            raise KlrBenchError(message)
        if word.startswith("~") and ESSENTIAL.fullmatch(key):
            whole = ".".join(key.split(".")[:2])
            message = f"{word}: expected ~{whole}, which takes out the whole entry, got a part that it needs."
            raise KlrBenchError(message)
    overrides = OverridesParser.create().parse_overrides([word for word in given.overrides if "=" in word])
    for override in overrides:
        if override.key_or_group in GROUPS and not override.is_delete():
            _check_names(override)
    if given.multirun or any(override.key_or_group == "hydra.mode" for override in overrides):
        _check_jobs(overrides)


def _refuse_flags(reason: str) -> NoReturn:
    message = f"{reason}. See klr-bench run --help."
    raise KlrBenchError(message)


def _check_names(override: Override) -> None:
    """Refuse what is no name of a file of this group; Hydra would look elsewhere for it."""
    value: Any = override.value()
    group = override.key_or_group
    for choice in value.list if isinstance(value, ChoiceSweep) else [value]:
        for name in choice if isinstance(choice, list) else [choice]:
            if not isinstance(name, Sweep | Glob) and (not isinstance(name, str) or NO_STEM.search(name)):
                message = f"{group}: expected a name of configs/{group}, got {shown(name)!r}. See klr-bench list."
                raise KlrBenchError(message)


def _check_jobs(overrides: Sequence[Override]) -> None:
    """Refuse a sweep with more runs than anybody waits for, of which Hydra makes a list first; and one with none."""
    n_jobs = math.prod(map(_n_values, overrides))
    if not 1 <= n_jobs <= MOST_JOBS:
        message = f"-m: expected from 1 to {MOST_JOBS} runs, got {n_jobs:g}. Split the sweep, or correct its values."
        raise KlrBenchError(message)


def _is_hydras(key: str) -> bool:
    return re.match(r"hydra\b", key) is not None


def _n_values(override: Override) -> float:
    """Return the number of values of a sweep, without making them."""
    value = override.value()
    if isinstance(value, ChoiceSweep):
        return len(value.list)
    if isinstance(value, Glob):
        return len(value.filter(config_files.names(override.key_or_group, config_files.folders())))
    if isinstance(value, RangeSweep):
        start, stop, step = (float(bound or 0) for bound in (value.start, value.stop, value.step))
        steps = (stop - start) / step if step else math.inf
        return max(0, math.ceil(steps)) if math.isfinite(steps) else math.inf
    return 1
