"""What a figure declares, what it is drawn from, and which algorithms lack what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from klr_bench.report.figures.core.plot import mean
from klr_bench.report.table import Block, Line, Table
from klr_bench.results.store import FINISHED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing

    from klr_bench.report.figures.core.plot import Plot


@dataclass(frozen=True)
class Inputs:
    """What figures are drawn from: the table of an experiment, and the files of its results folder as frames.

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
    """What an algorithm must have on a data set to stand in a figure.

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
    """One kind of figure, given by `plot` or by `draw`.

    Parameters
    ----------
    needs : what must be there; it is drawn only if some algorithm has all of it
    draw : returns a matplotlib figure, or several by name, or None if no value can be drawn
    plot : returns the figure as plain data, from which files are drawn and which pages let readers explore; a figure
        without it is a picture there
    title : what it shows, in a few words
    usual : whether it is drawn if an experiment does not say which figures it wants (shipped figures only)
    comes_with : a metric; if the table shows it, the figure is drawn without being asked for (shipped figures only)
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
    dpi: float = 160.0

    def drawings(self, inputs: Inputs) -> Drawing | Mapping[str, Drawing] | None:
        """Return what `draw` returns, or else the drawing of the plot."""
        from klr_bench.report.figures.core.drawing import draw_plot

        if self.draw is not None:
            return self.draw(inputs)
        plot = self.plot(inputs) if self.plot is not None else None
        return draw_plot(plot) if plot is not None else None


@dataclass(frozen=True)
class Drawn:
    """Files of figures (names and contents), and one note for each figure that is missing or incomplete.

    `plots` holds, by name, the figures that are plain data in place of files.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    plots: dict[str, Plot] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


Place = tuple[Block, Line]


@dataclass(frozen=True)
class Requirement:
    """One thing that is needed: in words, who has it, and what to do if nobody has it."""

    words: str
    is_met: Callable[[Place], bool]
    advice: str = ""


def lacking(inputs: Inputs, needs: Needs) -> tuple[bool, list[str]]:
    """Return True if some algorithm has all that is needed, and notes about those that have not."""
    places = [(block, line) for block in inputs.table.blocks for line in block.lines]
    required = _requirements(inputs, needs, places)
    ready = {_who(place) for place in places if all(one.is_met(place) for one in required)}
    if not ready:
        absent = [one for one in required if not any(map(one.is_met, places))] or required
        words = " and ".join(one.words for one in absent)
        ending = f"; none of {_listed([_who(place) for place in places])} has {'any' if len(absent) == 1 else 'all'}"
        advice = " ".join(dict.fromkeys(one.advice for one in absent if one.advice))
        return False, [f"needs {words}{ending}. {advice}".strip()]
    incomplete: dict[str, list[tuple[str, str]]] = {}
    for place in places:
        measured = place[1].n_ok > 0 or place[1].timed_out
        if measured and _who(place) not in ready:
            words = " and ".join(one.words for one in required if not one.is_met(place))
            incomplete.setdefault(words, []).append(_who(place))
    return True, [f"drawn without {_listed(who)}, for want of {words}." for words, who in incomplete.items()]


def _requirements(inputs: Inputs, needs: Needs, places: Sequence[Place]) -> list[Requirement]:
    keys: dict[object, set[str]] = {}
    for row in inputs.records[inputs.records["status"].isin(FINISHED)].to_dict("records"):
        keys.setdefault((row["dataset"], row["algorithm"], row["variant"]), set()).add(row["key"])

    def in_frame(frame: pd.DataFrame) -> Callable[[Place], bool]:
        present = set(frame["key"])
        return lambda place: bool(present & keys.get((place[0].dataset, place[1].algorithm, place[1].variant), set()))

    def in_table(metric: str) -> Callable[[Place], bool]:
        return lambda place: mean(place[1], metric) is not None

    found = [Requirement(f"{name} in records.csv", in_table(name)) for name in needs.metrics]
    if needs.parameter:
        algorithm = places[0][1].algorithm if places else "NAME"
        advice = f"Run with some values of it, as in sweep.{algorithm}.{needs.parameter}=[...]."
        words = f"a sweep of {needs.parameter}"
        found.append(Requirement(words, lambda place: needs.parameter in place[1].variant, advice))
    traces = inputs.traces
    for name in needs.traces:
        advice = "Run with trace.points=15 (or another number of checkpoints); fits without them are then done anew."
        if not traces.empty:
            advice = f"The checkpoints hold {', '.join(sorted(set(traces['metric'])))}."
        met = in_frame(traces[traces["metric"] == name])
        found.append(Requirement(f"checkpoints of {name} in traces.csv", met, advice))
    if needs.bins:
        advice = "Only learners of two classes that have predict_proba leave some."
        found.append(Requirement("bins of probabilities in reliability.csv", in_frame(inputs.reliability), advice))
    if needs.rows:
        advice = "Run the experiment again with trace.rows=true; the data must have two columns."
        found.append(Requirement("training rows in rows.csv", in_frame(inputs.rows), advice))
    return found


def _who(place: Place) -> tuple[str, str]:
    return place[1].algorithm, place[0].dataset


def _listed(who: Sequence[tuple[str, str]]) -> str:
    """Return algorithms and data sets in words: "nc, oskl on magic, adult; ogd on adult"."""
    on: dict[str, list[str]] = {}
    for algorithm, dataset in dict.fromkeys(who):
        on.setdefault(dataset, []).append(algorithm)
    same: dict[tuple[str, ...], list[str]] = {}
    for dataset, algorithms in on.items():
        same.setdefault(tuple(algorithms), []).append(dataset)
    return "; ".join(f"{', '.join(algorithms)} on {', '.join(datasets)}" for algorithms, datasets in same.items())
