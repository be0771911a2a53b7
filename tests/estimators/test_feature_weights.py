"""Weights of features: given ones compared with fits to weighted rows, learned ones with KLR, and what is refused."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import log_loss

from klr_bench import KLR, OSKL, DualCDKLR, NystroemKLR, PrototypeKLR, fit_many
from klr_bench.estimators.batch import klr as klr_module
from klr_bench.estimators.core.kernels import gamma_of
from tests.estimators.samples import CLASSIFIERS, toy

WEIGHTS = np.array([2.0, 0.0, 0.5, 0.25])
MODELS = [
    DualCDKLR(lam=1e-3, tol=1e-6, random_state=0),
    NystroemKLR(1e-3, 20, centers="oskl", gamma="median", random_state=0),
    NystroemKLR(1e-3, centers=[[0.5, 1.0, 0.0, 1.0], [-0.5, 3.0, 0.7, 0.2]], kernel="laplacian"),
    OSKL(random_state=0),
    OSKL(kernel="poly", gamma=0.5, n_epochs=1, random_state=0),
    PrototypeKLR(4, tol=1e-2, random_state=0),
    PrototypeKLR(4, solver="adam", max_iter=5, random_state=0),
]
WITH_WEIGHTS = [cls for cls in CLASSIFIERS.values() if "feature_weights" in cls._parameter_constraints]
CONVEX = [cls for cls in WITH_WEIGHTS if cls is not PrototypeKLR]
"""Without the class whose objective is not convex, which enlarges the rounding of rows far from 0."""
LAYOUTS = [np.asarray, sp.csr_matrix, lambda X: X.astype(np.float32)]


def test_every_class_with_weights_is_here():
    assert {type(model) for model in MODELS} == {*WITH_WEIGHTS}


def classes(n_classes, X, y):
    return y if n_classes == 2 else y + 3 * (X[:, 2] > 0.3)


def by_hand(model, Z):
    """Return the same classifier without weights of features, for weighted rows Z."""
    other = clone(model).set_params(feature_weights=None)
    if not isinstance(model, PrototypeKLR):
        other.set_params(gamma=gamma_without_absent(model.gamma, Z))
    if np.ndim(getattr(model, "centers", 0)):
        other.set_params(centers=np.array(model.centers) * WEIGHTS)
    return other


def gamma_without_absent(gamma, Z):
    """Return gamma, computed from the centered features of weighted rows Z whose weight is not 0."""
    Z = Z[:, np.flatnonzero(WEIGHTS)]
    center = np.full(Z.shape[0], 1 / Z.shape[0]) @ Z
    return gamma_of(gamma, Z, center=center) if sp.issparse(Z) else gamma_of(gamma, Z - center)


@pytest.mark.parametrize("cls", CONVEX)
def test_a_large_mean_does_not_matter(cls):
    X, y = toy(n=200)
    far = X + np.array([0, 1e3, 0, -1e5])
    for weights in ("auto", np.ones(4)):
        model = cls(feature_weights=weights, random_state=0)
        f, f_far = (clone(model).fit(rows, y).decision_function(rows) for rows in (X, far))
        np.testing.assert_allclose(f_far, f, atol=1e-3 * np.abs(f).max())


def assert_same(model, X, other, Z):
    np.testing.assert_array_equal(model.dual_coef_, other.dual_coef_)
    points = "prototypes_" if isinstance(model, PrototypeKLR) else "support_vectors_"
    found, expected = (sp.csr_matrix(getattr(classifier, points)).toarray() for classifier in (model, other))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(model.decision_function(X), other.decision_function(Z))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("layout", LAYOUTS, ids=["dense", "csr", "float32"])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_fit_is_that_of_weighted_rows(model, layout, n_classes):
    X, y = toy()
    y, X = classes(n_classes, X, y), layout(X)
    Z = X.multiply(WEIGHTS).tocsr() if sp.issparse(X) else X * WEIGHTS.astype(X.dtype)
    weighted = clone(model).set_params(feature_weights=list(WEIGHTS)).fit(X, y)
    np.testing.assert_array_equal(weighted.feature_weights_, WEIGHTS)
    assert_same(weighted, X, by_hand(model, Z).fit(Z, y), Z)
    again = pickle.loads(pickle.dumps(weighted))
    np.testing.assert_array_equal(again.predict_proba(X), weighted.predict_proba(X))
    assert not hasattr(weighted.set_params(feature_weights=None).fit(X, y), "feature_weights_")


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("layout", LAYOUTS, ids=["dense", "csr", "float32"])
def test_partial_fit_is_that_of_weighted_rows(layout, n_classes):
    X, y = toy()
    y, X = classes(n_classes, X, y), layout(X)
    Z = X.multiply(WEIGHTS).tocsr() if sp.issparse(X) else X * WEIGHTS.astype(X.dtype)
    gamma = gamma_without_absent("scale", Z[:100])
    weighted, other = OSKL(feature_weights=WEIGHTS, random_state=0), OSKL(gamma=gamma, random_state=0)
    for part in (slice(100), slice(100, 101), slice(101, 300)):
        weighted.partial_fit(X[part], y[part], classes=np.unique(y))
        other.partial_fit(Z[part], y[part], classes=np.unique(y))
    assert_same(weighted, X, other, Z)
    weighted.set_params(feature_weights=WEIGHTS.copy()).partial_fit(X, y)
    with pytest.raises(ValueError, match=r"'feature_weights' parameter of OSKL was array.* cannot change to array"):
        weighted.set_params(feature_weights=2 * WEIGHTS).partial_fit(X, y)


def test_learners_of_one_pass_keep_their_own_weights():
    X, y = toy()
    learners = [OSKL(gamma=1.0, feature_weights=w, n_epochs=2, random_state=0) for w in (WEIGHTS, None, WEIGHTS[::-1])]
    for learner, alone in zip(fit_many(learners, X, y), map(clone, learners), strict=True):
        assert_same(learner, X, alone.fit(X, y), X)
    assert [learner.pass_key(2) is None for learner in learners] == [True, False, True]


def noisy(n=500):
    """Return rows whose features have different scales, and half of which are noise."""
    random = np.random.RandomState(0)
    X = random.standard_normal((n, 8))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] - X[:, 2] * X[:, 3] + 0.2 * random.standard_normal(n) > 0, "yes", "no")
    return X * np.logspace(-2, 2, 8), y


@pytest.mark.parametrize("model", [cls(random_state=0) for cls in WITH_WEIGHTS], ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_learned_weights_lower_the_log_loss(model):
    X, y = noisy()
    half = slice(250)
    learned = clone(model).set_params(feature_weights="auto").fit(X[half], y[half])
    given = clone(model).set_params(feature_weights=learned.feature_weights_).fit(X[half], y[half])
    equal = clone(model).set_params(feature_weights=1 / X[half].std(axis=0)).fit(X[half], y[half])
    assert_same(learned, X, given, X)
    losses = [log_loss(y[250:], classifier.predict_proba(X[250:])) for classifier in (learned, equal)]
    assert losses[0] < 0.9 * losses[1]


def test_weights_are_learned_as_klr_learns_them_and_used_by_partial_fit(monkeypatch):
    monkeypatch.setattr(klr_module, "KERNELS", ("rbf",))
    X, y = noisy(100)
    shares = np.random.RandomState(1).uniform(0.2, 2, len(y))
    klr = KLR(class_weight="balanced", random_state=3).fit(X, y, shares)
    for layout, rtol in ((np.asarray, 1e-12), (sp.csr_matrix, 1e-9)):
        model = DualCDKLR(class_weight="balanced", feature_weights="auto", random_state=3).fit(layout(X), y, shares)
        np.testing.assert_allclose(model.feature_weights_, klr.feature_weights_ / klr.scale_, rtol=rtol)
    learned = OSKL(feature_weights="auto", random_state=0).fit(X, y)
    given = OSKL(feature_weights=learned.feature_weights_, random_state=0).fit(X, y)
    assert_same(learned.partial_fit(X[:50], y[:50]), X, given.partial_fit(X[:50], y[:50]), X)


@pytest.mark.parametrize(
    "weights", [[1.0, 1.0], np.ones((4, 1)), [1, 1, 1, -1], [1, 1, 1, np.nan], [1, 1, 1, np.inf], [0, 0, 0, 0]]
)
@pytest.mark.parametrize("cls", WITH_WEIGHTS)
def test_invalid_weights_are_refused(cls, weights):
    message = rf"'feature_weights' parameter of {cls.__name__} must be 4 finite numbers >= 0, one for each feature of X"
    with pytest.raises(ValueError, match=message):
        cls(feature_weights=weights).fit(*toy())


@pytest.mark.parametrize("weights", ["auto", [1.0] * 300])
@pytest.mark.parametrize("cls", [cls for cls in WITH_WEIGHTS if callable in cls._parameter_constraints["kernel"]])
def test_a_precomputed_kernel_is_refused(cls, weights):
    X, y = toy()
    with pytest.raises(ValueError, match="feature_weights requires features, but kernel='precomputed' has none"):
        cls(kernel="precomputed", feature_weights=weights).fit(X @ X.T, y)


def test_partial_fit_alone_learns_no_weights():
    with pytest.raises(ValueError, match=r"OSKL: feature_weights='auto' needs all rows; call fit before partial_fit"):
        OSKL(feature_weights="auto").partial_fit(*toy())
