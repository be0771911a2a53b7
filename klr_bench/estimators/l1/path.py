"""Regularization path of `L1KLR`: the largest useful lambda, and fits for smaller values."""

from __future__ import annotations

from reprlib import repr

import numpy as np

from klr_bench.estimators.core.checks import refuse_not_finite
from klr_bench.estimators.core.parameters import POSITIVE
from klr_bench.estimators.core.threads import single_threaded_blas
from klr_bench.estimators.l1.estimator import L1KLR


@single_threaded_blas()
def lambda_max(X, y, **parameters):
    r"""Return the smallest lambda for which w = 0 is optimal for `L1KLR`.

    .. math::

        \lambda_{\max} = \max_j \left| \sum_{i=1}^n (t_i - p) z_{ij} \right|

    t_i is 1 for the rows of the second class and 0 for those of the first, p the mean of the t_i, or 1/2 without an
    intercept, and z_i the features of row i: equation 16 of Qin et al. (2011).

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Training rows.
    y : array of shape (n_samples,)
        Their classes, two.
    **parameters
        Parameters of `L1KLR`; those that define the features and ``fit_intercept`` matter.

    Returns
    -------
    float
        lambda_max > 0, in the scale of ``lam``: for a sum of losses, not for their mean.

    Raises
    ------
    ValueError
        If parameters or data are refused, or if features are not finite.

    Examples
    --------
    >>> from klr_bench import L1KLR, lambda_max
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> largest = lambda_max(X, y, gamma=2.0)
    >>> L1KLR(lam=0.99 * largest, gamma=2.0).fit(X, y).n_support_ > 0
    True
    """
    problem, _ = L1KLR(**parameters).prepare(X, y)
    return problem.lambda_max()


@single_threaded_blas()
def l1_path(X, y, lams=(0.5, 0.2, 0.1, 0.05), *, relative=True, callback=None, **parameters):
    r"""Fit one `L1KLR` per lambda, in decreasing order, starting from the previous solution.

    .. math::

        & w_k = \operatorname{argmin}_w \; \sum_{i=1}^n \log(1 + e^{-y_i w^T z_i}) + \lambda_k {\lVert w \rVert}_1 \\
        & \lambda_1 > \lambda_2 > \ldots

    The features are computed once for all models.  This is the continuation of Qin et al. (2011), section 4.2.3.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Training rows.
    y : array of shape (n_samples,)
        Their classes, two.
    lams : float or sequence of floats, default=(0.5, 0.2, 0.1, 0.05)
        Values > 0: multiples of lambda_max, or with relative=False values of lambda.  The default has the values of the
        paper's tables 2 and 3; at 1 and above all coefficients are 0.
    relative : bool, default=True
        Whether lams are multiples of lambda_max.
    callback : callable, default=None
        As for ``L1KLR.fit``; returning True ends the fit of one lambda.
    **parameters
        Parameters of `L1KLR`.

    Returns
    -------
    list of L1KLR
        The fitted models in decreasing order of lambda.

    Raises
    ------
    ValueError
        If lams has no numbers or one that is not above 0, or if parameters or data are refused.

    Examples
    --------
    >>> from klr_bench import l1_path
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> models = l1_path(X, y, lams=(0.5, 0.1), gamma=2.0)
    >>> [model.lam for model in models], models[-1].score(X, y) > 0.9
    ([0.5, 0.1], True)
    >>> models[0].n_support_ < models[1].n_support_
    True
    """
    models, prepared, start = [], None, None
    values = np.asarray(lams, dtype=object).ravel().tolist()
    if not values or not all(POSITIVE.is_satisfied_by(value) for value in values):
        message = f"lams: expected positive numbers, got {repr(lams)}."
        raise ValueError(message)
    for lam in sorted(map(float, values), reverse=True):
        model = L1KLR(**parameters, lam=lam, lam_relative=relative)
        prepared = model.prepare(X, y) if prepared is None else prepared
        if models:
            model.adopt(models[0])
        start = model.solve(*prepared, start, callback)
        refuse_not_finite(model)
        models.append(model)
    return models
