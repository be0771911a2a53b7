"""README.md and the pages in its table read well without Sphinx: links lead to files, and commands are valid."""

import gzip
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import jinja2
import pytest

from klr_bench.cli import main
from tests.conftest import ROOT
from tests.extensions import extension

DOCS = ROOT / "docs"
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")
README = (ROOT / "README.md").read_text(encoding="utf-8")
TABLE = [ROOT / name for name in re.findall(r"^\| \[.*?\]\((docs/[\w/]+\.md)\)", README, re.MULTILINE)]
COMMANDS = re.findall(
    r"^(klr-bench [^#\n]*)|`(klr-bench [^`]*)`",
    README + (DOCS / "cheat_sheet.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
RUNS = {command for command in map("".join, COMMANDS) if command.startswith("klr-bench run ")}


def links(page: Path) -> list[str]:
    """Return the relative links and pictures of a page."""
    found = ["".join(pair) for pair in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))]
    return [link for link in found if not re.match(r"\w+:", link)]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [ROOT / "README.md", *TABLE], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_in_the_repository_and_to_headings(page: Path) -> None:
    assert len(TABLE) > 10
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        ignored = subprocess.run(["git", "check-ignore", "-q", target], cwd=ROOT, check=False).returncode == 0
        assert target.exists(), link
        assert not ignored, link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("command", sorted(RUNS))
def test_a_run_is_valid(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(DOCS / "_static" / "customers.csv", tmp_path / "mine.csv")
    (tmp_path / "part-1.svm.gz").write_bytes(gzip.compress(b"+1 1:1\n-1 1:2\n"))
    words = shlex.split(command)[1:]
    assert main([*words, "data.cache=cache", *([] if "--dry-run" in words else ["--dry-run"])]) == 0


def test_the_link_to_the_source_of_a_page_needs_the_address_of_the_repository() -> None:
    template = jinja2.Template((DOCS / "_templates" / "edit_page.html").read_text(encoding="utf-8"))
    page = {"pagename": "speed", "page_source_suffix": ".md"}
    address = "https://example.org/klr-bench"
    assert f'href="{address}/edit/main/docs/speed.md"' in template.render(page, repository=address)
    assert "href" not in template.render(page, repository=None)
    assert "href" not in template.render(page | {"pagename": "gallery/index"}, repository=address)


@pytest.mark.parametrize(
    ("code", "linked"),
    [
        ("OSKL", True),
        ("OSKL(G=2)", True),
        ("stream()", True),
        ("stream", False),
        ("OSKL.fit", False),
        ("partial_fit", False),
    ],
)
def test_names_of_classes_and_calls_become_links(code: str, linked: bool) -> None:
    pytest.importorskip("sphinx")
    assert extension("code_links").is_public(code) is linked
