"""Online learners that predict each row before learning from it and return the predictions."""

from __future__ import annotations

import numpy as np
from sklearn.utils.metaestimators import available_if

from klr_bench.estimators.core.checks import distinct_labels


class Progressive:
    """Mixin for online classifiers that predict each row before learning from it.

    The attribute `decided` of the state has these values for the last call of `learn`, after which such a classifier
    calls `_note_decided()` if `_decided` is not None.
    """

    _decided = None
    """Values f(x) during a call of `partial_fit_scores`, as a list of arrays; otherwise None."""

    @available_if(lambda self: not getattr(self, "average", False))
    def partial_fit_scores(self, X, y, classes=None):
        """Learn from X row by row; return the decision value of each row before learning from it.

        Up to rounding this is `decision_function` of each row between calls of `partial_fit` with one row each, in the
        time of one call.  Not with `average`: the average of the f_t is not known row by row.

        Parameters
        ----------
        X, y, classes
            As for `partial_fit`, with two classes.

        Returns
        -------
        f : array of shape (n_samples,), float64
        """
        name = type(self).__name__
        if len(distinct_labels(getattr(self, "classes_", y if classes is None else classes))) > 2:
            message = f"partial_fit_scores of {name} requires two classes; use predict and partial_fit."
            raise ValueError(message)
        self._decided = []
        try:
            decided = np.concatenate(self.partial_fit(X, y, classes)._decided)
        finally:
            del self._decided
        if len(decided) != len(y):
            message = f"partial_fit_scores of {name} must learn from all rows; give each class a positive weight."
            raise ValueError(message)
        return decided

    def _note_decided(self):
        self._decided.append(self._state.decided)
