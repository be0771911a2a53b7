"""The data sets, algorithms and variants of a run: what a configuration says of each, checked."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from klr_bench.errors import KlrBenchError
from klr_bench.experiment import targets as build
from klr_bench.experiment.config import files as config_files
from klr_bench.experiment.config.schema import LEFT_TO_SELECTION, DataConfig, check_choice, check_type, refuse_unknown

Entries = dict[str, dict[str, Any]]
Sweep = dict[str, dict[str, list[Any]]]

ALGORITHM_KEYS = ("label", "reference", "terms", "estimator", "grid", "time_limit_s")
DATASET_KEYS = (
    *("label", "reference", "format", "train", "test", "n_samples", "n_features", "label_column"),
    *("positive", "scale", "split", "source", "n_train", "multiclass", "only", "derive"),
)
FILE = "file"
FILE_KEYS = ("path", "test_path", "file_format")
FILE_FORMATS = ("svmlight", "csv")


def check_datasets(
    entries: Mapping[str, Any], data: DataConfig, given: Collection[str], searched: Sequence[Path]
) -> Entries:
    """Return the specs of the selected data sets; that of `file` with what `data` says about it."""
    datasets = _selected("dataset", entries, lambda entry: entry.get("format"), given, searched)
    own = {key: value for key, value in asdict(data).items() if key not in ("mirror", "cache")}
    about_file = [key for key, value in own.items() if value is not None]
    if FILE in datasets:
        datasets[FILE] = _own_file(datasets[FILE], data)
    elif about_file:
        key = f"data.{about_file[0]}="
        message = f"{key} is given, but the dataset is not file. Add dataset=file, or leave {key} out."
        raise KlrBenchError(message)
    for stem, spec in datasets.items():
        where = f"datasets.{stem}."
        refuse_unknown(spec, DATASET_KEYS + (FILE_KEYS if stem == FILE else ()), where)
        if spec.get("scale") is not None:
            check_choice(f"{where}scale", check_type(spec["scale"], str, f"{where}scale"), ("minmax",))
    return datasets


def check_algorithms(entries: Mapping[str, Any], given: Collection[str], searched: Sequence[Path]) -> Entries:
    """Return the selected algorithms; parameters that are given one value are no longer in the grid."""

    def target(entry: Mapping[str, Any]) -> Any:
        estimator = entry.get("estimator")
        return estimator.get(build.TARGET) if isinstance(estimator, Mapping) else None

    selected = _selected("algorithm", entries, target, given, searched)
    return {stem: _algorithm(stem, entry, given) for stem, entry in selected.items()}


def check_sweep(
    sweep: Mapping[str, Any], algorithms: Entries, given: Collection[str], searched: Sequence[Path]
) -> Sweep:
    """Return the variants of the selected algorithms, without the parameters that are given one value."""
    kept: Sweep = {}
    for stem, variants in sweep.items():
        variants = check_type({} if variants is None else variants, dict, f"sweep.{stem}")
        if stem not in algorithms:
            config_files.find("algorithm", stem, searched)  # refuses a misspelt one
            continue
        where = f"sweep.{stem}."
        _check_parameters(algorithms[stem]["estimator"], variants, where)
        lists = _value_lists(stem, variants, where, given)
        for name, values in lists.items():
            if LEFT_TO_SELECTION in values and name not in algorithms[stem]["grid"]:
                choices = f"algorithms.{stem}.grid.{name}"
                message = f"{where}{name} holds 'cv', but {choices} has no values to choose from."
                raise KlrBenchError(message)
        if lists:
            kept[stem] = lists
    return kept


def check_against(
    against: Mapping[str, Mapping[str, Any]], sweep: Mapping[str, Any], algorithms: Entries, searched: Sequence[Path]
) -> None:
    """Refuse a comparison with an algorithm that there is none of, or by a parameter that no sweep varies."""
    varied = sorted({name for variants in sweep.values() for name in variants or {}})
    for number, changes in against.items():
        for name, value in changes.items():
            where = f"against.{number}.{name}"
            if name != "algorithm":
                check_choice(where, name, varied)
            elif value not in algorithms:
                config_files.find("algorithm", check_type(value, str, where), searched)  # refuses a misspelt one


def _selected(
    group: str,
    entries: Mapping[str, Any],
    essential: Callable[[Mapping[str, Any]], Any],
    given: Collection[str],
    searched: Sequence[Path],
) -> Entries:
    """Return the entries whose files were selected: those that have the essential key of such a file.

    The others are what an experiment changes in a file that is not selected: left out, unless there is no
    such file, or the command line changes it.
    """
    kept: Entries = {}
    for stem, entry in entries.items():
        if essential(check_type(entry, dict, f"{group}s.{stem}")):
            kept[stem] = entry
            continue
        path = config_files.find(group, stem, searched)
        if not essential(config_files.read(path)):
            expected = "format: ..." if group == "dataset" else "estimator: {_target_: ...}"
            message = f"{path}: expected {expected}, got none."
            raise KlrBenchError(message)
        changed = sorted(key for key in given if key.startswith(f"{group}s.{stem}."))
        if changed:
            message = f"{changed[0]} is given, but {group} {stem!r} is not selected. Add it to {group}=[...]."
            raise KlrBenchError(message)
    if not kept:
        known = ", ".join(config_files.names(group, searched))
        message = f"no {group} is selected: expected {group}=<name> or {group}=[<name>,...]. Known: {known}."
        raise KlrBenchError(message)
    return kept


def _own_file(spec: Mapping[str, Any], data: DataConfig) -> dict[str, Any]:
    """Return the spec of dataset `file` with what the user said about the file."""
    if data.path is None:
        message = "dataset=file: expected data.path=<your LIBSVM or CSV file>, got none."
        raise KlrBenchError(message)
    if data.format is not None:
        check_choice("data.format", data.format, FILE_FORMATS)
    if data.test_path is not None and data.test_size is not None:
        message = (
            "data.test_path= and data.test_size= are both given: a file to test on, or a share of the rows? "
            "Leave one of them out."
        )
        raise KlrBenchError(message)
    split: dict[str, Any] | None = None
    if data.test_path is not None:
        split = {"official": True}
    elif data.test_size is not None:
        split = {"test_size": data.test_size}
    said = {
        "path": data.path,
        "test_path": data.test_path,
        "file_format": data.format,
        "n_features": data.n_features,
        "label_column": _column(data.label),
        "positive": data.positive,
        "multiclass": data.multiclass,
        "split": split,
    }
    return {**spec, **{key: value for key, value in said.items() if value is not None}}


def _column(label: int | str | None) -> int | str | None:
    """Return the position or the name of a column: text of digits is a position."""
    return int(label) if isinstance(label, str) and re.fullmatch(r"-?\d+", label) else label


def _algorithm(stem: str, entry: Mapping[str, Any], given: Collection[str]) -> dict[str, Any]:
    where = f"algorithms.{stem}."
    refuse_unknown(entry, ALGORITHM_KEYS, where)
    estimator = entry["estimator"]
    _check_parameters(estimator, (name for name in estimator if name != build.TARGET), f"{where}estimator.")
    grid = check_type(entry.get("grid") or {}, dict, f"{where}grid")
    _check_parameters(estimator, grid, f"{where}grid.")
    limit = check_type(entry.get("time_limit_s"), float | None, f"{where}time_limit_s")
    if limit is not None and limit <= 0:
        message = f"{where}time_limit_s: expected seconds above 0, or null, got {limit!r}."
        raise KlrBenchError(message)
    return {
        "label": check_type(entry.get("label", stem), str, f"{where}label"),
        "reference": check_type(entry.get("reference") or "", str, f"{where}reference"),
        "terms": _terms(entry, estimator, f"{where}terms"),
        "estimator": dict(estimator),
        "grid": _value_lists(stem, grid, f"{where}grid.", given),
        "time_limit_s": limit,
    }


def _terms(entry: Mapping[str, Any], estimator: Mapping[str, Any], where: str) -> dict[str, str]:
    """Return the paper's names of parameters, for labels."""
    terms = check_type(entry.get("terms") or {}, dict, where)
    _check_parameters(estimator, terms, f"{where}.")
    return {name: check_type(term, str, f"{where}.{name}") for name, term in terms.items()}


def _check_parameters(estimator: Mapping[str, Any], names: Iterable[str], where: str) -> None:
    """Refuse a name that is no parameter of the estimator's constructor."""
    known = build.parameters(estimator[build.TARGET])
    if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in known.values()):
        refuse_unknown(names, known, where)


def _value_lists(stem: str, lists: Mapping[str, Any], where: str, given: Collection[str]) -> dict[str, list[Any]]:
    """Return the lists of values without repetitions, and without parameters that are given one value."""
    kept: dict[str, list[Any]] = {}
    for name, values in lists.items():
        single, listed = f"algorithms.{stem}.estimator.{name}", f"{where}{name}"
        if single in given and listed in given:
            message = f"{single} and {listed} are both given: one value, or a list? Leave one of them out."
            raise KlrBenchError(message)
        if not isinstance(values, list) or not values:
            message = f"{listed}: expected a list of values such as [1, 10], got {values!r}."
            raise KlrBenchError(message)
        if single not in given:
            kept[name] = [value for position, value in enumerate(values) if value not in values[:position]]
    return kept
