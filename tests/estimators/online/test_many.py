"""Many learners in one pass: each is what its own fit would make of it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from klr_bench import fit_many
from klr_bench.estimators.online.many import SharedFit
from tests.estimators.one_pass import OSKL, AuxiliaryKLR, KernelPegasos, MarginKLR, NonConservativeKLR
from tests.estimators.online.cases import CASES
from tests.estimators.samples import KERNELS, toy


def assert_same(one, other, rtol):
    np.testing.assert_array_equal(one.support_vectors_.shape, other.support_vectors_.shape)
    assert abs(one.support_vectors_ - other.support_vectors_).sum() == 0
    np.testing.assert_allclose(one.dual_coef_, other.dual_coef_, rtol=rtol, atol=1e-280)
    assert (one.n_mistakes_, one.t_, one.n_support_) == (other.n_mistakes_, other.t_, other.n_support_)
    assert one.summary() == pytest.approx(other.summary(), rel=rtol)
    assert one.classes_.tolist() == other.classes_.tolist()


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_each_learner_is_as_if_it_had_been_alone(kernel, layout):
    X, y = toy(n=600, empty_rows=False)
    X = sp.csr_matrix(X) if layout == "csr" else X
    learners = [clone(learner).set_params(**kernel, random_state=0) for learner, *_ in CASES.values()]
    for together, alone in zip(fit_many(learners, X, y), learners, strict=True):
        assert_same(together, clone(alone).fit(X, y), rtol=1e-9)


def test_in_single_precision_up_to_rounding():
    X, y = toy(n=600)
    X = X.astype(np.float32)
    learners = [clone(learner).set_params(gamma=0.7, random_state=0) for learner, *_ in CASES.values()]
    for together in fit_many(learners, X, y):
        assert_same(together, clone(together).fit(X, y), rtol=1e-3)


@settings(max_examples=20)
@given(st.lists(st.sampled_from(sorted(CASES)), min_size=1, max_size=4), st.integers(1, 590), st.integers(1, 2))
def test_a_learner_goes_on_alone(cases, cut, n_epochs):
    X, y = toy(n=600)
    learners = [
        clone(CASES[case][0]).set_params(gamma=0.7, random_state=seed, n_epochs=n_epochs)
        for seed, case in enumerate(cases)
    ]
    cut = max(cut, 1 + int(np.argmax(y != y[0])))
    for learner in fit_many(learners, X[:cut], y[:cut]):
        whole = clone(learner).fit(X[:cut], y[:cut]).partial_fit(X[cut:], y[cut:])
        assert_same(learner.partial_fit(X[cut:], y[cut:]), whole, rtol=1e-9)


RADII = st.sampled_from([0.3, 1.0, 2.0, 4.0, 5.0, 7.0, 9.0, 12.0, 20.0, 1e3, np.inf])
FAMILIES = [NonConservativeKLR(eta=0.7), AuxiliaryKLR(eta=0.4), OSKL(G=1.5), MarginKLR(eta=0.05)]


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(FAMILIES), RADII, st.booleans(), st.integers(0, 1)), min_size=2, max_size=10),
    st.integers(10, 590),
    st.integers(1, 2),
)
def test_learners_that_differ_in_their_radius_part_where_the_norm_exceeds_it(choices, cut, n_epochs):
    X, y = toy(n=600)
    learners = [
        clone(learner).set_params(R=R, average=average, random_state=seed, gamma=0.7, n_epochs=n_epochs)
        for learner, R, average, seed in choices
    ]
    shared = SharedFit([clone(learner) for learner in learners], X, y).decision_function(X)
    for f, learner in zip(shared.T, learners, strict=True):
        np.testing.assert_allclose(f, clone(learner).fit(X, y).decision_function(X), rtol=1e-9, atol=1e-11)
    for learner in fit_many(learners, X[:cut], y[:cut]):
        assert_same(learner, whole := clone(learner).fit(X[:cut], y[:cut]), rtol=1e-9)
        assert_same(learner.partial_fit(X[cut:], y[cut:]), whole.partial_fit(X[cut:], y[cut:]), rtol=1e-9)


def test_balls_that_are_never_left_cost_nothing():
    X, y = toy(n=600)
    radii = [1e3, 1.0, 1e5, np.inf]
    shared = SharedFit([NonConservativeKLR(R=R, random_state=0) for R in radii], X, y)
    assert shared.state.row.tolist() == [0, 1, 0, 0]
    assert len(np.unique(SharedFit([OSKL(random_state=seed) for seed in (0, 0, 1, None)], X, y).state.row)) == 3


def test_predictions_of_all_at_once():
    X, y = toy()
    learners = [OSKL(random_state=0), KernelPegasos(), NonConservativeKLR(average=False)]
    shared = SharedFit([clone(learner) for learner in learners], X, y)
    expected = np.column_stack([learner.fit(X, y).decision_function(X) for learner in learners])
    np.testing.assert_allclose(shared.decision_function(X), expected, rtol=1e-9, atol=1e-12)


def test_one_that_refuses_an_example_does_not_stop_the_others():
    X, y = toy()
    learners = [OSKL(loss="exponential", G=1.0), OSKL(random_state=0)]
    shared = SharedFit(learners, X, y)
    assert shared.refused.tolist() == [True, False]
    alone = OSKL(random_state=0).fit(X, y)
    np.testing.assert_allclose(shared.state.coefficients(1, average=True)[shared.state.inserted.columns[1] == 1],
                               alone.dual_coef_, rtol=1e-9)  # fmt: skip
    with pytest.raises(ValueError, match="exponential loss exceeds G = 1"):
        fit_many([clone(learner) for learner in learners], X, y)


@pytest.mark.parametrize("n_epochs", [1, 3, None])
def test_learners_that_shuffle_share_a_pass_if_they_have_one_seed(n_epochs):
    X, y = toy()
    learners = [OSKL(R=R, random_state=1, shuffle=True, n_epochs=n_epochs) for R in (1.0, 10.0)]
    assert learners[0].pass_key(2) == learners[1].pass_key(2) is not None
    for together, learner in zip(fit_many([clone(one) for one in learners], X, y), learners, strict=True):
        assert_same(together, learner.fit(X, y), rtol=1e-9)


@pytest.mark.parametrize("seeds", [(1, 2), (None, None)])
def test_learners_that_shuffle_by_other_seeds_are_fitted_one_by_one(seeds):
    X, y = toy()
    learners = [OSKL(random_state=seed, shuffle=True, n_epochs=2) for seed in seeds]
    assert learners[0].pass_key(2) != learners[1].pass_key(2)
    for together, learner in zip(fit_many(learners, X, y), learners, strict=True):
        if learner.random_state is not None:
            np.testing.assert_array_equal(together.dual_coef_, clone(learner).fit(X, y).dual_coef_)


def test_as_many_passes_as_the_class_has_are_another_number():
    assert OSKL(n_epochs=None).pass_key(2) != NonConservativeKLR(n_epochs=None).pass_key(2)
    assert OSKL(n_epochs=2).pass_key(2) == NonConservativeKLR(n_epochs=2).pass_key(2)
    assert OSKL(n_epochs=None).steps(6000) == (60_000, 256)
    assert OSKL(n_epochs=None).steps(50_000)[0] == AuxiliaryKLR(n_epochs=None).steps(50_000)[0] == 100_000
    assert AuxiliaryKLR(n_epochs=None).steps(100)[0] == 500
    assert AuxiliaryKLR(n_epochs=None).steps(10**6)[0] == 2 * 10**6


def test_learners_must_share_the_kernel():
    X, y = toy()
    with pytest.raises(ValueError, match="must share kernel, dtype, n_epochs and class_weight; got 2 combinations"):
        fit_many([OSKL(gamma=1.0), OSKL(gamma=2.0)], X, y)
    with pytest.raises(ValueError, match="'eta' parameter"):
        fit_many([OSKL(), NonConservativeKLR(eta=-1.0)], X, y)
