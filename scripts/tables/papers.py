"""Tables of reproduction results: published values and claims by paper."""

from __future__ import annotations

from pathlib import Path

from markup import table

from klr_bench.config.locations import config_dir
from klr_bench.report.papers.claims import CLAIM_VERDICTS, HOLDS, NOT_JUDGED
from klr_bench.report.papers.reading import paper_files
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.report.papers.verdicts import SCOREBOARD, Verdict, counts
from klr_bench.report.render.document import Grid, pipe_table


def scoreboard(results_dir: Path) -> dict[str, str]:
    """Return the counts of verdicts on values and claims, with one row per paper."""
    rows = []
    for reproduction in reproductions(results_dir):
        n = counts(reproduction.matches)
        verdicts = [claim.verdict for claim in reproduction.claims]
        numbers = [n[column] for column in SCOREBOARD]
        holding = [verdicts.count(verdict) for verdict in CLAIM_VERDICTS]
        rows.append(
            [reproduction.paper.reference, *(f"{number:,}" if number else "-" for number in [*numbers, *holding])]
        )
    head = [
        "source",
        *SCOREBOARD,
        "claims that hold",
        "do not hold here",
        "fail on the paper's own table",
        "not judged",
    ]
    return {"scoreboard": pipe_table(Grid(head, rows))}


def first_page(results_dir: Path) -> dict[str, str]:
    """Return the scoreboard of the first page, restricted to judged values and claims."""
    rows = []
    for reproduction in reproductions(results_dir):
        n = counts(reproduction.matches)
        judged = [n[verdict.value] for verdict in Verdict if verdict is not Verdict.NOT_COMPARED]
        verdicts = [claim.verdict for claim in reproduction.claims if claim.verdict != NOT_JUDGED]
        name = f"[{reproduction.paper.reference}](papers/generated/{reproduction.name}.md)"
        holding = f"{verdicts.count(HOLDS)} of {len(verdicts)}" if verdicts else "-"
        rows.append([name, *(f"{number:,}" if number else "-" for number in judged), holding])
    head = [
        "source",
        *(verdict.value for verdict in Verdict if verdict is not Verdict.NOT_COMPARED),
        "claims that hold",
    ]
    return {"scoreboard": table(head, rows, 1)}


def reproductions(results_dir: Path) -> list[Reproduction]:
    """Return the published papers, matched with the records of a folder of results."""
    return [Reproduction(name, folder, results_dir) for name, folder in paper_files([config_dir()]).items()]
