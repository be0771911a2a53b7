"""Online sparse kernel learning with cross-validated parameters: `OSKLCV`."""

from __future__ import annotations

from dataclasses import KW_ONLY

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import _safe_split

from klr_bench.estimators.batch.cross_validation import GRID, KernelClassifierCV, log_losses
from klr_bench.estimators.core.parameters import COUNT, estimator, parameter
from klr_bench.estimators.online.classifier import OnlineClassifier
from klr_bench.estimators.online.many import SharedFit
from klr_bench.estimators.online.oskl import OSKL
from klr_bench.estimators.online.passes import default_passes


@estimator
class OSKLCV(KernelClassifierCV):
    r"""`OSKL` that chooses gamma, eta, G and R by cross-validated log loss.

    Use it in place of a grid search over `OSKL`: with two classes, all candidates of a fold and a gamma are fitted in
    one pass, so that each kernel value is computed once.  Scale the features first.

    Parameters
    ----------
    etas : array of shape (n_etas,) or "auto", default="auto"
        Values > 0 of eta; "auto" is 0.3, 0.9 and 3.  The theorem needs eta G < 1.
    Gs : array of shape (n_Gs,) or "auto", default="auto"
        Values >= 1 of G; "auto" is 1, 2 and 4.
    Rs : array of shape (n_Rs,) or "auto", default="auto"
        Values > 0 of R; "auto" is 10 and 1000.  The paper tries 1, 10, ..., 1e5.
    average : bool, default=True
        Predict with the average of the f_t, otherwise with the last one.
    n_epochs : int or None, default=None
        Passes over the rows, >= 1; None is 10, and fewer for more than 10,000 rows.
    shuffle : bool, default=True
        Whether the rows are learned in a random order, drawn for each pass.

    Attributes
    ----------
    best_estimator_ : OSKL
        The classifier with the chosen parameters, fitted to all rows.

    Notes
    -----
    .. math::

        (\gamma, \eta, G, R) = \arg\min \; \frac{1}{K} \sum_{k=1}^K \frac{1}{n_k} \sum_{i \in \text{fold } k}
        -\log P_{-k}(y_i \mid x_i)

    where :math:`P_{-k}` is fitted to the rows of the other folds.  With two classes all eta, G and R of a fold and a
    gamma are fitted in one pass, as by `fit_many`, so that each kernel value is computed once.  With more classes they
    are fitted one by one.  The loss is the logistic one.

    References
    ----------
    Zhang, Yi, Jin, Lin, He, Online kernel learning with a near optimal sparsity bound, ICML 2013: section 5 chooses R
    by cross-validation.

    Examples
    --------
    >>> from klr_bench import OSKLCV
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = OSKLCV(Gs=[1.0, 2.0], Rs=[1000.0], random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, len(model.cv_results_["params"])
    (True, 30)
    >>> sorted(model.best_params_)
    ['G', 'R', 'eta', 'gamma']
    """

    etas: ArrayLike | str = parameter(*GRID, default="auto")
    Gs: ArrayLike | str = parameter(*GRID, default="auto")
    Rs: ArrayLike | str = parameter(*GRID, default="auto")
    _: KW_ONLY
    average: bool = parameter("boolean", default=True)
    n_epochs: int | None = parameter(COUNT, None, default=None)
    shuffle: bool = parameter("boolean", default=True)

    _plain = OSKL
    _grids = {"etas": ("eta", (0.3, 0.9, 3.0)), "Gs": ("G", (1.0, 2.0, 4.0)), "Rs": ("R", (10.0, 1000.0))}  # noqa: RUF012

    def _learner(self, **parameters):
        n_epochs = self.n_epochs or default_passes(self._n_rows, OnlineClassifier._most_passes)
        return super()._learner(n_epochs=n_epochs, **parameters)

    def _fold_losses(self, X, y, codes, weights, gamma, settings):
        def losses(train, valid):
            learners = [self._learner(gamma=gamma, **setting) for setting in settings]
            X_train, y_train = _safe_split(learners[0], X, y, train)
            X_valid, _ = _safe_split(learners[0], X, y, valid, train)
            shares = None if weights is None else weights[train]
            if self._has_many():
                decisions = [learner.fit(X_train, y_train, shares).decision_function(X_valid) for learner in learners]
                return np.array([log_losses(f, codes[valid], is_softmax=True) for f in decisions])
            fitted = SharedFit(learners, X_train, y_train, sample_weight=shares)
            decisions = np.where(fitted.refused, np.nan, fitted.decision_function(X_valid))
            return np.array([log_losses(f[:, None], codes[valid]) for f in decisions.T])

        return losses
