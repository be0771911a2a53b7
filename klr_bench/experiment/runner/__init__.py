"""Run an experiment: what is finished is skipped, what is missing runs in parallel, every result lands at once.

`plan` makes cells and folds of a configuration, `schedule` puts them in order, `pool` runs them in worker processes,
`work` is what a worker does, `scores` and `records` keep the results, and `execute` ties them together.
"""

from klr_bench.experiment.runner.execute import Outcome, run

__all__ = ["Outcome", "run"]
