"""The figures: accuracy against support vectors, traces of the fits, and reliability diagrams, a panel a data set.

They are read without colour too: an algorithm is a marker, a line of a curve a marker and a dash, a
published value a hollow marker.  The same rows give the same bytes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from matplotlib.lines import Line2D

from klr_bench.experiment.records import FINISHED
from klr_bench.experiment.variants import Variant
from klr_bench.report.drawing import (
    ACCURACY,
    EXAMPLES,
    GAP,
    LOG_LOSS,
    NONZERO,
    OBJECTIVE,
    SUPPORT,
    TIME,
    Look,
    count_axis,
    dashed,
    looks_of,
    panels_of,
)
from klr_bench.report.feature_figures import DRAWN, against_selected
from klr_bench.report.labels import placed
from klr_bench.report.parameters import lambda_panels, log_loss_prototypes, sparsity_gamma
from klr_bench.report.tables import Block, Line, Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LEAST = 20
"""Rows in a bin of a reliability diagram from which on their share of positives is shown."""


def accuracy_support(table: Table) -> dict[str, bytes]:
    """Draw test accuracy against the number of support vectors; return file names and contents.

    One marker a variant, with error bars of one standard deviation over the repeats; a hollow one for the
    published value.  Empty where no algorithm of the table has support vectors.
    """
    blocks = [block for block in table.blocks if any(map(_ours, block.lines))]
    lines = [line for block in blocks for line in block.lines if _ours(line)]
    looks = looks_of({(line.algorithm, Variant()): line.algorithm_label for line in lines})

    def draw(axes: Axes, block: Block) -> None:
        for (algorithm, _), look in looks.items():
            _draw_algorithm(axes, [line for line in block.lines if line.algorithm == algorithm], look, block.lines)
        count_axis(axes.xaxis, SUPPORT)

    handles = [look.handle(dashes="none") for look in looks.values()]
    if any(_theirs(line) for line in lines):
        handles.append(Line2D([], [], marker="o", linestyle="none", mfc="none", color="#666666", label="published"))
    return panels_of("accuracy_support", blocks, handles, draw, SUPPORT.label, ACCURACY.label)


TRACED = {
    "accuracy_examples": (EXAMPLES, ACCURACY),
    "support_examples": (EXAMPLES, SUPPORT),
    "accuracy_support_curve": (SUPPORT, ACCURACY),
    "accuracy_time": (TIME, ACCURACY),
    "objective_time": (TIME, OBJECTIVE),
    "gap_time": (TIME, GAP),
    "nonzero_time": (TIME, NONZERO),
    "log_loss_time": (TIME, LOG_LOSS),
}
USUAL = ("accuracy_support", "accuracy_examples", "support_examples")
FIGURES = (
    *("accuracy_support", *TRACED, "sparsity_gamma", "lambda_panels", "log_loss_prototypes", "prototype_pictures"),
    *DRAWN,
)


def draw_all(table: Table, records: pd.DataFrame, traces: pd.DataFrame) -> dict[str, bytes]:
    """Draw the figures that the experiment asks for, of those that there are rows for; return names and contents."""
    drawing = {
        "accuracy_support": accuracy_support,
        "lambda_panels": lambda_panels,
        "log_loss_prototypes": log_loss_prototypes,
        "sparsity_gamma": sparsity_gamma,
    }
    files: dict[str, bytes] = {}
    for name in USUAL if table.figures is None else table.figures:
        if name in TRACED:
            files |= traced(name, table, records, traces)
        elif name in DRAWN:
            files |= against_selected(name, table)
        elif name in drawing:  # prototype_pictures are drawn from models, not from a table
            files |= drawing[name](table)
    return files


def traced(name: str, table: Table, records: pd.DataFrame, traces: pd.DataFrame) -> dict[str, bytes]:
    """Draw the figure of TRACED with this name: what the learners were at each checkpoint, the mean over the repeats.

    Returns file names and contents, empty where no such trace was kept.
    """
    x, y = TRACED[name]
    points = _checkpoints(traces, {x.metric, y.metric}).merge(records[records["status"].isin(FINISHED)], on="key")
    curves = {
        column: group.groupby(group.groupby("key").cumcount()).mean(numeric_only=True)  # the k-th checkpoints together
        for column, group in points.groupby(["dataset", "algorithm", "variant"], sort=False)
    }
    blocks = [block for block in table.blocks if any(block.dataset == column[0] for column in curves)]
    looks = looks_of({(line.algorithm, line.variant): line.label for block in blocks for line in block.lines})

    def draw(axes: Axes, block: Block) -> None:
        for column, look in looks.items():
            curve = curves.get((block.dataset, *column))
            if curve is not None:
                values = [axis.factor * curve[f"trace_{axis.metric}"].to_numpy() for axis in (x, y)]
                (line,) = axes.plot(*values, color=look.colour)
                line.set(marker=look.marker, markersize=4, linewidth=1.2, linestyle=look.dashes)
        count_axis(axes.xaxis, x)
        count_axis(axes.yaxis, y)
        if y.logarithmic:
            axes.set_yscale("log")

    drawn = [column for column in looks if any((block.dataset, *column) in curves for block in blocks)]
    handles = [looks[column].handle(dashes=looks[column].dashes) for column in drawn]
    return panels_of(name, blocks, handles, draw, x.label, y.label)


def reliability(table: Table, records: pd.DataFrame, bins: pd.DataFrame) -> dict[str, bytes]:
    """Draw the share of positive test rows against the predicted probability, bin by bin.

    The rows of all repeats are counted together; the area of a marker is their share of the test rows, and bins with
    fewer than LEAST of them are left out.  Returns file names and contents, empty where no algorithm of the table has
    probabilities.
    """
    counted = bins.merge(records[records["status"] == "ok"][["key", "dataset", "algorithm", "variant"]], on="key")
    counted["predicted"] *= counted["n"]
    counted["positive"] *= counted["n"]
    groups = counted.groupby(["dataset", "algorithm", "variant"], sort=False)
    curves = {column: group.groupby("bin")[["n", "predicted", "positive"]].sum() for column, group in groups}
    blocks = [block for block in table.blocks if any(block.dataset == column[0] for column in curves)]
    lines = [line for block in blocks for line in block.lines]
    labels = {(line.algorithm, line.variant): line.label for line in lines if line.cells["ece"].mean is not None}
    looks = dashed(looks_of(labels))

    def draw(axes: Axes, block: Block) -> None:
        axes.plot([0, 1], [0, 1], color="#999999", linewidth=0.8)
        for column, look in looks.items():
            curve = curves.get((block.dataset, *column))
            if curve is not None:
                curve = curve[curve["n"] >= LEAST]
                x, y, share = curve["predicted"] / curve["n"], curve["positive"] / curve["n"], curve["n"]
                axes.plot(x, y, color=look.colour, linewidth=0.9, linestyle=look.dashes)
                axes.scatter(x, y, 14 + 70 * share / share.sum(), color=look.colour, marker=look.marker, linewidths=0)
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))

    handles = [look.handle(dashes=look.dashes) for look in looks.values()]
    handles.append(Line2D([], [], color="#999999", linewidth=0.8, label="calibrated"))
    return panels_of("reliability", blocks, handles, draw, "Predicted probability", "Observed share")


def _checkpoints(traces: pd.DataFrame, metrics: set[str]) -> pd.DataFrame:
    """Return a row a checkpoint that has all of these: key, t, and a column trace_<metric> for each."""
    wide = traces.pivot_table(index=["key", "t", "elapsed_s"], columns="metric", values="value").reset_index()
    wide["trace_t"], wide["trace_elapsed_s"] = wide["t"], wide["elapsed_s"]
    wide = wide.rename(columns={metric: f"trace_{metric}" for metric in traces["metric"].unique()})
    columns = [f"trace_{metric}" for metric in metrics]
    if not set(columns) <= set(wide.columns):
        return wide[["key", "t"]].iloc[:0].reindex(columns=["key", "t", *columns])
    return wide[["key", "t", *columns]].dropna()


def _ours(line: Line) -> tuple[float, float, float, float] | None:
    """Return support vectors and accuracy (%), each with its spread; None where there are none to draw."""
    support, accuracy = line.cells["n_support"], line.cells["accuracy"]
    if not support.mean or accuracy.mean is None:  # zero has no place on a logarithmic axis
        return None
    return support.mean, support.std or 0.0, 100 * accuracy.mean, 100 * (accuracy.std or 0.0)


def _theirs(line: Line) -> tuple[float, float] | None:
    """Return the published support vectors and accuracy (%), None where one is not published."""
    support, accuracy = line.cells["n_support"].published, line.cells["accuracy"].published
    return (support.mean, 100 * accuracy.mean) if support and accuracy else None


def _draw_algorithm(axes: Axes, lines: list[Line], look: Look, panel: list[Line]) -> None:
    """Draw the variants of an algorithm among all lines of a panel; labels stand above and below by turns."""
    points = sorted(((ours, line) for line in lines if (ours := _ours(line))), key=lambda p: -p[0][2])
    for (x, x_std, y, y_std), line in points:
        theirs = _theirs(line)
        if theirs:
            axes.plot(*theirs, marker=look.marker, markersize=8, mfc="none", color=look.colour)
        drawn = axes.errorbar(x, y, y_std, x_std, fmt=look.marker, color=look.colour, markersize=5)
        for part in (*drawn.lines[1], *drawn.lines[2]):
            part.set(linewidth=0.9)
    named = [(ours, line) for ours, line in points if line.variant]
    if not named:
        return
    everywhere = [_place(ours) for line in panel if (ours := _ours(line))]
    labels = placed([_place(ours) for ours, _ in named], [line.variant for _, line in named], everywhere)
    for rank, (number, text, to_the_left) in enumerate(labels):
        offset = (-5 if to_the_left else 5, -10 if rank % 2 else 4)
        at = named[number][0]
        axes.annotate(
            text, (at[0], at[2]), offset, textcoords="offset points", fontsize=7, ha="right" if to_the_left else "left"
        )


def _place(ours: tuple[float, float, float, float]) -> tuple[float, float]:
    return math.log10(ours[0]), ours[2]
