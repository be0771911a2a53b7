"""Verdicts on published numbers, based on their difference from the measured mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from scipy.special import stdtrit

from klr_bench.metrics.labels import METRICS
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
    CHANGED = "changed settings"
    OTHER_METHOD = "other method"
    UNAVAILABLE = "unavailable"
    NOT_RUN = "not run"


class Kind(Enum):
    """What a published number is; only results are in the headline."""

    RESULT = "results"
    FACT = "facts"
    IDENTITY = "identities"
    DUPLICATE = "duplicates"


class Others(NamedTuple):
    """Number of other methods in a table, and of those that a published number agrees with."""

    agreeing: int
    compared: int


AGREE = (Verdict.EXACT, Verdict.STATISTICAL)
CALIBRATED_MARK = "§"
WEAK_MARK = "°"
MARKS = {Verdict.STATISTICAL: "~", Verdict.UNEXPLAINED: "*"}
"""Marks printed after a number; an explained difference is marked by the index of its cause."""
BY_SIGN = {sign: verdict for verdict, sign in MARKS.items()} | {"]": Verdict.EXPLAINED}
"""Verdict on a printed number, by the last character of its mark."""
POINT, SHARE = 0.01, 0.04
"""Absolute and relative differences that agree statistically where neither side has a spread."""
FEW_REPEATS = 5
"""Smallest number of measured repeats with which statistical agreement is not marked as weak."""
LEVEL = 0.05
"""Level of the tests of means without a published spread, and of standard deviations."""
NOT_RATES = ("nonzero_fraction", "n_iter_ratio", "first_nonzero", "mean_nonzero", "log_loss_ratio")
"""Metrics in percent for which one percentage point may be a large difference."""


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
        spread = printed.spread or printed.spread_half_unit
        measured_spread = spread if entry.std is None else entry.std
        return 2 * max(spread, math.sqrt(measured_spread**2 / max(entry.n, 1) + spread**2 / (printed_repeats or 1)))
    if entry.std is not None:
        quantile = float(stdtrit(entry.n - 1, 1 - LEVEL / 2))
        return quantile * entry.std * math.sqrt(1 / (printed_repeats or 1) + 1 / entry.n) + printed.half_unit
    known = METRICS.get(printed.metric)
    is_percentage = known.unit == "percent" if known else printed.unit in ("percent", "fraction")
    return POINT if is_percentage and printed.metric not in NOT_RATES else SHARE * abs(printed.value)


def marks_of(causes: Iterable[Cause]) -> dict[str, str]:
    """Return a reference mark for each cause, such as " [1]", keyed by the text of the cause."""
    return {cause.because: f" [{number}]" for number, cause in enumerate(causes, 1)}


def mark_of(match: Match, causes: Mapping[str, str]) -> str:
    """Return the mark printed after a number; `causes` maps explanations to their marks."""
    mark = causes[match.reason] if match.verdict is Verdict.EXPLAINED else MARKS.get(match.verdict, "")
    return (CALIBRATED_MARK if match.is_calibrated else "") + mark + (WEAK_MARK if match.is_weak else "")
