"""Double updating: equal to the reference, and each double step the best there is."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from klr_bench.estimators.online import duol
from tests.cover import cover
from tests.estimators.budget.test_budget import assert_same_learner, kernel_matrix
from tests.estimators.one_pass import DUOL
from tests.estimators.samples import KERNELS, LAYOUTS, laid_out, suited, toy
from tests.reference import kernel as reference


@cover(
    2,
    kernel=["rbf", "poly"],
    layout=LAYOUTS,
    block=[1, 7, 64, 128],
    average=[False, True],
    C=[0.3, 1.0, 20.0],
    rho=[0.05, 0.6],
)
def test_equals_the_reference(kernel, layout, block, average, C, rho, monkeypatch):
    monkeypatch.setattr(duol.DoubleState, "block", block)
    X, y = toy(n=150, empty_rows=False)
    X = suited(X, layout)
    learner = DUOL(C, rho, average=average, **KERNELS[kernel]).fit(laid_out(X, layout, monkeypatch), y)
    f = reference.duol(kernel_matrix(X, KERNELS[kernel]), y, C, rho)
    largest = np.abs(f.total / len(y) if average else f.coef).max()
    assert_same_learner(learner, X, f, rtol=1e-6, atol=1e-8 * largest)
    if rho < 0.1:  # some coefficients are those of a second step
        lone = DUOL(C, 1.0, average=average, **KERNELS[kernel]).fit(X, y)
        assert kernel == "poly" or not np.array_equal(lone.dual_coef_, learner.dual_coef_)


@settings(max_examples=300)
@given(
    st.tuples(st.floats(1e-3, 3), st.floats(0, 3), st.floats(0.1, 4), st.floats(0.1, 4)),
    st.floats(0, 0.995),
    st.floats(0.01, 5),
    st.floats(0, 5),
)
def test_no_two_steps_are_better(losses_and_lengths, cosine, room_t, room_b):
    loss_t, loss_b, length_t, length_b = losses_and_lengths
    w = -cosine * np.sqrt(length_t * length_b)
    g, d = duol.both_steps(loss_t, loss_b, length_t, length_b, w, room_t, room_b)
    expected = reference.both_steps(loss_t, loss_b, length_t, length_b, w, room_t, room_b)
    assert 0 <= g <= room_t
    assert 0 <= d <= room_b
    np.testing.assert_allclose((g, d), expected, rtol=1e-7, atol=1e-9)


def test_the_dual_objective_never_falls():
    X, y = toy(n=200, empty_rows=False)
    learner, before = DUOL(C=1.0, gamma=2.0), 0.0
    for t in range(200):
        a = learner.partial_fit(X[t : t + 1], y[t : t + 1], classes=[-1, 1]).dual_coef_
        dual = np.abs(a).sum() - a @ kernel_matrix(learner.support_vectors_, {"gamma": 2.0}) @ a / 2
        assert np.all(np.abs(a) <= 1 + 1e-12)
        assert dual >= before - 1e-12
        before = dual
