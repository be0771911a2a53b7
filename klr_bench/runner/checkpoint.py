"""Checkpoint files, from which an interrupted pass over a stream is resumed.

A checkpoint has the fitted attributes of an estimator of klr-bench and the running sums.  The file is a BLAKE2 hash, a
newline, and an npz file with the arrays and, as ``json``, everything else.  Reading a checkpoint never imports or calls
what it names.  The hash protects against damage but not against tampering.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import scipy.sparse as sp

from klr_bench.files import open_regular, write_atomic

ESTIMATORS_PREFIX = "klr_bench.estimators."
"""Prefix of the modules whose classes can be restored."""
JSON_TYPES = (type(None), bool, int, float, str)


class CheckpointError(Exception):
    """Error raised if a checkpoint cannot be used."""


def save(path: Path, key: str, estimator: Any, sums: dict[str, Any]) -> None:
    """Write a checkpoint of the cell `key`.

    If the estimator cannot be stored, because it is not from klr-bench, the file has the reason instead of the state.
    Raises KlrBenchError if it cannot be written.
    """
    encoder = _Encoder()
    try:
        content = {"key": key, "sums": sums, "state": encoder.encode(estimator)}
    except CheckpointError as error:
        encoder, content = _Encoder(), {"key": key, "refused": str(error)}
    file = io.BytesIO()
    arrays = {str(i): array for i, array in enumerate(encoder.arrays)}
    np.savez(file, json=np.frombuffer(json.dumps(content).encode(), np.uint8), **arrays)
    write_atomic(path, b"%s\n%s" % (_digest(file.getbuffer()), file.getbuffer()))


def restore(path: Path, key: str, fresh: Any) -> dict[str, Any] | None:
    """Restore the fitted attributes of an estimator from a checkpoint of the cell `key`.

    Return the running sums, or None if the file does not exist.  Raises CheckpointError if it cannot be used.
    """
    try:
        with open_regular(path) as file:
            digest, _, content = file.read().partition(b"\n")
        if digest != _digest(content):
            raise CheckpointError("it is damaged or was written by another version of klr-bench")
        with ZipFile(io.BytesIO(content)) as archive:
            if any(member.compress_type != ZIP_STORED for member in archive.infolist()):
                raise CheckpointError("it is compressed, unlike those of klr-bench")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            stored = json.loads(arrays["json"].tobytes())
            if stored["key"] != key:
                raise CheckpointError("it belongs to another cell")
            if "refused" in stored:
                raise CheckpointError(stored["refused"])
            state = _Decoder(arrays).decode(stored["state"])
            if type(state) is not type(fresh):
                raise CheckpointError("it belongs to another estimator")
            sums = dict(stored["sums"])
            vars(fresh).update(vars(state) | fresh.get_params(deep=False))
            return sums
    except FileNotFoundError:
        return None
    except CheckpointError:
        raise
    except Exception as error:
        reason = f"it cannot be read ({error})"
        raise CheckpointError(reason) from error


def _digest(content: bytes | memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=16).hexdigest().encode()


class _Encoder:
    """Converts Python objects to JSON and arrays; an object referenced twice is stored once."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self._seen: dict[int, tuple[int, Any]] = {}

    def encode(self, value: Any) -> Any:
        kind = type(value)
        if kind in JSON_TYPES:
            return value
        if id(value) in self._seen:
            return {"same": self._seen[id(value)][0]}
        self._seen[id(value)] = len(self._seen), value
        if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            self.arrays.append(value)
            return {"array" if isinstance(value, np.ndarray) else "scalar": len(self.arrays) - 1}
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if isinstance(value, np.random.RandomState):
            return {"random": self.encode(value.get_state(legacy=False))}
        if kind is sp.csr_matrix:
            return {"csr": [self.encode(part) for part in (value.data, value.indices, value.indptr)], "of": value.shape}
        if kind in (list, tuple):
            return {kind.__name__: [self.encode(item) for item in value]}
        if kind is dict:
            return {"dict": [[self.encode(name), self.encode(item)] for name, item in value.items()]}
        if kind.__module__.startswith(ESTIMATORS_PREFIX):
            state = {name: self.encode(item) for name, item in value.__getstate__().items()}
            return {"class": [kind.__module__, kind.__qualname__], "state": state}
        reason = f"only estimators of klr-bench can be checkpointed, got {kind.__module__}.{kind.__qualname__}"
        raise CheckpointError(reason)


class _Decoder:
    """Restores the Python objects that `_Encoder` converted to JSON and arrays."""

    def __init__(self, arrays: Any) -> None:
        self._arrays, self._seen = arrays, list[Any]()

    def decode(self, stored: Any) -> Any:
        if type(stored) in JSON_TYPES:
            return stored
        if "same" in stored:
            return self._seen[stored["same"]]
        index = len(self._seen)
        self._seen.append(None)
        if "class" in stored:
            self._seen[index] = object.__new__(_estimator_class(*stored["class"]))
            vars(self._seen[index]).update({name: self.decode(item) for name, item in stored["state"].items()})
        else:
            self._seen[index] = self._decode_value(stored)
        return self._seen[index]

    def _decode_value(self, stored: dict[str, Any]) -> Any:
        kind, content = next(iter(stored.items()))
        if kind in ("array", "scalar"):
            return self._arrays[str(content)][... if kind == "array" else ()]
        if kind == "dtype":
            return np.dtype(content)
        if kind in ("list", "tuple"):
            items = [self.decode(item) for item in content]
            return items if kind == "list" else tuple(items)
        if kind == "dict":
            return {self.decode(name): self.decode(item) for name, item in content}
        if kind == "csr":
            return sp.csr_matrix(tuple(self.decode(item) for item in content), shape=tuple(stored["of"]))
        random = np.random.RandomState()
        random.set_state(self.decode(stored["random"]))
        return random


def _estimator_class(module: str, name: str) -> type:
    """Return a class from an estimator module of klr-bench that is already imported."""
    kind = getattr(sys.modules[module], name) if module.startswith(ESTIMATORS_PREFIX) else None
    if not isinstance(kind, type) or kind.__module__ != module:
        raise CheckpointError("it has a class that is not from klr-bench")
    return kind
