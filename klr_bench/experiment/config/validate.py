"""From what Hydra composed to a `Config`: what can be wrong before data is read is refused here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.config import files as config_files
from klr_bench.experiment.config.amounts import check_amount
from klr_bench.experiment.config.borrowed import with_borrowed
from klr_bench.experiment.config.effects import check_effects
from klr_bench.experiment.config.interpolation import check_interpolations
from klr_bench.experiment.config.schema import LEFT_TO_SELECTION, Config, DataConfig, check_together
from klr_bench.experiment.config.selected import (
    check_against,
    check_algorithms,
    check_datasets,
    check_left_out,
    check_nested,
    check_sweep,
)
from klr_bench.experiment.config.streams import check_streams
from klr_bench.experiment.config.typed import parse
from klr_bench.experiment.measure.own import own_files
from klr_bench.files import expanded

if TYPE_CHECKING:
    from omegaconf import DictConfig

__all__ = ["LEFT_TO_SELECTION", "Config", "validate"]

OPEN = ("datasets", "algorithms", "sweep", "left_out", "against")
"""Sections that are filled by name; one without a name may be null."""


def validate(cfg: DictConfig, overrides: Sequence[str], searched: Sequence[Path] | None = None) -> Config:
    """Hold a composed configuration against the schema and return it as a `Config`.

    `overrides` are those of the command line, in Hydra's grammar: a value given there for a parameter of an
    estimator takes that parameter out of the grid and the sweep.  `searched` are the folders with YAML files.
    Raises KlrBenchError, and OmegaConf's exceptions for interpolations that lead nowhere.
    """
    from omegaconf import OmegaConf

    check_interpolations(OmegaConf.to_container(cfg))
    plain: Any = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    if plain.get("name") is None:
        message = "experiment: expected one name. To run several: klr-bench run -m experiment=first,second"
        raise KlrBenchError(message)
    return checked(plain, given_keys(overrides), config_files.folders() if searched is None else searched)


def checked(plain: dict[str, Any], given: set[str], searched: Sequence[Path]) -> Config:
    """Return the `Config` of plain values; `given` are the dotted keys of the command line.  Raises KlrBenchError."""
    plain = plain | {key: {} for key in OPEN if plain.get(key) is None}
    if isinstance(plain["sweep"], dict):  # sweep.nc=null: no variants of it
        plain["sweep"] = {stem: {} if lists is None else lists for stem, lists in plain["sweep"].items()}
    config = parse(Config, plain)
    config = replace(config, results_dir=_expand(config.results_dir), data=_expand_paths(config.data))
    check_together(config, own_files(searched))
    algorithms = check_algorithms(config.algorithms, given, searched)
    datasets = check_datasets(config.datasets, config.data, given, searched)
    if "budget" in given and not any("budget" in lists for lists in config.sweep.values()):
        message = f"budget: the experiment {config.name} has no learners with a budget in its sweep."
        raise KlrBenchError(message)
    sweep = with_borrowed(config.sweep, Path(config.results_dir), datasets)
    kept = check_sweep(sweep, algorithms, given, searched)
    check_left_out(config.left_out, config.sweep, searched)
    check_nested(config.selection, datasets)
    check_against(config.against, config.sweep, algorithms, searched)
    config = replace(config, datasets=datasets, algorithms=algorithms, sweep=kept)
    check_streams(config)
    check_effects(config, given, searched)
    check_amount(config)
    return config


def given_keys(overrides: Sequence[str]) -> set[str]:
    """Return the dotted keys that the overrides set; a dict counts as its entries."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    given: set[str] = set()

    def collect(key: str, value: Any) -> None:
        if isinstance(value, dict):
            for name, entry in value.items():
                collect(f"{key}.{name}", entry)
        else:
            given.add(key)

    for override in OverridesParser.create().parse_overrides(list(overrides)):
        if not override.is_delete():
            collect(override.key_or_group, override.value())
    return given


def _expand(path: str) -> str:
    return str(expanded(path)) if path.startswith("~") else path


def _expand_paths(data: DataConfig) -> DataConfig:
    """Return the section with ~ expanded; an empty path, such as an empty KLR_BENCH_MIRROR, is none."""
    return replace(
        data,
        mirror=_expand(data.mirror) if data.mirror else None,
        cache=_expand(data.cache) if data.cache else None,
        path=_expand(data.path) if data.path else None,
        test_path=_expand(data.test_path) if data.test_path else None,
    )
