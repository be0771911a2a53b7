"""Pages as files: one that holds everything, or a site whose pages share the script and the style."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from klr_bench.experiment.config.files import folders
from klr_bench.files import write_atomic
from klr_bench.report.page.content import Part, against_part, experiment_part, paper_part
from klr_bench.report.page.spelling import inside, layout
from klr_bench.report.papers.files import chosen_papers, experiments_of, paper_files
from klr_bench.report.papers.reproduction import WholePaper


def html_page(
    experiments: Sequence[Path], papers: Sequence[str] = (), results_dir: Path = Path("results"), **how: Any
) -> str:
    """Return one page that holds everything: papers, then experiments.

    Parameters
    ----------
    experiments : results folders
    papers : names of papers, or "all"; with all of their experiments that are in results_dir
    results_dir : where the experiments of the papers are
    how : arguments of `experiment_part`

    KlrBenchError where a folder has no results that can be read, and for a paper that there is not.
    """
    found = {one: folder for name in papers for one, folder in chosen_papers(name).items()}
    whole = [WholePaper(name, folder, results_dir) for name, folder in found.items()]
    behind = [results_dir / name for paper in whole for name in paper.results]
    experiments = list(dict.fromkeys([*experiments, *behind]))
    parts = [paper_part(paper) for paper in whole]
    parts += [experiment_part(folder, **how) for folder in experiments]
    parts += _numbers_beside(experiments, set(found))
    title = ", ".join([paper.paper.reference for paper in whole] or [path.name for path in experiments])
    return layout(inside(parts, title), title)


def write_page(target: Path, experiments: Sequence[Path], **how: Any) -> Path:
    """Write the page of `html_page` to a file and return its path."""
    write_atomic(target, html_page(experiments, **how).encode())
    return target


def page_against(target: Path, pairs: Sequence[tuple[Path, Path]], columns: Sequence[str] | None = None) -> Path:
    """Write a page of runs side by side, each pair of results folders with what differs; return its path.

    Raises KlrBenchError for what `klr_bench.report.compare.comparison.compare` refuses.
    """
    parts = [against_part(first, second, columns) for first, second in pairs]
    title = ", ".join(part.name for part in parts)
    write_atomic(target, layout(inside(parts, title), title).encode())
    return target


def _numbers_beside(experiments: Sequence[Path], without: Collection[str]) -> list[Part]:
    """Return, for each paper whose tables name some of these experiments, its numbers beside theirs."""
    found = []
    for name, folder in paper_files(folders()).items():
        named = set(experiments_of(name)) & {path.name for path in experiments}
        if named and name not in without:
            part = paper_part(WholePaper(name, folder, experiments[0].parent, only=named), numbers=sorted(named))
            found += [part] if part.tables else []
    return found
