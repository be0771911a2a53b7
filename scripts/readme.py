"""Write the tables of README.md that are made of results/reference: what became of the papers' numbers and claims.

    python scripts/readme.py

A table stands between the lines <!-- NAME --> and <!-- end of NAME -->, NAME being numbers, claims or failing.
"""

from __future__ import annotations

import re
from pathlib import Path

from klr_bench.experiment.config.files import config_dir
from klr_bench.report.paper import paper_files
from klr_bench.report.render.markdown import pipe_table
from klr_bench.report.whole.join import WholePaper
from klr_bench.report.whole.pages import claims_that_fail, numbers_and_claims

ROOT = Path(__file__).resolve().parents[1]


def tables(results_dir: Path) -> dict[str, str]:
    """Return the tables by name."""
    papers = [WholePaper(name, folder, results_dir) for name, folder in paper_files([config_dir()]).items()]
    numbers, claims = numbers_and_claims(papers)
    grids = {"numbers": numbers, "claims": claims, "failing": claims_that_fail(papers)}
    return {name: pipe_table(grid) for name, grid in grids.items()}


def with_tables(text: str, made: dict[str, str]) -> str:
    """Return a text with these tables in place of those between the lines with their names."""
    for name, table in made.items():
        between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->\n)", re.DOTALL)
        text, found = between.subn(lambda lines, table=table: f"{lines[1]}\n{table}\n\n{lines[2]}", text)
        assert found == 1, (
            f"README.md: expected the lines <!-- {name} --> and <!-- end of {name} --> once, got {found}."
        )
    return text


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(with_tables(readme.read_text(encoding="utf-8"), tables(ROOT / "results" / "reference")), "utf-8")
