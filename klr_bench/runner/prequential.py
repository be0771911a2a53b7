"""Prequential evaluation on a stream: test on each chunk of rows, then learn from it.

results/<experiment>/streams/<key>.state    the last checkpoint of an unfinished cell
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from klr_bench import protocols
from klr_bench.config.splitting import Stream
from klr_bench.datasets.preprocessing import Scaling, scaling_by
from klr_bench.datasets.splits import scaling as scaling_kind
from klr_bench.errors import KlrBenchError, fail
from klr_bench.instantiate import EstimatorSpec
from klr_bench.metrics.clock import peak_memory_mb, reset_peak_memory
from klr_bench.metrics.predictions import Predictions, predict
from klr_bench.metrics.quality import Metrics, fitted
from klr_bench.results.record import CellFile, Checkpoint
from klr_bench.runner import checkpoint, machine
from klr_bench.runner.bandwidth import resolve_gamma, resolve_kernel
from klr_bench.runner.fit import completed, flat_parameters, learner_seed
from klr_bench.runner.plan import Cell
from klr_bench.runner.selection import make

logger = logging.getLogger(__name__)

SUMS = ("n_rows", "n_features", "n_nonzero", "learning_s", "testing_s", "memory_mb", "points", "machines", "load")
"""Attributes of a `Pass` stored in a checkpoint, in addition to the estimator and the test results."""
SHORTEST_PASS_S = 30.0
"""Seconds of learning and predicting before the first checkpoint, because writing it imports skops, about 1 s."""


def read_ahead(chunks: Iterable[Any]) -> Iterator[Any]:
    """Yield chunks while a background thread reads the next one."""
    rest, end = iter(chunks), object()
    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(next, rest, end)
        while (chunk := reading.result()) is not end:
            reading = reader.submit(next, rest, end)
            yield chunk


@dataclass
class PrequentialResult:
    """Test results for rows that were predicted before the estimator learned from them."""

    n: int = 0
    n_right: int = 0
    loss: float | None = 0.0
    """Sum of -log P(y|x), or None if the estimator does not predict probabilities."""

    def add(self, other: PrequentialResult) -> None:
        """Add the counts and loss of another result."""
        self.n, self.n_right = self.n + other.n, self.n_right + other.n_right
        self.loss = None if self.loss is None or other.loss is None else self.loss + other.loss

    def metrics(self) -> dict[str, float]:
        """Return the accuracy and, if known, the log loss."""
        if not self.n:
            return {}
        return {"accuracy": self.n_right / self.n} | ({} if self.loss is None else {"log_loss": self.loss / self.n})


def prequential_result(predictions: Predictions) -> PrequentialResult:
    """Return the test result for a chunk, given the predictions for its rows."""
    predictions.check_classes()
    logs = predictions.log_probabilities
    loss = None if logs is None else float(-logs[predictions.truth].sum())
    return PrequentialResult(len(predictions.y), int((predictions.predicted == predictions.y).sum()), loss)


def result_from_decision(estimator: Any, decision: NDArray[np.float64], y: NDArray[np.int8]) -> PrequentialResult:
    """Return the test result of decision values for labels y in {-1, +1}."""
    n_right = int((np.where(decision > 0, 1, -1) == y).sum())
    logistic = protocols.declares(estimator, "predict_proba")
    return PrequentialResult(len(y), n_right, float(np.logaddexp(0.0, -y * decision).sum()) if logistic else None)


@dataclass
class Pass:
    """State of an estimator's pass over a stream."""

    estimator: Any
    scaling: Scaling
    dense: bool
    """True to convert rows to a dense array, which for half of the values or more is smaller than CSR."""
    parameters: EstimatorSpec
    classes: NDArray[np.int8]
    by_rows: bool = False
    """True to predict each row after learning from all earlier rows, not only from the earlier chunks."""
    n_rows: int = 0
    n_features: int = 0
    n_nonzero: int = 0
    learning_s: float = 0.0
    testing_s: float = 0.0
    memory_mb: float = 0.0
    """Peak memory in MB over all processes that have worked on this pass."""
    machines: list[list[str]] = field(default_factory=list)
    """Host and processor of each machine that has worked on this pass."""
    load: float | None = None
    """Highest load by other processes when a part of the pass began, or None if it is unknown."""
    whole: PrequentialResult = field(default_factory=PrequentialResult)
    window: PrequentialResult = field(default_factory=PrequentialResult)
    points: list[Checkpoint] = field(default_factory=list)

    def prepared(self, X: Any) -> Any:
        """Return the scaled rows of a chunk, in the layout for the estimator."""
        X = self.scaling.transform(X)
        return X.toarray() if self.dense and sp.issparse(X) else X

    def take(self, X: Any, y: NDArray[np.int8]) -> None:
        """Test on the prepared rows of a chunk, unless it is the first; then learn from them."""
        result, started = PrequentialResult(), time.perf_counter()
        if self.by_rows:
            decision = self.estimator.partial_fit_scores(X, y, classes=self.classes)
            trained = time.perf_counter()
            result = result_from_decision(self.estimator, decision, y) if self.n_rows else result
            self.learning_s += trained - started
            self.testing_s += time.perf_counter() - trained
        else:
            result = prequential_result(predict(self.estimator, X, y)) if self.n_rows else result
            predicted = time.perf_counter()
            self.estimator.partial_fit(X, y, classes=self.classes)
            self.testing_s += predicted - started
            self.learning_s += time.perf_counter() - predicted
        self.whole.add(result)
        self.window.add(result)
        self.n_rows, self.n_features = self.n_rows + len(y), X.shape[1]
        self.n_nonzero += int(np.count_nonzero(X.data if sp.issparse(X) else X))

    def save(self, path: Path, key: str) -> None:
        """Write a checkpoint of the cell `key`.  Raises KlrBenchError."""
        sums = {name: getattr(self, name) for name in SUMS}
        checkpoint.save(path, key, self.estimator, sums | {"whole": vars(self.whole), "window": vars(self.window)})

    def resume(self, path: Path, key: str) -> None:
        """Restore the state from a checkpoint, if there is one.  Raises CheckpointError."""
        sums = checkpoint.restore(path, key, self.estimator)
        if sums is not None:
            self.whole, self.window = PrequentialResult(**sums.pop("whole")), PrequentialResult(**sums.pop("window"))
            vars(self).update(sums)

    def begin(self, load: float | None) -> None:
        """Note the machine on which the pass begins or goes on, and its load."""
        here = [machine.host(), machine.processor()]
        self.machines += [here] if here not in self.machines else []
        self.load = max((value for value in (self.load, load) if value is not None), default=None)

    def close_window(self) -> None:
        """Store the metrics of the current window, and begin the next window."""
        self.memory_mb = max(self.memory_mb, peak_memory_mb())
        values = self.window.metrics() | protocols.progress(self.estimator) | {"peak_memory_mb": self.memory_mb}
        self.points += [(self.n_rows, self.learning_s, name, float(value)) for name, value in values.items()]
        self.window = PrequentialResult()

    def metrics(self) -> Metrics:
        """Return the metrics of all rows that were predicted before the estimator learned from them."""
        return {
            **self.whole.metrics(),
            **fitted(self.estimator, self.n_rows),
            "n_train": self.n_rows,
            "n_test": self.whole.n,
            "n_features": self.n_features,
            "fit_time_s": self.learning_s,
            "predict_time_s": self.testing_s,
            "nnz_per_instance": self.n_nonzero / max(self.n_rows, 1),
            "peak_memory_mb": max(self.memory_mb, peak_memory_mb()),
        }


def run_stream(cell: Cell, chosen: EstimatorSpec, folder: Path) -> CellFile:
    """Test and train an estimator on a stream, resuming from a checkpoint if there is one."""
    split = cell.source.spec.split
    assert isinstance(split, Stream)
    path = _state(folder, cell.key)
    with threadpool_limits(1):
        cell.source.check_unchanged()
        data = cell.source.streamed()
        reset_peak_memory()
        load, timed_out = machine.load(), False
        X, _ = next(iter(data))  # the reader rejects files without rows
        progress = _begin(cell, chosen, X, len(data.classes), by_rows=split.test == "rows")
        try:
            progress.resume(path, cell.key)
        except checkpoint.CheckpointError as error:
            logger.warning(
                "%s restarts from its first row, because %s cannot be used: %s.", cell.describe(), path, error
            )
        progress.begin(load)
        chunks = cell.source.streamed(progress.n_rows) if progress.n_rows else data
        for X, y in read_ahead((progress.prepared(X), y) for X, y in chunks):
            before = progress.n_rows
            progress.take(X, y)
            timed_out = cell.time_limit_s is not None and progress.learning_s > cell.time_limit_s
            if before // split.window < progress.n_rows // split.window:
                progress.close_window()
            if timed_out:
                break
            is_long = progress.learning_s + progress.testing_s > SHORTEST_PASS_S
            if is_long and before // split.checkpoint < progress.n_rows // split.checkpoint:
                cell.source.check_unchanged()
                try:
                    progress.save(path, cell.key)
                except KlrBenchError as error:
                    logger.warning("%s goes on without a checkpoint: %s", cell.describe(), error)
        cell.source.check_unchanged()
        if not progress.whole.n and not timed_out:
            fail(
                f"{cell.source.name}: expected more than split.chunk={split.chunk:,} rows, got {progress.n_rows:,}, so "
                f"that no row could be tested. Set datasets.{cell.source.stem}.split.chunk to a smaller number."
            )
        # A last window with fewer rows is left out, because its metrics would be noisy.
        if progress.window.n >= split.window / 2 or not progress.points:
            progress.close_window()
        measured = progress.metrics() | ({} if progress.load is None else {"load": progress.load})
        host, cpu = ("; ".join(dict.fromkeys(names)) for names in zip(*progress.machines, strict=True))
        ended = completed(cell, progress.parameters, measured, cpu, timed_out=timed_out)
    return replace(ended, checkpoints=progress.points, record=replace(ended.record, host=host))


def _begin(cell: Cell, chosen: EstimatorSpec, X: Any, n_classes: int, *, by_rows: bool) -> Pass:
    """Return a new pass; the first chunk X determines the feature scaling and gamma."""
    seed, sparse = learner_seed(cell.source), sp.issparse(X)
    scaling = scaling_by(X, scaling_kind(cell.source.name, cell.source.spec.scale, sparse=sparse))
    X = scaling.transform(X)
    kernel = resolve_kernel(cell.kernel, X, seed)
    estimator = make(resolve_gamma(chosen, X), kernel, seed)
    dense = not sparse or 2 * X.nnz >= X.shape[0] * X.shape[1]
    protocols.warm_up(estimator, sparse=not dense)
    classes = np.array([-1, 1] if n_classes == 2 else range(n_classes), dtype=np.int8)
    return Pass(estimator, scaling, dense, flat_parameters(chosen, kernel), classes, by_rows)


def remove_state(folder: Path, key: str) -> None:
    """Remove the checkpoint of a finished cell, if there is one.

    `folder` is the results folder of the experiment.
    """
    _state(folder, key).unlink(missing_ok=True)


def _state(folder: Path, key: str) -> Path:
    return folder / "streams" / f"{key}.state"
