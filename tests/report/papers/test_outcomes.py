"""Outcomes of comparisons: intervals against SciPy's, and relations against random intervals."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from klr_bench.metrics.labels import METRICS
from klr_bench.parsing import parse
from klr_bench.report.measured import Entry
from klr_bench.report.papers.model import Statement
from klr_bench.report.papers.outcomes import FACTOR, constant, interval, outcome
from klr_bench.report.papers.verdicts import POINT
from tests.report.folders import REFERENCE

RNG = np.random.default_rng(0)
DOCS = REFERENCE.parents[1] / "docs" / "papers" / "index.md"
ONE, TWO = RNG.normal(0.9, 0.01, 5), RNG.normal(0.88, 0.03, 5)
OPPOSITE = {"above": "at most", "at least": "below", "below": "at least", "at most": "above"}


def statement(relation: str = "above", **values: Any) -> Statement:
    content = {"metric": "accuracy", "of": {"algorithms": ["nc"]}, "relation": relation, "value": 0.0}
    return parse(Statement, content | values)


def entry(values: Any, splits: str = "ours") -> Entry:
    return Entry.of({(splits, repeat): value for repeat, value in enumerate(values)})


def test_equal_repeats_have_no_spread() -> None:
    """The computed deviation of equal numbers, such as three times 0.1, may be above 0."""
    of, accuracy = statement(), METRICS["accuracy"]
    for left, right in ((0.1, 0.102), (0.7, 0.7), (0.9, 0.95)):
        assert entry([left] * 3).std == 0.0
        alike, others = (
            interval(of, entry([left] * 3), entry([right] * 3, of_), accuracy) for of_ in ("ours", "theirs")
        )
        assert alike == others == pytest.approx((left - right - 0.01, left - right + 0.01))


@pytest.mark.parametrize("times", [1.0, 0.9])
def test_intervals_are_those_of_t_tests(times: float) -> None:
    of, accuracy = statement(times=times), METRICS["accuracy"]
    paired = stats.ttest_rel(ONE, times * TWO).confidence_interval()
    assert interval(of, entry(ONE), entry(TWO), accuracy) == pytest.approx(tuple(paired))
    welch = stats.ttest_ind(ONE, times * TWO[:4], equal_var=False).confidence_interval()
    assert interval(of, entry(ONE), entry(TWO[:4]), accuracy) == pytest.approx(tuple(welch))
    welch = stats.ttest_ind(ONE, times * TWO, equal_var=False).confidence_interval()
    assert interval(of, entry(ONE), entry(TWO, "theirs"), accuracy) == pytest.approx(tuple(welch))
    alone = stats.ttest_1samp(ONE - times * 0.87, 0).confidence_interval()
    assert interval(of, entry(ONE), constant(0.87), accuracy) == pytest.approx(tuple(alone))


def test_the_interval_of_standard_deviations_is_that_of_the_f_test() -> None:
    low, high = interval(statement(spread=True), entry(ONE), entry(TWO), METRICS["accuracy"])
    for bound, tail in ((low, 0.025), (high, 0.975)):
        ratio = (bound / TWO.std(ddof=1) + 1) ** 2  # of the variances
        observed = ONE.var(ddof=1) / TWO.var(ddof=1)
        assert stats.f.sf(observed / ratio, 4, 4) == pytest.approx(tail)
    low, high = interval(statement(spread=True), entry(ONE), constant(0.02), METRICS["accuracy"])
    for bound, tail in ((low, 0.025), (high, 0.975)):
        assert stats.chi2.sf(4 * ONE.var(ddof=1) / (bound + 0.02) ** 2, 4) == pytest.approx(tail)


@pytest.mark.parametrize(
    ("metric", "left", "right", "half"),
    [
        ("accuracy", entry([0.9]), entry(TWO), POINT),
        ("accuracy", entry([0.9, 0.9]), entry([0.8, 0.8]), POINT),  # no repeat differs
        ("accuracy", Entry(1, 0.9, None), constant(0.8), POINT),
        ("nonzero_fraction", entry([0.02]), entry([0.04]), (FACTOR - 1) * 0.02),
        ("fit_time_s", entry([3.0]), constant(600.0), (FACTOR - 1) * 3.0),
    ],
)
def test_without_a_spread_the_interval_is_fixed(metric: str, left: Entry, right: Entry, half: float) -> None:
    low, high = interval(statement(), left, right, METRICS[metric])
    assert high - low == pytest.approx(2 * half)
    assert (low + high) / 2 == pytest.approx((left.mean or 0) - (right.mean or 0))


def test_a_time_that_is_never_reached_is_above_all_others() -> None:
    never, soon, time = entry([np.inf]), entry([1.0]), METRICS["near_optimal_s"]
    assert outcome(statement("above"), interval(statement(), never, soon, time)) is True
    assert outcome(statement("above"), interval(statement(), soon, never, time)) is False
    assert outcome(statement("above"), interval(statement(), never, never, time)) is None


@pytest.mark.parametrize("relation", OPPOSITE)
@pytest.mark.parametrize("within", [0.0, 0.3])
def test_an_outcome_is_that_of_the_differences_in_the_interval(relation: str, within: float) -> None:
    """A relation holds where its opposite does not, and is true for each difference, for none, or for some."""
    found = set()
    margin = within if relation in ("below", "at most") else -within
    compare = {"above": np.greater, "at least": np.greater_equal, "below": np.less, "at most": np.less_equal}[relation]
    for low, high in np.sort(np.random.default_rng(1).normal(size=(200, 2))):
        true = compare(np.linspace(low, high, 101), margin)
        result = outcome(statement(relation, within=within), (low, high))
        assert result is (True if true.all() else None if true.any() else False)
        if not within:
            assert outcome(statement(OPPOSITE[relation]), (low, high)) is (None if result is None else not result)
        found.add(result)
    assert found == {True, None, False}


@pytest.mark.parametrize(
    ("bounds", "result"),
    [((-0.1, 0.2), True), ((-0.4, 0.1), None), ((-0.4, 0.4), None), ((0.31, 0.4), False), ((-0.5, -0.31), False)],
)
def test_equality_is_within_a_margin(bounds: tuple[float, float], result: bool | None) -> None:
    assert outcome(statement("equal to", within=0.3), bounds) is result


@pytest.mark.parametrize(("relation", "result"), [("at least", True), ("at most", True), ("above", False)])
def test_a_difference_of_exactly_the_margin_is_allowed(relation: str, result: bool) -> None:
    assert outcome(statement(relation), (0.0, 0.0)) is result


def test_the_documentation_says_how_many_pairs_of_repeats_have_times_within_the_factor() -> None:
    ratios: list[float] = []
    for path in sorted(REFERENCE.glob("*/records.csv")):
        records = pd.read_csv(path, usecols=["dataset", "algorithm", "variant", "status", "fit_time_s"])
        finished = records[records["status"] == "ok"].fillna({"variant": ""})
        for _, times in finished.groupby(["dataset", "algorithm", "variant"])["fit_time_s"]:
            first, second = np.triu_indices(len(times), 1)
            pairs = times.to_numpy()[np.stack([first[:20], second[:20]])]
            ratios += [*(pairs.max(axis=0) / pairs.min(axis=0))]
    (share,) = re.findall(r"about (\d+) % of pairs of repeats", DOCS.read_text(encoding="utf-8"))
    assert 100 * np.mean(np.array(ratios) <= FACTOR) == pytest.approx(float(share), abs=1.5)
