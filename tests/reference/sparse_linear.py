"""Reference implementations of sparse confidence-weighted learners on dense, whitened features."""

import numpy as np
from scipy.linalg import sqrtm
from scipy.optimize import brentq


def conjugate_gradient(norms, sigma):
    """The norms of w_k that maximize w'z - (sigma/2)||w||^2 - (1/2)(sum ||w_k||)^2, by sorting the norms of z_k."""
    ordered, tau = np.sort(norms)[::-1], 0.0
    for m in range(1, len(norms) + 1):
        candidate = ordered[:m].sum() / (sigma + m)
        if ordered[m - 1] > candidate:
            tau = candidate
    return np.maximum(norms - tau, 0.0) / sigma


def omega(sizes, sigma):
    return 0.5 * sigma * np.sum(sizes**2) + 0.5 * np.sum(sizes) ** 2


def norms_of(z, parts):
    return np.array([np.linalg.norm(z[part]) for part in parts])


def whitened_weights(z, parts, sigma):
    w, norms = np.zeros(len(z)), norms_of(z, parts)
    for part, norm, size in zip(parts, norms, conjugate_gradient(norms, sigma), strict=True):
        if norm > 0:
            w[part] = size / norm * z[part]
    return w


def inverse_covariances(X, groups, precision, before=()):
    """Those of the groups after a batch X, from those `before` it, which are I for new groups."""
    old = [*before, *(np.eye(len(g)) for g in groups[len(before) :])]
    return [P + precision * X[:, g].T @ X[:, g] for P, g in zip(old, groups, strict=True)]


def whiten(X, groups, inverses):
    """Return the whitened features, the slices of the groups, and the root that maps w to the weights."""
    blocks = [sqrtm(np.linalg.inv(P)).real for P in inverses]
    ends = np.cumsum([len(g) for g in groups])
    parts = [slice(end - len(g), end) for g, end in zip(groups, ends, strict=True)]
    Z = np.hstack([X[:, g] @ B for g, B in zip(groups, blocks, strict=True)])
    return Z, parts, blocks


def conjugate(z, parts, sigma):
    w = whitened_weights(z, parts, sigma)
    return w @ z - omega(norms_of(w, parts), sigma)


def dual_objective(a, Z, y, parts, C, q, sigma, z0=0.0):
    z = z0 + Z.T @ (a * y)
    gain = conjugate(z, parts, sigma) - conjugate(z0 + 0 * z, parts, sigma)
    return a.sum() - (q == 2) * np.sum(a**2) / (4 * C) - gain


def primal_objective(w, Z, y, parts, C, q, sigma, z0=0.0):
    divergence = omega(norms_of(w, parts), sigma) - np.sum(z0 * w) + conjugate(z0 + 0 * w, parts, sigma)
    return divergence + C * np.sum(np.maximum(0.0, 1.0 - y * (Z @ w)) ** q)


def ascend(Z, y, parts, C, q, sigma, n_passes, z0):
    """Algorithm 3 from z0; a step beyond the maximum of the dual along its coordinate ends there.

    Returns a, z, objectives.
    """
    a, z = np.zeros(len(y)), z0
    soft, bound = (0.0, C) if q == 1 else (0.5 / C, np.inf)
    objectives = []
    for _ in range(n_passes):
        for i in range(len(y)):

            def slope(step, i=i, z=z):
                w = whitened_weights(z + step * y[i] * Z[i], parts, sigma)
                return 1.0 - soft * (a[i] + step) - y[i] * (w @ Z[i])

            curvature = Z[i] @ Z[i] + soft
            step = slope(0.0) / curvature if curvature else np.inf
            step = np.clip(step, -a[i], bound - a[i])
            if step != 0 and slope(step) * step < 0:
                step = brentq(slope, 0.0, step, xtol=1e-300, rtol=1e-14, maxiter=500)
            a[i] += step
            z = z + step * y[i] * Z[i]
            objectives.append(dual_objective(a, Z, y, parts, C, q, sigma, z0))
    return a, z, objectives


def best_features(scores, r):
    """The r largest positive scores; among equal ones, up to rounding, the first."""
    least = np.sort(scores)[::-1][:r][-1]
    ranks = np.where(scores > least * (1 + 1e-9), 2, scores >= least * (1 - 1e-9))
    best = np.argsort(-ranks, kind="stable")[:r]
    return np.sort(best[scores[best] > 0])


def select_groups(batches, C, q, sigma, p, size, n_passes, precision):
    """Algorithm 2, without a tolerance: the groups, the weights of the features, the dual objectives of the last batch.

    `precision` is the weight of each row in the inverse covariances, 1/r, or 0 without covariances.
    """
    groups, inverses, us = [], [], []
    for X, y in batches:
        a, thetas, coef, before, us_before = np.ones(len(y)), [], np.zeros(X.shape[1]), inverses, us
        while True:
            if groups:
                inverses = inverse_covariances(X, groups, precision, before)
                Z, parts, roots = whiten(X, groups, inverses)
                old = [*us_before, *(np.zeros(len(g)) for g in groups[len(us_before) :])]
                z0 = np.concatenate([np.linalg.solve(root, u) for root, u in zip(roots, old, strict=True)])
                a, z, objectives = ascend(Z, y, parts, C, q, sigma, n_passes, z0)
                thetas.append(objectives[-1])
                w = whitened_weights(z, parts, sigma)
                us = [root @ z[part] for root, part in zip(roots, parts, strict=True)]
                for g, part, root in zip(groups, parts, roots, strict=True):
                    coef[g] = root @ w[part]
            room = min(size, p - sum(map(len, groups)))
            scores = np.abs(X.T @ (a * y))
            scores[[j for g in groups for j in g]] = -1.0
            best = best_features(scores, room) if room else []
            if not len(best):
                break
            groups.append(best)
    return groups, coef, thetas


def sofs(X, y, B, r, n_epochs=1):
    """Weights and variances; after each example the B features with the least (variance, number) are kept."""
    X = X / np.maximum(np.linalg.norm(X, axis=1), 1e-300)[:, None]
    d = X.shape[1]
    w, s, seen = np.zeros(d), np.ones(d), np.zeros(d, dtype=bool)
    updates = 0
    for x, label in list(zip(X, y, strict=True)) * n_epochs:
        margin, v = label * (w @ x), np.sum(s * x * x)
        if margin >= 1 or v == 0:
            continue
        updates += 1
        seen |= x != 0
        beta = 1.0 / (v + r)
        w += (1.0 - margin) * beta * label * s * x
        s -= beta * (s * x) ** 2
        kept = sorted(np.flatnonzero(seen), key=lambda j: (s[j], j))[:B]
        w[np.setdiff1d(np.arange(d), kept)] = 0.0
    return w, s, updates


def spardca(X, y, C, l1, q, orders):
    """Weights and dual variables after a pass in each of the orders."""
    a, z = np.zeros(len(y)), np.zeros(X.shape[1])
    soft, bound = (0.0, C) if q == 1 else (0.5 / C, np.inf)
    for order in orders:
        for i in order:
            w = np.sign(z) * np.maximum(np.abs(z) - l1, 0.0)
            curvature = X[i] @ X[i] + soft
            step = (1.0 - y[i] * (w @ X[i]) - soft * a[i]) / curvature if curvature else np.inf
            step = np.clip(step, -a[i], bound - a[i])
            a[i] += step
            z += step * y[i] * X[i]
    return np.sign(z) * np.maximum(np.abs(z) - l1, 0.0), a
