"""The data sets, algorithms and variants of a run: what a configuration says of each, checked."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from klr_bench.errors import KlrBenchError, located
from klr_bench.experiment import targets as build
from klr_bench.experiment.config import files as config_files
from klr_bench.experiment.config.datasets import dataset_spec
from klr_bench.experiment.config.made import check_making
from klr_bench.experiment.config.schema import (
    ENTRIES,
    FILE,
    LEFT_TO_SELECTION,
    AlgorithmConfig,
    DataConfig,
    Parameter,
    SelectionConfig,
)
from klr_bench.experiment.config.typed import check_choice, parse, read, refuse, refuse_unknown

Entries = dict[str, dict[str, Any]]
Sweep = dict[str, dict[str, list[Any]]]
MOST_VALUES = 1000
"""Values of one parameter in a grid or a sweep."""
MOST_EXACT = 2**53
"""The largest whole number of a parameter; a float64 holds all up to this one."""


def check_datasets(
    entries: Mapping[str, Any], data: DataConfig, given: Collection[str], searched: Sequence[Path]
) -> Entries:
    """Return the specs of the selected data sets; that of the user's own file with what `data` says about it."""
    selected = _selected("dataset", entries, given, searched)
    own = [stem for stem, entry in selected.items() if _is_own_file(entry)]
    about_file = {key: value for key, value in asdict(data).items() if key not in ("mirror", "cache")}
    said = [key for key, value in about_file.items() if value is not None]
    if said and not own:
        key = f"data.{said[0]}="
        message = (
            f"{key} is given, but the dataset is not file. Add experiment=own_file (or dataset=file), or leave {key} "
            "out."
        )
        raise KlrBenchError(message)
    for stem in own:
        selected[stem] = _own_file(stem, selected[stem], data)
    specs = {stem: dataset_spec(stem, entry, searched, f"datasets.{stem}.", given) for stem, entry in selected.items()}
    for stem, spec in specs.items():
        check_making(spec, f"datasets.{stem}.")
    return specs


def _is_own_file(entry: Mapping[str, Any]) -> bool:
    source = entry["source"]
    return isinstance(source, Mapping) and source.get("format") == FILE and source.get("path") is None


def check_algorithms(entries: Mapping[str, Any], given: Collection[str], searched: Sequence[Path]) -> Entries:
    """Return the selected algorithms; parameters that are given one value are no longer in the grid."""
    selected = _selected("algorithm", entries, given, searched)
    return {stem: _algorithm(stem, entry, given) for stem, entry in selected.items()}


def check_sweep(
    sweep: Mapping[str, Any], algorithms: Entries, given: Collection[str], searched: Sequence[Path]
) -> Sweep:
    """Return the variants of the selected algorithms, without the parameters that are given one value."""
    kept: Sweep = {}
    for stem, variants in sweep.items():
        where = f"sweep.{stem}."
        if stem not in algorithms:
            with located("sweep"):
                path = config_files.find("algorithm", stem, searched)  # refuses a misspelt one
            _refuse_unselected("algorithm", stem, where, given)
            _check_parameters(config_files.read(path)["estimator"], variants, where)
            continue
        _check_parameters(algorithms[stem]["estimator"], variants, where)
        lists = _value_lists(stem, algorithms[stem]["estimator"], variants, where, given)
        for name, values in lists.items():
            if LEFT_TO_SELECTION in values and name not in algorithms[stem]["grid"]:
                choices = f"algorithms.{stem}.grid.{name}"
                message = f"{where}{name}: expected {choices} to choose from, for it holds 'cv', got none."
                raise KlrBenchError(message)
        if lists:
            kept[stem] = lists
    return kept


def check_left_out(
    left_out: Mapping[str, Mapping[str, Any]], sweep: Mapping[str, Any], searched: Sequence[Path]
) -> None:
    """Refuse names that there are not, and a value that the sweep of its parameter, if there is one, does not have."""
    for dataset, algorithms in left_out.items():
        check_choice("left_out", dataset, config_files.names("dataset", searched))
        for stem, lists in algorithms.items():
            check_choice(f"left_out.{dataset}", stem, config_files.names("algorithm", searched))
            for name, values in lists.items():
                swept = sweep.get(stem, {}).get(name, values)
                for value in values:
                    check_choice(f"left_out.{dataset}.{stem}.{name}", str(value), [*map(str, swept)])


def check_nested(selection: SelectionConfig, datasets: Entries) -> None:
    """Refuse a selection that is not nested where a split has no folds for it."""
    for stem, spec in {} if selection.nested else datasets.items():
        if not spec["split"].get("folds"):
            message = (
                f"selection.nested=false: expected folds in datasets.{stem}.split, over which to select, got none. "
                f"Give datasets.{stem}.split.folds, or leave selection.nested=true."
            )
            raise KlrBenchError(message)


def check_against(
    against: Mapping[str, Mapping[str, Any]], sweep: Mapping[str, Any], algorithms: Entries, searched: Sequence[Path]
) -> None:
    """Refuse a comparison with an algorithm that is not in the run, or by a parameter that no sweep varies."""
    varied = sorted({name for variants in sweep.values() for name in variants})
    for number, changes in against.items():
        if not changes:
            refuse(f"against.{number}", "{algorithm: NAME} or {PARAMETER: VALUE}", changes)
        for name, value in changes.items():
            where = f"against.{number}.{name}"
            if name != "algorithm":
                check_choice(where, name, varied)
                values = [one for lists in sweep.values() if isinstance(lists.get(name), list) for one in lists[name]]
                if value not in values:
                    refuse(where, f"a value of its sweep, one of {', '.join(map(str, values))}", value)
            elif value not in algorithms:
                stem = read(str, value, where)
                with located(where):
                    config_files.find("algorithm", stem, searched)  # refuses a misspelt one


def _selected(group: str, entries: Mapping[str, Any], given: Collection[str], searched: Sequence[Path]) -> Entries:
    """Return the entries whose files were selected: those that have the essential key of such a file.

    The others are what an experiment changes in a file that is not selected: left out after a look at their keys,
    unless there is no such file, or the command line changes it.
    """
    kept: Entries = {}
    for stem, entry in entries.items():
        where = f"{group}s.{stem}."
        parse(ENTRIES[f"{group}s"], entry, where)
        if _has_essence(group, entry):
            kept[stem] = dict(entry)
            continue
        with located(f"{group}s"):
            path = config_files.find(group, stem, searched)
        content = config_files.read(path)
        if not _has_essence(group, content):
            expected = "source: ..." if group == "dataset" else f"estimator: {{{build.TARGET}: ...}}"
            message = f"{path}: expected {expected}, got none."
            raise KlrBenchError(message)
        essential = "source" if group == "dataset" else "estimator"
        if f"{where}{essential}" in given:
            refuse(f"{where}{essential}", "keys and values", entry.get(essential))
        _refuse_unselected(group, stem, where, given)
        for part in ("estimator", "grid") if group == "algorithm" else ():
            _check_parameters(content["estimator"], entry.get(part) or {}, f"{where}{part}.")
        if group == "dataset" and not _is_own_file(content):
            dataset_spec(stem, _merged(content, entry), searched, where)
    if not kept:
        known = ", ".join(config_files.names(group, searched))
        message = f"no {group} is selected: expected {group}=<name> or {group}=[<name>,...]. Known: {known}."
        raise KlrBenchError(message)
    return kept


def _merged(content: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping with another one on top of it, at all depths."""
    both = {key: _merged(content[key], change[key]) for key in change if _are_mappings(content.get(key), change[key])}
    return {**content, **change, **both}


def _are_mappings(*values: Any) -> bool:
    return all(isinstance(value, Mapping) for value in values)


def _refuse_unselected(group: str, stem: str, where: str, given: Collection[str]) -> None:
    """Refuse a key of the command line that is about something that is not selected."""
    changed = sorted(key for key in given if key.startswith(where))
    if changed:
        message = f"{changed[0]} is given, but {group} {stem!r} is not selected. Add it to {group}=[...]."
        raise KlrBenchError(message)


def _has_essence(group: str, entry: Mapping[str, Any]) -> bool:
    if group == "dataset":
        return bool(entry.get("source"))
    estimator = entry.get("estimator")
    return isinstance(estimator, Mapping) and build.TARGET in estimator


def _own_file(stem: str, spec: Mapping[str, Any], data: DataConfig) -> dict[str, Any]:
    """Return the entry of the user's own file with what `data` says about the file."""
    if data.path is None:
        message = f"dataset={stem}: expected data.path=<your LIBSVM or CSV file>, got none."
        raise KlrBenchError(message)
    for key in ("test_path", "test_size", "columns") if (spec.get("split") or {}).get("stream") else ():
        if getattr(data, key) is not None:
            message = f"data.{key}={getattr(data, key)}: has no effect on a stream. Leave it out, or use dataset=file."
            raise KlrBenchError(message)
    if data.test_path is not None and data.test_size is not None:
        message = (
            "data.test_path= and data.test_size= are both given: a file to test on, or a share of the rows? "
            "Leave one of them out."
        )
        raise KlrBenchError(message)
    source = {
        "path": data.path,
        "test_path": data.test_path,
        "file_format": data.format,
        "n_features": data.n_features,
        "label_column": _column(data.label),
        "columns": data.columns,
    }
    split: dict[str, Any] | None = {"official": True} if data.test_path else None
    if data.test_size is not None:
        split = {"test_size": data.test_size, "stratify": True}
    said = {"positive": data.positive, "multiclass": data.multiclass, "split": split}
    if data.multiclass is None and spec.get("multiclass") is None:
        said["multiclass"] = data.positive is None and spec.get("positive") is None
    scale = spec.get("scale") if data.scale is None else None if data.scale == "none" else data.scale
    return {**spec, **_not_none(said), "scale": scale, "source": {**spec["source"], **_not_none(source)}}


def _not_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _column(label: int | str | None) -> int | str | None:
    """Return the position or the name of a column: text of digits is a position."""
    return int(label) if isinstance(label, str) and re.fullmatch(r"-?\d{1,9}", label) else label


def _algorithm(stem: str, entry: Mapping[str, Any], given: Collection[str]) -> dict[str, Any]:
    where = f"algorithms.{stem}."
    algorithm = parse(AlgorithmConfig, entry, where)
    estimator, grid = algorithm.estimator or {}, algorithm.grid or {}
    _check_target(estimator[build.TARGET], f"{where}estimator.{build.TARGET}")
    _check_values(estimator, estimator, f"{where}estimator.")
    _check_parameters(estimator, grid, f"{where}grid.")
    _check_parameters(estimator, algorithm.kernel_parameters or (), f"{where}kernel_parameters.")
    _check_selected_as(algorithm.selected_as or {}, estimator, grid, where)
    return asdict(algorithm) | {
        "label": algorithm.label or stem,
        "estimator": dict(estimator),
        "grid": _value_lists(stem, estimator, grid, f"{where}grid.", given),
    }


def _check_selected_as(
    selected_as: Mapping[str, Any], estimator: Mapping[str, Any], grid: Mapping[str, Any], where: str
) -> None:
    """Refuse what cannot be built, has no effect, or is to be selected itself."""
    other = {**estimator, **selected_as}
    _check_target(other[build.TARGET], f"{where}selected_as.{build.TARGET}")
    _check_values(other, selected_as, f"{where}selected_as.")
    for name in selected_as.keys() & grid.keys():
        message = f"{where}selected_as.{name} and {where}grid.{name} are both given. Leave one of them out."
        raise KlrBenchError(message)
    if selected_as and not grid:
        message = f"{where}selected_as: has no effect, because {where}grid has nothing to select. Leave it out."
        raise KlrBenchError(message)


def _check_target(target: Any, key: str) -> None:
    """Refuse what is not the dotted name of something that can be called with parameters."""
    try:
        build.parameters(read(str, target, key))
    except (ValueError, TypeError) as error:
        message = f"{key}: {target!r} cannot be called with parameters ({error}); expected the name of a class."
        raise KlrBenchError(message) from error
    except KlrBenchError as error:
        where = key.removesuffix(build.TARGET) if str(error).startswith(build.TARGET) else f"{key}: "
        message = str(error) if str(error).startswith(key) else f"{where}{error}"
        raise KlrBenchError(message) from error


def _check_parameters(estimator: Mapping[str, Any], names: Collection[str], where: str) -> None:
    """Refuse a name that is no parameter of the estimator's constructor, nor looks like one of a part of it."""
    target = estimator[build.TARGET]
    known = build.parameters(target)
    if any(parameter.any_name for parameter in known.values()):
        return
    nested = {name for name in names if build.is_nested(name, known)}
    if nested and not build.takes_nested(target):
        nested = set()
    refuse_unknown([name for name in names if name not in nested], known, where)


def _check_values(estimator: Mapping[str, Any], values: Mapping[str, Any], where: str) -> None:
    """Refuse values, by name, that are none of the estimator's parameters, or that its constructor does not take."""
    names = [name for name in values if name != build.TARGET]
    _check_parameters(estimator, names, where)
    known = build.parameters(estimator[build.TARGET])
    for name in names:
        _check_value(known.get(name, build.Parameter()), values[name], f"{where}{name}")


def _check_value(declared: build.Parameter, value: Any, key: str) -> None:
    """Refuse infinity, and true and false, for a parameter that is not declared to take them.

    To Python true and false are the numbers 1 and 0.
    """
    for number in value if isinstance(value, list) else [value]:
        if declared.number and not declared.boolean and isinstance(number, bool):
            refuse(key, "a number", number)
        if isinstance(number, int) and abs(number) > MOST_EXACT:
            refuse(key, f"a whole number of at most {MOST_EXACT}", number)
        if isinstance(number, float) and math.isinf(number) and number not in declared.infinite:
            refuse(key, "a finite number", number)


def _value_lists(
    stem: str, estimator: Mapping[str, Any], lists: Mapping[str, Any], where: str, given: Collection[str]
) -> dict[str, list[Any]]:
    """Return the lists of values without repetitions, and without parameters that are given one value."""
    kept: dict[str, list[Any]] = {}
    known = build.parameters(estimator[build.TARGET])
    for name, values in lists.items():
        single, listed = f"algorithms.{stem}.estimator.{name}", f"{where}{name}"
        if single in given and listed in given:
            message = f"{single} and {listed} are both given: one is a value, the other a list. Leave one of them out."
            raise KlrBenchError(message)
        if not isinstance(values, list) or not values:
            refuse(listed, "a list of values such as [1, 10]", values)
        if len(values) > MOST_VALUES:
            message = f"{listed}: expected at most {MOST_VALUES} values, got {len(values)}. Give fewer."
            raise KlrBenchError(message)
        for position, value in enumerate(values):
            read_value = read(Parameter, value, f"{listed}[{position}]")
            _check_value(known.get(name, build.Parameter()), read_value, listed)
        if single not in given:
            told = [(type(value) is bool, value) for value in values]  # true is not 1
            kept[name] = [value for position, (_, value) in enumerate(told) if told[position] not in told[:position]]
    return kept
