"""Conversion of a configuration composed by Hydra into a checked `RunConfig`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from klr_bench import instantiate
from klr_bench.config import locations as config_files
from klr_bench.config.checks import check_run, check_unused_keys
from klr_bench.config.datasets import is_own_file, resolve_dataset, with_own_file
from klr_bench.config.models import (
    LEFT_TO_SELECTION,
    AlgorithmConfig,
    AlgorithmEntry,
    Call,
    DataConfig,
    DatasetConfig,
    DatasetEntry,
    Parameter,
    RunConfig,
    RunEntry,
    Sweep,
)
from klr_bench.config.presentation import without_presentation
from klr_bench.config.splitting import MOST_ROWS
from klr_bench.errors import error_context, fail
from klr_bench.files import LARGEST_CSV, regular
from klr_bench.instantiate import TARGET, Parameters
from klr_bench.parsing import Plain, parse, parse_value, refuse, refuse_unknown
from klr_bench.results.variants import is_variant, read_variant

if TYPE_CHECKING:
    from omegaconf import DictConfig

Entry = TypeVar("Entry", DatasetEntry, AlgorithmEntry)
ESSENTIAL = {"dataset": "source", "algorithm": "estimator"}
"""Required key of each file in a group."""
OPEN = ("datasets", "algorithms", "sweep", "left_out", "against")
"""Sections that are filled by name and may be null."""


def validate(cfg: DictConfig, overrides: Sequence[str], searched: Sequence[Path] | None = None) -> RunConfig:
    """Check a configuration composed by Hydra and return it as a `RunConfig`.

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
    """Check the configuration in the dict `plain` and return it as a `RunConfig`.

    `overrides` are the dotted keys that the command line sets.
    """
    plain = plain | {key: {} for key in OPEN if plain.get(key) is None}
    if isinstance(plain["sweep"], dict):  # sweep.nc=null means that nc is not swept
        plain["sweep"] = {stem: {} if lists is None else lists for stem, lists in plain["sweep"].items()}
    if isinstance(plain["algorithms"], dict):
        plain["algorithms"] = {
            stem: without_presentation(entry, f"algorithms.{stem}.", overrides)
            for stem, entry in plain["algorithms"].items()
        }
    entry = parse(RunEntry, plain)
    algorithms = resolve_algorithms(entry.algorithms, overrides, searched)
    datasets = resolve_datasets(entry.datasets, entry.data, overrides, searched)
    if "budget" in overrides and not any("budget" in lists for lists in entry.sweep.values()):
        fail(f"budget: the experiment {entry.name} has no learners with a budget in its sweep.")
    sweep = resolve_references(entry.sweep, Path(entry.results_dir), datasets)
    swept = resolve_sweep(sweep, algorithms, overrides, searched)
    config = RunConfig(**dict(entry) | {"algorithms": algorithms, "datasets": datasets, "sweep": swept})
    check_run(config, entry.sweep, overrides, searched)
    check_unused_keys(config, overrides, searched)
    return config


def override_keys(overrides: Sequence[str]) -> set[str]:
    """Return the dotted keys that the command line sets; deleted keys start with ``~``.

    For a dict, the keys of its entries are returned.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser

    def keys(key: str, value: Any) -> set[str]:
        if not isinstance(value, dict):
            return {key}
        return {inner for name, entry in value.items() for inner in keys(f"{key}.{name}", entry)}

    parsed = OverridesParser.create().parse_overrides(list(overrides))
    deleted = {f"~{override.key_or_group}" for override in parsed if override.is_delete()}
    return deleted.union(*(keys(change.key_or_group, change.value()) for change in parsed if not change.is_delete()))


def resolve_datasets(
    entries: Mapping[str, DatasetEntry], data: DataConfig, overrides: Collection[str], searched: Sequence[Path]
) -> dict[str, DatasetConfig]:
    """Return the complete descriptions of the selected data sets, by name.

    `data` describes the user's own file.
    """
    selected = _selected_entries("dataset", entries, overrides, searched)
    file_stems = [stem for stem, entry in selected.items() if is_own_file(entry)]
    settings = [key for key, value in data if value is not None and key not in ("mirror", "cache")]
    if settings and not file_stems:
        key = f"data.{settings[0]}="
        fail(f"{key} is given, but dataset=file is not selected. Add experiment=own_file (or dataset=file).")
    selected |= {stem: with_own_file(stem, selected[stem], data) for stem in file_stems}
    return {
        stem: resolve_dataset(stem, entry, searched, f"datasets.{stem}.", overrides) for stem, entry in selected.items()
    }


def resolve_sweep(
    sweep: Mapping[str, Parameters],
    algorithms: Mapping[str, AlgorithmConfig],
    overrides: Collection[str],
    searched: Sequence[Path],
) -> Sweep:
    """Return the lists of values over which the selected algorithms are swept.

    A parameter that the command line sets to one value is not swept.
    """
    resolved: Sweep = {}
    for stem, variants in sweep.items():
        where = f"sweep.{stem}."
        if stem not in algorithms:
            content = _unselected("algorithm", stem, where, "sweep", overrides, searched)
            _check_names(content["estimator"], variants, where)
            continue
        estimator, grid = algorithms[stem].estimator, algorithms[stem].grid
        _check_names(estimator, variants, where)
        lists = _value_lists(stem, estimator, variants, where, overrides)
        for name, values in lists.items():
            if LEFT_TO_SELECTION in values and name not in grid:
                choices = f"algorithms.{stem}.grid.{name}"
                fail(f"{where}{name}: the sweep contains 'cv', but {choices} has no values to choose from.")
        if lists:
            resolved[stem] = lists
    return resolved


def _selected_entries(
    group: str, entries: Mapping[str, Entry], overrides: Collection[str], searched: Sequence[Path]
) -> dict[str, Entry]:
    """Return the entries of the selected data sets or algorithms, by name.

    An entry is selected if it has the group's required key.  The others are changes that an experiment makes to files
    that are not selected.
    """
    selected: dict[str, Entry] = {}
    essential = ESSENTIAL[group]
    for stem, entry in entries.items():
        where, value = f"{group}s.{stem}.", getattr(entry, essential)
        if f"~{where}{essential}" in overrides:
            fail(f"~{where}{essential}: a selected {group} needs this key. To remove the {group}: ~{group}s.{stem}")
        if TARGET in value if isinstance(value, dict) else value is not None:
            selected[stem] = entry
            continue
        if f"{where}{essential}" in overrides:
            refuse(f"{where}{essential}", "keys and values", value)
        content = _unselected(group, stem, where, f"{group}s", overrides, searched)
        if isinstance(entry, AlgorithmEntry):
            _check_names(content[essential], entry.estimator or {}, f"{where}estimator.")
            _check_names(content[essential], entry.grid or {}, f"{where}grid.")
    if not selected:
        available = ", ".join(config_files.names(group, searched))
        fail(f"no {group} is selected: expected {group}=<name> or {group}=[<name>,...]. Known: {available}.")
    return selected


def _unselected(
    group: str, stem: str, where: str, section: str, overrides: Collection[str], searched: Sequence[Path]
) -> dict[str, Any]:
    """Return the content of the YAML file of a data set or algorithm that is not selected.

    Raises KlrBenchError if the command line sets keys of this data set or algorithm.
    """
    with error_context(section):
        path = config_files.find(group, stem, searched)
    changed = sorted(key for key in overrides if key.startswith(where))
    if changed:
        fail(f"{changed[0]} is given, but {group} {stem!r} is not selected. Add it to {group}=[...].")
    content = config_files.read(path)
    if content.get(ESSENTIAL[group]) is None:
        fail(f"{path}: expected the key {ESSENTIAL[group]!r}, got none.")
    if group == "algorithm":
        parse_value(Call, content[ESSENTIAL[group]], f"{path}: {ESSENTIAL[group]}")
    return content


def resolve_algorithms(
    entries: Mapping[str, AlgorithmEntry], overrides: Collection[str], searched: Sequence[Path]
) -> dict[str, AlgorithmConfig]:
    """Return the complete descriptions of the selected algorithms, by name.

    A parameter that the command line sets to one value is not in the grid.
    """
    algorithms = {}
    for stem, entry in _selected_entries("algorithm", entries, overrides, searched).items():
        where = f"algorithms.{stem}."
        estimator, grid, selected_as = entry.estimator or {}, entry.grid or {}, entry.selected_as or {}
        _check_estimator(estimator, estimator, f"{where}estimator.")
        _check_estimator(estimator | selected_as, selected_as, f"{where}selected_as.")
        _check_names(estimator, grid, f"{where}grid.")
        _check_names(estimator, entry.kernel_parameters or (), f"{where}kernel_parameters.")
        for name in selected_as.keys() & grid.keys():
            fail(f"{where}selected_as.{name} and {where}grid.{name} are both given. Leave one of them out.")
        if selected_as and not grid:
            fail(f"{where}selected_as: has no effect, because {where}grid has no parameters. Leave it out.")
        grid = _value_lists(stem, estimator, grid, f"{where}grid.", overrides)
        resolved = {"label": entry.label or stem, "estimator": estimator, "grid": grid, "selected_as": selected_as}
        algorithms[stem] = AlgorithmConfig(**dict(entry) | resolved)
    return algorithms


def _check_estimator(estimator: Parameters, values: Parameters, where: str) -> None:
    target = parse_value(str, estimator[TARGET], f"{where}{TARGET}")
    with error_context(where.rstrip(".")):
        accepted = instantiate.parameters(target)
    names = [name for name in values if name != TARGET]
    _check_names(estimator, names, where)
    for name in names:
        _check_value(accepted.get(name, instantiate.Parameter()), values[name], f"{where}{name}")
        if name == "kernel" and not isinstance(values[name], str | None):
            refuse(f"{where}kernel", "the name of a kernel", values[name])


def _check_names(estimator: Parameters, names: Collection[str], where: str) -> None:
    target = estimator[TARGET]
    accepted = instantiate.parameters(target)
    if any(parameter.any_name for parameter in accepted.values()):
        return
    nested = instantiate.takes_nested(instantiate.locate(target))
    refuse_unknown([name for name in names if not (nested and instantiate.is_nested(name, accepted))], accepted, where)


def _check_value(declared: instantiate.Parameter, value: Any, key: str) -> None:
    for entry in value if isinstance(value, list) else [value]:
        if expected := declared.expected(entry):
            refuse(key, expected, entry)


def _value_lists(
    stem: str, estimator: Parameters, lists: Parameters, where: str, overrides: Collection[str]
) -> dict[str, list[Any]]:
    """Return a list of distinct values for each parameter of an estimator.

    Parameters that the command line sets to one value are omitted.
    """
    unique: dict[str, list[Any]] = {}
    accepted = instantiate.parameters(estimator[TARGET])
    for name, values in lists.items():
        single, listed = f"algorithms.{stem}.estimator.{name}", f"{where}{name}"
        if single in overrides and listed in overrides:
            fail(f"{single} and {listed} are both given: one is a value, the other a list. Leave one of them out.")
        if not isinstance(values, list) or not values:
            refuse(listed, "a list of values such as [1, 10]", values)
        for position, value in enumerate(values):
            parse_value(Parameter, value, f"{listed}[{position}]")
            if where.startswith("sweep.") and not is_variant({name: value}):
                refuse(f"{listed}[{position}]", "printable text or a number of at most 300 digits", value)
            _check_value(accepted.get(name, instantiate.Parameter()), value, listed)
            if name == "kernel" and not isinstance(value, str):
                refuse(f"{listed}[{position}]", "the name of a kernel", value)
        if single not in overrides:
            typed = [(type(value) is bool, value) for value in values]  # true is not 1
            unique[name] = [value for place, (_, value) in enumerate(typed) if typed[place] not in typed[:place]]
    return unique


PREFIX = "from:"


def resolve_references(
    sweep: Mapping[str, Parameters], results: Path, datasets: Collection[str]
) -> dict[str, Parameters]:
    """Replace references to other experiments by numbers of support vectors in their results.

    ``from:<experiment>/<algorithm>`` is replaced by the mean number of support vectors of each variant of that
    algorithm on the one data set of the run, and a single budget by a list.  Raises KlrBenchError if there are several
    data sets, or no such records.
    """

    def values(name: str, value: Any) -> Any:
        if isinstance(value, str) and value.startswith(PREFIX):
            return _support_vectors(f"{name}={value}", value.removeprefix(PREFIX), results, list(datasets))
        return [value] if name == "budget" and type(value) is int else value

    return {stem: {name: values(name, value) for name, value in lists.items()} for stem, lists in sweep.items()}


def _support_vectors(setting: str, source: str, results: Path, datasets: list[str]) -> list[int]:
    import pandas as pd

    experiment, _, algorithm = source.partition("/")
    if len(datasets) != 1:
        fail(f"{setting}: expected exactly one data set, got {', '.join(datasets) or 'none'}.")
    path = results / experiment / "records.csv"
    again = f"Run the experiment with: klr-bench run experiment={experiment}"
    try:
        with regular(path, LARGEST_CSV) as file:
            rows = pd.read_csv(file, dtype=str, keep_default_na=False)
        names = rows["algorithm"] + " on " + rows["dataset"]
        fits = rows[(names == f"{algorithm} on {datasets[0]}") & (rows["status"] == "ok")]
        n_support = pd.to_numeric(fits["n_support"])
        means = n_support.groupby(fits["variant"]).mean()
        variants = sorted(means.index, key=lambda variant: read_variant(variant).order)
    except OSError:
        fail(f"{setting}: no records in {path}. {again}")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        fail(f"{setting}: {path}: expected a valid records.csv, got an invalid one ({error}). {again}")
    if not n_support.between(1, MOST_ROWS).all():
        fail(f"{setting}: {path}: n_support: expected values from 1 to {MOST_ROWS}, got {[*n_support]!r:.200}. {again}")
    if not variants:
        expected = f"{PREFIX}<experiment>/<algorithm>, of which fits on {datasets[0]} are finished"
        fail(f"{setting}: expected {expected}; {path} has {', '.join(sorted(set(names))) or 'none'}.")
    return [round(means[variant]) for variant in variants]
