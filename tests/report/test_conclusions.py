"""Conclusions count the verdicts, name the causes, and can say that nothing agrees."""

from collections import Counter
from dataclasses import replace

import pytest

from klr_bench.config.locations import config_dir
from klr_bench.report.conclusions import on_claims, on_methods, on_numbers
from klr_bench.report.load import read_results
from klr_bench.report.papers.claims import FAILS, HOLDS, UNDECIDED
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.report.papers.verdicts import NotCompared, Verdict
from klr_bench.report.table import results_table
from tests.report.folders import REFERENCE


@pytest.fixture(scope="module")
def paper() -> Reproduction:
    return Reproduction("zhang2013icml", config_dir() / "paper" / "zhang2013icml", REFERENCE)


def test_each_verdict_is_counted(paper: Reproduction) -> None:
    n = Counter(one.verdict for one in paper.matches)
    exact, statistical, explained = n[Verdict.EXACT], n[Verdict.STATISTICAL], n[Verdict.EXPLAINED]
    first, *others = on_numbers(paper.matches)
    agree = f"{exact + statistical} of {exact + statistical + explained} comparisons with published numbers agree"
    assert first == f"{agree}: {exact} exactly, {statistical} statistically."
    reasons = Counter(one.reason for one in paper.matches if one.verdict is Verdict.EXPLAINED)
    assert [f"{count} differ, explained: {reason}" for reason, count in reasons.most_common()] == others[:-1]
    assert others[-1].startswith("Not compared: ")


def test_a_conclusion_can_say_that_nothing_agrees_or_is_compared(paper: Reproduction) -> None:
    compared = next(one for one in paper.matches if one.verdict is Verdict.EXACT)
    differing: list[Match] = [replace(compared, verdict=Verdict.UNEXPLAINED)] * 7
    none, unexplained = on_numbers(differing)
    assert none == "None of 7 comparisons with published numbers agrees."
    assert unexplained.startswith("7 differ, unexplained: ")
    assert unexplained.endswith("And 2 more.")
    time = replace(compared, verdict=Verdict.NOT_COMPARED, not_compared=NotCompared.TIME)
    assert on_numbers([time]) == ["No published number is compared with a measured one.", "Not compared: 1 time."]
    assert on_numbers([]) == on_claims([]) == []


def test_claims_and_best_methods_are_named(paper: Reproduction) -> None:
    verdicts = Counter(claim.verdict for claim in paper.claims)
    assert set(verdicts) == {HOLDS, UNDECIDED, FAILS}
    parts = "; ".join(f"{verdict} {verdicts[verdict]}" for verdict in (HOLDS, UNDECIDED, FAILS))
    assert on_claims(paper.claims) == [f"{len(paper.claims)} claims by verdict: {parts}."]
    (sentence,) = on_methods(results_table(read_results(REFERENCE / "oskl_magic")))
    assert sentence.startswith(
        "Best on MAGIC, Accuracy (%): Baseline, 86.0 ± 0.4; not significantly different: Margin,"
    )
    (over_all,) = on_methods(results_table(read_results(REFERENCE / "many_small")))
    assert over_all.startswith("Best on 17 data sets, Accuracy (%): SVC on 8, ")
