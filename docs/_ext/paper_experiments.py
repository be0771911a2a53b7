"""The page of all experiments: by source, with what each makes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from paper_runs import makes
from paper_words import experiment_link, first_upper, html, html_table, plain

from klr_bench.config.locations import find, folders, names
from klr_bench.report.load import was_run
from klr_bench.report.papers.reproduction import WholePaper
from klr_bench.yaml_file import read_yaml

OWN = "Beside the papers"


def experiments_page(papers: Sequence[WholePaper], results_dir: Path) -> str:
    """Return the page of all experiments of configs/experiment and ./configs/experiment."""
    made = {whole.name: makes(whole) for whole in papers}
    groups: dict[str, list[list[str]]] = {whole.name: [] for whole in papers} | {"": []}
    for name in names("experiment", folders()):
        content = read_yaml(find("experiment", name, folders()))
        title = _title(content) or name
        run = was_run(results_dir / name)
        of = [whole.name for whole in papers if name in made[whole.name]]
        of = of or [whole.name for whole in papers if _names(title, whole)]
        for paper in of or [""]:
            what = ", ".join(made[paper].get(name, ["beside it"])) if paper else ""
            groups[paper].append([experiment_link(name, run=run), escape(title), escape(what)])
    parts = [
        "# All experiments",
        "Run one with `klr-bench run experiment=<name>`, and show it with `klr-bench report experiment=<name>`. A name "
        "that is a link leads to the page of a run: its table, figures, records, machine and versions.",
    ]
    for whole in papers:
        parts += _group(
            plain(first_upper(whole.paper.reference)), groups[whole.name], ["experiment", "what it is", "makes"]
        )
    parts += _group(OWN, [row[:2] for row in groups[""]], ["experiment", "what it is"])
    return "\n\n".join(parts) + "\n"


def _group(title: str, rows: Sequence[Sequence[str]], header: Sequence[str]) -> list[str]:
    return [f"## {title}", html(html_table(header, rows, title))] if rows else []


def _title(content: Any) -> str:
    return str(content.get("title") or "") if isinstance(content, Mapping) else ""


def _names(title: str, whole: WholePaper) -> bool:
    """Say whether the title of an experiment names a paper: "Zhang et al., ICML 2013", or the name of its folder."""
    paper = whole.paper
    authors = re.split(r" \(", paper.reference)[0]
    venue = f"{paper.venue} {paper.year}"
    return whole.name in title or (authors in title and (venue in title or f"{authors}, {paper.year}" in title))
