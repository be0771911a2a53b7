"""What a worker of dask calls.  The scheduler imports this module, too, so that it imports nothing heavy at its top."""

from __future__ import annotations


def serve(errand: bytes) -> bytes:
    """Have a pickled errand of a run done, and return its pickled end; it ends when the run waits for it no more."""
    from distributed import get_worker
    from distributed.core import Status

    from klr_bench.experiment.runner.remote import done

    worker = get_worker()
    key = worker.get_current_task()

    def wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state != "cancelled" and worker.status not in (Status.closing, Status.closed)

    return done(errand, wanted)
