"""The scores of selection on disk: what is there, what is missing, and the choice that follows.

    results/<experiment>/selections/<key of the fold>/<key of the learners>.json    {key of a learner: score or null}

A learner's score depends on the fold and on the learner alone; so a run computes only what no earlier run has.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from klr_bench.experiment.runner.plan import Cell, Fold, group_folds, learner_key
from klr_bench.experiment.selection import Spec, choose
from klr_bench.experiment.targets import content_hash
from klr_bench.files import read_json, write_json

Scores = dict[str, float | None]


class ScoreStore:
    """The selections of one experiment; with `fresh` what earlier runs have left is not read."""

    def __init__(self, folder: Path, *, fresh: bool) -> None:
        self._folder = folder / "selections"
        self._fresh = fresh
        self._known: dict[str, Scores] = {}

    def to_score(self, cells: Sequence[Cell]) -> list[Fold]:
        """Return the folds of all cells, each with the learners that have no score yet, if there are any."""
        return [missing for fold in group_folds(cells) if (missing := self.missing(fold))]

    def missing(self, fold: Fold) -> Fold | None:
        """Return the fold with those learners that have no score yet, or None if all have."""
        known = self._scores(fold.key)
        learners = tuple(learner for learner in fold.learners if learner_key(learner) not in known)
        return fold.with_learners(learners) if learners else None

    def write(self, fold: Fold, scores: Sequence[float | None]) -> None:
        """Keep the scores of a fold's learners."""
        found = dict(zip(map(learner_key, fold.learners), scores, strict=True))
        write_json(self._folder / fold.key / f"{content_hash(sorted(found))}.json", found)
        self._scores(fold.key).update(found)

    def choice(self, cell: Cell) -> Spec | None:
        """Return the candidate that a cell is to fit; None if none of them could be fitted in every fold."""
        candidates = cell.candidates
        if len(candidates) == 1:
            return candidates[0]
        folds = [self._scores(fold.key) for fold in cell.folds()]
        best = choose([[fold[learner_key(candidate)] for fold in folds] for candidate in candidates])
        return None if best is None else candidates[best]

    def _scores(self, key: str) -> Scores:
        if key not in self._known:
            self._known[key] = {}
            files = [] if self._fresh else sorted((self._folder / key).glob("[!.]*.json"))
            for content in map(read_json, files):
                if isinstance(content, dict):
                    self._known[key].update(content)
        return self._known[key]
