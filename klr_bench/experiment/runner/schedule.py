"""The order of a run: rounds, each the folds and then the cells of some repeats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from klr_bench.experiment.runner.plan import Cell, Fold


class Round(NamedTuple):
    """Folds, and cells whose folds are scored in this round or before."""

    folds: list[Fold]
    cells: list[Cell]


def rounds(cells: Sequence[Cell], folds: Sequence[Fold], n_cells: int) -> Iterator[Round]:
    """Yield all cells in their order, in rounds of whole repeats with `n_cells` cells or more, the last perhaps fewer.

    cells : cells of a run, those of a data set and repeat one after the other
    folds : folds that have no scores yet
    """
    unscored = {fold.key: fold for fold in folds}
    taken: list[Cell] = []
    for _, group in groupby(cells, lambda cell: (cell.source.stem, cell.source.repeat)):
        taken += group
        if len(taken) >= n_cells:
            yield _round(taken, unscored)
            taken = []
    if taken:
        yield _round(taken, unscored)


def _round(cells: list[Cell], unscored: dict[str, Fold]) -> Round:
    """Return a round with the folds that its cells need, and take these out of `unscored`."""
    needed = dict.fromkeys(fold.key for cell in cells for fold in cell.folds)
    return Round([unscored.pop(key) for key in needed if key in unscored], cells)
