"""Rows per second and memory of `klr_bench.stream`, compared with other readers.

KLR_BENCH_STREAM_MB is the size of each text file, by default 300; three times as much disk space is needed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file
from timing import once

from klr_bench import stream
from klr_bench.metrics.clock import peak_memory_mb

MEGABYTES = int(os.environ.get("KLR_BENCH_STREAM_MB", "300"))
CLASSES = [-1, 1]
CHUNK_ROWS = 10_000
WIDE = 47_236
"""Number of features of RCV1, whose rows have 74 entries on average."""


def measure(output):
    """Yield the result of each file and reader, which runs in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in (("svmlight_dense", dense), ("svmlight_sparse", sparse), ("csv", delimited)):
            path = generated(Path(folder) / name, lines)
            peer = "pandas" if name == "csv" else "load_svmlight_file"
            for reader in (peer, "stream", "stream_writing_cache", "stream_from_cache"):
                command = [sys.executable, __file__, reader, str(path)]
                result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                yield {"file": name, "mb": path.stat().st_size / 1e6, "reader": reader, **result}


def generated(path, lines):
    """Write a file of at least `MEGABYTES` MB, which repeats the same 20,000 lines."""
    rng = np.random.default_rng(0)
    content = "".join(lines(rng, 20_000)).encode()
    with path.open("wb") as file:
        while file.tell() < MEGABYTES * 1e6:
            file.write(content)
    return path


def dense(rng, n):
    """Return an iterator over rows of 28 features with six digits."""
    pattern = "%d " + " ".join(f"{j}:%.6g" for j in range(1, 29)) + "\n"
    return (pattern % (rng.choice(CLASSES), *row) for row in rng.normal(size=(n, 28)).tolist())


def sparse(rng, n):
    """Yield rows of about 74 entries with 16 digits."""
    for length in rng.poisson(74, n).tolist():
        indices, values = np.unique(rng.integers(1, WIDE + 1, length + 1)), rng.random(length + 1)
        entries = (f"{index}:{value:.16g}" for index, value in zip(indices.tolist(), values.tolist(), strict=False))
        yield f"{rng.choice(CLASSES)} {' '.join(entries)}\n"


def delimited(rng, n):
    """Return an iterator over rows of 28 numbers with 19 digits, as in HIGGS."""
    pattern = "%d," + ",".join(["%.18e"] * 28) + "\n"
    return (pattern % (rng.choice(CLASSES), *row) for row in rng.normal(size=(n, 28)).tolist())


def read(reader, path):
    """Read a file; return the number of rows."""
    if reader == "load_svmlight_file":
        return load_svmlight_file(str(path), dtype=np.float32)[0].shape[0]
    if reader == "pandas":
        return sum(len(chunk) for chunk in pd.read_csv(path, header=None, dtype=np.float32, chunksize=CHUNK_ROWS))
    rows = stream(
        path,
        CHUNK_ROWS,
        classes=CLASSES,
        label_column=1 if path.name == "csv" else None,
        n_features=WIDE if path.name == "svmlight_sparse" else 28,
        cache=None if reader == "stream" else path.with_name(f"{path.name}-cache"),
    )
    return sum(len(y) for _, y in rows)


def main(reader, path):
    """Print time and memory of one reader for a file, after a warm-up."""
    with tempfile.TemporaryDirectory() as folder:
        short = Path(folder) / path.name
        with path.open("rb") as file:
            short.write_bytes(b"".join(file.readline() for _ in range(100)))
        read(reader, short)
    before = peak_memory_mb()
    seconds, n_rows = once(lambda: read(reader, path))
    result = {
        "rows": n_rows,
        "seconds": seconds,
        "rows_a_s": n_rows / seconds,
        "mb_a_s": path.stat().st_size / seconds / 1e6,
        "memory_mb": peak_memory_mb() - before,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
