"""A small experiment with two algorithms on one data set, run in this process."""

from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from klr_bench import runner
from klr_bench.config.models import DataConfig, ParallelConfig, RunConfig, SelectionConfig
from klr_bench.runner.plan import Cell, plan_cells
from tests.config.composing import altered

SYNTHETIC = "klr_bench.datasets.synthetic"
MOONS = {"_target_": f"{SYNTHETIC}.moons", "n_samples": 300, "noise": 0.3, "seed": 0}


def made(generator: dict[str, Any]) -> dict[str, Any]:
    """Return the specification of a generated data source."""
    return {"format": "generated", "generator": generator}


SMALL = {"label": "Small", "source": made(MOONS), "split": {"test_size": 0.2}}


def algorithm(target: str, grid: Any = None, time_limit_s: float | None = None, **parameters: Any) -> dict[str, Any]:
    estimator = {"_target_": target, **parameters}
    return {"label": target, "estimator": estimator, "grid": grid or {}, "time_limit_s": time_limit_s}


NC = algorithm("klr_bench.NonConservativeKLR", {"R": [1.0, 100.0], "eta": [0.1, 1.0]})
OSKL = algorithm("klr_bench.OSKL", {"R": [1.0, 100.0]}, loss="logit")


def small_config(folder: Path, **changes: Any) -> RunConfig:
    """Return the configuration of `tiny`, with results and cache in `folder`."""
    places = {"results_dir": str(folder / "results"), "data": DataConfig(cache=str(folder / "cache"))}
    how = {"parallel": ParallelConfig(backend="serial"), "selection": SelectionConfig(folds=3), "repeats": 2}
    what = {"datasets": {"small": SMALL}, "algorithms": {"nc": NC, "oskl": OSKL}, "sweep": {"oskl": {"G": [1, 4]}}}
    tiny = RunConfig(name="tiny", **places, **how, **what)
    return altered(tiny, **changes)


def run(config: RunConfig, **options: Any) -> tuple[runner.Outcome, str]:
    """Return the outcome of a run and its console output."""
    console = Console(record=True, width=300, file=open("/dev/null", "w"))  # noqa: SIM115
    return runner.run(config, console=console, **options), console.export_text()


def table(config: RunConfig, name: str = "records") -> pd.DataFrame:
    """Return a results table of `tiny`."""
    return pd.read_csv(Path(config.results_dir) / "tiny" / f"{name}.csv", keep_default_na=name != "records")


def only_cell(config: RunConfig, **changes: Any) -> Cell:
    """Return the cell of the first algorithm in the first repeat."""
    changed = altered(config, algorithms={"nc": NC}, sweep={}, repeats=1)
    return plan_cells(altered(changed, **changes), Path("cache"))[0]
