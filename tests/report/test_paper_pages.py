"""The pages of papers in the documentation: one per paper, with the same content as the report."""

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import cast

import pytest

from klr_bench.config.locations import config_dir
from klr_bench.report.paper_pages import table_page
from klr_bench.report.papers.reading import paper_files
from klr_bench.report.papers.verdicts import Verdict
from tests.extensions import extension
from tests.report.folders import REFERENCE, reproduction
from tests.report.test_own_paper import PAPER, write_own_paper

WritePages = Callable[[Path, Path], list[Path]]
OWN_CLAIM = """\
claims:
  - says: OSKL is more accurate than NC.
    where: table 1
    experiments: [my_experiment]
    datasets: [moons]
    statements:
      - {metric: accuracy, of: {algorithms: [oskl]}, relation: above, than: {algorithms: [nc]}}
"""


@pytest.fixture(scope="module")
def write_pages() -> WritePages:
    return cast(WritePages, extension("paper_pages").write_pages)


@pytest.fixture(scope="module")
def pages(write_pages: WritePages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    (folder / "of_a_paper_that_is_gone.md").write_text("# Gone", encoding="utf-8")
    write_pages(folder, REFERENCE)
    return folder


def cells(page: str) -> list[str]:
    """Return the texts of the cells of all tables of a page."""
    found = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", page, re.DOTALL)
    return [unescape(re.sub(r"<[^>]*>", "", cell)) for cell in found]


def test_each_paper_has_a_page_with_its_pictures_and_nothing_else_is_left(pages: Path) -> None:
    written = {path.stem for path in pages.glob("[!_]*.md")}
    assert written == {*paper_files([config_dir()]), "experiments"}
    for name in written - {"experiments"}:
        assert f"<generated/{name}>" in (pages / "_papers.md").read_text(encoding="utf-8")
    shown = {name for path in pages.glob("*.md") for name in re.findall(r"{figure} (\S+)", path.read_text("utf-8"))}
    assert len(shown) > 20
    assert shown == {path.name for path in pages.glob("*.png")}


@pytest.mark.parametrize("name", ["zhang2013icml", "qin2011"])
def test_tables_and_verdicts_are_those_of_the_report(pages: Path, name: str) -> None:
    page = (pages / f"{name}.md").read_text(encoding="utf-8")
    whole = reproduction(name)
    texts = cells(page)
    for number in whole.matches_by_table:
        for grid in table_page(whole, number).grids:
            for row in grid.rows:
                at = [place for place, text in enumerate(texts) if text == row[0].strip()]
                assert any(texts[place : place + len(row)] == [row[0].strip(), *row[1:]] for place in at), row
    for verdict in (Verdict.EXACT, Verdict.STATISTICAL):
        count = sum(match.verdict is verdict for match in whole.matches)
        assert count > 0
        weak = sum(match.verdict is verdict and match.is_weak for match in whole.matches)
        assert 0 < weak < count
        assert page.count(f'<span class="{verdict.name.lower()}" title="{verdict.value}">') == count - weak
        title = f"{verdict.value}, without power"
        assert page.count(f'<span class="{verdict.name.lower()} weak" title="{title}">') == weak


def test_claims_are_those_of_the_report(pages: Path) -> None:
    page = (pages / "tan2016aaai.md").read_text(encoding="utf-8")
    whole = reproduction("tan2016aaai")
    pattern = r"<br><strong class=\"[\w-]+\">([^<]*)</strong>\. (\d+ of \d+) comparisons hold((?:, \d+ undecided)?)"
    found = [(verdict, holding + more) for verdict, holding, more in re.findall(pattern, unescape(page))]
    judged = [claim for claim in whole.claims if claim.comparisons]
    assert found == [(claim.verdict[0].upper() + claim.verdict[1:], claim.count()) for claim in judged]
    assert any(verdict.startswith("Does not hold") for verdict, _ in found)
    assert {"below", "at most, within 1 point"} <= {*cells(page)}


def test_all_experiments_are_listed(pages: Path) -> None:
    page = (pages / "experiments.md").read_text(encoding="utf-8")
    listed = {text for text in cells(page)}
    assert {path.stem for path in (config_dir() / "experiment").glob("*.yaml")} <= listed
    of_icml = page.split("## Zhang et al. (ICML 2013)")[1].split("\n## ")[0]
    assert "oskl_magic" in of_icml
    assert "l1_codrna" not in of_icml


def test_a_paper_of_ones_own_has_a_page(
    write_pages: WritePages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paper_yaml = PAPER.replace("Me (2026)", "Me & <you> (2026)") + OWN_CLAIM
    write_own_paper(tmp_path, "my_experiment", paper_yaml, "# Half of the rows are left out.\n")
    write_pages(tmp_path / "pages", tmp_path / "results")
    page = (tmp_path / "pages" / "mine.md").read_text(encoding="utf-8")
    assert page.startswith("# Me \\& \\<you\\> (2026)\n")
    for words in (
        '<span class="statistical weak" title="agrees statistically, with few repeats">86.0',
        '<span class="unexplained" title="differs, unexplained">90.0*',
        "Holds</strong>. 1 of 1 comparisons hold.",
        "Half of the rows are left out.",
        "**61 s** of training time",
    ):
        assert words in page
    assert "not run" in (tmp_path / "pages" / "zhang2013icml.md").read_text(encoding="utf-8")
