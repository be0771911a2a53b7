"""The claims of a paper, judged by our records: each comparison that a claim consists of, and what follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from klr_bench.experiment.measure.metric import Metric
from klr_bench.experiment.variants import as_number
from klr_bench.report.claims import Claim, Columns, Statement
from klr_bench.report.conditions import TIMES
from klr_bench.report.render.labels import line_label
from klr_bench.report.render.layout import HEADS, SHOWN, number
from klr_bench.report.table import Entry, Line, Table

CLAIM_VERDICTS = HOLDS, FAILS, OPEN = "holds", "does not hold here", "cannot be judged here"
MOST_LISTED = 4
RELATIONS: dict[str, Callable[[float, float, float], bool]] = {
    "above": lambda left, right, within: left > right - within,
    "below": lambda left, right, within: left < right + within,
    "at least": lambda left, right, within: left >= right - within,
    "at most": lambda left, right, within: left <= right + within,
}


Column = tuple[str, Line]
"""A column and its experiment."""


@dataclass(frozen=True)
class Compared:
    """One comparison: two numbers, and whether they stand to each other as the claim says."""

    dataset: str
    left: str
    """The print name of the column, and its number."""
    right: str
    holds: bool
    metric: str
    """The print name of what is compared."""
    relation: str
    """How the left number has to stand to the right one: "at most, within 0.5 points"."""


@dataclass(frozen=True)
class JudgedClaim:
    """A claim, and all comparisons that our records allow."""

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
        right = [one for one in self.compared if one.holds]
        wrong = [one for one in self.compared if not one.holds]
        said += f": {self.count()} comparisons."
        shown, word = (wrong, "Against it") if wrong else (right, "For it")
        said += f" {word}: {'; '.join(f'{one.dataset}: {one.left} against {one.right}' for one in shown[:MOST_LISTED])}"
        said += f"; and {len(shown) - MOST_LISTED} more." if len(shown) > MOST_LISTED else "."
        return f"{said} {self._left_out()}".strip()

    def _left_out(self) -> str:
        """Return a sentence for what could not be compared."""
        said = [f"Not run: {', '.join(self.missing)}."] if self.missing else []
        if self.n_unlike:
            said.append(f"Left out: {self.n_unlike} comparisons of times of different machines, or of a busy one.")
        return " ".join(said)


def judge(claim: Claim, tables: Mapping[str, Table], metrics: Mapping[str, Metric]) -> JudgedClaim:
    """Judge a claim by the tables of its experiments, by name; those that were not run are not among them.

    Columns of several experiments on one data set are compared with each other.
    """
    columns: dict[tuple[str, str], list[Column]] = {}
    for name in claim.experiments:
        for block in tables[name].blocks if name in tables else ():
            if claim.datasets is None or block.dataset in claim.datasets:
                columns.setdefault((block.dataset, block.label), []).extend((name, line) for line in block.lines)
    pairs = [
        one
        for (_, label), found in columns.items()
        for statement in claim.statements
        for one in _compared(statement, label, found, metrics)
    ]
    compared = [one for one in pairs if one is not None]
    missing = [name for name in claim.experiments if name not in tables]
    return JudgedClaim(claim, compared, missing, n_unlike=len(pairs) - len(compared))


def _compared(
    statement: Statement, dataset: str, columns: Sequence[Column], metrics: Mapping[str, Metric]
) -> Iterator[Compared | None]:
    """Yield the comparisons of a statement, None for two times that cannot be compared."""
    metric = metrics[statement.metric]
    other = metrics[statement.than_metric or statement.metric]
    for left in _lines(statement.of, columns):
        for right_name, right, line in _right(statement, left, columns, other):
            entry = _compared_number(statement, left.entries[metric.name])
            right = _compared_number(statement, right)
            if entry.mean is None or right.mean is None:
                continue
            if line is not None and {metric.name, other.name} <= TIMES and not left.conditions.alike(line.conditions):
                yield None
                continue
            holds = RELATIONS[statement.relation](entry.mean, right.mean * statement.times, statement.within)
            times = "" if statement.times == 1 else f"{statement.times:g} times "
            sign = "±" if statement.spread else ""
            left_name = f"{line_label(left)} {sign}{_text(entry, metric)}"
            right_name = f"{times}{right_name} {sign}{_text(right, other)}".strip()
            yield Compared(dataset, left_name, right_name, holds, _titles(metric, other), _relation(statement, metric))


def _compared_number(statement: Statement, entry: Entry) -> Entry:
    """Return what is compared: the mean, or the spread in its place."""
    return Entry(entry.n, entry.std, None) if statement.spread and entry.n > 1 else entry


def _right(
    statement: Statement, left: Line, columns: Sequence[Column], metric: Metric
) -> Iterator[tuple[str, Entry, Line | None]]:
    """Yield the name and the number of all that a column is compared with, and its line; a value has none."""
    if statement.value is not None:
        yield "", Entry(1, statement.value, None), None
    elif statement.along is not None:
        smaller = _next_smaller(statement.along, left, [line for _, line in columns])
        if smaller is not None:
            yield line_label(smaller), smaller.entries[metric.name], smaller
    elif statement.than is not None:
        for right in _lines(statement.than, columns):
            if all(_value(left, name) == _value(right, name) for name in statement.same) and (
                right is not left or statement.than_metric
            ):
                yield line_label(right), right.entries[metric.name], right


def _value(line: Line, parameter: str) -> Any:
    return line.algorithm if parameter == "algorithm" else line.variant.get(parameter)


def _lines(chosen: Columns, columns: Sequence[Column]) -> list[Line]:
    return [
        line
        for experiment, line in columns
        if line.algorithm in chosen.algorithms
        and (chosen.experiments is None or experiment in chosen.experiments)
        and all(line.variant.get(name) in values for name, values in chosen.params.items())
    ]


def _next_smaller(parameter: str, line: Line, lines: Sequence[Line]) -> Line | None:
    """Return the column with the next smaller value of a parameter and the same variant otherwise."""

    def value(of: Line) -> float | None:
        found: Any = of.variant.get(parameter)
        return as_number(found)

    here, rest = value(line), line.variant.without(parameter)
    if here is None:
        return None
    same = [one for one in lines if one.algorithm == line.algorithm and one.variant.without(parameter) == rest]
    below = [(found, one) for one in same if (found := value(one)) is not None and found < here]
    return max(below, key=lambda pair: pair[0])[1] if below else None


def _relation(statement: Statement, metric: Metric) -> str:
    if not statement.within:
        return statement.relation
    unit = " points" if metric.unit == "percent" else _unit(metric)
    return f"{statement.relation}, within {statement.within * SHOWN[metric.unit]:g}{unit}"


def _titles(metric: Metric, other: Metric) -> str:
    return " and ".join(dict.fromkeys([metric.title, other.title]))


def _text(entry: Entry, metric: Metric) -> str:
    return number(entry, metric, spread=False) + _unit(metric)


def _unit(metric: Metric) -> str:
    return HEADS[metric.unit].replace("(", "").replace(")", "")
