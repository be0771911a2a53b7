"""From the content of configs/dataset/<name>.yaml to a data set with its source and its split."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any

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
from klr_bench.errors import fail, located, nearest
from klr_bench.instantiate import TARGET, Parameters, build
from klr_bench.parsing import Model, Plain, between, parse, refuse

STREAMED = ("csv", "svmlight", FILE)
"""Formats whose rows can be read one by one."""


def read_dataset(name: str, searched: Sequence[Path]) -> DatasetConfig:
    """Return the data set of a file of configs/dataset; messages begin with its path."""
    path = config_files.find("dataset", name, searched)
    content = config_files.read(path)
    with located(path):
        return resolve_dataset(name, parse(DatasetEntry, content), searched)


def resolve_dataset(
    name: str, entry: DatasetEntry, searched: Sequence[Path], where: str = "", overrides: Collection[str] = ()
) -> DatasetConfig:
    """Return a data set with its source, read from configs/source if it is named, and its split.

    `where`, which ends in a dot or is empty, stands before the keys in messages.  No module that a data set names is
    imported.  Raises KlrBenchError.
    """
    source = _source(entry.source, searched, where)
    split = parse_split(entry.split, f"{where}split", overrides)
    _check_combination(entry, source, split, where)
    resolved = {
        "label": entry.label or name,
        "source": source,
        "multiclass": bool(entry.multiclass),
        "split": split,
    }
    return DatasetConfig(**dict(entry) | resolved)


def _source(source: SourceConfig | str | None, searched: Sequence[Path], where: str) -> SourceConfig:
    if source is None:
        fail(f"{where}source: expected the name of a file in configs/source, or a mapping with a format, got none.")
    where = f"{where}source."
    if isinstance(source, str):
        with located(where.rstrip(".")):
            path = config_files.find("source", source, searched)
        where = f"{path}: "
        source = parse(SourceConfig, {"name": source, **config_files.read(path)}, where)
    for key, value in source:
        if value not in (None, "") and key not in SOURCE_KEYS[source.format]:
            fail(f"{where}{key}: has no effect in the format {source.format}; leave it out.")
    _check_files(source, where)
    return source


def _check_files(source: SourceConfig, where: str) -> None:
    if source.format in ("generated", "bundled") and source.generator is None:
        fail(f"{where}generator: expected {TARGET}: the dotted name of a function, and its parameters, got none.")
    if source.format not in ("csv", "svmlight", "idx"):
        return
    if source.train is None:
        fail(f"{where}train: expected a file: {{name, url, sha256}}, got none.")
    for part, file in (("train", source.train), ("test", source.test)):
        if file is not None and (file.labels is None) == (source.format == "idx"):
            expected = "the file of the labels" if source.format == "idx" else f"none in the format {source.format}"
            refuse(f"{where}{part}.labels", expected, file.labels and file.labels.model_dump())


def _check_combination(dataset: DatasetEntry, source: SourceConfig, split: SplitSpec, where: str) -> None:
    """Refuse keys that have no effect beside others, and an official split without official parts."""
    if dataset.multiclass and dataset.positive is not None:
        fail(
            f"{where}positive={dataset.positive}: has no effect with multiclass: true, which keeps all classes; "
            f"for one class against the rest add {where}multiclass=null."
        )
    for key, value in (("only", dataset.only), ("derive", dataset.derive), ("parts", dataset.parts)):
        if source.generator is not None and value is not None:
            fail(f"{where}{key}: has no effect on a data set that is {source.format}; leave it out.")
    if dataset.parts is not None and source.test is None:
        fail(f"{where}parts: has no effect: the source has no test file; leave it out.")
    two = (source.test or source.test_path) and len(set(dataset.parts or ("train", "test"))) == 2
    official = (two and not dataset.derive) or (source.test is None and source.n_train is not None)
    if isinstance(split, Stream):
        _check_stream(dataset, source, split, where)
    if isinstance(split, Official) and not official:
        fail(
            f"{where}split.official=true: there is no official test part; split at random: {where}split="
            "{official: null, test_size: 0.2}."
        )


def _check_stream(dataset: DatasetEntry, source: SourceConfig, split: Stream, where: str) -> None:
    """Refuse a stream of a format that is not text, and keys that would need all of its rows."""
    if source.format not in STREAMED:
        fail(
            f"{where}split.stream=true: expected rows in files of text ({', '.join(STREAMED)}), got the format "
            f"{source.format}. Split in another way: {where}split={{stream: null, test_size: 0.2}}."
        )
    keys = {"only": dataset.only, "derive": dataset.derive, "source.columns": source.columns}
    for key, value in keys.items():
        if value is not None:
            fail(f"{where}{key}: has no effect on a stream, whose rows are never there as a whole; leave it out.")
    if split.window < split.chunk:
        refuse(f"{where}split.window", f"at least as many rows as a chunk has, {split.chunk}", split.window)


def is_own_file(entry: DatasetEntry) -> bool:
    """Return True for the user's own file that the section `data` describes."""
    return isinstance(entry.source, SourceConfig) and entry.source.is_own_file and entry.source.path is None


def with_own_file(stem: str, entry: DatasetEntry, data: DataConfig) -> DatasetEntry:
    """Return the entry of the user's own file, completed by the section `data`."""
    if data.path is None:
        fail(f"dataset={stem}: expected data.path=<your LIBSVM or CSV file>, got none.")
    for key in ("test_path", "test_size", "columns") if (entry.split or {}).get("stream") else ():
        if getattr(data, key) is not None:
            fail(f"data.{key}={getattr(data, key)}: has no effect on a stream. Leave it out, or use dataset=file.")
    if data.test_path is not None and data.test_size is not None:
        fail(
            "data.test_path= and data.test_size= are both given: a file to test on, or a share of the rows? "
            "Leave one of them out."
        )
    source = {
        "path": data.path,
        "test_path": data.test_path,
        "file_format": data.format,
        "n_features": data.n_features,
        "label_column": _column(data.label),
        "columns": data.columns,
    }
    split: Any = {"official": True} if data.test_path else None
    if data.test_size is not None:
        split = {"test_size": data.test_size, "stratify": True}
    changes: Plain = {"positive": data.positive, "multiclass": data.multiclass, "split": split}
    if data.multiclass is None and entry.multiclass is None:
        changes["multiclass"] = data.positive is None and entry.positive is None
    if data.scale is not None:
        entry = entry.model_copy(update={"scale": None if data.scale == "none" else data.scale})
    assert isinstance(entry.source, SourceConfig)
    changes["source"] = entry.source.model_copy(update=_not_none(source))
    return entry.model_copy(update=_not_none(changes))


def _not_none(values: Plain) -> Plain:
    return {key: value for key, value in values.items() if value is not None}


def _column(label: int | str | None) -> int | str | None:
    """Return the position or the name of a column: text of digits is a position."""
    return int(label) if isinstance(label, str) and re.fullmatch(r"-?\d{1,9}", label) else label


Seed = Annotated[int, between(0, MAX_SEED)]
Few = Annotated[int, between(1, 10_000)]
Classes = Annotated[int, between(2, 127)]
Fraction = Annotated[float, between(0, 1)]
Size = Annotated[float, between(0, 1e6)]


class GeneratorParams(Model):
    """The parameters of a function that generates data."""


class SeededParams(GeneratorParams):
    n_samples: Rows
    seed: Seed


class Moons(SeededParams):
    noise: Size


class Checkerboard(SeededParams):
    cells: Few
    label_noise: Fraction


class RepeatedPoints(SeededParams):
    n_points: Few
    distance: Size


class GaussianMixtures(SeededParams):
    n_classes: Classes
    components: Few
    spread: Size


class WideParams(SeededParams):
    n_features: Features


class TwoGaussians(WideParams):
    distance: Size
    spread: Size


class SparseText(WideParams):
    length: Few
    topic_words: Features
    topic_share: Fraction


class Factors(WideParams):
    n_factors: Few
    share: Fraction
    noise: Size


class DenseFactors(WideParams):
    n_factors: Few
    decay: Annotated[float, between(-10, 10)]
    noise: Size


class SparseBinary(WideParams):
    n_on: Annotated[int, between(1, 100)]
    n_classes: Classes
    topics: Few
    blocks: Annotated[int, between(2, 10_000)]
    share: Fraction


class CorrelatedBlocks(WideParams):
    n_blocks: Few
    block_size: Few
    correlation: Fraction
    presence: Fraction
    length: Few
    label_noise: Fraction


SYNTHETIC, BUNDLED = "klr_bench.datasets.synthetic", "klr_bench.datasets.bundled"
GENERATORS: dict[str, type[GeneratorParams]] = {
    f"{SYNTHETIC}.moons": Moons,
    f"{SYNTHETIC}.checkerboard": Checkerboard,
    f"{SYNTHETIC}.repeated_points": RepeatedPoints,
    f"{SYNTHETIC}.gaussian_mixtures": GaussianMixtures,
    f"{SYNTHETIC}.two_gaussians": TwoGaussians,
    f"{SYNTHETIC}.sparse_text": SparseText,
    f"{SYNTHETIC}.factors": Factors,
    f"{SYNTHETIC}.dense_factors": DenseFactors,
    f"{SYNTHETIC}.sparse_binary": SparseBinary,
    f"{SYNTHETIC}.correlated_blocks": CorrelatedBlocks,
    **dict.fromkeys(
        [f"{BUNDLED}.{name}" for name in ("digits", "ten_digits", "breast_cancer", "wine", "iris")], GeneratorParams
    ),
    "klr_bench.datasets.deformed.deformed": SeededParams,
}
"""Parameters by the dotted name of the function; `deformed` gets the arrays of the files as well."""


def generate(call: Parameters, where: str, **arguments: Any) -> Any:
    """Call the function of a generator with the parameters of `call` and other arguments."""
    check_generator(call, where)
    return build(call, **arguments)


def check_generators(dataset: DatasetConfig, where: str) -> None:
    """Refuse unsuitable parameters of generators, and declared sizes that differ from those of the generator.

    `where`, which ends in a dot, stands before the keys in messages.
    """
    source = dataset.source
    for call, place in ((source.generator, f"{where}source.generator."), (dataset.derive, f"{where}derive.")):
        if call:
            check_generator(call, place)
    for key, declared in (("n_samples", source.n_samples), ("n_features", source.n_features)):
        requested = (source.generator or {}).get(key)
        if declared is not None and requested is not None and declared != requested:
            fail(
                f"{where}source.{key}={declared}: expected the same as {where}source.generator.{key}, got {requested}. "
                "Change both."
            )
    rows, n_train = source.n_samples, source.n_train
    if rows is not None and n_train is not None and n_train >= rows:
        fail(f"{where}source.n_train: expected less than n_samples={rows}, for rows to test on, got {n_train}.")


def check_generator(call: Parameters, where: str) -> None:
    """Refuse parameters that a generator of klr-bench does not take, and other functions of klr-bench.

    `where`, which ends in a dot or is empty, stands before the keys in messages.  Nothing is imported or called.
    """
    target = str(call[TARGET])
    if target in GENERATORS:
        parse(GENERATORS[target], {key: value for key, value in call.items() if key != TARGET}, where)
    elif target.startswith("klr_bench."):
        fail(f"{where}{TARGET}: expected a function that makes data, got {target!r}.{nearest(target, GENERATORS)}")
