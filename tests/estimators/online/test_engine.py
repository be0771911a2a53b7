"""The passes of the online learners against their references, in all layouts and precisions, and their limits."""

from __future__ import annotations

import copy
import lzma
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file

import klr_bench
from klr_bench.estimators.core import expansion
from klr_bench.estimators.online import engine
from tests.cover import cover
from tests.estimators.one_pass import OSKL, Forgetron, KernelPegasos, KernelPerceptron, NonConservativeKLR
from tests.estimators.online.cases import CASES
from tests.estimators.samples import KERNELS, LAYOUTS, draws, laid_out, suited, toy
from tests.reference import kernel as reference


def assert_same_learner(learner, X, y, step, radius, *, rtol, counted=True):
    """Compare a fitted learner with the reference: who is a support vector, and every coefficient."""
    dense = X.toarray() if sp.issparse(X) else X
    kernel = {name: getattr(learner, name) for name in ("kernel", "gamma", "degree", "coef0")}
    K = reference.kernel_matrix(dense, dense, **kernel)
    last, average, inserted, mistakes, losses = reference.online(K, y, draws(len(y)), step, radius)
    support = learner.support_vectors_.toarray() if sp.issparse(X) else learner.support_vectors_
    assert len(support) == inserted.sum()
    np.testing.assert_array_equal(support, dense[inserted].astype(support.dtype))
    expected = (average if learner.average else last)[inserted]
    fading = getattr(learner, "loss", None) in ("squared_hinge", "smooth_hinge")  # the slope, towards yf = 1
    atol = rtol * np.abs(expected).max() if fading else 1e-280
    np.testing.assert_allclose(learner.dual_coef_, expected, rtol=rtol, atol=atol)
    assert learner.n_support_ == learner.n_updates_ == inserted.sum()
    assert learner.t_ == len(y)
    if rtol <= 1e-10 and counted:  # the sign of a sum that cancels is a matter of rounding
        assert learner.n_mistakes_ == mistakes
    if hasattr(learner, "cumulative_loss_"):
        assert learner.cumulative_loss_ == pytest.approx(losses, rel=rtol)


@cover(3, case=list(CASES), kernel=KERNELS, layout=LAYOUTS, block=[1, 7, 256], average=[False, True])
def test_equals_the_reference_in_double(case, kernel, layout, block, average, monkeypatch):
    monkeypatch.setattr(engine, "BLOCK", block)
    monkeypatch.setattr(expansion, "TILE", 33)
    learner, step, radius = CASES[case]
    X, y = toy(n=150)
    learner = clone(learner).set_params(**kernel, average=average, dtype="float64", random_state=0)
    X = laid_out(suited(X, layout), layout, monkeypatch)
    learner.fit(X, y)
    cancelling = kernel["kernel"] == "linear" and layout in ("bits", "csr as bits")
    assert_same_learner(learner, X, y, step, radius, rtol=1e-10, counted=not cancelling)


@cover(2, case=list(CASES), kernel=KERNELS, layout=LAYOUTS)
def test_equals_the_reference_in_single(case, kernel, layout, monkeypatch):
    learner, step, radius = CASES[case]
    X, y = toy()
    X = laid_out(suited(X.astype(np.float32), layout), layout, monkeypatch)
    learner = clone(learner).set_params(**kernel, random_state=0).fit(X, y)
    assert learner.support_vectors_.dtype == np.float32
    assert_same_learner(learner, X, y, step, radius, rtol=1e-4)


@pytest.mark.mirror("magic")
@pytest.mark.parametrize("case", CASES)
def test_equals_the_reference_on_real_data(case, mirror):
    learner, step, radius = CASES[case]
    with lzma.open(mirror / "magic04" / "magic04.data.xz") as file:
        table = pd.read_csv(file, header=None).sample(600, random_state=0)
    X = table.iloc[:, :10].to_numpy(np.float64)
    X, y = (X - X.min(axis=0)) / np.ptp(X, axis=0), np.where(table[10] == "h", 1, -1)
    learner = clone(learner).set_params(gamma=4.0, dtype="float64", random_state=0).fit(X, y)
    assert_same_learner(learner, X, y, step, radius, rtol=1e-10)


@pytest.mark.mirror("a9a")
@pytest.mark.parametrize("case", ["nc small ball", "auxiliary log_gamma", "oskl logit", "pegasos tiny lambda"])
def test_equals_the_reference_on_real_sparse_data(case, mirror):
    learner, step, radius = CASES[case]
    with lzma.open(mirror / "a9a" / "a9a.xz") as file:
        X, y = load_svmlight_file(file, n_features=123)
    rows = np.random.RandomState(0).permutation(len(y))[:500]
    learner = clone(learner).set_params(gamma=0.04, dtype="float64", random_state=0).fit(X[rows], y[rows])
    assert_same_learner(learner, X[rows], y[rows], step, radius, rtol=1e-10)


@settings(max_examples=60)
@given(
    data=st.data(),
    n=st.integers(2, 40),
    d=st.integers(1, 3),
    seed=st.integers(0, 2**31),
    spread=st.sampled_from([1e-3, 1.0, 30.0]),
)
def test_equals_the_reference_on_any_data(data, n, d, seed, spread):
    learner, step, radius = CASES[data.draw(st.sampled_from(sorted(CASES)))]
    kernel = data.draw(st.sampled_from([KERNELS["rbf"]] if spread > 1 else list(KERNELS.values())))
    random = np.random.RandomState(seed)
    # equal rows are likely, and sums that cancel are 0 in any order, as the perceptron's rule needs it
    X = np.round(1024 * spread * random.standard_normal((n, d))) / 1024
    y = np.where(random.random_sample(n) < 0.5, 1, -1)
    y[:2] = -1, 1
    learner = clone(learner).set_params(**kernel, dtype="float64", random_state=0).fit(X, y)
    assert_same_learner(learner, X, y, step, radius, rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_decision_function_is_the_expansion(kernel, layout, monkeypatch):
    X, y = toy()
    X, Z = suited(X, layout), suited(toy(n=70, seed=5)[0], layout)
    learner = NonConservativeKLR(**kernel, dtype="float64").fit(X, y)
    K = reference.kernel_matrix(X, Z, **kernel)
    learner.fit(laid_out(X, layout, monkeypatch), y)
    data = laid_out(Z, layout, monkeypatch)
    np.testing.assert_allclose(learner.decision_function(data), learner.dual_coef_ @ K, rtol=1e-10, atol=1e-12)


def test_translation_leaves_rbf_alone_even_in_single_precision():
    X, y = toy()
    X = (np.round(X * 64) / 64).astype(np.float32)  # exact after the shift: only the kernel can lose digits
    near, far = (OSKL(gamma=0.7, random_state=0).fit(data, y) for data in (X, X + 4096))
    np.testing.assert_allclose(far.dual_coef_, near.dual_coef_, rtol=1e-5)
    np.testing.assert_allclose(far.decision_function(X + 4096), near.decision_function(X), rtol=1e-4, atol=1e-5)


def test_projection_holds_the_norm():
    X, y = toy()
    for R in (0.5, 3.0):
        learner = NonConservativeKLR(R=R, average=False, gamma=0.7, dtype="float64").fit(X, y)
        K = reference.kernel_matrix(learner.support_vectors_, learner.support_vectors_, gamma=0.7)
        assert np.sqrt(learner.dual_coef_ @ K @ learner.dual_coef_) <= R * (1 + 1e-10)
        assert learner._state.scalars[0, 2] == pytest.approx(learner.dual_coef_ @ K @ learner.dual_coef_, rel=1e-10)


@pytest.mark.parametrize(
    "learner",
    [
        KernelPegasos(kernel="poly", degree=5),
        KernelPerceptron(kernel="poly", degree=2.5, coef0=-1.0),
        OSKL(kernel="poly", degree=5),
        NonConservativeKLR(eta=1e160),
        KernelPegasos(lam=1e-310),
    ],
    ids=str,
)
def test_refuses_what_is_not_finite(learner):
    X, y = toy()
    message = r"at example \d+, and the update or the norm of f is not finite"
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ValueError, match=message):
        learner.fit((1e7 * X).astype(np.float32), y)


@pytest.mark.parametrize("place", [0, 150])
@pytest.mark.parametrize("size", [1e3, 1e5])
def test_one_far_row_does_not_cost_the_others_their_digits(place, size):
    X, y = toy()
    X[place] = size
    single = NonConservativeKLR(gamma=0.7).fit(X.astype(np.float32), y)
    double = NonConservativeKLR(gamma=0.7).fit(X.astype(np.float32).astype(np.float64), y)
    near = np.delete(X, place, axis=0).astype(np.float32)
    np.testing.assert_allclose(single.decision_function(near), double.decision_function(near), rtol=1e-3, atol=1e-4)


def test_what_decays_beyond_precision_becomes_zero():
    X, y = toy(n=3000)
    learner = NonConservativeKLR(R=0.1, average=False, gamma=0.7).fit(X, y)
    tiny = np.abs(learner.dual_coef_) < 1e-294
    assert tiny.any()
    assert not learner.dual_coef_[tiny].any()


SEVERAL = [
    *(KernelPegasos(), OSKL(G=1.5), OSKL(average=False), NonConservativeKLR(R=2.0), KernelPegasos(average=True)),
    *(NonConservativeKLR(R=0.1, average=False), NonConservativeKLR(kernel="poly", gamma=0.3, coef0=1.0, R=5.0)),
]


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("learner", SEVERAL, ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_several_passes_go_on_where_the_last_one_ended_and_count_each_row_once(learner, n_classes, layout):
    X, y = toy(empty_rows=False)
    X[298] = [0.3, -0.2, 0.1, 0.4]  # which was another row
    y = y if n_classes == 2 or isinstance(learner, KernelPegasos) else np.digitize(X[:, 0], [-0.3, 0.4])
    X = layout(X)
    passes = clone(learner).set_params(dtype="float64", random_state=0)
    whole = clone(passes).set_params(n_epochs=3).fit(X, y)
    f = []  # after each pass; an average is over all passes so far
    for _ in range(4):
        f.append(passes.partial_fit(X, y).decision_function(X))
        if len(f) == 3:
            three = copy.deepcopy(passes)
    passes = three
    assert whole.t_ == passes.t_ == 900
    assert whole.n_updates_ == passes.n_updates_ == passes.n_support_
    expected = 3 * f[2] - 2 * f[1] if passes.average else f[2]
    np.testing.assert_allclose(whole.decision_function(X), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    rows = np.array([row.toarray()[0] for row in whole.support_vectors_] if sp.issparse(X) else whole.support_vectors_)
    assert len(np.unique(rows, axis=0)) == whole.n_support_ <= 300
    assert whole.dual_coef_.shape[-1] == whole.n_support_
    dense = X.toarray() if sp.issparse(X) else X
    places = [np.flatnonzero((dense == row).all(axis=1))[0] for row in rows]
    assert places == sorted(places)
    assert whole.summary()["sparsity"] == 1 - whole.n_support_ / 300
    again = 2 * f[3] - f[1] if passes.average else f[3]
    np.testing.assert_allclose(
        whole.partial_fit(X, y).decision_function(X), again, rtol=1e-8, atol=1e-9 * np.abs(again).max()
    )


@pytest.mark.parametrize("learner", [OSKL(G=1.5), Forgetron(budget=20)], ids=str)
def test_shuffled_passes_are_those_of_rows_in_drawn_orders(learner):
    X, y = toy()
    shuffled = clone(learner).set_params(n_epochs=2, shuffle=True, random_state=4, dtype="float64").fit(X, y)
    random = np.random.RandomState(4)
    by_hand = clone(learner).set_params(random_state=random, dtype="float64")
    f = []
    for _ in range(2):
        order = random.permutation(len(y))
        f.append(by_hand.partial_fit(X[order], y[order]).decision_function(X))
    expected = f[1] if isinstance(shuffled, klr_bench.Forgetron) else 2 * f[1] - f[0]
    np.testing.assert_allclose(shuffled.decision_function(X), expected, rtol=1e-9, atol=1e-12)
    again = clone(shuffled).fit(X, y)
    np.testing.assert_array_equal(again.dual_coef_, shuffled.dual_coef_)


def test_rows_that_are_sorted_by_class_need_to_be_shuffled():
    X, y = toy(n=1000)
    by_class = np.argsort(y, kind="stable")
    with pytest.warns(UserWarning, match="OSKL: the rows are sorted by class.* shuffle=True"):
        in_order = OSKL(gamma=2.0, random_state=0).fit(X[by_class], y[by_class])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shuffled = OSKL(gamma=2.0, random_state=0, shuffle=True).fit(X[by_class], y[by_class])
        OSKL(random_state=0).fit(X, y)
    assert in_order.score(X, y) + 0.05 < shuffled.score(X, y) > 0.82


def test_a_pass_that_is_stopped_counts_each_row_once_too():
    X, y = toy(n=600)
    stopped = NonConservativeKLR(n_epochs=3).fit(X, y, callback=lambda learner, t: t >= 900)
    assert stopped.n_support_ == 600
    assert stopped.n_updates_ == stopped.t_ > 900
