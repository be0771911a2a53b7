"""The `RunConfig` of what Hydra composes; mistakes that can be found without reading data are refused here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klr_bench.config import locations as config_files
from klr_bench.config.checks import check_run, check_unused_keys
from klr_bench.config.models import RunConfig, RunEntry
from klr_bench.config.resolve import resolve_algorithms, resolve_datasets, resolve_references, resolve_sweep
from klr_bench.errors import fail
from klr_bench.parsing import Plain, parse

if TYPE_CHECKING:
    from omegaconf import DictConfig


OPEN = ("datasets", "algorithms", "sweep", "left_out", "against")
"""Sections that are filled by name and may be null."""


def validate(cfg: DictConfig, overrides: Sequence[str], searched: Sequence[Path] | None = None) -> RunConfig:
    """Return the `RunConfig` of a composed configuration.

    `overrides` are those of the command line, in Hydra's grammar: a value given there for a parameter of an
    estimator takes that parameter out of the grid and the sweep.  `searched` are the folders with YAML files.
    Raises KlrBenchError, and OmegaConf's exceptions for interpolations that lead nowhere.
    """
    from omegaconf import OmegaConf

    plain: Any = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    if plain.get("name") is None:
        fail("experiment: expected one name. To run several: klr-bench run -m experiment=first,second")
    return resolve_run(plain, override_keys(overrides), config_files.folders() if searched is None else searched)


def resolve_run(plain: Plain, overrides: set[str], searched: Sequence[Path]) -> RunConfig:
    """Return the `RunConfig` of plain values; `overrides` are the dotted keys of the command line."""
    plain = plain | {key: {} for key in OPEN if plain.get(key) is None}
    if isinstance(plain["sweep"], dict):  # sweep.nc=null: no variants of it
        plain["sweep"] = {stem: {} if lists is None else lists for stem, lists in plain["sweep"].items()}
    entry = parse(RunEntry, plain)
    algorithms = resolve_algorithms(entry.algorithms, overrides, searched)
    datasets = resolve_datasets(entry.datasets, entry.data, overrides, searched)
    if "budget" in overrides and not any("budget" in lists for lists in entry.sweep.values()):
        fail(f"budget: the experiment {entry.name} has no learners with a budget in its sweep.")
    sweep = resolve_references(entry.sweep, Path(entry.results_dir), datasets)
    swept = resolve_sweep(sweep, algorithms, overrides, searched)
    config = RunConfig(**dict(entry) | {"algorithms": algorithms, "datasets": datasets, "sweep": swept})
    check_run(config, entry.sweep, searched)
    check_unused_keys(config, overrides, searched)
    return config


def override_keys(overrides: Sequence[str]) -> set[str]:
    """Return the dotted keys that the overrides set, and with ``~`` in front those that they delete.

    A dict counts as its entries.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser

    def keys(key: str, value: Any) -> set[str]:
        if not isinstance(value, dict):
            return {key}
        return {inner for name, entry in value.items() for inner in keys(f"{key}.{name}", entry)}

    parsed = OverridesParser.create().parse_overrides(list(overrides))
    deleted = {f"~{override.key_or_group}" for override in parsed if override.is_delete()}
    return deleted.union(*(keys(one.key_or_group, one.value()) for one in parsed if not one.is_delete()))
