"""Causes of differences: recomputed from records, YAML and SciPy's tests alone, and from changed records."""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from klr_bench.config.locations import folders
from klr_bench.report.measured import measure
from klr_bench.report.papers.evidence import with_cause
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.model import DIFFERENCE, PUBLISHED, Cause
from klr_bench.report.papers.reading import paper_files
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.report.papers.verdicts import Verdict
from tests.report.folders import REFERENCE, reproduction
from tests.report.papers.test_recomputed_claims import (
    TIMES,
    Fits,
    bounds,
    methods,
    parameters,
    result,
    selected,
    values,
)

PAPERS = paper_files(folders()[:1])
SCALES = {"percent": 0.01, "min": 60.0}
Change = Callable[[pd.DataFrame, list[str]], pd.DataFrame]


@cache
def differing() -> list[tuple[str, Match, dict[str, Any]]]:
    """Return all published numbers that differ and have a cause, with its content in paper.yaml."""
    found = []
    for paper in PAPERS:
        content = yaml.safe_load((PAPERS[paper] / "paper.yaml").read_text(encoding="utf-8"))
        whole = reproduction(paper)
        causes = [*whole.paper.causes, *whole.paper.tried]
        contents = [*content.get("causes", []), *content.get("tried", [])]
        for match in whole.matches:
            if match.cause is not None:
                place = next(n for n, cause in enumerate(causes) if cause is match.cause.cause)
                found.append((paper, match, contents[place]))
    return found


DIFFERING = [
    pytest.param(*case, id=f"{case[0]}: {case[1].printed.label}, {case[1].printed.metric}") for case in differing()
]


def published(paper: str, match: Match) -> dict[str, dict[Any, float]]:
    """Return numbers with the mean and spread of those in the row of a published one, by metric."""
    rows = {}
    repeats = yaml.safe_load((PAPERS[paper] / "paper.yaml").read_text())["tables"][match.printed.table].get(
        "repeats", 1
    )
    with (PAPERS[paper] / "tables.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            same = line["table"], line["algorithm"], json.loads(line["params"] or "{}")
            of_row = same == (match.printed.table, match.printed.algorithm, match.printed.params)
            if line["dataset"] == match.printed.dataset and (of_row or not line["algorithm"]):
                scale = SCALES.get(line["unit"], 1.0)
                n = repeats if line["std"] else 1
                z = np.arange(n) - (n - 1) / 2
                spread = float(line["std"]) * z / z.std(ddof=1) if n > 1 else z
                rows[line["metric"]] = dict(enumerate(scale * (float(line["mean"]) + spread)))
    return rows


def sides(paper: str, match: Match, chosen: dict[str, Any], pool: list[Fits], metric: str) -> Iterator[Any]:
    """Yield the values that a filter selects, with the parameters of their method and the ratio of its split."""
    named = chosen.get("experiments", [])
    printed = match.printed.params | {"algorithm": match.printed.algorithm}
    if named == [DIFFERENCE] and metric == match.printed.metric and match.printed.algorithm in chosen["algorithms"]:
        assert match.mean is not None
        yield abs(match.mean - match.printed.value), printed, 0.0
    elif named == [PUBLISHED] and match.printed.algorithm in chosen["algorithms"]:
        yield published(paper, match)[metric], printed, 0.0
    for fits in selected(chosen, pool):
        ratio = 0.0 if metric in TIMES else max(fit["ratio"] for fit in fits)
        yield values(fits, metric), parameters(fits) | {"algorithm": fits[0]["algorithm"]}, ratio


def recomputed(paper: str, match: Match, cause: dict[str, Any]) -> list[list[bool | None]]:
    """Return the outcomes of the comparisons of each statement."""
    whole = reproduction(paper)
    others = {line.dataset for line in whole.lines} | {*whole.paper.stand_ins}
    pools: dict[str, list[Fits]] = {}
    for experiment in cause["shown_by"]:
        for dataset, _, fits in methods(experiment):
            if dataset == match.printed.dataset or dataset not in others:
                pools.setdefault(dataset, []).append(fits)
    outcomes = []
    for s in cause["statements"]:
        found = []
        for dataset, pool in pools.items():
            if dataset not in s.get("datasets", [dataset]):
                continue
            for ours, variant, ratio in sides(paper, match, s["of"], pool, s["metric"]):
                theirs = [(s["value"], None, 0.0)] if "value" in s else []
                if "than" in s:
                    theirs = [*sides(paper, match, s["than"], pool, s.get("than_metric", s["metric"]))]
                for right, other, of_other in theirs:
                    if other is None or all(variant.get(n) == other.get(n) for n in s.get("same", ())):
                        found.append(result(s, *bounds(s, ours, right, (ratio, of_other))))
        outcomes.append(found)
    return outcomes


@pytest.mark.parametrize(("paper", "match", "cause"), DIFFERING)
def test_every_comparison_of_every_cause(paper: str, match: Match, cause: dict[str, Any]) -> None:
    assert match.cause is not None
    outcomes = recomputed(paper, match, cause)
    every = [outcome for found in outcomes for outcome in found]
    assert Counter(comparison.holds for comparison in match.cause.comparisons) == Counter(every)
    is_shown = all(found and all(found) for found in outcomes)
    assert match.cause.is_shown is is_shown
    is_cause = any(other is match.cause.cause for other in reproduction(paper).paper.causes)
    assert match.verdict is (Verdict.EXPLAINED if is_shown and is_cause else Verdict.UNEXPLAINED)
    assert match.reason == (match.cause.cause.because if is_shown else "")


def scaled(factor: float) -> Change:
    return lambda frame, metrics: frame.assign(**{name: frame[name] * factor for name in metrics})


def spread(factor: float) -> Change:
    def change(frame: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
        means = frame.groupby(["dataset", "algorithm", "variant"], sort=False)[metrics].transform("mean")
        return frame.assign(**{name: means[name] + factor * (frame[name] - means[name]) for name in metrics})

    return change


def moved_to(value: float) -> Change:
    def change(frame: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
        means = frame.groupby(["dataset", "algorithm", "variant"], sort=False)[metrics].transform("mean")
        return frame.assign(**{name: frame[name] - means[name] + value for name in metrics})

    return change


CHANGES = [scaled(0.1), scaled(10.0), spread(0.01), spread(30.0)]


def with_records(whole: Reproduction, match: Match, cause: Cause, change: Change) -> Match:
    """Return a match whose cause is judged by changed values of the methods that its statements name."""
    measured = dict(whole.measured)
    names = {name for s in cause.statements for name in s.of.algorithms}
    metrics = sorted({s.metric for s in cause.statements})
    for experiment in cause.shown_by:
        results = whole.all_results[experiment]
        frame = results.records
        rows = frame["algorithm"].isin(names)
        changed = change(frame[rows].astype(dict.fromkeys(metrics, float)), metrics)
        frame = pd.concat([changed, frame[~rows]]).sort_index()
        measured[experiment] = measure(replace(results, records=frame))
    bare = replace(match, verdict=Verdict.UNEXPLAINED, cause=None, reason="")
    return with_cause(bare, whole.paper, whole.lines, measured)


@pytest.mark.parametrize(("paper", "match", "content"), DIFFERING)
def test_each_cause_can_be_shown_and_not_be_shown(paper: str, match: Match, content: dict[str, Any]) -> None:
    """Records are changed until the outcome changes, and back."""
    assert match.cause is not None
    whole, cause = reproduction(paper), match.cause.cause
    found = [
        with_records(whole, match, cause, change) for change in [*CHANGES, moved_to(match.printed.value), scaled(1.0)]
    ]
    same = found.pop()
    assert (same.verdict, same.reason, same.cause) == (match.verdict, match.reason, match.cause)
    is_cause = any(other is cause for other in whole.paper.causes)
    outcomes = set()
    for changed in found:
        assert changed.cause is not None
        outcomes.add(changed.cause.is_shown)
        explains = changed.cause.is_shown and is_cause
        assert (changed.verdict is Verdict.EXPLAINED) == explains, content["because"]
    assert (not match.cause.is_shown) in outcomes


def test_records_of_a_cited_experiment_decide_the_verdict() -> None:
    before = reproduction("qin2011")

    def verdict(change: Change) -> Verdict:
        whole = Reproduction("qin2011", PAPERS["qin2011"], REFERENCE)
        whole.paper = whole.paper.model_copy(update={"causes": whole.paper.tried})
        results = before.all_results["l1_codrna_step"]
        cited = {"l1_codrna_step": replace(results, records=change(results.records, ["nonzero_fraction"]))}
        whole.__dict__["all_results"] = {**before.all_results, **cited}
        (match,) = (
            match
            for match in whole.matches_by_table["5"]
            if (match.printed.label, match.printed.dataset, match.printed.metric)
            == ("SGD-C, rff, two_stage false", "cod_rna", "nonzero_fraction")
        )
        return match.verdict

    assert verdict(scaled(1.0)) is Verdict.EXPLAINED
    assert verdict(scaled(0.01)) is Verdict.UNEXPLAINED
    assert verdict(scaled(100.0)) is Verdict.UNEXPLAINED
