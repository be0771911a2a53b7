"""Classifiers of other libraries for tables: the same as their libraries', with settings chosen as by hand."""

import warnings
from itertools import product

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from klr_bench.estimators.peers.tables import (
    CalibratedSVC,
    CatBoost,
    LightGBM,
    QuietLogisticRegressionCV,
    TunedLightGBM,
)

X, Y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X + np.random.RandomState(0).standard_normal(X.shape) * X.std(axis=0))


def test_the_svm_has_the_settings_with_the_highest_accuracy_in_cross_validation():
    folds = list(StratifiedKFold(3, shuffle=True, random_state=7).split(X, Y))
    scores = {}
    for C, multiple in product([0.1, 1.0, 10.0, 100.0], [0.1, 1.0, 10.0]):
        gamma = multiple / (13 * X.var())
        parts = [SVC(C=C, gamma=gamma).fit(X[a], Y[a]).score(X[b], Y[b]) for a, b in folds]
        scores[C, gamma] = np.mean(parts)
    C, gamma = max(scores, key=scores.get)
    assert list(scores.values()).count(scores[C, gamma]) == 1
    expected = CalibratedClassifierCV(SVC(C=C, gamma=gamma), ensemble=False, cv=5).fit(X, Y)
    fitted = CalibratedSVC(random_state=7).fit(X, Y)
    np.testing.assert_allclose(fitted.predict_proba(X), expected.predict_proba(X))
    np.testing.assert_array_equal(fitted.predict(X), expected.predict(X))
    np.testing.assert_array_equal(fitted.n_support_, SVC(C=C, gamma=gamma).fit(X, Y).n_support_)


def test_logistic_regression_is_scikit_learns_without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        quiet = QuietLogisticRegressionCV(scoring="neg_log_loss", max_iter=1000).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        expected = LogisticRegressionCV(scoring="neg_log_loss", max_iter=1000).fit(X, Y)
    np.testing.assert_array_equal(quiet.predict_proba(X), expected.predict_proba(X))


def test_lightgbm_has_its_own_settings():
    lightgbm = pytest.importorskip("lightgbm")
    expected = lightgbm.LGBMClassifier(random_state=3, n_jobs=1, verbose=-1).fit(X, Y)
    fitted = LightGBM(random_state=3).fit(X, Y)
    np.testing.assert_array_equal(fitted.predict_proba(X), expected.predict_proba(X))
    np.testing.assert_array_equal(fitted.predict(X), expected.predict(X))


def test_tuned_lightgbm_has_the_settings_with_the_lowest_loss_in_cross_validation():
    lightgbm = pytest.importorskip("lightgbm")
    fitted = TunedLightGBM(n_settings=3, random_state=3).fit(X, Y)
    settings = fitted.best_params_
    expected = lightgbm.LGBMClassifier(**settings, random_state=fitted.model_.random_state, n_jobs=1, verbose=-1)
    np.testing.assert_array_equal(fitted.predict_proba(X), expected.fit(X, Y).predict_proba(X))
    alone = TunedLightGBM(n_settings=1, random_state=3).fit(X, Y)
    assert list(alone.best_params_) == ["n_estimators"]
    assert 1 <= alone.best_params_["n_estimators"] < 1000


def test_catboost_has_its_own_settings():
    catboost = pytest.importorskip("catboost")
    expected = catboost.CatBoostClassifier(random_seed=3, thread_count=1, verbose=False, allow_writing_files=False)
    names = np.array(["a", "b", "c"])[Y]
    fitted = CatBoost(random_state=3).fit(X, names)
    np.testing.assert_array_equal(fitted.predict_proba(X), expected.fit(X, names).predict_proba(X))
    assert set(fitted.predict(X)) <= set(names)
