"""Kernel logistic regression with cross-validated kernel width and penalty: `DualCDKLRCV`."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY

import numpy as np
from numpy.typing import ArrayLike

from klr_bench.estimators.batch.base import KernelBlocks
from klr_bench.estimators.batch.cross_validation import GRID, WORSE, KernelClassifierCV, log_losses
from klr_bench.estimators.batch.dual import DualCDKLR, warm_path
from klr_bench.estimators.batch.selection import LAMS
from klr_bench.estimators.core.expansion import decide
from klr_bench.estimators.core.kernels import Kernel, kernel_of, rows_of
from klr_bench.estimators.core.parameters import COUNT, NOT_NEGATIVE, POSITIVE, PRECOMPUTED, estimator, parameter
from klr_bench.estimators.kernel_values.operands import nonnegative_diagonal, operands_of


@estimator
class DualCDKLRCV(KernelClassifierCV):
    r"""`DualCDKLR` that chooses gamma and lam by cross-validated log loss.

    Use it for up to some thousand scaled rows, in place of a grid search over `DualCDKLR`: the kernel values are
    computed once for all folds and penalties.  `KLR` learns weights of the features in addition, and needs no scaling.

    Parameters
    ----------
    lams : array of shape (n_lams,) or "auto", default="auto"
        Values > 0 of lam; "auto" is 0.1, 0.01, ..., 1e-6, of which a fold leaves out those that follow a loss 5 % above
        the least one.
    tol : float, default=1e-3
        Relative duality gap >= 0 at which a fit ends.
    max_iter : int, default=100
        Largest number of epochs of a fit, >= 1; narrow kernels with a small lam need more, and are rarely chosen.
    cache_size : float, default=1000.0
        MB > 0 for the kernel values of all rows; each thread takes as much again for those of a fold.  If they do not
        fit, they are computed again in each epoch.

    Attributes
    ----------
    best_estimator_ : DualCDKLR
        The classifier with the chosen parameters, fitted to all rows.
    n_iter_ : int
        Number of its epochs.

    Notes
    -----
    .. math::

        (\gamma, \lambda) = \arg\min \; \frac{1}{K} \sum_{k=1}^K \frac{1}{n_k} \sum_{i \in \text{fold } k}
        -\log P_{-k}(y_i \mid x_i)

    where :math:`P_{-k}` is fitted to the rows of the other folds.  For a gamma, the kernel values of all rows are
    computed once, for all folds and penalties, if they fit into `cache_size`.  In a fold the penalties are solved from
    the largest to the smallest, each starting from the last solution.  The scores are those of `DualCDKLR` with the
    same parameters, up to `tol`.

    References
    ----------
    Hastie, Tibshirani, Friedman, The elements of statistical learning, 2009, section 7.10: cross-validation.

    Examples
    --------
    >>> from klr_bench import DualCDKLRCV
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = DualCDKLRCV(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, len(model.cv_results_["params"])
    (True, 30)
    >>> sorted(model.best_params_)
    ['gamma', 'lam']
    """

    lams: ArrayLike | str = parameter(*GRID, default="auto")
    _: KW_ONLY
    tol: float = parameter(NOT_NEGATIVE, default=1e-3)
    max_iter: int = parameter(COUNT, default=100)
    cache_size: float = parameter(POSITIVE, default=1000.0)

    _plain = DualCDKLR
    _copied = ("n_support_", "n_iter_")
    _grids = {"lams": ("lam", LAMS)}  # noqa: RUF012

    def _fold_losses(self, X, y, codes, weights, gamma, settings):
        learner, signs = self._learner(gamma=gamma), np.atleast_2d(self._signs(y))
        rows = rows_of(learner, X)
        operands = operands_of(kernel_of(learner, X, weights), rows).fitting(rows)
        nonnegative_diagonal(operands, rows)
        n = len(y)
        if n * n * rows.dtype.itemsize <= self.cache_size * 1e6:
            matrix = KernelBlocks(operands, rows, math.inf).whole
            rows = np.arange(n, dtype=rows.dtype)[:, None]
            operands = operands_of(Kernel(PRECOMPUTED, matrix=matrix), rows)
        lams = np.array([setting["lam"] for setting in settings])
        order = np.argsort(-lams)

        def losses(train, valid):
            shares = np.ones(len(train)) if weights is None else weights[train]
            blocks, random = KernelBlocks(operands, rows[train], self.cache_size), np.random.RandomState(self._seed)
            of_fold = np.ascontiguousarray(signs[:, train])
            path = warm_path(blocks, of_fold, lams[order], shares / shares.sum(), random, self.tol, self.max_iter)
            losses, means = np.full((len(lams), len(valid)), np.nan), []
            for place, b in zip(order, path, strict=True):
                losses[place] = log_losses(decide(operands, rows[train], b, rows[valid]), codes[valid])
                means.append(np.average(losses[place], weights=None if weights is None else weights[valid]))
                if isinstance(self.lams, str) and means[-1] > WORSE * min(means):
                    break
            return losses

        return losses
