"""Figures of extreme records are drawn, or omitted with a note, without an error or endless picture."""

import math
import re
import warnings
from pathlib import Path
from random import Random
from typing import Any

import pytest

from klr_bench.report.figures import MOST, draw_all, names
from klr_bench.results.record import CellFile, possible
from tests.report.figures import made

EXTREMES = (0.0, 1e-300, 5e-324, 1e-12, 0.5, 1.0, 3.0, 2.0**53, 1e300, 1.7e308, -1e300, math.inf)
VALUES: tuple[Any, ...] = (0, 1, -1, 1e-300, 1e300, math.inf, None, True, [1, 2], "x" * 300, "$\\frac$")
LABELS = ("x" * 10**4, "$", "\\frac{1}{2}", "$\\frac$", "a_b^c", "[/b]", "<b>&", "%", "日本", "\U0001f600")
LARGEST_FILE = 20 * 10**6
MOST_PIXELS = 10**8


def number(draw: Random, name: str) -> float:
    """Return an extreme number that a metric can have."""
    return draw.choice([value for value in EXTREMES if possible(name, value) and possible(name, value / 2)])


def extreme(draw: Random, dataset: str, algorithm: str) -> CellFile:
    """Return a fit with extreme numbers, some of which are missing."""
    metrics = {name: number(draw, name) for name in made.METRICS if draw.random() < 0.9}
    traced = {name: number(draw, name) for name in made.TRACED if draw.random() < 0.95}
    variant = {name: draw.choice(VALUES) for name in made.PARAMETERS if draw.random() < 0.7}
    bins = [(k, draw.choice([0, 1, 50, 2**53]), draw.choice([0.0, 1.0]), draw.choice([0.0, 1.0])) for k in range(3)]
    rows = [(draw.choice([0.0, 1.0, 1e300, -1e300]), draw.choice([0.0, 1e-300]), draw.choice([0, 1])) for _ in range(3)]
    stored = {"bins": bins, "rows": rows} if draw.random() < 0.8 else {}
    status = draw.choice(["ok", "ok", "timeout", "error"])
    return made.cell(algorithm, variant, dataset=dataset, status=status, metrics=metrics, traced=traced, **stored)


@pytest.mark.exhaustive
@pytest.mark.drawn(0.01)
def test_extreme_records_are_drawn_or_left_out(tmp_path: Path, draw: Random) -> None:
    algorithms = {f"a{number}": {"label": draw.choice(LABELS)} for number in range(draw.choice([1, 3]))}
    datasets = {f"d{number}": {"label": draw.choice(LABELS)} for number in range(draw.choice([1, 2]))}
    cells = [extreme(draw, dataset, algorithm) for dataset in datasets for algorithm in algorithms]
    inputs = made.read(made.write(tmp_path, cells, algorithms=algorithms, datasets=datasets))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = draw_all(inputs, [draw.choice(names())])
    assert drawn.files or drawn.notes
    for name, content in drawn.files.items():
        assert len(content) < LARGEST_FILE
        if name.endswith(".png"):
            width, height = (int.from_bytes(content[at : at + 4]) for at in (16, 20))
            assert width * height < MOST_PIXELS


@pytest.mark.parametrize(
    ("what", "cells"),
    [
        ("data sets", [made.cell(dataset=f"d{number}") for number in range(3)]),
        ("lines of the table", [made.cell(variant={"R": number}) for number in range(3)]),
        ("checkpoints", [made.cell(traced={"accuracy": 0.5, "n_support": 2.0}, metrics={"accuracy": 0.5})]),
    ],
)
def test_what_is_too_much_for_a_picture_is_not_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, cells: list[CellFile]
) -> None:
    monkeypatch.setitem(MOST, what, 2)
    drawn = draw_all(made.read(made.write(tmp_path, cells)), ["accuracy_support"])
    number = 4 if what == "checkpoints" else 3
    note = f"no figures are drawn: expected at most 2 {what}, got {number}."
    assert (drawn.files, drawn.notes) == ({}, [note])


def test_names_from_records_make_distinct_file_names_in_the_folder(tmp_path: Path) -> None:
    names = ("a b", "a*b", "a:b")
    cells = [
        made.cell("p", {"init": value}, dataset=name, traced=made.TRACED, rows=made.ROWS)
        for name in names
        for value in ("../../evil", "x" * 400)
    ]
    files = draw_all(made.read(made.write(tmp_path, cells)), ["prototype_pictures"]).files
    assert sum(name.startswith("prototypes_a-b_") for name in files) == len(cells)
    assert all(re.fullmatch(r"[A-Za-z0-9_=+-][A-Za-z0-9_.=+-]{0,130}\.png", name) for name in files if "a-b" in name)
