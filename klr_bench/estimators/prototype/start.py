"""Initial parameters of `PrototypeKLR`, and the scale of each parameter."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from klr_bench.estimators.core.kernels import squared_norms
from klr_bench.estimators.core.multiclass import SEEDS
from klr_bench.estimators.core.rows import ROUNDING, csr_places, largest_of, weighted_median, weighted_sample
from klr_bench.estimators.prototype.archetypes import archetypes
from klr_bench.estimators.prototype.model import DENSE

SAMPLE = 1000
"""Number of rows used to determine typical distances."""
CLUSTERED = 10_000
"""Maximum number of rows passed to k-means, unless there are more prototypes."""
ANALYZED = 2000
"""Maximum number of rows passed to archetypal analysis, which takes about a second for 50 archetypes."""


def first_point(model, rows, *, init, gamma, learn_coef, random):
    """Return the initial parameter vector, with the dtype of the rows.

    Without `learn_coef` the coefficients are drawn from [-1, 1].  gamma=None is 1 / the median squared distance.
    """
    layout, n = model.layout, len(rows)
    x = np.zeros(layout.size, dtype=rows.X.dtype)
    b0, _, U, theta = layout.views(x)
    U[:] = first_prototypes(rows, layout.J, init, random).T
    if gamma is None:
        X, _, v = rows.block(np.sort(random.permutation(n)[:SAMPLE]))
        D, v = model.kernel.distances(X, U).astype(np.float64), np.repeat(v, layout.J)
        typical = weighted_median(D.ravel(), v), np.average(D.ravel(), weights=v)
        rounding = 8 * np.finfo(X.dtype).eps * squared_norms(X).max()
        gamma = 1 / next((value for value in typical if value > rounding), 1.0)
    theta[:] = np.log(gamma)
    if learn_coef:
        b0[:] = model.loss.constant(np.bincount(rows.y, rows.v, minlength=max(layout.M, 2)) / rows.v.sum())
    else:
        b = layout.slices["b"]
        x[b] = random.uniform(-1, 1, b.stop)
    return x


def first_prototypes(rows, J, init, random):
    """Return J initial prototypes relative to the origin: rows, k-means centers or archetypes."""
    order = random.permutation(len(rows))
    n = {"random": J, "kmeans": max(J, CLUSTERED), "archetypes": max(J, ANALYZED)}[init]
    X, _, v = rows.block(np.sort(order[:n]))
    if init == "kmeans":
        from sklearn.cluster import MiniBatchKMeans

        seed = random.randint(SEEDS)
        if sp.issparse(X):  # k-means needs indices of 32 bits, which sparse arrays need not have
            indptr, indices = csr_places(X)
            X = sp.csr_matrix((X.data, indices, indptr), X.shape)
        return MiniBatchKMeans(J, n_init=1, random_state=seed, batch_size=2048).fit(X, sample_weight=v).cluster_centers_
    if init == "archetypes" and sp.issparse(X) and X.shape[0] * X.shape[1] > DENSE:
        message = (
            f"init='archetypes' needs a dense sample of the rows: expected at most {DENSE:,} entries, got "
            f"{X.shape[0]:,} rows x {X.shape[1]:,} columns; use init='kmeans' or fewer features."
        )
        raise ValueError(message)
    X = X.toarray() if sp.issparse(X) else X
    return archetypes(X, J, random)[0] if init == "archetypes" else X


def unit_of(model, x, rows, n_features):
    """Return the scale of each parameter, by which the solvers multiply their steps.

    It is 0.1 for theta, the spread of the features for u, 1 for the intercepts b_0, and for b 0.3 divided
    by the spread of the initial kernel values, or 1 in the lazy form, where that spread changes.
    """
    unit, places, n = np.ones(len(x)), model.layout.slices, len(rows)
    if not model.kernel.lazy:
        sample, v = weighted_sample(n, SAMPLE, rows.v)
        X, *_ = rows.block(sample)
        unit[model.layout.M : places["b"].stop] = 0.3 / (_deviation(model.kernel_values(x, X), v) or 0.3)
    unit[places["theta"]] = 0.1
    unit[places["u"]] = _spread(rows, n_features, model.kernel.lazy) or 1.0
    return unit


def _spread(rows, n_features, lazy):
    """Return the root mean square of the features, which are centered first if X is dense.

    X may have fewer than `n_features` columns if it is CSR.  In the lazy form only the non-zero entries count.
    """
    X, v = rows.X, rows.v
    if not sp.issparse(X):
        return _deviation(X, v)
    weights = np.repeat(v, np.diff(X.indptr))
    total = weights.sum() if lazy else v.sum() * n_features
    return math.sqrt(weights @ np.square(X.data, dtype=np.float64) / total) if total else 0.0


def _deviation(X, weights):
    """Return the root of the mean variance of the columns; 0 if constant up to rounding."""
    X = X.astype(np.float64)
    centered = X - np.average(X, axis=0, weights=weights)
    deviation = math.sqrt(np.average(squared_norms(centered), weights=weights) / X.shape[1])
    return deviation if deviation > ROUNDING * largest_of(X) else 0.0
