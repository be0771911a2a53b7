"""Verdicts on the claims of a paper, based on comparisons that may be undecided."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, Protocol

from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.report.labels import UNITS, line_label, number, pluralize
from klr_bench.report.measured import TIMES, Entry, MeasuredDataset, Method
from klr_bench.report.papers.candidates import Candidate, Candidates, Groups, right_hand_methods, select
from klr_bench.report.papers.model import Claim, Statement
from klr_bench.report.papers.outcomes import constant, interval, outcome
from klr_bench.report.papers.verdicts import CALIBRATED_MARK, Verdict

HOLDS, UNDECIDED, FAILS = "holds", "undecided", "does not hold here"
OWN_TABLE, NOT_JUDGED = "fails on the paper's own table", "not judged"
CLAIM_VERDICTS = HOLDS, UNDECIDED, FAILS, OWN_TABLE, NOT_JUDGED
COLORED_AS = {
    **{HOLDS: Verdict.EXACT, FAILS: Verdict.UNEXPLAINED, OWN_TABLE: Verdict.EXPLAINED},
    **dict.fromkeys((UNDECIDED, NOT_JUDGED), Verdict.NOT_COMPARED),
}
"""Verdict on numbers whose color each verdict on claims has."""
BY_OUTCOME = {True: HOLDS, None: UNDECIDED, False: FAILS}
MOST_LISTED = 4


class HasDatasets(Protocol):
    """Results of an experiment or benchmark."""

    @property
    def datasets(self) -> Sequence[MeasuredDataset]:
        """Results by data set."""


@dataclass(frozen=True)
class ClaimComparison:
    """Comparison of two measured values, with the display names of their methods."""

    dataset: str
    left: str
    right: str
    holds: bool | None
    """None if the difference is too small, compared with its standard error, to decide."""
    metric: str
    """The display name of the compared metric."""
    relation: str
    """The relation that the claim requires, such as "at most, within 0.5 points"."""

    def text(self) -> str:
        """Return the comparison with its relation, such as "Data, Accuracy: A 80 % is above B 70 %"."""
        relation, comma, within = self.relation.partition(",")
        verb = "is" if self.holds else "must be"
        return f"{self.dataset}, {self.metric}: {self.left} {verb} {relation} {self.right}{comma}{within}"


WHY_SKIPPED = "of times from different machines or a busy machine, or with a method that failed"


@dataclass(frozen=True)
class JudgedClaim:
    """A claim, its verdict, and the comparisons that can be made with the available records."""

    claim: Claim
    comparisons: Sequence[ClaimComparison]
    missing: Sequence[str] = ()
    """Experiments to which the claim refers, but which were not run."""
    n_incomparable: int = 0
    """Number of skipped comparisons: the times are not comparable, or all fits of a method failed."""
    on_other_data: Sequence[ClaimComparison] = ()
    """Comparisons on data sets that the paper does not use; they do not affect the verdict."""
    published: Sequence[ClaimComparison] = ()
    """The same comparisons with the paper's own numbers, if it prints them."""

    @property
    def verdict(self) -> str:
        """The verdict.

        A claim holds if the required share of its comparisons holds even without the undecided and skipped ones, and
        does not hold if the share is not reached even with them.
        """
        if self._outcome(self.published) is False:
            return OWN_TABLE
        return BY_OUTCOME[self._outcome(self.comparisons, self.n_incomparable)] if self.comparisons else NOT_JUDGED

    def _outcome(self, comparisons: Sequence[ClaimComparison], n_skipped: int = 0) -> bool | None:
        n = len(comparisons) + n_skipped
        if len(_with(True, comparisons)) >= self.claim.share * n:
            return True
        return None if n - len(_with(False, comparisons)) >= self.claim.share * n else False

    @property
    def is_calibrated(self) -> bool:
        """True if the claim is judged with a setting or limit chosen after seeing the results."""
        return self.claim.calibrated is not None and self.verdict != NOT_JUDGED

    def count(self) -> str:
        """Return how many comparisons hold, such as "3 of 5, 1 undecided", or "-" if there are none."""
        undecided = len(_with(None, self.comparisons))
        text = f"{len(_with(True, self.comparisons))} of {len(self.comparisons)}"
        return text + (f", {undecided} undecided" if undecided else "") if self.comparisons else "-"

    def sentence(self) -> str:
        """Return a sentence with the claim, its verdict, and the decisive comparisons."""
        notes = [self.claim.note] if self.claim.note else []
        notes += [f"{CALIBRATED_MARK} {self.claim.calibrated}"] if self.claim.calibrated else []
        notes += [f"Not run: {', '.join(self.missing)}."] if self.missing else []
        if self.n_incomparable:
            notes.append(f"Skipped: {self.n_incomparable} comparisons {WHY_SKIPPED}.")
        if self.on_other_data:
            notes.append(f"On other data: {_evidence(self.on_other_data)}")
        verdict = f"{self.claim.says} ({self.claim.where}) {self.verdict[0].upper()}{self.verdict[1:]}"
        if self.verdict == OWN_TABLE:
            notes.insert(0, f"Published: {_evidence(self.published)}")
        if not self.comparisons:
            reason = self.claim.open or ("" if notes else "There is no such method.")
            return " ".join(filter(None, [f"{verdict}.", reason, *notes]))
        return " ".join([f"{verdict}: {_evidence(self.comparisons)}", *notes])


def _with(holds: bool | None, comparisons: Sequence[ClaimComparison]) -> list[ClaimComparison]:
    return [pair for pair in comparisons if pair.holds is holds]


def _evidence(comparisons: Sequence[ClaimComparison]) -> str:
    by_outcome = (("Against it", False), ("Undecided", None), ("For it", True))
    word, decisive = next((word, some) for word, holds in by_outcome if (some := _with(holds, comparisons)))
    listed = "; ".join(f"{pair.dataset}: {pair.left} against {pair.right}" for pair in decisive[:MOST_LISTED])
    more = f"; and {len(decisive) - MOST_LISTED} more" if len(decisive) > MOST_LISTED else ""
    undecided = len(_with(None, comparisons))
    counts = f"{len(_with(True, comparisons))} of {pluralize(len(comparisons), 'comparison')}"
    return f"{counts}{f' ({undecided} undecided)' if undecided else ''}. {word}: {listed}{more}."


def judge(
    claim: Claim,
    measured: Mapping[str, HasDatasets],
    published: Mapping[str, Candidates] | None = None,
    own_data: Collection[str] | None = None,
) -> JudgedClaim:
    """Judge a claim by the results in `measured`, which maps experiment names to means.

    Methods from different experiments are compared with each other if they use the same data set.  `published` are the
    paper's own numbers by data set (see `published_methods`), and `own_data` its data sets (None: all); results on
    other data are compared separately.
    """
    paper_data: dict[tuple[str, str], list[Candidate]] = {}
    other_data: dict[tuple[str, str], list[Candidate]] = {}
    for name in claim.experiments:
        for dataset in measured[name].datasets if name in measured else ():
            if own_data is not None and dataset.name not in own_data and not claim.any_data:
                groups = other_data
            elif claim.datasets is None or dataset.name in claim.datasets:
                groups = paper_data
            else:
                continue
            candidates = [Candidate([name], method) for method in dataset.methods]
            groups.setdefault((dataset.name, dataset.label), []).extend(candidates)
    printed = {
        (dataset, dataset): candidates
        for dataset, candidates in (published or {}).items()
        if claim.datasets is None or dataset in claim.datasets
    }
    pairs, on_other_data, of_paper = (compare(claim.statements, groups) for groups in (paper_data, other_data, printed))
    comparisons = [pair for pair in pairs if pair is not None]
    return JudgedClaim(
        claim,
        comparisons,
        [name for name in claim.experiments if name not in measured],
        n_incomparable=len(pairs) - len(comparisons),
        on_other_data=[pair for pair in on_other_data if pair is not None],
        published=[pair for pair in of_paper if pair is not None],
    )


def compare(statements: Sequence[Statement], groups: Groups) -> list[ClaimComparison | None]:
    """Return the comparisons of statements, and None for pairs that cannot be compared."""
    return [
        _comparison(statement, dataset[1], pair)
        for dataset in groups
        for statement in statements
        if statement.datasets is None or dataset[0] in statement.datasets
        for pair in pairs(statement, dataset, groups)
    ]


class Pair(NamedTuple):
    """Two results that a statement compares; `right` is None for a constant."""

    left: Method
    ours: Entry
    name: str
    right: Method | None
    theirs: Entry


def pairs(statement: Statement, dataset: tuple[str, str], groups: Groups) -> Iterator[Pair]:
    """Yield the pairs of results on a data set that a statement compares.

    Methods without the metric are omitted, but not those of which all fits failed.
    """
    other = statement.than_metric or statement.metric
    for left in select(statement.of, groups[dataset]):
        rights: list[tuple[str, Method | None, Entry]] = [
            (name, right, right.entries[other]) for name, right in right_hand_methods(statement, left, dataset, groups)
        ]
        if statement.value is not None:
            rights = [("", None, constant(statement.value))]
        for name, right, theirs in rights:
            pair = Pair(left, left.entries[statement.metric], name, right, theirs)
            sides = ((left, pair.ours), (right, theirs))
            if all(_number(entry, statement) is not None or (side and _has_failed(side)) for side, entry in sides):
                yield pair


def _has_failed(method: Method) -> bool:
    return not method.n_ok and not method.timed_out and bool(method.failures)


def _comparison(statement: Statement, label: str, pair: Pair) -> ClaimComparison | None:
    """Compare two results; return None if one is missing, or for incomparable times."""
    left, ours, name, right, theirs = pair
    if _number(ours, statement) is None or _number(theirs, statement) is None:
        return None
    metric, other = METRICS[statement.metric], METRICS[statement.than_metric or statement.metric]
    are_times = {metric.name, other.name} <= TIMES
    if are_times and not left.conditions.alike((right or left).conditions):
        return None
    low, high = interval(statement, ours, theirs, metric)
    if are_times:  # a fit that a time limit ended would have taken longer
        low, high = -inf if right is not None and right.timed_out else low, inf if left.timed_out else high
    relation = str(statement.relation)
    if statement.within:
        within = f"{statement.within * UNITS[metric.unit].scale:,.6g}"
        points = f" point{'' if within == '1' else 's'}" if metric.unit == "percent" else _unit(metric)
        relation += f", within {within}{points}"
    factor = "" if statement.times == 1 else f"{statement.times:g} times "
    return ClaimComparison(
        label,
        f"{line_label(left)} {_text(ours, metric, statement)}",
        f"{factor}{name} {_text(theirs, other, statement)}".strip(),
        outcome(statement, (low, high)),
        " and ".join(dict.fromkeys([metric.title, other.title])),
        relation,
    )


def _number(entry: Entry, statement: Statement) -> float | None:
    return entry.std if statement.spread and entry.n else entry.mean


def _text(entry: Entry, metric: Metric, statement: Statement) -> str:
    value = _number(entry, statement)
    if value == inf:
        return "never"
    return f"{'±' if statement.spread and entry.n else ''}{number(value, None, metric)}{_unit(metric)}"


def _unit(metric: Metric) -> str:
    return UNITS[metric.unit].head.replace("(", "").replace(")", "")
