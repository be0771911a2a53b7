"""Scoreboards: counts of the results of a paper that agree, and of its other numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from klr_bench.report.papers.evidence import orders, total
from klr_bench.report.papers.match import Match
from klr_bench.report.papers.verdicts import FEW_REPEATS, WEAK_MARK, Kind, NotCompared, Verdict

NUMBERS, COMPARED, AGREE, POWER = "numbers", "results compared", "agree", "agree with power"
CALIBRATED, UNCALIBRATED = "calibrated", "agree, not calibrated"
PROTOCOL, AS_STATED = "paper's protocol run", "agree with it"
HEADLINE = (
    *(COMPARED, AGREE, POWER, Verdict.EXPLAINED.value, Verdict.UNEXPLAINED.value),
    *(CALIBRATED, UNCALIBRATED, PROTOCOL, AS_STATED),
)
"""Columns of the scoreboard, which count results only."""
SPREADS, INFERRED = "spreads", "inferred spreads"
ORDERS = {NotCompared.TIME: "order of times", NotCompared.OTHER_DATA: "order on other data"}
APART = (
    *(kind.value for kind in Kind if kind is not Kind.RESULT),
    *(SPREADS, INFERRED, *ORDERS.values(), Verdict.NOT_COMPARED.value),
)
"""Columns of the second scoreboard, with what does not count as a compared result."""
MEANINGS = {
    COMPARED: "numbers of methods, measured on the published data, without the numbers that are counted apart",
    AGREE: "the numbers agree exactly or statistically",
    POWER: "the published number agrees with our result for its method, but with fewer than half of our results for "
    "the other methods in the same table, with the same data set, metric and settings, and if it agrees statistically, "
    f"with at least {FEW_REPEATS} measured repeats; one that agrees without power is marked by {WEAK_MARK}",
    Verdict.EXACT.value: "the measured mean differs from the published one by at most half a unit of its last digit",
    Verdict.STATISTICAL.value: "the difference is at most two published standard deviations or two standard errors; if "
    "the paper prints no spread, the published number is in the 95 % prediction interval of the measured repeats, "
    "widened by the rounding of its last digit; with one measured repeat, the difference is at most one point for "
    "accuracies, error rates and sparsities, or 4 % of other numbers",
    Verdict.EXPLAINED.value: "a larger difference with a cause, and all comparisons of numbers that the cause "
    "requires hold in the cited experiments",
    Verdict.UNEXPLAINED.value: "a larger difference without a cause that is shown",
    CALIBRATED: "compared results and judged claims, marked by §, with a setting or limit that was chosen to agree "
    "with them, because the paper does not state it or states another one",
    UNCALIBRATED: "results that agree without such a setting",
    PROTOCOL: "calibrated results that were also computed as the paper says, which the caption of their table shows",
    AS_STATED: "the results of these runs that agree",
    Verdict.NOT_COMPARED.value: "training times, results on other data, and numbers without a measured counterpart",
    Kind.FACT.value: "properties of data sets that agree, and all that are compared",
    Kind.IDENTITY.value: "numbers that no run could change, such as a budget or the sparsity of a learner that keeps "
    "all rows",
    Kind.DUPLICATE.value: "numbers of support vectors that agree, next to a sparsity that is compared already",
    SPREADS: "published standard deviations of compared numbers that are compatible with ours: a two-sided F test at "
    "the 5 % level does not reject some value that rounds to the published one",
    INFERRED: "the same for standard deviations that are not printed but follow from others",
    ORDERS[
        NotCompared.TIME
    ]: "pairs of methods, in the same table and on the same data set, whose mean times are in the published order",
    ORDERS[
        NotCompared.OTHER_DATA
    ]: "the same for pairs of results on substitutes for unavailable data; in parentheses, "
    "the 95 % interval of Wilson for the share, with half the number of methods as the number of trials, because pairs "
    "that share a method are dependent",
}
"""Definitions of the columns and of verdicts."""


def results(matches: Iterable[Match]) -> list[Match]:
    """Return the results among published numbers, compared or not."""
    return [match for match in matches if match.kind is Kind.RESULT]


def verdict_counts(matches: Iterable[Match]) -> Counter[Verdict]:
    """Return the number of results for each verdict."""
    return Counter(match.verdict for match in results(matches))


def counts(matches: Sequence[Match]) -> dict[str, int]:
    """Return the number of published numbers, and one row of the scoreboard, keyed by column."""
    compared = [match for match in results(matches) if match.not_compared is None]
    verdicts = verdict_counts(compared)
    return {
        NUMBERS: len(matches),
        COMPARED: len(compared),
        AGREE: sum(match.agrees for match in compared),
        POWER: sum(match.has_power for match in compared),
        **{verdict.value: verdicts[verdict] for verdict in (Verdict.EXPLAINED, Verdict.UNEXPLAINED)},
        CALIBRATED: sum(match.is_calibrated for match in compared),
        PROTOCOL: sum(match.uncalibrated is not None for match in compared),
        AS_STATED: sum(match.agrees_as_stated for match in compared),
        UNCALIBRATED: sum(match.agrees and not match.is_calibrated for match in compared),
    }


def apart(matches: Sequence[Match]) -> dict[str, str]:
    """Return one row of the second scoreboard, keyed by column; "" stands for no number."""
    compared = [match for match in matches if match.not_compared is None]
    row = {}
    for kind in (Kind.FACT, Kind.IDENTITY, Kind.DUPLICATE):
        row[kind.value] = _share([match.agrees for match in compared if match.kind is kind])
    for name, inferred in ((SPREADS, False), (INFERRED, True)):
        tested = [match.spread_agrees for match in matches if match.has_inferred_spread is inferred]
        row[name] = _share([agrees for agrees in tested if agrees is not None])
    counted = orders(matches)
    for why, name in ORDERS.items():
        order = total({group: order for group, order in counted.items() if group.why is why})
        row[name] = f"{order.text()} ({order.percentages()})" if order else ""
    not_compared = len(matches) - len(compared)
    return row | {Verdict.NOT_COMPARED.value: f"{not_compared:,}" if not_compared else ""}


def _share(outcomes: Sequence[bool]) -> str:
    return f"{sum(outcomes):,} of {len(outcomes):,}" if outcomes else ""


def mark_sentences(matches: Iterable[Match]) -> list[str]:
    """Return sentences that explain the marks of the given numbers."""
    matches = list(matches)
    verdicts = {match.verdict for match in matches}
    sentences = []
    if (statistical := Verdict.STATISTICAL) in verdicts:
        sentences.append(f"~ {statistical.value}: {MEANINGS[statistical.value]}.")
    if any(match.is_common for match in matches):
        sentences.append(
            f"{WEAK_MARK} agrees without power: the published number agrees with at least half of our results for the "
            "other methods with the same data set, metric and settings, or there are none."
        )
    if any(match.has_few_repeats for match in matches):
        sentences.append(f"{WEAK_MARK} agrees statistically, but with fewer than {FEW_REPEATS} measured repeats.")
    differ = {Verdict.UNEXPLAINED: "* differs, unexplained", Verdict.EXPLAINED: "[1] differs, with the cause below"}
    if marks := [text for verdict, text in differ.items() if verdict in verdicts]:
        sentences.append(f"{'; '.join(marks)}.")
    return sentences


def not_compared_sentence(matches: Iterable[Match]) -> str:
    """Return a sentence on why numbers are not compared, or "" if all are compared."""
    reasons = Counter(match.not_compared for match in matches if match.not_compared)
    parts = [f"{reasons[reason]:,} {reason.value}" for reason in NotCompared if reasons[reason]]
    return f"Not compared: {', '.join(parts)}." if parts else ""
