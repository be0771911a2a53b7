"""Covers hold every combination that they promise, in few cases."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cover import combinations, cover


@settings(max_examples=50)
@given(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=6), strength=st.integers(1, 3))
def test_any_values_of_any_dimensions_meet(sizes, strength):
    dimensions = [[f"{place}{value}" for value in range(size)] for place, size in enumerate(sizes)]
    cases = combinations(strength, dimensions)
    met = {chosen for case in cases for chosen in itertools.combinations(case, min(strength, len(sizes)))}
    wanted = itertools.combinations(dimensions, min(strength, len(sizes)))
    assert met == {chosen for some in wanted for chosen in itertools.product(*some)}
    assert len(set(map(tuple, cases))) == len(cases) <= math.prod(sizes)


def test_a_cover_is_far_smaller_than_the_product():
    dimensions = [[str(value) for value in range(size)] for size in (7, 4, 3, 3, 4, 2)]
    assert len(combinations(2, dimensions)) < 40
    assert len(combinations(3, dimensions)) < 150


@cover(2, number=[1, 2.5], mapping={"two": (1, 2)})
def test_parameters_arrive(number, mapping, request):
    assert number in (1, 2.5)
    assert mapping == (1, 2)
    assert request.node.callspec.id == f"{number}-two"


def test_names_of_dimensions_and_values():
    assert cover(2, a=[1], b=[2]).args[0] == ["a", "b"]
    with pytest.raises(ValueError, match="two values have one name"):
        cover(2, a=[1, "1"])
