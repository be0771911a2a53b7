"""How much work a configuration asks for: bounded before anything is built that is as large."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.config.schema import Config

MOST_CANDIDATES = 10_000
MOST_CELLS = 100_000
MOST_FOLDS = 1_000_000
"""Of selection: folds times repeats, data sets and columns of the table."""


def check_amount(config: Config) -> None:
    """Refuse more estimators of an algorithm, cells, or folds of selection than anybody waits for."""
    columns = 0
    for stem, algorithm in config.algorithms.items():
        swept = config.sweep.get(stem, {})
        n_variants = _product(swept)
        n_candidates = n_variants * _product(algorithm["grid"])
        columns += n_variants
        if n_candidates > MOST_CANDIDATES:
            message = (
                f"sweep.{stem} and algorithms.{stem}.grid: expected at most {MOST_CANDIDATES} combinations of values, "
                f"got {n_candidates}. Give fewer values."
            )
            raise KlrBenchError(message)
    n_cells = config.repeats * len(config.datasets) * columns
    if n_cells > MOST_CELLS:
        message = (
            f"repeats={config.repeats}: expected at most {MOST_CELLS} cells (repeats x data sets x columns of the "
            f"table), got {n_cells}. Split the experiment."
        )
        raise KlrBenchError(message)
    if n_cells * config.selection.folds > MOST_FOLDS:
        message = (
            f"selection.folds={config.selection.folds}: expected at most {MOST_FOLDS} folds (folds x cells), got "
            f"{n_cells * config.selection.folds}. Use fewer folds or repeats."
        )
        raise KlrBenchError(message)


def _product(lists: Mapping[str, Sequence[Any]]) -> int:
    return math.prod(map(len, lists.values()))
