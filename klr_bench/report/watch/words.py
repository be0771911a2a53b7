"""How a run stands, in words."""

from __future__ import annotations

from typing import Any

from klr_bench.experiment.progress import SILENT_S, Progress, standing

AGAIN = "Run the same command again to go on."


def span(seconds: float) -> str:
    """Return a span of time: "8 s", "12 min", "3 h 5 min", "2 d 4 h"."""
    whole = max(0, round(seconds))
    if whole < 100:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 100:
        return f"{minutes} min"
    if minutes < 2 * 1440:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"


def described(progress: Progress, now: float) -> dict[str, Any]:
    """Return what the header of the page shows of a run; `now` is in seconds since 1970."""
    stands = standing(progress, now)
    cells, alive = progress.cells, stands == "running"
    left = progress.left_s if alive else None
    numbers = {
        "cells done": f"{cells.done:,} of {cells.total:,}",
        "cells failed": f"{cells.failed:,}",
        "tasks running": f"{progress.n_running:,}" if alive else "-",
        "time left": f"about {span(left - (now - progress.updated))}" if left is not None else "-",
    }
    running = [(task.what, span(now - task.started)) for task in progress.running] if alive else []
    return {
        "standing": stands,
        "sentence": sentence(progress, now),
        "numbers": numbers,
        "done": cells.done,
        "failed": cells.failed,
        "total": cells.total,
        "running": running,
        "more_running": max(0, progress.n_running - len(running)) if alive else 0,
        "failures": [(failed.what, failed.status, failed.message) for failed in progress.failures],
        "more_failures": max(0, cells.failed - len(progress.failures)),
    }


def sentence(progress: Progress, now: float) -> str:
    """Return one or two sentences on how a run stands."""
    stands = standing(progress, now)
    process = f"process {progress.pid} on {progress.host}"
    lasted = span(progress.updated - progress.started)
    silence = span(now - progress.updated)
    tasks = f"{progress.tasks.done + progress.tasks.failed:,} of {progress.tasks.total:,} folds and cells"
    if stands == "running":
        held = f" No word for {silence}: a fit keeps it from writing." if now - progress.updated > SILENT_S else ""
        return f"Running for {span(now - progress.started)} ({process}): {tasks}.{held}"
    if stands == "silent":
        return f"No word for {silence} from {process}: it was killed, or a fit keeps it from writing."
    if stands == "killed":
        return f"The run is gone: {process} was killed after {lasted}, {silence} ago at the most. {AGAIN}"
    if stands == "interrupted":
        why = f" {progress.message}" if progress.message else ""
        return f"The run was stopped after {lasted}, {silence} ago.{why} {AGAIN}"
    again = " Run the same command again to try the failed cells once more." if progress.cells.failed else ""
    return f"The run has ended after {lasted}, {silence} ago.{again}"
