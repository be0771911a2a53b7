"""A text-like set of the size of rcv1, the polynomial kernel of degree 2, and the inverted index."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from timing import best, once

from klr_bench import AuxiliaryKLR
from klr_bench.kernels import sparse_products

N, D, NONZEROS = 677_399, 47_236, 74
TOPICAL = 0.3  # of the rarer words: about as many mistakes as on rcv1


def text_like(n, d=D, nonzeros=NONZEROS, seed=0):
    """Return CSR rows (n, d) of unit length with about `nonzeros` Zipf-distributed features, and labels of a topic.

    The features of a topic are rarer words that occur more often in documents of one class.
    """
    random = np.random.RandomState(seed)
    y = np.where(random.random_sample(n) < 0.5, 1, -1)
    weights = 1.0 / np.arange(10, d + 10)
    cumulative = np.cumsum(weights / weights.sum())
    words = np.searchsorted(cumulative, random.random_sample((n, nonzeros))).astype(np.int32)
    topical = (random.random_sample((n, nonzeros)) < TOPICAL) & (words > 50)
    words[topical] -= (words[topical] + (y > 0).astype(np.int32)[:, None].repeat(nonzeros, 1)[topical]) % 2
    words.sort(axis=1)
    first = np.ones_like(words, dtype=bool)
    first[:, 1:] = words[:, 1:] != words[:, :-1]
    lengths = first.sum(axis=1)
    values = np.repeat(1.0 / np.sqrt(lengths), lengths).astype(np.float32)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return sp.csr_matrix((values, words[first], indptr), shape=(n, d)), y


def measure(output):
    X, y = text_like(N)
    learner = AuxiliaryKLR(
        eta=121.5, R=1e5, aux_gamma=101.0, kernel="poly", gamma=1.0, degree=2, coef0=1.0, random_state=0
    )
    seconds, _ = once(lambda: learner.fit(X, y))
    left, right = X[:1024], X[1024:1280].T.tocsr()
    ours = best(lambda: sparse_products(left, right)) / (1024 * 256)
    scipys = best(lambda: (left @ right).toarray()) / (1024 * 256)
    yield {
        "n": N,
        "features": D,
        "nonzeros_a_row": X.nnz / N,
        "support_vectors": learner.n_support_,
        "mistakes": learner.n_mistakes_,
        "fit_s": seconds,
        "at_most_s": 300.0,
        "product_ns": ours * 1e9,
        "scipy_over_ours": scipys / ours,
    }
