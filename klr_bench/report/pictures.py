"""Pictures of prototypes in the plane, pass by pass: data are generated anew, the classifiers come from a trace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.style
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from klr_bench.experiment.config.splitting import read_split
from klr_bench.experiment.data import load
from klr_bench.experiment.splits import make_split
from klr_bench.experiment.variants import value_text
from klr_bench.report.drawing import STYLE, saved

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

CLASS_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
CELLS = 150
"""Of the grid on which regions are drawn, along each axis."""
MARGIN = 0.05


class Picture:
    """The classifier after one pass: b0 (M,), b (M, J), u (J, 2), gamma, from the rows of a trace."""

    def __init__(self, values: Mapping[str, float]) -> None:
        self.u, self.b, self.b0 = _array(values, "u", 2), _array(values, "b", 2), _array(values, "b0", 1)
        self.gamma = values["gamma"]

    def kernel(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the kernel values (n, J) of rows X (n, 2)."""
        distances = ((X[:, None, :] - self.u) ** 2).sum(axis=2)
        return np.asarray(np.exp(-self.gamma * distances))

    def classes(self, X: NDArray[Any]) -> NDArray[np.intp]:
        """Return the numbers of the most probable classes, (n,)."""
        scores = self.b0 + self.kernel(X) @ self.b.T
        return (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else np.argmax(scores, axis=1)


def prototype_pictures(
    records: pd.DataFrame, traces: pd.DataFrame, specs: Mapping[str, Mapping[str, Any]]
) -> dict[str, bytes]:
    """Draw each fit of repeat 0 on generated data in the plane; return file names and contents.

    A column a checkpoint; above, the training data and the prototypes as black squares, then the predicted regions with
    the same data as they are predicted, then the kernel values of the data with the first two prototypes.
    """
    files = {}
    for row in records.to_dict("records"):
        spec = specs.get(row["dataset"], {})
        points = traces[traces["key"] == row["key"]]
        if row["repeat"] != 0 or "generator" not in spec["source"] or "u_0_0" not in set(points["metric"]):
            continue
        dataset = load(row["dataset"], spec, cache=Path(), mirror=None)
        train = make_split(dataset, read_split(spec["split"]), int(row["seed"]), 0).train
        X, y = dataset.X[train], dataset.y[train]
        passes = [
            (int(t), Picture(dict(zip(group["metric"], group["value"], strict=True))))
            for t, group in points.groupby("t")
        ]
        name = "_".join(["prototypes", row["dataset"], *map(value_text, row["variant"].values())]) + ".png"
        files[name] = _drawn(X, np.searchsorted(np.unique(y), y), passes, str(spec.get("label", row["dataset"])))
    return files


def _drawn(X: NDArray[Any], y: NDArray[np.intp], passes: list[tuple[int, Picture]], title: str) -> bytes:
    low, high = X.min(axis=0), X.max(axis=0)
    low, high = low - MARGIN * (high - low), high + MARGIN * (high - low)
    grid = np.stack(np.meshgrid(*(np.linspace(low[k], high[k], CELLS) for k in (0, 1))), axis=-1)
    colours = np.array(CLASS_COLOURS)[: y.max() + 1]
    with matplotlib.style.context(["default", STYLE, {"axes.grid": False, "savefig.dpi": 110.0}]):
        figure = Figure(figsize=(2.1 * len(passes) + 0.4, 6.6), layout="constrained")
        figure.suptitle(f"{title}, {len(passes[0][1].u)} prototypes")
        panels = figure.subplots(3, len(passes), squeeze=False)
        for column, (t, picture) in enumerate(passes):
            data, regions, features = panels[:, column]
            data.scatter(*X.T, s=2, c=colours[y])
            predicted = picture.classes(grid.reshape(-1, 2)).reshape(CELLS, CELLS)
            levels = np.arange(len(colours) + 1) - 0.5
            regions.contourf(
                *np.moveaxis(grid, 2, 0), predicted, levels=levels, cmap=ListedColormap(colours), alpha=0.3
            )
            regions.scatter(*X.T, s=2, c=colours[picture.classes(X)])
            K = picture.kernel(X)
            features.scatter(K[:, 0], K[:, min(1, K.shape[1] - 1)], s=2, c=colours[y])
            features.set(xlabel="$k(x, u_1)$", xlim=(-0.05, 1.05), ylim=(-0.05, 1.05))
            for axes in (data, regions):
                _mark(axes, picture.u, low, high)
            data.set_title(f"pass {t}")
            if column == 0:
                data.set_ylabel("training data")
                regions.set_ylabel("predicted")
                features.set_ylabel("$k(x, u_2)$")
        return saved(figure, "png")


def _mark(axes: Axes, u: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> None:
    """Draw the prototypes as black squares; those beyond the data at its edge, hollow."""
    inside = ((u >= low) & (u <= high)).all(axis=1)
    at = np.clip(u, low, high)
    axes.scatter(at[inside, 0], at[inside, 1], s=26, marker="s", color="black", clip_on=False, zorder=3)
    axes.scatter(
        at[~inside, 0], at[~inside, 1], s=26, marker="s", facecolor="white", edgecolor="black", clip_on=False, zorder=3
    )
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[])


def _array(values: Mapping[str, float], name: str, n_axes: int) -> NDArray[np.float64]:
    """Return the array whose entries a trace holds as name_0_0, name_0_1, ..."""
    found = {}
    for key, value in values.items():
        stem, *place = key.split("_")
        if stem == name and len(place) == n_axes:
            found[tuple(map(int, place))] = value
    array = np.zeros([1 + max(at[k] for at in found) for k in range(n_axes)])
    for at, value in found.items():
        array[at] = value
    return array
