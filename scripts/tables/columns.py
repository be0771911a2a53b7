"""Tables of the documentation: excerpts of reports, and the columns of results files."""

from __future__ import annotations

from pathlib import Path

from klr_bench.metrics.labels import METRICS
from klr_bench.report.load import read_results
from klr_bench.report.render.document import Grid, pipe_table
from klr_bench.report.render.layout import document
from klr_bench.report.table import results_table
from klr_bench.results.record import COLUMNS, IDENTITY, RELIABILITY_COLUMNS, ROWS_COLUMNS, TRACE_COLUMNS

UNITS = {"percent": "fraction", "count": "", "s": "s", "MB": "MB", "small": "", "": ""}
"""Units in records.csv, by printed unit."""
IDENTITY_MEANS = {
    "key": "hash of everything that the result depends on; the cell is stored in `cells/<key>.json`",
    "experiment": "name of the experiment",
    "dataset": "name of the data set; for your own file, its stem and 6 digits of its hash",
    "algorithm": "name of the algorithm, the stem of its YAML file",
    "variant": "values of the swept parameters, as JSON",
    "params": "selected and swept parameters of the fit, as JSON",
    "repeat": "number of the repeat, from 0",
    "seed": "seed of the run",
    "status": "`ok`, `timeout`, `error` or `killed`",
    "message": "error message",
    "host": "name of the machine",
    "cpu": "processor, kernels of the linear algebra library, and number of threads",
}
METRICS_MEAN = {
    "accuracy": "fraction of correctly classified test rows",
    "error_rate": "1 - accuracy",
    "balanced_accuracy": "mean recall over the classes",
    "f1": "2 tp / (2 tp + fp + fn) of the positive class, or the mean over several classes",
    "last_accuracy": "accuracy of the last classifier, beside an average",
    "mistake_rate": "training rows with y f(x) <= 0 before the update on them",
    "log_loss": "mean of -log P(y given x)",
    "brier": "mean of (P(positive) - [y is positive])², summed over several classes",
    "ece": "expected calibration error over 15 bins of the predicted probability",
    "auc": "area under the ROC curve; of several classes the mean, each versus the rest",
    "average_precision": "area under the precision-recall curve, as a step function",
    "sparsity": "1 - support vectors / training rows",
    "n_support": "number of support vectors",
    "last_n_support": "support vectors of the last classifier, if fewer",
    "n_updates": "training rows at which the learner made an update",
    "n_selected": "number of features with a non-zero weight",
    "relevant_found": "relevant features that were selected, of generated data",
    "pass_time_s": "time of the pass over the rows, without preparations",
    "fit_time_s": "time of `fit`",
    "predict_time_s": "time to predict the test rows",
    "nonzero_fraction": "fraction of non-zero coefficients",
    "n_iter": "iterations, or passes over the rows",
    "objective": "value of the function that the learner minimizes",
    "duality_gap": "upper bound of objective - minimum, divided by the objective",
    "cumulative_loss": "sum of the losses at the training rows, before the updates on them",
    "cumulative_h": "the same sum for the upper bound h of the loss (`AuxiliaryKLR`)",
    "norm": "norm of the learned function",
    "kernel_error": "largest error of random features over pairs of rows",
    "peak_memory_mb": "peak memory of the worker process during the fit",
    "load": "share of the machine used by other processes at the start",
    "n_train": "number of training rows",
    "n_test": "number of test rows",
    "n_features": "columns of X, after texts became columns of 0 and 1",
    "nnz_per_instance": "mean number of non-zero entries per row",
}


def records_columns(_: Path) -> dict[str, str]:
    """Return the tables that describe the columns of records.csv."""
    metrics = [METRICS[name] for name in COLUMNS if name not in IDENTITY]
    measured = [
        [f"`{metric.name}`", METRICS_MEAN[metric.name], UNITS[metric.unit], metric.better] for metric in metrics
    ]
    identity = [[f"`{name}`", IDENTITY_MEANS[name]] for name in IDENTITY]
    return {
        "identity": _raw(["column", "meaning"], identity),
        "columns": _raw(["column", "meaning", "unit", "better"], measured),
    }


def other_columns(_: Path) -> dict[str, str]:
    """Return the table of the columns of the other files."""
    files = {"traces": TRACE_COLUMNS, "reliability": RELIABILITY_COLUMNS, "rows": ROWS_COLUMNS}
    rows = [[f"`{name}.csv`", ", ".join(f"`{column}`" for column in columns)] for name, columns in files.items()]
    return {"other_columns": _raw(["file", "columns"], rows)}


def _raw(header: list[str], rows: list[list[str]]) -> str:
    """Return a pipe table from cells of Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows])


def _unbroken(table: str) -> str:
    """Return a table with non-breaking spaces around plus-minus signs."""
    return table.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def part(name: str, folder: Path, columns: tuple[str, ...], dataset: str | None = None) -> dict[str, str]:
    """Return some columns of the report of a results folder, for one data set, by name."""
    built = results_table(read_results(folder), columns=columns)
    (grid,) = [grid for grid in document(built).grids if dataset in (None, grid.header[0])]
    return {name: _unbroken(pipe_table(grid))}


def quickstart(folder: Path) -> dict[str, str]:
    """Return the table of the quickstart on the digits, without times."""
    return part("quickstart", folder, ("accuracy", "log_loss", "sparsity", "n_support"), "Digits")


def magic(folder: Path) -> dict[str, str]:
    """Return the rows of three learners on MAGIC with the published values."""
    table = results_table(read_results(folder), columns=("accuracy", "n_support"))
    (grid,) = document(table).grids
    ours = [n for n, row in enumerate(grid.rows) if n not in grid.papers and row[0].startswith(("Base", "OSKL"))]
    indices = sorted([*ours, *(n + 1 for n in ours)])
    papers = [new for new, old in enumerate(indices) if old in grid.papers]
    return {"magic": _unbroken(pipe_table(Grid(grid.header, [grid.rows[i] for i in indices], papers, [])))}


def own_file(folder: Path) -> dict[str, str]:
    """Return the table of the example file of customers, without times and calibration."""
    return part("own", folder, ("accuracy", "balanced_accuracy", "auc", "log_loss", "n_support"))
