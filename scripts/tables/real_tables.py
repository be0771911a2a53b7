"""Tables of docs/results.md: KLR and others on real tables, from results/reference/tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from comparison import Point, scatter
from markup import table, two_digits
from methods import SIGNIFICANT

from klr_bench.config.presentation import LookConfig
from klr_bench.report.load import read_results
from klr_bench.report.manifest import Manifest
from klr_bench.report.statistics.across import friedman, nemenyi, ranks, wilcoxon
from klr_bench.report.statistics.paired import corrected_interval

KLR = "klr"
PLAIN = LookConfig(color="black", marker="x")
"""Look of a method whose file has none."""


def _by_metric(folder: Path) -> tuple[dict[str, pd.DataFrame], pd.Series, Manifest]:
    """Return means of each metric, medians of the support vectors, and the manifest."""
    results = read_results(folder)
    manifest, records = results.manifest, results.records
    records = records[records["status"] == "ok"]
    means = records.groupby(["dataset", "algorithm"], sort=False).mean(numeric_only=True)
    datasets = [name for name in manifest.config.datasets if name in means.index.get_level_values("dataset")]
    by_metric = {
        metric: means[metric].unstack().reindex(datasets)[[*manifest.config.algorithms]].dropna()
        for metric in ("log_loss", "accuracy", "ece", "fit_time_s", "n_train")
    }
    return by_metric, means["n_support"].groupby("algorithm").median(), manifest


def losses(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return log losses and seconds of fits by data set (rows) and algorithm (columns)."""
    by_metric, _, _ = _by_metric(folder)
    return by_metric["log_loss"], by_metric["fit_time_s"]


def real_tables(folder: Path) -> dict[str, str]:
    """Return average ranks, and KLR's log loss relative to those of other methods."""
    by_metric, n_support, manifest = _by_metric(folder)
    labels = {name: manifest.algorithm_label(name) for name in manifest.config.algorithms}
    n = by_metric["n_train"][KLR]
    rows = f"{n.min():,.0f} to {n.max():,.0f}, median {n.median():,.0f}"
    ranked = _ranks(by_metric, n_support, labels)
    return {
        "table_ranks": f"{ranked}\nRepeats: {manifest.config.repeats}. Training rows: {rows}.",
        "table_ratios": _ratios(by_metric["log_loss"], by_metric["fit_time_s"], labels),
    }


def tables_picture(folder: Path) -> bytes:
    """Return a picture of log loss, relative to that of KLR, against seconds of training."""
    by_metric, _, manifest = _by_metric(folder)
    loss, seconds = by_metric["log_loss"], by_metric["fit_time_s"].median()
    ratio = np.exp(np.log(loss.div(loss[KLR], axis=0)).mean())
    points = [
        Point(seconds[name], ratio[name], manifest.algorithm_label(name), manifest.presentation(name).look or PLAIN)
        for name in loss.columns
    ]
    return scatter(f"Medians and geometric means of {len(loss)} tables", "Log loss / log loss of KLR", points)


def _ranks(by_metric: dict[str, pd.DataFrame], n_support: pd.Series, labels: dict[str, str]) -> str:
    """Return average ranks over the tables, the best log loss first, and their tests."""
    loss, accuracy, ece, seconds = (by_metric[metric] for metric in ("log_loss", "accuracy", "ece", "fit_time_s"))
    rank, of_each = pd.Series(ranks(-loss), loss.columns).sort_values(), loss.rank(axis=1)
    of_accuracy = pd.Series(ranks(accuracy), accuracy.columns)
    p = pd.Series(wilcoxon(-loss).p_holm[loss.columns.get_loc(rank.index[0])], loss.columns)
    rows = []
    for name in rank.index:
        _, mean, low, high, _ = corrected_interval(100 * ece[name])
        _, _, first, last, _ = corrected_interval(of_each[name])
        rows.append(
            [
                labels[name],
                f"{rank[name]:.2f} [{max(first, 1):.1f}, {min(last, len(labels)):.1f}]",
                "yes" if p[name] < SIGNIFICANT else "no",
                f"{of_accuracy[name]:.2f}",
                f"{100 * accuracy[name].mean():.1f}",
                f"{mean:.1f} [{low:.1f}, {high:.1f}]",
                "-" if np.isnan(n_support[name]) else f"{n_support[name]:,.0f}",
                two_digits(seconds[name].median()),
            ]
        )
    head = [f"{len(loss)} tables", "rank of log loss", "differs from the first", "rank of accuracy", "accuracy, %"]
    test, distance = friedman(-loss), nemenyi(len(labels), len(loss))
    return (
        table([*head, "calibration error, %", "support vectors", "s"], rows, 1)
        + f"\n\np = {test.p:.2g} in Friedman's test that all methods have the same rank of log loss. Nemenyi's "
        f"critical difference\nof two ranks at 5 %: {distance:.2f}."
    )


def _ratios(loss: pd.DataFrame, seconds: pd.DataFrame, labels: dict[str, str]) -> str:
    """Return KLR's log loss and time divided by those of each other method."""
    rows = []
    for name in loss.columns.drop(KLR):
        logs = np.log(loss[KLR] / loss[name])
        _, *interval = corrected_interval(logs)
        mean, low, high = np.exp(interval[:3])
        rows.append(
            [
                labels[name],
                f"{mean:.3f} [{low:.3f}, {high:.3f}]",
                f"{np.exp(logs.median()):.3f}",
                f"{(logs < 0).sum()} of {len(logs)}",
                two_digits((seconds[KLR] / seconds[name]).median()),
            ]
        )
    head = ["KLR and", "log loss ratio, geometric mean", "median", "KLR lower on", "time ratio, median"]
    return table(head, rows, 1)
