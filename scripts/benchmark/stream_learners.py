"""Time and memory of learners on a large text file, compared with Vowpal Wabbit.

KLR_BENCH_STREAM_ROWS is the number of rows, by default 20,000,000, of 220 bytes each; Vowpal Wabbit, if it is
installed, needs a second file.  Each learner reads the file once, in a separate process, and predicts each row before
it learns from it.
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
from timing import once

from klr_bench import stream
from klr_bench.metrics.clock import peak_memory_mb

ROWS = int(os.environ.get("KLR_BENCH_STREAM_ROWS", "20000000"))
D, DISTINCT = 20, 200_000
"""Number of features, and of distinct rows, which the file repeats."""
LEARNERS = ("budget_oskl", "fogd", "arow")
CHUNK = 20_000
VOWPAL = ["--loss_function", "logistic", "--link", "logistic", "--quiet", "-b", "10"]


def measure(output):
    """Yield the results of reading the file and of each learner."""
    with tempfile.TemporaryDirectory() as folder:
        path = generated(Path(folder) / "rows.svm", "")
        alone = run_in_process("reading", path)
        yield row("reading alone", path, alone)
        for name in LEARNERS:
            yield row(name, path, run_learner(name, path, Path(folder)))
        if importlib.util.find_spec("vowpalwabbit"):
            path = generated(Path(folder) / "rows.vw", " |")
            yield row("vowpal_wabbit", path, run_in_process("vowpal", path))


def row(name, path, measured):
    """Return a row of the table."""
    values = {"accuracy": "", "log_loss": "", "learning_s": "", "testing_s": ""} | measured
    size = {"rows": ROWS, "gb": path.stat().st_size / 1e9, "rows_a_s": ROWS / values["seconds"]}
    return {"learner": name, **size, **{key: values[key] for key in sorted(values)}}


def generated(path, bar):
    """Write rows with a nonlinear class boundary; `bar` follows the label, for Vowpal Wabbit."""
    random = np.random.RandomState(0)
    X = random.normal(size=(DISTINCT, D))
    y = np.where(X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * random.normal(size=DISTINCT) > 0, 1, -1)
    pattern = f"%d{bar} " + " ".join(f"{j}:%.5f" for j in range(1, D + 1)) + "\n"
    lines = [(pattern % (label, *values)).encode() for label, values in zip(y.tolist(), X.tolist(), strict=True)]
    with path.open("wb") as file:
        for start in range(0, ROWS, DISTINCT):
            file.write(b"".join(lines[: ROWS - start]))
    return path


def run_in_process(what, path):
    """Run a task in a separate process and return its results."""
    command = [sys.executable, __file__, what, str(path)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def run_learner(name, path, folder):
    """Return the results of a run.

    `seconds` is the total time minus the shortest of three runs on few rows, after compilation.
    """
    few = folder / "few.svm"
    with path.open("rb") as file:
        few.write_bytes(b"".join(file.readline() for _ in range(2 * CHUNK)))
    seconds = {}
    for kind, rows in (("compiling", few), ("few-1", few), ("few-2", few), ("few-3", few), ("all", path)):
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
        "seconds": seconds["all"] - min(seconds[f"few-{i}"] for i in (1, 2, 3)),
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
    """Train Vowpal Wabbit with its own loop; return its progressive log loss."""
    import vowpalwabbit

    learner = vowpalwabbit.Workspace(arg_list=[*VOWPAL, "-d", str(path)])
    return {"log_loss": learner.get_sum_loss() / max(learner.get_weighted_examples(), 1)}


if __name__ == "__main__":
    seconds, result = once(lambda: {"reading": reading, "vowpal": vowpal}[sys.argv[1]](Path(sys.argv[2])))
    print(
        json.dumps({"seconds": seconds, "memory_mb": peak_memory_mb()} | {k: v for k, v in result.items() if k != "n"})
    )
