"""Keys of a user's stream, which depend only on the size of a file and a sample of its content."""

import hashlib
import os
from pathlib import Path

from klr_bench.datasets import dataset_hash, dataset_name
from klr_bench.datasets.cache import N_PIECES, PIECE, sampled_sha256
from tests.config.composing import dataset_of

LARGE = 3 * N_PIECES * PIECE + 12_345
"""Size in bytes of a file, two thirds of which are not sampled."""


def large(path: Path, *changed: int, size: int = LARGE) -> Path:
    """Write a sparse file whose bytes are 0 except at the changed positions."""
    with path.open("wb") as file:
        file.truncate(size)
        for place in changed:
            file.seek(place)
            file.write(b"x")
    return path


def test_a_sampled_hash_depends_only_on_size_and_sample(tmp_path: Path) -> None:
    starts = [piece * (LARGE - PIECE) // (N_PIECES - 1) for piece in range(N_PIECES)]
    changes = [place for start in starts for place in (start, start + PIECE - 1)]
    hashes = {sampled_sha256(large(tmp_path / "a", place)) for place in changes}
    unchanged = sampled_sha256(large(tmp_path / "one"))
    assert len(hashes | {unchanged, sampled_sha256(large(tmp_path / "longer", size=LARGE + 1))}) == len(changes) + 2
    for size in (0, 1, N_PIECES * PIECE):  # no larger than the sample: hashed as a whole
        small = large(tmp_path / "small", *([size // 2] if size else []), size=size)
        assert sampled_sha256(small) == hashlib.sha256(small.read_bytes()).hexdigest()
    copy = large(tmp_path / "copy", 2 * PIECE)
    os.utime(copy, (0, 0))
    assert sampled_sha256(copy) == unchanged


def test_only_streams_are_sampled(tmp_path: Path) -> None:
    text = b"1 1:0.5\n-1 1:0.25\n" * (N_PIECES * PIECE // 9)
    between = text[: 18 * 120_000] + b"1 1:0.7\n" + text[18 * 120_000 + 8 :]  # in the third MiB
    keys = {}
    for content in (text, between):
        (tmp_path / "rows.svm").write_bytes(content)
        for split in ({"stream": True}, {"test_size": 0.2}):
            spec = dataset_of({"source": {"format": "file", "path": str(tmp_path / "rows.svm")}, "split": split})
            keys.setdefault(str(split), set()).add((dataset_hash("own", spec), dataset_name("own", spec)))
        assert f"rows-{hashlib.sha256(content).hexdigest()[:6]}" == dataset_name("own", spec)
    assert [len(found) for found in keys.values()] == [1, 2]
