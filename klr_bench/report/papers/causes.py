"""Causes of differences, judged by comparisons of numbers of the runs that they cite."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from klr_bench.report.measured import Measured
from klr_bench.report.papers.candidates import Candidate
from klr_bench.report.papers.claims import ClaimComparison, compare
from klr_bench.report.papers.model import Cause


@dataclass(frozen=True)
class JudgedCause:
    """A cause of a difference, and the comparisons that it requires."""

    cause: Cause
    comparisons: Sequence[ClaimComparison]
    n_impossible: int = 0
    """Number of statements without results to compare, and of comparisons of times that are not comparable."""
    missing: Sequence[str] = ()
    """Cited experiments that were not run."""

    @property
    def is_shown(self) -> bool:
        """True if all comparisons hold, and none is missing."""
        return not self.missing and not self.n_impossible and all(comparison.holds for comparison in self.comparisons)

    @property
    def failed(self) -> list[ClaimComparison]:
        """The comparisons that do not hold or are undecided."""
        return [comparison for comparison in self.comparisons if not comparison.holds]


def judge_cause(
    cause: Cause, numbers: Sequence[Candidate], other_data: Collection[str], measured: Mapping[str, Measured]
) -> JudgedCause:
    """Judge a cause of a published number by its experiments, except on `other_data`.

    `numbers` are the published row and the difference, which are beside the methods of each other data set.
    """
    groups: dict[tuple[str, str], list[Candidate]] = {}
    for name in cause.shown_by:
        for dataset in measured[name].datasets if name in measured else ():
            candidates = groups.setdefault((dataset.name, dataset.label), [])
            candidates += [Candidate([name], method) for method in dataset.methods]
    groups = {place: [*methods, *numbers] for place, methods in groups.items() if place[0] not in other_data}
    by_statement = [compare([statement], groups) for statement in cause.statements]
    comparisons = [comparison for compared in by_statement for comparison in compared]
    possible = [comparison for comparison in comparisons if comparison is not None]
    n_impossible = len(comparisons) - len(possible) + sum(not compared for compared in by_statement)
    missing = [name for name in cause.shown_by if name not in measured]
    return JudgedCause(cause, possible, n_impossible, missing)
