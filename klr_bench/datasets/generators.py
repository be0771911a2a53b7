"""Functions that generate data sets, and checks of their parameters in the configuration."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Annotated, Any

from pydantic import create_model

from klr_bench.config.models import MAX_SEED, DatasetConfig, Features
from klr_bench.config.splitting import Rows
from klr_bench.datasets import bundled, deformed, first_rows, keel, synthetic
from klr_bench.errors import fail, nearest
from klr_bench.instantiate import TARGET, Parameters, build
from klr_bench.parsing import Model, Text, between, parse, refuse

MODULES = (synthetic, bundled, deformed, first_rows, keel)
"""Modules whose public functions generate data; those in `deformed` and `first_rows` also get arrays from files."""
COUNT = Annotated[int, between(1, 10_000)]
FRACTION = Annotated[float, between(0, 1)]
SIZE = Annotated[float, between(0, 1e6)]
PARAMETERS: dict[str, Any] = {
    "n_samples": Rows,
    "seed": Annotated[int, between(0, MAX_SEED)],
    **dict.fromkeys(("n_features", "topic_words"), Features),
    **dict.fromkeys(("cells", "n_points", "components", "length", "n_factors", "topics"), COUNT),
    **dict.fromkeys(("n_blocks", "block_size"), COUNT),
    **dict.fromkeys(("label_noise", "share", "topic_share", "correlation", "presence"), FRACTION),
    **dict.fromkeys(("noise", "distance", "spread"), SIZE),
    "n_classes": Annotated[int, between(2, 127)],
    "n_on": Annotated[int, between(1, 100)],
    "blocks": Annotated[int, between(2, 10_000)],
    "decay": Annotated[float, between(-10, 10)],
    "table": Text,
}
"""Types and ranges of the generators' parameters."""


@cache
def generators() -> dict[str, type[Model]]:
    """Return pydantic models for the parameters of the built-in data generators, by name."""
    functions = {
        f"{module.__name__}.{name}": function
        for module in MODULES
        for name, function in vars(module).items()
        if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_")
    }
    models = {}
    for target, function in functions.items():
        names = [name for name in inspect.signature(function).parameters if name != "arrays"]
        hints: dict[str, Any] = {name: (PARAMETERS[name], ...) for name in names}
        models[target] = create_model(target, __base__=Model, **hints)
    return models


def generate(call: Parameters, where: str, **arguments: Any) -> Any:
    """Check the parameters in `call`, call the data generator and return its result."""
    check_generator(call, where)
    return build(call, **arguments)


def check_generators(dataset: DatasetConfig, where: str) -> None:
    """Check the generators of a data set, and that their sizes match the declared ones.

    `where`, which ends in a dot, stands before the keys in messages.  Raises KlrBenchError.
    """
    source = dataset.source
    for call, place in ((source.generator, f"{where}source.generator."), (dataset.derive, f"{where}derive.")):
        if call:
            check_generator(call, place)
    for key, declared in (("n_samples", source.n_samples), ("n_features", source.n_features)):
        requested = (source.generator or {}).get(key)
        if declared is not None and requested is not None and declared != requested:
            refuse(f"{where}source.{key}", f"the value of source.generator.{key}, {requested}", declared)
    rows, n_train = source.n_samples, source.n_train
    if rows is not None and n_train is not None and n_train >= rows:
        refuse(f"{where}source.n_train", f"less than n_samples={rows}", n_train)


def check_generator(call: Parameters, where: str) -> None:
    """Raise KlrBenchError if a data generator is unknown or its parameters are invalid.

    `where`, which ends in a dot or is empty, stands before the keys in messages.  A user's function is not imported.
    """
    target = str(call[TARGET])
    if target.startswith("klr_bench."):
        available = generators()
        if target not in available:
            fail(
                f"{where}{TARGET}: expected a function that generates data, got {target!r}.{nearest(target, available)}"
            )
        parse(available[target], {key: value for key, value in call.items() if key != TARGET}, where)
