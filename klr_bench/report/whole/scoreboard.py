"""The scoreboard of a paper: how many of its numbers came out how, table by table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from klr_bench.report.render.layout import Grid
from klr_bench.report.whole.verdict import Judged, Verdict

Holds = Callable[[Judged], bool]


def _is(verdict: Verdict) -> Holds:
    return lambda one: one.verdict is verdict


COLUMNS: dict[str, Holds] = {
    "numbers": lambda one: True,
    "beside ours": lambda one: one.ours is not None,
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


def counts(judged: Iterable[Judged]) -> dict[str, int]:
    """Return the numbers of a scoreboard's line."""
    found: Counter[str] = Counter()
    for one in judged:
        found.update(name for name, holds in COLUMNS.items() if holds(one))
    return {name: found[name] for name in COLUMNS}


def scoreboard(title: str, lines: Mapping[str, Sequence[Judged]], last: str) -> Grid:
    """Return a line for each entry and one for all of them, called `last`; columns of zeros are left out."""
    every = [one for judged in lines.values() for one in judged]
    rows = {name: counts(judged) for name, judged in lines.items()} | {last: counts(every)}
    shown = [column for column in COLUMNS if rows[last][column] or column == "numbers"]
    texts = [[name, *(f"{row[column]:,}" if row[column] else "-" for column in shown)] for name, row in rows.items()]
    return Grid([title, *shown], texts, [], [])
