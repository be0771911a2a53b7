"""What a run on a stream cannot have: its rows go by once, on one machine."""

from __future__ import annotations

import math

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.config.schema import LEFT_TO_SELECTION, Config


def check_streams(config: Config) -> None:
    """Refuse selection, other checkpoints and a cluster where a data set is a stream.  Raises KlrBenchError."""
    stem = next((stem for stem, spec in config.datasets.items() if "stream" in spec["split"]), None)
    if stem is None:
        return
    for name, algorithm in config.algorithms.items():
        swept = config.sweep.get(name, {})
        grid = {key: values for key, values in algorithm["grid"].items() if LEFT_TO_SELECTION in swept.get(key, ["cv"])}
        if (n_candidates := math.prod(map(len, grid.values()))) > 1:
            message = (
                f"algorithms.{name}.grid: {n_candidates} combinations of values to choose from, but the rows of the "
                f"data set {stem} go by once. Add algorithms.{name}.grid=null, and give values one by one, as in "
                f"algorithms.{name}.estimator.{next(iter(grid))}=VALUE, or side by side by sweep.{name}."
            )
            raise KlrBenchError(message)
    if config.trace.points:
        message = (
            f"trace.points={config.trace.points}: has no effect on the data set {stem}, a stream, which has a "
            f"checkpoint for each window. Leave it out, and see datasets.{stem}.split.window."
        )
        raise KlrBenchError(message)
    if config.parallel.backend == "dask":
        message = f"parallel=dask: the data set {stem}, a stream, is read on one machine. Leave parallel=dask out."
        raise KlrBenchError(message)
