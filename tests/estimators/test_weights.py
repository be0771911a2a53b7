"""Weights of rows in the learners of one problem: those of repeated rows, and of classes."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.class_weight import compute_sample_weight

import klr_bench as klr
from klr_bench.estimators.peers.approximate import ApproximateKernelLR
from klr_bench.estimators.peers.l1 import L1Peer
from tests.estimators.samples import small, toy

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:cache_size")

SELECTORS = {"n_features_to_select": 3, "n_group": 1, "n_passes": 2000, "gap_tol": 1e-9, "tol": 0.0}
EXACT = [
    *(klr.L1KLR(solver, lam=2.0, features="linear", tol=1e-9) for solver in ("prox_newton", "cgd", "fista")),
    klr.L1KLR("multiscale_fista", lam=2.0, features="linear", tol=1e-9, fit_intercept=False),
    klr.L1KLR(lam=0.1, lam_relative=True, features="linear", tol=1e-9, two_stage=True),
    L1Peer(lam=2.0, features="linear", tol=1e-9, random_state=0),
    ApproximateKernelLR("fourier", n_components=20, gamma=0.7, random_state=0),
    klr.ImportVectorMachine(lam=1e-2, max_import_vectors=6, gamma=0.7),
    klr.DualCDKLR(lam=1e-2, gamma=0.7, tol=1e-9, random_state=0),
    klr.PrimalCDKLR(lam=1e-2, gamma=0.7, tol=1e-9, random_state=0),
    klr.DualCDKLR(lam=1e-2, gamma=0.7, tol=1e-9, random_state=0, cache_size=0.05),
    klr.SparDCA(C=0.1, l1=1.0, tol=1e-9, random_state=0),
    klr.SparDCA(C=0.1, l1=0.2, l1_relative=True, q=1, tol=1e-6, max_iter=5000, random_state=0),
    klr.SparseBatchConfidenceWeighted(C=0.1, **SELECTORS),
    klr.SparseBatchConfidenceWeighted(C=0.1, q=1, **SELECTORS),
    klr.FeatureGeneratingMachine(C=0.1, **SELECTORS),
]
BATCH = [learner for learner in EXACT if isinstance(learner, (klr.DualCDKLR, klr.PrimalCDKLR))]
ONLINE = [cls(gamma=1.0, random_state=0) for cls in (klr.NonConservativeKLR, klr.OSKL, klr.AuxiliaryKLR)]
OTHERS = [
    klr.L1KLR("sgd_c", lam=2.0, random_state=0),
    klr.PrototypeKLR(4, solver="lbfgs", random_state=0),
    klr.PrototypeKLR(4, solver="adam", max_iter=5, random_state=0),
    klr.PrototypeKLR(4, solver="alternating", max_iter=5, random_state=0),
    klr.PrototypeKLR(4, solver="alternating", batch_size=None, max_iter=5, random_state=0),
    klr.PrototypeKLR(4, learn_prototypes=False, learn_width=False, random_state=0),
    klr.PrototypeKLR(4, loss="squared_hinge", solver="lbfgs", random_state=0),
]


@pytest.mark.parametrize(
    "learner", [klr.NystroemKLR(1e-3, n_centers=20, random_state=0), klr.ImportVectorMachine(1e-3)]
)
def test_a_row_of_weight_0_is_no_center_of_a_precomputed_kernel(learner):
    X, y = toy(n=150, d=4)
    kernel, weights = rbf_kernel(X, gamma=0.5), np.repeat([0.0, 1.0], [110, 40])
    learner = clone(learner).set_params(kernel="precomputed")
    weighted = clone(learner).fit(kernel, y, weights)
    alone = clone(learner).fit(kernel[110:, 110:], y[110:])
    assert weighted.n_support_ == alone.n_support_
    f = [model.decision_function(rows) for model, rows in ((weighted, kernel), (alone, kernel[:, 110:]))]
    np.testing.assert_allclose(*f, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("learner", EXACT, ids=str)
def test_a_whole_weight_is_as_many_rows(learner, layout):
    X, y = toy(n=150, d=8)
    counts = np.random.RandomState(2).randint(0, 4, len(y))
    weighted = clone(learner).fit(layout(X), y, counts)
    repeated = clone(learner).fit(layout(np.repeat(X, counts, axis=0)), np.repeat(y, counts))
    expected = repeated.decision_function(layout(X))
    np.testing.assert_allclose(weighted.decision_function(layout(X)), expected, rtol=1e-3, atol=1e-4)
    if hasattr(weighted, "objective_"):
        assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    if hasattr(weighted, "duality_gap_"):
        assert -1e-9 <= weighted.duality_gap_ <= max(learner.tol, 1e-4)
    assert np.abs(expected - clone(learner).fit(layout(X), y).decision_function(layout(X))).max() > 1e-2, "they matter"


@pytest.mark.parametrize("learner", EXACT + OTHERS + ONLINE, ids=str)
def test_weights_of_classes_are_those_of_their_rows_and_weights_of_1_change_nothing(learner):
    X, y = toy(n=150, d=8)
    rows = (y < 0) | (np.arange(150) % 3 == 0)
    X, y = X[rows], y[rows]
    for class_weight in ("balanced", {1: 2.5}, None):
        by_class = clone(learner).set_params(class_weight=class_weight).fit(X, y)
        weights = np.ones(len(y)) if class_weight is None else compute_sample_weight(class_weight, y)
        f = clone(learner).fit(X, y, weights).decision_function(X)
        np.testing.assert_allclose(by_class.decision_function(X), f, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("learner", [klr.ImportVectorMachine(lam=1e-2), *BATCH, *OTHERS[1:]], ids=str)
def test_where_the_mean_of_the_losses_counts_weights_scale_out(learner):
    X, y = toy(n=100, d=8)
    learner = small(learner, l2=1e-3)  # the default depends on the sum of the weights
    f, weighted = (clone(learner).fit(X, y, weights).decision_function(X) for weights in (None, np.full(100, 8.0)))
    np.testing.assert_allclose(weighted, f, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_slopes_of_prototypes_are_those_of_the_weighted_loss(n_classes, sparse):
    random = np.random.RandomState(0)
    X, y = random.standard_normal((40, 3)), np.arange(40) % n_classes
    model = klr.PrototypeKLR(2, max_iter=1, random_state=0).fit(sp.csr_matrix(X) if sparse else X, y)
    counts = random.randint(0, 4, 40)
    rows = type(model._rows(X, y, None, random)[1])
    weighted = rows(X, y, None, counts / counts.mean())
    repeated = rows(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    x = random.standard_normal(model._model.layout.size)
    value, slopes = model._model.slopes_of_all(x, weighted)
    expected_value, expected = model._model.slopes_of_all(x, repeated)
    assert value == pytest.approx(expected_value, rel=1e-12)
    assert value == pytest.approx(model._model.objective(x, weighted), rel=1e-12)
    np.testing.assert_allclose(slopes, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("learner", EXACT + OTHERS, ids=str)
def test_wrong_weights_are_refused(learner):
    X, y = toy(n=50, d=8)
    with pytest.raises(ValueError, match="Negative values"):
        clone(learner).fit(X, y, -np.ones(50))
    with pytest.raises(ValueError, match=r"sample_weight"):
        clone(learner).fit(X, y, np.ones(49))
    for weights in (np.zeros(50), (y > 0).astype(float)):
        with pytest.raises(ValueError, match="each class needs a positive weight"):
            clone(learner).fit(X, y, weights)


STEPS = [
    klr.PassiveAggressive(variant=0),
    klr.PassiveAggressive(variant=1, C=0.3),
    klr.PassiveAggressive(variant=2, C=0.3),
    klr.AROW(r=2.0),
    klr.AROW(r=2.0, covariance="diagonal", n_epochs=2),
    klr.SoftConfidenceWeighted(variant=1, C=0.3),
    klr.SoftConfidenceWeighted(variant=2, C=0.3, covariance="diagonal"),
    klr.SOFS(4, r=2.0),
    klr.BatchConfidenceWeighted(C=0.3),
    klr.BatchConfidenceWeighted(C=0.3, q=2, r=1.5),
]
"""Learners whose steps have weights."""


@pytest.mark.parametrize("d", [8, 300], ids=["narrow", "wide"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("learner", STEPS, ids=str)
def test_one_weight_for_all_rows_is_another_parameter(learner, layout, d):
    X, y = toy(n=400, d=d, empty_rows=False)
    X = layout(X)
    weighted = clone(learner).fit(X, y, np.full(400, 4.0)).coef_
    if learner.get_params().get("variant") == 0:  # its steps have no parameter
        assert not np.allclose(weighted, clone(learner).fit(X, y).coef_)
        return
    factors = {"C": 4.0, "r": 0.25}
    values = {name: getattr(learner, name, None) for name in factors}
    other = {name: factors[name] * value for name, value in values.items() if value is not None}
    np.testing.assert_allclose(weighted, clone(learner).set_params(**other).fit(X, y).coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("learner", STEPS, ids=str)
def test_a_step_has_the_weight_of_its_row(learner):
    X, y = toy(n=200, d=8, empty_rows=False)
    weights = np.random.RandomState(0).randint(0, 3, 200).astype(float)
    model, rows = clone(learner).fit(X, y, weights), weights > 0
    np.testing.assert_allclose(model.coef_, clone(learner).fit(X[rows], y[rows], weights[rows]).coef_)
    if not isinstance(learner, klr.BatchConfidenceWeighted) and learner.n_epochs == 1:
        last = np.flatnonzero(rows)[-1]  # whose weight does not matter to those before
        for cut in (90, last):
            parts = clone(learner)
            for part in (slice(0, cut), slice(cut, None)):
                parts.partial_fit(X[part], y[part], classes=[-1, 1], sample_weight=weights[part])
            np.testing.assert_allclose(parts.coef_, model.coef_, rtol=1e-12)
    by_class = clone(learner).set_params(class_weight={1: 3.0}).fit(X, y)
    np.testing.assert_array_equal(by_class.coef_, clone(learner).fit(X, y, np.where(y == 1, 3.0, 1.0)).coef_)
    with pytest.raises(ValueError, match="class_weight='balanced' needs the sizes of the classes"):
        clone(learner).set_params(class_weight="balanced").partial_fit(X, y)
