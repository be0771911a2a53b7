"""The cosine in plain arithmetic is numpy's to the last digits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klr_bench.estimators.core.features import LARGEST_ANGLE as LARGEST
from klr_bench.estimators.core.features import cosine


def cosine_of(values):
    """Return the cosines of a list of numbers."""
    matrix = np.array([values], dtype=np.float64)
    cosine(matrix)
    return matrix[0]


@given(st.lists(st.floats(-2 * LARGEST, 2 * LARGEST), min_size=1, max_size=20))
def test_equals_that_of_numpy(values):
    np.testing.assert_allclose(cosine_of(values), np.cos(values), rtol=0, atol=3e-16)


@pytest.mark.parametrize("k", [0, 1, -1, 2, 1000, -99_999, 300_000])
def test_around_the_zeros_and_the_extremes(k):
    near = [float(np.nextafter(k * math.pi / 2, side)) for side in (-math.inf, math.inf)]
    values = [k * math.pi / 2, *near, k * math.pi / 2 + 1e-9]
    np.testing.assert_allclose(cosine_of(values), np.cos(values), rtol=0, atol=3e-16)


def test_what_it_leaves_to_numpy():
    assert np.isnan(cosine_of([1.0, math.nan])[1])
    assert cosine_of([1e300])[0] == math.cos(1e300)
    single = np.linspace(-9, 9, 40, dtype=np.float32).reshape(4, 10)
    expected = np.cos(single)
    cosine(single)
    np.testing.assert_array_equal(single, expected)
    cosine(np.empty((0, 3)))
    with np.errstate(invalid="ignore"):
        assert np.isnan(cosine_of([math.inf])[0])
