"""Every number that is measured of a fit, once: its name, unit, direction, how it is compared and printed.

Records, the command line, selection, tables and figures read it.  Nothing heavy is imported here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """One number of a fit.

    Parameters
    ----------
    name : the column of records.csv
    title : the heading of its column in a table
    unit : of print: "percent" (records hold fractions), "count", "s" (of a small time, min), "MB", "" for a plain
        number, "small" for one printed as 1.2e-05
    better : "higher", "lower", or "" where neither is
    compared : with a published number by "difference" (and a mark), by "ratio", or "" by the eye
    usual : whether a table shows it without being asked
    whole : whether it is a whole number
    stored : whether it is a column of records.csv; the others are made by a report
    compares : for a number that compares two columns of a table, the metric that it is made of
    """

    name: str
    title: str
    unit: str = ""
    better: str = ""
    compared: str = "difference"
    usual: bool = False
    whole: bool = False
    stored: bool = True
    compares: str = ""


CATALOGUE = (
    Metric("accuracy", "Accuracy", "percent", "higher", usual=True),
    Metric("error_rate", "Error rate", "percent", "lower"),
    Metric("last_accuracy", "Last accuracy", "percent", "higher", usual=True),
    Metric("log_loss", "Log loss", "", "lower", usual=True),
    Metric("brier", "Brier score", "", "lower"),
    Metric("ece", "ECE", "", "lower"),
    Metric("auc", "AUC", "", "higher"),
    Metric("sparsity", "Sparsity", "percent", "higher", usual=True),
    # The papers print no spread of these: it is that of the sparsity, which carries the mark.
    Metric("n_support", "Support vectors", "count", "lower", "", usual=True, whole=True),
    Metric("last_n_support", "Last support vectors", "count", "lower", "", whole=True),
    Metric("n_updates", "Updates", "count", "", "", whole=True),
    Metric("n_selected", "Features", "count", "", "", whole=True),
    Metric("relevant_found", "Relevant found", "percent", "higher", ""),
    Metric("pass_time_s", "Pass alone", "s", "lower", "ratio", usual=True),
    Metric("fit_time_s", "Training time", "s", "lower", "ratio", usual=True),
    Metric("predict_time_s", "Prediction time", "s", "lower", "ratio"),
    Metric("settled_s", "Settled after", "s", "lower", "", usual=True, stored=False),
    Metric("nonzero_fraction", "Non-zero", "percent", "lower"),
    Metric("n_iter", "Iterations", "count", "lower", "", whole=True),
    Metric("objective", "Objective", "", "lower", ""),
    Metric("duality_gap", "Gap", "small", "lower", ""),
    Metric("peak_memory_mb", "Peak memory", "MB", "lower", ""),
    Metric("n_train", "Training rows", "count", "", "", whole=True),
    Metric("n_test", "Test rows", "count", "", "", whole=True),
    Metric("n_features", "Columns of X", "count", "", "", whole=True),
    Metric("accuracy_gain", "Gain", "percent", "higher", stored=False, compares="accuracy"),
    Metric("n_iter_ratio", "Iterations ratio", "percent", "lower", stored=False, compares="n_iter"),
    Metric("log_loss_ratio", "Log loss ratio", "percent", "lower", "", stored=False, compares="log_loss"),
)
METRICS = {metric.name: metric for metric in CATALOGUE}
