"""Compute the means over the repeats for each method and data set of an experiment.

Some metrics compare a method with a baseline, repeat by repeat.  For each of them, ``against`` of the experiment has
the parameter changes that lead to the baseline: ``{two_stage: false}`` or ``{algorithm: l1_fista}``; parameters that
another algorithm does not vary are ignored.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from klr_bench.config.presentation import Presentation
from klr_bench.instantiate import Parameters
from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.report.derived import with_derived
from klr_bench.report.load import Results
from klr_bench.report.manifest import Column, Manifest
from klr_bench.results.variants import Variant

TIMES = frozenset(name for name, metric in METRICS.items() if metric.unit == "s")
"""Metrics that are times."""
BUSY = 0.1
"""Share of CPU time used by other processes above which fit times are not comparable."""
Row = dict[Hashable, Any]
Groups = Mapping[Column, Sequence[Row]]
"""Records of a data set, grouped by method."""
SIZES = ("n_train", "n_test", "n_features")


class Machine(NamedTuple):
    """Host name and CPU of a machine; both are empty if unknown."""

    host: str
    cpu: str


UNKNOWN = Machine("", "")


@dataclass(frozen=True)
class Conditions:
    """Machines on which a set of fits ran, and the highest load by other processes."""

    machines: frozenset[Machine] = frozenset()
    load: float | None = None

    @property
    def busy(self) -> bool:
        """True if other processes used the machine during at least one fit."""
        return self.load is not None and self.load > BUSY

    def alike(self, other: Conditions) -> bool:
        """Return True if all times were measured on one machine without other busy processes."""
        # a resumed pass over a stream has the names of all its hosts, separated by "; "
        is_one = len(self.machines | other.machines) == 1 and not any("; " in host for host, _ in self.machines)
        return is_one and not self.busy and not other.busy


def conditions_of(rows: Iterable[Mapping[Hashable, Any]]) -> Conditions:
    """Return the machines and the highest load of the records that have a training time."""
    rows = _timed(rows)
    loads = [load for row in rows if not math.isnan(load := row.get("load", math.nan))]
    return Conditions(frozenset(map(_machine, rows)), max(loads, default=None))


def _timed(rows: Iterable[Mapping[Hashable, Any]]) -> list[Mapping[Hashable, Any]]:
    """Return the records with a training time.

    A fit that was killed has neither a time nor a machine.
    """
    return [row for row in rows if not math.isnan(row.get("fit_time_s", math.nan))]


def _machine(row: Mapping[Hashable, Any]) -> Machine:
    return Machine(str(row.get("host", "")), str(row.get("cpu", "")))


@dataclass(frozen=True)
class Entry:
    """Mean and sample standard deviation over `n` repeats, in the unit of records.csv."""

    n: int
    mean: float | None
    std: float | None
    alike: bool = True
    """True if the value was measured under the same conditions as the experiment's other times."""
    values: Mapping[Hashable, float] = field(default_factory=dict, compare=False)
    """The values by split, if they are known."""
    ratio: float = 0.0
    """n_test / n_train if each repeat splits the data anew, infinite if unknown; 0 for other splits and for times."""

    @classmethod
    def of(cls, values: Iterable[float] | Mapping[Hashable, float], *, alike: bool = True, ratio: float = 0.0) -> Entry:
        """Return the mean and standard deviation of the given values, ignoring NaN."""
        by_split = values if isinstance(values, Mapping) else dict(enumerate(values))
        by_split = {split: value for split, value in by_split.items() if not math.isnan(value)}
        numbers = np.array([*by_split.values()])
        if not numbers.size:
            return cls(0, None, None, alike, ratio=ratio)
        spread = numbers.size > 1 and np.isfinite(numbers).all()
        if spread and np.ptp(numbers) == 0:  # rounding would give equal values a small deviation
            return cls(numbers.size, float(numbers[0]), 0.0, alike, by_split, ratio)
        std = float(numbers.std(ddof=1)) if spread else None
        return cls(numbers.size, float(numbers.mean()), std, alike, by_split, ratio)


class Failures(NamedTuple):
    """Repeats that failed with the same status, and the error message of the first one."""

    status: str
    repeats: Sequence[int]
    message: str


@dataclass(frozen=True)
class Method:
    """Results of one algorithm and variant on one data set; `n_ok` repeats were successful."""

    algorithm: str
    presentation: Presentation
    variant: Variant
    n_ok: int
    n_repeats: int
    failures: Sequence[Failures]
    n_missing: int
    """Requested repeats that have not been run yet."""
    entries: Mapping[str, Entry]
    timed_out: bool = False
    """True if no repeat succeeded; the values are then those of repeats stopped by the time limit."""
    conditions: Conditions = field(default_factory=Conditions)
    params: Parameters = field(default_factory=dict)
    """The variant and the parameters that all records share; without records, the configured ones."""

    @property
    def algorithm_label(self) -> str:
        """The display name of the algorithm."""
        return self.presentation.label or self.algorithm

    @property
    def column(self) -> Column:
        """The algorithm and its variant."""
        return self.algorithm, self.variant


@dataclass(frozen=True)
class MeasuredDataset:
    """Results of all methods on one data set, with their records."""

    name: str
    label: str
    methods: Sequence[Method]
    groups: Groups

    @property
    def sizes(self) -> dict[str, float]:
        """Numbers of rows and features in the first fit; empty if there are no fits."""
        first = next((row for rows in self.groups.values() for row in rows if row["n_train"] > 0), None)
        return {name: float(first[name]) for name in SIZES} if first else {}

    def fact(self, metric: str, printed: float) -> Entry | None:
        """Return a measured property of the data set, or None.

        For ``metric="lam"`` it is the printed value if at least one fit used it.
        """
        rows = [row for rows in self.groups.values() for row in rows]
        if metric == "lam":
            used = {params.get("lam") for row in rows for params in (row["variant"], row["params"])}
            return Entry(len(rows), printed, None) if printed in used else None
        first = next((row for row in rows if all(row[size] > 0 for size in SIZES)), None)
        if first is None:
            return None
        value = first["n_train"] + first["n_test"] if metric == "n_examples" else first[metric]
        return None if np.isnan(value) else Entry(len(rows), float(value), None)


@dataclass(frozen=True)
class Measured:
    """Means of an experiment; `machine` is the machine on which most fits ran."""

    name: str
    manifest: Manifest
    datasets: Sequence[MeasuredDataset]
    machine: Machine
    results_dir: Path | None = None


def measure(results: Results) -> Measured:
    """Compute the means of all methods of an experiment.

    A mean is over the rows with status ok; if there are none, over those that a time limit stopped.  Other rows, and
    requested repeats without a row, are counted.
    """
    manifest = results.manifest
    groups: dict[str, dict[Column, list[Row]]] = {}
    for row in with_derived(results).to_dict("records"):
        groups.setdefault(row["dataset"], {}).setdefault((row["algorithm"], row["variant"]), []).append(row)
    names = [name for name in manifest.config.datasets if name in groups]
    names += sorted(set(groups) - set(names))
    machines = Counter(
        _machine(row) for name in names for rows in groups[name].values() for row in _timed(counted(rows))
    )
    machine = min(machines, key=lambda machine: (-machines[machine], machine), default=UNKNOWN)
    algorithms = [*manifest.config.algorithms, *(algorithm for name in names for algorithm, _ in groups[name])]
    presentations = {algorithm: manifest.presentation(algorithm) for algorithm in dict.fromkeys(algorithms)}
    methods = {name: _methods(name, groups[name], manifest, machine, presentations) for name in names}
    datasets = [MeasuredDataset(name, manifest.dataset_label(name), methods[name], groups[name]) for name in names]
    return Measured(manifest.experiment, manifest, datasets, machine, results.folder and results.folder.parent)


def _methods(
    dataset: str,
    groups: dict[Column, list[Row]],
    manifest: Manifest,
    machine: Machine,
    presentations: Mapping[str, Presentation],
) -> list[Method]:
    configured = manifest.configured_name(dataset)
    requested = manifest.columns(configured) if configured in manifest.config.datasets else []
    is_resampled = manifest.resampled(dataset) is not False
    methods = []
    for column in sorted({*groups, *requested}, key=manifest.order):
        algorithm, variant = column
        rows = groups.get(column, [])
        counting = counted(rows)
        n_ok = sum(row["status"] == "ok" for row in rows)
        n_repeats = max(len(rows), manifest.config.repeats if column in requested else 0)
        conditions = conditions_of(counting)
        alike = conditions.alike(Conditions(frozenset({machine})))
        ratio = max(map(split_ratio, counting), default=0.0) if is_resampled else 0.0
        entries, splits = {}, [split_of(row) for row in counting]
        for name, metric in manifest.metrics.items():
            values = {split: row.get(name, math.nan) for split, row in zip(splits, counting, strict=True)}
            if metric.compares:
                values = _differences_from_baseline(groups, column, metric, manifest.config.against.get(name, {}))
            is_time = name in TIMES
            entries[name] = Entry.of(values, alike=alike or not is_time, ratio=0.0 if is_time else ratio)
        method = Method(
            algorithm,
            presentations[algorithm],
            variant,
            n_ok,
            n_repeats,
            _failures(rows),
            n_repeats - len(rows),
            entries,
            timed_out=bool(counting and not n_ok),
            conditions=conditions,
            params=_params(column, rows, manifest),
        )
        methods.append(method)
    return methods


def split_of(row: Mapping[Hashable, Any]) -> Hashable:
    """Return the repeat, seed and numbers of rows, which identify a split of a data set."""
    return tuple(str(row.get(name, "")) for name in ("repeat", "seed", "n_train", "n_test"))


def split_ratio(row: Mapping[Hashable, Any]) -> float:
    """Return n_test / n_train of a record, or infinity if unknown."""
    n_train, n_test = (row.get(name, math.nan) for name in ("n_train", "n_test"))
    return n_test / n_train if n_train > 0 and n_test >= 0 else math.inf


def counted(rows: Sequence[Row]) -> list[Row]:
    """Return the successful rows, or the rows stopped by the time limit if none succeeded."""
    return [row for row in rows if row["status"] == "ok"] or [row for row in rows if row["status"] == "timeout"]


def _params(column: Column, rows: Sequence[Row], manifest: Manifest) -> Parameters:
    algorithm, variant = column
    fitted = [row["params"] for row in rows if row["params"]]
    if not fitted and algorithm in manifest.config.algorithms:
        fitted = [manifest.config.algorithms[algorithm].estimator]
    first = fitted[0] if fitted else {}
    return {name: value for name, value in first.items() if all(p.get(name) == value for p in fitted)} | dict(variant)


def _failures(rows: Sequence[Row]) -> list[Failures]:
    failures = []
    for status in dict.fromkeys(row["status"] for row in rows if row["status"] != "ok"):
        failed = [row for row in rows if row["status"] == status]
        message = next((row["message"] for row in failed if row["message"]), "")
        failures.append(Failures(status, [int(row["repeat"]) for row in failed], message))
    return failures


def _differences_from_baseline(
    groups: Groups, column: Column, metric: Metric, changes: Parameters
) -> dict[Hashable, float]:
    algorithm = str(changes.get("algorithm", column[0]))
    other = algorithm != column[0]
    wanted = dict(column[1]) | {name: value for name, value in changes.items() if name in column[1] or other}
    candidates = [method for method in groups if method[0] == algorithm and method[1].items() <= wanted.items()]
    baseline = next((method for method in candidates if other or method[1].keys() == wanted.keys()), column)
    if baseline == column or column not in groups:
        return {}
    ours, theirs = (
        {split_of(row): row[metric.compares] for row in groups[method] if row["status"] == "ok"}
        for method in (column, baseline)
    )
    pairs = {split: (value, theirs[split]) for split, value in ours.items() if split in theirs}
    if metric.name.endswith("_ratio"):
        return {split: float(value / base) if base else math.nan for split, (value, base) in pairs.items()}
    return {split: float(value - base) for split, (value, base) in pairs.items()}
