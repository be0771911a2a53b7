"""Write the tables and figures of README.md, docs/ and data/ from configs and references.

    python scripts/tables

A table is enclosed by the lines <!-- NAME --> and <!-- end of NAME -->; PAGES lists the tables of each page.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from choose import chart, described
from columns import magic, other_columns, own_file, quickstart, records_columns
from comparison import compared, figures, projection
from estimators import estimators
from facts import facts, install
from hero import pictures
from learners import budget_all, defaults, mistakes
from many_rows import file_fit, leaves, many_rows, rows_figure
from methods import choose
from papers import scoreboard, verdicts
from real_tables import real_tables, tables_picture
from scale import bits, blocks, far_end, few_rows, how_long, machine, many, speed, stream_learners, threads
from sources import sources

ROOT = Path(__file__).resolve().parents[2]


def with_tables(text: str, tables: dict[str, str]) -> str:
    """Return a text with the tables of these names replaced."""
    for name, table in tables.items():
        between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->\n)", re.DOTALL)
        text, count = between.subn(lambda lines, table=table: f"{lines[1]}\n{table}\n\n{lines[2]}", text)
        assert count == 1, f"expected the lines <!-- {name} --> and <!-- end of {name} --> once, got {count}."
    return text


PAGES: dict[str, tuple[tuple[Callable[[Path], dict[str, str]], str], ...]] = {
    "README.md": ((facts, ""), (described("docs/methods/"), ""), (install, ""), (scoreboard, "")),
    "data/README.md": ((sources, ""),),
    "docs/get_started.md": ((install, ""), (quickstart, "quickstart"), (magic, "oskl_magic")),
    "docs/your_data.md": ((own_file, "own_file"),),
    "docs/api/records.md": ((records_columns, ""), (other_columns, "")),
    "docs/papers/index.md": ((verdicts, ""),),
    "docs/how_it_works/bits.md": ((bits, "benchmark"),),
    "docs/how_it_works/blocks.md": ((blocks, "benchmark"),),
    "docs/how_it_works/many.md": ((many, "benchmark"),),
    "docs/methods/index.md": ((described(""), ""), (choose, "")),
    "docs/methods/estimators.md": ((estimators, ""),),
    "docs/methods/budget_oskl.md": ((budget_all, "budget_all"), (mistakes, "mistakes")),
    "docs/how_it_works/measurements.md": ((machine, "benchmark"), (threads, "benchmark"), (speed, "benchmark")),
    "docs/results.md": (
        (real_tables, "tables"),
        (compared, "benchmark"),
        (few_rows, "benchmark"),
        (defaults, "defaults"),
    ),
    "docs/scale/index.md": ((many_rows, "benchmark"), (how_long, "benchmark")),
    "docs/scale/clusters.md": ((far_end, "benchmark"), (projection, "benchmark"), (leaves, "benchmark")),
    "docs/scale/streams.md": ((stream_learners, "benchmark"), (file_fit, "benchmark")),
}
"""Functions that create the tables of each page, with the folder of results/reference that they read."""


def made_for(page: str, reference: Path) -> dict[str, str]:
    """Return the tables of a page by name."""
    return {name: table for maker, folder in PAGES[page] for name, table in maker(reference / folder).items()}


def all_pictures(reference: Path) -> dict[str, bytes]:
    """Return the pictures that are drawn from the references, by path below docs/."""
    of_results = {f"results/{name}": picture for name, picture in figures(reference / "benchmark").items()}
    of_results |= {"results/tables.svg": tables_picture(reference / "tables"), "methods/choose.svg": chart(reference)}
    of_results |= {f"scale/{name}": picture for name, picture in rows_figure(reference / "benchmark").items()}
    return of_results | {f"_static/{name}": picture for name, picture in pictures(reference).items()}


if __name__ == "__main__":
    for page in PAGES:
        file = ROOT / page
        tables = made_for(page, ROOT / "results" / "reference")
        file.write_text(with_tables(file.read_text(encoding="utf-8"), tables), "utf-8")
    for file, picture in all_pictures(ROOT / "results" / "reference").items():
        (ROOT / "docs" / file).write_bytes(picture)
