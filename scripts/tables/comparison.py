"""Tables and figures of docs/results.md: default parameters compared with other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import pandas as pd
from markup import table, two_digits
from matplotlib.figure import Figure
from methods import TITLES

from klr_bench.config.locations import config_dir, find, read
from klr_bench.config.presentation import LookConfig
from klr_bench.report.figures.accuracy_support import write_labels
from klr_bench.report.figures.core.drawing import STYLE, saved, scale_axis
from klr_bench.report.figures.core.plot import COLORS, MARKERS, Axis
from klr_bench.report.measured import BUSY

DRAWN = {
    "OSKL": "oskl",
    "SVC": "svc",
    "LightGBM": "lightgbm",
    "skglm": "l1_skglm",
    "KLR": "klr",
    "PartitionedKLR": "partitioned_klr",
}
"""Algorithms whose looks in figures the methods have."""
COMPARED = tuple(DRAWN)[1:]
"""Methods that are compared with OSKL() in a sentence each, and drawn beside it."""
SECONDS = Axis("seconds", "Seconds of fit, one thread", logarithmic=True)
NO_BREAK = "\N{NO-BREAK SPACE}"
FAR = 0.15
"""Difference to the best accuracy of a data set from which on a method is not drawn in its figure."""
WORKERS, ROWS = 100, 10**9
"""Number of workers and of rows in the estimate of a large fit."""


def compared(folder: Path) -> dict[str, str]:
    """Return sentences on the fits with default parameters, and a table of seconds and accuracy."""
    data = pd.read_csv(folder / "peers.csv")
    measured = data.dropna(subset="seconds")
    best = measured.loc[measured.groupby("dataset", sort=False)["accuracy"].idxmax()]
    winners = [f"{method} on {_titles(of)}" for method, of in best.groupby("method", sort=False)["dataset"]]
    sentences = [
        against_oskl(measured[measured["method"] == name]) for name in COMPARED if name in {*measured["method"]}
    ]
    sentences.append(
        f"With default parameters, the method with the highest accuracy on the test rows is {'; '.join(winners)}."
    )
    return {
        "compared": "\n".join(f"- {sentence}" for sentence in sentences),
        "compared_fits": f"{_compact(measured)}\n\n{' '.join(_notes(data))}",
    }


def against_oskl(rows: pd.DataFrame) -> str:
    """Return a sentence that compares the fits of a method with OSKL() on the same rows."""
    ratio = rows["time_ratio"]
    return (
        f"{rows['method'].iloc[0]} took {two_digits(ratio.min())} to {two_digits(ratio.max())} times as long as "
        f"`OSKL()` on the same rows, and its accuracy is {accuracy_beside_oskl(rows)} on {len(rows)} data sets."
    )


def accuracy_beside_oskl(rows: pd.DataFrame) -> str:
    """Return words on the accuracy of a method compared with OSKL(), in rounded points."""
    gain = (100 * (rows["accuracy"] - rows["oskl_accuracy"])).round(1)
    least, most = gain.min(), gain.max()
    if least == most == 0:
        return "the same"
    if least < 0 < most:
        return f"from {-least:.1f} points lower to {most:.1f} points higher"
    ends = sorted((abs(least), abs(most)))
    span = f"up to {ends[1]:.1f}" if ends[0] == 0 else f"{ends[0]:.1f} to {ends[1]:.1f}"
    return f"{span} points {'lower' if least < 0 else 'higher'}"


def _compact(data: pd.DataFrame) -> str:
    """Return seconds, accuracy and log loss by method and data set, and limited numbers of rows."""
    cells = {
        (row.method, row.dataset): f"{two_digits(row.seconds)}, {100 * row.accuracy:.1f}"
        + ("" if pd.isna(row.log_loss) else f", {row.log_loss:.3f}")
        + ("" if row.n == row.rows else f" ({row.n:,.0f})")
        for row in data.itertuples()
    }
    datasets = data.drop_duplicates("dataset")
    head = ["method", *(f"{TITLES[row.dataset]}, {row.rows:,} rows" for row in datasets.itertuples())]
    rows = [
        [name, *(cells.get((name, dataset), "-") for dataset in datasets["dataset"])]
        for name in data["method"].unique()
    ]
    rows.append(["largest class", *(f"{100 * row.majority:.1f}" for row in datasets.itertuples())])
    return table(head, rows, 1)


def _titles(datasets: pd.Series) -> str:
    return ", ".join(TITLES[dataset] for dataset in datasets)


def _notes(data: pd.DataFrame) -> list[str]:
    """Return sentences on missing packages, limited rows, convergence and the machine."""
    measured = data.dropna(subset="seconds")
    notes = [
        "All fits use one thread. A method that was expected to take more than "
        f"{data['limit_s'].iloc[0]:g} s for all rows was fitted to as many as take about that long, and to at least "
        "1,000."
    ]
    stopped = measured[measured["converged"] == False]  # noqa: E712  (it may be missing)
    for method, rows in stopped.groupby("method", sort=False):
        notes.append(f"{method} warned on {_titles(rows['dataset'])} that it did not converge.")
    missing = data.loc[data["seconds"].isna(), "method"].unique()
    notes += [f"Not installed, and not measured: {', '.join(missing)}."] if len(missing) else []
    notes.append(f"Measured on {measured['cpu'].iloc[0]}.{busy(measured)}")
    return notes


def busy(measured: pd.DataFrame) -> str:
    """Return a sentence on the load by other processes, if it was so high that times are rough."""
    load = measured["load"].max()
    return (
        f" Times are rough: other processes used up to {100 * load:.0f}{NO_BREAK}% of the machine."
        if load > BUSY
        else ""
    )


def figures(folder: Path) -> dict[str, bytes]:
    """Return a picture of accuracy against seconds for each data set, by file name.

    Only OSKL and the methods of COMPARED are drawn; one that is far less accurate than the best is named below.
    """
    data = pd.read_csv(folder / "peers.csv").dropna(subset="seconds")
    data = data[data["method"].isin(DRAWN)]
    return {f"{name}.svg": _figure(str(name), rows) for name, rows in data.groupby("dataset", sort=False)}


def _figure(dataset: str, rows: pd.DataFrame) -> bytes:
    far = rows["accuracy"] < rows["accuracy"].max() - FAR
    points = [Point(row.seconds, 100 * row.accuracy, _label(row), _look(row.method)) for row in rows[~far].itertuples()]
    names = ", ".join(
        f"{row.method} ({100 * row.accuracy:.0f} %, {two_digits(row.seconds)} s)" for row in rows[far].itertuples()
    )
    note = f"More than {100 * FAR:.0f} points below the best: {names}" if names else ""
    return scatter(f"{TITLES[dataset]}, {rows['rows'].iloc[0]:,} rows", "Test accuracy (%)", points, note)


class Point(NamedTuple):
    """A method in a picture: its seconds, its value, its label, color and marker."""

    seconds: float
    value: float
    label: str
    look: LookConfig


def scatter(title: str, ylabel: str, points: Sequence[Point], note: str = "") -> bytes:
    """Return a picture of values against seconds, with a label at each point."""
    with mpl.rc_context({**STYLE, "figure.facecolor": "white"}):
        figure = Figure(figsize=(3.8, 2.8), layout="constrained")
        axes = figure.add_subplot(title=title, xlabel=SECONDS.label, ylabel=ylabel)
        for seconds, value, _, look in points:
            axes.plot(seconds, value, MARKERS[look.marker], color=COLORS[look.color], markersize=7)
        axes.margins(0.22)
        scale_axis(axes.xaxis, SECONDS)
        if note:
            figure.supxlabel(note, fontsize=7)
        figure.draw_without_rendering()  # gives the axes their size
        places = [(point.seconds, point.value) for point in points]
        write_labels(axes, [(*place, point.label) for place, point in zip(places, points, strict=True)], places, [])
        colors = {point.label: COLORS[point.look.color] for point in points}
        for text in axes.texts:
            text.set_color(colors[text.get_text()])
        return saved(figure, "svg", 100)


def _look(method: str) -> LookConfig:
    """Return the look of a method in all figures."""
    return LookConfig(**read(find("algorithm", DRAWN[method], [config_dir()]))["look"])


def _label(row: pd.Series) -> str:
    name = f"{row.method}()" if row.method in ("OSKL", "KLR", "PartitionedKLR") else row.method
    return name if row.n == row.rows else f"{name}, {row.n:,.0f} rows"


def projection(folder: Path) -> dict[str, str]:
    """Return the estimated time of a fit of NystroemKLR to 10^9 rows on 100 workers."""
    rows = []
    for row in pd.read_csv(folder / "passes.csv").itertuples():
        one_pass = ROWS / WORKERS / row.rows_a_s
        total = row.setup_s + row.passes * one_pass
        rows.append(
            [
                f"{row.centers:,}",
                f"{row.rows_a_s:,.0f}",
                f"{row.passes}",
                f"{row.setup_s:.0f} s",
                f"{one_pass:,.0f} s",
                f"{total / 60:,.1f} min",
                f"{WORKERS * total / 3600:,.0f}",
            ]
        )
    head = ["centers", "rows per second and core, $r$", "passes, $p$", "setup, $t_0$", "one pass", "fit", "core hours"]
    return {"projection": table(head, rows, 0)}
