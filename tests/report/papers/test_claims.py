"""Claims of a paper: a comparison for each pair of columns that is meant, and a verdict that can be either."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from klr_bench.config.locations import folders
from klr_bench.metrics.labels import METRICS
from klr_bench.parsing import parse
from klr_bench.report.load import read_results
from klr_bench.report.measured import Measured, measure
from klr_bench.report.papers.claims import FAILS, HOLDS, OPEN, JudgedClaim, judge
from klr_bench.report.papers.model import Claim
from klr_bench.report.papers.reading import paper_files
from klr_bench.report.papers.reproduction import WholePaper
from tests.report.folders import record, write

REFERENCE = Path(__file__).resolve().parents[3] / "results" / "reference"
CONFIG: dict[str, Any] = {
    "experiment": "mine",
    "title": "Mine",
    "repeats": 2,
    "datasets": {"digits": {"label": "Digits"}},
    "algorithms": {"nc": {"label": "NC"}, "oskl": {"label": "OSKL"}},
    "sweep": {"oskl": {"G": [1, 2, 10]}},
}
ACCURACY = {1: 0.9, 2: 0.88, 10: 0.85}
COUNT = {1: 100, 2: 50, 10: 60}


@pytest.fixture
def measured(tmp_path: Path) -> dict[str, Measured]:
    """Make two experiments on one data set: NC has 0.9 and 200, OSKL less."""
    rows = []
    for repeat, away in enumerate((-0.01, 0.01)):
        rows.append(record("nc", "", repeat, dataset="digits", accuracy=0.9, n_support=200, last_accuracy=0.8 + away))
        rows += [
            record("oskl", f"G={G}", repeat, dataset="digits", accuracy=ACCURACY[G] + away, n_support=COUNT[G])
            for G in ACCURACY
        ]
    first = write(tmp_path / "mine", rows, CONFIG)
    config = CONFIG | {"experiment": "other", "algorithms": {"dcd": {"label": "DCD"}}, "sweep": {}}
    second = write(tmp_path / "other", [record("dcd", "", 0, dataset="digits", accuracy=0.95)], config)
    return {"mine": measure(read_results(first)), "other": measure(read_results(second))}


def judged(measured: dict[str, Measured], *statements: dict[str, Any], **claim: Any) -> JudgedClaim:
    content = {"says": "So it is.", "where": "section 1", "experiments": ["mine"], "statements": list(statements)}
    return judge(parse(Claim, content | claim), measured, METRICS)


OSKL, NC = {"algorithms": ["oskl"]}, {"algorithms": ["nc"]}


@pytest.mark.parametrize(
    ("statement", "verdict", "count"),
    [
        ({"metric": "n_support", "of": OSKL, "relation": "below", "than": NC}, HOLDS, "3 of 3"),
        ({"metric": "n_support", "of": OSKL, "relation": "above", "than": NC}, FAILS, "0 of 3"),
        ({"metric": "n_support", "of": NC, "relation": "at least", "than": OSKL, "times": 2}, HOLDS, "3 of 3"),
        ({"metric": "n_support", "of": NC, "relation": "at least", "than": OSKL, "times": 2.1}, FAILS, "2 of 3"),
        ({"metric": "accuracy", "of": OSKL, "relation": "above", "than": NC}, FAILS, "0 of 3"),
        ({"metric": "accuracy", "of": OSKL, "relation": "at least", "than": NC, "within": 0.03}, FAILS, "2 of 3"),
        ({"metric": "accuracy", "of": OSKL, "relation": "at least", "than": NC, "within": 0.06}, HOLDS, "3 of 3"),
        ({"metric": "accuracy", "of": OSKL, "relation": "below", "along": "G"}, HOLDS, "2 of 2"),
        ({"metric": "n_support", "of": OSKL, "relation": "below", "along": "G"}, FAILS, "1 of 2"),
        ({"metric": "accuracy", "of": OSKL, "relation": "above", "value": 0.87}, FAILS, "2 of 3"),
        ({"metric": "accuracy", "of": OSKL, "relation": "at most", "than": OSKL, "same": ["G"]}, OPEN, "-"),
        (
            {"metric": "last_accuracy", "of": NC, "relation": "below", "than": NC, "than_metric": "accuracy"},
            HOLDS,
            "1 of 1",
        ),
        (
            {
                **{"metric": "last_accuracy", "of": NC, "relation": "above", "than": NC},
                **{"than_metric": "accuracy", "spread": True},
            },
            HOLDS,
            "1 of 1",
        ),
        ({"metric": "accuracy", "of": {"algorithms": ["pegasos"]}, "relation": "above", "value": 0.1}, OPEN, "-"),
        (
            {
                **{"metric": "accuracy", "of": {"algorithms": ["oskl"], "params": {"G": [1]}}, "relation": "above"},
                "than": {"algorithms": ["oskl"], "params": {"G": [2, 10]}},
            },
            HOLDS,
            "2 of 2",
        ),
    ],
)
def test_a_statement_is_a_comparison_of_each_pair(
    measured: dict[str, Measured], statement: dict[str, Any], verdict: str, count: str
) -> None:
    found = judged(measured, statement)
    assert (found.verdict, found.count()) == (verdict, count)
    assert verdict[1:] in found.sentence()


def test_a_share_of_the_comparisons_may_be_enough(measured: dict[str, Measured]) -> None:
    statement = {"metric": "n_support", "of": OSKL, "relation": "below", "along": "G"}
    assert judged(measured, statement, share=0.5).verdict == HOLDS
    assert judged(measured, statement, share=0.51).verdict == FAILS


def test_columns_of_two_experiments_on_one_data_set_are_compared(measured: dict[str, Measured]) -> None:
    statement = {"metric": "accuracy", "of": {"algorithms": ["dcd"]}, "relation": "above", "than": OSKL}
    assert judged(measured, statement, experiments=["mine", "other"]).count() == "3 of 3"
    assert judged(measured, statement, experiments=["mine", "other"], datasets=["magic"]).verdict == OPEN
    here = statement | {"than": OSKL | {"experiments": ["other"]}}
    assert judged(measured, here, experiments=["mine", "other"]).verdict == OPEN


def test_the_sentence_has_the_numbers(measured: dict[str, Measured]) -> None:
    statement = {"metric": "accuracy", "of": OSKL, "relation": "at least", "than": NC, "within": 0.03}
    assert judged(measured, statement, experiments=["mine", "absent"]).sentence() == (
        "So it is. (section 1) Does not hold here: 2 of 3 comparisons. Against it: Digits: OSKL G=10 85.0 % against "
        "NC 90.0 %. Not run: absent."
    )


def test_a_claim_that_cannot_be_judged_says_why(measured: dict[str, Measured]) -> None:
    assert judged(measured, open="It is too vague.").sentence().endswith("Cannot be judged here. It is too vague.")
    assert judged(measured, experiments=["absent"]).sentence().endswith("Cannot be judged here. Not run: absent.")


@pytest.mark.parametrize(
    ("changes", "verdict", "count"),
    [({}, HOLDS, "1 of 1"), ({"host": "there"}, OPEN, "-"), ({"load": 0.2}, OPEN, "-")],
)
def test_times_are_compared_only_where_they_can_be(
    tmp_path: Path, changes: dict[str, Any], verdict: str, count: str
) -> None:
    here = {"dataset": "digits", "host": "here", "cpu": "A CPU", "load": 0.0}
    rows = [record("nc", "", 0, fit_time_s=9.0, **here), record("oskl", "G=1", 0, fit_time_s=1.0, **here | changes)]
    statement = {"metric": "fit_time_s", "of": OSKL, "relation": "below", "than": NC}
    found = judged({"mine": measure(read_results(write(tmp_path / "mine", rows, CONFIG)))}, statement)
    assert (found.verdict, found.count()) == (verdict, count)
    assert ("Left out: 1 comparisons of times of different machines" in found.sentence()) == bool(changes)


PAPERS = paper_files(folders()[:1])


@pytest.mark.parametrize("name", PAPERS)
def test_the_claims_of_the_papers_are_judged(name: str) -> None:
    """A claim that is not judged has a reason: it says so, or an experiment was not run."""
    whole = WholePaper(name, PAPERS[name], REFERENCE)
    assert len(whole.claims) >= 4, f"{name}/paper.yaml: expected 4 claims or more, got {len(whole.claims)}"
    for claim in whole.claims:
        assert claim.compared or claim.claim.open or claim.missing, claim.claim.says


def test_what_the_audit_found_is_said() -> None:
    claims = WholePaper("tan2016aaai", PAPERS["tan2016aaai"], REFERENCE).claims
    by_start = {claim.claim.says[:24]: claim for claim in claims}
    assert by_start["BCW is faster than libli"].verdict == FAILS
    assert "DCD (liblinear) 23.6 %" in by_start["BCW is faster than libli"].sentence()
    assert by_start["BCW trains at least ten "].verdict == FAILS
