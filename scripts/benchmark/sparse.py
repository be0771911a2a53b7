"""Time of a pass over text-like data of the size of RCV1, with the inverted index."""

from __future__ import annotations

from timing import ONE_PASS, best, loaded, once

from klr_bench import AuxiliaryKLR
from klr_bench.estimators.kernel_values.inverted import sparse_products

N = 677_399


def measure(output):
    dataset, _ = loaded("rcv1_like")
    X, y = dataset.X[:N], dataset.y[:N]
    learner = AuxiliaryKLR(
        eta=121.5, R=1e5, aux_gamma=101.0, kernel="poly", gamma=1.0, degree=2, coef0=1.0, random_state=0, **ONE_PASS
    )
    seconds, _ = once(lambda: learner.fit(X, y))
    left, right = X[:1024], X[1024:1280].T.tocsr()
    ours = best(lambda: sparse_products(left, right)) / (1024 * 256)
    scipys = best(lambda: (left @ right).toarray()) / (1024 * 256)
    yield {
        "n": N,
        "features": X.shape[1],
        "nonzeros_a_row": X.nnz / N,
        "support_vectors": learner.n_support_,
        "mistakes": learner.n_mistakes_,
        "fit_s": seconds,
        "at_most_s": 300.0,
        "product_ns": ours * 1e9,
        "scipy_over_ours": scipys / ours,
    }
