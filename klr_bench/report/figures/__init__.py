"""Figures: each declares what it needs, and says so if that is missing.

`curves` holds the figures that are curves; every other module of this folder holds one as `FIGURE`, and so does a
user's own `./configs/figure/<name>.py`, which is run if an experiment names it and the report allows it.  Figures are
read without colour too: an algorithm is a marker, a curve a marker and a dash, a published value a hollow marker.  The
same rows give the same bytes.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from klr_bench.config import locations as config_files
from klr_bench.errors import KlrBenchError, nearest, raised
from klr_bench.report.figures.core.figure import Drawn, Figure, Inputs, Needs, lacking
from klr_bench.report.figures.curves import FIGURES as CURVES

__all__ = ["Drawn", "Figure", "Inputs", "Needs", "check_names", "draw_all", "find", "names"]

HERE = Path(__file__).parent
MOST = {"data sets": 60, "lines of the table": 1000, "checkpoints": 200_000}
"""The most that one figure shows."""
PAGE_DPI = 80
"""Dots per inch of a picture on a page."""
LONGEST = 120
"""Characters of the name of a file without its suffix."""


def names() -> list[str]:
    """Return the sorted names of all figures: the shipped ones, and those of ./configs/figure."""
    return sorted(_files())


def check_names(asked: Iterable[Any]) -> None:
    """Raise KlrBenchError, with the nearest name, for the first name without a figure."""
    known = _files()
    for name in asked:
        if not isinstance(name, str) or name not in known:
            message = f"figures: unknown value {name!r}.{nearest(str(name), known)}"
            raise KlrBenchError(message)


def find(name: str) -> Figure:
    """Return the figure of this name.

    Raises KlrBenchError if there is none, and if a user's own file cannot be imported or holds no figure.
    """
    check_names([name])
    path = _files()[name]
    if path.parent != HERE:
        return _own(path)
    figure = CURVES[name] if name in CURVES else importlib.import_module(f"{__name__}.{name}").FIGURE
    assert isinstance(figure, Figure)
    return figure


def draw_all(
    inputs: Inputs,
    asked: Sequence[str] | None,
    *,
    own: bool = False,
    also: Sequence[str] = (),
    explored: bool = False,
    pictures: bool = True,
) -> Drawn:
    """Draw the figures that are asked for.

    A figure that was asked for and lacks what it needs, or cannot be drawn for every algorithm, has a note.

    Parameters
    ----------
    inputs : what they are drawn from
    asked : names; None draws the usual ones, as far as there is something for them
    own : run and draw the user's own figures; without it a note says how
    also : further formats of the files
    explored : return figures that can be explored as plain data, and the others as one file each, with few dots
    pictures : whether those others are drawn
    """
    check_names(asked or ())
    files = _files()
    shipped = {name: find(name) for name, path in files.items() if path.parent == HERE}
    unasked = [
        name
        for name, figure in shipped.items()
        if (figure.usual and asked is None) or figure.comes_with in inputs.table.shown
    ]
    drawn = Drawn()
    too_many = _too_many(inputs)
    if too_many:
        drawn.notes.append(f"no figures are drawn: {too_many}.")
        return drawn
    for name in dict.fromkeys([*(asked or ()), *unasked]):
        if name not in shipped and not own:
            drawn.notes.append(f"figure {name}: {files[name]} is code; add own_figures=true to have it run and drawn.")
            continue
        try:
            figure = shipped.get(name) or _own(files[name])
            if explored:
                figure = replace(figure, kinds=figure.kinds[-1:], dpi=min(figure.dpi, PAGE_DPI))
                plot = figure.plot(inputs) if figure.plot and lacking(inputs, figure.needs)[0] else None
                if plot is not None:
                    drawn.plots[name] = plot
                if plot is not None or not pictures:
                    continue
            made, notes = _drawn(name, figure, inputs, drawn.files, also)
        except Exception as error:
            if name in shipped and not isinstance(error, KlrBenchError):
                raise
            reason = str(error) if isinstance(error, KlrBenchError) else f"{files[name]}: {raised(error)}"
            made, notes = {}, [f"not drawn: {reason}"]
        drawn.files.update(made)
        drawn.notes.extend(f"figure {name}: {note}" for note in notes if asked and name in asked)
    return drawn


def _too_many(inputs: Inputs) -> str:
    """Return what there is more of than a picture can show, or ""."""
    blocks = inputs.table.blocks
    counts = {"data sets": len(blocks), "lines of the table": sum(len(block.lines) for block in blocks)}
    counts["checkpoints"] = len(inputs.traces)
    return "; ".join(
        f"{count:,} {what}, at most {MOST[what]:,}" for what, count in counts.items() if count > MOST[what]
    )


def _files() -> dict[str, Path]:
    """Return the file of each figure by its name, sorted.

    Raises KlrBenchError if a user's own has the name of a shipped one.
    """
    modules = {path.stem: path for path in HERE.glob("*.py") if path.name not in ("__init__.py", "curves.py")}
    found = dict(sorted((modules | dict.fromkeys(CURVES, HERE / "curves.py")).items()))
    for folder in config_files.folders()[1:]:
        for path in sorted((folder / "figure").glob("[!_]*.py")):
            if path.stem in found:
                message = f"two figures are called {path.stem}: {found[path.stem]} would hide {path}. Rename yours."
                raise KlrBenchError(message)
            found[path.stem] = path
    return found


def _own(path: Path) -> Figure:
    """Import a user's own file and return its figure."""
    spec = importlib.util.spec_from_file_location(f"klr_bench_own_figure_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        message = f"{path}: cannot be imported ({raised(error)})."
        raise KlrBenchError(message) from error
    figure = getattr(module, "FIGURE", None)
    if not isinstance(figure, Figure):
        message = f"{path}: expected FIGURE = klr_bench.report.figures.Figure(needs=..., draw=...), got {figure!r}."
        raise KlrBenchError(message)
    return figure


def _drawn(
    name: str, figure: Figure, inputs: Inputs, taken: Mapping[str, bytes], also: Sequence[str]
) -> tuple[dict[str, bytes], list[str]]:
    """Return the files of one figure, whose names are not yet `taken`, and notes."""
    import matplotlib.style

    from klr_bench.report.figures.core.drawing import STYLE, saved

    possible, notes = lacking(inputs, figure.needs)
    if not possible:
        return {}, notes
    with matplotlib.style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that no font has, and of axes without positive values
        drawings = figure.drawings(inputs)
        if not drawings:
            return {}, ["there is no value that can be drawn."]
        files: dict[str, bytes] = {}
        kinds = dict.fromkeys([*figure.kinds, *also])
        for stem, drawing in (drawings if isinstance(drawings, Mapping) else {name: drawings}).items():
            free = _free_name(stem, {Path(file).stem for file in (*taken, *files)})
            files |= {f"{free}.{kind}": saved(drawing, kind, figure.dpi) for kind in kinds}
    return files, notes


def _free_name(stem: str, taken: Iterable[str]) -> str:
    """Return a name for a file, of plain characters, that no other file has yet."""
    plain = re.sub(r"[^A-Za-z0-9_.=+-]", "-", stem)[:LONGEST].lstrip(".") or "figure"
    number, free = 1, plain
    while free in taken:
        number += 1
        free = f"{plain}_{number}"
    return free
