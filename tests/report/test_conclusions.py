"""Conclusions count the verdicts, name the causes, and can say that nothing agrees."""

from collections import Counter
from dataclasses import replace

import pytest

from klr_bench.report.conclusions import on_claims, on_methods, on_numbers
from klr_bench.report.load import read_results
from klr_bench.report.papers.claims import FAILS, HOLDS, UNDECIDED
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.report.papers.verdicts import Kind, NotCompared, Verdict
from klr_bench.report.table import results_table
from tests.report.folders import REFERENCE, reproduction


@pytest.fixture(scope="module")
def paper() -> Reproduction:
    return reproduction("zhang2013icml")


def test_each_verdict_is_counted(paper: Reproduction) -> None:
    results = [match for match in paper.matches if match.kind is Kind.RESULT and match.not_compared is None]
    n = Counter(match.verdict for match in results)
    agree, power = n[Verdict.EXACT] + n[Verdict.STATISTICAL], sum(match.has_power for match in results)
    first, settings, *others = on_numbers(paper.matches)
    of = f"{len(results)} compared results"
    assert first == f"{agree} of {of} agree with the published number, {power} of these with power."
    calibrated = sum(match.is_calibrated for match in results)
    assert settings == f"{calibrated} of {len(results)} have a calibrated setting (§)."
    reasons = Counter(match.reason for match in results if match.verdict is Verdict.EXPLAINED)
    texts = [f"{count} differ{'s' * (count == 1)}, explained: {reason}" for reason, count in reasons.most_common()]
    differing = [match for match in results if match.verdict is Verdict.UNEXPLAINED]
    if differing:
        unexplained, *others = others
        assert unexplained.startswith(f"{len(differing)} differ{'s' * (len(differing) == 1)}, unexplained: ")
    assert texts == others[:-2]
    assert others[-2].startswith("Counted apart: facts 9 of 9; identities 6 of 6; duplicates ")
    assert others[-1].startswith("Not compared: ")


def test_a_conclusion_can_say_that_nothing_agrees_or_is_compared(paper: Reproduction) -> None:
    compared = next(match for match in paper.matches if match.verdict is Verdict.EXACT and match.kind is Kind.RESULT)
    differing: list[Match] = [replace(compared, verdict=Verdict.UNEXPLAINED)] * 7
    none, unexplained, spreads = on_numbers([replace(match, calibration=None) for match in differing])
    assert none == "None of 7 compared results agrees with the published number."
    assert spreads == "Counted apart: spreads 7 of 7."
    different = [replace(match, spread_agrees=False) for match in differing]
    assert on_numbers(different)[-1] == "Counted apart: spreads 0 of 7."
    fact = replace(compared, kind=Kind.FACT, verdict=Verdict.UNEXPLAINED, spread_agrees=None)
    assert on_numbers([fact])[-1] == "Counted apart: facts 0 of 1."
    assert unexplained.startswith("7 differ, unexplained: ")
    assert unexplained.endswith("And 2 more.")
    time = replace(compared, verdict=Verdict.NOT_COMPARED, not_compared=NotCompared.TIME)
    time = replace(time, spread_agrees=None)
    assert on_numbers([time]) == ["No published result is compared with a measured one.", "Not compared: 1 time."]
    assert on_numbers([]) == on_claims([]) == []


def test_a_conclusion_counts_calibrated_results_both_ways() -> None:
    """With the settings of the paper, fewer of the error rates of Tan et al. agree."""
    results = [
        match for match in reproduction("tan2016aaai").matches if match.kind is Kind.RESULT and not match.not_compared
    ]
    run = [match for match in results if match.uncalibrated is not None]
    agree = sum(match.agrees_as_stated for match in results)
    assert on_numbers(results)[1] == (
        f"{sum(match.is_calibrated for match in results)} of {len(results)} have a calibrated setting (§); "
        f"{len(run)} were also computed with the paper's own protocol, and {agree} of these agree."
    )
    assert agree < sum(match.agrees for match in run)
    other_way = [replace(match, uncalibrated_verdict=Verdict.STATISTICAL) for match in results]
    assert f"and {len(run)} of these agree." in on_numbers(other_way)[1]


def test_claims_and_best_methods_are_named(paper: Reproduction) -> None:
    judged = next(claim for claim in paper.claims if claim.verdict == HOLDS)
    failing = replace(judged, comparisons=[replace(each, holds=False) for each in judged.comparisons])
    claims = [*paper.claims, failing]
    verdicts = Counter(claim.verdict for claim in claims)
    assert set(verdicts) == {HOLDS, UNDECIDED, FAILS}
    parts = "; ".join(f"{verdict} {verdicts[verdict]}" for verdict in (HOLDS, UNDECIDED, FAILS))
    assert on_claims(claims) == [f"{len(claims)} claims by verdict: {parts}."]
    (sentence,) = on_methods(results_table(read_results(REFERENCE / "oskl_magic")))
    assert sentence.startswith(
        "Best on MAGIC, Accuracy (%): Baseline, 86.0 ± 0.4; not significantly different: Margin,"
    )
    (over_all,) = on_methods(results_table(read_results(REFERENCE / "many_small")))
    assert over_all.startswith("Best on 17 data sets, Accuracy (%): SVC on 8, ")
