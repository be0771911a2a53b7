"""The figures: one file each, found by its name; which declares what it needs, and says so where that is missing.

Each module of this folder holds a `FIGURE`; so does a user's own `./configs/figure/<name>.py`, which is run and drawn
where an experiment asks for it by name and the report is told to.  Figures are read without colour too: an algorithm is
a marker, a line of a curve a marker and a dash, a published value a hollow marker.  The same rows give the same bytes.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from klr_bench.errors import KlrBenchError, nearest, raised
from klr_bench.experiment.config import files as config_files
from klr_bench.files import regular
from klr_bench.report.figures.core.figure import Drawn, Figure, Inputs, Needs
from klr_bench.report.figures.core.needs import lacking

__all__ = ["Drawn", "Figure", "Inputs", "Needs", "check_names", "draw_all", "find", "names"]

HERE = Path(__file__).parent
MOST = {"data sets": 60, "lines of the table": 1000, "checkpoints": 200_000}
"""Of what one figure shows."""
PAGE_DPI = 80
"""Dots an inch of a picture on a page."""
LONGEST = 120
"""Characters of the name of a file, without what says its format."""


def names(folders: Sequence[Path] | None = None) -> list[str]:
    """Return the sorted names of all figures: the shipped ones, and those of figure/ in the user's configs.

    `folders` are those of the configs, by default the usual ones, the shipped one first.
    """
    return sorted(_files(folders))


def check_names(asked: Iterable[Any], folders: Sequence[Path] | None = None) -> None:
    """Refuse the first that is no name of a figure, and say which is near."""
    known = _files(folders)
    for name in asked:
        if not isinstance(name, str) or name not in known:
            message = f"figures: unknown value {name!r}.{nearest(str(name), known)}"
            raise KlrBenchError(message)


def find(name: str, folders: Sequence[Path] | None = None) -> Figure:
    """Return the figure of this name.

    KlrBenchError where there is none, and where the file of a user's own cannot be imported or holds no figure.
    """
    check_names([name], folders)
    _import_matplotlib()
    path = _files(folders)[name]
    if path.parent != HERE:
        return _own(path)
    figure = importlib.import_module(f"{__name__}.{name}").FIGURE
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
    """Draw the figures that are asked for; None: the usual ones, those of them that there is something for.

    Where one that is asked for lacks what it needs, or cannot be drawn for every algorithm, a note says so.  So it
    does where a user's own figure raises, and without `own`, for then no file of the user's is run.  KlrBenchError for
    a name that is unknown.  `also` are formats of the files beside those that a figure has by itself.  `explored`: for
    a page; figures that can be are left as plain data, of the others there is one file for each picture, of few dots.
    Without `pictures` these others are left out.
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
        except BaseException as error:  # a figure of the user's own may raise anything
            if isinstance(error, KeyboardInterrupt) or (name in shipped and not isinstance(error, KlrBenchError)):
                raise
            said = str(error) if isinstance(error, KlrBenchError) else f"{files[name]}: {raised(error)}"
            made, notes = {}, [f"not drawn: {said}"]
        drawn.files.update(made)
        drawn.notes.extend(f"figure {name}: {note}" for note in notes if asked and name in asked)
    return drawn


def _import_matplotlib() -> None:
    """Import matplotlib from another folder: it would take the settings, and the back end, of ./matplotlibrc."""
    if "matplotlib" in sys.modules:
        return
    here = os.getcwd()
    os.chdir(HERE)
    try:
        importlib.import_module("matplotlib")
    finally:
        os.chdir(here)


def _too_many(inputs: Inputs) -> str:
    """Return what there is more of than a picture can show, "" for nothing."""
    blocks = inputs.table.blocks
    counts = {"data sets": len(blocks), "lines of the table": sum(len(block.lines) for block in blocks)}
    counts["checkpoints"] = len(inputs.traces)
    return "; ".join(
        f"{count:,} {what}, at most {MOST[what]:,}" for what, count in counts.items() if count > MOST[what]
    )


def _files(folders: Sequence[Path] | None = None) -> dict[str, Path]:
    """Return the file of each figure by its name, in the order of the names.

    KlrBenchError where a user's own would have the name of a shipped one.
    """
    found = {path.stem: path for path in sorted(HERE.glob("*.py")) if path.name != "__init__.py"}
    for folder in (config_files.folders() if folders is None else folders)[1:]:
        for path in sorted((folder / "figure").glob("[!_]*.py")):
            if path.stem in found:
                message = f"two figures are called {path.stem}: {found[path.stem]} would hide {path}. Rename yours."
                raise KlrBenchError(message)
            found[path.stem] = path
    return found


def _own(path: Path) -> Figure:
    """Import a user's own file and return its figure."""
    with regular(path):
        pass  # or it is refused: Python would wait for a pipe
    spec = importlib.util.spec_from_file_location(f"klr_bench_own_figure_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        message = f"{path}: cannot be imported ({raised(error)})."
        raise KlrBenchError(message) from error
    figure = getattr(module, "FIGURE", None)
    if not isinstance(figure, Figure):
        message = f"{path}: expected FIGURE = klr_bench.report.figures.Figure(needs=..., draw=...), got {figure!r}."
        raise KlrBenchError(message)
    if figure.usual or figure.comes_with:
        message = (
            f"{path}: a figure of your own is drawn where it is asked for by name; leave usual and comes_with out."
        )
        raise KlrBenchError(message)
    return figure


def _drawn(
    name: str, figure: Figure, inputs: Inputs, taken: Mapping[str, bytes], also: Sequence[str]
) -> tuple[dict[str, bytes], list[str]]:
    """Return the files of one figure, none of them one of those `taken`, and what there is to note."""
    import matplotlib.style

    from klr_bench.report.figures.core.drawing import STYLE, saved

    possible, notes = lacking(inputs, figure.needs)
    if not possible:
        return {}, notes
    with matplotlib.style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that no font has, and of axes without positive values
        drawings = figure.draw(inputs)
        if not drawings:
            return {}, ["there is no value that can be drawn."]
        files: dict[str, bytes] = {}
        kinds = dict.fromkeys([*figure.kinds, *also])
        for stem, drawing in (drawings if isinstance(drawings, Mapping) else {name: drawings}).items():
            free = _free_name(stem, {Path(file).stem for file in (*taken, *files)})
            files |= {f"{free}.{kind}": saved(drawing, kind, figure.dpi) for kind in kinds}
    return files, notes


def _free_name(stem: str, taken: Iterable[str]) -> str:
    """Return a name for a file, of characters that are plain everywhere, that no other file has yet."""
    plain = re.sub(r"[^A-Za-z0-9_.=+-]", "-", stem)[:LONGEST].lstrip(".") or "figure"
    number, free = 1, plain
    while free in taken:
        number += 1
        free = f"{plain}_{number}"
    return free
