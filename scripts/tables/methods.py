"""Tables of docs/methods/index.md: cost and quality of each method, from results/reference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from markup import table, two_digits

from klr_bench.report.load import Results, read_results
from klr_bench.report.manifest import Manifest
from klr_bench.report.statistics.across import DIGITS, ranks, wilcoxon

SIGNIFICANT = 0.05
"""Two methods differ significantly if Wilcoxon's p-value, adjusted by Holm, is smaller."""
ABOUT = 250
"""Approximate number of selected features in the table of feature selection."""
BUDGET = 414
"""Number of support vectors or features in the table of learners with a budget."""
TITLES = {"magic": "MAGIC", "adult": "Adult", "ijcnn1": "IJCNN1", "cod_rna": "cod-rna", "covtype": "Covertype"}
OURS = ("oskl_default", "auxiliary_default", "dcd_default", "prototype_default")
OTHERS = ("gradient_boosting", "lr_linear", "svc")
LAST_ALONE = ("bsgd_merging", "fogd")
"""Learners of `budget_all` without an averaged classifier."""
SHOWN = 8
"""Number of learners in the table of small data."""


def choose(reference: Path) -> dict[str, str]:
    """Return the tables of the page by name."""
    return {
        "support": _support(reference / "budget_all"),
        "fixed_budget": _fixed_budget(reference / "budget_all"),
        "endless": _endless(reference / "stream_covtype"),
        "probabilities": _probabilities(reference / "defaults"),
        "linear": _each(reference / "cw_covtype", "covtype_450k", by="accuracy"),
        "classes": _each(reference / "oskl_mnist", "mnist", by="log_loss"),
        "selected": _selected(reference / "sbcw_rcv1"),
        "small": _small(reference / "many_small"),
    }


@cache
def results_and_means(folder: Path) -> tuple[Results, pd.DataFrame]:
    """Return the results of an experiment and the means of successful fits over the repeats."""
    results = read_results(folder)
    records = results.records[results.records["status"] == "ok"]
    return results, records.groupby(["dataset", "algorithm", "variant"], sort=False).mean(numeric_only=True)


def means_of(folder: Path) -> pd.DataFrame:
    """Return the means of successful fits over the repeats, by data set, algorithm and variant."""
    return results_and_means(folder)[1]


def label_of(manifest: Manifest, algorithm: str, variant: Mapping[str, object]) -> str:
    """Return the label of a learner with a budget."""
    return manifest.algorithm_label(algorithm) + (", refit" if variant.get("refit") else "")


def _number(value: float, form: str) -> str:
    return "-" if math.isnan(value) else f"{value:{form}}"


def _percent(value: float) -> str:
    return _number(100 * value, ".1f")


def _support(folder: Path) -> str:
    """Return results of learners whose number of support vectors depends on the data."""
    results, means = results_and_means(folder)
    rows = []
    for dataset in ("magic", "adult"):
        for (_, algorithm, variant), values in means.loc[[dataset]].iterrows():
            if algorithm in ("nc", "oskl"):
                label = "NC, every row" if algorithm == "nc" else f"OSKL, G = {variant['G']}"
                rows.append(
                    [
                        results.manifest.dataset_label(dataset),
                        label,
                        f"{values['n_support']:,.0f}",
                        _percent(values["accuracy"]),
                        f"{values['log_loss']:.3f}",
                        two_digits(values["fit_time_s"]),
                    ]
                )
    rows.sort(key=lambda row: (row[0], -int(row[2].replace(",", ""))))
    return table(["data set", "learner", "support vectors", "accuracy, %", "log loss", "s"], rows, 2)


def _fixed_budget(folder: Path) -> str:
    """Return the learners with a budget on MAGIC, sorted by accuracy of the last classifier."""
    results, means = results_and_means(folder)
    rows = []
    for (_, algorithm, variant), values in means.loc[["magic"]].iterrows():
        if BUDGET not in (variant.get("budget"), variant.get("n_components")):
            continue
        alone = algorithm in LAST_ALONE
        last = values["accuracy"] if alone else values["last_accuracy"]
        rows.append(
            [
                label_of(results.manifest, algorithm, variant),
                f"`{algorithm}`",
                last,
                "-" if alone else _percent(values["accuracy"]),
                _number(values["n_support"], ",.0f"),
                two_digits(values["fit_time_s"]),
            ]
        )
    rows.sort(key=lambda row: -row[2])
    head = ["learner", "key", "last, %", "average, %", "support vectors of the averaged classifier", "s"]
    return table(head, [[*row[:2], _percent(row[2]), *row[3:]] for row in rows], 2)


def _endless(folder: Path) -> str:
    """Return the progressive results of learners on Covertype, in the order of its file."""
    results, means = results_and_means(folder)
    rows = []
    for (_, algorithm, variant), values in means.iterrows():
        kind = {True: ", average", False: ", last"}.get(variant.get("average"), "")
        rows.append(
            [
                results.manifest.algorithm_label(algorithm) + kind,
                f"`{algorithm}`",
                _percent(values["accuracy"]),
                _number(values["log_loss"], ".3f"),
                _number(values["n_support"], ",.0f"),
                two_digits(values["fit_time_s"]),
                f"{values['peak_memory_mb']:,.0f}",
            ]
        )
    head = ["learner", "key", "accuracy, %", "log loss", "support vectors", "learning, s", "MB"]
    return table(head, rows, 2)


def _probabilities(folder: Path) -> str:
    """Return log loss and calibration of default estimators, means over complete data sets."""
    results, means = results_and_means(folder)
    measured = means.reset_index("variant", drop=True)[["log_loss", "ece"]].unstack("algorithm")
    names = [*OURS, *(name for name in OTHERS if name != "svc")]
    complete = measured[[(metric, name) for metric in ("log_loss", "ece") for name in names]].dropna()
    rank = complete["log_loss"].rank(axis=1).mean()
    rows = [
        [
            results.manifest.algorithm_label(name),
            f"{rank[name]:.1f}",
            f"{complete['log_loss'][name].mean():.3f}",
            _percent(complete["ece"][name].mean()),
        ]
        for name in sorted(names, key=rank.get)
    ]
    head = [f"{len(complete)} data sets", "average rank of log loss", "mean log loss", "mean calibration error, %"]
    return table(head, rows, 1)


def _each(folder: Path, dataset: str, by: str) -> str:
    """Return all learners of an experiment on a data set, the best first."""
    results, means = results_and_means(folder)
    ordered = means.loc[[dataset]].sort_values([by, "accuracy"], ascending=[by == "log_loss", False])
    columns = {
        "accuracy": ("accuracy, %", _percent),
        "log_loss": ("log loss", lambda value: _number(value, ".3f")),
        "n_support": ("support vectors", lambda value: _number(value, ",.0f")),
        "fit_time_s": ("s", two_digits),
        "peak_memory_mb": ("MB", "{:,.0f}".format),
    }
    shown = {name: column for name, column in columns.items() if ordered[name].notna().any()}
    rows = [
        [
            results.manifest.algorithm_label(algorithm) + "".join(f", {key}={value}" for key, value in variant.items()),
            f"`{algorithm}`",
            *(form(values[name]) for name, (_, form) in shown.items()),
        ]
        for (_, algorithm, variant), values in ordered.iterrows()
    ]
    return table(["learner", "key", *(head for head, _ in shown.values())], rows, 2)


def _selected(folder: Path) -> str:
    """Return the fit of each learner whose number of features is closest to ABOUT."""
    results, means = results_and_means(folder)
    rows = []
    for algorithm, values in means.groupby("algorithm", sort=False):
        nearest = values.iloc[(values["n_selected"] - ABOUT).abs().argmin()]
        rows.append(
            [
                results.manifest.algorithm_label(algorithm),
                f"`{algorithm}`",
                f"{nearest['n_selected']:,.0f}",
                nearest["accuracy"],
                two_digits(nearest["fit_time_s"]),
            ]
        )
    rows.sort(key=lambda row: -row[3])
    head = ["learner", "key", "features", "accuracy, %", "s"]
    return table(head, [[*row[:3], _percent(row[3]), row[4]] for row in rows], 2)


def _small(folder: Path) -> str:
    """Return the average ranks over many small data sets, sorted by accuracy."""
    results, means = results_and_means(folder)
    means = means.reset_index("variant", drop=True)
    accuracy = means["accuracy"].unstack("algorithm").dropna(axis=1)
    rank = pd.Series(ranks(accuracy), accuracy.columns).sort_values()
    p = pd.Series(wilcoxon(accuracy).p_holm[accuracy.columns.get_loc(rank.index[0])], accuracy.columns)
    losses = means["log_loss"].unstack("algorithm").dropna(axis=1)
    of_loss = pd.Series(ranks(-losses), losses.columns)
    middle = means.groupby("algorithm")[["n_support", "fit_time_s"]].median()
    rows = [
        [
            results.manifest.algorithm_label(name),
            f"`{name}`",
            f"{rank[name]:.1f}",
            "yes" if p[name] < SIGNIFICANT else "no",
            _number(of_loss.get(name, math.nan), ".1f"),
            _number(middle.loc[name, "n_support"], ",.0f"),
            f"{1000 * middle.loc[name, 'fit_time_s']:.1f}",
        ]
        for name in rank.index[:SHOWN]
    ]
    head = [f"{len(accuracy)} data sets", "key", "rank of accuracy", "differs from the best", "rank of log loss"]
    return table([*head, "support vectors", "ms"], rows, 2)


def winners(folder: Path) -> dict[str, str]:
    """Return the table of the data sets on which each default estimator is the best."""
    results, means = results_and_means(folder)
    means = means.reset_index("variant", drop=True)
    accuracy, loss, time = (means[metric].unstack("algorithm") for metric in ("accuracy", "log_loss", "fit_time_s"))
    names = [*OURS, *OTHERS]
    accuracy, loss = accuracy[names].round(DIGITS), loss[names].round(DIGITS)  # of equal values all are best
    best, least = accuracy.eq(accuracy.max(axis=1), axis=0), loss.eq(loss.min(axis=1), axis=0)

    def sets(is_first: pd.DataFrame, name: str) -> str:
        won = sorted(results.manifest.dataset_label(dataset) for dataset in is_first.index[is_first[name]])
        return f"{len(won)}: {'; '.join(won)}" if won else "0"

    rows = [
        [
            results.manifest.algorithm_label(name),
            two_digits(float(np.nanmedian(time[name]))),
            sets(best, name),
            "-" if loss[name].isna().all() else sets(least, name),
        ]
        for name in names
    ]
    grid = table(["", "median s", "highest accuracy", "lowest log loss"], rows, 4)
    without = [
        f"{results.manifest.algorithm_label(name)} has no result on {results.manifest.dataset_label(dataset)}."
        for name in names
        for dataset in accuracy.index[accuracy[name].isna()]
    ]
    return {"winners": f"{grid}\n\n{' '.join(without)}".rstrip()}
