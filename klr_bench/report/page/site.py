"""Write a static site: an index with leaderboards, and a page per paper and experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from klr_bench.config.locations import folders
from klr_bench.errors import fail
from klr_bench.report import conclusions
from klr_bench.report.labels import join_names, pluralize
from klr_bench.report.page.content import Card, Part, experiment_part, paper_part, thumbnail, word
from klr_bench.report.page.html import SHARED, asset, fragment, layout
from klr_bench.report.paper_pages import all_papers_page
from klr_bench.report.papers.reading import paper_files
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.report.papers.scoreboard import verdict_counts
from klr_bench.report.ranking import ranking_document
from klr_bench.report.writing import write_changed
from klr_bench.results.store import was_run

TITLE = "Kernel logistic regression: published and measured numbers"
ABOUT = (
    "klr-bench trains kernel logistic regression and related learners, and compares the results with the numbers that "
    "papers print. The page of a paper has its tables with the measured numbers and a verdict on each; the page of an "
    "experiment has its results, figures and records, and the commands that reproduce them."
)
RANKS = (
    "A leaderboard for each experiment in which the same methods were run on at least six data sets, under the same "
    "conditions. Results of different experiments are not pooled, because budgets and settings differ between them."
)


def write_site(target: Path, results_dir: Path) -> list[Path]:
    """Write a site with all experiments and papers that have results; return the paths.

    The pages share scripts and styles in `assets`; the last path is the first page.  Raises KlrBenchError if there are
    no results, or a file is damaged.
    """
    experiments = sorted(path.parent for path in results_dir.glob("*/records.csv") if was_run(path.parent))
    if not experiments:
        fail(f"{results_dir}: expected results folders, got none. Create one with: klr-bench run experiment=...")
    papers = [Reproduction(name, folder, results_dir) for name, folder in paper_files(folders()).items()]
    papers = [reproduction for reproduction in papers if reproduction.results]
    paths = {folder.name: f"experiments/{word(folder.name)}.html" for folder in experiments}
    paper_paths = {reproduction.name: f"papers/{word(reproduction.name)}.html" for reproduction in papers}
    pages: dict[str, Part] = {}
    for reproduction in papers:
        links = {name: f"../{paths[name]}" for name in reproduction.results}
        pages[paper_paths[reproduction.name]] = replace(paper_part(reproduction), links=links)
    cards = [
        Card(
            part.title,
            path,
            list(dict.fromkeys([part.about, *part.conclusion[:1], *conclusions.on_claims(paper.claims)])),
            part.verdicts,
        )
        for paper, (path, part) in zip(papers, pages.items(), strict=True)
    ]
    index = [_about(papers), Part("site", "papers", "Papers", [all_papers_page(papers)] if papers else [], cards=cards)]
    parts = {}
    for folder in experiments:
        related = [reproduction for reproduction in papers if folder.name in reproduction.results]
        links = {
            f"Compared with {compared.paper.reference}": f"../{paper_paths[compared.name]}" for compared in related
        }
        parts[folder.name] = pages[paths[folder.name]] = replace(experiment_part(folder), links=links)
    cards = [_card(part, paths[name]) for name, part in parts.items()]
    index.append(Part("site", "experiments", "Experiments", [], cards=cards))
    ranks = [found for part in parts.values() if part.results and (found := ranking_document(part.results))]
    index += [Part("site", "leaderboards", "Leaderboards", ranks, about=RANKS)] if ranks else []
    files = {f"assets/{name}": asset(name) for name in SHARED}
    for path, part in pages.items():
        files[path] = layout(fragment([part], part.title), part.title, shared="../assets/", home="../index.html")
    files["index.html"] = layout(fragment(index, TITLE), TITLE, shared="assets/", home="index.html")
    return write_changed(target, {path: text.encode() for path, text in files.items()})


def _about(papers: Sequence[Reproduction]) -> Part:
    matches = [match for reproduction in papers for match in reproduction.matches]
    conclusion = conclusions.on_numbers(matches)[:1]
    return Part("site", "about", TITLE, [], about=ABOUT, conclusion=conclusion, verdicts=verdict_counts(matches))


def _card(part: Part, path: str) -> Card:
    blocks = part.results.blocks if part.results else []
    methods = pluralize(len({line.column for block in blocks for line in block.lines}), "method")
    texts = [part.name, f"{methods} on {join_names([block.label for block in blocks])}"]
    return Card(part.title, path, texts, part.verdicts, *thumbnail(part))
