"""The scores of selection on disk: what is there, what is missing, and the choice that follows.

    results/<experiment>/selections/<key of the fold>/<key of the candidates>.json  {key of a candidate: score or null}

A candidate's score depends on the fold and on the candidate alone; so a run computes only what no earlier run has.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from klr_bench.experiment.keys import content_hash
from klr_bench.experiment.runner.plan import Cell, Fold, group_folds
from klr_bench.experiment.selection import EstimatorSpec, choose
from klr_bench.files import read_json, write_json

LARGEST = 1e300

Scores = dict[str, float | None]


class ScoreStore:
    """The selections of one experiment; with `fresh` what earlier runs have left is not read."""

    def __init__(self, folder: Path, *, fresh: bool) -> None:
        self._folder = folder / "selections"
        self._fresh = fresh
        self._known: dict[str, Scores] = {}

    def to_score(self, cells: Sequence[Cell]) -> list[Fold]:
        """Return the folds of all cells, each with the candidates that have no score yet, if there are any."""
        return [missing for fold in group_folds(cells) if (missing := self.missing(fold))]

    def missing(self, fold: Fold) -> Fold | None:
        """Return the fold with those candidates that have no score yet, or None if all have."""
        known = self._scores(fold.key)
        candidates = tuple(candidate for candidate in fold.candidates if candidate.key not in known)
        return fold.with_candidates(candidates) if candidates else None

    def write(self, fold: Fold, scores: Sequence[float | None]) -> None:
        """Keep the scores of a fold's candidates."""
        found = {candidate.key: score for candidate, score in zip(fold.candidates, scores, strict=True)}
        write_json(self._folder / fold.key / f"{content_hash(sorted(found))}.json", found)
        self._scores(fold.key).update(found)

    def choice(self, cell: Cell) -> EstimatorSpec | None:
        """Return the candidate that a cell is to fit; None if none of them could be fitted in every fold."""
        if len(cell.candidates) == 1:
            return cell.candidates[0].estimator
        folds = [self._scores(fold.key) for fold in cell.folds]
        best = choose([[scores[candidate.key] for scores in folds] for candidate in cell.candidates])
        return None if best is None else cell.candidates[best].estimator

    def _scores(self, key: str) -> Scores:
        if key not in self._known:
            self._known[key] = {}
            files = [] if self._fresh else sorted((self._folder / key).glob("[!.]*.json"))
            for content in map(read_json, files):
                self._known[key].update(_believable(content))
        return self._known[key]


def _believable(content: object) -> Scores:
    """Return the scores in a file: finite numbers, and null; what else it holds is computed again."""
    items = content.items() if isinstance(content, dict) else ()
    return {key: score for key, score in items if score is None or _is_finite(score)}


def _is_finite(score: object) -> bool:
    return isinstance(score, int | float) and not isinstance(score, bool) and abs(score) < LARGEST
