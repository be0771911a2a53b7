"""The order in which folds and cells run: a cell starts as soon as its own folds are scored."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from klr_bench.experiment.runner.plan import Cell, Fold


class Schedule:
    """The folds and cells that can start now, and the cells that wait for folds.

    Each fold comes before the first cell that needs it.  A cell whose last fold has been scored goes ahead of the folds
    that are still waiting.

    Parameters
    ----------
    cells : all cells, in their order
    folds : the folds that have no scores yet
    """

    def __init__(self, cells: Sequence[Cell], folds: Sequence[Fold]) -> None:
        self.waiting: deque[Fold | Cell] = deque()
        self.n_tasks = len(cells) + len(folds)
        self._open: dict[str, set[str]] = {}
        self._waiting_for: dict[str, list[Cell]] = {}
        unqueued = {fold.key: fold for fold in folds}
        unscored = frozenset(unqueued)
        for cell in cells:
            needed = [fold.key for fold in cell.folds if fold.key in unscored]
            self.waiting += [unqueued.pop(key) for key in needed if key in unqueued]
            if needed:
                self._open[cell.key] = set(needed)
                for key in needed:
                    self._waiting_for.setdefault(key, []).append(cell)
            else:
                self.waiting.append(cell)

    def scored(self, fold: Fold) -> None:
        """Let those cells start that only this fold was missing for."""
        ready = []
        for cell in self._that_wait_for(fold):
            self._open[cell.key].remove(fold.key)
            if not self._open[cell.key]:
                del self._open[cell.key]
                ready.append(cell)
        self.waiting.extendleft(reversed(ready))

    def failed(self, fold: Fold) -> list[Cell]:
        """Give up the cells that have waited for this fold, and return them."""
        lost = self._that_wait_for(fold)
        for cell in lost:
            del self._open[cell.key]
        return lost

    def _that_wait_for(self, fold: Fold) -> list[Cell]:
        return [cell for cell in self._waiting_for.pop(fold.key, ()) if cell.key in self._open]
