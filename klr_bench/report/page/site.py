"""Write a static site: an index with a leaderboard, and a page per paper and experiment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

from klr_bench.config.locations import folders
from klr_bench.errors import fail
from klr_bench.parsing import Plain
from klr_bench.report import conclusions
from klr_bench.report.labels import join_names, line_label, pluralize
from klr_bench.report.page.content import Card, Part, data_table, experiment_part, paper_part, thumbnail, word
from klr_bench.report.page.html import SHARED, asset, fragment, layout
from klr_bench.report.paper_pages import all_papers_page
from klr_bench.report.papers.reading import paper_files
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.report.papers.scoreboard import verdict_counts
from klr_bench.report.table import Block
from klr_bench.report.writing import write_changed

TITLE = "Kernel logistic regression: published and measured numbers"
ABOUT = (
    "klr-bench trains kernel logistic regression and related learners, and compares the results with the numbers that "
    "papers print. The page of a paper has its tables with the measured numbers and a verdict on each; the page of an "
    "experiment has its results, figures and records, and the commands that reproduce them."
)
ALGORITHMS = (
    "Each algorithm is compared with the methods of other algorithms on the same data set and in the same experiment. "
    "The share is that of comparisons in which its mean test accuracy is higher; a tie counts half. Budgets and "
    "settings differ between experiments, so it ranks methods as they were run, not at equal cost."
)


def write_site(target: Path, results_dir: Path) -> list[Path]:
    """Write a site with all experiments and papers that have results; return the paths.

    The pages share scripts and styles in `assets`; the last path is the first page.  Raises KlrBenchError if there are
    no results, or a file is damaged.
    """
    experiments = sorted(path.parent for path in results_dir.glob("*/records.csv"))
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
    index.append(Part("site", "leaderboard", "Leaderboard", [], tables=leaderboard(parts.values()), about=ALGORITHMS))
    files = {f"assets/{name}": asset(name) for name in SHARED}
    for path, part in pages.items():
        files[path] = layout(fragment([part], part.title), part.title, shared="../assets/", home="../index.html")
    files["index.html"] = layout(fragment(index, TITLE), TITLE, shared="assets/", home="index.html")
    return write_changed(target, {path: text.encode() for path, text in files.items()})


def _about(papers: Sequence[Reproduction]) -> Part:
    matches = [match for reproduction in papers for match in reproduction.matches]
    conclusion = conclusions.on_numbers(matches)[:1]
    return Part("site", "about", TITLE, [], about=ABOUT, conclusion=conclusion, verdicts=verdict_counts(matches))


def _blocks(part: Part) -> Sequence[Block]:
    return part.results.blocks if part.results else []


def _card(part: Part, path: str) -> Card:
    blocks = _blocks(part)
    methods = pluralize(len({line.column for block in blocks for line in block.lines}), "method")
    texts = [part.name, f"{methods} on {join_names([block.label for block in blocks])}"]
    return Card(part.title, path, texts, part.verdicts, *thumbnail(part))


def leaderboard(parts: Iterable[Part]) -> list[Plain]:
    """Return two tables over all experiments, of algorithms and of methods.

    The first has one row per algorithm, the second one per data set, experiment and method.
    """
    parts = list(parts)
    wins: dict[str, list[float]] = defaultdict(list)
    datasets: dict[str, set[str]] = defaultdict(set)
    for block in (block for part in parts for block in _blocks(part)):
        for algorithm, win in _comparisons(block):
            wins[algorithm].append(win)
            datasets[algorithm].add(block.label)
    shares = {name: 100 * sum(values) / len(values) for name, values in wins.items()}
    algorithms = [
        [name, f"{shares[name]:.1f}", str(len(wins[name])), str(len(datasets[name]))]
        for name in sorted(shares, key=lambda name: -shares[name])
    ]
    methods = sorted(
        (row for part in parts for block in _blocks(part) for row in _rows(block, part.name)),
        key=lambda row: (row[0], -float(row[3])),
    )
    columns: Sequence[str] = ("algorithm", "share", "comparisons", "datasets")
    titles = {"share": "more accurate (%)", "datasets": "data sets"}
    by_algorithm = data_table("algorithms", "Algorithms across data sets", columns, algorithms, columns, titles)
    columns = "dataset", "method", "experiment", "accuracy", "std", "support_vectors", "training_time_s"
    titles = {
        "dataset": "data set",
        "accuracy": "accuracy (%)",
        "std": "spread",
        "training_time_s": "training time (s)",
    }
    return [by_algorithm, data_table("methods", "Methods by data set", columns, methods, columns, titles)]


def _comparisons(block: Block) -> Iterator[tuple[str, float]]:
    """Yield an algorithm and 1 (won), 0 (lost) or 0.5 (tied) for each comparison."""
    means = [
        (line.algorithm_label, line.entries["accuracy"].mean) for line in block.lines if "accuracy" in line.entries
    ]
    for (name, ours), (other, theirs) in permutations(means, 2):
        if name != other and ours is not None and theirs is not None:
            yield name, 0.5 if ours == theirs else float(ours > theirs)


def _rows(block: Block, experiment: str) -> Iterator[list[str]]:
    for line in block.lines:
        accuracy, *others = (line.entries.get(name) for name in ("accuracy", "n_support", "fit_time_s"))
        if accuracy and accuracy.mean is not None:
            spread = "" if accuracy.std is None else f"{100 * accuracy.std:.2f}"
            texts = [
                "" if entry is None or entry.mean is None or not entry.alike else f"{entry.mean:.4g}"
                for entry in others
            ]
            yield [block.label, line_label(line), experiment, f"{100 * accuracy.mean:.2f}", spread, *texts]
