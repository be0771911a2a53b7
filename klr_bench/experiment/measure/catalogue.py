"""The names, units, directions and formats of all metrics; records, selection, tables and figures read them.

None of this is part of a cache key, unlike the functions, which are in `compute`.  Nothing heavy is imported here.
A further metric of predictions is a file, see `user_metrics`; a function added here would be measured by all cells.
"""

from __future__ import annotations

from klr_bench.experiment.measure import compute
from klr_bench.experiment.measure.metric import Metric

MOST = 1e10
"""Of seconds, three hundred years, and of megabytes."""

CATALOGUE = (
    Metric("accuracy", "Accuracy", "percent", "higher", usual=True, low=0, high=1, of=compute.accuracy),
    Metric("error_rate", "Error rate", "percent", "lower", low=0, high=1, of=compute.error_rate),
    Metric("balanced_accuracy", "Balanced accuracy", "percent", "higher", low=0, high=1, of=compute.balanced_accuracy),
    Metric("f1", "F1", "percent", "higher", low=0, high=1, of=compute.f1),
    Metric("last_accuracy", "Last accuracy", "percent", "higher", usual=True, low=0, high=1),
    # Of the training rows, each before the learner has seen it.
    Metric("mistake_rate", "Mistakes", "percent", "lower", low=0, high=1),
    Metric("log_loss", "Log loss", "", "lower", usual=True, low=0, of=compute.log_loss),
    Metric("brier", "Brier score", "", "lower", low=0, high=2, of=compute.brier),
    Metric("ece", "ECE", "", "lower", low=0, high=1, of=compute.ece),
    Metric("auc", "AUC", "", "higher", low=0, high=1, of=compute.auc),
    Metric("average_precision", "Average precision", "", "higher", low=0, high=1, of=compute.average_precision),
    Metric("sparsity", "Sparsity", "percent", "higher", usual=True, low=0, high=1),
    # The papers print no spread of these: it is that of the sparsity, which carries the mark.
    Metric("n_support", "Support vectors", "count", "lower", "", usual=True, whole=True, low=0),
    Metric("last_n_support", "Last support vectors", "count", "lower", "", whole=True, low=0),
    Metric("n_updates", "Updates", "count", "", "", whole=True, low=0),
    Metric("n_selected", "Features", "count", "", "", whole=True, low=0),
    Metric("relevant_found", "Relevant found", "percent", "higher", "", low=0, high=1),
    Metric("setup_time_s", "Before the pass", "s", "lower", "ratio", stored=False),
    Metric("pass_time_s", "Pass alone", "s", "lower", "ratio", usual=True, low=0, high=MOST),
    Metric("fit_time_s", "Training time", "s", "lower", "ratio", usual=True, low=0, high=MOST),
    Metric("predict_time_s", "Prediction time", "s", "lower", "ratio", low=0, high=MOST),
    Metric("settled_s", "Settled after", "s", "lower", "", usual=True, stored=False),
    Metric("nonzero_fraction", "Non-zero", "percent", "lower", low=0, high=1),
    Metric("n_iter", "Iterations", "count", "lower", "", whole=True, low=0),
    Metric("objective", "Objective", "", "lower", ""),
    Metric("duality_gap", "Gap", "small", "lower", ""),
    # Of the logistic losses at the training rows, each before the learner has seen the row.
    Metric("cumulative_loss", "Cumulative loss", "", "lower", "", low=0),
    Metric("cumulative_h", "Cumulative h", "", "lower", "", low=0),  # of Auxiliary's upper bound h of that loss
    Metric("norm", "Norm of f", "", "", "", low=0),
    Metric("kernel_error", "Kernel error", "", "lower", "", low=0),  # the largest over pairs of rows
    Metric("peak_memory_mb", "Peak memory", "MB", "lower", "", low=0, high=MOST),
    Metric("load", "Used by others", "percent", "lower", "", low=0, high=1),  # of the machine, when the fit began
    Metric("n_train", "Training rows", "count", "", "", whole=True, low=0),
    Metric("n_test", "Test rows", "count", "", "", whole=True, low=0),
    Metric("n_features", "Columns of X", "count", "", "", whole=True, low=0),
    Metric("nnz_per_instance", "Non-zero per row", "", "", "", low=0),
    Metric("accuracy_gain", "Gain", "percent", "higher", stored=False, compares="accuracy"),
    Metric("n_iter_ratio", "Iterations ratio", "percent", "lower", stored=False, compares="n_iter"),
    Metric("log_loss_ratio", "Log loss ratio", "percent", "lower", "", stored=False, compares="log_loss"),
)
METRICS = {metric.name: metric for metric in CATALOGUE}
OF_PREDICTIONS = tuple(metric for metric in CATALOGUE if metric.of is not None)
SCORES = tuple(metric.name for metric in OF_PREDICTIONS if metric.better)
"""Shipped metrics that selection can choose by."""
