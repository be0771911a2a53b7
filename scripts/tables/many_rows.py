"""Tables and figure of docs/scale: fits to increasing numbers of rows, and an estimate."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from comparison import ROWS, WORKERS, busy
from markup import table, two_digits
from matplotlib.figure import Figure
from methods import TITLES
from scale import duration

from klr_bench.estimators.batch.folds import MOST_TRAINING
from klr_bench.report.figures.core.drawing import STYLE, saved, scale_axis
from klr_bench.report.figures.core.plot import Axis

PICTURE = "many_rows.svg"
CORES = 16
"""Number of cores of the process that divides the rows, in the estimate."""
LOOKS = {
    "PartitionedKLR": ("p", "#D55E00"),
    "KLR": ("H", "#0072B2"),
    "NystroemKLR": ("^", "#56B4E9"),
    "DualCDKLR": ("D", "#56B4E9"),
    "LightGBM, 100 trees": ("x", "#009E73"),
    "LightGBM, 500 trees": ("P", "#009E73"),
    "LightGBM, 2,000 trees": ("X", "#009E73"),
    "HistGradientBoosting": ("v", "#7A5C00"),
    "RandomForest": ("s", "#666666"),
}
"""Marker and color of each method in the figure."""
USES = {
    "PartitionedKLR": ("more than about 100,000 rows, no settings", "rows"),
    "KLR": ("no settings; from 10,000 rows on it tries PartitionedKLR and NystroemKLR{times}", "rows"),
    "NystroemKLR": ("many rows whose classes vary slowly; dask", "rows, and the cube of the centers"),
    "DualCDKLR": ("known settings; tens of thousands of rows take seconds, more take long", "square of the rows"),
}
"""Purpose of each class of klr-bench, and what the time of a fit is proportional to; {times} is that of a choice."""
SIZES = Axis("n", "Training rows", logarithmic=True)
AXES = (
    Axis("log_loss", "Log loss of test rows", logarithmic=True),
    Axis("seconds", "Seconds of fit", logarithmic=True),
)


def many_rows(folder: Path) -> dict[str, str]:
    """Return the tables of log loss and seconds, of predictions, and of when to use which class."""
    data = pd.read_csv(folder / "many_rows.csv")
    picture = f"![Log loss and seconds of fits against the number of training rows]({PICTURE})"
    tables = [_losses(str(name), rows) for name, rows in data.groupby("dataset", sort=False)]
    notes = (
        f"Log loss of test rows, and seconds of `fit`, on {data['cpu'].iloc[0]}, with default settings except for the "
        f"number of trees and `max_support`. Methods without a number were not fitted to so many rows.{busy(data)}"
    )
    return {
        "many_rows": "\n\n".join([picture, *tables, notes]),
        "when": table(
            ["class", "use it for", "time is proportional to"],
            [[f"`{name}`", use.format(times=_times(data)), growth] for name, (use, growth) in USES.items()],
            3,
        ),
        "prediction": _prediction(data),
    }


def _times(data: pd.DataFrame) -> str:
    """Return how long KLR takes compared with PartitionedKLR where it tries both."""
    seconds = data[data["n"] > MOST_TRAINING].pivot_table(index=["dataset", "n"], columns="method", values="seconds")
    if not {"KLR", "PartitionedKLR"} <= {*seconds.columns}:
        return ""
    ratio = seconds["KLR"] / seconds["PartitionedKLR"]
    return f" (here {two_digits(ratio.min())} to {two_digits(ratio.max())} times the time of PartitionedKLR)"


def _row(cells: dict[tuple[str, object], str], method: str, places: Iterable[object]) -> list[str]:
    return [cells.get((method, place), "-") for place in places]


def _losses(dataset: str, data: pd.DataFrame) -> str:
    """Return the results of every second number of rows; the picture has all."""
    sizes = sorted(data["n"].unique())[::-2][::-1]
    cells: dict[tuple[str, object], str] = {
        (row["method"], row["n"]): f"{row['log_loss']:.3f}, {two_digits(row['seconds'])}" for _, row in data.iterrows()
    }
    rows = [[method, *_row(cells, method, sizes)] for method in data["method"].unique()]
    return table([f"{TITLES[dataset]}, training rows:", *(f"{n:,}" for n in sizes)], rows, 1)


def _prediction(data: pd.DataFrame) -> str:
    """Return the seconds of 100,000 predictions by the models of the most rows."""
    largest = data[data["n"] == data.groupby(["dataset", "method"])["n"].transform("max")]
    datasets = list(largest["dataset"].unique())
    cells: dict[tuple[str, object], str] = {
        (row["method"], row["dataset"]): two_digits(row["predict_s"]) for _, row in largest.iterrows()
    }
    rows = [[method, *_row(cells, method, datasets)] for method in largest["method"].unique()]
    return table(
        ["seconds of 100,000 predictions, after the largest fit", *(TITLES[name] for name in datasets)], rows, 1
    )


def rows_figure(folder: Path) -> dict[str, bytes]:
    """Return a picture of loss and seconds against the number of rows."""
    data = pd.read_csv(folder / "many_rows.csv")
    names = list(data["dataset"].unique())
    with mpl.rc_context({**STYLE, "figure.facecolor": "white"}):
        figure = Figure(figsize=(7.2, 2.7 * len(names) + 0.6), layout="constrained")
        for place, (name, side) in enumerate(((name, side) for name in names for side in AXES), 1):
            axes = figure.add_subplot(len(names), 2, place, title=TITLES[name], xlabel=SIZES.label, ylabel=side.label)
            for method, (marker, color) in LOOKS.items():
                rows = data[(data["dataset"] == name) & (data["method"] == method)]
                axes.plot(rows["n"], rows[side.metric], marker=marker, color=color, ms=4, lw=0.9, label=method)
            scale_axis(axes.xaxis, SIZES)
            scale_axis(axes.yaxis, side)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return {PICTURE: saved(figure, "svg", 100)}


def leaves(folder: Path) -> dict[str, str]:
    """Return rates of PartitionedKLR on a mapped file, and an estimate for 10^9 rows."""
    row = pd.read_csv(folder / "leaves.csv").iloc[0]
    partitions, threads, levels = (row[name] for name in ("partitions", "threads", "levels"))
    projected, deeper = row["n"] * partitions, levels + math.log2(ROWS / row["n"])
    order = row["n"] / row["order_s"]
    divide = projected * levels / row["divide_s"] / threads
    fit = projected / row["leaves_s"] / threads
    fixed = row["fit_s"] - row["order_s"] - row["divide_s"] - row["leaves_s"]
    rows = [
        ["search, width and penalty", "this process", "-", duration(fixed)],
        ["order of the rows", "this process, one core", f"{order:,.0f} rows", duration(ROWS / order)],
        [
            f"division, {deeper:.0f} levels, partitions: {partitions:.0f}",
            f"this process, {CORES} cores",
            f"{divide:,.0f} rows and levels",
            duration(ROWS * partitions * deeper / divide / CORES),
        ],
        [
            f"fits of {ROWS / row['n'] * row['leaves'] * partitions:,.0f} leaves",
            f"{WORKERS} workers of one core",
            f"{fit:,.0f} rows",
            duration(ROWS * partitions / fit / WORKERS),
        ],
    ]
    return {"leaves": table(["part", "where", "rate per second and core", "10^9 rows"], rows, 2)}


def file_fit(folder: Path) -> dict[str, str]:
    """Return a sentence on the fit to a file that is larger than the memory limit."""
    data = pd.read_csv(folder / "leaves.csv")
    row = data.iloc[0]
    return {
        "file_fit": (
            f"{row['n']:,.0f} rows of {row['features']:.0f} features, a file of {row['file_mb']:,.0f} MB, were fitted "
            f"in {duration(row['fit_s'])} on {row['threads']:.0f} thread{'s' if row['threads'] > 1 else ''}, with a "
            f"limit of {row['limit_mb']:,.0f} MB for the data of the process. Number of partitions: "
            f"{row['partitions']:.0f}, each of {row['leaves']:,.0f} leaves with at most {row['max_support']:.0f} "
            f"support vectors. 100,000 predictions took {duration(row['predict_s'])}, and "
            f"{100 * row['accuracy']:.1f} % were correct.{busy(data)}"
        )
    }
