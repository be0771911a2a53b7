"""Tables of reproduction results: published values and claims by paper."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from markup import table

from klr_bench.config.locations import config_dir
from klr_bench.report.paper_pages import numbers_and_claims
from klr_bench.report.papers.claims import FAILS, HOLDS, NOT_JUDGED, UNDECIDED
from klr_bench.report.papers.reading import paper_files
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.report.papers.scoreboard import AS_STATED, HEADLINE, PROTOCOL, apart, counts
from klr_bench.report.papers.verdicts import Verdict


def scoreboard(results_dir: Path) -> dict[str, str]:
    """Return the main counts of verdicts on results and claims, with one row per paper."""
    columns, rows = [name for name in HEADLINE if name not in (Verdict.EXPLAINED.value, PROTOCOL, AS_STATED)], []
    for reproduction in reproductions(results_dir):
        texts = {name: f"{count:,}" for name, count in counts(reproduction.matches).items() if count}
        texts |= apart(reproduction.matches)
        verdicts = [claim.verdict for claim in reproduction.claims if claim.verdict != NOT_JUDGED]
        others = {
            "undecided": verdicts.count(UNDECIDED),
            "calibrated": sum(c.is_calibrated for c in reproduction.claims),
        }
        rest = "".join(f", {count} {name}" for name, count in others.items() if count)
        holding = f"{verdicts.count(HOLDS)} of {len(verdicts)}{rest}" if verdicts else "-"
        rows.append([reproduction.paper.reference, *(texts.get(column) or "-" for column in columns), holding])
    return {"scoreboard": table(["source", *columns, "claims that hold"], rows, 1)}


def verdicts(results_dir: Path) -> dict[str, str]:
    """Return verdicts on numbers and claims, and the claims that do not hold."""
    papers = reproductions(results_dir)
    names = {reproduction.name: reproduction.paper.reference for reproduction in papers}
    grids = [
        table(grid.header, [[names.get(first, first), *rest] for first, *rest in grid.rows], 1)
        for grid in numbers_and_claims(papers)[::2]
    ]
    failing = [
        f"- {names[reproduction.name]}: {claim.sentence()}"
        for reproduction in papers
        for claim in reproduction.claims
        if claim.verdict == FAILS
    ]
    return dict(zip(("numbers", "claims", "failing"), [*grids, "\n".join(failing)], strict=True))


@cache
def reproductions(results_dir: Path) -> list[Reproduction]:
    """Return the published papers, matched with the records of a folder of results."""
    return [Reproduction(name, folder, results_dir) for name, folder in paper_files([config_dir()]).items()]
