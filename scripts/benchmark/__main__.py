"""How fast the engine is, as ratios measured in one run on one thread.

    python scripts/benchmark [floor] [bits] [threads] [peers] [loop] [grid] [budget] [features] [batch] [sparse]
                              [growth] [l1] [confidence] [far_end] [stream] [stream_learners]
                              [output=results/benchmark]

floor   one pass against the products and the exponential alone, or the bits, with the rates of this machine
bits    fits and predictions with features of two values as bits, and with matrix products
threads fits and predictions without a setting against one thread, alone and beside a busy process; ten minutes
peers   one pass of OSKL against SVC, liblinear, skglm, feature maps with a linear learner, LightGBM (klr-bench[peers])
loop    one pass against a compiled loop that computes one kernel value at a time, on MAGIC and Adult
grid    88 learners in one pass against one learner, and against 88 passes
budget  learners with a budget, ALMA and DUOL against compiled loops that compute one kernel value at a time, on MAGIC
features gradient descent on Fourier and Nystroem features against compiled loops over examples, on MAGIC
batch   dual coordinate ascent to a gap of 1e-3 against scikit-learn's SVC on a fold of Adult, and on one of IJCNN1
sparse  a text-like set of 677,399 x 47,236 with a polynomial kernel, by the inverted index
growth  time and memory from 5,000 to 465,000 examples
l1      solvers of L1-regularised kernel logistic regression, liblinear, saga, skglm and celer (klr-bench[peers]): the
        time to a duality gap, on MNIST and cod-rna; half an hour, most of it the slow ones
far_end the driver of a run of 100,000 cells on a cluster of 1,000 workers that exist on paper; four minutes
confidence  linear learners with a covariance: passes over 450,000 rows of Covertype, and 2,000 features in blocks
        against a compiled loop of rank-one updates; three minutes
stream  text files of KLR_BENCH_STREAM_MB (300) each, read in chunks from the text and from the cache, beside the
        readers of scikit-learn and pandas; three minutes
stream_learners  OSKL with a budget, FOGD and AROW on a text file of KLR_BENCH_STREAM_ROWS (2,000,000), beside reading
        it alone, and beside Vowpal Wabbit where it is installed

MAGIC, Adult, IJCNN1, MNIST and cod-rna are fetched, or come from KLR_BENCH_MIRROR.  Prints a line a figure and writes
them as CSV, and what they were measured on.
"""

from __future__ import annotations

import os
import sys

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is imported

import csv
import platform
import time
from pathlib import Path

import batch
import bits
import budget
import confidence
import far_end
import features
import floor
import grid
import growth
import l1
import loop
import numba
import numpy as np
import peers
import sparse
import stream
import stream_learners
import threads
from threadpoolctl import threadpool_info

PARTS = {
    "floor": floor.measure,
    "bits": bits.measure,
    "threads": threads.measure,
    "peers": peers.measure,
    "loop": loop.measure,
    "grid": grid.measure,
    "budget": budget.measure,
    "features": features.measure,
    "batch": batch.measure,
    "sparse": sparse.measure,
    "growth": growth.measure,
    "l1": l1.measure,
    "confidence": confidence.measure,
    "far_end": far_end.measure,
    "stream": stream.measure,
    "stream_learners": stream_learners.measure,
}


def machine():
    """Return what the figures depend on besides the code."""
    processor = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    blas = next(library for library in threadpool_info() if "numpy" in library["filepath"])
    return {
        "processor": processor,
        "blas": f"{blas['internal_api']} {blas['version']}, {blas.get('architecture')} kernels",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def _lines(path):
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def write(path, rows):
    """Write dictionaries with the same keys as CSV."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def main(arguments):
    output = Path(next((a.partition("=")[2] for a in arguments if a.startswith("output=")), "results/benchmark"))
    chosen = [argument for argument in arguments if "=" not in argument] or list(PARTS)
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        print(__doc__)
        return 2
    output.mkdir(parents=True, exist_ok=True)
    write(output / "machine.csv", [machine()])
    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    for name in chosen:
        started = time.perf_counter()
        rows = []
        for row in PARTS[name](output):
            rows.append({"part": name, **row})
            print(
                "  ".join(
                    f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
                    for key, value in rows[-1].items()
                ),
                flush=True,
            )
        write(output / f"{name}.csv", rows)
        print(f"{name}: {time.perf_counter() - started:.0f} s, {output / name}.csv")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
