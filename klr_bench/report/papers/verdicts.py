"""The verdict on one printed number: how far the measured one is from it, and what that means."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """What became of a printed number."""

    WITHIN = "within the published spread"
    COMPATIBLE = "statistically compatible"
    EXPLAINED = "off, with a cause"
    OFF = "off, without a cause"
    TIME = "a time"
    STAND_IN = "of other data"
    ABSENT = "not to be had"
    OPEN = "not run"


MARKS = {Verdict.COMPATIBLE: "~", Verdict.OFF: "*"}
"""What stands behind a number; behind one whose difference is explained stands the number of the cause."""
COMPATIBLE = (
    "the means differ by at most twice the standard error of their difference; where one "
    "side has no spread, that of the other stands for it"
)
MEANINGS = (
    "within: at most two published standard deviations, or half a unit of the last printed digit, from the printed "
    "mean",
    f"compatible: {COMPATIBLE}",
    "explained: off, with a cause that an experiment shows; off: without one; absent: not to be had, with the reason",
    "near: within two published standard deviations, one percentage point, or 4 % of a number that is no percentage, "
    "of those that are compared: not times, and not where other data stand in",
)


def verdict_of(entry: Entry, printed: Printed, metric: Metric | None, printed_repeats: int | None) -> Verdict:
    """Return the verdict on a number of the same data, before its causes are considered; a data set's size: no metric.

    A paper that does not say how many repeats its numbers are of is taken to have one.
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
    """Return the standard error of the difference of the measured and the printed mean, None if no spread is known.

    sqrt(s^2 / n + s'^2 / n') with the standard deviations s, s' over n, n' repeats.  Where one side has no spread, that
    of the other stands for it.
    """
    ours = printed_spread if entry.std is None else entry.std
    theirs = entry.std if printed_spread is None else printed_spread
    if ours is None or theirs is None:
        return None
    return math.sqrt(ours**2 / max(entry.n, 1) + theirs**2 / (printed_repeats or 1))


def is_near(mean: float, printed: Printed) -> bool:
    """Return True if a mean is within two published deviations, one percentage point, or 4 % of any other number."""
    allowed = NEAR_POINTS if printed.unit in ("percent", "fraction") else NEAR_SHARE * abs(printed.value)
    return abs(mean - printed.value) <= max(printed.tolerance, allowed) * (1 + 1e-9)


def marks_of(causes: Iterable[Cause]) -> dict[str, str]:
    """Return the mark of a number with an explained difference, by cause: its number in brackets."""
    return {cause.because: f" [{number}]" for number, cause in enumerate(causes, 1)}


def mark_of(match: Match, causes: Mapping[str, str]) -> str:
    """Return what stands behind a number; `causes` are the marks of the causes."""
    return causes[match.reason] if match.verdict is Verdict.EXPLAINED else MARKS.get(match.verdict, "")


def mark_sentences(verdicts: Iterable[Verdict]) -> list[str]:
    """Return what the marks of some verdicts mean."""
    found = set(verdicts)
    said = [f"~ statistically compatible: {COMPATIBLE}."] if Verdict.COMPATIBLE in found else []
    if found & {Verdict.OFF, Verdict.EXPLAINED}:
        said.append("* off: neither within the published spread nor statistically compatible; [1] with its cause.")
    return said


def _is(verdict: Verdict) -> Callable[[Match], bool]:
    return lambda one: one.verdict is verdict


SCOREBOARD: dict[str, Callable[[Match], bool]] = {
    "numbers": lambda one: True,
    "beside ours": lambda one: one.entry is not None,
    "within": _is(Verdict.WITHIN),
    "compatible": _is(Verdict.COMPATIBLE),
    "explained": _is(Verdict.EXPLAINED),
    "off": _is(Verdict.OFF),
    "times": _is(Verdict.TIME),
    "other data": _is(Verdict.STAND_IN),
    "absent": _is(Verdict.ABSENT),
    "not run": _is(Verdict.OPEN),
    "near": lambda one: one.near is True,
    "compared": lambda one: one.near is not None,
}
"""For each column of a scoreboard, the condition on the matches that it counts."""


def counts(matches: Sequence[Match]) -> dict[str, int]:
    """Return the numbers of a scoreboard's line."""
    found = Counter(name for one in matches for name, counted in SCOREBOARD.items() if counted(one))
    return {name: found[name] for name in SCOREBOARD}
