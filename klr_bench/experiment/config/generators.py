"""Functions that generate data: which ones a YAML file may name, and the parameters of those of klr-bench.

A function of the user is allowed if its module lists it in ``DATA_SOURCES = ("name", ...)``; no other function is ever
called for a data set.  The list is read from the source of the module, which is imported only to generate the data.
"""

from __future__ import annotations

import ast
from typing import Annotated, Any

from klr_bench.errors import KlrBenchError, nearest
from klr_bench.experiment.config.models import MAX_SEED, DatasetConfig, Features
from klr_bench.experiment.config.parsing import Model, between, parse
from klr_bench.experiment.config.splitting import Rows
from klr_bench.experiment.keys import source_path
from klr_bench.experiment.targets import TARGET, Parameters, build

LISTED = "DATA_SOURCES"
Seed = Annotated[int, between(0, MAX_SEED)]
Few = Annotated[int, between(1, 10_000)]
Classes = Annotated[int, between(2, 127)]
Share = Annotated[float, between(0, 1)]
Size = Annotated[float, between(0, 1e6)]
MOST_NUMBERS = 5 * 10**8
"""The most numbers of a set while it is generated: some gigabytes."""


class GeneratorParams(Model):
    """The parameters of a function that generates data."""

    def n_numbers(self) -> float:
        """Return about how many numbers it generates."""
        return 0

    def limits(self) -> tuple[str, bool]:
        """Return a condition on several parameters in words, and whether it holds."""
        return "", True


class Moons(GeneratorParams):
    n_samples: Rows
    noise: Size
    seed: Seed

    def n_numbers(self) -> float:
        return 2 * self.n_samples


class Checkerboard(GeneratorParams):
    n_samples: Rows
    cells: Few
    label_noise: Share
    seed: Seed

    def n_numbers(self) -> float:
        return 2 * self.n_samples


class RepeatedPoints(GeneratorParams):
    n_samples: Rows
    n_points: Few
    distance: Size
    seed: Seed

    def n_numbers(self) -> float:
        return self.n_samples + self.n_points


class GaussianMixtures(GeneratorParams):
    n_samples: Rows
    n_classes: Classes
    components: Few
    spread: Size
    seed: Seed

    def n_numbers(self) -> float:
        return 2 * self.n_samples


class TwoGaussians(GeneratorParams):
    n_samples: Rows
    n_features: Features
    distance: Size
    spread: Size
    seed: Seed

    def n_numbers(self) -> float:
        return self.n_samples * self.n_features


class SparseText(GeneratorParams):
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


class Factors(GeneratorParams):
    n_samples: Rows
    n_features: Features
    n_factors: Few
    share: Share
    noise: Size
    seed: Seed

    def n_numbers(self) -> float:
        return (self.n_samples + self.n_factors) * (self.n_features + self.n_factors)


class DenseFactors(GeneratorParams):
    n_samples: Rows
    n_features: Features
    n_factors: Few
    decay: Annotated[float, between(-10, 10)]
    noise: Size
    seed: Seed

    def n_numbers(self) -> float:
        return (self.n_samples + self.n_factors) * (self.n_features + self.n_factors)


class SparseBinary(GeneratorParams):
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
        fits = max(100 * self.blocks, 2 * self.n_on) <= self.n_features
        return "100 blocks <= n_features and 2 n_on <= n_features", fits


class CorrelatedBlocks(GeneratorParams):
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


class Deformed(GeneratorParams):
    n_samples: Rows
    seed: Seed


_SYNTHETIC = "klr_bench.experiment.data.synthetic"
_BUNDLED = "klr_bench.experiment.data.bundled"
GENERATORS: dict[str, type[GeneratorParams]] = {
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
    f"{_BUNDLED}.digits": GeneratorParams,
    f"{_BUNDLED}.ten_digits": GeneratorParams,
    f"{_BUNDLED}.breast_cancer": GeneratorParams,
    f"{_BUNDLED}.wine": GeneratorParams,
    f"{_BUNDLED}.iris": GeneratorParams,
    "klr_bench.experiment.data.deformed.deformed": Deformed,
}
"""Parameters by the dotted name of the function; `deformed` gets the arrays of the files as well."""


def generate(call: Parameters, where: str, **arguments: Any) -> Any:
    """Call the function of a generator with the parameters of `call` and other arguments."""
    check_generator(call, where)
    return build(call, **arguments)


def check_generators(dataset: DatasetConfig, where: str) -> None:
    """Refuse functions that may not be called, and declared sizes that differ from those of the generator.

    `where`, which ends in a dot, stands before the keys in messages.
    """
    source = dataset.source
    for call, place in ((source.generator, f"{where}source.generator."), (dataset.derive, f"{where}derive.")):
        if call:
            check_generator(call, place)
    for key, declared in (("n_samples", source.n_samples), ("n_features", source.n_features)):
        requested = (source.generator or {}).get(key)
        if declared is not None and requested is not None and declared != requested:
            message = (
                f"{where}source.{key}={declared}: expected the same as {where}source.generator.{key}, got {requested}. "
                "Change both."
            )
            raise KlrBenchError(message)
    rows, n_train = source.n_samples, source.n_train
    if rows is not None and n_train is not None and n_train >= rows:
        message = f"{where}source.n_train: expected less than n_samples={rows}, for rows to test on, got {n_train}."
        raise KlrBenchError(message)


def check_generator(call: Parameters, where: str) -> None:
    """Refuse a function that does not generate data, and parameters that one of klr-bench does not take.

    `where`, which ends in a dot or is empty, stands before the keys in messages.  Nothing is imported or called.
    """
    target = str(call[TARGET])
    module, _, name = target.rpartition(".")
    if target in GENERATORS:
        parameters = {key: value for key, value in call.items() if key != TARGET}
        params = parse(GENERATORS[target], parameters, where)
        expected, holds = params.limits()
        if holds and params.n_numbers() > MOST_NUMBERS:
            expected, holds = f"at most {MOST_NUMBERS:,} numbers", False
        if not holds:
            got = ", ".join(f"{key}={value}" for key, value in parameters.items())
            message = f"{where.rstrip('.') or name}: expected {expected}, got {got}."
            raise KlrBenchError(message)
    elif name not in _listed(module):
        known = [
            *_listed(module),
            *(known.rpartition(".")[2] for known in GENERATORS if known.startswith(f"{module}.")),
        ]
        own = f" A function of your own is listed in its module: {LISTED} = ({name!r},)."
        ours = " A new function of klr-bench has an entry of GENERATORS in klr_bench/experiment/config/generators.py."
        advice = nearest(name, known) + (ours if module.startswith("klr_bench.") else own)
        message = f"{where}{TARGET}: expected a function that makes data, got {target!r}.{advice}"
        raise KlrBenchError(message)


def _listed(module: str) -> tuple[str, ...]:
    """Return the names of the functions that a module lists, if it exists."""
    path = source_path(module)
    if path is None or path.suffix != ".py":
        return ()
    try:
        body = ast.parse(path.read_bytes()).body
    except (SyntaxError, ValueError, RecursionError) as error:
        message = f"{path}: this is not Python: {error}"
        raise KlrBenchError(message) from error
    for node in body:
        if isinstance(node, ast.Assign) and LISTED in [getattr(target, "id", None) for target in node.targets]:
            names = [getattr(name, "value", None) for name in getattr(node.value, "elts", [])]
            return tuple(name for name in names if isinstance(name, str))
    return ()
