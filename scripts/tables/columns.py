"""Tables of the documentation that are parts of reports, and those of the columns of a results folder."""

from __future__ import annotations

from pathlib import Path

from klr_bench.metrics.labels import METRICS
from klr_bench.report.load import read_results
from klr_bench.report.render.document import Grid, pipe_table
from klr_bench.report.render.layout import document
from klr_bench.report.table import results_table
from klr_bench.results.record import COLUMNS, IDENTITY, RELIABILITY_COLUMNS, ROWS_COLUMNS, TRACE_COLUMNS

UNITS = {"percent": "fraction, 0 to 1", "count": "number", "s": "s", "MB": "MB", "small": "", "": ""}
"""The units of records.csv by those of print."""
IDENTITY_MEANS = {
    "key": "hash of all that the result depends on; the cell is `cells/<key>.json`",
    "experiment": "name of the experiment",
    "dataset": "name of the data set; of a file of your own its stem and 6 digits of its hash",
    "algorithm": "name of the algorithm, the stem of its YAML file",
    "variant": "the values of the sweep that this fit has, as JSON",
    "params": "parameters of the fit, the selected ones and those of the sweep, as JSON",
    "repeat": "number of the repeat, from 0",
    "seed": "seed of the run",
    "status": "`ok`, `timeout`, `error` or `killed`",
    "message": "what went wrong",
    "host": "name of the machine",
    "cpu": "its processor, the kernels of its linear algebra, and its threads",
}
METRICS_MEAN = {
    "accuracy": "share of test rows that are classified correctly",
    "error_rate": "1 - accuracy",
    "balanced_accuracy": "mean over the classes of the share of their rows that are classified correctly",
    "f1": "2 tp / (2 tp + fp + fn) of the positive class; of more classes their mean",
    "last_accuracy": "accuracy of the last classifier, where the average one is tested as well",
    "mistake_rate": "share of training rows with y f(x) <= 0, each before the learner has seen it",
    "log_loss": "mean of -log P(y given x)",
    "brier": "mean of (P(positive) - [y is positive])²; of more classes summed over them",
    "ece": "expected calibration error over 15 bins of the predicted probability",
    "auc": "area under the ROC curve; of more classes the mean of each against the rest",
    "average_precision": "area under the curve of precision against recall, as steps",
    "sparsity": "1 - support vectors / training rows",
    "n_support": "support vectors of the classifier",
    "last_n_support": "support vectors of the last classifier, where the average one has more",
    "n_updates": "training rows at which the learner made an update",
    "n_selected": "features with a weight that is not 0",
    "relevant_found": "of generated data, share of the relevant features that were selected",
    "pass_time_s": "time of the pass alone, without what is done before it",
    "fit_time_s": "time of `fit`",
    "predict_time_s": "time to predict the test rows",
    "nonzero_fraction": "share of the coefficients that are not 0",
    "n_iter": "iterations, or passes over the rows",
    "objective": "value of the function that the learner minimises",
    "duality_gap": "upper bound of how far the objective is above its minimum",
    "cumulative_loss": "sum of the logistic losses at the training rows, each before the learner has seen the row",
    "cumulative_h": "the same of the upper bound h of the loss (`AuxiliaryKLR`)",
    "norm": "norm of the learned function",
    "kernel_error": "largest difference between random features and the kernel over pairs of rows",
    "peak_memory_mb": "largest memory of the worker process during the fit",
    "load": "share of the machine that others used when the fit began",
    "n_train": "training rows",
    "n_test": "test rows",
    "n_features": "columns of X, after texts became columns of 0 and 1",
    "nnz_per_instance": "mean number of entries of a row that are not 0",
}


def records_columns(_: Path) -> dict[str, str]:
    """Return the tables of the columns of records.csv; each column must have its meaning above."""
    metrics = [METRICS[name] for name in COLUMNS if name not in IDENTITY]
    measured = [[f"`{one.name}`", METRICS_MEAN[one.name], UNITS[one.unit], one.better] for one in metrics]
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
    """Return a pipe table of texts that are Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows])


def _unbroken(table: str) -> str:
    """Return a table whose means and deviations stay on one line."""
    return table.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def part(name: str, folder: Path, columns: tuple[str, ...], dataset: str | None = None) -> dict[str, str]:
    """Return the report's table of some columns of a results folder, of one data set, by a name."""
    built = results_table(read_results(folder), columns=columns)
    (grid,) = [one for one in document(built).grids if dataset in (None, one.header[0])]
    return {name: _unbroken(pipe_table(grid))}


def quickstart(folder: Path) -> dict[str, str]:
    """Return the quickstart's table of the digits, without times."""
    return part("quickstart", folder, ("accuracy", "log_loss", "sparsity", "n_support"), "Digits")


def magic(folder: Path) -> dict[str, str]:
    """Return the lines of three learners on MAGIC beside the paper's numbers."""
    table = results_table(read_results(folder), columns=("accuracy", "n_support"))
    (whole,) = document(table).grids
    kept = [n for n, row in enumerate(whole.rows) if n not in whole.papers and row[0].startswith(("Base", "OSKL"))]
    places = sorted([*kept, *(n + 1 for n in kept)])
    papers = [new for new, old in enumerate(places) if old in whole.papers]
    return {"magic": _unbroken(pipe_table(Grid(whole.header, [whole.rows[place] for place in places], papers, [])))}


def own_file(folder: Path) -> dict[str, str]:
    """Return the table of the made-up customers, without times and calibration."""
    return part("own", folder, ("accuracy", "balanced_accuracy", "auc", "log_loss", "n_support"))
