"""Define the inputs and requirements of figures, and find methods that do not meet them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from klr_bench.report.figures.core.plot import Place, mean
from klr_bench.report.table import Line, Table
from klr_bench.results.record import FINISHED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing

    from klr_bench.report.figures.core.plot import Plot


@dataclass(frozen=True)
class Inputs:
    """Data from which figures are drawn: the table and the files of an experiment.

    Parameters
    ----------
    table : the means over the repeats, with the published values
    records : one row per fit, with the columns of records.csv; `variant` holds mappings
    traces : key, t, elapsed_s, metric, value; one row per metric at a checkpoint
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
    """Requirements that a method must meet on a data set to be included in a figure.

    Parameters
    ----------
    metrics : metrics in the table
    traces : metrics at checkpoints
    parameter : a swept parameter, or ""
    bins : bins of predicted probabilities
    rows : the training rows, of data in the plane
    """

    metrics: tuple[str, ...] = ()
    traces: tuple[str, ...] = ()
    parameter: str = ""
    bins: bool = False
    rows: bool = False


@dataclass(frozen=True)
class Figure:
    """Description of a figure, which is defined by `plot` or by `draw`.

    Parameters
    ----------
    needs : requirements; the figure is drawn only if at least one method meets all of them
    draw : returns a matplotlib figure, or several by name, or None if no value can be drawn
    plot : returns the figure as plain data, from which files are drawn and which readers explore on a page; a figure
        without it is a picture there
    title : what it shows, in a few words
    usual : whether it is drawn if an experiment does not name its figures (shipped figures only)
    comes_with : a metric; if the table shows it, the figure is always drawn (shipped figures only)
    kinds : formats of the files
    dpi : dots per inch of a PNG
    """

    needs: Needs
    draw: Callable[[Inputs], Drawing | Mapping[str, Drawing] | None] | None = None
    plot: Callable[[Inputs], Plot | None] | None = None
    title: str = ""
    usual: bool = False
    comes_with: str = ""
    kinds: tuple[str, ...] = ("png", "svg")
    dpi: float = 200.0


@dataclass(frozen=True)
class DrawnFigures:
    """Files and plots of figures, keyed by name, and notes on figures that are missing."""

    files: dict[str, bytes] = field(default_factory=dict)
    plots: dict[str, Plot] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class Requirement(NamedTuple):
    """Requirement of a figure, the methods that meet it, and advice on how to meet it."""

    words: str
    having: set[Place]
    advice: str = ""


def lacking(inputs: Inputs, needs: Needs) -> tuple[bool, list[str]]:
    """Check the requirements of a figure for each method.

    Return True if at least one method meets all of them, and notes on the methods that do not.
    """
    lines = {(block.dataset, *line.column): line for block in inputs.table.blocks for line in block.lines}
    required = _requirements(inputs, needs, lines)
    complete = {place[:2] for place in lines if all(place in requirement.having for requirement in required)}
    if not complete:
        absent = [requirement for requirement in required if not requirement.having] or required
        words = " and ".join(requirement.words for requirement in absent)
        advice = " ".join(dict.fromkeys(requirement.advice for requirement in absent if requirement.advice))
        has = "any" if len(absent) == 1 else "all"
        return False, [f"needs {words}; none of {_places_text(lines)} has {has}. {advice}".strip()]
    incomplete: dict[str, list[Place]] = {}
    for place, line in lines.items():
        if (line.n_ok > 0 or line.timed_out) and place[:2] not in complete:
            words = " and ".join(requirement.words for requirement in required if place not in requirement.having)
            incomplete.setdefault(words, []).append(place)
    return True, [f"drawn without {_places_text(places)}, which lack {words}." for words, places in incomplete.items()]


def _requirements(inputs: Inputs, needs: Needs, lines: Mapping[Place, Line]) -> list[Requirement]:
    finished = inputs.records[inputs.records["status"].isin(FINISHED)]

    def named(frame: pd.DataFrame) -> set[Place]:
        rows = finished[finished["key"].isin(frame["key"])]
        return set(zip(rows["dataset"], rows["algorithm"], rows["variant"], strict=True)) & lines.keys()

    required = [
        Requirement(f"{name} in records.csv", {place for place, line in lines.items() if mean(line, name) is not None})
        for name in needs.metrics
    ]
    if needs.parameter:
        algorithm = next((algorithm for _, algorithm, _ in lines), "NAME")
        having = {place for place in lines if needs.parameter in place[2]}
        advice = f"Run with several values, as in sweep.{algorithm}.{needs.parameter}=[...]."
        required.append(Requirement(f"a sweep of {needs.parameter}", having, advice))
    advice = "Run with trace.points=15 (or another number of checkpoints); fits without checkpoints are then repeated."
    if not inputs.traces.empty:
        advice = f"The checkpoints hold {', '.join(sorted(set(inputs.traces['metric'])))}."
    for name in needs.traces:
        having = named(inputs.traces[inputs.traces["metric"] == name])
        required.append(Requirement(f"checkpoints of {name} in traces.csv", having, advice))
    if needs.bins:
        advice = "Calibration bins exist only for binary classifiers with predict_proba."
        required.append(Requirement("bins of probabilities in reliability.csv", named(inputs.reliability), advice))
    if needs.rows:
        advice = "Run the experiment again with trace.rows=true; the data must have two columns."
        required.append(Requirement("training rows in rows.csv", named(inputs.rows), advice))
    return required


def _places_text(places: Iterable[Place]) -> str:
    """Return algorithms and data sets as text, such as "nc, oskl on magic, adult; ogd on adult"."""
    algorithms: dict[str, dict[str, None]] = {}
    for dataset, algorithm, _ in places:
        algorithms.setdefault(dataset, {})[algorithm] = None
    datasets: dict[str, list[str]] = {}
    for dataset, names in algorithms.items():
        datasets.setdefault(", ".join(names), []).append(dataset)
    return "; ".join(f"{names} on {', '.join(same)}" for names, same in datasets.items())
