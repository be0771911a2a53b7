"""Tables of docs: learners with default parameters, and learners with a budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from methods import LAST_ALONE, OURS, label_of, results_and_means, winners

from klr_bench.report.labels import column_label
from klr_bench.report.render.document import Grid, pipe_table

SIZES = {10: 414, 4: 962, 2: 1821, 1: 3443}
"""Support vectors of OSKL on MAGIC in the paper, by its G: the budgets of `budget_all`."""
SHOWN = (SIZES[10], SIZES[1])
"""Sizes in the table."""
NEAR = {"alma": SIZES[1]}
"""Learners of `budget_all` without a budget, with the size in SIZES closest to their own."""
LARGE = 2000
"""Smallest number of training rows for a comparison of times."""


def defaults(folder: Path) -> dict[str, str]:
    """Return the summary of the experiment `defaults`, and the best methods of each data set."""
    results, means = results_and_means(folder)
    manifest, means = results.manifest, means.droplevel("variant")
    labels = {name: manifest.dataset_label(name) for name in manifest.config.datasets}
    names = {name: manifest.algorithm_label(name) for name in OURS}
    return {"verdict": pipe_table(_verdict(means, labels, names))} | winners(folder)


def _verdict(means: pd.DataFrame, labels: Mapping[str, str], names: Mapping[str, str]) -> Grid:
    """Return a comparison of our learners with SVC and linear logistic regression."""
    accuracy, loss = means["accuracy"].unstack(), means["log_loss"].unstack()
    times = means["fit_time_s"].unstack()[means["n_train"].unstack().max(axis=1) >= LARGE]
    rows = []
    for name in OURS:
        behind = (100 * (accuracy["svc"] - accuracy[name])).loc[list(labels)].dropna()
        ratio = (loss[name] / loss["lr_linear"]).loc[list(labels)].dropna()
        taken = (times[name] / times["svc"]).dropna()
        rows.append(
            [
                names[name],
                f"{(behind <= 1.0).sum()} of {len(behind)}",
                f"{behind.max():.1f} ({labels[behind.idxmax()]})",
                f"{(ratio <= 1.15).sum()} of {len(ratio)}",
                f"{taken.median():.2f}",
            ]
        )
    head = ["at most 1 point below SVC", "largest difference, points", "log loss at most 1.15 x LR's", "time / SVC's"]
    return Grid(["", *head], rows)


def budget_all(folder: Path) -> dict[str, str]:
    """Return the mean accuracies of the last and averaged classifier of learners with a budget."""
    results, all_means = results_and_means(folder)
    lines: dict[str, dict[tuple[str, int], str]] = {}
    for (dataset, algorithm, variant), means in all_means.iterrows():
        sizes = [size for size in (variant.get("budget"), variant.get("n_components"), NEAR.get(algorithm)) if size]
        sizes = sizes or [SIZES[variant["G"]]] if "G" in variant else sizes or [*SIZES.values()]
        label = label_of(results.manifest, algorithm, variant)
        last, average = means["last_accuracy"], means["accuracy"]
        both = (average, math.nan) if algorithm in LAST_ALONE else (last, average)
        text = " / ".join("-" if math.isnan(accuracy) else f"{100 * accuracy:.1f}" for accuracy in both)
        lines.setdefault(label, {}).update({(dataset, size): text for size in sizes})
    columns = [(dataset, size) for dataset in results.manifest.config.datasets for size in SHOWN]
    rows = [[label, *(texts.get(column, "") for column in columns)] for label, texts in lines.items()]
    head = ["learner", *(f"{results.manifest.dataset_label(dataset)}, {size:,}" for dataset, size in columns)]
    return {"budget_all": pipe_table(Grid(head, rows))}


def mistakes(folder: Path) -> dict[str, str]:
    """Return the table of mean mistake rates in percent, with one row per learner."""
    results, means = results_and_means(folder)
    means = means["mistake_rate"].unstack("dataset", sort=False)
    labels = [column_label(results.manifest.presentation(name), variant) for name, variant in means.index]
    rates = [[f"{100 * rate:.1f}" for rate in line] for line in means.to_numpy()]
    rows = [[label, *line] for label, line in zip(labels, rates, strict=True)]
    head = ["learner", *(results.manifest.dataset_label(name) for name in means.columns)]
    return {"mistakes": pipe_table(Grid(head, rows))}
