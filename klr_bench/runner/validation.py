"""Check that an experiment can run on its data sets, before it starts."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from klr_bench import protocols
from klr_bench.config.models import AlgorithmConfig, RunConfig
from klr_bench.config.splitting import Stream
from klr_bench.datasets import Dataset
from klr_bench.datasets.generators import check_generators
from klr_bench.datasets.splits import make_split
from klr_bench.errors import fail
from klr_bench.instantiate import TARGET, build, parameters
from klr_bench.runner.bandwidth import substitute_gamma
from klr_bench.runner.executors import check_executor
from klr_bench.runner.plan import Cell


def check_named(config: RunConfig) -> None:
    """Raise KlrBenchError if the executor or a data generator of a run does not exist."""
    check_executor(config.parallel.backend)
    for stem, dataset in config.datasets.items():
        check_generators(dataset, f"datasets.{stem}.")


def parameter_warning(stem: str, algorithm: AlgorithmConfig, swept: Collection[str] = ()) -> str | None:
    """Return a warning about parameters that a class accepts only as ``**parameters``, or None."""
    accepted = parameters(algorithm.estimator[TARGET])
    names = {*algorithm.estimator, *algorithm.grid, *algorithm.selected_as, *swept} - {TARGET, *accepted}
    if not names or not any(parameter.any_name for parameter in accepted.values()):
        return None
    target, listed = algorithm.estimator[TARGET], ", ".join(sorted(names))
    return f"{stem}: {target} takes parameters of any name, so these cannot be checked for mistakes: {listed}."


def check_data(dataset: Dataset, cells: Sequence[Cell]) -> None:
    """Raise KlrBenchError if a data set is unsuitable for the planned fits."""
    for cell in {cell.source.repeat: cell for cell in cells}.values():
        source, n_folds = cell.source, cell.selection.folds
        y = dataset.y[make_split(dataset, source.spec.split, source.seed, source.repeat).train]
        rarest = min(int((y == label).sum()) for label in np.unique(dataset.y))
        if rarest < 1 or len(y) < 2 * n_folds:
            fail(
                f"{dataset.name}: repeat {source.repeat} has {len(y)} training rows, {rarest} of the rarest class; "
                f"expected at least one of each class, and {2 * n_folds} in total (two per fold). Use more data or "
                f"fewer folds (selection.folds={n_folds})."
            )
    check_many_classes(dataset.name, len(dataset.classes), cells)
    if any(cell.trace.rows for cell in cells) and dataset.X.shape[1] != 2:
        fail(
            f"trace.rows=true: expected data with two features, but {dataset.name} has "
            f"{dataset.X.shape[1]:,}. Use trace.rows=false."
        )


def check_many_classes(name: str, n_classes: int, cells: Sequence[Cell]) -> None:
    """Raise KlrBenchError if a binary classifier would be fitted to more than two classes."""
    for cell in {cell.algorithm: cell for cell in cells}.values() if n_classes > 2 else ():
        if not protocols.takes_many_classes(build(substitute_gamma(cell.candidates[0].chosen))):
            fail(
                f"{cell.algorithm}: supports only two classes, but {name} has {n_classes}. Remove it from "
                "algorithm=[...], or separate one class from all others (for your own file: data.positive=LABEL)."
            )


def check_stream_learners(cells: Sequence[Cell]) -> None:
    """Raise KlrBenchError if an estimator cannot learn from its stream as configured."""
    for cell in {(cell.algorithm, cell.variant): cell for cell in cells if cell.source.is_stream}.values():
        estimator, split = cell.candidates[0].chosen, cell.source.spec.split
        assert isinstance(split, Stream)
        learner = build(substitute_gamma(estimator))
        key = f"datasets.{cell.source.stem}.split"
        if not protocols.declares(learner, "partial_fit"):
            fail(f"{cell.algorithm}: {estimator[TARGET]} cannot learn from a stream, because it has no partial_fit.")
        if getattr(learner, "grows", False) and not split.unbounded:
            fail(
                f"{cell.algorithm}: its memory use grows with the length of the stream. Use an algorithm with bounded "
                f"memory, such as budget_oskl, or add {key}.unbounded=true."
            )
        if split.test == "rows" and not protocols.declares(learner, "partial_fit_scores"):
            fail(
                f"{cell.algorithm}: cannot predict each row before learning from it. Remove {cell.algorithm} from "
                f"algorithm=[...], or predict whole chunks, for all algorithms, with {key}.test=chunks."
            )
