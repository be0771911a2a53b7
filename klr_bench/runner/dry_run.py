"""Dry runs: print what a run would compute, and about how long this will take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap

from rich.console import Console

from klr_bench.config.models import RunConfig
from klr_bench.results.store import Store
from klr_bench.runner.estimate import Estimate, estimate
from klr_bench.runner.plan import Cell
from klr_bench.runner.scores import ScoreStore

UNKNOWN = (
    "time: unknown, because there are no reference results and no earlier run in this folder. "
    "Run it with repeats=1; then --dry-run estimates the rest."
)


def print_plan(
    cells: Sequence[Cell], folder: Path, config: RunConfig, cache: Path, console: Console, *, quiet: bool, verbose: bool
) -> tuple[int, Estimate | None]:
    """Print what a run would compute; return how many cells are finished, and the time.

    Cells are counted by algorithm and data set; with `verbose`, each cell is listed.
    """
    store = Store(folder)
    unfinished = [cell for cell in cells if config.force or not store.finished(cell.key)]
    folds = ScoreStore(folder, fresh=config.force).to_score(unfinished)
    n_fits = sum(len(fold.candidates) for fold in folds)
    path = Path(config.results_dir) / config.name
    console.print(f"{config.name}: {len(cells)} cells, {len(cells) - len(unfinished)} of them finished, in {path}")
    suffix = "" if quiet or not unfinished else ":" if verbose else " (list: --verbose):"
    console.print(f"would run {len(folds)} selection folds ({n_fits} fits) and {len(unfinished)} cells{suffix}")
    for line in [] if quiet else [cell.describe() for cell in unfinished] if verbose else _cell_counts(unfinished):
        console.print(*wrap(line, console.width, initial_indent="  ", subsequent_indent="    "), sep="\n")
    time = estimate(unfinished, folds, folder, config, cache)
    if unfinished:
        console.print(time.sentence() if time else UNKNOWN)
    return len(cells) - len(unfinished), time


def _cell_counts(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the numbers of cells per algorithm, one line for data sets with equal numbers."""
    counts: dict[str, Counter[str]] = {}
    for cell in cells:
        counts.setdefault(cell.source.name, Counter())[cell.algorithm] += 1
    datasets: dict[tuple[tuple[str, int], ...], list[str]] = {}
    for name, by_algorithm in counts.items():
        datasets.setdefault(tuple(by_algorithm.items()), []).append(name)
    for numbers, names in datasets.items():
        each = " (each)" if len(names) > 1 else ""
        yield f"{', '.join(names)}{each}: {', '.join(f'{algorithm} {number}' for algorithm, number in numbers)}"
