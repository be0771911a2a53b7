"""Verdicts on the claims of a paper, based on comparisons of measured means."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt

from klr_bench.metrics.metric import Metric
from klr_bench.report.labels import UNITS, line_label, number
from klr_bench.report.measured import TIMES, Entry, Measured, Method
from klr_bench.report.papers.candidates import Candidate, Candidates, Groups, right_hand_methods, select
from klr_bench.report.papers.model import Claim, Statement
from klr_bench.report.papers.verdicts import Verdict

HOLDS, FAILS, OWN_TABLE, NOT_JUDGED = "holds", "does not hold here", "fails on the paper's own table", "not judged"
CLAIM_VERDICTS = HOLDS, FAILS, OWN_TABLE, NOT_JUDGED
COLORED_AS = {
    **{HOLDS: Verdict.EXACT, FAILS: Verdict.UNEXPLAINED},
    **{OWN_TABLE: Verdict.EXPLAINED, NOT_JUDGED: Verdict.NOT_COMPARED},
}
"""Verdict on numbers whose color each verdict on claims has."""
MOST_LISTED = 4
RELATIONS = {"above": (gt, -1), "below": (lt, 1), "at least": (ge, -1), "at most": (le, 1)}
"""One-sided relations: the comparison, and the sign of `within` on its right-hand side."""


@dataclass(frozen=True)
class ClaimComparison:
    """Comparison of two measured values, with the display names of their methods."""

    dataset: str
    left: str
    right: str
    holds: bool
    metric: str
    """The display name of the compared metric."""
    relation: str
    """The relation that the claim requires, such as "at most, within 0.5 points"."""


@dataclass(frozen=True)
class JudgedClaim:
    """A claim, its verdict, and the comparisons that can be made with the available records."""

    claim: Claim
    comparisons: Sequence[ClaimComparison]
    missing: Sequence[str] = ()
    """Experiments to which the claim refers, but which were not run."""
    n_incomparable: int = 0
    """Number of skipped comparisons, of times from different machines or a busy machine."""
    on_other_data: Sequence[ClaimComparison] = ()
    """Comparisons on data sets that the paper does not use; they do not affect the verdict."""
    published: Sequence[ClaimComparison] = ()
    """The same comparisons with the paper's own numbers, if it prints them."""

    @property
    def verdict(self) -> str:
        """The verdict: a claim holds if all its comparisons, or the required share of them, hold."""
        if self.published and not self._holds(self.published):
            return OWN_TABLE
        if not self.comparisons:
            return NOT_JUDGED
        return HOLDS if self._holds(self.comparisons) else FAILS

    def _holds(self, comparisons: Sequence[ClaimComparison]) -> bool:
        return _n_true(comparisons) >= self.claim.share * len(comparisons)

    def count(self) -> str:
        """Return how many comparisons hold, such as "3 of 4", or "-" if there are none."""
        return _count(self.comparisons) if self.comparisons else "-"

    def sentence(self) -> str:
        """Return a sentence with the claim, its verdict, and the decisive comparisons."""
        notes = [self.claim.note] if self.claim.note else []
        notes += [f"Not run: {', '.join(self.missing)}."] if self.missing else []
        if self.n_incomparable:
            notes.append(
                f"Skipped: {self.n_incomparable} comparisons of times from different machines or a busy machine."
            )
        if self.on_other_data:
            notes.append(f"On other data: {_evidence(self.on_other_data)}")
        verdict = f"{self.claim.says} ({self.claim.where}) {self.verdict[0].upper()}{self.verdict[1:]}"
        if self.verdict == OWN_TABLE:
            notes.insert(0, f"Published: {_evidence(self.published)}")
        if not self.comparisons:
            reason = self.claim.open or ("" if notes else "There is no such method.")
            return " ".join(filter(None, [f"{verdict}.", reason, *notes]))
        return " ".join([f"{verdict}: {_evidence(self.comparisons)}", *notes])


def _n_true(comparisons: Sequence[ClaimComparison]) -> int:
    return sum(one.holds for one in comparisons)


def _count(comparisons: Sequence[ClaimComparison]) -> str:
    return f"{_n_true(comparisons)} of {len(comparisons)}"


def _evidence(comparisons: Sequence[ClaimComparison]) -> str:
    false = [one for one in comparisons if not one.holds]
    decisive, word = (false, "Against it") if false else (comparisons, "For it")
    listed = "; ".join(f"{one.dataset}: {one.left} against {one.right}" for one in decisive[:MOST_LISTED])
    more = f"; and {len(decisive) - MOST_LISTED} more" if len(decisive) > MOST_LISTED else ""
    return f"{_count(comparisons)} comparisons. {word}: {listed}{more}."


def judge(
    claim: Claim,
    measured: Mapping[str, Measured],
    metrics: Mapping[str, Metric],
    published: Mapping[str, Candidates] | None = None,
    own_data: Collection[str] | None = None,
) -> JudgedClaim:
    """Judge a claim by the results in `measured`, which maps experiment names to means.

    Methods from different experiments are compared with each other if they use the same data set.  `published` are the
    paper's own numbers by data set (see `published_methods`), and `own_data` its data sets (None: all); results on
    other data are compared separately.
    """
    own: dict[tuple[str, str], list[Candidate]] = {}
    other: dict[tuple[str, str], list[Candidate]] = {}
    for name in claim.experiments:
        for dataset in measured[name].datasets if name in measured else ():
            if own_data is not None and dataset.name not in own_data:
                groups = other
            elif claim.datasets is None or dataset.name in claim.datasets:
                groups = own
            else:
                continue
            candidates = [Candidate([name], method) for method in dataset.methods]
            groups.setdefault((dataset.name, dataset.label), []).extend(candidates)
    printed = {
        (dataset, dataset): candidates
        for dataset, candidates in (published or {}).items()
        if claim.datasets is None or dataset in claim.datasets
    }
    pairs, on_other_data, of_paper = (_all_comparisons(claim, groups, metrics) for groups in (own, other, printed))
    comparisons = [pair for pair in pairs if pair is not None]
    return JudgedClaim(
        claim,
        comparisons,
        [name for name in claim.experiments if name not in measured],
        n_incomparable=len(pairs) - len(comparisons),
        on_other_data=[pair for pair in on_other_data if pair is not None],
        published=[pair for pair in of_paper if pair is not None],
    )


def _all_comparisons(claim: Claim, groups: Groups, metrics: Mapping[str, Metric]) -> list[ClaimComparison | None]:
    return [
        pair
        for dataset in groups
        for statement in claim.statements
        if statement.datasets is None or dataset[0] in statement.datasets
        for pair in _comparisons(statement, dataset, groups, metrics)
    ]


def _comparisons(
    statement: Statement, dataset: tuple[str, str], groups: Groups, metrics: Mapping[str, Metric]
) -> Iterator[ClaimComparison | None]:
    """Yield the comparisons of a statement, and None for pairs of times that are not comparable."""
    metric, other = metrics[statement.metric], metrics[statement.than_metric or statement.metric]
    are_times = {metric.name, other.name} <= TIMES
    title = " and ".join(dict.fromkeys([metric.title, other.title]))
    relation = str(statement.relation)
    if statement.within:
        points = " points" if metric.unit == "percent" else _unit(metric)
        relation += f", within {statement.within * UNITS[metric.unit].scale:g}{points}"
    for left in select(statement.of, groups[dataset]):
        rights: list[tuple[str, Entry, Method | None]] = [
            (name, right.entries[other.name], right)
            for name, right in right_hand_methods(statement, left, dataset, groups, metrics)
        ]
        if statement.value is not None:
            rights = [("", Entry(1, statement.value, None), None)]
        for name, entry, right in rights:
            ours, theirs = _number(left.entries[metric.name], statement), _number(entry, statement)
            if ours is None or theirs is None:
                continue
            if are_times and right is not None and not left.conditions.alike(right.conditions):
                yield None
                continue
            holds = _is_true(statement, ours, theirs * statement.times)
            factor = "" if statement.times == 1 else f"{statement.times:g} times "
            left_text = f"{line_label(left)} {_text(ours, metric, statement)}"
            right_text = f"{factor}{name} {_text(theirs, other, statement)}".strip()
            yield ClaimComparison(dataset[1], left_text, right_text, holds, title, relation)


def _is_true(statement: Statement, left: float, right: float) -> bool:
    if statement.relation == "equal to":
        return abs(left - right) <= statement.within * (1 + 1e-9)
    compare, sign = RELATIONS[statement.relation]
    return bool(compare(left, right + sign * statement.within))


def _number(entry: Entry, statement: Statement) -> float | None:
    return entry.std if statement.spread and entry.n > 1 else entry.mean


def _text(value: float, metric: Metric, statement: Statement) -> str:
    return f"{'±' if statement.spread else ''}{number(value, None, metric)}{_unit(metric)}"


def _unit(metric: Metric) -> str:
    return UNITS[metric.unit].head.replace("(", "").replace(")", "")
