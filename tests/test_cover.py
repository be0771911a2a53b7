"""Covers hold every combination that they promise, in few cases."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cover import combinations


@settings(max_examples=50)
@given(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=6), strength=st.integers(1, 3))
def test_any_values_of_any_dimensions_meet(sizes, strength):
    dimensions = [[f"{place}{value}" for value in range(size)] for place, size in enumerate(sizes)]
    cases = combinations(strength, dimensions)
    met = {chosen for case in cases for chosen in itertools.combinations(case, min(strength, len(sizes)))}
    wanted = itertools.combinations(dimensions, min(strength, len(sizes)))
    assert met == {chosen for some in wanted for chosen in itertools.product(*some)}
    assert len(set(map(tuple, cases))) == len(cases) <= math.prod(sizes)
