"""Verdicts on published numbers, based on their difference from the measured mean."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from scipy.special import stdtrit

from klr_bench.metrics.metric import Metric
from klr_bench.report.measured import Entry
from klr_bench.report.papers.model import Cause, Printed

if TYPE_CHECKING:
    from klr_bench.report.papers.match import Match


class Verdict(Enum):
    """Result of comparing a published number with a measured one."""

    EXACT = "agrees exactly"
    STATISTICAL = "agrees statistically"
    EXPLAINED = "differs, explained"
    UNEXPLAINED = "differs, unexplained"
    NOT_COMPARED = "not compared"


class NotCompared(Enum):
    """Reason why a published number is not compared."""

    TIME = "time"
    OTHER_DATA = "other data"
    OTHER_METHOD = "other method"
    UNAVAILABLE = "unavailable"
    NOT_RUN = "not run"


CALIBRATED = "calibrated"
SCOREBOARD = ("numbers", *(verdict.value for verdict in Verdict), CALIBRATED)
"""The columns of the scoreboard."""
CALIBRATED_MARK = "§"
MARKS = {Verdict.STATISTICAL: "~", Verdict.UNEXPLAINED: "*"}
"""Marks printed after a number; an explained difference is marked by the index of its cause."""
BY_SIGN = {sign: verdict for verdict, sign in MARKS.items()} | {"]": Verdict.EXPLAINED}
"""Verdict on a printed number, by the last character of its mark."""
POINT, SHARE = 0.01, 0.04
"""Absolute and relative differences that agree statistically where neither side has a spread."""
LEVEL = 0.05
"""Level of the tests of means without a published spread, and of standard deviations."""
RELATIVE = ("nonzero_fraction", "n_iter_ratio")
"""Percentages that are compared relatively, because a point is a large difference for a small share."""
MEANINGS = {
    Verdict.EXACT.value: "the measured mean differs from the published one by at most half a unit of its last digit",
    Verdict.STATISTICAL.value: "the difference is at most two published standard deviations or two standard errors; if "
    "the paper prints no spread, the published number is in the 95 % prediction interval of the measured repeats, widened "
    "by the rounding of its last digit; with one measured repeat, the difference is at most one point for accuracies and "
    "error rates, or 4 % of other numbers",
    Verdict.EXPLAINED.value: "a larger difference, and an experiment demonstrates the cause",
    Verdict.UNEXPLAINED.value: "a larger difference without a known cause",
    Verdict.NOT_COMPARED.value: "training times, results on other data, and numbers without a measured counterpart",
    CALIBRATED: "compared numbers, marked by §, for which a setting that the paper does not state was chosen to agree "
    "with them",
}
"""Definitions of verdicts and of calibrated numbers."""


def verdict_of(entry: Entry, printed: Printed, metric: Metric | None, printed_repeats: int | None) -> Verdict:
    """Return the verdict on a number measured on the published data set, ignoring known causes.

    `metric` is None for a property of a data set.  If the paper does not state its number of repeats, 1 is assumed.
    """
    assert entry.mean is not None
    difference = abs(entry.mean - printed.value) / (1 + 1e-9)
    if difference <= printed.half_unit:
        return Verdict.EXACT
    if metric is None:
        return Verdict.UNEXPLAINED
    return Verdict.STATISTICAL if difference <= tolerance(entry, printed, printed_repeats) else Verdict.UNEXPLAINED


def tolerance(entry: Entry, printed: Printed, printed_repeats: int | None) -> float:
    """Return the largest difference that counts as statistical agreement.

    With a published standard deviation s' over n' repeats it is 2 max(s', sqrt(s^2 / n + s'^2 / n')), where s is the
    standard deviation over the n measured repeats, or s' if there is only one. A published 0.0 counts as half a unit
    of its last digit.

    Without it, the published number is regarded as the mean of n' repeats (one if the paper does not say) that vary
    like ours: t s sqrt(1 / n' + 1 / n) plus half a unit of the last digit, with the 97.5 % quantile t of Student's
    distribution with n - 1 degrees of freedom.  With a single measured repeat, a fixed difference is accepted.
    """
    if printed.spread is not None:
        spread = printed.spread or printed.half_unit
        measured_spread = spread if entry.std is None else entry.std
        return 2 * max(spread, math.sqrt(measured_spread**2 / max(entry.n, 1) + spread**2 / (printed_repeats or 1)))
    if entry.std is not None:
        quantile = float(stdtrit(entry.n - 1, 1 - LEVEL / 2))
        return quantile * entry.std * math.sqrt(1 / (printed_repeats or 1) + 1 / entry.n) + printed.half_unit
    is_percentage = printed.unit in ("percent", "fraction") and printed.metric not in RELATIVE
    return POINT if is_percentage else SHARE * abs(printed.value)


def marks_of(causes: Iterable[Cause]) -> dict[str, str]:
    """Return a reference mark for each cause, such as " [1]", keyed by the text of the cause."""
    return {cause.because: f" [{number}]" for number, cause in enumerate(causes, 1)}


def mark_of(match: Match, causes: Mapping[str, str]) -> str:
    """Return the mark printed after a number; `causes` maps explanations to their marks."""
    mark = causes[match.reason] if match.verdict is Verdict.EXPLAINED else MARKS.get(match.verdict, "")
    return (CALIBRATED_MARK if match.is_calibrated else "") + mark


def mark_sentences(verdicts: Iterable[Verdict]) -> list[str]:
    """Return sentences that explain the marks of the given verdicts."""
    verdicts = set(verdicts)
    sentences = (
        [f"~ {Verdict.STATISTICAL.value}: {MEANINGS[Verdict.STATISTICAL.value]}."]
        if Verdict.STATISTICAL in verdicts
        else []
    )
    if verdicts & {Verdict.UNEXPLAINED, Verdict.EXPLAINED}:
        sentences.append("* differs, unexplained; [1] differs, with the cause below.")
    return sentences


def counts(matches: Sequence[Match]) -> dict[str, int]:
    """Return one row of the scoreboard, keyed by column."""
    verdicts = Counter(one.verdict.value for one in matches)
    by_verdict = {verdict.value: verdicts[verdict.value] for verdict in Verdict}
    return {"numbers": len(matches)} | by_verdict | {CALIBRATED: sum(one.is_calibrated for one in matches)}


def not_compared_sentence(matches: Iterable[Match]) -> str:
    """Return a sentence on why numbers are not compared, or "" if all are compared."""
    reasons = Counter(one.not_compared for one in matches if one.not_compared)
    parts = [f"{reasons[reason]:,} {reason.value}" for reason in NotCompared if reasons[reason]]
    return f"Not compared: {', '.join(parts)}." if parts else ""
