"""Parsing of the descriptions of data sets in configs/dataset/<name>.yaml."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from pydantic import create_model

from klr_bench.config import locations as config_files
from klr_bench.config.models import (
    FILE,
    MAX_SEED,
    SOURCE_KEYS,
    DataConfig,
    DatasetConfig,
    DatasetEntry,
    Features,
    SourceConfig,
)
from klr_bench.config.splitting import Official, Rows, SplitSpec, Stream, parse_split
from klr_bench.errors import error_context, fail, nearest
from klr_bench.instantiate import TARGET, Parameters, build
from klr_bench.parsing import Model, Plain, Text, between, parse, refuse

STREAMED = ("csv", "svmlight", FILE)
"""Formats whose rows can be read one at a time."""


def read_dataset(name: str, searched: Sequence[Path]) -> DatasetConfig:
    """Return the description of a data set, read from the file configs/dataset/<name>.yaml.

    Error messages start with the path of the file.
    """
    path = config_files.find("dataset", name, searched)
    content = config_files.read(path)
    with error_context(path):
        return resolve_dataset(name, parse(DatasetEntry, content), searched)


def resolve_dataset(
    name: str, entry: DatasetEntry, searched: Sequence[Path], where: str = "", overrides: Collection[str] = ()
) -> DatasetConfig:
    """Return the complete description of a data set, with its source and split parsed.

    A source given as a name is read from configs/source.  `where`, which ends in a dot or is empty, stands before the
    keys in messages.  No module that a data set names is imported.  Raises KlrBenchError.
    """
    source = _source(entry.source, searched, where)
    split = parse_split(entry.split, f"{where}split", overrides)
    _check_combination(entry, source, split, where)
    resolved = {"label": entry.label or name, "source": source, "multiclass": bool(entry.multiclass), "split": split}
    return DatasetConfig(**dict(entry) | resolved)


def _source(source: SourceConfig | str | None, searched: Sequence[Path], where: str) -> SourceConfig:
    if source is None:
        fail(f"{where}source: expected the name of a file in configs/source, or a mapping with a format, got none.")
    where = f"{where}source."
    if isinstance(source, str):
        with error_context(where.rstrip(".")):
            path = config_files.find("source", source, searched)
        where = f"{path}: "
        source = parse(SourceConfig, {"name": source, **config_files.read(path)}, where)
    for key, value in source:
        if value not in (None, "") and key not in SOURCE_KEYS[source.format]:
            fail(f"{where}{key}: has no effect with the format {source.format}; remove it.")
    if source.format in ("generated", "bundled") and source.generator is None:
        fail(f"{where}generator: expected {TARGET}, the dotted name of a function, and its parameters; got none.")
    if source.format in ("csv", "svmlight", "idx") and source.train is None:
        fail(f"{where}train: expected a file: {{name, url, sha256}}, got none.")
    for part, file in (("train", source.train), ("test", source.test)):
        if file is not None and (file.labels is None) == (source.format == "idx"):
            expected = "the file of the labels" if source.format == "idx" else f"none in the format {source.format}"
            refuse(f"{where}{part}.labels", expected, file.labels and file.labels.model_dump())
    return source


def _check_combination(dataset: DatasetEntry, source: SourceConfig, split: SplitSpec, where: str) -> None:
    if dataset.multiclass and dataset.positive is not None:
        fail(f"{where}positive={dataset.positive}: has no effect with multiclass: true. Add {where}multiclass=null.")
    is_stream = isinstance(split, Stream)
    rules = [
        (("only", "derive", "parts"), source.generator is not None, f"on a data set that is {source.format}"),
        (("parts",), source.test is None, "because the source has no test file"),
        (("only", "derive"), is_stream, "on a stream, which is read row by row"),
        (("source.columns",), is_stream and source.columns is not None, "on a stream, which is read row by row"),
    ]
    for keys, applies, reason in rules:
        for key in keys:
            if applies and getattr(dataset, key, True) is not None:
                fail(f"{where}{key}: has no effect {reason}; remove it.")
    two = (source.test or source.test_path) and len(set(dataset.parts or ("train", "test"))) == 2
    official = (two and not dataset.derive) or (source.test is None and source.n_train is not None)
    if isinstance(split, Official) and not official:
        example = f"{where}split={{official: null, test_size: 0.2}}"
        fail(f"{where}split.official=true: there is no official test set. To split at random, use {example}.")
    if isinstance(split, Stream):
        if source.format not in STREAMED:
            expected = f"one of the formats {', '.join(STREAMED)}, or {where}split.stream=null"
            refuse(f"{where}split.stream=true", expected, source.format)
        if split.window < split.chunk:
            refuse(f"{where}split.window", f"at least the number of rows per chunk, {split.chunk}", split.window)


def is_own_file(entry: DatasetEntry) -> bool:
    """Return True if the rows of a data set come from a user's file that `data.path` names."""
    return isinstance(entry.source, SourceConfig) and entry.source.is_own_file and entry.source.path is None


def with_own_file(stem: str, entry: DatasetEntry, data: DataConfig) -> DatasetEntry:
    """Return a copy of a data set, with the settings of the user's own file in `data` added."""
    if data.path is None:
        fail(f"dataset={stem}: expected data.path=<your LIBSVM or CSV file>, got none.")
    if (entry.split or {}).get("stream"):
        for key in ("test_path", "test_size", "columns"):
            if getattr(data, key) is not None:
                fail(f"data.{key}={getattr(data, key)}: has no effect on a stream. Leave it out, or use dataset=file.")
    if data.test_path is not None and data.test_size is not None:
        fail("data.test_path= and data.test_size= are both given. Leave one of them out.")
    source = {
        "path": data.path,
        "test_path": data.test_path,
        "file_format": data.format,
        "n_features": data.n_features,
        "label_column": label_column(data),
        "columns": data.columns,
        "encoding": data.encoding,
    }
    assert isinstance(entry.source, SourceConfig)
    changes: Plain = {"source": entry.source.model_copy(update=_not_none(source))}
    changes |= _not_none({"positive": data.positive, "multiclass": data.multiclass})
    if data.multiclass is None and entry.multiclass is None:
        changes["multiclass"] = data.positive is None and entry.positive is None
    if data.test_path:
        changes["split"] = {"official": True}
    if data.test_size is not None:
        changes["split"] = {"test_size": data.test_size, "stratify": True}
    if data.scale is not None:
        changes["scale"] = None if data.scale == "none" else data.scale
    return entry.model_copy(update=changes)


def label_column(data: DataConfig) -> str | int | None:
    """Return the name or the position of the user's label column, or None for the last column."""
    label = data.label
    return int(label) if isinstance(label, str) and label.removeprefix("-").isdecimal() else label


def _not_none(values: Plain) -> Plain:
    return {key: value for key, value in values.items() if value is not None}


GENERATORS = tuple(f"klr_bench.datasets.{name}" for name in ("synthetic", "bundled", "deformed", "keel"))
"""Modules whose public functions generate data; those in `deformed` also get arrays from files."""
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
        f"{module}.{name}": function
        for module in GENERATORS
        for name, function in vars(import_module(module)).items()
        if inspect.isfunction(function) and function.__module__ == module and not name.startswith("_")
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
        known = generators()
        if target not in known:
            fail(f"{where}{TARGET}: expected a function that generates data, got {target!r}.{nearest(target, known)}")
        parse(known[target], {key: value for key, value in call.items() if key != TARGET}, where)
