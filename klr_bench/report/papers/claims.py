"""Verdicts on the claims of a paper, based on comparisons of measured means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any

from klr_bench.metrics.metric import Metric
from klr_bench.report.labels import UNITS, line_label, number
from klr_bench.report.measured import TIMES, Entry, Measured, Method
from klr_bench.report.papers.model import Claim, Columns, Statement
from klr_bench.results.variants import to_number

CLAIM_VERDICTS = HOLDS, FAILS, OPEN = "holds", "does not hold here", "cannot be judged here"
MOST_LISTED = 4
RELATIONS = {"above": (gt, -1), "below": (lt, 1), "at least": (ge, -1), "at most": (le, 1)}
"""The comparison of each relation, and the sign of `within` on its right."""
Candidates = Sequence[tuple[str, Method]]
"""Methods on one data set, with their experiments."""


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
    """Claim with the comparisons that the available records allow, and the verdict."""

    claim: Claim
    comparisons: Sequence[ClaimComparison]
    missing: Sequence[str]
    """Experiments that the claim refers to and that were not run."""
    n_incomparable: int = 0
    """Skipped comparisons of times, measured on different machines or on a busy one."""

    @property
    def verdict(self) -> str:
        """HOLDS if enough comparisons hold: all, or the share that the claim requires."""
        if not self.comparisons:
            return OPEN
        return HOLDS if self._n_true >= self.claim.share * len(self.comparisons) else FAILS

    @property
    def _n_true(self) -> int:
        return sum(one.holds for one in self.comparisons)

    def count(self) -> str:
        """Return how many comparisons hold, such as "3 of 4", or "-" if there are none."""
        return f"{self._n_true} of {len(self.comparisons)}" if self.comparisons else "-"

    def sentence(self) -> str:
        """Return a sentence with the claim, its verdict, and the decisive comparisons."""
        left_out = [f"Not run: {', '.join(self.missing)}."] if self.missing else []
        if self.n_incomparable:
            left_out.append(
                f"Skipped: {self.n_incomparable} comparisons of times from different machines or from a busy one."
            )
        verdict = f"{self.claim.says} ({self.claim.where}) {self.verdict[0].upper()}{self.verdict[1:]}"
        if not self.comparisons:
            return f"{verdict}. {self.claim.open or ' '.join(left_out) or 'No such columns.'}"
        wrong = [one for one in self.comparisons if not one.holds]
        decisive, word = (wrong, "Against it") if wrong else (self.comparisons, "For it")
        listed = "; ".join(f"{one.dataset}: {one.left} against {one.right}" for one in decisive[:MOST_LISTED])
        more = f"; and {len(decisive) - MOST_LISTED} more" if len(decisive) > MOST_LISTED else ""
        return " ".join([f"{verdict}: {self.count()} comparisons. {word}: {listed}{more}.", *left_out])


def judge(claim: Claim, measured: Mapping[str, Measured], metrics: Mapping[str, Metric]) -> JudgedClaim:
    """Judge a claim by the results in `measured`, which maps experiment names to means.

    Methods from different experiments are compared with each other if they use the same data set.
    """
    candidates: dict[tuple[str, str], list[tuple[str, Method]]] = {}
    for name in claim.experiments:
        for dataset in measured[name].datasets if name in measured else ():
            if claim.datasets is None or dataset.name in claim.datasets:
                methods = candidates.setdefault((dataset.name, dataset.label), [])
                methods.extend((name, method) for method in dataset.methods)
    pairs = [
        pair
        for (_, label), methods in candidates.items()
        for statement in claim.statements
        for pair in _comparisons(statement, label, methods, metrics)
    ]
    compared = [pair for pair in pairs if pair is not None]
    missing = [name for name in claim.experiments if name not in measured]
    return JudgedClaim(claim, compared, missing, n_incomparable=len(pairs) - len(compared))


def _comparisons(
    statement: Statement, dataset: str, candidates: Candidates, metrics: Mapping[str, Metric]
) -> Iterator[ClaimComparison | None]:
    """Yield the comparisons of a statement, and None for each pair of incomparable times."""
    metric, other = metrics[statement.metric], metrics[statement.than_metric or statement.metric]
    are_times = {metric.name, other.name} <= TIMES
    title = " and ".join(dict.fromkeys([metric.title, other.title]))
    compare, sign = RELATIONS[statement.relation]
    relation = str(statement.relation)
    if statement.within:
        points = " points" if metric.unit == "percent" else _unit(metric)
        relation += f", within {statement.within * UNITS[metric.unit].scale:g}{points}"
    for left in _select(statement.of, candidates):
        rights: list[tuple[str, Entry, Method | None]] = [
            (line_label(right), right.entries[other.name], right) for right in _rights(statement, left, candidates)
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
            holds = compare(ours, theirs * statement.times + sign * statement.within)
            factor = "" if statement.times == 1 else f"{statement.times:g} times "
            left_text = f"{line_label(left)} {_text(ours, metric, statement)}"
            right_text = f"{factor}{name} {_text(theirs, other, statement)}".strip()
            yield ClaimComparison(dataset, left_text, right_text, holds, title, relation)


def _number(entry: Entry, statement: Statement) -> float | None:
    """Return the mean, or the standard deviation if the statement compares spreads."""
    return entry.std if statement.spread and entry.n > 1 else entry.mean


def _rights(statement: Statement, left: Method, candidates: Candidates) -> list[Method]:
    """Return the methods on the right-hand side of a comparison with `left`."""
    if statement.along is not None:
        return _next_smaller(statement.along, left, candidates)
    rights = _select(statement.than, candidates) if statement.than is not None else []
    return [
        right
        for right in rights
        if all(_value(left, name) == _value(right, name) for name in statement.same)
        and (right is not left or statement.than_metric)
    ]


def _value(method: Method, parameter: str) -> Any:
    return method.algorithm if parameter == "algorithm" else method.variant.get(parameter)


def _select(chosen: Columns, candidates: Candidates) -> list[Method]:
    return [
        method
        for experiment, method in candidates
        if method.algorithm in chosen.algorithms
        and (chosen.experiments is None or experiment in chosen.experiments)
        and all(method.variant.get(name) in values for name, values in chosen.params.items())
    ]


def _next_smaller(parameter: str, left: Method, candidates: Candidates) -> list[Method]:
    """Return the method, if any, that differs only by the next smaller parameter value."""
    here, rest = to_number(left.variant.get(parameter)), left.variant.without(parameter)
    by_value = {
        value: method
        for _, method in reversed(candidates)
        if method.algorithm == left.algorithm and method.variant.without(parameter) == rest
        if (value := to_number(method.variant.get(parameter))) is not None
    }
    smaller = [value for value in by_value if here is not None and value < here]
    return [by_value[max(smaller)]] if smaller else []


def _text(value: float, metric: Metric, statement: Statement) -> str:
    return f"{'±' if statement.spread else ''}{number(value, None, metric)}{_unit(metric)}"


def _unit(metric: Metric) -> str:
    return UNITS[metric.unit].head.replace("(", "").replace(")", "")
