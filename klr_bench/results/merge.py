"""Merge results folders, such as those of an experiment split over several machines.

The key of a cell is a hash of everything that its result depends on, so results with equal keys may differ only in
their times and by rounding.
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
from klr_bench.metrics.labels import METRICS
from klr_bench.printing import is_file_name, shortened, warn
from klr_bench.results.record import FINISHED, Record
from klr_bench.results.store import MAX_NOTE_LENGTH, Store, texts, was_run

MACHINE_METRICS = tuple(name for name, metric in METRICS.items() if metric.stored and metric.of_machine)
"""Metrics that depend on the machine and are therefore not compared."""
ROUNDING = 1e-6
"""Relative and absolute tolerance for two values to count as equal."""
SECTIONS = ("labels", "config", "own_metrics", "configurations")
"""Sections of manifest.yaml that are merged."""


@dataclass
class Merged:
    """Summary of the merge of one experiment."""

    folder: Path
    n_new: int = 0
    n_known: int = 0
    conflicts: list[str] = field(default_factory=list)
    """Messages about results that differ between folders; the first result is kept."""
    notes: list[str] = field(default_factory=list)
    """Messages about cells that the tables omit."""

    def sentence(self) -> str:
        """Return a printable summary of the numbers of new and existing cells."""
        return f"{self.folder.name}: {self.n_new} new cells, {self.n_known} existing cells, in {self.folder}"


def merge(sources: Sequence[Path], into: Path) -> list[Merged]:
    """Merge results folders, or the folders of single experiments, into one results folder.

    A run without cells, such as an empty shard, is named in a warning.  Raises KlrBenchError for a folder without
    results or with a damaged manifest, before anything is written.
    """
    experiments = [(name, folder) for source in sources for name, folder in _experiments(source)]
    for name, folder in experiments:
        if os.path.realpath(folder) == os.path.realpath(into / name):
            fail(f"merge: {folder}: a folder cannot be merged into itself (into={into}). Remove it from the list.")
        _experiment_name(into / name)
    if not experiments:
        fail("merge: expected folders with results, but no cell has been computed in any of them.")
    return [
        _merge_one(into / name, [folder for other, folder in experiments if other == name])
        for name in dict.fromkeys(name for name, _ in experiments)
    ]


def _experiments(source: Path) -> list[tuple[str, Path]]:
    if (source / "cells").is_dir():
        return [(_experiment_name(source), source)]
    folders = [path.parent for path in sorted(source.glob("*/cells")) if path.is_dir()]
    without_cells = [folder for folder in (source, *sorted(source.glob("*/"))) if folder not in folders]
    others = [folder for folder in without_cells if (folder / "manifest.yaml").is_file()]
    for folder in others:
        tables = "it has only tables; merge it into a .csv or .zip file"
        warn(f"{folder}: not merged, because {tables if was_run(folder) else 'no cell has been computed there'}.")
    if not folders and not others:
        fail(f"merge: {source}: expected a results folder or the folder of an experiment, but it has no cells.")
    return [(folder.name, folder) for folder in folders if _experiment_name(folder)]


def _experiment_name(folder: Path) -> str:
    manifest = Store(folder).read_manifest()
    name = manifest.setdefault("experiment", os.path.basename(os.path.realpath(folder)))
    is_valid = {section: isinstance(manifest.setdefault(section, {}), dict) for section in SECTIONS}
    is_valid["experiment"] = isinstance(name, str) and is_file_name(name)
    for key in [key for key, valid in is_valid.items() if not valid]:
        expected = "a name without slashes" if key == "experiment" else "keys and values"
        got = shortened(repr(manifest[key]), 100)
        fail(f"merge: {folder / 'manifest.yaml'}: {key}: expected {expected}, got {got}. Correct the file.")
    return str(name)


def _merge_one(target: Path, folders: Sequence[Path]) -> Merged:
    store, merged = Store(target), Merged(target)
    records = {cell.record.key: cell.record for cell in store.load()[0]}
    for folder in folders:
        cells, unreadable = Store(folder).load()
        merged.conflicts += [f"{folder / 'cells' / name}: cannot be read" for name in unreadable]
        for cell in cells:
            record = cell.record
            before = records.get(record.key)
            is_better = before is None or (record.status in FINISHED and before.status not in FINISHED)
            merged.n_new += before is None
            merged.n_known += before is not None
            if is_better:
                store.write_cell(cell)
                records[record.key] = record
            elif before and before.status in FINISHED and (change := difference(before, record)):
                name = f"{record.algorithm} on {record.dataset}, repeat {record.repeat}"
                merged.conflicts.append(f"{folder / 'cells' / record.key}.json: {name}: {change}")
        merged.conflicts += _merge_selections(target, folder)
        manifest, other = store.read_manifest(), Store(folder).read_manifest()
        merged.conflicts += _different_settings(folder, manifest, other)
        store.write_manifest(_merged_manifest(manifest, other))
    merged.notes = store.rebuild(texts(store.read_manifest().get("configurations"))).notes()
    return merged


def difference(first: Record, other: Record) -> str:
    """Return a description of the first difference between two records, or "".

    Times and differences within ROUNDING are ignored.
    """
    if first.status != other.status:
        return f"status {first.status} and {other.status}"
    for name in sorted(first.metrics.keys() | other.metrics.keys()):
        values = first.metrics.get(name, math.nan), other.metrics.get(name, math.nan)
        if name not in MACHINE_METRICS and not math.isclose(*values, rel_tol=ROUNDING, abs_tol=ROUNDING):
            return f"{name} {values[0]:g} and {values[1]:g}"
    return ""


def _merge_selections(target: Path, folder: Path) -> list[str]:
    """Copy the selection scores that are missing in `target`; return messages about conflicts."""
    conflicts = []
    for path in sorted(folder.glob("selections/*/[!.]*.json")):
        place = target / path.relative_to(folder)
        scores, present = read_checked_json(path), read_checked_json(place)
        if scores is None:
            conflicts.append(f"{path}: cannot be read; its candidates will be scored again if needed")
        elif present is None:
            write_checked_json(place, scores)
        elif not _are_equal(scores, present):
            conflicts.append(f"{path}: its scores differ from those in {place}")
    return conflicts


def _are_equal(first: Any, other: Any) -> bool:
    """Return True if two files of selection scores have equal keys and scores.

    Failed fits are not compared, because a fit may exceed its time limit on one machine only.
    """
    if not (isinstance(first, dict) and isinstance(other, dict) and first.keys() == other.keys()):
        return False
    pairs = [
        (first[key], other[key]) for key in first if isinstance(first[key], float) and isinstance(other[key], float)
    ]
    return all(math.isclose(*pair, rel_tol=ROUNDING, abs_tol=ROUNDING) for pair in pairs)


def _different_settings(folder: Path, manifest: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return a message about the methods whose configuration differs in two manifests."""
    first = texts(manifest.get("configurations"))
    names = [name for name, config in texts(other.get("configurations")).items() if first.get(name, config) != config]
    if not names:
        return []
    methods = shortened(", ".join(names), MAX_NOTE_LENGTH)
    return [f"{folder}: other settings, code or versions than before, so these cells are not listed: {methods}"]


def _merged_manifest(manifest: dict[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    if not manifest:
        return dict(other)
    for section in SECTIONS:
        for group, entries in other.get(section, {}).items():
            present = manifest.setdefault(section, {}).setdefault(group, entries)
            if isinstance(present, dict) and isinstance(entries, dict):
                manifest[section][group] = {**entries, **present}
    changes = [manifest.get("changes"), other.get("changes")]
    if any(changes):
        manifest["changes"] = [*dict.fromkeys(str(name) for part in changes if isinstance(part, list) for name in part)]
    return manifest
