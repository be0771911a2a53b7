"""What an experiment measured: the mean over the repeats of each method on each data set.

Some numbers are made here from those of the records: times, and comparisons of two methods, repeat by repeat.  Which
method is the baseline is what an experiment says under ``against``: for each such number the parameter changes that
give it, ``{two_stage: false}`` or ``{algorithm: l1_fista}``; parameters that another algorithm does not vary count for
nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from klr_bench.config import locations
from klr_bench.instantiate import Parameters
from klr_bench.metrics.metric import Metric
from klr_bench.report.load import Results
from klr_bench.report.manifest import Column, Manifest
from klr_bench.results.variants import Variant

if TYPE_CHECKING:
    import pandas as pd

TIMES = frozenset({"fit_time_s", "pass_time_s", "predict_time_s", "setup_time_s", "settled_s"})
BUSY = 0.1
"""Share of a machine's processor time, used by others, above which times measured on it are those of a busy machine."""
Row = dict[Hashable, Any]
Groups = Mapping[Column, Sequence[Row]]
"""The records of a data set by method."""
SIZES = ("n_train", "n_test", "n_features")
SETTLED = 0.005
"""How far below its final value a settled accuracy may be: half a point."""


class Machine(NamedTuple):
    """A machine as records name it; both are "" where a record does not."""

    host: str
    cpu: str


UNKNOWN = Machine("", "")


@dataclass(frozen=True)
class Conditions:
    """The machines of some fits, and the largest share of one that others used when a fit began, if it is known."""

    machines: frozenset[Machine] = frozenset()
    load: float | None = None

    @property
    def busy(self) -> bool:
        """Whether some fit shared its machine with others."""
        return self.load is not None and self.load > BUSY

    def alike(self, other: Conditions) -> bool:
        """Return True if times are comparable: all from one machine that no other process kept busy."""
        return len(self.machines | other.machines) == 1 and not self.busy and not other.busy


def conditions_of(rows: Iterable[Mapping[Hashable, Any]]) -> Conditions:
    """Return the conditions of some records; those of a frame without the columns are unknown."""
    rows = list(rows)
    loads = [load for row in rows if not math.isnan(load := row.get("load", math.nan))]
    return Conditions(frozenset(_machine(row) for row in rows), max(loads, default=None))


def usual_machine(rows: Iterable[Mapping[Hashable, Any]]) -> Machine:
    """Return the machine of most records, of several the first by name."""
    counted = Counter(_machine(row) for row in rows)
    return min(counted, key=lambda machine: (-counted[machine], machine), default=UNKNOWN)


def _machine(row: Mapping[Hashable, Any]) -> Machine:
    return Machine(str(row.get("host", "")), str(row.get("cpu", "")))


@dataclass(frozen=True)
class Entry:
    """Mean and sample standard deviation over `n` repeats, in the unit of records.csv."""

    n: int
    mean: float | None
    std: float | None
    alike: bool = True
    """Whether it was measured under the conditions of the experiment's other times."""

    @classmethod
    def of(cls, values: Iterable[float]) -> Entry:
        """Summarise some numbers, without those that are missing."""
        known = np.array([value for value in values if not np.isnan(value)])
        if not known.size:
            return cls(0, None, None)
        spread = known.size > 1 and np.isfinite(known).all()
        return cls(known.size, float(known.mean()), float(known.std(ddof=1)) if spread else None)


@dataclass(frozen=True)
class Failures:
    """Repeats that failed with one status, and the message of the first."""

    status: str
    repeats: Sequence[int]
    message: str


@dataclass(frozen=True)
class Method:
    """One algorithm and variant on one data set; `n_ok` of `n_repeats` repeats were successful."""

    algorithm: str
    algorithm_label: str
    """Its print name."""
    variant: Variant
    n_ok: int
    n_repeats: int
    failures: Sequence[Failures]
    n_missing: int
    """Repeats that were asked for and not run yet."""
    entries: Mapping[str, Entry]
    timed_out: bool = False
    """True if no repeat succeeded; the values are then those of repeats that the time limit stopped."""
    conditions: Conditions = field(default_factory=Conditions)
    """Where its fits ran, and how busy others kept these machines."""
    params: Parameters = field(default_factory=dict)
    """Its variant, and the parameters that all of its records share; before the first record, the configured ones."""
    other_sweep: bool = False
    """Whether it comes from another sweep than the experiment's."""

    @property
    def column(self) -> Column:
        """Its algorithm and variant."""
        return self.algorithm, self.variant


@dataclass(frozen=True)
class MeasuredDataset:
    """The methods on one data set, and its records."""

    name: str
    label: str
    methods: Sequence[Method]
    groups: Groups

    @property
    def sizes(self) -> dict[str, float]:
        """The numbers of rows and features of the first fit; empty without fits."""
        rows = (row for rows in self.groups.values() for row in rows if row["n_train"] > 0)
        first = next(rows, None)
        return {name: float(first[name]) for name in SIZES} if first else {}

    def fact(self, metric: str, printed: float) -> Entry | None:
        """Return what the records say of the data set itself, None if nothing; lambda, if a fit has the printed one."""
        rows = [row for rows in self.groups.values() for row in rows]
        if metric == "lam":
            used = {named.get("lam") for row in rows for named in (row["variant"], row["params"])}
            return Entry(len(rows), printed, None) if printed in used else None
        first = next((row for row in rows if all(row[size] > 0 for size in SIZES)), None)
        if first is None:
            return None
        value = first["n_train"] + first["n_test"] if metric == "n_examples" else first[metric]
        return None if np.isnan(value) else Entry(len(rows), float(value), None)


@dataclass(frozen=True)
class Measured:
    """All that an experiment measured; `machine` is the one of most fits."""

    name: str
    manifest: Manifest
    datasets: Sequence[MeasuredDataset]
    machine: Machine
    results_dir: Path | None = None


def measure(results: Results) -> Measured:
    """Return the means of all methods of an experiment.

    Only rows with status ok enter a mean, those that a time limit ended if there are no others; all others, and the
    repeats that were asked for and have no row, are counted.
    """
    manifest = results.manifest
    found: dict[str, dict[Column, list[Row]]] = {}
    for row in with_derived(results.records, results.traces).to_dict("records"):
        found.setdefault(row["dataset"], {}).setdefault((row["algorithm"], row["variant"]), []).append(row)
    known = [name for name in manifest.config.datasets if name in found]
    machine = usual_machine(row for groups in found.values() for rows in groups.values() for row in _counting(rows))
    datasets = [
        MeasuredDataset(name, manifest.dataset_label(name), _methods(name, found[name], manifest, machine), found[name])
        for name in [*known, *sorted(set(found) - set(known))]
    ]
    return Measured(manifest.experiment, manifest, datasets, machine, results.folder and results.folder.parent)


def with_derived(records: pd.DataFrame, traces: pd.DataFrame) -> pd.DataFrame:
    """Return the records with columns setup_time_s and settled_s, NaN if they are unknown.

    setup_time_s is the time of a fit before its pass over the examples.  settled_s is the time to final accuracy: the
    seconds of training until the first checkpoint from which on the test accuracy is at least that of the last
    checkpoint less SETTLED; unknown for a fit that a time limit ended, for its last checkpoint is not its end.
    """
    accuracy = traces[traces["metric"] == "accuracy"].sort_values("t", kind="stable")
    last = accuracy.groupby("key")["value"].transform("last")
    short = accuracy[accuracy["value"] < last - SETTLED - 1e-9]  # the bound itself is reached
    begun = short.groupby("key")["t"].max()  # the last checkpoint that is still too low
    later = accuracy[accuracy["t"] > accuracy["key"].map(begun).fillna(-1)]
    settled = records["key"].map(later.groupby("key")["elapsed_s"].min()).astype(float)
    return records.assign(
        setup_time_s=records["fit_time_s"] - records["pass_time_s"],
        settled_s=settled.where(records["status"] == "ok"),
    )


def _methods(dataset: str, groups: dict[Column, list[Row]], manifest: Manifest, machine: Machine) -> list[Method]:
    asked = manifest.columns() if dataset in manifest.config.datasets else []
    others = _other_sweeps(groups, manifest)
    found = []
    for column in sorted({*groups, *asked}, key=manifest.order):
        rows = groups.get(column, [])
        n_repeats = max(len(rows), manifest.config.repeats if column in asked else 0)
        method = _method(column, rows, n_repeats, groups, manifest, machine)
        if column in others:
            label = f"{method.algorithm_label} ({others[column]})"
            method = replace(method, algorithm_label=label, other_sweep=True)
        found.append(method)
    return found


def _method(
    column: Column, rows: Sequence[Row], n_repeats: int, groups: Groups, manifest: Manifest, machine: Machine
) -> Method:
    algorithm, variant = column
    n_ok, counting = sum(row["status"] == "ok" for row in rows), _counting(rows)
    conditions = conditions_of(counting)
    entries = {}
    for name, metric in manifest.metrics.items():
        if metric.compares:
            changes = (manifest.config.against or {}).get(name)
            values = _compared(groups, column, metric, changes) if rows and changes else []
        else:
            values = [row.get(name, np.nan) for row in counting]
        alike = name not in TIMES or conditions.alike(Conditions(frozenset({machine})))
        entries[name] = replace(Entry.of(values), alike=alike)
    return Method(
        algorithm,
        manifest.algorithm_label(algorithm),
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


def _counting(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that enter a mean: the successful ones, or those that a time limit ended if there are none."""
    return [row for row in rows if row["status"] == "ok"] or [row for row in rows if row["status"] == "timeout"]


def _params(column: Column, rows: Sequence[Row], manifest: Manifest) -> Parameters:
    algorithm, variant = column
    fitted = [row["params"] for row in rows if row["params"]]
    asked = manifest.config.algorithms.get(algorithm)
    first = fitted[0] if fitted else dict(asked.estimator) if asked else {}
    return {name: value for name, value in first.items() if all(p.get(name) == value for p in fitted)} | dict(variant)


def _failures(rows: Sequence[Row]) -> list[Failures]:
    found = []
    for status in dict.fromkeys(row["status"] for row in rows if row["status"] != "ok"):
        failed = [row for row in rows if row["status"] == status]
        message = next((row["message"] for row in failed if row["message"]), "")
        found.append(Failures(status, [int(row["repeat"]) for row in failed], message))
    return found


def _compared(groups: Groups, column: Column, metric: Metric, changes: Parameters) -> list[float]:
    """Return a number that compares a method with its baseline, for each repeat that both have."""
    other = _baseline(groups, column, changes)
    if other is None or other == column:
        return []
    name = metric.compares
    base = {row["repeat"]: row[name] for row in groups[other] if row["status"] == "ok"}
    pairs = [
        (row[name], base[row["repeat"]]) for row in groups[column] if row["status"] == "ok" and row["repeat"] in base
    ]
    if metric.name.endswith("_ratio"):
        return [float(ours / theirs) if theirs else float("nan") for ours, theirs in pairs]
    return [float(ours - theirs) for ours, theirs in pairs]


def _baseline(groups: Groups, column: Column, changes: Parameters) -> Column | None:
    algorithm = str(changes.get("algorithm", column[0]))
    wanted = dict(column[1])
    wanted |= {name: value for name, value in changes.items() if name in wanted or algorithm != column[0]}
    for known in groups:
        alike = known[1].items() <= wanted.items()
        if known[0] == algorithm and alike and (algorithm != column[0] or known[1].keys() == wanted.keys()):
            return known
    return None


def _other_sweeps(columns: Iterable[Column], manifest: Manifest) -> dict[Column, str]:
    """Return the methods of another sweep than the experiment's, each with the difference: "G not swept".

    An algorithm that was run with one sweep alone has no such methods, whatever the experiment's file says.
    """
    swept: dict[str, dict[frozenset[str], list[Column]]] = {}
    for column in columns:
        swept.setdefault(column[0], {}).setdefault(frozenset(column[1]), []).append(column)
    several = {algorithm: found for algorithm, found in swept.items() if len(found) > 1}
    configured = _configured_sweep(manifest.chosen) if several else {}
    differences: dict[Column, str] = {}
    for algorithm, found in several.items():
        candidates = (configured.get(algorithm, set()), manifest.config.sweep.get(algorithm) or ())
        usual = next((names for names in map(frozenset, candidates) if names in found), next(iter(found)))
        for names in found.keys() - {usual}:
            parts = {"not swept": usual - names, "swept": names - usual}
            text = ", ".join(f"{', '.join(sorted(part))} {verb}" for verb, part in parts.items() if part)
            differences |= dict.fromkeys(found[names], text)
    return differences


def _configured_sweep(experiment: str) -> dict[str, set[str]]:
    """Return the parameters that an experiment's file, and those it extends, sweep for each algorithm."""
    searched = locations.folders()
    if experiment not in locations.names("experiment", searched):
        return {}
    content = locations.read(locations.find("experiment", experiment, searched))
    found: dict[str, set[str]] = {}
    for base in content.get("defaults") or ():
        if isinstance(base, str) and base not in ("_self_", experiment):
            found |= _configured_sweep(base)
    sweep = content.get("sweep")
    for algorithm, values in sweep.items() if isinstance(sweep, Mapping) else ():
        found[algorithm] = {*found.get(algorithm, ()), *values} if isinstance(values, Mapping) else set()
    return found
