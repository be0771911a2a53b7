"""Classifiers of other libraries that are usual for tables."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC
from sklearn.utils import check_random_state

from klr_bench.estimators.core.kernels import gamma_of


class Wrapper(ClassifierMixin, BaseEstimator):
    """Base class of classifiers that predict with `model_`, a classifier of another library."""

    def __init__(self, random_state: Any = None) -> None:
        self.random_state = random_state

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the highest probability for each row of X."""
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class for each row of X, of shape (n_samples, n_classes)."""
        return self.model_.predict_proba(X)


class LightGBM(Wrapper):
    """LightGBM's classifier with its own settings, on one thread.

    It needs the package lightgbm, which ``pip install klr-bench[peers]`` installs.
    """

    def fit(self, X: Any, y: Any) -> LightGBM:
        """Fit the classifier to the rows of X and their classes y; return self."""
        self.model_ = _lightgbm(self.random_state, {}).fit(X, y)
        self.classes_ = self.model_.classes_
        return self


class TunedLightGBM(Wrapper):
    """LightGBM with trees, and perhaps settings, chosen by cross-validation, on one thread.

    Of `n_settings` settings, the first of which are LightGBM's own and the others random, the one with the lowest log
    loss in 3-fold cross-validation is fitted to all rows.  Each fold stops adding trees, of which there are at most
    1,000, when the log loss of the rows left out has not improved for 30; the mean of their best numbers of trees is
    used.  It needs the package lightgbm, which ``pip install klr-bench[peers]`` installs.
    """

    def __init__(self, n_settings: int = 20, random_state: Any = None) -> None:
        super().__init__(random_state)
        self.n_settings = n_settings

    def fit(self, X: Any, y: Any) -> TunedLightGBM:
        """Choose the settings, and fit the classifier to rows X and their classes y; return self."""
        random = check_random_state(self.random_state)
        folds = list(StratifiedKFold(3, shuffle=True, random_state=random).split(X, y))
        tried = [{}, *(_settings(random) for _ in range(self.n_settings - 1))]
        seed = random.randint(2**31 - 1)
        results = [self._loss_and_trees(X, y, folds, settings, seed) for settings in tried]
        best = int(np.argmin([loss for loss, _ in results]))
        self.best_params_ = {**tried[best], "n_estimators": results[best][1]}
        self.model_ = _lightgbm(seed, self.best_params_).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def _loss_and_trees(self, X: Any, y: Any, folds: Any, settings: dict[str, Any], seed: int) -> tuple[float, int]:
        """Return the mean log loss of the folds and their mean number of trees."""
        import lightgbm

        losses, trees = [], []
        for train, left_out in folds:
            model = _lightgbm(seed, {**settings, "n_estimators": 1000})
            stop = lightgbm.early_stopping(30, verbose=False)
            model.fit(X[train], y[train], eval_X=X[left_out], eval_y=y[left_out], callbacks=[stop])
            losses.append(next(iter(model.best_score_["valid_0"].values())))
            trees.append(model.best_iteration_)
        return float(np.mean(losses)), max(round(float(np.mean(trees))), 1)


def _settings(random: np.random.RandomState) -> dict[str, Any]:
    """Draw settings of LightGBM."""

    def log_uniform(low: float, high: float) -> float:
        return float(np.exp(random.uniform(np.log(low), np.log(high))))

    return {
        "learning_rate": log_uniform(0.01, 0.3),
        "num_leaves": round(log_uniform(4, 128)),
        "min_child_samples": round(log_uniform(1, 50)),
        "subsample": random.uniform(0.5, 1.0),
        "subsample_freq": 1,
        "colsample_bytree": random.uniform(0.4, 1.0),
        "reg_lambda": log_uniform(1e-3, 10.0),
    }


def _lightgbm(seed: Any, settings: dict[str, Any]) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1, **settings)


class CatBoost(Wrapper):
    """CatBoost's classifier with its own settings, on one thread.

    It needs the package catboost, which ``pip install klr-bench[peers]`` installs.
    """

    def fit(self, X: Any, y: Any) -> CatBoost:
        """Fit the classifier to the rows of X and their classes y; return self."""
        from catboost import CatBoostClassifier

        settings = {"random_seed": self.random_state, "thread_count": 1, "verbose": False, "allow_writing_files": False}
        self.model_ = CatBoostClassifier(**settings).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the highest probability for each row of X."""
        return np.ravel(self.model_.predict(X)).astype(self.classes_.dtype)


class CalibratedSVC(Wrapper):
    """scikit-learn's SVC with chosen settings, and with probabilities by Platt's method.

    C and gamma are those with the highest accuracy in 3-fold cross-validation; gamma is a multiple of "scale".  The
    sigmoid of the probabilities is fitted to decision values of 5-fold cross-validation (Platt, 1999).
    """

    def fit(self, X: Any, y: Any) -> CalibratedSVC:
        """Choose C and gamma, and fit the classifier to rows X and their classes y; return self."""
        scale = gamma_of("scale", X)  # type: ignore[no-untyped-call]
        grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.1 * scale, scale, 10 * scale]}
        folds = StratifiedKFold(3, shuffle=True, random_state=self.random_state)
        search = GridSearchCV(SVC(), grid, cv=folds, refit=False).fit(X, y)
        self.best_params_ = search.best_params_
        self.model_ = CalibratedClassifierCV(SVC(**self.best_params_), ensemble=False, cv=5).fit(X, y)
        self.classes_ = self.model_.classes_
        self.n_support_ = self.model_.calibrated_classifiers_[0].estimator.n_support_
        return self


class QuietLogisticRegressionCV(LogisticRegressionCV):
    """scikit-learn's `LogisticRegressionCV`, without warnings about future changes of defaults."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> QuietLogisticRegressionCV:
        """Choose C, and fit the classifier to the rows of X and their classes y; return self."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return super().fit(X, y, sample_weight)
