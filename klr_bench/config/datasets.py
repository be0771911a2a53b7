"""Parsing of the descriptions of data sets in configs/dataset/<name>.yaml."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from klr_bench.config import locations as config_files
from klr_bench.config.models import FILE, SOURCE_KEYS, DataConfig, DatasetConfig, DatasetEntry, SourceConfig
from klr_bench.config.splitting import Groups, Later, Official, SplitSpec, Stream, parse_split
from klr_bench.errors import error_context, fail
from klr_bench.instantiate import TARGET
from klr_bench.parsing import Plain, parse, refuse

STREAMED = ("csv", "svmlight", FILE)
"""Formats whose rows can be read one at a time."""
TEST_SIZE = 0.2
"""Share of test rows in a split by a column if the configuration gives none."""


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
    is_stream, has_column = isinstance(split, Stream), isinstance(split, Groups | Later)
    of_stream = "on a stream, whose files source.path names"
    rules = [
        (("only", "derive", "parts"), source.generator is not None, f"on a data set that is {source.format}"),
        (("parts",), source.test is None, "because the source has no test file"),
        (("only", "derive"), is_stream, "on a stream, which is read row by row"),
        (("only", "derive", "parts"), has_column, "with a split by a column"),
        (("source.test_path",), has_column and source.test_path is not None, "with a split by a column"),
        *(
            ((f"source.{key}",), is_stream and getattr(source, key) not in (None, False, "point"), of_stream)
            for key in ("columns", "coerce", "decimal", "test_path")
        ),
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
    if has_column and not source.is_own_file:
        refuse(f"{where}split", "a split without group or time, which are columns of a file with format: file", split)
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
    split = entry.split or {}
    if not isinstance(split, dict):
        refuse(f"datasets.{stem}.split", "keys and values such as {test_size: 0.2}", split)
    if split.get("stream"):
        for key in ("test_path", "test_size", "columns", "coerce", "decimal", "group", "time"):
            if getattr(data, key) is not None:
                fail(f"data.{key}={getattr(data, key)}: has no effect on a stream. Leave it out, or use dataset=file.")
    check_pairs(data)
    source = {
        "path": data.path,
        "test_path": data.test_path,
        "file_format": data.format,
        "n_features": data.n_features,
        "label_column": label_column(data),
        "columns": data.columns,
        "coerce": data.coerce,
        "decimal": data.decimal,
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
    if data.group is not None or data.time is not None:
        column = {"group": data.group} if data.time is None else {"time": data.time}
        changes["split"] = {**column, "test_size": data.test_size or split.get("test_size") or TEST_SIZE}
    if data.scale is not None:
        changes["scale"] = None if data.scale == "none" else data.scale
    return entry.model_copy(update=changes)


def check_pairs(data: DataConfig) -> None:
    """Raise KlrBenchError if two settings of the user's own file exclude each other."""
    for pair in (("test_path", "test_size"), ("test_path", "group"), ("test_path", "time"), ("group", "time")):
        if None not in [getattr(data, key) for key in pair]:
            fail("data.{}= and data.{}= are both given. Leave one of them out.".format(*pair))


def label_column(data: DataConfig) -> str | int | None:
    """Return the name or the position of the user's label column, or None for the last column."""
    return None if data.label is None else name_or_position(data.label)


def name_or_position(column: str | int) -> str | int:
    """Return a column that is given by its position, such as "4", as an integer.

    "04" is a name.
    """
    return int(column) if re.fullmatch("-?[1-9][0-9]*", str(column)) else column


def _not_none(values: Plain) -> Plain:
    return {key: value for key, value in values.items() if value is not None}
