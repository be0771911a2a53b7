"""A small static site: the papers and what became of their numbers, a page a paper, a page an experiment."""

from __future__ import annotations

from pathlib import Path

from klr_bench.errors import KlrBenchError
from klr_bench.experiment.config.files import folders
from klr_bench.files import write_atomic
from klr_bench.report.page.content import Part, experiment_part, paper_part, word
from klr_bench.report.page.spelling import SHARED, asset, inside, layout
from klr_bench.report.paper_pages import all_papers_page
from klr_bench.report.papers.files import paper_files
from klr_bench.report.papers.reproduction import WholePaper

ASSETS, INDEX = "assets", "index.html"
TITLE = "Published numbers, and ours"


def write_site(target: Path, results_dir: Path, *, drawn: bool = False) -> list[Path]:
    """Write a site of all experiments of a results_dir, and of all papers that some of them are of; return the paths.

    With `drawn` pictures that a report has are taken as they are.

    The pages share one copy of the script and the style, in `assets`.  A page is written when all of it is known, the
    first page last.  KlrBenchError where there are no results, and where a file does not hold what it should.
    """
    experiments = sorted(path.parent for path in results_dir.glob("*/records.csv"))
    if not experiments:
        message = f"{results_dir}: expected results folders, got none. Make some with: klr-bench run experiment=..."
        raise KlrBenchError(message)
    papers = [WholePaper(name, folder, results_dir) for name, folder in paper_files(folders()).items()]
    papers = [whole for whole in papers if whole.results]
    pages: dict[str, Part] = {}
    for folder in experiments:
        beside = [whole for whole in papers if folder.name in whole.results]
        links = {f"Beside {whole.paper.reference}": f"../{_address('paper', whole.name)}" for whole in beside}
        pages[_address("experiment", folder.name)] = experiment_part(folder, links=links, drawn=drawn)
    for whole in papers:
        part = paper_part(whole, links={name: f"../{_address('experiment', name)}" for name in whole.results})
        pages[_address("paper", whole.name)] = part
    written = [_write(target / ASSETS / name, asset(name)) for name in SHARED]
    for address, part in pages.items():
        text = layout(inside([part], part.title), part.title, shared=f"../{ASSETS}/", home=f"../{INDEX}")
        written.append(_write(target / address, text))
    first = _index(papers, {address: part for address, part in pages.items() if part.kind == "experiment"})
    text = layout(inside(first, TITLE), TITLE, shared=f"{ASSETS}/", home=INDEX)
    return [*written, _write(target / INDEX, text)]


def _index(papers: list[WholePaper], experiments: dict[str, Part]) -> list[Part]:
    """Return the first page: the scoreboard, the papers, the experiments."""
    scoreboard = Part(
        "site", "papers", "Papers", [all_papers_page(papers)] if papers else [],
        links={whole.paper.reference: _address("paper", whole.name) for whole in papers},
    )  # fmt: skip
    listed = Part(
        "site", "experiments", "Experiments", [],
        links={f"{part.name}: {part.title}": address for address, part in experiments.items()},
    )  # fmt: skip
    return [scoreboard, listed]


def _address(kind: str, name: str) -> str:
    return f"{kind}s/{word(name)}.html"


def _write(path: Path, text: str) -> Path:
    """Write a file if its content changes."""
    content = text.encode()
    if not path.is_file() or path.read_bytes() != content:
        write_atomic(path, content)
    return path
