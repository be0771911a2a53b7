"""The cache of parsed arrays: what somebody else has put there runs no code."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from klr_bench.experiment.data.cache import silent
from klr_bench.experiment.data.parsed import parsed
from klr_bench.experiment.data.readers import Arrays


class Hostile:
    """Writes a file where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def test_pickled_objects_in_the_cache_are_parsed_anew_and_not_loaded(tmp_path: Path) -> None:
    arrays = Arrays(np.eye(4, dtype=np.float32), np.array([-1, 1, -1, 1], dtype=np.int8), ("a", "b"))
    folder, mark, made = tmp_path / "parsed" / "key", tmp_path / "mark", []

    def parse() -> Arrays:
        made.append(1)
        return arrays

    parsed(folder, "mine", ["hash"], parse, silent)
    parsed(folder, "mine", ["hash"], parse, silent)
    assert len(made) == 1
    np.save(folder / "X.npy", np.array([Hostile(mark)], dtype=object), allow_pickle=True)
    _, meta = json.loads((folder / "meta.json").read_text())
    content, state = (folder / "X.npy").read_bytes(), (folder / "X.npy").stat()
    meta["files"][1] = ["X.npy", [state.st_size, state.st_mtime_ns], zlib.crc32(content)]
    checksum = zlib.crc32(json.dumps(meta, sort_keys=True).encode())
    (folder / "meta.json").write_text(json.dumps([checksum, meta]))
    found = parsed(folder, "mine", ["hash"], parse, silent)
    np.testing.assert_array_equal(found.X, arrays.X)
    assert len(made) == 2
    assert not mark.exists()
    np.load(folder / "X.npy")  # whole again
