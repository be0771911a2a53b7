"""Base class of online kernel learners with a budget of support vectors."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.checks import checked_decision
from klr_bench.estimators.core.expansion import decide
from klr_bench.estimators.core.kernels import KERNELS, kernel_of, rows_of
from klr_bench.estimators.core.multiclass import fitted_learners, in_common, one_vs_rest, spread
from klr_bench.estimators.core.parameters import COUNT, CompiledKernels, estimator, fixed, parameter
from klr_bench.estimators.online.classifier import OnlineClassifier, has_rows
from klr_bench.estimators.online.one_row import Published, row_by_row
from klr_bench.estimators.online.strategies import StrategyState

MANY = 2**40
"""Budget of learners that have none, more than there can be examples."""


class Unlimited:
    """Descriptions of the parameters of learners without a budget.

    Parameters
    ----------
    kernel : {"rbf", "poly", "linear", "laplacian", "sigmoid", "precomputed"} or callable, default="rbf"
        As for `KernelOGD`.
    average : bool, default=False
        Predict with the average of the f_t; otherwise with the last one.
    """


@estimator
class BudgetClassifier(OnlineClassifier):
    """Kernel classifier that learns row by row and keeps at most `budget` support vectors.

    With more than two classes there is one learner per class, which separates it from the others, with a budget of its
    own.

    A subclass has `_update()`, which returns its compiled strategy and the numbers that this gets after `budget`, or
    an `_engine(X, weights)` of its own.

    Parameters
    ----------
    budget : int, default=100
        Largest number of support vectors, >= 1; time and memory grow with it.  It limits the last classifier; the
        averaged model keeps every support vector that was ever inserted.  Zhang et al., ICML 2013, tables 4 and 5, take
        the numbers of support vectors that OSKL has with G = 10, 4, 2 and 1: 414, 962, 1821 and 3443 on MAGIC.
    average : bool, default=False
        Predict with the average of the f_t; otherwise with the last one.  The average is as accurate or more, by up to
        16 points in docs/methods/budget_oskl.md, and where support vectors are replaced it keeps more of them than the
        budget; `last_classifier` returns the last classifier of the same fit.
    n_epochs : int, default=1
        Passes of `fit` over the rows, >= 1; the papers make one.  The average is that of all passes.
    n_jobs : int or None, default=None
        Number of threads that fit the learners of several classes, and that predict; None uses as many as BLAS would,
        -1 one per core.  The result does not depend on it.

    Attributes
    ----------
    support_vectors_ : ndarray or CSR matrix of shape (n_support_, n_features), dtype of the kernel values
        With `average` every example that was ever inserted, otherwise the examples kept at the end; in the order of
        their insertion.  With more than two classes those of all learners.
    dual_coef_ : ndarray of shape (n_support_,), or (n_classes, n_support_) for more than two classes, float64
        Coefficients of the average classifier, (1/T) sum_{t=1..T} f_t, or of the last one, f_{T+1}.
    n_support_ : int
        Number of support vectors.
    n_updates_ : int
        Number of insertions.
    estimators_ : list of estimators
        One learner per class, if there are more than two classes.
    """

    budget: int = parameter(COUNT, default=100)
    _: KW_ONLY
    kernel: str = parameter(StrOptions(set(KERNELS)), default="rbf")
    class_weight: None = fixed(None)

    pass_key = None
    """None, because these learners cannot share a pass."""
    _described_by = CompiledKernels
    _fixed = (*OnlineClassifier._fixed, "budget")
    _support_vectors, _numbers = Published(), Published()
    _new_engine = StrategyState
    _by_age = False

    @one_vs_rest
    def fit(self, X, y, callback=None):
        """Fit the classifier to X and y from scratch; return self.

        Weights of rows are not supported.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Classes of any type; of two classes, decision values above 0 mean the second in sorted order.
        callback : callable, default=None
            `callback(estimator, t)` is called after each block of examples; returning True ends the fit.
        """
        return super().fit(X, y, callback=callback)

    @available_if(has_rows)
    @row_by_row
    @one_vs_rest
    def partial_fit(self, X, y, classes=None, callback=None):
        """Continue learning from the rows of X in their order; return self.

        Sample weights are not supported; otherwise as `KernelOGD.partial_fit`.
        """
        return super().partial_fit(X, y, classes, callback=callback)

    @property
    def support_vectors_(self):
        """The support vectors, in a matrix of shape (n_support_, n_features)."""
        return self._support_vectors

    def _engine(self, X, weights):
        engine = self._state or self._new_engine(
            kernel_of(self, X, weights), rows_of(self, X), self.budget, self._by_age
        )
        update = self._update()
        engine.strategy, engine.parameters = update.rule, np.array([self.budget, *update.parameters], np.float64)
        return engine

    @checked_decision
    def decision_function(self, X):
        """Return the decision values f(x) for the rows x of X.

        The result is float64, of shape (n_samples,) or (n_samples, n_classes).
        """
        check_is_fitted(self, "dual_coef_")
        X = self._validate(X, dtype=self.support_vectors_.dtype)
        state = self.estimators_[0]._state if self._has_many() else self._state
        f = decide(state.operands, self.support_vectors_, self.dual_coef_, X)
        return spread(self, f)

    def last_classifier(self):
        """Return a fitted copy that predicts with the last f instead of the average of all f.

        The copy has average=False and shares memory with the original.
        """
        check_is_fitted(self, "dual_coef_")
        last = copy.copy(self)
        last.average = False
        if self._has_many():
            last.estimators_ = [learner.last_classifier() for learner in self.estimators_]
            last._gather()
        else:
            last._publish()
        return last

    def _gather(self):
        learners = fitted_learners(self)
        self._support_vectors, self.dual_coef_ = in_common(self)
        self.n_support_ = self.support_vectors_.shape[0]
        self.n_updates_ = sum(learner.n_updates_ for learner in learners)
        self.n_mistakes_ = sum(learner.n_mistakes_ for learner in learners)
        self.t_, self._n_again = learners[0].t_, learners[0]._n_again

    def _publish(self):
        state = self._state
        numbers, self.dual_coef_ = state.coefficients(average=self.average)
        self._support_vectors, self._numbers = state.support.rows[numbers], state.numbers.rows[numbers]
        self.n_support_ = len(numbers)
        self.n_updates_ = int(np.count_nonzero(state.numbers.rows >= 0))
        self.n_mistakes_ = state.n_mistakes
        self.t_ = state.t


def refuse_large_lam(learner):
    """Raise ValueError if the factor 1 - eta lam of f at each example is not positive."""
    if learner.lam is not None and learner.eta * learner.lam >= 1:
        name = type(learner).__name__
        message = f"The 'lam' parameter of {name} must be below 1 / eta = {1 / learner.eta:g}. Got {learner.lam!r}."
        raise ValueError(message)
