"""Pictures of the prototypes after each pass, for fits on two features with stored rows.

A picture has one column per checkpoint.  Above are the training rows and the prototypes as black squares, then the
predicted regions with the rows in the color of their predicted class, then the kernel values of the rows with the first
two prototypes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from klr_bench.errors import fail
from klr_bench.report.figures.core.drawing import plain
from klr_bench.report.figures.core.figure import Figure, Inputs, Needs
from klr_bench.report.figures.core.plot import LARGEST
from klr_bench.results.variants import value_text

if TYPE_CHECKING:
    import pandas as pd

CLASS_COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Class colors; with more classes than colors they repeat."""
GRID = 150
"""Number of points along each axis at which the regions are predicted."""
MARGIN = 0.05
MOST_PICTURES, MOST_PASSES = 100, 60


class Classifier(NamedTuple):
    """Classifier after one pass: intercepts b0 (M,), coefficients b (M, J), prototypes u (J, 2)."""

    b0: NDArray[np.float64]
    b: NDArray[np.float64]
    u: NDArray[np.float64]
    gamma: float

    @classmethod
    def of(cls, values: Mapping[str, float]) -> Classifier | None:
        """Return the classifier stored in a checkpoint, or None if the checkpoint is incomplete."""
        u, b, b0 = _array(values, "u", 2), _array(values, "b", 2), _array(values, "b0", 1)
        if "gamma" not in values or u.shape[1] != 2 or b.shape != (len(b0), len(u)) or not u.size:
            return None
        return cls(b0, b, u, values["gamma"]) if all(np.isfinite(array).all() for array in (u, b, b0)) else None

    def kernel(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the kernel values between the rows of X and the prototypes, of shape (n, J)."""
        return np.asarray(np.exp(-self.gamma * ((X[:, None, :] - self.u) ** 2).sum(axis=2)))

    def classes(self, X: NDArray[Any]) -> NDArray[np.intp]:
        """Return the index of the most probable class for each row, of shape (n,)."""
        scores = self.b0 + self.kernel(X) @ self.b.T
        return (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else np.argmax(scores, axis=1)


def _array(values: Mapping[str, float], name: str, n_axes: int) -> NDArray[np.float64]:
    """Return the array with the entries name_0_0, name_0_1, ...; it is empty if one is missing."""
    pattern = re.compile(name + r"_([0-9]{1,9})" * n_axes)
    matches = {key: match for key in values if (match := pattern.fullmatch(key))}
    entries = {tuple(map(int, match.groups())): values[key] for key, match in matches.items()}
    shape = [1 + max((at[k] for at in entries), default=-1) for k in range(n_axes)]
    if np.prod(shape, dtype=float) != len(entries):
        return np.empty([0] * n_axes)
    return np.array([entries[at] for at in np.ndindex(*shape)]).reshape(shape)


def _draw(inputs: Inputs) -> dict[str, Drawing]:
    titles = {
        (block.dataset, line.algorithm): f"{block.label}, {line.algorithm_label}"
        for block in inputs.table.blocks
        for line in block.lines
    }
    rows, traces = (dict(iter(frame.groupby("key"))) for frame in (inputs.rows, inputs.traces))
    several = inputs.records["algorithm"].nunique() > 1
    drawings: dict[str, Drawing] = {}
    repeats = Counter[str]()
    for record in inputs.records[inputs.records["key"].isin(rows.keys() & traces.keys())].to_dict("records"):
        passes, data = _passes(traces[record["key"]]), rows[record["key"]]
        data = data[(data[["x1", "x2"]].abs() <= LARGEST).all(axis=1)]
        if not passes or data.empty:
            continue
        if len(drawings) >= MOST_PICTURES or len(passes) > MOST_PASSES:
            fail(f"expected at most {MOST_PICTURES} fits with {MOST_PASSES} checkpoints each, got more.")
        dataset, algorithm = record["dataset"], record["algorithm"]
        name = "_".join(["prototypes", dataset, *map(value_text, record["variant"].values()), *[algorithm] * several])
        repeats[name] += 1
        drawings[f"{name}_{repeats[name]}" if name in drawings else name] = _picture(
            data, passes, titles[dataset, algorithm]
        )
    return drawings


def _passes(trace: pd.DataFrame) -> list[tuple[int, Classifier]]:
    """Return the index and the classifier of each pass that has a checkpoint."""
    passes: dict[int, dict[str, float]] = {}
    for t, metric, value in zip(trace["t"], trace["metric"], trace["value"], strict=True):
        passes.setdefault(int(t), {})[metric] = value if abs(value) <= LARGEST else np.inf
    return [(t, classifier) for t, values in sorted(passes.items()) if (classifier := Classifier.of(values))]


def _picture(rows: pd.DataFrame, passes: list[tuple[int, Classifier]], title: str) -> Drawing:
    X = rows[["x1", "x2"]].to_numpy()
    labels, y = np.unique(rows["label"], return_inverse=True)
    low, high = X.min(axis=0), X.max(axis=0)
    low, high = low - MARGIN * (high - low), high + MARGIN * (high - low)
    grid = np.stack(np.meshgrid(*(np.linspace(low[k], high[k], GRID) for k in (0, 1))), axis=-1)
    n_classes = max(2, y.max() + 1, *(len(classifier.b0) for _, classifier in passes))
    colors = np.resize(CLASS_COLORS, n_classes)
    points = [
        Line2D([], [], linestyle="", marker="o", color=color, label=plain(f"class {value_text(label.item())}"))
        for label, color in zip(labels, CLASS_COLORS, strict=False)
    ]
    squares = {"prototype": "black"}
    with matplotlib.rc_context({"axes.grid": False}):
        drawing = Drawing(figsize=(2.1 * len(passes) + 0.4, 7.0), layout="constrained")
        drawing.suptitle(plain(f"{title}, {len(passes[0][1].u)} prototypes"))
        panels = drawing.subplots(3, len(passes), squeeze=False)
        for (t, classifier), (data, regions, features) in zip(passes, panels.T, strict=True):
            data.scatter(*X.T, s=2, c=colors[y])
            predicted = classifier.classes(grid.reshape(-1, 2)).reshape(GRID, GRID)
            levels, shades = np.arange(n_classes + 1) - 0.5, ListedColormap(colors)
            regions.contourf(*np.moveaxis(grid, 2, 0), predicted, levels=levels, cmap=shades, alpha=0.3)
            regions.scatter(*X.T, s=2, c=colors[classifier.classes(X)])
            K = classifier.kernel(X)
            features.scatter(K[:, 0], K[:, min(1, K.shape[1] - 1)], s=2, c=colors[y])
            features.set(xlabel="$k(x, u_1)$", xlim=(-0.05, 1.05), ylim=(-0.05, 1.05))
            inside = ((classifier.u >= low) & (classifier.u <= high)).all(axis=1)
            squares |= {} if inside.all() else {"prototype beyond the data, at their edge": "white"}
            at, faces = np.clip(classifier.u, low, high), np.where(inside, "black", "white")
            for axes in (data, regions):
                axes.scatter(*at.T, s=26, marker="s", c=faces, edgecolors="black", clip_on=False, zorder=3)
                axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[])
            data.set_title(f"pass {t}")
    for axes, name in zip(panels[:, 0], ("training data", "predicted", "$k(x, u_2)$"), strict=True):
        axes.set_ylabel(name)
    points += [
        Line2D([], [], linestyle="", marker="s", color="black", markerfacecolor=face, label=label)
        for label, face in squares.items()
    ]
    drawing.legend(handles=points, loc="outside lower center", ncols=len(points))
    return drawing


FIGURE = Figure(
    needs=Needs(traces=("u_0_0", "b_0_0", "b0_0", "gamma"), rows=True),
    draw=_draw,
    title="Prototypes in the plane, pass by pass",
    kinds=("png",),
    dpi=110.0,
)
