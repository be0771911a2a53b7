"""Store fitted models in the skops format; loading such a file runs no code from the file.

    klr-bench.json    `About`: versions and, from ``klr-bench fit``, the columns of the training file
    schema.json       the objects of the model, as skops describes them
    <number>.npy      an array; <number>.npz: a sparse matrix

`klr_bench.model_trust` says which types may be loaded.
"""

from __future__ import annotations

import json
import warnings
import zipfile
from contextlib import suppress
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import skops.io
from sklearn.base import clone

from klr_bench.datasets.compression import SMALLEST_BOMB
from klr_bench.datasets.readers.user_table import TrainingFile
from klr_bench.errors import exception_text, fail, sanitize
from klr_bench.files import read_regular, write_atomic
from klr_bench.model_trust import (
    InflatedError,
    check_indices,
    check_members,
    check_nodes,
    check_references,
    check_sizes,
    nodes,
    untrusted,
)
from klr_bench.parsing import OpenModel, parse_value
from klr_bench.version import __version__

LARGEST_MODEL = 4 * 10**9
"""Maximum size in bytes of a model file, compressed and uncompressed."""
SMALLEST_JSON, MOST_JSON_RATIO, LARGEST_JSON = 16 * 10**6, 50, 64 * 10**6
"""Maximum size in bytes of each JSON member: 16 MB or 50 times the size of the file, up to 64 MB.

A table of 3,000 columns has 7.5 MB, 32 times the size of its file, and 100 classifiers one-vs-rest have 2 MB.
"""
BYTES_PER_CONTAINER = 20
"""Minimum mean size of a list or mapping in JSON; skops needs about 100 for each.  Each takes 60 bytes of memory."""
MOST_RATIO = 250
"""Maximum ratio of the size of the arrays in a model file to the size of the file."""
COMPRESSIONS = (zipfile.ZIP_DEFLATED, 6), (zipfile.ZIP_DEFLATED, 1), (zipfile.ZIP_STORED, None)
"""Methods and levels of compression, by the largest ratio: 1030, for an array of zeros, 230 and 1."""
ABOUT, SCHEMA = "klr-bench.json", "schema.json"


class About(OpenModel):
    """Metadata in a model file: versions of libraries, and columns of the training file."""

    versions: dict[str, str]
    train: TrainingFile | None = None


def save_model(model: Any, path: str | Path) -> None:
    """Store a fitted model in a file that `load_model` can read.

    The file has the format of skops, and also contains the versions of klr-bench, scikit-learn and NumPy.  It appears
    at once: a reader never sees half of it.

    Parameters
    ----------
    model : estimator
        Classifier of klr-bench or scikit-learn, or a pipeline of such a classifier and transformers.
    path : str or Path
        File, which is replaced if it exists; its folder is created.

    Raises
    ------
    KlrBenchError
        If the model contains types that `load_model` refuses, or the file cannot be written.

    Examples
    --------
    >>> from klr_bench import OSKL, load_model, save_model
    >>> from tempfile import mkdtemp
    >>> path = f"{mkdtemp()}/levels.skops"
    >>> save_model(OSKL(random_state=0).fit([[0.0], [1.0], [2.0]], ["low", "low", "high"]), path)
    >>> load_model(path).predict([[2.1]]).tolist()
    ['high']
    """
    write_atomic(Path(path), dump(model))


def load_model(path: str | Path) -> Any:
    """Load a model from a file that `save_model` or ``klr-bench fit`` has written.

    No code in the file is run: types other than those of klr-bench, and of NumPy, SciPy and scikit-learn as far as
    skops trusts them, are refused.  A warning names versions that differ from those with which the file was written.

    Parameters
    ----------
    path : str or Path
        Model file.

    Returns
    -------
    model : estimator
        The fitted model.

    Raises
    ------
    KlrBenchError
        If the file contains other types, is damaged, or was written by a version whose models cannot be loaded.

    Examples
    --------
    >>> from klr_bench import OSKL, load_model, save_model
    >>> from tempfile import mkdtemp
    >>> path = f"{mkdtemp()}/levels.skops"
    >>> save_model(OSKL(random_state=0).fit([[0.0], [1.0], [2.0]], ["low", "low", "high"]), path)
    >>> load_model(path)
    OSKL(random_state=0)
    """
    return load(Path(path))[0]


def dump(model: Any, train: TrainingFile | None = None, *, compress: bool = True) -> bytes:
    """Convert a model to the content of a model file. Raises KlrBenchError if that fails.

    `train` describes the training file, for a model of ``klr-bench fit``.  Compression takes most of the time.
    """
    about = About(versions=_versions(), train=train).model_dump_json()
    refused = f"arrays of more than {LARGEST_MODEL:,} bytes"
    try:
        stored = skops.io.dumps(model)
        for compression in COMPRESSIONS if compress else COMPRESSIONS[-1:]:
            content = _archive(stored, about, *compression)
            with suppress(InflatedError):
                refused = _inspected(content).refused
                break
    except Exception as error:  # skops raises exceptions of many kinds
        fail(f"the model cannot be stored ({exception_text(error)}). Use joblib.dump, which stores any object.")
    if refused:
        advice = "Store its best_estimator_, or use" if hasattr(model, "best_estimator_") else "Use"
        fail(
            f"the model cannot be stored: load_model would refuse {refused}. {advice} joblib.dump, which stores any "
            "object."
        )
    return content


def check_storable(model: Any) -> None:
    """Raise KlrBenchError if a model cannot be stored, also after a fit, tried on a few rows."""
    dump(model)
    X, y = np.random.default_rng(0).standard_normal((40, 3)), np.arange(40) % 2
    fitted = clone(model)
    with warnings.catch_warnings(), suppress(Exception):  # the fit to all rows says what is wrong
        warnings.simplefilter("ignore")
        fitted.fit(X, y)
    dump(fitted)


def load(path: Path) -> tuple[Any, TrainingFile | None]:
    """Return the model in a file, and the description of its training file, if any.

    Raises the errors and warnings of `load_model`.
    """
    return loads(read_regular(path, LARGEST_MODEL), path)


def loads(content: bytes, path: Path) -> tuple[Any, TrainingFile | None]:
    """Return what `load` returns, from the content of a model file; `path` names it in messages."""
    try:
        about, refused, trusted = _inspected(content)
    except Exception as error:  # damaged archives raise exceptions of many kinds
        reason = exception_text(error)
        fail(f"{path}: expected a model file of klr-bench fit or save_model; it cannot be read ({reason}).")
    if refused:
        fail(f"{path}: contains {refused}, which klr-bench does not load. Use a file that klr-bench fit has written.")
    here = _versions()
    different = [
        f"{name} {sanitize(number, 30)}" for name, number in about.versions.items() if here.get(name, number) != number
    ]
    present = ", ".join(f"{name} {number}" for name, number in here.items())
    origin = f"it was written with {', '.join(different)}; this is {present}" if different else ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's warning about its version
            model = skops.io.loads(content, trusted=trusted)
        check_indices(model)
    except Exception as error:
        advice = f"; {origin}. Fit the model again" if origin else ""
        fail(f"{path}: the model cannot be loaded ({exception_text(error)}){advice}.")
    if origin:
        warnings.warn(f"{path}: {origin}. Predictions may differ; fit the model again if in doubt.", stacklevel=4)
    return model, about.train


def _versions() -> dict[str, str]:
    return {"klr-bench": __version__, **{name: version(name) for name in ("scikit-learn", "numpy")}}


def _archive(stored: bytes, about: str, method: int, level: int | None) -> bytes:
    """Return the file of a model that skops has stored, with a compact schema."""
    content = BytesIO()
    with (
        zipfile.ZipFile(BytesIO(stored)) as members,
        zipfile.ZipFile(content, "w", method, compresslevel=level) as archive,
    ):
        for name in members.namelist():
            member = members.read(name)
            archive.writestr(name, _compact(member) if name == SCHEMA else member)
        archive.writestr(ABOUT, about)
    return content.getvalue()


def _compact(schema: bytes) -> str:
    """Return a schema without blanks, which skops reads as the same model."""
    content = json.loads(schema)
    for node in nodes(content):
        if node["__class__"] == "memmap":
            node.update(__class__="ndarray", __module__="numpy")
        elif node["__loader__"] == "DictNode":  # skops reads the keys as bool("false"), which is True
            kinds = [kind["__class__"].startswith("bool") for kind in node["key_types"]["content"]]
            items = zip(kinds, node["content"].items(), strict=False)
            node["content"] = {key.replace("false", "") if is_bool else key: value for is_bool, (key, value) in items}
    return json.dumps(content, separators=(",", ":"))


class Inspected(NamedTuple):
    """What a model file says about itself, before any object is created."""

    about: About
    refused: str
    """The types that are not trusted, or ""."""
    trusted: list[str]
    """The types that klr-bench trusts, in addition to those that skops trusts."""


def _inspected(content: bytes) -> Inspected:
    """Inspect a model file.  Raises InflatedError if it unpacks to too much, and many others."""
    most = min(LARGEST_MODEL, max(SMALLEST_BOMB, MOST_RATIO * len(content)))
    with zipfile.ZipFile(BytesIO(content)) as archive:
        check_members(archive, most + LARGEST_JSON)
        about, schema = (_json(archive, name, len(content)) for name in (ABOUT, SCHEMA))
        check_references(schema)
        check_nodes(schema)
        check_sizes(archive, schema, most)
    names = skops.io.get_untrusted_types(data=content)
    refused = untrusted(names, schema)
    text = f"the type{'s' * (len(refused) > 1)} {sanitize(', '.join(refused))}" if refused else ""
    return Inspected(parse_value(About, about, ABOUT), text, sorted(set(names) - set(refused)))


def _json(archive: zipfile.ZipFile, name: str, packed: int) -> Any:
    """Return a JSON member of a file of `packed` bytes.  Raises ValueError if it is too large."""
    size, most = archive.getinfo(name).file_size, min(LARGEST_JSON, max(SMALLEST_JSON, MOST_JSON_RATIO * packed))
    if size > most:
        message = f"expected at most {most:,} bytes in {name}, got {size:,}"
        raise ValueError(message)
    content = archive.read(name)
    n_containers = content.count(b"[") + content.count(b"{")
    if n_containers > 1000 and BYTES_PER_CONTAINER * n_containers > size:
        message = f"expected at most one list per {BYTES_PER_CONTAINER} bytes in {name}, got {n_containers:,} lists"
        raise ValueError(message)
    return json.loads(content)
