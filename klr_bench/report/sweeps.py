"""Combine the runs of a sweep: swept settings become parameters of the methods' variants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from klr_bench.config.changes import changed_settings
from klr_bench.errors import fail
from klr_bench.parsing import check_choice
from klr_bench.report.labels import join_names
from klr_bench.report.load import FILES, Results, read_results
from klr_bench.report.manifest import Manifest, read_manifest
from klr_bench.results.store import was_run
from klr_bench.results.variants import Variant, is_variant
from klr_bench.yaml_file import EXPONENT

if TYPE_CHECKING:
    import pandas as pd

NAMES = ("experiment", "name")
"""Settings by which the runs of a sweep always differ."""


def swept_settings(folder: Path) -> list[str]:
    """Return the settings of a sweep, such as ["seed"] for the runs <folder>-seed-1 and so on.

    The list is empty if the folder has a run of its own.
    """
    runs = [] if was_run(folder) else [*_runs(folder).values()]
    return _differing(runs) if len(runs) > 1 else []


def read_sweep(folder: Path, over: Sequence[str]) -> Results:
    """Read the runs <folder> and <folder>-... that differ only in the settings `over`, as one.

    Raises KlrBenchError if there are fewer than two of them, or if they differ in other settings.
    """
    named, runs = ",".join(over), _runs(folder)
    if folder in runs and {*_differing([*runs.values()])} - {*over}:
        del runs[folder]  # a run of the experiment as it is, before the sweep
    differing = _differing([*runs.values()])
    for key in over:
        if differing and all(_value(manifest, key) is None for manifest in runs.values()):
            check_choice("over", key, differing)
    if others := [key for key in differing if key not in over]:
        fail(f"over={named}: the runs of {folder.name} also differ in {', '.join(others)}. Add them to over=.")
    values = {run: {key: _value(manifest, key) for key in over} for run, manifest in runs.items()}
    variants = {
        run: Variant(settings)
        for run, settings in values.items()
        if is_variant(settings) and None not in settings.values()
    }
    if len(variants) < 2:
        got = join_names([run.name for run in variants]) or "none"
        example = f"klr-bench run -m experiment={folder.name} {over[0]}=VALUE,VALUE"
        fail(
            f"over={named}: expected at least two runs {folder.name}-... with these settings, got {got}. Run {example}"
        )
    if twice := [run.name for place, run in enumerate(variants) if variants[run] in [*variants.values()][:place]]:
        fail(f"over={named}: the run {twice[0]} has the same values as another one. Remove one of their folders.")
    order = sorted(variants, key=lambda run: variants[run].order)
    return _combined(folder.name, {run: variants[run] for run in order}, over)


def _runs(folder: Path) -> dict[Path, Manifest]:
    folders = sorted(folder.parent.glob("*")) if folder.parent.is_dir() else []
    named = [run for run in folders if f"{run.name}-".startswith(f"{folder.name}-") and was_run(run)]
    manifests = {run: read_manifest(run) for run in named}
    experiment = manifests[folder].experiment_file if folder in manifests else folder.name
    return {run: manifest for run, manifest in manifests.items() if manifest.experiment_file == experiment}


def _settings(manifest: Manifest) -> dict[str, str]:
    pairs = (str(override).lstrip("+").partition("=") for override in manifest.command or ())
    return {key: value for key, _, value in pairs if key not in NAMES}


def _differing(runs: Sequence[Manifest]) -> list[str]:
    settings = [_settings(manifest) for manifest in runs]
    keys = dict.fromkeys(key for pairs in settings for key in pairs)
    return [key for key in keys if len({pairs.get(key) for pairs in settings}) > 1]


def _value(manifest: Manifest, key: str) -> Any:
    """Return the value of a setting from the command line or the configuration, or None."""
    text = _settings(manifest).get(key)
    if text is not None:
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            return text
        is_number = isinstance(value, str) and EXPONENT.fullmatch(value)  # PyYAML reads 1e-05 as text
        return float(value) if is_number else value
    part: Any = manifest.config.model_dump()
    for name in key.split("."):
        part = part.get(name) if isinstance(part, Mapping) else None
    return part


def _combined(name: str, variants: Mapping[Path, Variant], over: Sequence[str]) -> Results:
    runs = {run: read_results(run) for run in variants}
    first, manifests = next(iter(runs.values())), [results.manifest for results in runs.values()]
    columns = {key: [variant[key] for variant in variants.values()] for key in over}  # of values that may be lists
    values = {
        key: [value for n, value in enumerate(column) if value not in column[:n]] for key, column in columns.items()
    }
    algorithms = {stem: entry for manifest in manifests for stem, entry in manifest.config.algorithms.items()}
    sweeps = {stem: lists for manifest in manifests for stem, lists in manifest.config.sweep.items()}
    changes = {
        "title": f"{first.manifest.config.title}, over {', '.join(over)}",
        "algorithms": algorithms,
        "datasets": {stem: entry for manifest in manifests for stem, entry in manifest.config.datasets.items()},
        "sweep": {stem: {**sweeps.get(stem, {}), **values} for stem in algorithms},
    }
    shared = [f"{key}={value}" for key, value in _settings(first.manifest).items() if key not in over]
    manifest = first.manifest.model_copy(
        update={
            "experiment": name,
            "config": first.manifest.config.model_copy(update=changes),
            "changes": changed_settings(shared),
        }
    )
    records, traces, reliability, rows = (_joined(runs, variants, file) for file in ("records", *FILES))
    return Results(manifest, records, traces, reliability, rows, over=over)


def _joined(runs: Mapping[Path, Results], variants: Mapping[Path, Variant], file: str) -> pd.DataFrame:
    """Return the rows of all runs; keys name the run, and variants have the swept settings."""
    import pandas as pd

    frames = []
    for run, results in runs.items():
        frame: pd.DataFrame = getattr(results, file)
        frame = frame.assign(key=[f"{run.name}/{key}" for key in frame["key"]])
        if file == "records":
            combined = [Variant({**variant, **variants[run]}) for variant in frame["variant"]]
            frame["variant"] = pd.Series(combined, dtype="object", index=frame.index)
        frames.append(frame)
    return pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)
