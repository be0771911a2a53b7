"""Files of the section *Reproduce a paper*: pages, figures, cards and contents."""

from __future__ import annotations

from pathlib import Path

from paper_experiments import experiments_page
from paper_overview import cards, contents
from paper_page import Figures, paper_page

from klr_bench.config.locations import folders
from klr_bench.report.papers.reading import paper_files
from klr_bench.report.papers.reproduction import Reproduction
from klr_bench.report.writing import write_changed


def write_pages(target: Path, results_dir: Path) -> list[Path]:
    """Write the pages of all papers, including those of ./configs; return their paths.

    Parameters
    ----------
    target : folder of the pages; all other files in it are removed
    results_dir : folder of all results; missing experiments count as not run
    """
    papers = [Reproduction(name, folder, results_dir) for name, folder in paper_files(folders()).items()]
    papers.sort(key=lambda reproduction: (not reproduction.lines, reproduction.paper.year, reproduction.name))
    figures = Figures(results_dir)
    files = {f"{reproduction.name}.md": paper_page(reproduction, figures, results_dir) for reproduction in papers}
    files["experiments.md"] = experiments_page(papers, results_dir)
    files["_papers.md"] = f"{cards(papers)}\n{contents(papers)}"
    target.mkdir(parents=True, exist_ok=True)
    written = write_changed(target, {name: text.encode() for name, text in files.items()} | figures.files)
    for path in target.iterdir():
        if path not in written:
            path.unlink()
    return written
