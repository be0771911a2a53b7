"""The scikit-learn side of the learners that replace support vectors."""

from __future__ import annotations

import copy

from sklearn.utils.validation import check_is_fitted

from klr_bench.estimators.budget.engine import BLOCK, CHUNK, BudgetState
from klr_bench.estimators.core.binary import COUNT
from klr_bench.estimators.core.expansion import decide
from klr_bench.estimators.online.base import OnlineKernelClassifier


class BudgetKernelClassifier(OnlineKernelClassifier):
    """A binary kernel classifier that is learned in one pass, with at most `budget` support vectors at any time.

    A subclass names its compiled strategy, `_strategy`, and returns from `_strategy_arguments()` the numbers that it
    gets after the budget.

    Parameters
    ----------
    budget : int >= 1
        Support vectors at most.  The last classifier has no more; the average one has all that ever were.
    average, kernel, gamma, degree, coef0, random_state, dtype, n_epochs
        See `OnlineKernelClassifier`.

    Attributes
    ----------
    support_vectors_, dual_coef_, n_support_
        Of the classifier that was asked for: with `average` all examples that were ever inserted, else those that
        are left at the end; in the order of their insertion.
    n_updates_ : int
        Examples that were ever inserted.
    classes_, n_mistakes_, t_, n_features_in_
        See `OnlineKernelClassifier`.
    """

    _by_age = False
    pass_key = None
    """Learners that replace support vectors share no pass."""
    _parameter_constraints = OnlineKernelClassifier._parameter_constraints | {
        "budget": [COUNT],
    }

    def __init__(self, budget, average, kernel, gamma, degree, coef0, random_state, dtype, n_epochs):
        super().__init__(average, kernel, gamma, degree, coef0, random_state, dtype, n_epochs)
        self.budget = budget

    def _strategy_arguments(self):
        return []

    def _new_state(self, X):
        return BudgetState(self._kernel(), X, self.budget, by_age=self._by_age)

    def _learning(self):
        strategy, parameters = type(self)._strategy, [self.budget, *self._strategy_arguments()]
        return lambda X, signs, draws: self._state.learn(strategy, parameters, X, signs, draws)

    def _size(self, callback):
        return CHUNK if callback is None else BLOCK

    def _refused_at(self):
        return self._state.refused, self._state.last_value

    def decision_function(self, X):
        """Return f(x) for the rows of X (n_samples, n_features), as float64 (n_samples,)."""
        check_is_fitted(self, "dual_coef_")
        X, state = self._validate(X, dtype=self.support_vectors_.dtype), self._state
        return decide(state.kernel, state.by_index, state.origin, self.support_vectors_, self.dual_coef_, X)

    def last_classifier(self):
        """Return the classifier after the last example: a fitted copy with average=False that shares memory."""
        check_is_fitted(self, "dual_coef_")
        last = copy.copy(self)
        last.average = False
        last._publish()
        return last

    def _publish(self):
        state = self._state
        numbers, self.dual_coef_ = state.coefficients(average=self.average)
        self.support_vectors_ = state.support.rows[numbers]
        self.n_support_ = len(numbers)
        self.n_updates_ = len(state.support)
        self.n_mistakes_ = state.n_mistakes
        self.t_ = state.t
