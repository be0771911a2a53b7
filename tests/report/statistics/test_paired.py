"""Intervals, p-values and probabilities of paired differences equal other implementations and are calibrated."""

from typing import Any

import baycomp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.multitest import multipletests

from klr_bench.report.statistics.paired import corrected_interval, correlated_t, holm
from tests.report.statistics import reference

NUMBERS = st.floats(-1, 1).map(lambda number: round(number, 6))
DIFFERENCES = st.lists(NUMBERS, min_size=3, max_size=12).filter(lambda d: len(set(d)) > 1)
RATIOS = st.floats(0, 3)
P_VALUES = st.lists(st.sampled_from([0.0, 0.001, 0.01, 0.02, 0.03, 0.2, 0.5, 1.0]), min_size=1, max_size=12)


@given(DIFFERENCES, RATIOS, st.floats(0.5, 0.99))
def test_the_interval_equals_the_formula(differences: list[float], ratio: float, level: float) -> None:
    result = corrected_interval(differences, ratio, level)
    expected = reference.interval(differences, ratio, level)
    assert result.n == len(differences)
    assert (result.mean, result.low, result.high, result.p) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert corrected_interval(differences).p == pytest.approx(stats.ttest_1samp(differences, 0.0).pvalue, abs=1e-12)


@pytest.mark.parametrize(("folds", "runs"), [(2, 3), (5, 1), (10, 3)])
@pytest.mark.parametrize("rope", [0.0, 0.01, 0.1])
def test_the_probabilities_equal_those_of_baycomp(folds: int, runs: int, rope: float) -> None:
    random = np.random.default_rng(folds + runs)
    x, y = random.normal(0.8, 0.05, folds * runs), random.normal(0.82, 0.05, folds * runs)
    expected = baycomp.two_on_single(x, y, rope=rope, runs=runs)
    result = correlated_t(y - x, 1 / (folds - 1), rope)
    ours = (result.worse, result.better) if rope == 0 else result
    assert tuple(map(float, ours)) == pytest.approx(expected, abs=1e-9)


@given(DIFFERENCES, RATIOS, st.floats(0, 0.5))
def test_probabilities_sum_to_1_and_equal_one_sided_p_values(differences: Any, ratio: float, rope: float) -> None:
    forward = correlated_t(differences, ratio, rope)
    backward = correlated_t(-np.array(differences), ratio, rope)
    assert sum(forward) == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(np.array(forward), np.array(backward)[::-1], atol=1e-9)
    shares = correlated_t(differences, ratio, 0.0)
    assert 2 * min(shares.worse, shares.better) == pytest.approx(corrected_interval(differences, ratio).p, abs=1e-9)


@pytest.mark.exhaustive  # the import of the library takes seconds
@settings(max_examples=10, deadline=None)
@given(P_VALUES)
def test_holm_equals_its_definition_and_statsmodels(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert adjusted.tolist() == pytest.approx(reference.holm(p_values), abs=1e-12)
    assert adjusted.tolist() == pytest.approx(multipletests(p_values, method="holm")[1].tolist(), abs=1e-12)
    np.testing.assert_array_equal(holm([*p_values, np.nan]), [*adjusted, np.nan])  # missing comparisons are not counted


def test_degenerate_differences() -> None:
    nan, inf = np.nan, np.inf
    for differences, expected in (
        ([0.0] * 4, [4, 0.0, 0.0, 0.0, 1.0]),
        ([0.1] * 3, [3, 0.1, 0.1, 0.1, 0.0]),
        ([0.1, nan], [1, 0.1, nan, nan, nan]),
        ([nan, nan], [0, nan, nan, nan, nan]),
        ([0.1, 0.2, inf], [3, inf, nan, nan, nan]),
        ([0.1, nan, 0.3, 0.4], corrected_interval([0.1, 0.3, 0.4], 0.5)),
    ):
        np.testing.assert_array_equal(np.array(corrected_interval(differences, 0.5)), expected)
    cases = ((0.0, 0.01, (0, 1, 0)), (0.01, 0.01, (0, 1, 0)), (-0.02, 0.01, (1, 0, 0)), (0.0, 0.0, (0.5, 0, 0.5)))
    for value, rope, shares in cases:
        assert tuple(map(float, correlated_t([value] * 5, 0.5, rope))) == shares
    assert np.isnan(correlated_t([0.1], 0.5)).all()


NULLS = 2000
LIMIT = stats.binom.ppf(0.999, NULLS, 0.05) / NULLS
"""Upper limit that the false positive rate of a valid 5 % test exceeds with probability 0.001."""


def resampled_differences(n_repeats: int, n_rows: int, n_test: int, seed: int) -> NDArray[np.float64]:
    """Return differences of accuracy, (NULLS, n_repeats), of two methods that are equally good.

    On each row of a set one of them is right and the other is not, or they agree, whatever they are trained on; in the
    population neither is right more often.  Each repeat tests on other rows of the same set.
    """
    random = np.random.default_rng(seed)
    rows = random.choice([-1.0, 0.0, 1.0], p=[0.1, 0.8, 0.1], size=(NULLS, n_rows))
    keys = random.random((n_repeats, NULLS, n_rows))
    tested = np.argpartition(keys, n_test, axis=-1)[..., :n_test]
    return np.stack([np.take_along_axis(rows, rows_of_repeat, axis=1).mean(axis=1) for rows_of_repeat in tested], 1)


@pytest.mark.parametrize(("n_repeats", "share"), [(5, 0.2), (30, 0.2), (10, 0.5)])
def test_for_dependent_splits_only_the_corrected_interval_has_the_nominal_coverage(
    n_repeats: int, share: float
) -> None:
    n_rows = 400
    n_test = round(share * n_rows)
    differences = resampled_differences(n_repeats, n_rows, n_test, seed=n_repeats)
    corrected, ordinary = (
        float((corrected_interval(differences, ratio).p < 0.05).mean()) for ratio in (n_test / (n_rows - n_test), 0.0)
    )
    assert 0.02 < corrected <= LIMIT
    assert ordinary > 1.5 * LIMIT


def test_holm_over_all_pairs_controls_false_positives_among_equal_methods() -> None:
    """Holm over the comparisons with the best method alone would ignore the selection of the best."""
    random, k, n = np.random.default_rng(1), 8, 10
    first, second = np.triu_indices(k, 1)
    alarms = forgotten = 0
    for _ in range(NULLS):
        values = random.normal(size=(k, n))
        p = corrected_interval(values[first] - values[second]).p
        best = values.mean(axis=1).argmax()
        with_best = (first == best) | (second == best)
        alarms += bool((holm(p)[with_best] < 0.05).any())
        forgotten += bool((holm(p[with_best]) < 0.05).any())
    assert alarms / NULLS <= LIMIT
    assert forgotten / NULLS > LIMIT
