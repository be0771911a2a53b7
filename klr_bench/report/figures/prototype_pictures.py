"""Prototypes in the plane, pass by pass: a picture a fit whose training rows are stored.

A column a checkpoint; above, the training rows and the prototypes as black squares, then the predicted regions with the
same rows as they are predicted, then the kernel values of the rows with the first two prototypes.  A legend says what
the colours and the squares are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from klr_bench.errors import KlrBenchError
from klr_bench.report.figures.core.drawing import plain
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.plot import LARGEST
from klr_bench.results.variants import value_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

CLASS_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GRID = 150
"""Points along each axis at which the regions are predicted."""
MARGIN = 0.05
MOST_NAMED = len(CLASS_COLOURS)
"""Classes that the legend names; further ones have the same colours again."""
MOST_PICTURES, MOST_PASSES = 100, 60


@dataclass(frozen=True)
class Classifier:
    """The classifier after one pass: b0 (M,), b (M, J), u (J, 2) and gamma."""

    b0: NDArray[np.float64]
    b: NDArray[np.float64]
    u: NDArray[np.float64]
    gamma: float

    @classmethod
    def of(cls, values: Mapping[str, float]) -> Classifier | None:
        """Return the classifier whose entries a checkpoint holds, or None if they do not make one."""
        u, b, b0 = _array(values, "u", 2), _array(values, "b", 2), _array(values, "b0", 1)
        if "gamma" not in values or u.shape[1] != 2 or b.shape != (len(b0), len(u)) or not u.size:
            return None
        return cls(b0, b, u, values["gamma"]) if all(np.isfinite(one).all() for one in (u, b, b0)) else None

    def kernel(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the kernel values (n, J) of rows X (n, 2)."""
        distances = ((X[:, None, :] - self.u) ** 2).sum(axis=2)
        return np.asarray(np.exp(-self.gamma * distances))

    def classes(self, X: NDArray[Any]) -> NDArray[np.intp]:
        """Return the numbers of the most probable classes, (n,)."""
        scores = self.b0 + self.kernel(X) @ self.b.T
        return (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else np.argmax(scores, axis=1)


def _draw(inputs: Inputs) -> dict[str, Drawing]:
    titles = {
        (block.dataset, line.algorithm): f"{block.label}, {line.algorithm_label}"
        for block in inputs.table.blocks
        for line in block.lines
    }
    rows = {key: group for key, group in inputs.rows.groupby("key")}
    traces = {key: group for key, group in inputs.traces[inputs.traces["key"].isin(set(rows))].groupby("key")}
    drawings: dict[str, Drawing] = {}
    several = inputs.records["algorithm"].nunique() > 1
    for record in inputs.records.to_dict("records"):
        passes = _passes(traces.get(record["key"]))
        if len(drawings) > MOST_PICTURES or len(passes) > MOST_PASSES:
            message = f"expected at most {MOST_PICTURES} fits with {MOST_PASSES} checkpoints each, got more."
            raise KlrBenchError(message)
        X, y, labels = _plane(rows.get(record["key"]))
        if passes and len(X):
            dataset, algorithm = record["dataset"], record["algorithm"]
            name = "_".join(
                ["prototypes", dataset, *map(value_text, record["variant"].values()), *[algorithm] * several]
            )
            drawings[_unlike(name, drawings)] = _picture(X, y, labels, passes, titles[dataset, algorithm])
    return drawings


def _passes(trace: pd.DataFrame | None) -> list[tuple[int, Classifier]]:
    """Return the number of each pass that has a checkpoint, and the classifier after it."""
    if trace is None:
        return []
    passes: dict[int, dict[str, float]] = {}
    for t, metric, value in zip(trace["t"], trace["metric"], trace["value"], strict=True):
        passes.setdefault(int(t), {})[metric] = value if abs(value) <= LARGEST else np.inf
    return [(t, classifier) for t, values in sorted(passes.items()) if (classifier := Classifier.of(values))]


def _plane(rows: pd.DataFrame | None) -> tuple[NDArray[np.float64], NDArray[np.intp], list[str]]:
    """Return training rows (n, 2), the numbers of their classes (n,), and the labels of the classes."""
    if rows is None:
        return np.empty((0, 2)), np.empty(0, np.intp), []
    finite = rows[(rows[["x1", "x2"]].abs() <= LARGEST).all(axis=1)]
    labels, y = np.unique(finite["label"], return_inverse=True)
    return finite[["x1", "x2"]].to_numpy(), y, [value_text(label.item()) for label in labels]


def _unlike(name: str, taken: Mapping[str, object]) -> str:
    """Return the name, with a number if it is taken: repeats have the same variant."""
    return name if name not in taken else f"{name}_{1 + sum(other.startswith(name) for other in taken)}"


def _picture(
    X: NDArray[Any], y: NDArray[np.intp], labels: list[str], passes: list[tuple[int, Classifier]], title: str
) -> Drawing:
    low, high = X.min(axis=0), X.max(axis=0)
    low, high = low - MARGIN * (high - low), high + MARGIN * (high - low)
    grid = np.stack(np.meshgrid(*(np.linspace(low[k], high[k], GRID) for k in (0, 1))), axis=-1)
    n_classes = max(2, y.max() + 1, *(len(classifier.b0) for _, classifier in passes))
    colours = np.resize(CLASS_COLOURS, n_classes)
    with matplotlib.rc_context({"axes.grid": False}):
        drawing = Drawing(figsize=(2.1 * len(passes) + 0.4, 7.0), layout="constrained")
        drawing.suptitle(plain(f"{title}, {len(passes[0][1].u)} prototypes"))
        panels = drawing.subplots(3, len(passes), squeeze=False)
        for column, (t, classifier) in enumerate(passes):
            data, regions, features = panels[:, column]
            data.scatter(*X.T, s=2, c=colours[y])
            predicted = classifier.classes(grid.reshape(-1, 2)).reshape(GRID, GRID)
            levels = np.arange(n_classes + 1) - 0.5
            regions.contourf(
                *np.moveaxis(grid, 2, 0), predicted, levels=levels, cmap=ListedColormap(colours), alpha=0.3
            )
            regions.scatter(*X.T, s=2, c=colours[classifier.classes(X)])
            K = classifier.kernel(X)
            features.scatter(K[:, 0], K[:, min(1, K.shape[1] - 1)], s=2, c=colours[y])
            features.set(xlabel="$k(x, u_1)$", xlim=(-0.05, 1.05), ylim=(-0.05, 1.05))
            for axes in (data, regions):
                _mark(axes, classifier.u, low, high)
            data.set_title(f"pass {t}")
            if column == 0:
                data.set_ylabel("training data")
                regions.set_ylabel("predicted")
                features.set_ylabel("$k(x, u_2)$")
        beyond = any(not _inside(classifier.u, low, high).all() for _, classifier in passes)
        _explain(drawing, labels, colours, beyond=beyond)
    return drawing


def _explain(drawing: Drawing, labels: list[str], colours: NDArray[Any], *, beyond: bool) -> None:
    """Add a legend under the panels: the classes by colour, and the prototypes, `beyond` the data or not."""
    points = [
        Line2D([], [], linestyle="", marker="o", color=colour, label=plain(f"class {label}"))
        for label, colour in zip(labels[:MOST_NAMED], colours, strict=False)
    ]
    squares = {"prototype": "black"} | ({"prototype beyond the data, at their edge": "white"} if beyond else {})
    points += [
        Line2D([], [], linestyle="", marker="s", color="black", markerfacecolor=face, label=label)
        for label, face in squares.items()
    ]
    drawing.legend(handles=points, loc="outside lower center", ncols=len(points))


def _inside(u: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(((u >= low) & (u <= high)).all(axis=1))


def _mark(axes: Axes, u: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> None:
    """Draw the prototypes as black squares; those beyond the data at its edge, hollow."""
    inside, at = _inside(u, low, high), np.clip(u, low, high)
    for shown, face in ((inside, "black"), (~inside, "white")):
        style: dict[str, Any] = {"marker": "s", "facecolor": face, "edgecolor": "black", "clip_on": False, "zorder": 3}
        axes.scatter(at[shown, 0], at[shown, 1], s=26, **style)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[])


def _array(values: Mapping[str, float], name: str, n_axes: int) -> NDArray[np.float64]:
    """Return the array whose entries are called name_0_0, name_0_1, ...; an empty one if they do not fill one."""
    pattern = re.compile(name + r"_([0-9]{1,9})" * n_axes)
    matches = {key: match for key in values if (match := pattern.fullmatch(key))}
    entries = {tuple(map(int, match.groups())): values[key] for key, match in matches.items()}
    shape = [1 + max((at[k] for at in entries), default=-1) for k in range(n_axes)]
    if np.prod(shape, dtype=float) != len(entries):
        return np.empty([0] * n_axes)
    return np.array([entries[at] for at in np.ndindex(*shape)]).reshape(shape)


FIGURE = Figure(
    needs=Needs(traces=("u_0_0", "b_0_0", "b0_0", "gamma"), rows=True),
    draw=_draw,
    title="Prototypes in the plane, pass by pass",
    kinds=("png",),
    dpi=110.0,
)
