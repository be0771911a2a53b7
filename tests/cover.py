"""Cases of parameters of which every run of the tests has a part, and the exhaustive tests all."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pytest
from covertable import make


def cover(usual: int, exhaustive: int = 0, **dimensions: Collection[object]) -> pytest.MarkDecorator:
    """Parametrise a test: any values of any ``usual`` dimensions meet in at least one case.

    Those of any ``exhaustive`` dimensions meet in further cases, which are marked as exhaustive.  A dimension is a list
    of values, named by ``str``, or a mapping from names to values.
    """
    named = {name: labeled(values) for name, values in dimensions.items()}
    labels = [list(values) for values in named.values()]
    marks: dict[tuple[str, ...], list[pytest.MarkDecorator]] = {case: [] for case in combinations(usual, labels)}
    for case in combinations(exhaustive, labels) if exhaustive else []:
        marks.setdefault(case, [pytest.mark.exhaustive])
    cases = [
        pytest.param(*map(dict.__getitem__, named.values(), case), id="-".join(case), marks=of_case)
        for case, of_case in marks.items()
    ]
    return pytest.mark.parametrize(list(named), cases)


def usually(values: Iterable[Any], usual: Collection[Any]) -> list[Any]:
    """Return the values of a parameter as cases, those marked as exhaustive that are not usual."""
    return [pytest.param(value, marks=[] if value in usual else [pytest.mark.exhaustive]) for value in values]


def labeled(values: Collection[object]) -> dict[str, object]:
    """Return the values of a dimension by their names; raise ValueError where two have the same name."""
    named = dict(values) if isinstance(values, Mapping) else {str(value): value for value in values}
    if len(named) < len(values):
        message = f"two values have one name in {values}: give a mapping from names to values"
        raise ValueError(message)
    return named


def combinations(strength: int, dimensions: list[list[str]]) -> list[tuple[str, ...]]:
    """Return the cases, a value of each dimension in each; the same in every process."""
    indices = make([list(range(len(values))) for values in dimensions], strength=min(strength, len(dimensions)))
    return [tuple(values[i] for values, i in zip(dimensions, case, strict=True)) for case in indices]
