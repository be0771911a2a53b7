"""DualCDKLRCV and OSKLCV: their scores compared with separate fits to each fold, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, ShuffleSplit, StratifiedKFold
from sklearn.utils._param_validation import InvalidParameterError

from klr_bench import OSKL, OSKLCV, DualCDKLR, DualCDKLRCV
from klr_bench.estimators.batch import cross_validation
from klr_bench.estimators.batch.cross_validation import unbeaten
from klr_bench.estimators.core.kernels import gamma_of
from tests.estimators.samples import toy

GRIDS = {
    DualCDKLRCV: {"gammas": [0.5, 2.0], "lams": [1e-3, 1e-1, 1e-2], "tol": 1e-10, "max_iter": 1000},
    OSKLCV: {"gammas": [0.5, 2.0], "etas": [0.5, 2.0], "Gs": [1.0, 2.0], "Rs": [3.0, np.inf], "n_epochs": 2},
}
PLAIN = {DualCDKLRCV: DualCDKLR, OSKLCV: OSKL}
CLASSES = pytest.mark.parametrize("cls", GRIDS, ids=lambda cls: cls.__name__)
TOLERANCE = {DualCDKLRCV: 1e-4, OSKLCV: 1e-9}
"""Of a log loss; a dual solution depends on the order of its steps, within the duality gap."""


def rows(n_classes, n=120):
    X, y = toy(n)
    return X, np.where(X[:, 2] > 0.3, 2, y) if n_classes == 3 else y


def plain(model, **parameters):
    """Return the classifier without CV that has the other parameters of a model."""
    cls = PLAIN[type(model)]
    names = set(cls().get_params()) & set(model.get_params())
    return cls(**{name: getattr(model, name) for name in names}).set_params(**parameters)


def slow_scores(model, X, y, folds, weights=None):
    """Return the scores (n_candidates, n_folds) of separate fits for each candidate of a fitted model."""
    weights, scores = np.ones(len(y)) if weights is None else weights, []
    for parameters in model.cv_results_["params"]:
        for train, valid in folds:
            learner = plain(model, **parameters).fit(X[train], y[train], weights[train])
            right = np.searchsorted(learner.classes_, y[valid])
            p = learner.predict_proba(X[valid])[np.arange(len(valid)), right]
            scores.append(np.average(np.log(p), weights=weights[valid]))
    return np.reshape(scores, (-1, len(folds)))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@CLASSES
def test_scores_and_coefficients_are_those_of_separate_fits(cls, layout, n_classes):
    X, y = rows(n_classes)
    X, weights = layout(X), np.random.RandomState(1).uniform(0.2, 2, len(y))
    model = cls(**GRIDS[cls], cv=3, random_state=5).fit(X, y, weights)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=5).split(X, y))
    scores = slow_scores(model, X, y, folds, weights)
    results = model.cv_results_
    for i in range(3):
        np.testing.assert_allclose(results[f"split{i}_test_score"], scores[:, i], rtol=TOLERANCE[cls])
    np.testing.assert_allclose(results["mean_test_score"], scores.mean(axis=1), rtol=TOLERANCE[cls])
    np.testing.assert_allclose(results["std_test_score"], scores.std(axis=1), rtol=100 * TOLERANCE[cls])
    best = np.argmax(scores.mean(axis=1))
    assert (model.best_index_, results["rank_test_score"][best]) == (best, 1)
    assert model.best_params_ == results["params"][best]
    assert model.best_score_ == results["mean_test_score"][best]
    for name, values in {name: results[f"param_{name}"] for name in model.best_params_}.items():
        assert values.tolist() == [params[name] for params in results["params"]]
    assert len(set(scores.mean(axis=1))) > 1
    by_hand = plain(model, **model.best_params_).fit(X, y, weights)
    np.testing.assert_array_equal(model.best_estimator_.dual_coef_, by_hand.dual_coef_)
    np.testing.assert_array_equal(model.predict_proba(X), by_hand.predict_proba(X))
    np.testing.assert_array_equal(model.decision_function(X), by_hand.decision_function(X))


@CLASSES
def test_the_results_are_those_of_a_grid_search(cls):
    X, y = rows(2)
    grids = {name[:-1]: values for name, values in GRIDS[cls].items() if isinstance(values, list)}
    for cv in (
        StratifiedKFold(4),
        ShuffleSplit(2, random_state=0),
        list(GroupKFold(3).split(X, y, np.arange(120) % 7)),
    ):
        model = cls(**GRIDS[cls], cv=cv, random_state=0).fit(X, y)
        search = GridSearchCV(plain(model), grids, cv=cv, scoring="neg_log_loss", refit=False).fit(X, y)
        places = [search.cv_results_["params"].index(params) for params in model.cv_results_["params"]]
        for name in ("mean_test_score", "split0_test_score", "split1_test_score"):
            expected = search.cv_results_[name][places]
            np.testing.assert_allclose(model.cv_results_[name], expected, rtol=TOLERANCE[cls])


@pytest.mark.parametrize(
    "parameters",
    [{"kernel": "precomputed"}, {"kernel": "poly", "degree": 2}, {"kernel": "linear"}, {"cache_size": 0.01}],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:cache_size")
@CLASSES
def test_kernels_and_small_caches(cls, parameters):
    if cls is OSKLCV and "cache_size" in parameters:
        pytest.skip("OSKL has no cache")
    X, y = rows(2)
    options = GRIDS[cls] | parameters
    if parameters.get("kernel") in ("precomputed", "linear"):
        options |= {"gammas": "auto"}
    model = cls(**options, cv=3, random_state=0)
    K = X @ X.T if parameters.get("kernel") == "precomputed" else X
    model.fit(K, y)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    other = cls(**options | ({"kernel": "linear"} if K is not X else {}), cv=3, random_state=0).fit(X, y)
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], slow_scores(other, X, y, folds).mean(axis=1), rtol=TOLERANCE[cls]
    )
    np.testing.assert_allclose(model.decision_function(K), other.decision_function(X), rtol=1e-6, atol=1e-8)


@CLASSES
def test_class_weights_weight_the_rows(cls):
    X, y = rows(2)
    options = GRIDS[cls] | {"cv": StratifiedKFold(3)}
    by_class = cls(class_weight={1: 2.5}, random_state=0, **options).fit(X, y)
    by_row = cls(random_state=0, **options).fit(X, y, np.where(y == 1, 2.5, 1.0))
    for name, values in by_class.cv_results_.items():
        np.testing.assert_array_equal(values, by_row.cv_results_[name])
    np.testing.assert_array_equal(by_class.decision_function(X), by_row.decision_function(X))


@CLASSES
def test_rows_without_weight_do_not_change_the_default_grid(cls):
    X, y = rows(2)
    far, weights = X.copy(), np.ones(len(y))
    far[0], weights[0] = 1e6, 0
    options = {"cv": StratifiedKFold(2), "random_state": 0}
    gammas = [np.unique(cls(**options).fit(Z, y, weights).cv_results_["param_gamma"]) for Z in (X, far)]
    np.testing.assert_array_equal(*gammas)


@CLASSES
def test_default_grids_threads_and_text(cls, capsys):
    X, y = rows(2, 60)
    serial = cls(n_jobs=1, random_state=0, verbose=True).fit(X, y)
    assert 5 < len(capsys.readouterr().out.splitlines()) < 10  # five in the first two folds, and some in the others
    threaded = cls(n_jobs=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(serial.cv_results_["mean_test_score"], threaded.cv_results_["mean_test_score"])
    widths = np.unique(serial.cv_results_["param_gamma"]) / gamma_of("scale", X)
    np.testing.assert_allclose(widths, [0.03, 0.1, 0.3, 1.0, 3.0])
    assert serial.n_support_ == serial.best_estimator_.n_support_


@pytest.mark.parametrize("coarse", [1000, 40])
@CLASSES
def test_default_grids_leave_out_what_is_worse_in_the_first_folds_or_with_few_rows(cls, coarse, monkeypatch):
    monkeypatch.setattr(cross_validation, "COARSE", coarse)
    X, y = rows(2)
    gammas = [width * gamma_of("scale", X) for width in cross_validation.WIDTHS]
    fast = cls(random_state=0).fit(X, y)
    lams = {"lams": np.unique(fast.cv_results_["param_lam"])} if cls is DualCDKLRCV else {}
    slow = cls(gammas, **lams, random_state=0).fit(X, y)
    scores, expected = (
        np.array([model.cv_results_[f"split{i}_test_score"] for i in range(5)]).reshape(5, 5, -1)
        for model in (fast, slow)
    )
    expected = expected[..., ::-1] if cls is DualCDKLRCV else expected  # lams in the other order
    tried = np.isfinite(scores)
    np.testing.assert_allclose(scores[tried], expected[tried], rtol=1e-12)
    assert fast.best_score_ == pytest.approx(np.nanmax(scores.mean(axis=0)))
    first, last = tried[:2].any(axis=(0, 2)), tried[2:].any(axis=(0, 2))
    if coarse == 40:
        assert first.sum() in (2, 3)
        assert np.ptp(np.flatnonzero(first)) < 3
        return
    assert fast.best_params_ == pytest.approx(slow.best_params_)
    assert 0 < last.sum() < first.sum() == 5
    best = expected[:2].mean(axis=0).max(axis=1)
    assert best[last].max() > best[first & ~last].max()


@CLASSES
def test_wrong_grids_and_folds_are_refused(cls):
    X, y = rows(2)
    for name in [name for name, values in GRIDS[cls].items() if isinstance(values, list)]:
        for wrong in ([-1.0], [], [[1.0]], ["scale"], [None], [1.0, np.nan], [True]):
            message = f"The '{name}' parameter of {cls.__name__} must be 'auto' or a list of values, each .* Got "
            with pytest.raises(InvalidParameterError, match=message):
                cls(**GRIDS[cls] | {name: wrong}).fit(X, y)
    with pytest.raises(InvalidParameterError, match=rf"The 'cv' parameter of {cls.__name__} must be folds .* Got \[\]"):
        cls(cv=[]).fit(X, y)
    sizes = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    with pytest.raises(ValueError, match=rf"{cls.__name__}: fold 0 needs training rows of each class"):
        cls(cv=[sizes]).fit(X, y)
    folds, weights = list(StratifiedKFold(3).split(X, y)), np.ones(len(y))
    weights[folds[1][1]] = 0
    with pytest.raises(ValueError, match=rf"{cls.__name__}: fold 1 needs .* validation rows, with weights above 0"):
        cls(cv=folds).fit(X, y, weights)
    y[0] = 7
    with pytest.raises(ValueError, match=rf"{cls.__name__} needs at least two rows of each class, got one of class 7"):
        cls().fit(X, y)
    if cls is OSKLCV:
        with pytest.raises(ValueError, match="'G' parameter of OSKL must be at least 1"):
            cls(Gs=[0.5]).fit(*rows(2))


@pytest.mark.parametrize("n_classes", [2, 3])
@CLASSES
def test_rows_of_weight_0_do_not_change_the_folds_of_a_precomputed_kernel(cls, n_classes):
    X, y = rows(n_classes)
    K, kept = X @ X.T + 1, np.flatnonzero(np.arange(len(y)) % 4)
    parameters = {name: values for name, values in GRIDS[cls].items() if name != "gammas"}
    model = cls(**parameters, cv=3, kernel="precomputed", random_state=5)
    with_all = clone(model).fit(K, y, np.isin(np.arange(len(y)), kept).astype(float))
    alone = clone(model).fit(K[np.ix_(kept, kept)], y[kept])
    for name in ("mean_test_score", "split0_test_score"):
        np.testing.assert_allclose(with_all.cv_results_[name], alone.cv_results_[name], rtol=TOLERANCE[cls])


def test_a_single_validation_row_leaves_out_no_candidate():
    losses = np.random.RandomState(0).random_sample((5, 12))
    np.testing.assert_array_equal(unbeaten(losses[:, :1], np.ones(1), 1.0), np.arange(5))
    losses[3] += 10
    assert 3 not in unbeaten(losses, np.ones(12), 1.0)
