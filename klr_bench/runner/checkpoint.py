"""Checkpoints of a pass over a stream: the fitted estimator and the sums so far.

A checkpoint is the BLAKE2 hash of the rest, a line end, and a pickle.  The unpickler creates only arrays and instances
of the estimators of klr-bench, so a forged file runs nothing.  The hash detects damage.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import sys
from pathlib import Path
from typing import Any

from klr_bench.files import open_regular, write_atomic

OWN = "klr_bench.estimators."
"""Modules whose estimators have checkpoints."""
SAFE = {
    "copyreg": ("_reconstructor",),
    "builtins": ("object",),
    "numpy": ("ndarray", "dtype"),
    "numpy._core.multiarray": ("_reconstruct", "scalar"),
    "numpy.core.multiarray": ("_reconstruct", "scalar"),
    "numpy._core.numeric": ("_frombuffer",),
    "numpy.core.numeric": ("_frombuffer",),
    "numpy.random._pickle": ("__randomstate_ctor", "__bit_generator_ctor"),
    "numpy.random._mt19937": ("MT19937",),
    "scipy.sparse._csr": ("csr_matrix",),
}
"""Functions and classes besides the estimators that a checkpoint may refer to, by module."""


class CheckpointError(Exception):
    """A checkpoint cannot be used."""


def save(path: Path, key: str, estimator: Any, sums: dict[str, Any]) -> None:
    """Write a checkpoint of the cell `key`; without the estimator if it is not one of klr-bench.

    Raises KlrBenchError if it cannot be written.
    """
    kind = type(estimator)
    content: dict[str, Any] = {"key": key, "sums": sums, "estimator": estimator}
    if not kind.__module__.startswith(OWN):
        reason = f"only estimators of klr-bench have checkpoints, not {kind.__module__}.{kind.__qualname__}"
        content = {"key": key, "refused": reason}
    pickled = pickle.dumps(content)
    write_atomic(path, _digest(pickled) + b"\n" + pickled)


def restore(path: Path, key: str, fresh: Any) -> dict[str, Any] | None:
    """Set the fitted attributes of an unfitted estimator to those in a checkpoint of the cell `key`.

    Return the sums, or None if there is no checkpoint.  Raises CheckpointError.
    """
    try:
        with open_regular(path) as file:
            digest, _, pickled = file.read().partition(b"\n")
        if digest != _digest(pickled):
            raise CheckpointError("it is damaged, or of another version of klr-bench")
        content = _Unpickler(io.BytesIO(pickled)).load()
        if content["key"] != key:
            raise CheckpointError("it is of another cell")
        if "refused" in content:
            raise CheckpointError(str(content["refused"]))
        if type(content["estimator"]) is not type(fresh):
            raise CheckpointError("it is of another estimator")
        sums = dict(content["sums"])
        vars(fresh).update(vars(content["estimator"]) | fresh.get_params(deep=False))
        return sums
    except FileNotFoundError:
        return None
    except CheckpointError:
        raise
    except Exception as error:
        reason = f"it cannot be read ({error})"
        raise CheckpointError(reason) from error


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).hexdigest().encode()


class _Unpickler(pickle.Unpickler):
    """Refuses everything but SAFE and the classes of imported modules of klr-bench's estimators."""

    def find_class(self, module: str, name: str) -> Any:
        if name in SAFE.get(module, ()):
            return super().find_class(module, name)
        found = getattr(sys.modules.get(module), name, None) if module.startswith(OWN) else None
        if not isinstance(found, type) or found.__module__ != module:
            message = f"{module}.{name} is not allowed"
            raise pickle.UnpicklingError(message)
        return found
