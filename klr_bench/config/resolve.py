"""The data sets, algorithms and swept values that a run selects."""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TypeVar

from klr_bench import instantiate
from klr_bench.config import locations as config_files
from klr_bench.config.datasets import check_generators, is_own_file, resolve_dataset, with_own_file
from klr_bench.config.models import (
    LEFT_TO_SELECTION,
    AlgorithmConfig,
    AlgorithmEntry,
    DataConfig,
    DatasetConfig,
    DatasetEntry,
    Parameter,
    Sweep,
)
from klr_bench.config.splitting import MOST_ROWS
from klr_bench.errors import KlrBenchError, fail, located
from klr_bench.files import LARGEST_CSV, regular
from klr_bench.instantiate import TARGET, Parameters
from klr_bench.parsing import parse, parse_value, refuse, refuse_unknown
from klr_bench.results.store import read_variant
from klr_bench.results.variants import Variant

Entry = TypeVar("Entry", DatasetEntry, AlgorithmEntry)


def resolve_datasets(
    entries: Mapping[str, DatasetEntry], data: DataConfig, overrides: Collection[str], searched: Sequence[Path]
) -> dict[str, DatasetConfig]:
    """Return the selected data sets; `data` describes the user's own file."""
    selected = _selected("dataset", entries, overrides, searched)
    own = [stem for stem, entry in selected.items() if is_own_file(entry)]
    settings = [key for key, value in data if value is not None and key not in ("mirror", "cache")]
    if settings and not own:
        key = f"data.{settings[0]}="
        fail(
            f"{key} is given, but the dataset is not file. Add experiment=own_file (or dataset=file), or leave {key} "
            "out."
        )
    selected |= {stem: with_own_file(stem, selected[stem], data) for stem in own}
    datasets = {}
    for stem, entry in selected.items():
        datasets[stem] = resolve_dataset(stem, entry, searched, f"datasets.{stem}.", overrides)
        check_generators(datasets[stem], f"datasets.{stem}.")
    return datasets


def resolve_algorithms(
    entries: Mapping[str, AlgorithmEntry], overrides: Collection[str], searched: Sequence[Path]
) -> dict[str, AlgorithmConfig]:
    """Return the selected algorithms; parameters that are given one value are no longer in the grid."""
    selected = _selected("algorithm", entries, overrides, searched)
    return {stem: resolve_algorithm(stem, entry, overrides) for stem, entry in selected.items()}


def resolve_sweep(
    sweep: Mapping[str, Parameters],
    algorithms: Mapping[str, AlgorithmConfig],
    overrides: Collection[str],
    searched: Sequence[Path],
) -> Sweep:
    """Return the swept values of the selected algorithms, without the parameters that are given one value."""
    resolved: Sweep = {}
    for stem, variants in sweep.items():
        where = f"sweep.{stem}."
        if stem not in algorithms:
            with located("sweep"):
                path = config_files.find("algorithm", stem, searched)  # refuses a misspelt one
            _refuse_unselected("algorithm", stem, where, overrides)
            check_names(config_files.read(path)["estimator"], variants, where)
            continue
        estimator, grid = algorithms[stem].estimator, algorithms[stem].grid
        check_names(estimator, variants, where)
        lists = value_lists(stem, estimator, variants, where, overrides)
        for name, values in lists.items():
            if LEFT_TO_SELECTION in values and name not in grid:
                choices = f"algorithms.{stem}.grid.{name}"
                fail(f"{where}{name}: expected {choices} to choose from, for it holds 'cv', got none.")
        if lists:
            resolved[stem] = lists
    return resolved


def _selected(
    group: str, entries: Mapping[str, Entry], overrides: Collection[str], searched: Sequence[Path]
) -> dict[str, Entry]:
    """Return the entries whose files were selected: those that have the essential key of such a file.

    The others are changes that an experiment makes to files that are not selected.
    """
    selected: dict[str, Entry] = {}
    for stem, entry in entries.items():
        if _has_essence(entry):
            selected[stem] = entry
            continue
        with located(f"{group}s"):
            path = config_files.find(group, stem, searched)
        content = config_files.read(path)
        with located(path):
            described = parse(type(entry), content)
        if not _has_essence(described):
            expected = "source: ..." if group == "dataset" else f"estimator: {{{TARGET}: ...}}"
            fail(f"{path}: expected {expected}, got none.")
        where, essential = f"{group}s.{stem}.", "source" if group == "dataset" else "estimator"
        if f"{where}{essential}" in overrides:
            refuse(f"{where}{essential}", "keys and values", getattr(entry, essential))
        _refuse_unselected(group, stem, where, overrides)
        if isinstance(entry, AlgorithmEntry) and isinstance(described, AlgorithmEntry):
            check_names(described.estimator or {}, entry.estimator or {}, f"{where}estimator.")
            check_names(described.estimator or {}, entry.grid or {}, f"{where}grid.")
        if isinstance(described, DatasetEntry) and not is_own_file(described):
            merged = _merged(content, entry.model_dump(exclude_unset=True))
            resolve_dataset(stem, parse(DatasetEntry, merged, where), searched, where)
    if not selected:
        known = ", ".join(config_files.names(group, searched))
        fail(f"no {group} is selected: expected {group}=<name> or {group}=[<name>,...]. Known: {known}.")
    return selected


def _has_essence(entry: DatasetEntry | AlgorithmEntry) -> bool:
    if isinstance(entry, DatasetEntry):
        return entry.source is not None
    return TARGET in (entry.estimator or {})


def _merged(content: Any, changes: Any) -> Any:
    """Return plain values with others on top of them, at all depths."""
    if not isinstance(content, dict) or not isinstance(changes, dict):
        return changes
    return content | {key: _merged(content.get(key), value) for key, value in changes.items()}


def _refuse_unselected(group: str, stem: str, where: str, overrides: Collection[str]) -> None:
    """Refuse a key of the command line that is about something that is not selected."""
    changed = sorted(key for key in overrides if key.startswith(where))
    if changed:
        fail(f"{changed[0]} is given, but {group} {stem!r} is not selected. Add it to {group}=[...].")


def resolve_algorithm(stem: str, entry: AlgorithmEntry, overrides: Collection[str]) -> AlgorithmConfig:
    """Return an algorithm; parameters that the command line, `overrides`, gives one value are no longer in the grid.

    Raises KlrBenchError for a class, parameter or value that cannot be used.
    """
    where = f"algorithms.{stem}."
    estimator, grid, selected_as = entry.estimator or {}, entry.grid or {}, entry.selected_as or {}
    _check_target(estimator[TARGET], f"{where}estimator.{TARGET}")
    _check_values(estimator, estimator, f"{where}estimator.")
    check_names(estimator, grid, f"{where}grid.")
    check_names(estimator, entry.kernel_parameters or (), f"{where}kernel_parameters.")
    _check_selected_as(selected_as, estimator, grid, where)
    resolved = {
        "label": entry.label or stem,
        "estimator": estimator,
        "grid": value_lists(stem, estimator, grid, f"{where}grid.", overrides),
        "selected_as": selected_as,
    }
    return AlgorithmConfig(**dict(entry) | resolved)


def _check_selected_as(selected_as: Parameters, estimator: Parameters, grid: Parameters, where: str) -> None:
    """Refuse parameters that cannot be used, have no effect, or are selected themselves."""
    other = {**estimator, **selected_as}
    _check_target(other[TARGET], f"{where}selected_as.{TARGET}")
    _check_values(other, selected_as, f"{where}selected_as.")
    for name in selected_as.keys() & grid.keys():
        fail(f"{where}selected_as.{name} and {where}grid.{name} are both given. Leave one of them out.")
    if selected_as and not grid:
        fail(f"{where}selected_as: has no effect, because {where}grid has nothing to select. Leave it out.")


def _check_target(target: Any, key: str) -> None:
    """Refuse a target that is not the dotted name of a class that can be called with parameters."""
    try:
        instantiate.parameters(parse_value(str, target, key))
    except (ValueError, TypeError) as error:
        fail(f"{key}: {target!r} cannot be called with parameters ({error}); expected the name of a class.")
    except KlrBenchError as error:
        where = key.removesuffix(TARGET) if str(error).startswith(TARGET) else f"{key}: "
        fail(str(error) if str(error).startswith(key) else f"{where}{error}")


def check_names(estimator: Parameters, names: Collection[str], where: str) -> None:
    """Refuse a name that is not a parameter of the estimator's constructor, or of a part of the estimator."""
    target = estimator[TARGET]
    known = instantiate.parameters(target)
    if any(parameter.any_name for parameter in known.values()):
        return
    nested = {name for name in names if instantiate.is_nested(name, known)}
    if nested and not instantiate.takes_nested(target):
        nested = set()
    refuse_unknown([name for name in names if name not in nested], known, where)


def _check_values(estimator: Parameters, values: Parameters, where: str) -> None:
    """Refuse parameters that the estimator's constructor does not take, and values that they cannot have."""
    names = [name for name in values if name != TARGET]
    check_names(estimator, names, where)
    known = instantiate.parameters(estimator[TARGET])
    for name in names:
        _check_value(known.get(name, instantiate.Parameter()), values[name], f"{where}{name}")


def _check_value(declared: instantiate.Parameter, value: Any, key: str) -> None:
    """Refuse infinity, true and false for a parameter that is not declared to take them: they are numbers to Python."""
    for number in value if isinstance(value, list) else [value]:
        if declared.number and not declared.boolean and isinstance(number, bool):
            refuse(key, "a number", number)
        if isinstance(number, float) and math.isinf(number) and number not in declared.infinite:
            refuse(key, "a finite number", number)


def value_lists(
    stem: str, estimator: Parameters, lists: Parameters, where: str, overrides: Collection[str]
) -> dict[str, list[Any]]:
    """Return the lists of values without repetitions, and without parameters that are given one value."""
    unique: dict[str, list[Any]] = {}
    known = instantiate.parameters(estimator[TARGET])
    for name, values in lists.items():
        single, listed = f"algorithms.{stem}.estimator.{name}", f"{where}{name}"
        if single in overrides and listed in overrides:
            fail(f"{single} and {listed} are both given: one is a value, the other a list. Leave one of them out.")
        if not isinstance(values, list) or not values:
            refuse(listed, "a list of values such as [1, 10]", values)
        for position, value in enumerate(values):
            parse_value(Parameter, value, f"{listed}[{position}]")
            _check_value(known.get(name, instantiate.Parameter()), value, listed)
        if single not in overrides:
            typed = [(type(value) is bool, value) for value in values]  # true is not 1
            unique[name] = [value for place, (_, value) in enumerate(typed) if typed[place] not in typed[:place]]
    return unique


PREFIX = "from:"


def resolve_references(
    sweep: Mapping[str, Parameters], results: Path, datasets: Collection[str]
) -> dict[str, Parameters]:
    """Return a sweep with lists in place of ``from:<experiment>/<algorithm>``, and of one budget.

    The list has the mean number of support vectors of each variant of that algorithm on the one data set of the run.
    Raises KlrBenchError if there are several data sets, or no such records.
    """

    def values(name: str, value: Any) -> Any:
        if isinstance(value, str) and value.startswith(PREFIX):
            return _support_vectors(f"{name}={value}", value.removeprefix(PREFIX), results, list(datasets))
        return [value] if name == "budget" and type(value) is int else value

    return {stem: {name: values(name, value) for name, value in lists.items()} for stem, lists in sweep.items()}


def _support_vectors(setting: str, source: str, results: Path, datasets: list[str]) -> list[int]:
    experiment, _, algorithm = source.partition("/")
    if len(datasets) != 1:
        fail(f"{setting}: expected one data set, whose records are meant; got {', '.join(datasets) or 'none'}.")
    path = results / experiment / "records.csv"
    again = f"klr-bench run experiment={experiment}"
    try:
        with regular(path, LARGEST_CSV) as file:
            rows = list(csv.DictReader(TextIOWrapper(file, encoding="utf-8", newline="")))
    except OSError:
        fail(f"{setting}: no records in {path}. Make them with: {again}")
    except (csv.Error, ValueError) as error:
        fail(f"{setting}: {path}: expected a CSV file, got something else ({error}). Rebuild it with: {again}")
    if not algorithm:
        known = ", ".join(sorted({f"{PREFIX}{experiment}/{row.get('algorithm')}" for row in rows})) or "no records"
        fail(f"{setting}: expected {PREFIX}<experiment>/<algorithm>; {path} has {known}.")
    counts: dict[Variant, list[float]] = {}
    for number, row in enumerate(rows, 1):
        if (row.get("dataset"), row.get("algorithm"), row.get("status")) == (datasets[0], algorithm, "ok"):
            try:
                counts.setdefault(read_variant(row["variant"]), []).append(_count(row["n_support"]))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                fail(
                    f"{setting}: {path}: row {number}: expected a variant and n_support, got {error}. "
                    f"Rebuild it with: {again}"
                )
    if not counts:
        known = ", ".join(sorted({f"{row.get('algorithm')} on {row.get('dataset')}" for row in rows})) or "nothing"
        fail(f"{setting}: {path} has no finished fits of {algorithm} on {datasets[0]}; it has {known}.")
    return [round(sum(counts[variant]) / len(counts[variant])) for variant in sorted(counts, key=Variant.order)]


def _count(text: str) -> float:
    count = float(text)
    if not 1 <= count <= MOST_ROWS:
        message = f"n_support={text}"
        raise ValueError(message)
    return count
