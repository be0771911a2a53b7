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
        from lightgbm import LGBMClassifier

        self.model_ = LGBMClassifier(random_state=self.random_state, n_jobs=1, verbose=-1).fit(X, y)
        self.classes_ = self.model_.classes_
        return self


class CalibratedSVC(Wrapper):
    """scikit-learn's SVC with chosen settings, and with probabilities by Platt's method.

    C and gamma are those with the highest accuracy in 3-fold cross-validation; gamma is a multiple of "scale".  The
    sigmoid of the probabilities is fitted to decision values of 5-fold cross-validation (Platt, 1999).
    """

    def fit(self, X: Any, y: Any) -> CalibratedSVC:
        """Choose C and gamma, and fit the classifier to the rows of X and their classes y; return self."""
        scale = 1 / (X.shape[1] * X.var())
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
