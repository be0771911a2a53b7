"""Columns of several sweeps in one results folder: which of them are of the experiment as its file has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from klr_bench.experiment.config import files
from klr_bench.report.manifest import Column, Manifest


def other_sweeps(columns: Iterable[Column], manifest: Manifest) -> dict[Column, str]:
    """Return the columns of a sweep other than the experiment's, each with the difference: "G not swept".

    An algorithm that was run with one sweep alone has no such columns, whatever the experiment's file says.
    """
    swept: dict[str, dict[frozenset[str], list[Column]]] = {}
    for column in columns:
        swept.setdefault(column[0], {}).setdefault(frozenset(column[1]), []).append(column)
    several = {algorithm: found for algorithm, found in swept.items() if len(found) > 1}
    configured = _configured(manifest.chosen) if several else {}
    differences: dict[Column, str] = {}
    for algorithm, found in several.items():
        candidates = (configured.get(algorithm, set()), manifest.config.sweep.get(algorithm) or ())
        usual = next((names for names in map(frozenset, candidates) if names in found), next(iter(found)))
        for names in found.keys() - {usual}:
            parts = {"not swept": usual - names, "swept": names - usual}
            text = ", ".join(f"{', '.join(sorted(part))} {verb}" for verb, part in parts.items() if part)
            differences |= dict.fromkeys(found[names], text)
    return differences


def _configured(experiment: str) -> dict[str, set[str]]:
    """Return the parameters that an experiment's file, and those it extends, sweep for each algorithm."""
    searched = files.folders()
    if experiment not in files.names("experiment", searched):
        return {}
    content = files.read(files.find("experiment", experiment, searched))
    found: dict[str, set[str]] = {}
    for base in content.get("defaults") or ():
        if isinstance(base, str) and base not in ("_self_", experiment):
            found |= _configured(base)
    sweep = content.get("sweep")
    for algorithm, values in sweep.items() if isinstance(sweep, Mapping) else ():
        found[algorithm] = {*found.get(algorithm, ()), *values} if isinstance(values, Mapping) else set()
    return found
