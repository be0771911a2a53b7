"""Results folders joined: the shards of an experiment, or its halves that ran at two sites.

The key of a cell holds all that its result depends on, so that cells of one key are one cell.  Their times may differ,
and their numbers by rounding; by more they must not.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klr_bench.errors import fail
from klr_bench.files import read_checked_json, write_checked_json
from klr_bench.printing import is_file_name, shortened
from klr_bench.results.record import CellFile, Record
from klr_bench.results.store import FINISHED, Store

OF_MACHINE = ("fit_time_s", "pass_time_s", "predict_time_s", "peak_memory_mb", "load")
"""Numbers of a cell that tell of the machine."""
ROUNDING = 1e-6
"""Relative difference of two numbers that counts as none."""
SECTIONS = ("labels", "config")
"""Sections of a manifest that are joined."""


@dataclass
class Merged:
    """What became of the cells of an experiment."""

    folder: Path
    n_new: int = 0
    n_known: int = 0
    conflicts: list[str] = field(default_factory=list)
    """What is different in two folders; what came first is kept."""

    def sentence(self) -> str:
        """Return what was done, in words."""
        return f"{self.folder.name}: {self.n_new} new cells, {self.n_known} there already, in {self.folder}"


def merge(sources: Sequence[Path], into: Path) -> list[Merged]:
    """Join the experiments of some results folders, or folders of experiments, in a results folder.

    Raises KlrBenchError for a folder that holds no results, or whose manifest is damaged, before anything is written.
    """
    found = [(name, folder) for source in sources for name, folder in _experiments(source).items()]
    names = dict.fromkeys(name for name, _ in found)
    for name, folder in found:
        if os.path.realpath(folder) == os.path.realpath(into / name):
            fail(f"merge: {folder}: expected another folder than into={into}, which keeps its own. Leave it out.")
        _manifest(into / name)
    return [_merge_one(into / name, [folder for other, folder in found if other == name]) for name in names]


def _experiments(source: Path) -> dict[str, Path]:
    """Return the folders of the experiments in a results folder, or the one that it is, by name."""
    if (source / "cells").is_dir():
        return {_manifest(source)["experiment"]: source}
    places = sorted(source.iterdir()) if source.is_dir() else []
    folders = [place for place in places if (place / "cells").is_dir()]
    if not folders:
        fail(f"merge: {source}: expected a results folder, or the folder of an experiment in it, found no cells.")
    return {folder.name: folder for folder in folders if _manifest(folder)}


def _manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder, with the name of the experiment.

    Raises KlrBenchError for a name that is not a file name, and for sections that are not mappings.
    """
    manifest = {"experiment": os.path.basename(os.path.realpath(folder))} | Store(folder).read_manifest()
    wrong = next((name for name in SECTIONS if not isinstance(manifest.get(name, {}), dict)), None)
    expected = "keys and values"
    if not isinstance(manifest["experiment"], str) or not is_file_name(manifest["experiment"]):
        wrong, expected = "experiment", "a name without slashes, which may be part of the name of a file"
    if wrong:
        got = shortened(repr(manifest[wrong]), 100)
        fail(f"merge: {folder / 'manifest.yaml'}: {wrong}: expected {expected}, got {got}. Correct the file.")
    return manifest


def _merge_one(target: Path, folders: Sequence[Path]) -> Merged:
    store, merged = Store(target), Merged(target)
    known = {cell.record.key: cell for cell in store.load()[0]}
    for folder in folders:
        cells, unreadable = Store(folder).load()
        merged.conflicts += [f"{folder / 'cells' / name}: cannot be read" for name in unreadable]
        for cell in cells:
            before = known.get(cell.record.key)
            if before is None or (_rank(cell) > _rank(before)):
                store.write_cell(cell)
                known[cell.record.key] = cell
                merged.n_new += before is None
            merged.n_known += before is not None
            if before is not None and _rank(cell) == _rank(before) and (what := difference(before.record, cell.record)):
                merged.conflicts.append(f"{folder / 'cells' / cell.record.key}.json: {_named(cell.record)}: {what}")
        merged.conflicts += _merge_selections(target, folder)
        store.write_manifest(_joined(store.read_manifest(), Store(folder).read_manifest()))
    store.rebuild()
    return merged


def _rank(cell: CellFile) -> bool:
    """Return what makes one cell better than another one with its key: that it is finished."""
    return cell.record.status in FINISHED


def difference(one: Record, other: Record) -> str:
    """Return what is different in two records of one key, but for times and rounding; "" where nothing is."""
    if one.status != other.status:
        return f"status {one.status} and {other.status}"
    for name in sorted(one.metrics.keys() | other.metrics.keys()):
        values = one.metrics.get(name, math.nan), other.metrics.get(name, math.nan)
        if name not in OF_MACHINE and not math.isclose(*values, rel_tol=ROUNDING, abs_tol=ROUNDING):
            return f"{name} {values[0]:g} and {values[1]:g}"
    return ""


def _named(record: Record) -> str:
    return f"{record.algorithm} on {record.dataset}, repeat {record.repeat}"


def _merge_selections(target: Path, folder: Path) -> list[str]:
    """Copy the scores of selections that the target does not have; return where it has other ones."""
    conflicts = []
    for path in sorted(folder.glob("selections/*/[!.]*.json")):
        place, content = target / path.relative_to(folder), read_checked_json(path)
        known = read_checked_json(place)
        if content is None:
            conflicts.append(f"{path}: cannot be read; its candidates are scored again when they are needed")
        elif known is None:
            write_checked_json(place, content)
        elif not _equal_scores(content, known):
            conflicts.append(f"{path}: other scores than in {place}")
    return conflicts


def _equal_scores(one: Any, other: Any) -> bool:
    if not (isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys()):
        return False
    numbers = [(one[key], other[key]) for key in one if isinstance(one[key], float) and isinstance(other[key], float)]
    return all(math.isclose(*pair, rel_tol=ROUNDING, abs_tol=ROUNDING) for pair in numbers)


def _joined(manifest: dict[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest with the labels of another one, and the sections of its configuration that it lacks."""
    if not manifest:
        return dict(other)
    for section in SECTIONS:
        for group, entries in other.get(section, {}).items():
            mine = manifest.setdefault(section, {}).setdefault(group, entries)
            if isinstance(mine, dict) and isinstance(entries, dict):
                manifest[section][group] = {**entries, **mine}
    return manifest
