"""Learners on a text file that need not fit into memory, beside reading and parsing it alone, and Vowpal Wabbit.

KLR_BENCH_STREAM_ROWS is the number of rows, 2,000,000 if it is not set: 210 bytes each, twice with Vowpal Wabbit, which
is run where it is installed.  Each reads the file once, in a process of its own, and tests on each row before it learns
from it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from stream import peak
from timing import once

from klr_bench import stream

ROWS = int(os.environ.get("KLR_BENCH_STREAM_ROWS", "2000000"))
D, DIFFERENT = 20, 200_000
"""Features, and rows after which the file repeats itself."""
LEARNERS = ("budget_oskl", "fogd", "arow")
CHUNK = 20_000
VOWPAL = ["--loss_function", "logistic", "--link", "logistic", "--quiet", "-b", "10"]


def measure(output):
    """Yield a row for reading alone, and one for each learner: rows a second, memory, progressive accuracy and loss."""
    with tempfile.TemporaryDirectory() as folder:
        path = generated(Path(folder) / "rows.svm", "")
        alone = in_a_process("reading", path)
        yield row("reading alone", path, alone)
        for name in LEARNERS:
            yield row(name, path, learned(name, path, Path(folder)))
        if importlib.util.find_spec("vowpalwabbit"):
            path = generated(Path(folder) / "rows.vw", " |")
            yield row("vowpal_wabbit", path, in_a_process("vowpal", path))


def row(name, path, found):
    """Return a row of the table."""
    found = {"accuracy": "", "log_loss": "", "learning_s": "", "testing_s": ""} | found
    size = {"rows": ROWS, "gb": path.stat().st_size / 1e9, "rows_a_s": ROWS / found["seconds"]}
    return {"learner": name, **size, **{key: found[key] for key in sorted(found)}}


def generated(path, bar):
    """Write rows with a boundary that is no plane; `bar` stands behind the label, as Vowpal Wabbit has it."""
    random = np.random.RandomState(0)
    X = random.normal(size=(DIFFERENT, D))
    y = np.where(X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * random.normal(size=DIFFERENT) > 0, 1, -1)
    pattern = f"%d{bar} " + " ".join(f"{j}:%.5f" for j in range(1, D + 1)) + "\n"
    lines = [(pattern % (label, *values)).encode() for label, values in zip(y.tolist(), X.tolist(), strict=True)]
    with path.open("wb") as file:
        for start in range(0, ROWS, DIFFERENT):
            file.write(b"".join(lines[: ROWS - start]))
    return path


def in_a_process(what, path):
    """Return what a process of its own says of reading, or of Vowpal Wabbit."""
    command = [sys.executable, __file__, what, str(path)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def learned(name, path, folder):
    """Return the record of a run: `seconds` are all of its time, less that of a run on few rows; all is compiled."""
    few = folder / "few.svm"
    with path.open("rb") as file:
        few.write_bytes(b"".join(file.readline() for _ in range(2 * CHUNK)))
    seconds = {}
    for kind, rows in (("compiling", few), ("few", few), ("all", path)):
        split = (
            f"{{stream: true, test: rows, chunk: {CHUNK}, window: 500_000, checkpoint: 2_000_000, classes: [-1, 1]}}"
        )
        command = [
            *(sys.executable, "-m", "klr_bench", "run", "experiment=stream_own", f"algorithm=[{name}]"),
            *(f"data.path={rows}", f"data.n_features={D}", f"datasets.stream.split={split}", "n_jobs=1"),
            *(f"results_dir={folder / 'results'}", f"name={name}-{kind}"),
        ]
        seconds[kind], _ = once(lambda command=command: subprocess.run(command, check=True, capture_output=True))
    record = pd.read_csv(folder / "results" / f"{name}-all" / "records.csv").iloc[0]
    return {
        "seconds": seconds["all"] - seconds["few"],
        "learning_s": record.fit_time_s,
        "testing_s": record.predict_time_s,
        "memory_mb": record.peak_memory_mb,
        "accuracy": record.accuracy,
        "log_loss": record.log_loss,
    }


def reading(path):
    """Read all rows."""
    return {"n": sum(len(y) for _, y in stream(path, CHUNK, classes=[-1, 1], n_features=D))}


def vowpal(path):
    """Learn by Vowpal Wabbit's own loop; its progressive loss is that of each row before it is learned from."""
    import vowpalwabbit

    learner = vowpalwabbit.Workspace(arg_list=[*VOWPAL, "-d", str(path)])
    return {"log_loss": learner.get_sum_loss() / max(learner.get_weighted_examples(), 1)}


if __name__ == "__main__":
    seconds, result = once(lambda: {"reading": reading, "vowpal": vowpal}[sys.argv[1]](Path(sys.argv[2])))
    print(json.dumps({"seconds": seconds, "memory_mb": peak()} | {k: v for k, v in result.items() if k != "n"}))
