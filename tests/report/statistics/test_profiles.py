"""Performance profiles are what Dolan and More define."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from klr_bench.report.statistics.across import profile, ratios
from tests.report.statistics import reference

TIMES = arrays.arrays(
    float,
    st.tuples(st.integers(1, 6), st.integers(1, 4)),
    elements=st.sampled_from([0.125, 0.25, 0.5, 1.0, 3.0, np.inf]),
)
FACTORS = np.array([1.0, 1.5, 2.0, 4.0, 8.0, 100.0])


def test_by_hand() -> None:
    times = [[1.0, 2.0], [4.0, 1.0], [np.inf, 3.0], [np.inf, np.inf]]
    np.testing.assert_array_equal(ratios(times), [[1, 2], [4, 1], [np.inf, 1], [np.inf, np.inf]])
    shares = profile(ratios(times), [1, 2, 4, np.finfo(float).max])
    np.testing.assert_array_equal(shares, [[0.25, 0.5], [0.25, 0.75], [0.5, 0.75], [0.5, 0.75]])


@given(TIMES)
def test_a_share_is_the_number_of_problems_within_the_factor(times: np.ndarray) -> None:
    found = profile(ratios(times), FACTORS)
    for factor, shares in zip(FACTORS, found, strict=True):
        assert shares.tolist() == pytest.approx(reference.profile(times.tolist(), factor))


@given(TIMES, st.sampled_from([0.25, 2.0, 1024.0]), st.randoms())
def test_shares_rise_and_know_neither_unit_nor_order(times: np.ndarray, unit: float, random) -> None:
    found = profile(ratios(times), FACTORS)
    assert (np.diff(found, axis=0) >= 0).all()
    rows = random.sample(range(len(times)), len(times))
    np.testing.assert_array_equal(profile(ratios(unit * times[rows]), FACTORS), found)


def test_degenerate_times() -> None:
    np.testing.assert_array_equal(ratios([[0.0, 0.0, 2.0]]), [[1, 1, np.inf]])
    np.testing.assert_array_equal(ratios([[1.0, np.nan], [1.0, 2.0]]), [[1, 2]])
    assert np.isnan(profile(np.empty((0, 2)), [1.0, 2.0])).all()
    with pytest.raises(ValueError, match=r"^times: expected numbers of at least 0, got -1"):
        ratios([[1.0, -1.0]])
