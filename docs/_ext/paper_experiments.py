"""Page that lists all experiments by paper."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from paper_runs import makes
from paper_words import experiment_link, first_upper, html, html_table, plain

from klr_bench.config.locations import find, folders, names
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.results.store import was_run
from klr_bench.yaml_file import read_yaml

OTHER = "Experiments without a paper"


def experiments_page(papers: Sequence[Reproduction], results_dir: Path) -> str:
    """Return the page of all experiments in configs/experiment and ./configs/experiment."""
    outputs = {reproduction.name: makes(reproduction) for reproduction in papers}
    groups: dict[str, list[list[str]]] = {reproduction.name: [] for reproduction in papers} | {"": []}
    for name in names("experiment", folders()):
        content = read_yaml(find("experiment", name, folders()))
        title = _title(content) or name
        run = was_run(results_dir / name)
        sources = [reproduction.name for reproduction in papers if name in outputs[reproduction.name]]
        sources = sources or [reproduction.name for reproduction in papers if _cites(title, reproduction)]
        for paper in sources or [""]:
            results = ", ".join(outputs[paper].get(name, ["related experiment"])) if paper else ""
            groups[paper].append([experiment_link(name, run=run), escape(title), escape(results)])
    parts = [
        "# All experiments",
        "`klr-bench run experiment=<name>` runs an experiment; `klr-bench report experiment=<name>` shows its results. "
        "Linked names lead to the page of a run, with its table, figures, records, machine and versions.",
    ]
    for reproduction in papers:
        parts += _group(
            plain(first_upper(reproduction.paper.reference)),
            groups[reproduction.name],
            ["experiment", "description", "results"],
        )
    parts += _group(OTHER, [row[:2] for row in groups[""]], ["experiment", "description"])
    return "\n\n".join(parts) + "\n"


def _group(title: str, rows: Sequence[Sequence[str]], header: Sequence[str]) -> list[str]:
    return [f"## {title}", html(html_table(header, rows, title))] if rows else []


def _title(content: Any) -> str:
    return str(content.get("title") or "") if isinstance(content, Mapping) else ""


def _cites(title: str, reproduction: Reproduction) -> bool:
    """Return True if the title of an experiment cites a paper or has the name of its folder."""
    paper = reproduction.paper
    authors = re.split(r" \(", paper.reference)[0]
    venue = f"{paper.venue} {paper.year}"
    return reproduction.name in title or (authors in title and (venue in title or f"{authors}, {paper.year}" in title))
