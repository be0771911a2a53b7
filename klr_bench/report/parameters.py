"""Figures against a parameter: gamma of the auxiliary function, lambda of the L1 penalty, prototypes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from klr_bench.experiment.variants import Variant, as_number, variant_text
from klr_bench.report.drawing import (
    ACCURACY,
    COLOURS,
    LOG_LOSS,
    NONZERO,
    PROTOTYPES,
    TIME,
    Column,
    Look,
    count_axis,
    dashed,
    looks_of,
    panels_of,
)
from klr_bench.report.tables import Block, Line, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def sparsity_gamma(table: Table) -> dict[str, bytes]:
    """Draw sparsity and accuracy, relative to that at gamma = 1, against gamma - 1 of the auxiliary function."""

    def points(block: Block) -> list[tuple[float, Line]]:
        found = [(as_number(line.variant.get("aux_gamma")), line) for line in block.lines]
        return sorted(
            ((gamma - 1, line) for gamma, line in found if gamma and line.cells["accuracy"].mean), key=lambda p: p[0]
        )

    blocks = [block for block in table.blocks if any(gamma > 0 for gamma, _ in points(block))]
    looks = [Look("Sparsity", "o", "-", COLOURS[1]), Look("Relative accuracy", "s", "--", COLOURS[2])]

    def draw(axes: Axes, block: Block) -> None:
        lines = points(block)
        base = next((line for gamma, line in lines if gamma == 0), lines[0][1]).cells["accuracy"].mean or 1.0
        values = ([line.cells["sparsity"].mean or 0.0 for _, line in lines], [line.cells["accuracy"].mean or 0.0
                  for _, line in lines])  # fmt: skip
        for look, column, scale in zip(looks, values, (1.0, base), strict=True):
            shown = [(gamma, 100 * value / scale) for (gamma, _), value in zip(lines, column, strict=True) if gamma > 0]
            axes.plot(*zip(*shown, strict=True), marker=look.marker, linestyle=look.dashes, color=look.colour)
        axes.set_xscale("log")

    handles = [look.handle(dashes=look.dashes) for look in looks]
    return panels_of("sparsity_gamma", blocks, handles, draw, "gamma - 1", "%")


def lambda_panels(table: Table) -> dict[str, bytes]:
    """Draw accuracy, non-zero coefficients and training time against lambda, relative to lambda_max."""
    sides = {"accuracy": ACCURACY, "nonzero_fraction": NONZERO, "fit_time_s": TIME}
    panels = [
        (replace(block, label=f"{block.label}: {axis.label}"), metric)
        for block in table.blocks
        for metric, axis in sides.items()
        if any("lam" in line.variant for line in block.lines)
    ]
    of_panel = {block.label: metric for block, metric in panels}
    lines = [line for block, _ in panels for line in block.lines]
    names = {(line.algorithm, Variant()): line.algorithm_label for line in lines}
    looks = dashed(looks_of(names))  # the curves lie on each other

    def draw(axes: Axes, block: Block) -> None:
        metric = of_panel[block.label]
        for (algorithm, _), look in looks.items():
            lines = [line for line in block.lines if line.algorithm == algorithm]
            found = [(as_number(line.variant.get("lam")), line.cells[metric].mean) for line in lines]
            shown = sorted((lam, sides[metric].factor * mean) for lam, mean in found if lam and mean is not None)
            if shown:
                axes.plot(*zip(*shown, strict=True), marker=look.marker, linestyle=look.dashes, color=look.colour)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xticks(sorted({lam for line in block.lines if (lam := as_number(line.variant["lam"]))}))
        count_axis(axes.yaxis, sides[metric])

    handles = [look.handle(dashes=look.dashes) for look in looks.values()]
    return panels_of("lambda_panels", [block for block, _ in panels], handles, draw, "lambda / lambda_max", "")


def log_loss_prototypes(table: Table) -> dict[str, bytes]:
    """Draw log loss against the number of prototypes, with its spread; a curve for each other variation."""

    def curve_of(line: Line) -> Column:
        return line.algorithm, line.variant.without("n_prototypes")

    blocks = [block for block in table.blocks if any(line.cells["log_loss"].mean for line in block.lines)]
    lines = [line for block in blocks for line in block.lines if "n_prototypes" in line.variant]
    names = {line.algorithm: line.algorithm_label for line in lines}
    looks = looks_of(
        {curve_of(line): f"{names[line.algorithm]} {variant_text(curve_of(line)[1])}".strip() for line in lines}
    )

    def draw(axes: Axes, block: Block) -> None:
        for column, look in looks.items():
            cells = {
                as_number(line.variant["n_prototypes"]) or 0.0: line.cells["log_loss"]
                for line in block.lines
                if line in lines and curve_of(line) == column and line.cells["log_loss"].mean is not None
            }
            x = sorted(cells)
            spread = [cells[J].std or 0.0 for J in x]
            shown = {"marker": look.marker, "linestyle": look.dashes, "color": look.colour, "markersize": 4}
            axes.errorbar(x, [cells[J].mean or 0.0 for J in x], spread, **shown, linewidth=1.1, elinewidth=0.7)
        count_axis(axes.xaxis, PROTOTYPES)
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())

    handles = [look.handle(dashes=look.dashes) for look in looks.values()]
    return panels_of("log_loss_prototypes", blocks, handles, draw, PROTOTYPES.label, LOG_LOSS.label)
