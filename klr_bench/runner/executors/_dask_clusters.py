"""Start dask clusters: on this machine, or as jobs of a queueing system such as SLURM."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
from contextlib import suppress
from typing import Any

from klr_bench.errors import fail, sanitize

# Dask must not give up on a worker that does not respond during a long fit.
# Returning freed memory to the system would be slow, because the worker soon allocates it again.
SETTINGS = {
    "distributed.scheduler.worker-ttl": None,
    "distributed.worker.daemon": False,
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**30,
}
"""Dask's settings for both kinds of clusters."""
MEMORY = "4GB"
"""Memory of a job whose settings do not name it."""


def local_cluster(n_jobs: int | None) -> Any:
    """Start a cluster of `n_jobs` workers on this machine; None or -1 means one per core."""
    import distributed

    return distributed.LocalCluster(
        n_workers=n_jobs if n_jobs and n_jobs > 0 else os.cpu_count(),
        threads_per_worker=1,
        memory_limit=0,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    )


def job_cluster(queue: str, n_jobs: int | None) -> Any:
    """Submit `n_jobs` jobs to a queueing system, each with one worker of a new cluster.

    Memory, time, queue and other properties of jobs are settings of dask-jobqueue.  Raises KlrBenchError if no job can
    be submitted.
    """
    import dask

    try:
        import dask_jobqueue
    except ImportError:
        fail(f"parallel.jobqueue={queue} needs dask-jobqueue. Run: pip install 'klr-bench[slurm]'")
    if n_jobs in (None, -1):
        fail(f"n_jobs: expected the number of jobs for parallel.jobqueue={queue}, as in n_jobs=20, got {n_jobs}.")
    classes = [value for value in vars(dask_jobqueue).values() if getattr(value, "job_cls", None)]
    cluster_class = next(value for value in classes if value.job_cls.config_name == queue)
    command = shlex.split(cluster_class.job_cls.submit_command)[0]
    if shutil.which(command) is None:
        fail(f"parallel.jobqueue={queue}: the command {command} was not found. Start the run where jobs are submitted.")
    settings = dask.config.get(f"jobqueue.{queue}")
    cluster: Any = None
    try:
        cluster = cluster_class(
            cores=1,
            processes=1,
            memory=settings.get("memory") or MEMORY,
            nanny=False,
            # The queueing system limits the memory; a worker would pause before it.
            worker_extra_args=[*(settings.get("worker-extra-args") or ()), "--memory-limit", "0"],
            scheduler_options={"dashboard_address": ":0", **(settings.get("scheduler-options") or {})},
            silence_logs=logging.CRITICAL,
        )
        while len(cluster.worker_spec) < n_jobs:
            cluster.worker_spec.update(cluster.new_worker_spec())
        cluster.sync(cluster._correct_state)  # raises the error of the first job; `scale` would hide it
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        with suppress(Exception):  # closing fails for a job that was not submitted
            cluster.close(timeout=10)
        reason = str(error).partition("stderr:")[2].strip() or error
        fail(
            f"parallel.jobqueue={queue}: {command} has submitted no job ({sanitize(reason)}). "
            f"Check the section jobqueue.{queue} of dask's configuration (~/.config/dask/jobqueue.yaml)."
        )
    return cluster
