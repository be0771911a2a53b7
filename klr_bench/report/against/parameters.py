"""Which parameters differ in the fits of the columns that two runs share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from klr_bench.errors import shown
from klr_bench.report.against.cells import is_equal
from klr_bench.report.against.pairing import PAIRED, Pairing
from klr_bench.report.against.runs import Run

LONGEST = 40
"""Characters of a value that is shown."""
ABSENT = "-"
MISSING = object()


@dataclass(frozen=True)
class Fixed:
    """A parameter that has one value in all fits of a column, and another one in the other run."""

    parameter: str
    first: str
    second: str
    columns: tuple[tuple[str, str], ...]
    """(data set, print name of the column)"""


@dataclass(frozen=True)
class Chosen:
    """A parameter that selection chooses or a fit computes in each repeat, which differs in some of the paired fits."""

    parameter: str
    n_differ: int
    n_fits: int


def compare_parameters(
    first: Run, second: Run, pairings: dict[str, Pairing]
) -> tuple[Sequence[Fixed], Sequence[Chosen]]:
    """Return the parameters that differ; those that vary with the splits only where both have the same splits."""
    fixed: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    chosen: dict[str, tuple[int, int]] = {}
    for dataset, pairing in pairings.items():
        theirs = second.columns[dataset]
        for column, rows in first.columns[dataset].items():
            others = theirs.get(column, {})
            values = [row["params"] for row in rows.values()], [row["params"] for row in others.values()]
            names = dict.fromkeys(name for side in values for params in side for name in params) if others else ()
            for name in names:
                ours, other = ([params.get(name, MISSING) for params in side] for side in values)
                if _constant(ours) and _constant(other):
                    if not _same(ours[0], other[0]):
                        key = shown(name, LONGEST), _text(ours[0]), _text(other[0])
                        fixed.setdefault(key, []).append((dataset, first.label(column)))
                elif pairing.kind == PAIRED:
                    both = rows.keys() & others.keys()
                    pairs = ([side[n]["params"].get(name, MISSING) for side in (rows, others)] for n in both)
                    differ, n_fits = chosen.get(name, (0, 0))
                    chosen[name] = differ + sum(not _same(*pair) for pair in pairs), n_fits + len(both)
    return (
        [Fixed(*key, tuple(columns)) for key, columns in fixed.items()],
        [Chosen(shown(name, LONGEST), *counts) for name, counts in chosen.items() if counts[0]],
    )


def _constant(values: Sequence[Any]) -> bool:
    return all(_same(value, values[0]) for value in values)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return is_equal(one, other)
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _text(value: Any) -> str:
    if value is MISSING:
        return ABSENT
    return f"{value:g}" if isinstance(value, float) else shown(value, LONGEST)
