"""The claims of a paper, judged by measured means: each comparison that a claim consists of, and what follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from klr_bench.metrics.metric import Metric
from klr_bench.report.labels import UNITS, line_label, number
from klr_bench.report.measured import TIMES, Entry, Measured, Method
from klr_bench.report.papers.model import Claim, Columns, Statement
from klr_bench.results.variants import as_number

CLAIM_VERDICTS = HOLDS, FAILS, OPEN = "holds", "does not hold here", "cannot be judged here"
MOST_LISTED = 4
RELATIONS: dict[str, Callable[[float, float, float], bool]] = {
    "above": lambda left, right, within: left > right - within,
    "below": lambda left, right, within: left < right + within,
    "at least": lambda left, right, within: left >= right - within,
    "at most": lambda left, right, within: left <= right + within,
}
Candidates = Sequence[tuple[str, Method]]
"""Methods on one data set, with their experiments."""


@dataclass(frozen=True)
class Compared:
    """One comparison: two numbers, and whether they stand to each other as the claim says."""

    dataset: str
    left: str
    """The print name of the method, and its number."""
    right: str
    holds: bool
    metric: str
    """The print name of what is compared."""
    relation: str
    """How the left number has to stand to the right one: "at most, within 0.5 points"."""


@dataclass(frozen=True)
class JudgedClaim:
    """A claim, and all comparisons that the records allow."""

    claim: Claim
    compared: Sequence[Compared]
    missing: Sequence[str]
    """Experiments that it needs and that were not run."""
    n_unlike: int = 0
    """Pairs of times that are left out: of different machines, or of a busy one."""

    @property
    def verdict(self) -> str:
        """What became of the claim: it holds if all comparisons do, or as many of them as it says."""
        if not self.compared:
            return OPEN
        right = sum(one.holds for one in self.compared)
        return HOLDS if right >= self.claim.share * len(self.compared) else FAILS

    def count(self) -> str:
        """Return how many of the comparisons hold."""
        return f"{sum(one.holds for one in self.compared)} of {len(self.compared)}" if self.compared else "-"

    def sentence(self) -> str:
        """Return the verdict with the numbers that decide it."""
        said = f"{self.claim.says} ({self.claim.where}) {self.verdict[0].upper()}{self.verdict[1:]}"
        if not self.compared:
            return f"{said}. {self.claim.open or self._left_out() or 'No such columns.'}"
        wrong = [one for one in self.compared if not one.holds]
        decisive, word = (wrong, "Against it") if wrong else (self.compared, "For it")
        listed = "; ".join(f"{one.dataset}: {one.left} against {one.right}" for one in decisive[:MOST_LISTED])
        more = f"; and {len(decisive) - MOST_LISTED} more." if len(decisive) > MOST_LISTED else "."
        return f"{said}: {self.count()} comparisons. {word}: {listed}{more} {self._left_out()}".strip()

    def _left_out(self) -> str:
        """Return a sentence for what could not be compared."""
        said = [f"Not run: {', '.join(self.missing)}."] if self.missing else []
        if self.n_unlike:
            said.append(f"Left out: {self.n_unlike} comparisons of times of different machines, or of a busy one.")
        return " ".join(said)


def judge(claim: Claim, measured: Mapping[str, Measured], metrics: Mapping[str, Metric]) -> JudgedClaim:
    """Judge a claim by its experiments, by name; those that were not run are not among them.

    Methods of several experiments on one data set are compared with each other.
    """
    candidates: dict[tuple[str, str], list[tuple[str, Method]]] = {}
    for name in claim.experiments:
        for dataset in measured[name].datasets if name in measured else ():
            if claim.datasets is None or dataset.name in claim.datasets:
                found = candidates.setdefault((dataset.name, dataset.label), [])
                found.extend((name, method) for method in dataset.methods)
    pairs = [
        one
        for (_, label), methods in candidates.items()
        for statement in claim.statements
        for one in _compared(statement, label, methods, metrics)
    ]
    compared = [one for one in pairs if one is not None]
    missing = [name for name in claim.experiments if name not in measured]
    return JudgedClaim(claim, compared, missing, n_unlike=len(pairs) - len(compared))


def _compared(
    statement: Statement, dataset: str, candidates: Candidates, metrics: Mapping[str, Metric]
) -> Iterator[Compared | None]:
    """Yield the comparisons of a statement, None for two times that cannot be compared."""
    metric = metrics[statement.metric]
    other = metrics[statement.than_metric or statement.metric]
    are_times = {metric.name, other.name} <= TIMES
    title = " and ".join(dict.fromkeys([metric.title, other.title]))
    for left in _chosen(statement.of, candidates):
        for right_name, right, method in _right(statement, left, candidates, other):
            entry, right = (_compared_number(statement, one) for one in (left.entries[metric.name], right))
            if entry.mean is None or right.mean is None:
                continue
            if method is not None and are_times and not left.conditions.alike(method.conditions):
                yield None
                continue
            holds = RELATIONS[statement.relation](entry.mean, right.mean * statement.times, statement.within)
            factor = "" if statement.times == 1 else f"{statement.times:g} times "
            sign = "±" if statement.spread else ""
            left_name = f"{line_label(left)} {sign}{_text(entry, metric)}"
            right_name = f"{factor}{right_name} {sign}{_text(right, other)}".strip()
            yield Compared(dataset, left_name, right_name, holds, title, _relation(statement, metric))


def _compared_number(statement: Statement, entry: Entry) -> Entry:
    """Return what is compared: the mean, or the spread in its place."""
    return Entry(entry.n, entry.std, None) if statement.spread and entry.n > 1 else entry


def _right(
    statement: Statement, left: Method, candidates: Candidates, metric: Metric
) -> Iterator[tuple[str, Entry, Method | None]]:
    """Yield the name and the number of all that a method is compared with, and its method; a value has none."""
    if statement.value is not None:
        yield "", Entry(1, statement.value, None), None
        return
    others: list[Method] = []
    if statement.along is not None:
        others = _next_smaller(statement.along, left, [method for _, method in candidates])
    elif statement.than is not None:
        others = [
            right
            for right in _chosen(statement.than, candidates)
            if all(_value(left, name) == _value(right, name) for name in statement.same)
            and (right is not left or statement.than_metric)
        ]
    for right in others:
        yield line_label(right), right.entries[metric.name], right


def _value(method: Method, parameter: str) -> Any:
    return method.algorithm if parameter == "algorithm" else method.variant.get(parameter)


def _chosen(chosen: Columns, candidates: Candidates) -> list[Method]:
    return [
        method
        for experiment, method in candidates
        if method.algorithm in chosen.algorithms
        and (chosen.experiments is None or experiment in chosen.experiments)
        and all(method.variant.get(name) in values for name, values in chosen.params.items())
    ]


def _next_smaller(parameter: str, left: Method, methods: Sequence[Method]) -> list[Method]:
    """Return the method with the next smaller value of a parameter and the same variant otherwise, if there is one."""
    here, rest = as_number(left.variant.get(parameter)), left.variant.without(parameter)
    below = [
        (value, one)
        for one in methods
        if one.algorithm == left.algorithm and one.variant.without(parameter) == rest and here is not None
        if (value := as_number(one.variant.get(parameter))) is not None and value < here
    ]
    return [max(below, key=lambda pair: pair[0])[1]] if below else []


def _relation(statement: Statement, metric: Metric) -> str:
    if not statement.within:
        return statement.relation
    unit = " points" if metric.unit == "percent" else _unit(metric)
    return f"{statement.relation}, within {statement.within * UNITS[metric.unit].scale:g}{unit}"


def _text(entry: Entry, metric: Metric) -> str:
    return number(entry.mean, None, metric) + _unit(metric)


def _unit(metric: Metric) -> str:
    return UNITS[metric.unit].head.replace("(", "").replace(")", "")
