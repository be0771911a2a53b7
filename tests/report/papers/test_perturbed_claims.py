"""Each claim can have each of its three outcomes: the records are changed until it has."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from klr_bench.config.locations import folders
from klr_bench.metrics.labels import METRICS
from klr_bench.report.measured import Conditions, Entry, Machine, MeasuredDataset, Method
from klr_bench.report.papers.benchmark import LOOPS, Benchmark
from klr_bench.report.papers.candidates import Candidate, method_without_records
from klr_bench.report.papers.claims import FAILS, HOLDS, UNDECIDED, judge, pairs
from klr_bench.report.papers.model import Claim, Columns, Statement
from klr_bench.report.papers.reading import paper_files
from klr_bench.report.papers.verdicts import NOT_RATES
from tests.report.folders import REFERENCE, reproduction

PAPERS = {name: reproduction(name) for name in paper_files(folders()[:1])}
JUDGED = [(name, claim) for name, paper in PAPERS.items() for claim in paper.paper.claims if claim.statements]
SPLITS = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
"""Deviations of five repeats from their mean."""
SMALL = 1e-5
"""Scatter that decides no comparison that is not on the boundary."""
IDLE = Conditions(frozenset({Machine("here", "A CPU")}), 0.0)
Results = dict[str, list[MeasuredDataset]]


@dataclass(frozen=True)
class Folder:
    """Results of an experiment, as `judge` needs them."""

    datasets: list[MeasuredDataset]


def results_of(name: str, claim: Claim) -> Results:
    """Return the results of a claim's experiments, or made-up ones if none of its methods was run."""
    paper = PAPERS[name]
    results = {
        experiment: [*paper.measured[experiment].datasets]
        for experiment in claim.experiments
        if experiment in paper.measured
    }
    if "benchmark" in claim.experiments:
        results["benchmark"] = Benchmark(REFERENCE / LOOPS).datasets
    if not any(True for _ in compared(claim, results)):
        chosen = [columns for s in claim.statements for columns in (s.of, s.than) if columns is not None]
        dataset = (claim.datasets or ["made_up"])[0]
        methods = [method for columns in chosen for method in made_up(columns)]
        distinct = {(method.algorithm, str(method.params)): method for method in methods}
        results = {claim.experiments[0]: [MeasuredDataset(dataset, dataset, [*distinct.values()], {})]}
    return results


def made_up(columns: Columns) -> Iterator[Method]:
    for algorithm in columns.algorithms:
        params = {name: values[0] for name, values in columns.params.items()}
        method = method_without_records(algorithm, algorithm, "here", params)
        yield replace(method, entries={name: Entry.of({0: 0.5, 1: 0.6}) for name in METRICS})


def compared(claim: Claim, results: Results) -> Iterator[tuple[Statement, Method, Method | None]]:
    """Yield the pairs of methods that a claim compares on all data."""
    groups: dict[tuple[str, str], list[Candidate]] = {}
    for experiment, datasets in results.items():
        for measured in datasets:
            found = [Candidate([experiment], method) for method in measured.methods]
            groups.setdefault((measured.name, measured.label), []).extend(found)
    for dataset in groups:
        for statement in claim.statements:
            if statement.datasets is None or dataset[0] in statement.datasets:
                for pair in pairs(statement, dataset, groups):
                    yield statement, pair.left, pair.right


def limits(metric: str, *, spread: bool) -> tuple[float, float]:
    if spread:
        return 0.01, 0.2
    if METRICS[metric].unit == "percent" and metric not in NOT_RATES:
        return -1.0 if "gain" in metric else 0.0, 1.0
    return 1e-3, 1e5


def solved(claim: Claim, results: Results, wanted: str) -> dict[tuple[int, str], float]:
    """Return numbers with which a claim has an outcome, from a linear program that maximizes the margins."""
    names: dict[tuple[int, str], int] = {}
    rows: list[tuple[dict[int, float], float]] = []  # a comparison holds if the sum of products exceeds the constant
    bounds: list[tuple[float, float]] = []
    for statement, left, right in compared(claim, results):
        terms: dict[int, float] = {}
        sides = [(left, statement.metric, 1.0)]
        sides += [(right, statement.than_metric or statement.metric, -statement.times)] if right is not None else []
        for method, metric, factor in sides:
            if (id(method), metric) not in names:
                names[id(method), metric] = len(names)
                bounds.append(limits(metric, spread=statement.spread))
            terms[names[id(method), metric]] = terms.get(names[id(method), metric], 0.0) + factor
        constant = statement.times * statement.value if statement.value is not None else 0.0
        signs = {"above": [1], "at least": [1], "below": [-1], "at most": [-1], "equal to": [1, -1]}
        for sign in signs[statement.relation]:
            rows.append(({at: sign * factor for at, factor in terms.items()}, sign * constant - statement.within))
            if statement.spread:  # the interval of five repeats has a factor of 3.1 on both sides
                at_right = next(at for at, factor in terms.items() if factor < 0)
                rows[-1][0][at_right] *= {HOLDS: 4.0, FAILS: 0.25, UNDECIDED: 1.0}[wanted]
    assert rows, "nothing is compared"
    all_rows = claim.share < 1 or wanted == HOLDS
    A, b, equal, equals = [], [], [], []
    for place, (terms, constant) in enumerate(rows):
        row = np.zeros(len(names) + 1)
        row[[*terms]] = [*terms.values()]
        if wanted == UNDECIDED and (place == 0 or claim.share < 1):
            equal.append(row.copy())
            equals.append(constant)
        elif wanted != FAILS or place == 0 or all_rows:
            sign = 1.0 if wanted == FAILS else -1.0
            row = sign * row
            row[-1] = 1.0  # sign * sum + margin <= sign * constant
            A.append(row)
            b.append(sign * constant)
    bounds.append((0.0, 0.01))
    cost = np.zeros(len(names) + 1)
    cost[-1] = -1.0
    solution = linprog(cost, A or None, b or None, equal or None, equals or None, bounds)
    assert solution.success, f"no records with which the claim is {wanted}"
    assert not A or solution.x[-1] > 1e-3, f"no clear records with which the claim is {wanted}"
    return {name: float(solution.x[place]) for name, place in names.items()}


def perturbed(claim: Claim, results: Results, numbers: dict[tuple[int, str], float]) -> dict[str, Folder]:
    """Return the results with other numbers, of five repeats that scatter a little, on one machine."""
    scale = count(1)
    spread = {(s.than_metric or s.metric) for s in claim.statements if s.spread}
    spread |= {s.metric for s in claim.statements if s.spread}

    def changed(method: Method) -> Method:
        entries: dict[str, Any] = dict(method.entries)
        for (owner, metric), number in numbers.items():
            if owner == id(method):
                std = number / np.std(SPLITS, ddof=1) if metric in spread else SMALL * (1 + next(scale) / 1000)
                mean = 0.5 if metric in spread else number
                entries[metric] = Entry.of(dict(enumerate(mean + std * SPLITS)))
        return replace(method, entries=entries, timed_out=False, failures=[], conditions=IDLE)

    return {
        name: Folder(
            [replace(dataset, methods=[changed(method) for method in dataset.methods]) for dataset in datasets]
        )
        for name, datasets in results.items()
    }


@pytest.mark.parametrize("wanted", [HOLDS, UNDECIDED, FAILS])
@pytest.mark.parametrize(("name", "claim"), JUDGED, ids=[f"{name}: {claim.says[:60]}" for name, claim in JUDGED])
def test_each_claim_can_have_each_outcome(name: str, claim: Claim, wanted: str) -> None:
    results = results_of(name, claim)
    numbers = solved(claim, results, wanted)
    anywhere = claim.model_copy(update={"datasets": None})
    judged = judge(anywhere, perturbed(claim, results, numbers))
    assert judged.verdict == wanted, judged.sentence()
    assert judged.comparisons
