"""Many values of lambda on the same features: where the path begins, and continuation down it."""

from __future__ import annotations

import numpy as np

from klr_bench.estimators.l1.estimator import L1KLR


def lambda_max(X, y, **parameters):
    """Return the least lambda for which w = 0 is the optimum, for rows X (n, d) and two classes y (n,).

    `parameters` are those of L1KLR that decide the features, and `fit_intercept`.
    """
    problem, _ = L1KLR(**parameters).prepare(X, y)
    return problem.lambda_max()


def l1_path(X, y, lams=(0.5, 0.2, 0.1, 0.05), *, relative=True, callback=None, **parameters):
    """Fit one L1KLR for each lambda, from the largest down, each from the solution before (lines 322-324).

    Parameters
    ----------
    X, y
        As for `L1KLR.fit`; the features are computed once.
    lams : float > 0, or sequence of them
        Multiples of lambda_max where `relative`, else values of lambda.
    callback : callable, default=None
        As for `L1KLR.fit`; returning True ends the fit of one lambda.
    parameters
        Of L1KLR.

    Returns
    -------
    list of L1KLR, fitted, in decreasing order of lambda
    """
    models, prepared, start = [], None, None
    lams = np.atleast_1d(np.asarray(lams, dtype=float))
    if not (len(lams) and np.all(lams > 0) and np.all(np.isfinite(lams))):
        message = f"lams: expected numbers above 0, got {lams.tolist()}."
        raise ValueError(message)
    for lam in sorted(lams.tolist(), reverse=True):
        model = L1KLR(**parameters, lam=lam, lam_relative=relative)
        prepared = model.prepare(X, y) if prepared is None else prepared
        if models:
            model.adopt(models[0])
        start = model.solve(*prepared, start, callback)
        models.append(model)
    return models
