"""Kinds of numbers, spreads and orders, on small examples."""

from dataclasses import replace
from typing import Any

import pytest
from scipy.stats import binomtest

from klr_bench.parsing import parse
from klr_bench.report.measured import Entry, Machine
from klr_bench.report.papers.evidence import Group, Order, orders, spread_agrees, total, with_evidence
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.model import Paper, PrintedTable
from klr_bench.report.papers.scoreboard import mark_sentences
from klr_bench.report.papers.verdicts import Kind, NotCompared, Others, Verdict
from klr_bench.results.variants import Variant
from tests.report.papers.test_match import printed

TABLE = parse(PrintedTable, {"title": "A table", "repeats": 5})
PAPER = parse(Paper, dict.fromkeys(("title", "authors", "venue", "reference"), "x") | {"year": 2020})


def match(mean: str, entry: Entry, std: str = "", **values: Any) -> Match:
    line = printed(mean, std, **values)
    column = line.algorithm, Variant(line.params)
    return Match(line, Verdict.EXACT, None, column=column, entry=entry, dataset="data", dataset_label="Data")


def kinds(*matches: Match) -> list[Kind]:
    return [pair.kind for pair in with_evidence(matches, PAPER, TABLE)]


def test_a_count_that_is_a_parameter_is_an_identity_if_no_repeat_differs_from_it() -> None:
    budget = {"unit": "count", "metric": "n_support", "params": {"budget": 10}}
    assert kinds(match("10", Entry(5, 10.0, 0.0), **budget)) == [Kind.IDENTITY]
    assert kinds(match("10", Entry(5, 10.0, 0.1), **budget)) == [Kind.RESULT]
    assert kinds(match("10", Entry(5, 11.0, 0.0), **budget)) == [Kind.RESULT]
    assert kinds(match("9", Entry(5, 9.0, 0.0), **budget)) == [Kind.RESULT]
    share = {"unit": "fraction", "metric": "accuracy", "params": {"lam": 0.5}}
    assert kinds(match("0.5", Entry(5, 0.5, 0.0), **share)) == [Kind.RESULT]


def test_support_vectors_are_a_duplicate_of_a_sparsity_that_is_compared() -> None:
    sparsity = match("60", Entry(5, 0.6, 0.1), metric="sparsity")
    support = match("40", Entry(5, 40.0, 1.0), metric="n_support", unit="count")
    assert kinds(sparsity, support) == [Kind.RESULT, Kind.DUPLICATE]
    other = replace(sparsity, verdict=Verdict.NOT_COMPARED, not_compared=NotCompared.OTHER_DATA)
    assert kinds(other, support) == [Kind.RESULT, Kind.RESULT]
    assert kinds(match("60", Entry(5, 0.6, 0.1), metric="sparsity", algorithm="other"), support)[1] is Kind.RESULT
    keeps_all = match("0", Entry(5, 0.0, 0.0), metric="sparsity")
    assert kinds(keeps_all, support) == [Kind.IDENTITY, Kind.IDENTITY]


def test_other_methods_have_the_settings_that_the_layout_names() -> None:
    two = [
        match(mean, Entry(4, 0.9, 0.001), algorithm=name, params={"lam": lam})
        for mean, name, lam in (("90.0", "a", 1), ("90.0", "b", 1), ("90.0", "b", 2), ("80.0", "a", 2))
    ]
    apart = parse(PrintedTable, {"title": "x", "layout": {"columns": ["lam"]}})
    for table, expected in ((apart, [(1, 1), (1, 1), (1, 1), (0, 1)]), (TABLE, [(3, 3), (3, 3), (3, 3), (0, 3)])):
        judged = with_evidence(two, PAPER, table)
        assert [pair.others for pair in judged] == expected
        assert [pair.is_weak for pair in judged] == [True, True, True, False]
    (alone,) = with_evidence(two[:1], PAPER, apart)
    assert (alone.others, alone.has_power, alone.is_weak) == ((0, 0), False, True)


@pytest.mark.parametrize(
    ("std", "ours", "n", "repeats", "expected"),
    [
        ("1.0", 0.01, 5, 5, True),
        ("1.0", 0.03, 5, 5, True),  # F = 9 < 9.6, the 97.5 % quantile with 4 and 4 degrees of freedom
        ("1.0", 0.032, 5, 5, True),  # F = 10.2, but 1.04 rounds to 1.0
        ("1.0", 0.034, 5, 5, False),
        ("1.0", 0.002, 5, 5, False),
        ("0.0", 0.001, 5, 5, True),
        ("0.0", 0.01, 5, 5, False),
        ("0.0", 0.0, 5, 5, True),
        ("1.0", 0.0, 5, 5, False),
        ("", 0.01, 5, 5, None),
        ("1.0", None, 1, 5, None),
        ("1.0", 0.01, 5, None, None),
        ("1.0", 0.01, 5, 1, None),
    ],
)
def test_spreads_are_compared_if_both_are_over_several_repeats(
    std: str, ours: float | None, n: int, repeats: int | None, expected: bool | None
) -> None:
    assert spread_agrees(match("90.0", Entry(n, 0.9, ours), std), repeats) is expected


def timed(published: str, entry: Entry, machine: str = "vm") -> Match:
    pair = match(published, entry, metric="fit_time_s", unit="s")
    why = {"verdict": Verdict.NOT_COMPARED, "not_compared": NotCompared.TIME, "machine": Machine(machine, "cpu")}
    return replace(pair, **why)


def test_an_order_counts_pairs_that_can_be_compared() -> None:
    times = [timed("1", Entry(1, 5.0, None)), timed("2", Entry(1, 6.0, None)), timed("3", Entry(1, 5.5, None))]
    (order,) = orders(times).values()
    assert order == Order(2, 3, 3)
    (order,) = orders([*times, timed("3", Entry(1, 1.0, None))]).values()
    assert order == Order(2, 5, 4), "equal published times do not count"
    assert list(orders([*times, timed("9", Entry(1, 9.0, None, alike=False))]).values()) == [Order(2, 3, 3)]
    elsewhere = timed("9", Entry(1, 9.0, None), "other")
    assert list(orders([*times, elsewhere]).values()) == [Order(2, 3, 3)]
    (tied,) = orders([times[0], timed("2", Entry(1, 5.0, None))]).values()
    assert tied == Order(0, 1, 2), "equal measured times are not in the published order"
    assert orders([match("1", Entry(1, 5.0, None)), match("2", Entry(1, 6.0, None))]) == {}, "compared numbers"


def test_the_interval_is_that_of_wilson_for_half_as_many_trials_as_methods() -> None:
    for ordered, pairs, methods in ((6, 8, 16), (28, 28, 8), (0, 3, 4)):
        order = Order(ordered, pairs, methods)
        expected = binomtest(methods // 2 * ordered // pairs, methods // 2).proportion_ci(method="wilson")
        assert order.interval == pytest.approx((expected.low, expected.high))
    assert Order(6, 8, 16).sentence() == "6 of 8 pairs (75 %, 95 % interval 41 to 93 %)"


def test_methods_of_a_table_and_data_set_count_once_in_a_total() -> None:
    first, second, third = (
        Group(NotCompared.OTHER_DATA, table, "data", "Data", metric, None)
        for table, metric in (("1", "accuracy"), ("1", "sparsity"), ("2", "accuracy"))
    )
    counted = {first: Order(2, 3, 3), second: Order(1, 1, 2), third: Order(0, 1, 2)}
    assert total(counted) == Order(3, 5, 5)
    assert total({}) is None


@pytest.mark.parametrize(("n", "few"), [(1, True), (4, True), (5, False)])
def test_statistical_agreement_of_few_repeats_is_weak(n: int, few: bool) -> None:
    judged = replace(match("90.0", Entry(n, 0.901, 0.001)), verdict=Verdict.STATISTICAL)
    assert (judged.has_few_repeats, judged.is_weak) == (few, few)
    marks = "\n".join(mark_sentences([judged]))
    assert ("° agrees statistically, but with fewer than 5 measured repeats." in marks) is few
    assert "*" not in marks
    others = Others(0, 4)
    assert replace(judged, others=others).has_power is not few
    exact = replace(judged, verdict=Verdict.EXACT, others=others)
    assert (exact.has_few_repeats, exact.has_power) == (False, True)
