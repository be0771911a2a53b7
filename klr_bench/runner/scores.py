"""Store selection scores in the results folder, and choose candidates by these scores.

results/<experiment>/selections/<key of the fold>/<key of the candidates>.json  [crc32, {key of a candidate: score}]

A score depends only on the fold and the candidate, so a run computes only the missing scores.  Failed fits are not
stored: the next run that needs their scores tries them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from klr_bench.files import read_checked_json, write_checked_json
from klr_bench.instantiate import EstimatorSpec
from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.results.keys import content_hash
from klr_bench.runner.plan import Cell, Fold, group_folds
from klr_bench.runner.selection import FAILED, Score, choose

MAX_SCORE = 1e300
"""Maximum absolute value of a score; sums of scores stay finite."""

Scores = dict[str, Score]


class ScoreStore:
    """Selection scores of an experiment; if `fresh` is true, those of earlier runs are ignored."""

    def __init__(self, folder: Path, *, fresh: bool) -> None:
        self._folder = folder / "selections"
        self._fresh = fresh
        self._cache: dict[str, Scores] = {}

    def to_score(self, cells: Sequence[Cell]) -> list[Fold]:
        """Return the folds that have unscored candidates, without the candidates already scored."""
        return [part for fold in group_folds(cells) if (part := self.unscored(fold))]

    def unscored(self, fold: Fold, *, again: bool = False) -> Fold | None:
        """Return a fold restricted to its unscored candidates, or None if all are scored.

        With `again`, the files are read again.
        """
        if again and not self._fresh:
            self._cache.pop(fold.key, None)
        scored = self._scores(fold)
        candidates = tuple(candidate for candidate in fold.candidates if candidate.key not in scored)
        return replace(fold, candidates=candidates) if candidates else None

    def write(self, fold: Fold, scores: Sequence[Score]) -> None:
        """Save the scores of the candidates of a fold."""
        by_key = {candidate.key: score for candidate, score in zip(fold.candidates, scores, strict=True)}
        if stored := {key: score for key, score in by_key.items() if not isinstance(score, dict)}:
            write_checked_json(self._folder / fold.key / f"{content_hash(sorted(stored))}.json", stored)
        self._scores(fold).update(by_key)

    def choice(self, cell: Cell) -> EstimatorSpec | None:
        """Return the selected estimator of a cell, or None if all candidates have failed."""
        if len(cell.candidates) == 1:
            return cell.candidates[0].chosen
        best = choose(self._table(cell), cell.selection.tolerance)
        return None if best is None else cell.candidates[best].chosen

    def failures(self, cell: Cell) -> list[str]:
        """Return the reason of each candidate whose fit has failed in this run."""
        reasons = ([score[FAILED] for score in row if isinstance(score, dict)] for row in self._table(cell))
        return [failed[0] for failed in reasons if failed]

    def failure_message(self, cell: Cell) -> str:
        """Return the error message of a cell for which every candidate has failed."""
        reasons = self.failures(cell)
        message = f"none of the {len(cell.candidates)} candidates in the grid could be fitted in every fold"
        return f"{message}: {reasons[0]}" if reasons else f"{message}. Change the grid, or scale the data."

    def _table(self, cell: Cell) -> list[list[Score]]:
        folds = [self._scores(fold) for fold in cell.folds]
        return [[scores[candidate.key] for scores in folds] for candidate in cell.candidates]

    def _scores(self, fold: Fold) -> Scores:
        if fold.key not in self._cache:
            scores = self._cache[fold.key] = {}
            metric = METRICS.get(fold.selection.score)
            for path in [] if self._fresh else sorted((self._folder / fold.key).glob("[!.]*.json")):
                content = read_checked_json(path)
                items = content.items() if isinstance(content, dict) else ()
                scores |= {key: score for key, score in items if is_score(score, metric)}
        return self._cache[fold.key]


def is_score(score: object, metric: Metric | None) -> bool:
    """Return True if a value read from a file is a valid selection score.

    A score is a finite number or None; a metric for which lower is better is negated.  `metric` is None if its valid
    range is unknown.
    """
    if score is None:
        return True
    if not isinstance(score, int | float) or isinstance(score, bool) or not abs(score) < MAX_SCORE:
        return False
    return metric is None or metric.possible(-score if metric.better == "lower" else score)
