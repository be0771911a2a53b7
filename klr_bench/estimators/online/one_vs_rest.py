"""Base class of online kernel learners that train one binary learner per class."""

from __future__ import annotations

import copy

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.core.classifier import checked_decision, checked_fit
from klr_bench.estimators.core.expansion import decide
from klr_bench.estimators.core.multiclass import fitted_learners, in_common, one_vs_rest, spread
from klr_bench.estimators.core.parameters import estimator, fixed
from klr_bench.estimators.online.base import OnlineKernelClassifier
from klr_bench.estimators.online.one_row import Published, row_by_row
from klr_bench.estimators.online.passes import has_rows
from klr_bench.estimators.online.strategies import StrategyState


@estimator
class OneVsRestKernelClassifier(OnlineKernelClassifier):
    """Kernel classifier that learns row by row and can change or remove earlier support vectors.

    With more than two classes there is one learner per class, which separates it from the others.

    A subclass has `_update()`, which returns its compiled strategy and the numbers that this gets after `budget`.

    Parameters
    ----------
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

    class_weight: None = fixed(None)

    pass_key = None
    """None, because these learners cannot share a pass."""
    budget = 2**40
    """Maximum number of support vectors, by default more than there can be examples."""
    _support_vectors, _numbers = Published(), Published()
    _new_engine = StrategyState
    _by_age = False

    @checked_fit
    @one_vs_rest
    def fit(self, X, y, callback=None):
        """Fit the classifier to X and y from scratch; return self.

        There are no weights of rows.

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
    @checked_fit
    @one_vs_rest
    def partial_fit(self, X, y, classes=None, callback=None):
        """Continue learning from the rows of X in their order; return self.

        There are no sample weights; otherwise as `KernelOGD.partial_fit`.
        """
        return super().partial_fit(X, y, classes, callback=callback)

    @property
    def support_vectors_(self):
        """The support vectors, in a matrix of shape (n_support_, n_features)."""
        return self._support_vectors

    def _engine(self, X, weights):
        engine = self._state or self._new_engine(self._kernel(X, weights), self._rows(X), self.budget, self._by_age)
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
