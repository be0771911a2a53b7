"""What the script of a page shows: tables with the texts of their files, and plots that refer to their rows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from klr_bench.report.figures.core.plot import Axis, Plot, Series

SYMBOLS = {
    **{"o": "circle", "s": "square", "^": "triangle-up", "D": "diamond", "v": "triangle-down", "P": "cross", "X": "x"},
    **{"<": "triangle-left", ">": "triangle-right", "p": "pentagon", "h": "hexagon", "*": "star"},
}
DASHES = {"-": "solid", "--": "dash", "-.": "dashdot", ":": "dot"}
DIGITS = 6
"""Digits of the numbers of a plot, more than a screen has dots; the texts of tables have all."""

Plain = dict[str, Any]
"""Values of JSON."""


@dataclass(frozen=True)
class DataTable:
    """A table of texts that readers sort, filter and take away as a CSV file.

    Parameters
    ----------
    columns : the names of the columns, those of the file
    rows : their texts, as the file has them
    shown : the columns that are shown at first
    titles : print names of some columns
    labels : by column, print names of some of its texts
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    shown: Sequence[str]
    titles: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def plain(self) -> Plain:
        """Return it as values of JSON."""
        numeric = [all(map(_is_number, column)) for column in zip(*self.rows, strict=True)]
        return {
            "title": self.title,
            "file": f"{self.name}.csv",
            "columns": [
                {"name": name, "title": self.titles.get(name, name.replace("_", " ")), "numeric": number}
                for name, number in zip(self.columns, numeric or [False] * len(self.columns), strict=True)
            ],
            "rows": self.rows,
            "shown": [self.columns.index(name) for name in self.shown if name in self.columns],
            "labels": self.labels,
        }


def plain_plot(name: str, plot: Plot, table: str, rows: Mapping[str, int]) -> Plain:
    """Return a plot as values of JSON; `rows` are the numbers of the rows of the `table` of records, by key."""
    sides = ", ".join(dict.fromkeys(facet.y.label for facet in plot.facets))
    return {
        "name": name,
        "title": f"{sides} against {plot.x.label[:1].lower()}{plot.x.label[1:]}",
        "table": table,
        "x": _axis(plot.x),
        "diagonal": plot.diagonal,
        "facets": [
            {"title": facet.title, "y": _axis(facet.y), "series": [_series(one, rows) for one in facet.series]}
            for facet in plot.facets
        ],
    }


def _axis(axis: Axis) -> Plain:
    return {"label": axis.label, "log": axis.logarithmic}


def _series(series: Series, rows: Mapping[str, int]) -> Plain:
    look = series.look
    dash = DASHES[look.dashes] if isinstance(look.dashes, str) else ",".join(f"{one}px" for one in look.dashes[1])
    return {
        "id": json.dumps([series.curve[0], dict(series.curve[1])]),
        **{"name": look.label, "symbol": SYMBOLS[look.marker], "dash": dash, "colour": look.colour},
        "kind": series.kind,
        "connected": series.connected,
        "x": _rounded(series.x),
        "y": _rounded(series.y),
        "xSpread": _rounded(series.x_spread) if any(series.x_spread) else [],
        "spread": _rounded(series.spread) if any(series.spread) else [],
        "fits": [[rows[key] for key in keys if key in rows] for keys in series.keys],
        "names": series.names,
    }


def _rounded(numbers: Sequence[float]) -> list[float | None]:
    return [float(f"{number:.{DIGITS}g}") if math.isfinite(number) else None for number in numbers]


def _is_number(text: str) -> bool:
    try:
        return not text or not math.isnan(float(text))
    except ValueError:
        return False


def script_json(content: Any) -> str:
    """Return JSON that can stand inside of a script element: nothing in it ends one or begins markup."""
    text = json.dumps(content, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
