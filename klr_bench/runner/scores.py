"""The scores of selection on disk: what is there, what is missing, and the choice that follows.

    results/<experiment>/selections/<key of the fold>/<key of the candidates>.json  [crc32, {key of a candidate: score}]

A candidate's score depends on the fold and on the candidate alone; so a run computes only what no earlier run has.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from klr_bench.files import read_checked_json, write_checked_json
from klr_bench.instantiate import EstimatorSpec
from klr_bench.metrics.labels import METRICS
from klr_bench.metrics.metric import Metric
from klr_bench.results.keys import content_hash
from klr_bench.runner.plan import Cell, Fold, group_folds
from klr_bench.runner.selection import FAILED, LONGEST_REASON, Score, choose

LARGEST = 1e300
"""Of scores; the sum of some more is still a number."""

Scores = dict[str, Score]


class ScoreStore:
    """The selections of one experiment; with `fresh` what earlier runs have left is not read."""

    def __init__(self, folder: Path, *, fresh: bool) -> None:
        self._folder = folder / "selections"
        self._fresh = fresh
        self._known: dict[str, Scores] = {}

    def to_score(self, cells: Sequence[Cell]) -> list[Fold]:
        """Return the folds of all cells, each with the candidates that have no score yet, if there are any."""
        return [missing for fold in group_folds(cells) if (missing := self.missing(fold))]

    def missing(self, fold: Fold, *, again: bool = False) -> Fold | None:
        """Return the fold with those candidates that have no score yet, or None if all have; looked for `again`."""
        if again and not self._fresh:
            self._known.pop(fold.key, None)
        known = self._scores(fold)
        candidates = tuple(candidate for candidate in fold.candidates if candidate.key not in known)
        return fold.with_candidates(candidates) if candidates else None

    def write(self, fold: Fold, scores: Sequence[Score]) -> None:
        """Keep the scores of a fold's candidates."""
        found = {candidate.key: score for candidate, score in zip(fold.candidates, scores, strict=True)}
        write_checked_json(self._folder / fold.key / f"{content_hash(sorted(found))}.json", found)
        self._scores(fold).update(found)

    def choice(self, cell: Cell) -> EstimatorSpec | None:
        """Return the candidate that a cell is to fit; None if none of them could be fitted in every fold."""
        if len(cell.candidates) == 1:
            return cell.candidates[0].chosen
        folds = [self._scores(fold) for fold in cell.folds]
        scores = [[fold[candidate.key] for fold in folds] for candidate in cell.candidates]
        best = choose(scores, cell.selection.tolerance)
        return None if best is None else cell.candidates[best].chosen

    def none_fitted(self, cell: Cell) -> str:
        """Return the message of a cell for which there is no choice, with the reason of the first candidate."""
        scores = [self._scores(fold)[candidate.key] for candidate in cell.candidates for fold in cell.folds]
        reasons = [score[FAILED] for score in scores if isinstance(score, dict)]
        limit = cell.candidates[0].time_limit_s
        within = f" within time_limit_s={limit:g}" if limit and not reasons else ""
        message = f"none of the {len(cell.candidates)} candidates of the grid could be fitted in every fold{within}"
        return f"{message}: {reasons[0]}" if reasons else f"{message}; change the grid, or scale the data."

    def _scores(self, fold: Fold) -> Scores:
        if fold.key not in self._known:
            known = self._known[fold.key] = {}
            metric = METRICS.get(fold.selection.score)
            for path in [] if self._fresh else sorted((self._folder / fold.key).glob("[!.]*.json")):
                content = read_checked_json(path)
                items = content.items() if isinstance(content, dict) else ()
                known |= {key: score for key, score in items if is_score(score, metric)}
        return self._known[fold.key]


def is_failure(score: object) -> bool:
    """Return True for a score that is the reason why its candidate has failed."""
    if not isinstance(score, dict) or [*score] != [FAILED]:
        return False
    return isinstance(score[FAILED], str) and len(score[FAILED]) <= LONGEST_REASON


def is_score(score: object, metric: Metric | None) -> bool:
    """Return True for a possible score by a metric, or by any metric for None; other scores are computed again.

    A score is a finite number, the negative of a metric that is better the lower it is; null; or why there is none.
    """
    if score is None or is_failure(score):
        return True
    if not isinstance(score, int | float) or isinstance(score, bool) or not abs(score) < LARGEST:
        return False
    return metric is None or metric.possible(-score if metric.better == "lower" else score)
