"""A small results folder with all that any figure needs, made up, and what is left of it without one thing."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from klr_bench.report.figures import Inputs
from klr_bench.report.load import read_results
from klr_bench.report.table import results_table
from klr_bench.results.record import CellFile, Record
from klr_bench.results.variants import Variant
from tests.report.folders import write_cells

METRICS = {
    **{"accuracy": 0.8, "sparsity": 0.5, "n_support": 40.0, "fit_time_s": 0.5, "log_loss": 0.3, "ece": 0.02},
    **{"n_selected": 10.0, "relevant_found": 0.4, "nonzero_fraction": 0.1, "kernel_error": 0.05},
    "mistake_rate": 0.2,
}
TRACED = {
    **{"accuracy": 0.6, "n_support": 20.0, "objective": 3.0, "duality_gap": 0.1, "nonzero_fraction": 0.2},
    **{"log_loss": 0.5, "gamma": 1.0, "b0_0": 0.1, "cumulative_loss": 8.0},
    **{f"b_0_{j}": 1.0 - 2.0 * j for j in range(2)},
    **{f"u_{j}_{k}": j + 0.5 * k for j in range(2) for k in range(2)},
}
BINS = ((0, 50, 0.02, 0.04), (7, 10, 0.5, 0.4), (14, 40, 0.99, 0.95))
ROWS = ((0.0, 0.0, -1), (1.0, 0.2, 1), (0.3, 1.0, -1), (0.8, 0.9, 1))
PARAMETERS = {
    **{"aux_gamma": (1.0, 2.0), "lam": (0.1, 0.2), "n_prototypes": (2, 4), "n_features_to_select": (5, 10)},
    **{"n_components": (50, 100)},
}


def cell(
    algorithm: str = "nc",
    variant: Mapping[str, Any] | None = None,
    *,
    dataset: str = "magic",
    repeat: int = 0,
    status: str = "ok",
    metrics: Mapping[str, float] = METRICS,
    traced: Mapping[str, float] | None = None,
    **stored: Any,
) -> CellFile:
    """Return one fit; `traced` are its numbers at two checkpoints, `stored` its bins and rows."""
    place = Variant(variant)
    key = sha256(repr((dataset, algorithm, place, repeat)).encode()).hexdigest()[:16]
    record = Record(key, "made", dataset, algorithm, place, {}, repeat, 0, status, "", dict(metrics))
    points = [(10 * k, 0.1 * k, name, value * k / 2) for k in (1, 2) for name, value in (traced or {}).items()]
    return CellFile(record, f"{algorithm}-{place}", 1.0, points, **stored)


def write(folder: Path, cells: Iterable[CellFile], **config: Any) -> Path:
    """Write a results folder."""
    return write_cells(folder, cells, config, experiment="made")


def read(folder: Path) -> Inputs:
    """Return what figures are drawn from."""
    results = read_results(folder)
    return Inputs(results_table(results), results.records, results.traces, results.reliability, results.rows)


def inputs(folder: Path, *cells: CellFile, **config: Any) -> Inputs:
    """Return what figures of these fits are drawn from."""
    return read(write(folder, cells, **config))


def everything(folder: Path, without: tuple[str, str] = ("", ""), **config: Any) -> Inputs:
    """Return inputs of which each figure can be drawn, but for one thing, such as ("metrics", "accuracy")."""
    kind, name = without
    values = {"parameter": PARAMETERS, "metrics": METRICS, "traces": TRACED}
    rest = {
        part: {key: value for key, value in of.items() if (part, key) != (kind, name)} for part, of in values.items()
    }
    cells = []
    for number in range(2):
        variant = {key: pair[number] for key, pair in rest["parameter"].items()}
        metrics = {key: (1 + 0.1 * number) * value for key, value in rest["metrics"].items()}
        bins, rows = () if kind == "bins" else BINS, () if kind == "rows" else ROWS
        cells.append(cell("all", variant, metrics=metrics, traced=rest["traces"], bins=bins, rows=rows))
    return inputs(folder, *cells, **config)
