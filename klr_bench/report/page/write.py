"""Pages as files: one that holds everything, or a static site whose pages share the script and the style."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from klr_bench.config.locations import folders
from klr_bench.errors import KlrBenchError
from klr_bench.files import write_atomic
from klr_bench.report.page.content import Part, against_part, experiment_part, paper_part, word
from klr_bench.report.page.html import SHARED, asset, fragment, layout
from klr_bench.report.paper_pages import all_papers_page
from klr_bench.report.papers.reading import chosen_papers, experiments_of, paper_files
from klr_bench.report.papers.reproduction import WholePaper

ASSETS, INDEX = "assets", "index.html"
SITE_TITLE = "Published numbers, and ours"


def html_page(
    experiments: Sequence[Path], papers: Sequence[str] = (), results_dir: Path = Path("results"), **options: Any
) -> str:
    """Return one page that holds everything: papers, then experiments.

    Parameters
    ----------
    experiments : results folders
    papers : names of papers, or "all"; with all of their experiments that are in results_dir
    results_dir : where the experiments of the papers are
    options : arguments of `experiment_part`

    Raises KlrBenchError for a folder without results that can be read, and for an unknown paper.
    """
    chosen = {one: folder for name in papers for one, folder in chosen_papers(name).items()}
    whole = [WholePaper(name, folder, results_dir) for name, folder in chosen.items()]
    behind = [results_dir / name for paper in whole for name in paper.results]
    experiments = list(dict.fromkeys([*experiments, *behind]))
    parts = [paper_part(paper) for paper in whole]
    parts += [experiment_part(folder, **options) for folder in experiments]
    for name, folder in paper_files(folders()).items():
        compared = set(experiments_of(name)) & {path.name for path in experiments}
        if compared and name not in chosen:
            paper = WholePaper(name, folder, experiments[0].parent, only=compared)
            part = paper_part(paper, numbers=sorted(compared))
            parts += [part] if part.tables else []
    title = ", ".join([paper.paper.reference for paper in whole] or [path.name for path in experiments])
    return layout(fragment(parts, title), title)


def write_page(target: Path, experiments: Sequence[Path], **options: Any) -> Path:
    """Write the page of `html_page` to a file and return its path."""
    write_atomic(target, html_page(experiments, **options).encode())
    return target


def page_against(target: Path, pairs: Sequence[tuple[Path, Path]], columns: Sequence[str] | None = None) -> Path:
    """Write a page of runs side by side, each pair of results folders with what differs; return its path.

    Raises KlrBenchError for what `klr_bench.report.compare.comparison.compare` refuses.
    """
    parts = [against_part(first, second, columns) for first, second in pairs]
    title = ", ".join(part.name for part in parts)
    write_atomic(target, layout(fragment(parts, title), title).encode())
    return target


def write_site(target: Path, results_dir: Path, *, drawn: bool = False) -> list[Path]:
    """Write a site of all experiments of a results_dir, and of all papers with some of them; return the paths.

    With `drawn` pictures that a report has are taken as they are.  The pages share one copy of the script and the
    style, in `assets`; the first page is written last.  Raises KlrBenchError without results, and for a file that does
    not hold what it should.
    """
    experiments = sorted(path.parent for path in results_dir.glob("*/records.csv"))
    if not experiments:
        message = f"{results_dir}: expected results folders, got none. Make some with: klr-bench run experiment=..."
        raise KlrBenchError(message)
    papers = [WholePaper(name, folder, results_dir) for name, folder in paper_files(folders()).items()]
    papers = [whole for whole in papers if whole.results]
    pages: dict[str, Part] = {}
    for folder in experiments:
        of = [whole for whole in papers if folder.name in whole.results]
        links = {f"Beside {whole.paper.reference}": f"../{_address('paper', whole.name)}" for whole in of}
        pages[_address("experiment", folder.name)] = experiment_part(folder, links=links, drawn=drawn)
    for whole in papers:
        links = {name: f"../{_address('experiment', name)}" for name in whole.results}
        pages[_address("paper", whole.name)] = paper_part(whole, links=links)
    written = [_write(target / ASSETS / name, asset(name)) for name in SHARED]
    for address, part in pages.items():
        text = layout(fragment([part], part.title), part.title, shared=f"../{ASSETS}/", home=f"../{INDEX}")
        written.append(_write(target / address, text))
    scoreboard = [all_papers_page(papers)] if papers else []
    paper_links = {whole.paper.reference: _address("paper", whole.name) for whole in papers}
    links = {f"{part.name}: {part.title}": address for address, part in pages.items() if part.kind == "experiment"}
    index = [
        Part("site", "papers", "Papers", scoreboard, links=paper_links),
        Part("site", "experiments", "Experiments", [], links=links),
    ]
    text = layout(fragment(index, SITE_TITLE), SITE_TITLE, shared=f"{ASSETS}/", home=INDEX)
    return [*written, _write(target / INDEX, text)]


def _address(kind: str, name: str) -> str:
    return f"{kind}s/{word(name)}.html"


def _write(path: Path, text: str) -> Path:
    """Write a file if its content changes."""
    content = text.encode()
    if not path.is_file() or path.read_bytes() != content:
        write_atomic(path, content)
    return path
