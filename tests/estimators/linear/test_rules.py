"""The update for a single example is the optimum of its problem."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import ndtri

from klr_bench.estimators.linear.cw import confident, softly_confident, softly_confident_in_libol


@given(
    m=st.floats(-5, 5), v=st.floats(0.01, 20), confidence=st.floats(0.55, 0.95), C=st.sampled_from([0.0625, 1.0, 16.0])
)
def test_scw2_is_the_optimum_of_its_problem(m, v, confidence, C):
    """The objective is the divergence of the new from the old Gaussian plus C times the squared loss."""
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


def alpha_in_60_digits(m, v, phi, softness=None):
    """Return alpha of CW, or of SCW-II with a softness, by the formulas in the papers."""
    with localcontext(prec=60):
        m, v, phi = Decimal(m), Decimal(v), Decimal(phi)
        square = phi * phi
        if softness is None:
            root = (m * m * square * square / 4 + v * square * (1 + square)).sqrt()
            return max(0.0, float((root - m * (1 + square / 2)) / (v * (1 + square))))
        n = v + Decimal(softness)
        root = phi * (square * m * m * v * v + 4 * n * v * (n + v * square)).sqrt()
        return max(0.0, float((root - m * (2 * n + square * v)) / (2 * (n * n + n * v * square))))


@given(
    v=st.floats(1e-8, 1e8),
    confidence=st.floats(0.51, 0.99),
    softness=st.sampled_from([None, 1e-3, 0.5]),
    share=st.one_of(st.just(1.0), st.floats(1 - 1e-12, 1), st.floats(-10, 1)),
    steps=st.integers(-3, 3),
)
@example(v=5.125, confidence=0.8, softness=None, share=1.0, steps=-1)  # rounding makes v phi^2 - m^2 negative
@example(v=18.75, confidence=0.95, softness=0.5, share=1.0, steps=-1)
def test_confident_steps_are_accurate_near_the_threshold(v, confidence, softness, share, steps):
    """This includes m equal to phi sqrt(v) up to rounding, where no step is negative."""
    phi = ndtri(confidence)
    edge = phi * math.sqrt(v)
    m = share * edge
    for _ in range(abs(steps)):
        m = math.nextafter(m, math.copysign(math.inf, steps))
    rule, last = (confident, math.inf) if softness is None else (softly_confident, softness)
    alpha, beta = rule(m, v, np.array([phi, last]))
    assert alpha >= 0
    assert 0 <= beta * v < 1
    expected = alpha_in_60_digits(m, v, phi, softness)
    assert alpha == pytest.approx(expected, rel=1e-11, abs=4e-16 * edge / v)
    alpha, beta = softly_confident_in_libol(m, v, np.array([phi, softness or 0.5]))
    assert alpha >= 0
    assert 0 <= beta * v < 1
