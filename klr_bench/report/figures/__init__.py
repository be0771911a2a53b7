"""Figures of an experiment; each is drawn only if the records contain what it needs.

`curves` holds the figures that are curves; every other module of this folder defines one as `FIGURE`, and so does a
user's own `./configs/figure/<name>.py`, which is run if an experiment names it and the report allows it.  Figures can
be read without color: each curve has a marker and a dash, and a published value is a hollow marker.  The same rows give
the same bytes.
"""

from __future__ import annotations

import importlib
import re
import runpy
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from klr_bench.config import locations as config_files
from klr_bench.errors import KlrBenchError, exception_text, fail
from klr_bench.parsing import check_choice
from klr_bench.report.figures.core.figure import DrawnFigures, Figure, Inputs, Needs, lacking
from klr_bench.report.figures.core.plot import Axis, curve_of, in_parts, means
from klr_bench.report.figures.curves import FIGURES as CURVES
from klr_bench.report.labels import UNITS, title_of
from klr_bench.results.variants import to_number

__all__ = [
    "MOST_PANELS",
    "DrawnFigures",
    "Figure",
    "Inputs",
    "Needs",
    "check_names",
    "draw_all",
    "draw_over",
    "find",
    "names",
    "titles",
]

HERE = Path(__file__).parent
MOST = {"data sets": 60, "lines of the table": 1000, "checkpoints": 200_000}
"""Upper limits of what one figure shows."""
PAGE_DPI = 80
"""Resolution of a picture on a page, in dots per inch."""
MOST_PANELS = 9
"""Largest number of panels of a figure that is drawn without request, and not folded on a page with ranks."""
LONGEST = 120
"""Maximum length of a file name without its suffix."""


def names() -> list[str]:
    """Return the sorted names of all figures, built-in and from ./configs/figure."""
    return sorted(_files())


def titles() -> dict[str, str]:
    """Return the title of each built-in figure, and "" for user-defined ones, keyed by name."""
    return {name: find(name).title if path.parent == HERE else "" for name, path in sorted(_files().items())}


def check_names(asked: Iterable[Any]) -> None:
    """Raise KlrBenchError for the first name that is not a figure, suggesting the closest name."""
    available = list(_files())
    for name in asked:
        check_choice("figures", name, available)


def find(name: str) -> Figure:
    """Return the figure with the given name.

    Raises KlrBenchError if there is no such figure, or if a user's own file cannot be imported or defines no figure.
    """
    check_names([name])
    path = _files()[name]
    if path == HERE / "curves.py":
        return CURVES[name]
    if path.parent == HERE:
        figure = importlib.import_module(f"{__name__}.{name}").FIGURE
    else:
        try:
            figure = runpy.run_path(str(path)).get("FIGURE")
        except Exception as error:
            message = f"{path}: cannot be imported ({exception_text(error)})."
            raise KlrBenchError(message) from error
    if not isinstance(figure, Figure):
        fail(f"{path}: expected FIGURE = klr_bench.report.figures.Figure(needs=..., draw=...), got {figure!r}.")
    return figure


def draw_all(
    inputs: Inputs,
    asked: Sequence[str] | None,
    *,
    user_files: bool = False,
    also: Sequence[str] = (),
    explored: bool = False,
) -> DrawnFigures:
    """Draw the requested figures.

    A figure of `asked` that lacks what it needs, or cannot be drawn for every method, has a note, and so has a usual
    figure that would show a single value, which is not drawn.

    Parameters
    ----------
    inputs : the data from which figures are drawn
    asked : names; None draws the usual figures for which there is something to draw
    user_files : run and draw the user's own figures; without it a note explains how
    also : additional file formats
    explored : return figures that can be explored as plain data, and the others as one file each, of low resolution
    """
    check_names(asked or ())
    drawn = DrawnFigures()
    blocks = inputs.table.blocks
    counts = (len(blocks), sum(len(block.lines) for block in blocks), len(inputs.traces))
    for (what, most), number in zip(MOST.items(), counts, strict=True):
        if number > most:
            drawn.notes.append(f"no figures are drawn: expected at most {most:,} {what}, got {number:,}.")
            return drawn
    files = _files()
    shipped = {name: find(name) for name, path in files.items() if path.parent == HERE}
    unasked = [
        name
        for name, figure in shipped.items()
        if (figure.usual and asked is None and inputs.table.metrics.keys() >= {*figure.needs.metrics})
        or figure.comes_with in inputs.table.metrics
    ]
    for name in dict.fromkeys([*(asked or ()), *unasked]):
        try:
            if name in shipped or user_files:
                figure = shipped.get(name) or find(name)
                notes = _add(drawn, name, figure, inputs, also, explored=explored, requested=name in (asked or ()))
            else:
                notes = [f"{files[name]} contains code; add own_figures=true to run it and draw its figure."]
        except Exception as error:
            if name in shipped and not isinstance(error, KlrBenchError):
                raise
            reason = str(error) if isinstance(error, KlrBenchError) else f"{files[name]}: {exception_text(error)}"
            notes = [f"not drawn: {reason}"]
        drawn.notes.extend(f"figure {name}: {note}" for note in notes if asked and name in asked)
    return drawn


def draw_over(inputs: Inputs, parameters: Sequence[str], also: Sequence[str] = ()) -> DrawnFigures:
    """Draw the first metric of a table against the first swept parameter with numbers as values."""
    lines = [line for block in inputs.table.blocks for line in block.lines]
    numeric = [name for name in parameters if all(to_number(line.variant.get(name)) is not None for line in lines)]
    name, metric = f"over_{'_'.join(parameters)}", next(iter(inputs.table.metrics.values()), None)
    if not numeric or metric is None:
        return DrawnFigures(notes=[f"figure {name}: not drawn, because {' and '.join(parameters)} has no numbers."])
    x, y = Axis(numeric[0], numeric[0]), Axis(metric.name, title_of(metric), UNITS[metric.unit].scale)
    figure = Figure(
        needs=Needs(metrics=(metric.name,), parameter=x.metric),
        plot=lambda inputs: means(inputs, x, [y], lambda line: curve_of(line, x.metric)),
    )
    drawn = DrawnFigures()
    drawn.notes.extend(_add(drawn, name, figure, inputs, also, explored=False, requested=True))
    return drawn


def _files() -> dict[str, Path]:
    """Return the file of each figure, keyed by name and sorted.

    Raises KlrBenchError if a user's own figure has the name of a shipped one.
    """
    modules = {path.stem: path for path in HERE.glob("*.py") if path.name not in ("__init__.py", "curves.py")}
    files = dict(sorted((modules | dict.fromkeys(CURVES, HERE / "curves.py")).items()))
    for folder in config_files.folders()[1:]:
        for path in sorted((folder / "figure").glob("[!_]*.py")):
            if path.stem in files:
                fail(f"two figures are called {path.stem}: {files[path.stem]} and {path}. Rename yours.")
            files[path.stem] = path
    return files


def _add(
    drawn: DrawnFigures,
    name: str,
    figure: Figure,
    inputs: Inputs,
    also: Sequence[str],
    *,
    explored: bool,
    requested: bool,
) -> list[str]:
    import matplotlib.style

    from klr_bench.report.figures.core.drawing import STYLE, draw_plot, saved

    possible, notes = lacking(inputs, figure.needs)
    if not possible:
        return notes
    plot = figure.plot(inputs) if figure.plot else None
    if plot is not None and plot.is_flat and not requested:
        drawn.notes.append(f"figure {name}: not drawn, because it would show a single value.")
        return []
    if plot is not None and len(plot.facets) > MOST_PANELS and not (requested or explored):
        panels = f"it would have {len(plot.facets)} panels; add it to `figures`, or see it on a page (format=html)"
        drawn.notes.append(f"figure {name}: not drawn, because {panels}.")
        return []
    if explored:
        kinds = [kind for kind in figure.kinds if kind in ("png", "svg")] or ["png"]
        figure = replace(figure, kinds=tuple(kinds[-1:]), dpi=min(figure.dpi, PAGE_DPI))
        if plot is not None:
            drawn.plots[name] = plot
            return []
    with matplotlib.style.context(["default", STYLE]), warnings.catch_warnings():
        # matplotlib warns about characters missing from the font and about axes without positive values
        warnings.simplefilter("ignore")
        drawings = figure.draw(inputs) if figure.draw else draw_plot(in_parts(plot)) if plot else None
        if not drawings:
            return ["no value can be drawn."]
        files: dict[str, bytes] = {}
        for stem, drawing in (drawings if isinstance(drawings, Mapping) else {name: drawings}).items():
            free = _free_name(stem, {Path(file).stem for file in (*drawn.files, *files)})
            files |= {
                f"{free}.{kind}": saved(drawing, kind, figure.dpi) for kind in dict.fromkeys([*figure.kinds, *also])
            }
    drawn.files.update(files)
    return notes


def _free_name(stem: str, taken: set[str]) -> str:
    plain = re.sub(r"[^A-Za-z0-9_.=+-]", "-", stem)[:LONGEST].lstrip(".") or "figure"
    names = (plain if number == 1 else f"{plain}_{number}" for number in count(1))
    return next(name for name in names if name not in taken)
