"""The measured and published methods that a claim compares."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from klr_bench.config.presentation import Presentation
from klr_bench.instantiate import Parameters
from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.report.labels import line_label
from klr_bench.report.measured import Conditions, Entry, Machine, Method
from klr_bench.report.papers.model import DIFFERENCE, PUBLISHED, Claim, Columns, Paper, Printed, Statement
from klr_bench.results.variants import Variant, to_number


class Candidate(NamedTuple):
    """A method on one data set, and its experiment.

    A published method has the experiments of the tables that print it, and PUBLISHED.
    """

    experiments: Collection[str]
    method: Method


Candidates = Sequence[Candidate]
Groups = Mapping[tuple[str, str], Candidates]
"""Methods by the name and label of their data set."""


def published_methods(claim: Claim, paper: Paper, numbers: Sequence[Printed]) -> dict[str, list[Candidate]]:
    """Return the methods for each data set in the published tables to which a claim refers."""
    tables = {name for name, table in paper.tables.items() if set(table.experiments) & set(claim.experiments)}
    lines_of: dict[tuple[str, str, str], list[Printed]] = {}
    for line in numbers:
        if line.table in tables and line.algorithm:
            place = line.dataset, line.algorithm, json.dumps(line.params, sort_keys=True)
            lines_of.setdefault(place, []).append(line)
    by_dataset: dict[str, list[Candidate]] = {}
    for (dataset, algorithm, _), lines in lines_of.items():
        entries = {line.metric: published_entry(line, paper) for line in lines}
        values = {line.metric: line.value for line in lines}
        if "setup_time_s" in values and "pass_time_s" in values:
            entries["fit_time_s"] = Entry(1, values["setup_time_s"] + values["pass_time_s"], None)
        method = method_without_records(algorithm, lines[0].label, "paper", lines[0].params, entries)
        experiments = {PUBLISHED, *(name for line in lines for name in paper.tables[line.table].experiments)}
        by_dataset.setdefault(dataset, []).append(Candidate(experiments, method))
    return by_dataset


def published_entry(line: Printed, paper: Paper) -> Entry:
    """Return a published number as an entry of a table: a mean of repeats, or a single value."""
    repeats = (paper.tables[line.table].repeats if line.algorithm else None) or 1
    return Entry(repeats, line.value, line.spread if repeats > 1 else None)


def method_without_records(
    algorithm: str, label: str, machine: str, params: Parameters, entries: Mapping[str, Entry] | None = None
) -> Method:
    """Return a method with the given entries, whose times are from the given machine."""
    conditions = Conditions(frozenset({Machine(machine, machine)}))
    shown, every = Presentation(label=label), defaultdict(lambda: Entry(0, None, None), entries or {})
    return Method(algorithm, shown, Variant(), 1, 1, [], 0, every, conditions=conditions, params=params)


def right_hand_methods(
    statement: Statement, left: Method, dataset: tuple[str, str], groups: Groups
) -> Iterator[tuple[str, Method]]:
    """Yield the methods that a statement compares with `left`, with their display names."""
    if statement.across is None:
        yield from ((line_label(right), right) for right in _rights(statement, left, groups[dataset]))
        return
    measure = METRICS[statement.across]
    for (name, label), candidates in groups.items():
        for right in _rights(statement, left, candidates) if name != dataset[0] else ():
            if _is_better(right.entries[measure.name].mean, left.entries[measure.name].mean, measure):
                yield f"{line_label(right)} on {label}", right


def _is_better(value: float | None, than: float | None, metric: Metric) -> bool:
    if value is None or than is None:
        return False
    return value < than if metric.better == "lower" else value > than


def _rights(statement: Statement, left: Method, candidates: Candidates) -> list[Method]:
    if statement.along is not None:
        return _next_smaller(statement.along, left, candidates)
    rights = select(statement.than, candidates) if statement.than is not None else []
    rights = [
        right
        for right in rights
        if all(_value(left, name) == _value(right, name) for name in statement.same)
        and (right is not left or statement.than_metric)
    ]
    return _nearest(statement.nearest, left, rights) if statement.nearest is not None else rights


def _nearest(metric: str, left: Method, rights: Sequence[Method]) -> list[Method]:
    """Return the method of each algorithm whose metric is nearest to that of `left`."""
    ours, ratios = left.entries[metric].mean, dict[str, tuple[float, Method]]()
    for right in rights:
        theirs = right.entries[metric].mean
        if ours and theirs:
            ratio = max(ours / theirs, theirs / ours)
            if right.algorithm not in ratios or ratio < ratios[right.algorithm][0]:
                ratios[right.algorithm] = ratio, right
    return [right for _, right in ratios.values()]


def _value(method: Method, parameter: str) -> Any:
    return method.algorithm if parameter == "algorithm" else method.params.get(parameter)


def select(chosen: Columns, candidates: Candidates) -> list[Method]:
    """Return the methods that pass a filter of a statement."""
    return [
        method
        for experiments, method in candidates
        if method.algorithm in chosen.algorithms
        and not {*(chosen.experiments or experiments)}.isdisjoint(experiments)
        and (chosen.experiments is not None or not {PUBLISHED, DIFFERENCE}.issuperset(experiments))
        and all(
            method.params.get(name) in values or (PUBLISHED in experiments and name not in method.params)
            for name, values in chosen.params.items()
        )
    ]


def _next_smaller(parameter: str, left: Method, candidates: Candidates) -> list[Method]:
    here = to_number(left.params.get(parameter))
    names = {*left.variant} - {parameter} if left.variant else {*left.params} - {parameter}
    by_value = {
        value: method
        for _, method in reversed(candidates)
        if method.algorithm == left.algorithm and all(_value(method, name) == _value(left, name) for name in names)
        if (value := to_number(method.params.get(parameter))) is not None
    }
    smaller = [value for value in by_value if here is not None and value < here]
    return [by_value[max(smaller)]] if smaller else []
