"""Ranks, tests, groups and profiles, compared with SciPy, scikit-posthocs, references and Demsar's example."""

import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from klr_bench.report.statistics import across
from tests.report.statistics import reference

DEMSAR = np.array(
    [
        *([0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569], [0.954, 0.971, 0.968, 0.967]),
        *([0.628, 0.661, 0.654, 0.657], [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931]),
        *([0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625], [0.775, 0.838, 0.866, 0.875]),
        *([1.000, 1.000, 1.000, 1.000], [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669]),
        *([0.972, 0.981, 0.97501, 0.975], [0.957, 0.978, 0.946, 0.970]),
    ]
)
"""AUC of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf on 14 data sets: table 6 of Demsar (JMLR 7, 2006).

The 0.97501 is printed as 0.975; its rank in the table is above that of the other 0.975.
"""

SCORES = arrays.arrays(float, st.tuples(st.integers(6, 9), st.integers(3, 5)), elements=st.sampled_from([0, 1, 2, 3.0]))


def test_the_example_of_demsar() -> None:
    assert across.ranks(DEMSAR) == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    assert across.nemenyi(4, 14) == pytest.approx(1.25, abs=5e-3)
    assert across.nemenyi(10, 1) / np.sqrt(10 * 11 / 6) == pytest.approx(3.164, abs=1.1e-3)
    result = across.friedman(DEMSAR)
    # The paper's 9.28 has no correction for ties, which divides it by 1 - sum (t^3 - t) / (n k (k^2 - 1)).
    ties = sum((c**3 - c).sum() for row in DEMSAR for c in [np.unique(row, return_counts=True)[1]])
    assert result.statistic * (1 - ties / (14 * 4 * 15)) == pytest.approx(9.28, abs=5e-3)
    assert result.n == 14
    assert result.p < 0.05


@given(SCORES)
def test_ranks_equal_their_definition(scores: np.ndarray) -> None:
    assert across.ranks(scores).tolist() == pytest.approx(reference.ranks(scores.tolist()), abs=1e-12)


@pytest.mark.exhaustive  # the import of the library takes seconds
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.integers(6, 15), st.integers(2, 5))
def test_wilcoxon_with_holm_equals_scikit_posthocs(seed: int, n: int, k: int) -> None:
    scores = np.random.default_rng(seed).normal(size=(n, k)) + 0.4 * np.arange(k)
    frame = pd.DataFrame(scores).melt(var_name="method", value_name="score")
    of = {"val_col": "score", "group_col": "method"}
    result = across.wilcoxon(scores)
    expected = scikit_posthocs.posthoc_wilcoxon(frame, **of).to_numpy()
    np.testing.assert_allclose(result.p, expected, atol=1e-9)
    adjusted = scikit_posthocs.posthoc_wilcoxon(frame, **of, p_adjust="holm").to_numpy()
    np.testing.assert_allclose(result.p_holm, adjusted, atol=1e-9)


@given(arrays.arrays(bool, st.integers(1, 6).map(lambda k: (k, k))), st.randoms())
def test_groups_are_the_maximal_sets_of_pairwise_alike_methods(relation: np.ndarray, random) -> None:
    alike = relation | relation.T
    ranks = random.sample(range(len(alike)), len(alike))
    result = across.groups(ranks, alike)
    assert {frozenset(group) for group in result} == reference.groups(alike.tolist())
    assert len(result) == len(set(result))
    assert all([ranks[i] for i in group] == sorted(ranks[i] for i in group) for group in result)


def test_the_unit_of_scores_does_not_matter() -> None:
    tenths = np.array([[3, 3, 3, 3, 3, 7], [2, 2, 2, 2, 2, 8]]).T
    np.testing.assert_allclose(across.wilcoxon(tenths / 10).p, across.wilcoxon(tenths).p)
    assert across.wilcoxon(tenths / 10).p[0, 1] < 0.5


def test_degenerate_scores() -> None:
    equal = np.ones((7, 3))
    assert across.ranks(equal).tolist() == [2.0, 2.0, 2.0]
    assert across.friedman(equal) == (7, 0.0, 1.0)
    assert (across.wilcoxon(equal).p_holm == 1).all()
    assert across.groups(across.ranks(equal), across.wilcoxon(equal).p_holm > 0.05) == [(0, 1, 2)]
    assert np.isnan(across.friedman(np.ones((7, 2))).p)
    gap = np.vstack([DEMSAR, [0.5, np.nan, 0.5, 0.9]])
    assert across.friedman(gap) == across.friedman(DEMSAR)
    np.testing.assert_array_equal(across.ranks(gap), across.ranks(DEMSAR))
    np.testing.assert_array_equal(across.wilcoxon(gap).p_holm, across.wilcoxon(DEMSAR).p_holm)


def test_six_data_sets_suffice_for_a_significant_pair() -> None:
    for n, is_enough in ((5, False), (6, True)):
        p = across.wilcoxon(np.array([[i, i + 1 + 0.1 * i] for i in range(n)])).p_holm[0, 1]
        assert p == across.smallest_p(n, 2) == 2 / 2**n
        assert (p < 0.05) == is_enough


TIMES = arrays.arrays(
    float,
    st.tuples(st.integers(1, 6), st.integers(1, 4)),
    elements=st.sampled_from([0.125, 0.25, 0.5, 1.0, 3.0, np.inf]),
)
FACTORS = np.array([1.0, 1.5, 2.0, 4.0, 8.0, 100.0])


@given(TIMES, st.sampled_from([0.25, 2.0, 1024.0]), st.randoms())
def test_profiles_equal_their_definition(times: np.ndarray, unit: float, random) -> None:
    shares = across.profile(across.ratios(times), FACTORS)
    for factor, of_factor in zip(FACTORS, shares, strict=True):
        assert of_factor.tolist() == pytest.approx(reference.profile(times.tolist(), factor))
    rows = random.sample(range(len(times)), len(times))
    np.testing.assert_array_equal(across.profile(across.ratios(unit * times[rows]), FACTORS), shares)


def test_profiles_by_hand_and_of_degenerate_times() -> None:
    times = [[1.0, 2.0], [4.0, 1.0], [np.inf, 3.0], [np.inf, np.inf]]
    shares = across.profile(across.ratios(times), [1, 2, 4, np.finfo(float).max])
    np.testing.assert_array_equal(shares, [[0.25, 0.5], [0.25, 0.75], [0.5, 0.75], [0.5, 0.75]])
    np.testing.assert_array_equal(across.ratios([[0.0, 0.0, 2.0]]), [[1, 1, np.inf]])
    np.testing.assert_array_equal(across.ratios([[1.0, np.nan], [1.0, 2.0]]), [[1, 2]])
    assert np.isnan(across.profile(np.empty((0, 2)), [1.0, 2.0])).all()
