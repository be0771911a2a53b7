"""The steps of single examples, each the optimum of its own problem."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from klr_bench import NAROW
from klr_bench.estimators.linear.cw import confident, softly_confident


@given(m=st.floats(-5, 5), v=st.floats(1e-3, 50), b=st.floats(0.1, 20))
def test_narow_leaves_a_variance_of_one_over_b(m, v, b):
    learner = NAROW(b, covariance="diagonal").partial_fit([[math.sqrt(v)]], [1], classes=[-1, 1])
    expected = min(v, 1 / b)
    assert v * learner.covariance_[0] == pytest.approx(expected, rel=1e-7)


@given(m=st.floats(-20, 20), v=st.floats(1e-3, 50), confidence=st.floats(0.51, 0.99))
def test_cw_leaves_an_example_right_with_exactly_the_confidence(m, v, confidence):
    phi = ndtri(confidence)
    alpha, beta = confident(m, v, np.array([phi, math.inf]))
    if m >= phi * math.sqrt(v):
        assert (alpha, beta) == (0.0, 0.0)
    else:
        assert m + alpha * v == pytest.approx(phi * math.sqrt(v - beta * v * v), rel=1e-6, abs=1e-9)


@given(m=st.floats(-20, 20), v=st.floats(1e-3, 50), confidence=st.floats(0.51, 0.99))
def test_scw2_with_a_large_c_is_cw(m, v, confidence):
    phi = ndtri(confidence)
    soft = softly_confident(m, v, np.array([phi, 0.5 / 1e14]))
    assert soft == pytest.approx(confident(m, v, np.array([phi, math.inf])), rel=1e-5, abs=1e-12)


@given(
    m=st.floats(-5, 5), v=st.floats(0.01, 20), confidence=st.floats(0.55, 0.95), C=st.sampled_from([0.0625, 1.0, 16.0])
)
def test_scw2_is_the_optimum_of_its_problem(m, v, confidence, C):
    """Of N(mean + alpha y S x, S - beta Sx x'S): the divergence from N(mean, S) plus C times the squared loss."""
    phi = ndtri(confidence)
    alpha, beta = softly_confident(m, v, np.array([phi, 0.5 / C]))

    def objective(alpha, beta):
        rest = 1 - beta * v
        divergence = 0.5 * (-math.log(rest) + rest + alpha * alpha * v)
        return divergence + C * max(0.0, phi * math.sqrt(v * rest) - (m + alpha * v)) ** 2

    best = objective(alpha, beta)
    for factor in (0.9, 0.99, 1.01, 1.1):
        assert objective(alpha * factor, beta) >= best - 1e-9
        assert objective(alpha, min(beta * factor, 0.999 / v)) >= best - 1e-9


@pytest.mark.parametrize("rule", [confident, softly_confident])
@pytest.mark.parametrize("m", [0.0, 1e-300, 1.0, 1e8, -1e4])
@pytest.mark.parametrize("v", [1e-6, 1.0, 1e16])
def test_confident_steps_have_their_digits_at_extremes(rule, m, v):
    phi = 0.5
    alpha, beta = rule(m, v, np.array([phi, math.inf if rule is confident else 0.0]))
    assert 0 <= beta * v < 1
    if m < phi * math.sqrt(v):
        assert alpha > 0
        assert m + alpha * v == pytest.approx(phi * math.sqrt(v) * math.sqrt(1 - beta * v), rel=1e-6, abs=1e-7 * abs(m))
