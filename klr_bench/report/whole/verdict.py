"""The verdict on one printed number: how far ours is from it, and what that means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from klr_bench.experiment.measure.metric import Metric
from klr_bench.report.paper import Printed
from klr_bench.report.table import Entry

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


@dataclass(frozen=True)
class Counterpart:
    """Ours for a printed number: the mean of an experiment, on a data set of ours."""

    experiment: str
    dataset: str
    entry: Entry


@dataclass(frozen=True)
class Judged:
    """A printed number, ours beside it if there is one, and the verdict."""

    printed: Printed
    verdict: Verdict
    ours: Counterpart | None = None
    reason: str = ""
    """The cause, what was tried to find one, or why there is no counterpart."""
    shown_by: tuple[str, ...] = ()
    """The experiments that show it."""

    @property
    def entry(self) -> Entry | None:
        """Our mean and spread beside the printed ones."""
        return self.ours.entry if self.ours else None

    @property
    def near(self) -> bool | None:
        """Whether ours is near by the plain rule: two deviations, one point, or 4 %; None where nothing is compared."""
        if self.verdict in (Verdict.TIME, Verdict.STAND_IN, Verdict.ABSENT, Verdict.OPEN) or self.entry is None:
            return None
        return is_near(self.entry, percent=self.printed.unit in ("percent", "fraction"))


def is_near(entry: Entry, *, percent: bool) -> bool:
    """Say whether a mean is within two published deviations, one percentage point, or 4 % of a number that is none."""
    assert entry.published is not None
    assert entry.mean is not None
    allowed = NEAR_POINTS if percent else NEAR_SHARE * abs(entry.published.mean)
    return abs(entry.mean - entry.published.mean) <= max(entry.published.tolerance, allowed) * (1 + 1e-9)


def compare(entry: Entry, metric: Metric, printed_repeats: int | None) -> Verdict:
    """Return the verdict on a number of the same data, before its causes are asked for."""
    if metric.unit == "s":
        return Verdict.TIME
    if not entry.outside:
        return Verdict.WITHIN
    error = standard_error(entry, printed_repeats)
    return Verdict.COMPATIBLE if error is not None and abs(entry.difference or 0.0) <= 2 * error else Verdict.OFF


def standard_error(entry: Entry, printed_repeats: int | None) -> float | None:
    """Return the standard error of the difference of our mean and the printed one, None where no spread is known.

    sqrt(s^2 / n + s'^2 / n') with the standard deviations s, s' over n, n' repeats.  Where one side has no spread, that
    of the other stands for it; a paper that does not say how many repeats its numbers are of is taken to have one.
    """
    published = entry.published.std if entry.published else None
    ours = published if entry.std is None else entry.std
    theirs = entry.std if published is None else published
    if ours is None or theirs is None:
        return None
    return math.sqrt(ours**2 / max(entry.n, 1) + theirs**2 / (printed_repeats or 1))
