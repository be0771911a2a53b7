"""Differences between two runs in settings, fit parameters and cells."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from klr_bench.errors import sanitize
from klr_bench.report.compare.runs import Pairing, Run, cells_of_both, flat
from klr_bench.report.labels import NONE, join_names
from klr_bench.report.measured import conditions_of
from klr_bench.results.merge import ROUNDING
from klr_bench.results.record import COLUMNS, FINISHED

LONGEST = 60
"""Maximum number of characters of a displayed value."""
SECTIONS = {"datasets": "left_out", "algorithms": "sweep"}
"""Sections of the configuration with named entries, each with another section that has the same names."""
SHOWN_ELSEWHERE = re.compile(r"experiment|started|updated|config\.(seed|name|experiment|results_dir)|labels\b.*")
"""Manifest keys that are reported elsewhere or do not describe results."""
NO_EFFECT = re.compile(
    r"config\.(title|n_jobs|shard|force|figures|metrics\b.*|against\b.*|parallel\b.*|data\.(mirror|cache|path|test_path)"
    r"|(datasets|algorithms)\.[^.]*\.(label|reference)"
    r"|datasets\.[^.]*\.source\.(name|reference|path|test_path|.*\.?(url|max_bytes)))"
)
"""Manifest keys that can affect only times."""


class Setting(NamedTuple):
    """Setting that differs between the runs: its dotted key and both values as text."""

    key: str
    first: str
    second: str
    has_effect: bool
    """True if the setting may affect metrics."""


def setting_differences(first: Run, second: Run) -> list[Setting]:
    """Return the settings that differ; those that can affect only times come last."""
    flat_a, flat_b = (flat(run.content) for run in (first, second))
    hidden = []
    records = [[row for rows in run.methods.values() for row in rows.values()] for run in (first, second)]
    seeds = [{f"{row['seed']:.0f}" for row in rows} for rows in records]
    machines = [{", ".join(filter(None, machine)) for machine in conditions_of(rows).machines} for rows in records]
    names = {"seed": seeds, "machine of the records": machines}
    pairs = {name: ("; ".join(sorted(ours)), "; ".join(sorted(theirs))) for name, (ours, theirs) in names.items()}
    for section, other_section in SECTIONS.items():
        ours, theirs = (getattr(run.manifest.config, section) for run in (first, second))
        alone = [name for name in ours if name not in theirs], [name for name in theirs if name not in ours]
        hidden += [f"config.{part}.{name}." for part in (section, other_section) for names in alone for name in names]
        pairs[f"{section} in one run only"] = ", ".join(alone[0]) or NONE, ", ".join(alone[1]) or NONE
    for key in sorted(dict.fromkeys([*flat_a, *flat_b]), key=lambda key: key.startswith("config.")):
        if not SHOWN_ELSEWHERE.fullmatch(key) and not f"{key}.".startswith(tuple(hidden)):
            pairs[key] = _text(flat_a.get(key)), _text(flat_b.get(key))
    settings = [
        Setting(sanitize(key.removeprefix("config."), LONGEST), *_cut(*texts), has_effect=not NO_EFFECT.fullmatch(key))
        for key, texts in pairs.items()
        if texts[0] != texts[1]
    ]
    return sorted(settings, key=lambda setting: not setting.has_effect)


def _text(value: Any) -> str:
    if value is None or value in ([], {}):
        return NONE
    if isinstance(value, float):
        return f"{value:.9g}"
    return value if isinstance(value, str) else json.dumps(value, default=str, skipkeys=True)


def _cut(first: str, second: str) -> tuple[str, str]:
    """Shorten two strings so that the first difference between them remains visible."""
    common = next((at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
    if max(len(first), len(second)) > LONGEST and common > LONGEST // 2:
        first, second = (f"...{text[common - 10 :]}" for text in (first, second))
    return sanitize(first, LONGEST), sanitize(second, LONGEST)


def parameter_differences(
    first: Run, second: Run, pairings: Mapping[str, Pairing]
) -> dict[tuple[str, str, str], list[str]]:
    """Return the fit parameters that differ, with both values and the affected methods.

    If repeats are paired, the values of each repeat are compared, otherwise all values of a method.
    """
    parameters: dict[tuple[str, str, str], list[str]] = {}
    for method, rows in first.methods.items():
        others = second.methods.get(method, {})
        if not others:
            continue
        both = sorted(rows.keys() & others.keys()) if pairings[method[0]].kind == "paired" else []
        params = [[side[repeat]["params"] for repeat in both or side] for side in (rows, others)]
        for name in dict.fromkeys(name for side in params for values in side for name in values):
            ours, theirs = ([_text(values.get(name)) for values in side] for side in params)
            if ours != theirs if both else set(ours) != set(theirs):
                texts = (join_names(list(dict.fromkeys(side)), most=3) for side in (ours, theirs))
                text_a, text_b = (sanitize(text, LONGEST) for text in texts)
                parameters.setdefault((sanitize(name, LONGEST), text_a, text_b), []).append(first.label(method))
    return parameters


@dataclass
class Cells:
    """Cells of two runs; a cell is (data set, algorithm, variant, repeat)."""

    unmatched: tuple[Mapping[str, int], Mapping[str, int]]
    """For each run, the number of cells missing in the other run, per method or data set."""
    measured: tuple[Sequence[str], Sequence[str]]
    """For each run, the metrics missing in the other run."""
    n_both: int = 0
    n_equal_keys: int = 0
    n_equal_numbers: int = 0
    """Number of shared cells whose metrics are equal up to rounding, except times and memory."""
    conflicts: list[list[str]] = field(default_factory=list)
    """Method, repeat, metric and both values of cells with equal keys but different metrics.

    Cells stopped by a time limit are excluded, because they depend on the speed of the machine.
    """
    discrepancies: Counter[str] = field(default_factory=Counter)
    """Number of cells that differ although seed, data and split are equal, per metric or "status"."""

    @property
    def equal(self) -> bool:
        """True if both runs have the same cells with the same keys and metrics."""
        same = self.n_both == self.n_equal_keys == self.n_equal_numbers
        return same and not any((*self.unmatched, *self.measured))


def compare_cells(first: Run, second: Run, pairings: Mapping[str, Pairing]) -> Cells:
    """Compare the cells of two runs: which cells they share, and which of these are equal."""
    ours, theirs = _measured(first), _measured(second)
    unmatched = _unmatched(first, second), _unmatched(second, first)
    cells = Cells(unmatched, (sorted(ours - theirs), sorted(theirs - ours)))
    for method, repeat, cell_a, cell_b in cells_of_both(first, second):
        equal_keys, same_status = cell_a["key"] == cell_b["key"], cell_a["status"] == cell_b["status"]
        names = sorted(ours & theirs) if cell_a["status"] in FINISHED else []
        different = [name for name in names if not is_equal(cell_a[name], cell_b[name])] if same_status else ["status"]
        cells.n_both += 1
        cells.n_equal_keys += equal_keys
        cells.n_equal_numbers += not different
        if pairings[method[0]].kind == "paired":
            cells.discrepancies.update(different)
        if different and equal_keys and same_status and cell_a["status"] != "timeout":
            name = different[0]
            values = f"{cell_a[name]:.6g}", f"{cell_b[name]:.6g}"
            cells.conflicts.append([first.label(method), str(repeat), sanitize(name), *values])
    return cells


def is_equal(first: float, second: float) -> bool:
    """Return True if two values are equal up to rounding, or both are missing."""
    return (math.isnan(first) and math.isnan(second)) or math.isclose(first, second, rel_tol=ROUNDING, abs_tol=ROUNDING)


def _measured(run: Run) -> set[str]:
    frame, metrics = run.results.records, run.manifest.metrics
    names = [name for name in frame.columns if name in metrics or name not in COLUMNS]
    of_machine = {name for name, metric in metrics.items() if metric.of_machine}
    return {name for name in names if name not in of_machine and frame[name].notna().any()}


def _unmatched(run: Run, other: Run) -> Counter[str]:
    datasets = {dataset for dataset, _ in other.methods}
    counts: Counter[str] = Counter()
    for method, rows in run.methods.items():
        label = run.label(method) if method[0] in datasets else f"data set {run.manifest.dataset_label(method[0])}"
        counts[label] += len(rows.keys() - other.methods.get(method, {}).keys())
    return +counts
