"""Checkpoint files, from which an interrupted pass over a stream is resumed.

The file is a BLAKE2 hash, a line of JSON with the key of the cell and the running sums, and the estimator as a model
file (see `klr_bench.model_file`), which runs no code when it is read.  The hash protects against damage but not against
tampering.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from klr_bench.errors import KlrBenchError
from klr_bench.files import read_regular, write_atomic


class CheckpointError(Exception):
    """Error raised if a checkpoint cannot be used."""


def save(path: Path, key: str, estimator: Any, sums: dict[str, Any]) -> None:
    """Write a checkpoint of the cell `key`.

    If the estimator cannot be stored, the file has the reason instead of the estimator.  Raises KlrBenchError if it
    cannot be written.
    """
    from klr_bench.model_file import dump  # which imports skops

    head, model = {"key": key, "sums": sums}, b""
    try:
        model = dump(estimator, compress=False)
    except KlrBenchError:
        kind = type(estimator)
        head["refused"] = f"save_model cannot store {kind.__module__}.{kind.__qualname__}"
    content = json.dumps(head).encode() + b"\n" + model
    write_atomic(path, _digest(content) + b"\n" + content)


def restore(path: Path, key: str, fresh: Any) -> dict[str, Any] | None:
    """Restore the fitted attributes of an estimator from a checkpoint of the cell `key`.

    Return the running sums, or None if the file does not exist.  Raises CheckpointError if it cannot be used.
    """
    if not path.exists():
        return None
    from klr_bench.model_file import LARGEST_MODEL, loads

    try:
        digest, _, content = read_regular(path, LARGEST_MODEL).partition(b"\n")
        if digest != _digest(content):
            raise CheckpointError("it is damaged or was written by another version of klr-bench")
        line, _, model = content.partition(b"\n")
        head = json.loads(line)
        if head["key"] != key:
            raise CheckpointError("it belongs to another cell")
        if "refused" in head:
            raise CheckpointError(head["refused"])
        state, sums = loads(model, path)[0], dict(head["sums"])
    except (OSError, KlrBenchError, ValueError, TypeError, LookupError, RecursionError) as error:
        reason = f"it cannot be read ({error})"
        raise CheckpointError(reason) from error
    if type(state) is not type(fresh):
        raise CheckpointError("it belongs to another estimator")
    vars(fresh).update(vars(state) | fresh.get_params(deep=False))
    return sums


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).hexdigest().encode()
