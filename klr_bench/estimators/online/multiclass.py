"""The scikit-learn interface of the online learners that learn more than two classes by their softmax."""

from __future__ import annotations

from dataclasses import KW_ONLY

import numpy as np
from scipy.special import softmax

from klr_bench.estimators.core.parameters import COUNT, estimator, parameter
from klr_bench.estimators.online.base import OnlineKernelClassifier
from klr_bench.estimators.online.many import Update
from klr_bench.estimators.online.softmax import SoftmaxState

ENOUGH = 100_000
"""Steps after which a further pass gains little."""


@estimator
class SoftmaxKernelClassifier(OnlineKernelClassifier):
    """A learner with the logistic loss for any number of classes.

    With two classes, and with another loss, it is an `OnlineKernelClassifier`.  With more, f(x) has one value per
    class, which sum to 0, and the probabilities are their softmax.  An example is a mistake if the value of its class
    is not the largest.  The scaling is such that two classes would give the binary learner; see
    `klr_bench.estimators.online.softmax`.

    A subclass sets a second rule, `_rule_of_many`, and `_most_passes`.

    Parameters
    ----------
    R : float, default=1e3
        Radius > 0 of the ball in the kernel's space that f is projected into; `inf` for no projection.  Zhang et al.
        choose it among 1, 10, ..., 1e5 by cross-validation, and take 1e5 for RCV1.
    average : bool, default=True
        Predict with the average of the f_t, which the papers' theorems and tables are about; otherwise with the last
        one, which is better where the rows do not come in random order (docs/scale/streams.md).
    n_epochs : int or None, default=None
        Passes of `fit` over the rows, >= 1; the papers make one.  None is a number that suits the class, 10 for `OSKL`
        and 5 for the others, fewer where there are many rows: 100,000 / n_samples, but at least 2.  A row that is
        inserted in several passes is one support vector, and the average is that of the last pass.

    Attributes
    ----------
    n_mistakes_ : int
        Number of examples that f_t classified wrongly, or did not decide, at their own step.
    cumulative_loss_ : float
        sum_t -log P(y_t|x_t), with the f_t before the step t: the loss in the papers' bounds.  Examples of all passes
        count, whatever their weights.  Only with the logistic loss.
    """

    _: KW_ONLY
    average: bool = parameter(True, "boolean")
    n_epochs: int | None = parameter(None, COUNT, None)

    _most_passes = 5

    def _probabilities(self, X):
        return softmax(self.decision_function(X), axis=1) if self._is_softmax() else super()._probabilities(X)

    def _passes(self, n):
        return max(2, min(self._most_passes, round(ENOUGH / n))) if self.n_epochs is None else self.n_epochs

    def _go_on_with(self, classes):
        super()._go_on_with(classes)
        if self._has_many() and isinstance(self._state, SoftmaxState) != self._is_softmax():
            message = (
                f"{type(self).__name__}: loss={self.loss!r} cannot follow the loss of the first call, since one is "
                "learned as a softmax and the other class by class; call fit to start anew."
            )
            raise ValueError(message)

    def progress(self):
        """Return what a checkpoint keeps: the number of support vectors and, of the logistic loss, the sum so far."""
        return super().progress() | self._losses()

    def summary(self):
        """Return the support vectors, their share, the updates and, of the logistic loss, the sum over all steps."""
        return super().summary() | self._losses()

    def _losses(self):
        return {"cumulative_loss": self.cumulative_loss_} if self._is_logistic() else {}

    def _publish(self):
        super()._publish()
        if self._is_logistic():
            self.cumulative_loss_ = float(self._state.scalars[0, 4])

    def _is_softmax(self):
        return self._has_many() and self._is_logistic()

    def _signs(self, y):
        """Return the labels as -1.0 and +1.0; with the softmax as 0, 1, ..."""
        if not self._is_softmax():
            return super()._signs(y)
        self._refuse_unknown(y)
        return np.searchsorted(self.classes_, y)

    def _new_state(self, X):
        return SoftmaxState(self._kernel(X), X, len(self.classes_)) if self._is_softmax() else super()._new_state(X)

    def _learning(self):
        if not self._is_softmax():
            return super()._learning()
        parameters, radius = self._rule_arguments()
        update = Update(type(self)._rule_of_many, parameters, radius)

        def learn(X, codes, draws, numbers, weights):
            draws, factors = self._weighted(draws, weights)
            self._state.learn_block(update, X, codes, draws, numbers, factors)

        return learn

    def _is_logistic(self):
        return getattr(self, "loss", "logit") == "logit"
