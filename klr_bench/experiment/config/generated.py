"""The functions of klr-bench that make data, and the parameters that each takes, with their types and ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from klr_bench.experiment.config.schema import MAX_SEED, MOST_FEATURES
from klr_bench.experiment.config.splitting import Rows
from klr_bench.experiment.config.typed import between

Seed = Annotated[int, between(0, MAX_SEED)]
Features = Annotated[int, between(1, MOST_FEATURES)]
Few = Annotated[int, between(1, 10_000)]
Classes = Annotated[int, between(2, 127)]
Share = Annotated[float, between(0, 1)]
Size = Annotated[float, between(0, 1e6)]
MOST_NUMBERS = 5 * 10**8
"""Numbers that a set may have while it is made: some gigabytes."""


@dataclass(frozen=True)
class Made:
    """The parameters of a function that makes data."""

    def n_numbers(self) -> float:
        """Return how many numbers it makes, about."""
        return 0

    def limits(self) -> tuple[str, bool]:
        """Return what the parameters must fulfil beside each other, in words, and whether they do."""
        return "", True


@dataclass(frozen=True)
class Moons(Made):
    n_samples: Rows
    noise: Size
    seed: Seed

    def n_numbers(self) -> float:
        return 2 * self.n_samples


@dataclass(frozen=True)
class Checkerboard(Made):
    n_samples: Rows
    cells: Few
    label_noise: Share
    seed: Seed

    def n_numbers(self) -> float:
        return 2 * self.n_samples


@dataclass(frozen=True)
class RepeatedPoints(Made):
    n_samples: Rows
    n_points: Few
    distance: Size
    seed: Seed

    def n_numbers(self) -> float:
        return self.n_samples + self.n_points


@dataclass(frozen=True)
class GaussianMixtures(Made):
    n_samples: Rows
    n_classes: Classes
    components: Few
    spread: Size
    seed: Seed

    def n_numbers(self) -> float:
        return 2 * self.n_samples


@dataclass(frozen=True)
class TwoGaussians(Made):
    n_samples: Rows
    n_features: Features
    distance: Size
    spread: Size
    seed: Seed

    def n_numbers(self) -> float:
        return self.n_samples * self.n_features


@dataclass(frozen=True)
class SparseText(Made):
    n_samples: Rows
    n_features: Features
    length: Few
    topic_words: Features
    topic_share: Share
    seed: Seed

    def n_numbers(self) -> float:
        return self.n_samples * self.length + self.n_features

    def limits(self) -> tuple[str, bool]:
        return "2 topic_words <= n_features", 2 * self.topic_words <= self.n_features


@dataclass(frozen=True)
class Factors(Made):
    n_samples: Rows
    n_features: Features
    n_factors: Few
    share: Share
    noise: Size
    seed: Seed

    def n_numbers(self) -> float:
        return (self.n_samples + self.n_factors) * (self.n_features + self.n_factors)


@dataclass(frozen=True)
class DenseFactors(Made):
    n_samples: Rows
    n_features: Features
    n_factors: Few
    decay: Annotated[float, between(-10, 10)]
    noise: Size
    seed: Seed

    def n_numbers(self) -> float:
        return (self.n_samples + self.n_factors) * (self.n_features + self.n_factors)


@dataclass(frozen=True)
class SparseBinary(Made):
    n_samples: Rows
    n_features: Features
    n_on: Annotated[int, between(1, 100)]
    n_classes: Classes
    topics: Few
    blocks: Annotated[int, between(2, 10_000)]
    share: Share
    seed: Seed

    def n_numbers(self) -> float:
        return self.n_samples * self.n_on + self.n_classes * self.topics * self.blocks

    def limits(self) -> tuple[str, bool]:
        """Return that the blocks fit in, and that a row can find as many different features."""
        fits = max(100 * self.blocks, 2 * self.n_on) <= self.n_features
        return "100 blocks <= n_features and 2 n_on <= n_features", fits


@dataclass(frozen=True)
class CorrelatedBlocks(Made):
    n_samples: Rows
    n_features: Features
    n_blocks: Few
    block_size: Few
    correlation: Share
    presence: Share
    length: Few
    label_noise: Share
    seed: Seed

    def n_numbers(self) -> float:
        return self.n_samples * (self.n_blocks * self.block_size + self.length) + self.n_features

    def limits(self) -> tuple[str, bool]:
        return "n_blocks block_size < n_features", self.n_blocks * self.block_size < self.n_features


@dataclass(frozen=True)
class Deformed(Made):
    n_samples: Rows
    seed: Seed


_SYNTHETIC = "klr_bench.experiment.data.synthetic"
_BUNDLED = "klr_bench.experiment.data.bundled"
MAKERS: dict[str, type[Any]] = {
    f"{_SYNTHETIC}.moons": Moons,
    f"{_SYNTHETIC}.checkerboard": Checkerboard,
    f"{_SYNTHETIC}.repeated_points": RepeatedPoints,
    f"{_SYNTHETIC}.gaussian_mixtures": GaussianMixtures,
    f"{_SYNTHETIC}.two_gaussians": TwoGaussians,
    f"{_SYNTHETIC}.sparse_text": SparseText,
    f"{_SYNTHETIC}.factors": Factors,
    f"{_SYNTHETIC}.dense_factors": DenseFactors,
    f"{_SYNTHETIC}.sparse_binary": SparseBinary,
    f"{_SYNTHETIC}.correlated_blocks": CorrelatedBlocks,
    f"{_BUNDLED}.digits": Made,
    f"{_BUNDLED}.ten_digits": Made,
    f"{_BUNDLED}.breast_cancer": Made,
    f"{_BUNDLED}.wine": Made,
    f"{_BUNDLED}.iris": Made,
    "klr_bench.experiment.data.deformed.deformed": Deformed,
}
"""By dotted name; that of `deformed` gets the arrays of the files, too."""
