"""Functions that generate synthetic data sets.

Each generator returns the features X (n, d) and the labels y (n,).  The same seed gives the same data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Labels = NDArray[np.int64]


def moons(n_samples: int, noise: float, seed: int) -> tuple[NDArray[np.float64], Labels]:
    """Generate points of two classes, which form two interleaved half circles in the plane.

    Rows are in random order.  `noise` is the standard deviation of Gaussian noise added to each coordinate.
    """
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n_samples)
    angle = random.uniform(0.0, np.pi, n_samples)
    sign = 1 - 2 * y  # rotating the first moon by 180 degrees about (1/2, 1/4) gives the second one
    X = np.column_stack([sign * np.cos(angle) + y, sign * np.sin(angle) + 0.5 * y])
    return X + noise * random.standard_normal(X.shape), y


def checkerboard(n_samples: int, cells: int, label_noise: float, seed: int) -> tuple[NDArray[np.float64], Labels]:
    """Generate random points in the unit square; the label is the color on a checkerboard.

    The board has `cells` x `cells` squares.  Each label is flipped with probability `label_noise`, which is the Bayes
    error.
    """
    random = np.random.default_rng(seed)
    X = random.uniform(size=(n_samples, 2))
    color = np.floor(cells * X).astype(np.int64).sum(axis=1) % 2
    return X, color ^ (random.uniform(size=n_samples) < label_noise)


def repeated_points(n_samples: int, n_points: int, distance: float, seed: int) -> tuple[NDArray[np.float64], Labels]:
    """Generate rows with one feature, drawn at random from `n_points` different values.

    All points are equally likely.  A point always has the same label; a random half of the points has label 0.
    Neighboring points are `distance` apart.  If exp(-gamma distance^2) is 0, the points are orthogonal, and the best f
    has a support vector at each point.  This is a sequence as in Theorem 2 of Zhang et al. (ICML 2013), which states
    that such a sequence exists; see `few_support_loss` of `klr_bench.estimators.online.bounds`.
    """
    random = np.random.default_rng(seed)
    label = random.permutation(n_points) % 2
    point = random.integers(0, n_points, n_samples)
    return distance * point[:, None].astype(np.float64), label[point]


def sparse_text(
    n_samples: int, n_features: int, length: int, topic_words: int, topic_share: float, seed: int
) -> tuple[Any, Labels]:
    """Generate sparse word vectors of random documents on two topics, labeled with the topic.

    X is CSR with rows of norm 1.  Entries are log(1 + count) before the rows are normalized.  A document has `length`
    words on average (Poisson).  A share `topic_share` of them comes from the `topic_words` words of the document's
    topic; the others follow Zipf's law over `n_features` words.
    """
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n_samples)
    zipf = 1.0 / np.arange(1, n_features + 1)
    topics = random.permutation(n_features)[: 2 * topic_words].reshape(2, topic_words)
    lengths = np.maximum(random.poisson(length, n_samples), 1)
    document = np.repeat(np.arange(n_samples), lengths)
    common = random.choice(n_features, size=document.size, p=zipf / zipf.sum())
    topical = topics[y[document], random.integers(0, topic_words, document.size)]
    word = np.where(random.uniform(size=document.size) < topic_share, topical, common)
    counts = sp.csr_matrix((np.ones(document.size), (document, word)), shape=(n_samples, n_features))
    counts.sum_duplicates()
    counts.data = np.log1p(counts.data)
    norms = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(1.0 / norms) @ counts), y


def factors(
    n_samples: int, n_features: int, n_factors: int, share: float, noise: float, seed: int
) -> tuple[Any, Labels]:
    """Generate sparse rows of two classes from random latent factors.

    X is CSR.  A share `share` of the entries is non-zero, with values in (0, 1].  Each feature is a random combination
    of `n_factors` Gaussian factors, plus Gaussian noise with `noise` times the standard deviation of the combination,
    minus its (1 - share)-quantile; negative values become 0.  The label is the sign of a + b |b|, where a and b are two
    other combinations of the factors.
    """
    random = np.random.default_rng(seed)
    hidden = random.standard_normal((n_samples, n_factors), dtype=np.float32)
    a, b = (hidden @ random.standard_normal((n_factors, 2), dtype=np.float32)).T
    values = hidden @ random.standard_normal((n_factors, n_features), dtype=np.float32) / np.float32(n_factors**0.5)
    values += np.float32(noise) * random.standard_normal(values.shape, dtype=np.float32)
    values -= np.quantile(values[:500], 1 - share, axis=0).astype(np.float32)
    X = sp.csr_matrix(np.maximum(values, 0.0) / np.maximum(values.max(axis=0), np.float32(1e-6)))
    return X, (a + b * np.abs(b) > 0).astype(np.int64)


def dense_factors(
    n_samples: int, n_features: int, n_factors: int, decay: float, noise: float, seed: int
) -> tuple[NDArray[np.float32], Labels]:
    """Generate dense rows of two classes, with norm 1 and correlated features.

    X is float32.  Before scaling, a row is the sum of two Gaussian parts: `n_factors` common factors, the k-th with
    weight k^-decay, which do not affect the label, and independent features with standard deviations from 1 to 1/20.
    The label is the sign of w'x plus Gaussian noise, `noise` times as large; w is spread over the whitened features.
    Without noise w'x/||x|| classifies perfectly.
    """
    random = np.random.default_rng(seed)
    spread = np.geomspace(1.0, 0.05, n_features, dtype=np.float32)
    weights = random.standard_normal(n_features, dtype=np.float32) / spread
    loadings = random.standard_normal((n_factors, n_features), dtype=np.float32) / np.float32(np.sqrt(n_features))
    loadings *= np.float32(np.sqrt(n_features / n_factors)) * np.arange(1, n_factors + 1)[:, None] ** np.float32(-decay)
    loadings -= np.outer(loadings @ weights, weights) / (weights @ weights)
    X = random.standard_normal((n_samples, n_features), dtype=np.float32)
    X *= spread
    score = X @ weights
    factors = random.standard_normal((n_samples, n_factors), dtype=np.float32)
    for start in range(0, n_samples, 4096):
        X[start : start + 4096] += factors[start : start + 4096] @ loadings
    X /= np.linalg.norm(X, axis=1)[:, None]
    y = score + noise * score.std() * random.standard_normal(n_samples) > 0
    return X, y.astype(np.int64)


def gaussian_mixtures(
    n_samples: int, n_classes: int, components: int, spread: float, seed: int
) -> tuple[NDArray[np.float64], Labels]:
    """Generate points in the plane; each class is a mixture of Gaussians.

    Each class is a mixture of `components` Gaussians.  Their means are 3 times a standard normal vector; the axes of
    their covariances have lengths from `spread` / 2 to 3 `spread` / 2 and random directions.
    """
    random = np.random.default_rng(seed)
    means = 3.0 * random.standard_normal((n_classes, components, 2))
    angle = random.uniform(0.0, np.pi, (n_classes, components))
    axes = spread * random.uniform(0.5, 1.5, (n_classes, components, 2))
    y, component = random.integers(0, n_classes, n_samples), random.integers(0, components, n_samples)
    noise, turned = axes[y, component] * random.standard_normal((n_samples, 2)), angle[y, component]
    along = np.column_stack([np.cos(turned), np.sin(turned)])
    across = np.column_stack([-np.sin(turned), np.cos(turned)])
    return means[y, component] + noise[:, :1] * along + noise[:, 1:] * across, y


def two_gaussians(
    n_samples: int, n_features: int, distance: float, spread: float, seed: int
) -> tuple[NDArray[np.float64], Labels]:
    """Generate points of two classes, each of which has a Gaussian distribution.

    Class 1 is standard normal around a point with equal coordinates at `distance` from the origin; class 0 is centered
    at the origin with standard deviation `spread`.  In 20 dimensions these are twonorm (distance 4, spread 1, shifted)
    and ringnorm (distance 2, spread 2) of Breiman, Bias, variance, and arcing classifiers (1996).
    """
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n_samples)
    X = random.standard_normal((n_samples, n_features)) * np.where(y == 1, 1.0, spread)[:, None]
    return X + y[:, None] * distance / np.sqrt(n_features), y


def sparse_binary(
    n_samples: int, n_features: int, n_on: int, n_classes: int, topics: int, blocks: int, share: float, seed: int
) -> tuple[Any, Labels]:
    """Generate sparse rows in which exactly `n_on` features are 1 and all others are 0.

    X is CSR; y is from 0 to `n_classes` - 1.  Each class has `topics` topics.  A topic is a random pair out of `blocks`
    blocks of 100 features, so that a single block says little about the class, but two blocks determine it.  Each row
    has one topic of its class.  On average, a share `share` of its features comes from that topic; the others are drawn
    from all features by Zipf's law.
    """
    random = np.random.default_rng(seed)
    y = random.integers(0, n_classes, n_samples)
    words = random.permutation(n_features)[: 100 * blocks].reshape(blocks, 100)
    pairs = random.permuted(np.tile(np.arange(blocks), (n_classes * topics, 1)), axis=1)[:, :2]
    topic = y * topics + random.integers(0, topics, n_samples)
    edges = np.cumsum(1.0 / np.arange(1, n_features + 1))

    def draw(rows: NDArray[np.int64]) -> NDArray[np.int32]:
        common = np.searchsorted(edges, random.uniform(high=edges[-1], size=len(rows)))
        block = pairs[topic[rows], random.integers(0, 2, len(rows))]
        block_words = words[block, random.integers(0, 100, len(rows))]
        return np.where(random.uniform(size=len(rows)) < share, block_words, common).astype(np.int32)

    on = np.sort(draw(np.repeat(np.arange(n_samples), n_on)).reshape(n_samples, n_on), axis=1)
    while True:  # redraw repeated features until the features of each row are all different
        row, column = np.nonzero(on[:, 1:] == on[:, :-1])
        if not len(row):
            break
        on[row, column] = draw(row)
        on[row] = np.sort(on[row], axis=1)
    indptr = np.arange(0, n_samples * n_on + 1, n_on)
    return sp.csr_matrix((np.ones(on.size, dtype=np.float32), on.ravel(), indptr), (n_samples, n_features)), y


def correlated_blocks(
    n_samples: int,
    n_features: int,
    n_blocks: int,
    block_size: int,
    correlation: float,
    presence: float,
    length: int,
    label_noise: float,
    seed: int,
) -> tuple[Any, Labels, NDArray[np.int64]]:
    """Generate sparse rows whose class (0 or 1) depends on only a few, correlated features.

    The indices of these relevant features are returned, too.  X is CSR.  A block of features is present in a row with
    probability `presence`.  Its features are then Gaussian with variance 1 and pairwise correlation `correlation`.  The
    label is the sign of the sum of w'x over the blocks, where the entries of w are +1 or -1 at random: within a block
    the differences of features matter, and their variance is smallest.  The relevant features have random positions
    among `n_features`.  Of the other features, `length` per row on average (Poisson) are drawn by Zipf's law, each with
    a standard normal value; values of a feature drawn twice are added.  Each label is flipped with probability
    `label_noise`.
    """
    random = np.random.default_rng(seed)
    size = n_blocks * block_size
    places = random.permutation(n_features)
    relevant, others = places[:size], places[size:]
    common = random.standard_normal((n_samples, n_blocks, 1))
    separate = random.standard_normal((n_samples, n_blocks, block_size))
    present = random.uniform(size=(n_samples, n_blocks, 1)) < presence
    blocks = present * (np.sqrt(correlation) * common + np.sqrt(1.0 - correlation) * separate)
    signs = random.choice([-1.0, 1.0], size)
    f = blocks.reshape(n_samples, size) @ signs
    y = (f > 0) ^ (random.uniform(size=n_samples) < label_noise)
    zipf = 1.0 / np.arange(1, len(others) + 1)
    lengths = random.poisson(length, n_samples)
    row = np.repeat(np.arange(n_samples), lengths)
    word = others[random.choice(len(others), size=row.size, p=zipf / zipf.sum())]
    at, which = np.nonzero(blocks.reshape(n_samples, size))
    values = np.concatenate([blocks.reshape(n_samples, size)[at, which], random.standard_normal(row.size)])
    index = np.concatenate([at, row]), np.concatenate([relevant[which], word])
    X = sp.csr_matrix((values, index), shape=(n_samples, n_features))
    X.sum_duplicates()
    return X, y.astype(np.int64), np.sort(relevant)
