"""The data sets, algorithms and swept values that a run selects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from klr_bench.errors import KlrBenchError, located
from klr_bench.experiment.config import files as config_files
from klr_bench.experiment.config.algorithms import check_names, resolve_algorithm, value_lists
from klr_bench.experiment.config.datasets import is_own_file, resolve_dataset, with_own_file
from klr_bench.experiment.config.generators import check_generators
from klr_bench.experiment.config.models import (
    LEFT_TO_SELECTION,
    AlgorithmConfig,
    AlgorithmEntry,
    DataConfig,
    DatasetConfig,
    DatasetEntry,
    Sweep,
)
from klr_bench.experiment.config.parsing import parse, refuse
from klr_bench.experiment.targets import TARGET, Parameters

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
        message = (
            f"{key} is given, but the dataset is not file. Add experiment=own_file (or dataset=file), or leave {key} "
            "out."
        )
        raise KlrBenchError(message)
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
                message = f"{where}{name}: expected {choices} to choose from, for it holds 'cv', got none."
                raise KlrBenchError(message)
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
            message = f"{path}: expected {expected}, got none."
            raise KlrBenchError(message)
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
        message = f"no {group} is selected: expected {group}=<name> or {group}=[<name>,...]. Known: {known}."
        raise KlrBenchError(message)
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
        message = f"{changed[0]} is given, but {group} {stem!r} is not selected. Add it to {group}=[...]."
        raise KlrBenchError(message)
