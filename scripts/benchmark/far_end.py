"""Time of the driver of 100,000 cells on a simulated cluster of 1,000 workers.

Cells, folder, records and tables are real.  A cell takes 0.1 to 1,800 seconds of simulated time, one task in a thousand
loses its worker, which is replaced after ten minutes, and results of cells are predefined.  The measured time is
therefore that of the driver.
"""

import heapq
import tempfile
import time
from collections import deque
from itertools import count
from pathlib import Path

import numpy as np
from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from omegaconf import open_dict
from rich.console import Console

from klr_bench import runner
from klr_bench.config import locations as config_files
from klr_bench.config.resolve import validate
from klr_bench.metrics.clock import peak_memory_mb
from klr_bench.results.record import CellFile, Record
from klr_bench.results.store import Store

N_WORKERS = 1000
SHORTEST_S, LONGEST_S = 0.1, 1800.0
DEATHS, AWAY_S = 1e-3, 600.0
"""Fraction of the tasks whose worker fails, and the seconds until it is replaced."""
METRICS = ["accuracy", "error_rate", "log_loss", "brier", "ece", "auc", "sparsity", "fit_time_s", "predict_time_s"]
METRICS = dict.fromkeys(METRICS, 0.125) | {"n_support": 300, "n_train": 1600, "n_test": 400, "n_features": 2}
METRICS |= {"nnz_per_instance": 2.0, "peak_memory_mb": 250.5, "load": 0.001}
"""Metrics of each cell, as many as for an online learner."""
BINS = [(i, 40, 0.05 + 0.1 * i, 0.05 + 0.1 * i) for i in range(10)]


class SimulatedCluster:
    """Executor with simulated workers and a simulated clock, which retries lost tasks."""

    n_workers = N_WORKERS

    def __init__(self, seed=0):
        self.random = np.random.RandomState(seed)
        self.now, self.own_s, self.n_died = 0.0, 0.0, 0

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def run(self, tasks):
        waiting, again, order = iter(tasks), deque(), count()
        events = [(self.now, next(order), None) for _ in range(N_WORKERS)]  # (when, order, task that ends or None)
        while events:
            started = time.perf_counter()
            self.now, _, task = heapq.heappop(events)
            died = task is not None and self.random.uniform() < DEATHS
            if died:
                self.n_died += 1
                again.append(task)
            self.own_s += time.perf_counter() - started
            if task is not None and not died:
                yield task, predefined_result(task)
            following = again.popleft() if again else next(waiting, None)
            if following is not None:
                seconds = np.exp(self.random.uniform(np.log(SHORTEST_S), np.log(LONGEST_S)))
                heapq.heappush(events, (self.now + seconds + AWAY_S * died, next(order), following))


def predefined_result(task):
    """Return the predefined result of a cell."""
    cell = task.item
    of = cell.experiment, cell.source.name, cell.algorithm, cell.variant, {"gamma": 1.25}, cell.source.repeat
    record = Record(cell.key, *of, cell.source.seed, "ok", "", dict(METRICS), "machine", "AMD EPYC, OpenBLAS, 1 thread")
    return CellFile(record, cell.config_hash, time.time(), [], BINS)


def measure(output, n_cells=100_000):
    with tempfile.TemporaryDirectory() as folder:
        config = configuration(n_cells, folder)
        cluster, started = SimulatedCluster(), time.perf_counter()
        outcome = runner.run(config, console=Console(quiet=True), quiet=True, executor=cluster)
        seconds = time.perf_counter() - started - cluster.own_s
        place = Path(folder) / config.name
        records, rebuild, _ = rebuilt(place)
        (place / "cells.index").unlink()
        without_index, _, summary = rebuilt(place)
        started = time.perf_counter()
        again = runner.run(config, console=Console(quiet=True), quiet=True, executor=cluster)
        assert (again.n_found, summary.listed) == (outcome.n_computed, outcome.n_computed)
        yield {
            "cells": outcome.n_computed,
            "workers": N_WORKERS,
            "workers_lost": cluster.n_died,
            "cells_killed": outcome.n_failed,
            "hours_on_paper": cluster.now / 3600,
            "driver_ms_a_cell": seconds / n_cells * 1000,
            "records_s": records,
            "records_without_index_s": without_index,
            "rebuild_s": rebuild,
            "again_s": time.perf_counter() - started,
            "folder_mb": sum(path.stat().st_size for path in place.rglob("*") if path.is_file()) / 2**20,
            "peak_memory_mb": peak_memory_mb(),
        }


def rebuilt(place):
    """Return the seconds until a new store writes records.csv, and until it writes all tables."""
    started, since = time.perf_counter(), time.time()
    summary = Store(place).rebuild()
    return (place / "records.csv").stat().st_mtime - since, time.perf_counter() - started, summary


def configuration(n_cells, folder):
    """Return the configuration of ten methods on two data sets."""
    overrides = ["dataset=[moons,checkerboard]", "algorithm=[nc,margin,auxiliary,oskl,pegasos]", "name=far_end"]
    overrides += [f"results_dir={folder}", f"repeats={n_cells // 20}", "+sweep.oskl.G=[1,2,3,4,5,6]"]
    overrides += [f"algorithms.{name}.grid=null" for name in ("nc", "margin", "auxiliary", "oskl", "pegasos")]
    with initialize_config_dir(str(config_files.config_dir()), version_base="1.3"):
        composed = compose("config", overrides, return_hydra_config=True)
    HydraConfig.instance().set_config(composed)
    with open_dict(composed):
        del composed["hydra"]
    return validate(composed, overrides)
