"""Of what source, and of what machine, the records are that stand beside the papers' numbers and claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from klr_bench.report.conditions import UNKNOWN as UNKNOWN_MACHINE
from klr_bench.report.conditions import conditions_of
from klr_bench.report.load import Results
from klr_bench.report.manifest import Manifest

UNKNOWN = "not known"
SHOWN = 10
"""Characters of a commit."""


def origin(found: Mapping[str, Results]) -> list[str]:
    """Return a sentence on the commits and machines of some experiments, [] where there is no experiment."""
    if not found:
        return []
    commits = Counter(_commit(results) for results in found.values())
    machines: Counter[str] = Counter()
    for results in found.values():
        machines.update(_machines(results))
    total = _counted(len(found))
    return [f"Records of {total}. {_spread('commit', commits)}. {_spread('machine', machines)}."]


def source_of(manifest: Manifest) -> tuple[str, bool]:
    """Return the commit of the source that ran, "" where it is not known, and whether it had changes besides.

    Earlier versions wrote these as <commit>+changes.
    """
    commit, plus, _ = str(manifest.git_commit or "").partition("+")
    return commit[:SHOWN], bool(plus or manifest.changed)


def _commit(results: Results) -> str:
    commit, changed = source_of(results.manifest)
    return (commit + (" with changes" if changed else "")) if commit else UNKNOWN


def _machines(results: Results) -> set[str]:
    measured = results.records[results.records["fit_time_s"].notna()]  # others have ended with their worker, unmeasured
    found = conditions_of(measured.to_dict("records")).machines or {UNKNOWN_MACHINE}
    return {UNKNOWN if one == UNKNOWN_MACHINE else f"{one.cpu} ({one.host})" for one in found}


def _spread(what: str, counted: Counter[str]) -> str:
    """Return the one value that all have, or each with the number of experiments that have it."""
    if len(counted) == 1:
        return f"One {what}: {next(iter(counted))}"
    listed = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    return f"{len(counted)} {what}s: " + "; ".join(f"{value}, {_counted(count)}" for value, count in listed)


def _counted(number: int) -> str:
    return f"{number} experiment" + ("" if number == 1 else "s")
