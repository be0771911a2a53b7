"""Test passes of online learners against references: layouts, precision, limits, sample weights."""

import lzma
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import has_fit_parameter

import klr_bench
from klr_bench import fit_many
from klr_bench.estimators.kernel_values import operand_base
from klr_bench.estimators.online import engine
from tests.cover import cover
from tests.estimators.one_pass import OSKL, AuxiliaryKLR, Forgetron, KernelPegasos, KernelPerceptron, NonConservativeKLR
from tests.estimators.online.cases import CASES, SOFTMAX, step_of
from tests.estimators.online.cases import toy as toy_of_many
from tests.estimators.samples import ALL_KERNELS, KERNELS, LAYOUTS, draws, laid_out, suited, toy
from tests.reference import kernel as reference
from tests.reference import multiclass


def assert_same_learner(learner, X, y, *, rtol, step=None, counted=True):
    """Assert that support vectors and coefficients equal those of the reference."""
    dense = X.toarray() if sp.issparse(X) else X
    kernel = {name: getattr(learner, name) for name in ("kernel", "gamma", "degree", "coef0")}
    K, many = reference.kernel_matrix(dense, dense, **kernel), len(learner.classes_) > 2
    default_step, radius = step_of(learner, many=many)
    function = partial(multiclass.online, n_classes=len(learner.classes_)) if many else reference.online
    f = function(K, y, draws=draws(len(y)), step=step or default_step, radius=radius)
    support = learner.support_vectors_.toarray() if sp.issparse(X) else learner.support_vectors_
    np.testing.assert_array_equal(support, dense[f.inserted].astype(support.dtype))
    coef = (f.total / len(y) if learner.average else f.coef)[..., f.inserted]
    fading = many or getattr(learner, "loss", None) in (
        "squared_hinge",
        "smooth_hinge",
    )  # a slope or share that is near 0
    atol = rtol * np.abs(coef).max(axis=0 if many else None) if fading else 1e-280
    np.testing.assert_array_less(np.abs(learner.dual_coef_ - coef), rtol * np.abs(coef) + atol + 1e-300)
    assert learner.n_support_ == learner.n_updates_ == f.inserted.sum()
    assert learner.t_ == len(y)
    if counted:  # rounding decides the sign of a canceling sum
        assert learner.n_mistakes_ == f.mistakes
    if hasattr(learner, "cumulative_loss_"):
        assert learner.cumulative_loss_ == pytest.approx(f.losses, rel=rtol)


ALL = CASES | SOFTMAX
DTYPES = ["float64", "float32"]


@cover(2, 3, case=list(ALL), kernel=ALL_KERNELS, layout=LAYOUTS, block=[1, 7, 256], average=[False, True], dtype=DTYPES)
def test_equals_the_reference(case, kernel, layout, block, average, dtype, monkeypatch):
    monkeypatch.setattr(engine.OnlineState, "chunk", block)
    monkeypatch.setattr(operand_base, "TILE", 33)
    X, y = toy_of_many(n=120) if case in SOFTMAX else toy(n=150)
    X = laid_out(suited(X.astype(dtype), layout), layout, monkeypatch)
    learner = clone(ALL[case]).set_params(**kernel, average=average, random_state=0).fit(X, y)
    canceling = kernel["kernel"] in ("linear", "sigmoid") and layout in ("bits", "csr as bits")
    rtol = 1e-10 if dtype == "float64" else 1e-3 if case in SOFTMAX else 1e-4
    assert_same_learner(learner, X, y, rtol=rtol, counted=dtype == "float64" and not canceling)


@pytest.mark.mirror("magic", "a9a")
@pytest.mark.parametrize(
    ("dataset", "case"), [*(("magic", case) for case in CASES), ("a9a", "nc small ball"), ("a9a", "oskl logit")]
)
def test_equals_the_reference_on_real_data(dataset, case, mirror):
    if dataset == "a9a":
        with lzma.open(mirror / "a9a" / "a9a.xz") as file:
            X, y = load_svmlight_file(file, n_features=123)
        rows = np.random.RandomState(0).permutation(len(y))[:300]
        X, y = X[rows], y[rows]
    else:
        with lzma.open(mirror / "magic04" / "magic04.data.xz") as file:
            table = pd.read_csv(file, header=None).sample(300, random_state=0)
        X = table.iloc[:, :10].to_numpy(np.float64)
        X, y = (X - X.min(axis=0)) / np.ptp(X, axis=0), np.where(table[10] == "h", 1, -1)
    learner = clone(CASES[case]).set_params(gamma=4.0 if dataset == "magic" else 0.04, random_state=0).fit(X, y)
    assert_same_learner(learner, X, y, rtol=1e-10)


@settings(max_examples=120)
@given(
    case=st.sampled_from(sorted(ALL)),
    kernel=st.sampled_from(sorted(KERNELS)),
    n=st.integers(6, 40),
    n_classes=st.integers(3, 6),
    d=st.integers(1, 3),
    seed=st.integers(0, 2**31),
    spread=st.sampled_from([1e-3, 1.0, 30.0]),
)
def test_equals_the_reference_on_any_data(case, kernel, n, n_classes, d, seed, spread):
    many, random = case in SOFTMAX, np.random.RandomState(seed)
    # equal rows are likely; canceling sums are 0 in any order, as the perceptron's rule requires
    X = np.round(1024 * spread * random.standard_normal((n, d))) / 1024
    y = random.randint(n_classes, size=n) if many else random.choice([-1, 1], n)
    y[: n_classes if many else 2] = np.arange(n_classes) if many else (-1, 1)
    learner = clone(ALL[case]).set_params(**KERNELS["rbf" if many or spread > 1 else kernel], random_state=0).fit(X, y)
    assert_same_learner(learner, X, y, rtol=1e-9)


@pytest.mark.parametrize("kernel", ALL_KERNELS.values(), ids=ALL_KERNELS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_decision_function_is_the_expansion(kernel, layout, monkeypatch):
    X, y = toy()
    X, Z = suited(X, layout), suited(toy(n=70, seed=5)[0], layout)
    learner = NonConservativeKLR(**kernel).fit(laid_out(X, layout, monkeypatch), y)
    f = learner.dual_coef_ @ reference.kernel_matrix(X, Z, **kernel)
    np.testing.assert_allclose(learner.decision_function(laid_out(Z, layout, monkeypatch)), f, rtol=1e-10, atol=1e-12)


def test_rbf_is_invariant_to_translation_in_single_precision():
    X, y = toy()
    X = (np.round(X * 64) / 64).astype(np.float32)  # exact after the shift: only the kernel can lose digits
    near, far = (OSKL(gamma=0.7, random_state=0).fit(data, y) for data in (X, X + 4096))
    np.testing.assert_allclose(far.dual_coef_, near.dual_coef_, rtol=1e-5)
    np.testing.assert_allclose(far.decision_function(X + 4096), near.decision_function(X), rtol=1e-4, atol=1e-5)


HUGE = [KernelPegasos(kernel="poly", degree=5), OSKL(kernel="poly", degree=5), NonConservativeKLR(eta=1e160)]


@pytest.mark.parametrize("learner", [*HUGE, KernelPerceptron(kernel="poly", degree=2.5, coef0=-1.0)], ids=str)
def test_raises_if_f_is_not_finite(learner):
    X, y = toy()
    message = r"at example number \d+, the update or the norm of f is not finite"
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ValueError, match=message):
        learner.fit((1e7 * X).astype(np.float32), y)


@pytest.mark.parametrize("place", [0, 150])
@pytest.mark.parametrize("size", [1e3, 1e5])
def test_an_outlier_does_not_reduce_the_precision_of_other_rows(place, size):
    X, y = toy()
    X[place] = size
    X = X.astype(np.float32)
    single, double = (NonConservativeKLR(gamma=0.7).fit(X.astype(dtype), y) for dtype in ("float32", "float64"))
    near = np.delete(X, place, axis=0)
    np.testing.assert_allclose(single.decision_function(near), double.decision_function(near), rtol=1e-3, atol=1e-4)


def test_negligible_coefficients_become_zero():
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
def test_several_passes_equal_repeated_partial_fit_and_count_each_row_once(learner, n_classes, layout):
    rows, y = toy(empty_rows=False)
    rows[298] = [0.3, -0.2, 0.1, 0.4]  # replaces another row
    y = y if n_classes == 2 or isinstance(learner, KernelPegasos) else np.digitize(rows[:, 0], [-0.3, 0.4])
    X = layout(rows)
    passes = clone(learner).set_params(dtype="float64", random_state=0)
    whole, f = clone(passes).set_params(n_epochs=3).fit(X, y), []
    for _ in range(4):  # f after each pass; the average covers all passes so far
        f.append(passes.partial_fit(X, y).decision_function(X))
        if len(f) == 3:
            assert whole.t_ == passes.t_ == 900
            assert whole.n_updates_ == passes.n_updates_ == passes.n_support_
    values = 3 * f[2] - 2 * f[1] if passes.average else f[2]
    np.testing.assert_allclose(whole.decision_function(X), values, rtol=1e-9, atol=1e-9 * np.abs(values).max())
    support = whole.support_vectors_.toarray() if sp.issparse(X) else whole.support_vectors_
    places = [np.flatnonzero((rows == row).all(axis=1))[0] for row in support]
    assert places == sorted(set(places))
    assert whole.dual_coef_.shape[-1] == whole.n_support_ == len(places)
    assert whole.summary()["sparsity"] == 1 - whole.n_support_ / 300
    values = 2 * f[3] - f[1] if passes.average else f[3]
    again = whole.partial_fit(X, y).decision_function(X)
    np.testing.assert_allclose(again, values, rtol=1e-8, atol=1e-9 * np.abs(values).max())
    stopped = clone(whole).fit(X, y, callback=lambda learner, t: t >= 500)
    assert stopped.n_support_ <= 300 < stopped.t_ < 900


@pytest.mark.parametrize("learner", [OSKL(G=1.5), Forgetron(budget=20)], ids=str)
def test_shuffle_equals_partial_fit_on_permuted_rows(learner):
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


def test_warns_if_rows_are_sorted_by_class():
    X, y = toy(n=1000)
    rows = np.argsort(y, kind="stable")
    with pytest.warns(UserWarning, match="OSKL: the rows are sorted by class.* shuffle=True"):
        in_order = OSKL(gamma=2.0, random_state=0).fit(X[rows], y[rows])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shuffled = OSKL(gamma=2.0, random_state=0, shuffle=True).fit(X[rows], y[rows])
    assert in_order.score(X, y) + 0.05 < shuffled.score(X, y) > 0.82


LEARNERS = [NonConservativeKLR(eta=0.5), OSKL(G=2.0), AuxiliaryKLR(), KernelPerceptron()]


def weights_of(n, *, largest=1.0, seed=0):
    """Return weights in [0, largest], about a tenth of which are 0."""
    random = np.random.RandomState(seed)
    return largest * random.random_sample(n) * (random.random_sample(n) > 0.1)


@pytest.mark.parametrize("case", CASES)
def test_weighted_updates_equal_the_reference(case):
    learner, step = CASES[case], step_of(CASES[case])[0]
    X, y = toy(empty_rows=False)
    sampled = isinstance(learner, OSKL)
    w = weights_of(len(y), largest=10.0 if sampled else 1.9)
    fitted = clone(learner).set_params(random_state=0, dtype="float64", gamma=0.7).fit(X, y, w)
    X, y, w = X[w > 0], y[w > 0], w[w > 0]
    factors = np.maximum(1.0, w / (learner.G if learner.loss == "logit" else 1.0)) if sampled else w

    def weighted(label, f, u, t):
        insert, shrink, c = step(label, f, u * factors[t - 1] / w[t - 1], t)
        return insert, shrink, c * factors[t - 1]

    assert_same_learner(fitted, X, y, step=weighted, rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_of_weight_0_are_ignored_and_equal_weights_scale_the_step(n_classes):
    X, y = toy()
    y = y if n_classes == 2 else np.digitize(X[:, 0], [-0.3, 0.4])
    w = (np.random.RandomState(1).random_sample(len(y)) < 0.6).astype(float)
    learner, twice = (NonConservativeKLR(eta=eta, average=False, gamma=0.7) for eta in (0.5, 1.0))
    fitted, without = learner.fit(X, y, 2 * w), twice.fit(X[w > 0], y[w > 0])
    np.testing.assert_array_equal(fitted.support_vectors_, without.support_vectors_)
    np.testing.assert_allclose(fitted.dual_coef_, without.dual_coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_class_weights_multiply_sample_weights(learner):
    X, y = toy()
    by_row, classes, learner = weights_of(300), {1: 1.7, -1: 0.4}, clone(learner).set_params(random_state=0)
    by_class, w = clone(learner).set_params(class_weight=classes), by_row * compute_sample_weight(classes, y)
    for method in ("fit", "partial_fit"):
        expected = getattr(clone(learner), method)(X, y, sample_weight=w).dual_coef_
        weighted = getattr(clone(by_class), method)(X, y, sample_weight=by_row)
        np.testing.assert_allclose(weighted.dual_coef_, expected, rtol=1e-12)


@pytest.mark.parametrize("eta", [None, 0.2])
@pytest.mark.parametrize(
    ("loss", "slope", "n_classes"),
    [("logit", 1 / 2, 2), ("logit", 2 / 3, 3), ("exponential", 1.0, 2), ("square", 2.0, 2)],
)
def test_the_expected_step_of_oskl_is_that_of_the_weighted_loss(loss, slope, n_classes, eta):
    n, share = 4000, 1.0 if n_classes == 2 else 0.5
    X = 100.0 * np.arange(n)[:, None]  # f is 0 at each row before its step
    for G in (2.0, 4.0):
        for weight in (0.3, 1.0, 3.0, 10.0):
            learner = OSKL(G=G, eta=eta, loss=loss, average=False, R=np.inf, gamma=1.0, random_state=0)
            learner.partial_fit(X, np.ones(n), classes=range(n_classes), sample_weight=np.full(n, weight))
            steps = np.atleast_2d(learner.dual_coef_)[-1 if n_classes == 2 else 1]
            assert steps.sum() / n == pytest.approx(learner._step_size() * weight * slope * share, rel=0.2)
            np.testing.assert_allclose(steps, steps[0], rtol=1e-9)


def test_learners_with_weights_share_a_pass():
    X, y = toy()
    learners = [clone(learner).set_params(random_state=0, class_weight="balanced") for learner in LEARNERS]
    w = weights_of(len(y), largest=1.5)
    for together, learner in zip(fit_many([clone(learner) for learner in learners], X, y, w), learners, strict=True):
        np.testing.assert_allclose(together.dual_coef_, learner.fit(X, y, w).dual_coef_, rtol=1e-9, atol=1e-14)
    other = clone(learners[0]).set_params(class_weight=None)
    assert learners[0].pass_key(2) != other.pass_key(2)


def test_raises_for_invalid_weights():
    X, y = toy()
    with pytest.raises(ValueError, match="class_weight='balanced' needs the sizes of the classes"):
        OSKL(class_weight="balanced").partial_fit(X, y)
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        OSKL().fit(X, y, -np.ones(len(y)))
    for weight in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="'class_weight' parameter must have finite weights >= 0"):
            OSKL(class_weight={1: weight}).fit(X, y)
    with pytest.raises(ValueError, match="'class_weight' parameter of OSKL must be"):
        OSKL(class_weight="equal").fit(X, y)
    assert not has_fit_parameter(Forgetron(), "sample_weight")
    assert "class_weight" not in Forgetron().get_params()
