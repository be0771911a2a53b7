"""From the content of configs/dataset/<name>.yaml to the spec of a data set: checked, with its source in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from klr_bench.errors import KlrBenchError, located
from klr_bench.experiment.config import files as config_files
from klr_bench.experiment.config.schema import SOURCE_KEYS, DatasetConfig, SourceConfig
from klr_bench.experiment.config.splitting import Official, Stream, Way, plain_split, read_split
from klr_bench.experiment.config.typed import parse, refuse
from klr_bench.experiment.targets import TARGET

Spec = dict[str, Any]
STREAMED = ("csv", "svmlight", "file")
"""Formats whose rows can be read one by one."""


def dataset_spec(name: str, entry: Any, searched: Sequence[Path], where: str = "", given: Collection[str] = ()) -> Spec:
    """Return the spec of a data set as plain values: each key of its type, `source` as a mapping, `split` of one way.

    `where`, which ends in a dot or is empty, stands before the keys in messages, `given` are the keys of the command
    line.  Nothing that a spec names is imported.  Raises KlrBenchError.
    """
    dataset = parse(DatasetConfig, entry, where)
    if dataset.source is None:
        message = f"{where}source: expected the name of a file in configs/source, or a mapping with a format, got none."
        raise KlrBenchError(message)
    source = _source(dataset.source, searched, where)
    way = read_split(dataset.split, f"{where}split", given)
    _check_combination(dataset, source, way, where)
    return asdict(dataset) | {
        "label": dataset.label or name,
        "source": {key: value for key, value in asdict(source).items() if value is not None},
        "multiclass": bool(dataset.multiclass),
        "split": plain_split(way),
    }


def read_dataset(name: str, searched: Sequence[Path]) -> Spec:
    """Return the spec of a file of configs/dataset; messages begin with its path."""
    path = config_files.find("dataset", name, searched)
    content = config_files.read(path)
    with located(path):
        return dataset_spec(name, content, searched)


def _source(source: SourceConfig | str, searched: Sequence[Path], where: str) -> SourceConfig:
    if isinstance(source, str):
        with located(f"{where}source"):
            path = config_files.find("source", source, searched)
        found, where = parse(SourceConfig, {"name": source, **config_files.read(path)}, f"{path}: "), f"{path}: "
    else:
        found, where = source, f"{where}source."
    for key, value in asdict(found).items():
        if value not in (None, "") and key not in SOURCE_KEYS[found.format]:
            message = f"{where}{key}: has no effect in the format {found.format}; leave it out."
            raise KlrBenchError(message)
    _check_files(found, where)
    return found


def _check_files(source: SourceConfig, where: str) -> None:
    if source.format in ("generated", "bundled") and source.generator is None:
        message = f"{where}generator: expected {TARGET}: the dotted name of a function, and its parameters, got none."
        raise KlrBenchError(message)
    if source.format not in ("csv", "svmlight", "idx"):
        return
    if source.train is None:
        message = f"{where}train: expected a file: {{name, url, sha256}}, got none."
        raise KlrBenchError(message)
    for part, entry in (("train", source.train), ("test", source.test)):
        if entry is not None and (entry.labels is None) == (source.format == "idx"):
            expected = "the file of the labels" if source.format == "idx" else f"none in the format {source.format}"
            refuse(f"{where}{part}.labels", expected, entry.labels)


def _check_combination(dataset: DatasetConfig, source: SourceConfig, way: Way, where: str) -> None:
    """Refuse keys that have no effect beside others, and an official split without official parts."""
    if dataset.multiclass and dataset.positive is not None:
        message = (
            f"{where}positive={dataset.positive}: has no effect with multiclass: true, which keeps all classes; "
            f"for one class against the rest add {where}multiclass=null."
        )
        raise KlrBenchError(message)
    made = source.generator is not None
    for key, value in (("only", dataset.only), ("derive", dataset.derive), ("parts", dataset.parts)):
        if made and value is not None:
            message = f"{where}{key}: has no effect on a data set that is {source.format}; leave it out."
            raise KlrBenchError(message)
    if dataset.parts is not None and source.test is None:
        message = f"{where}parts: has no effect: the source has no test file; leave it out."
        raise KlrBenchError(message)
    two = (source.test or source.test_path) and len(set(dataset.parts or ("train", "test"))) == 2
    official = (two and not dataset.derive) or (source.test is None and source.n_train is not None)
    if isinstance(way, Stream):
        _check_stream(dataset, source, way, where)
    if isinstance(way, Official) and not official:
        message = (
            f"{where}split.official=true: there is no official test part; split at random: {where}split="
            "{official: null, test_size: 0.2}."
        )
        raise KlrBenchError(message)


def _check_stream(dataset: DatasetConfig, source: SourceConfig, way: Stream, where: str) -> None:
    """Refuse a stream of what is no text, and keys that would need all of its rows."""
    if source.format not in STREAMED:
        message = (
            f"{where}split.stream=true: expected rows in files of text ({', '.join(STREAMED)}), got the format "
            f"{source.format}. Split in another way: {where}split={{stream: null, test_size: 0.2}}."
        )
        raise KlrBenchError(message)
    keys = {"only": dataset.only, "derive": dataset.derive, "source.columns": source.columns}
    for key, value in keys.items():
        if value is not None:
            message = f"{where}{key}: has no effect on a stream, whose rows are never there as a whole; leave it out."
            raise KlrBenchError(message)
    if way.window < way.chunk:
        refuse(f"{where}split.window", f"at least as many rows as a chunk has, {way.chunk}", way.window)


def parts_of(spec: Mapping[str, Any]) -> list[str]:
    """Return the parts of the source that a data set is made of: train, test."""
    return [part for part in ("train", "test") if spec["source"].get(part) and part in (spec.get("parts") or (part,))]


def declared_rows(spec: Mapping[str, Any]) -> int | None:
    """Return the number of rows that a data set says it has, None where it says nothing."""
    source = spec["source"]
    if spec.get("n_samples") is not None or spec.get("only") or spec.get("derive"):
        return spec.get("n_samples")
    n_samples, n_train = source.get("n_samples"), source.get("n_train")
    parts = spec.get("parts")
    if not parts or len(set(parts)) == 2:
        return n_samples  # type: ignore[no-any-return]
    if n_train is None or n_samples is None:
        return None
    return n_train if parts == ["train"] else n_samples - n_train  # type: ignore[no-any-return]
