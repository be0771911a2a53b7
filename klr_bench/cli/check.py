"""Command ``klr-bench check``, which tries a learner before an experiment."""

from __future__ import annotations

from collections.abc import Sequence

from klr_bench.cli import EXIT_FAILED
from klr_bench.cli.arguments import split_keys
from klr_bench.cli.model import parsed, read_algorithm
from klr_bench.errors import fail
from klr_bench.instantiate import import_from_here
from klr_bench.printing import print_line


def check(arguments: Sequence[str]) -> int:
    """Print the result of each check of an algorithm; return the exit status."""
    keys = [word.partition("=")[0] for word in arguments if word.startswith("algorithms.")]
    words, values = split_keys(arguments, keys)
    if len(words) != 1:
        fail(f"check: expected one algorithm, got {' '.join(words) or 'none'}. Try klr-bench check klr")
    import_from_here()
    algorithm = read_algorithm(words[0], {key: parsed(key, text) for key, text in values.items()})
    from klr_bench.runner.learner_check import check_learner

    failed = False
    for finding in check_learner(words[0], algorithm):
        failed |= finding.status == "failed"
        message = f": {finding.message}" if finding.message else ""
        print_line(f"{finding.status:7}{finding.check}{message}")
    return EXIT_FAILED if failed else 0
