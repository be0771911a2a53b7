"""What a figure declares, what it is drawn from, and what drawing leaves behind.  Nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing

    from klr_bench.report.figures.core.lines import Table
    from klr_bench.report.figures.core.plot import Plot


@dataclass(frozen=True)
class Inputs:
    """What figures are drawn from: the table of an experiment, and the files of its results folder as frames.

    Parameters
    ----------
    table : the means over the repeats, beside what is published
    records : a row a fit, with the columns of records.csv; `variant` holds mappings
    traces : key, t, elapsed_s, metric, value; a row a number at a checkpoint
    reliability : key, bin, n, predicted, positive
    rows : key, x1, x2, label; training rows of data in the plane
    """

    table: Table
    records: pd.DataFrame
    traces: pd.DataFrame
    reliability: pd.DataFrame
    rows: pd.DataFrame


@dataclass(frozen=True)
class Needs:
    """What an algorithm must have on a data set to stand in a figure.

    Parameters
    ----------
    metrics : numbers in the table
    traces : numbers at checkpoints
    parameter : a swept parameter, "" for none
    bins : bins of predicted probabilities
    rows : the training rows, of data in the plane
    """

    metrics: tuple[str, ...] = ()
    traces: tuple[str, ...] = ()
    parameter: str = ""
    bins: bool = False
    rows: bool = False


Draw = Callable[[Inputs], "Drawing | Mapping[str, Drawing] | None"]
"""Returns a matplotlib figure, or several by name, or None where no value can be drawn."""


@dataclass(frozen=True)
class Figure:
    """One kind of figure.

    Parameters
    ----------
    needs : what must be there for it
    draw : makes it; called only where some algorithm has what is needed
    usual : whether it is drawn where an experiment does not say which figures it wants (of shipped ones)
    comes_with : a metric; where the table shows it the figure is drawn, asked for or not (of shipped ones)
    kinds : formats of the files
    dpi : dots an inch of a PNG
    plot : makes it as plain data, for a page on which it can be explored; such a page shows others as pictures
    """

    needs: Needs
    draw: Draw
    usual: bool = False
    comes_with: str = ""
    kinds: tuple[str, ...] = ("png", "svg")
    dpi: float = 160.0
    plot: Callable[[Inputs], Plot | None] | None = None


@dataclass(frozen=True)
class Drawn:
    """The files of figures, names and contents, and a sentence for each that is missing or not complete.

    `plots`: by name, the figures that are plain data in place of files.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    plots: dict[str, Plot] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
