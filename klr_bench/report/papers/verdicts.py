"""Verdicts on published numbers, derived from the difference to the measured mean."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from klr_bench.metrics.metric import Metric
from klr_bench.report.measured import Entry
from klr_bench.report.papers.model import Cause, Printed

if TYPE_CHECKING:
    from klr_bench.report.papers.match import Match

NEAR_POINTS, NEAR_SHARE = 0.01, 0.04
"""Near is within one percentage point, or four percent of a count or of any other number."""


class Verdict(Enum):
    """Result of comparing a published number with a measured one."""

    WITHIN = "within the published spread"
    COMPATIBLE = "statistically compatible"
    EXPLAINED = "off, with a cause"
    OFF = "off, without a cause"
    TIME = "a time"
    STAND_IN = "of other data"
    ABSENT = "unavailable"
    OPEN = "not run"


COUNTED = dict(
    zip(Verdict, ("within", "compatible", "explained", "off", "times", "other data", "absent", "not run"), strict=True)
)
SCOREBOARD = ("numbers", "measured", *COUNTED.values(), "near", "compared")
"""The columns of the scoreboard."""
MARKS = {Verdict.COMPATIBLE: "~", Verdict.OFF: "*"}
"""Marks printed after a number; an explained difference is marked by the index of its cause."""
COMPATIBLE = (
    "the means differ by at most twice the standard error of their difference; where one "
    "side has no spread, that of the other stands for it"
)
MEANINGS = (
    "within: at most two published standard deviations, or half a unit of the last printed digit, from the printed "
    "mean",
    f"compatible: {COMPATIBLE}",
    "explained: off, with a cause that an experiment shows; off: without one; absent: unavailable, with the reason",
    "near: within two published standard deviations, one percentage point, or 4 % of a number that is no percentage, "
    "of those that are compared: not times, and not where other data stand in",
)


def verdict_of(entry: Entry, printed: Printed, metric: Metric | None, printed_repeats: int | None) -> Verdict:
    """Return the verdict on a number measured on the published data set, ignoring causes.

    `metric` is None for a property of a data set.  If the paper does not state its number of repeats, 1 is assumed.
    """
    assert entry.mean is not None
    if metric is not None and metric.unit == "s":
        return Verdict.TIME
    if not printed.outside(entry.mean):
        return Verdict.WITHIN
    error = standard_error(entry, printed.spread, printed_repeats) if metric else None
    compatible = error is not None and abs(entry.mean - printed.value) <= 2 * error
    return Verdict.COMPATIBLE if compatible else Verdict.OFF


def standard_error(entry: Entry, printed_spread: float | None, printed_repeats: int | None) -> float | None:
    """Return the standard error of the difference between the measured and the published mean.

    It is sqrt(s^2 / n + s'^2 / n') with the standard deviations s, s' over n, n' repeats.  If one side has no spread,
    that of the other is used; if neither has, the result is None.
    """
    ours = printed_spread if entry.std is None else entry.std
    theirs = entry.std if printed_spread is None else printed_spread
    if ours is None or theirs is None:
        return None
    return math.sqrt(ours**2 / max(entry.n, 1) + theirs**2 / (printed_repeats or 1))


def is_near(mean: float, printed: Printed) -> bool:
    """Return True if a mean is within two published standard deviations, one point or 4 %."""
    allowed = NEAR_POINTS if printed.unit in ("percent", "fraction") else NEAR_SHARE * abs(printed.value)
    return abs(mean - printed.value) <= max(printed.tolerance, allowed) * (1 + 1e-9)


def marks_of(causes: Iterable[Cause]) -> dict[str, str]:
    """Return the marks of causes, such as " [1]", keyed by the text of the cause."""
    return {cause.because: f" [{number}]" for number, cause in enumerate(causes, 1)}


def mark_of(match: Match, causes: Mapping[str, str]) -> str:
    """Return the mark after a number; `causes` maps explanations to their marks."""
    return causes[match.reason] if match.verdict is Verdict.EXPLAINED else MARKS.get(match.verdict, "")


def mark_sentences(verdicts: Iterable[Verdict]) -> list[str]:
    """Return sentences that explain the marks of the given verdicts."""
    verdicts = set(verdicts)
    sentences = [f"~ statistically compatible: {COMPATIBLE}."] if Verdict.COMPATIBLE in verdicts else []
    if verdicts & {Verdict.OFF, Verdict.EXPLAINED}:
        sentences.append("* off: neither within the published spread nor statistically compatible; [1] with its cause.")
    return sentences


def counts(matches: Sequence[Match]) -> dict[str, int]:
    """Return one row of the scoreboard, keyed by column."""
    verdicts = Counter(COUNTED[one.verdict] for one in matches)
    beside_ours = sum(one.entry is not None for one in matches)
    near = [one.near for one in matches if one.near is not None]
    others = {"numbers": len(matches), "measured": beside_ours, "near": sum(near), "compared": len(near)}
    return {name: others.get(name, verdicts[name]) for name in SCOREBOARD}
