"""README.md and all pages that it leads to read well on a code host, without Sphinx, and commands are valid."""

import gzip
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable
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
DIRECTIVE = re.compile(
    r"^ *(?:`{3,}|~{3,}|:{3,})\{.*|^ *:{3,}.*|\{[\w:-]+\}`[^`]*<[^`]*`|\{(?:doc|ref|download)\}`.*|^\([\w-]+\)=$", re.M
)
"""What a code host shows as it is: directives, roles and targets of Sphinx."""
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


def pages() -> list[Path]:
    """Return README.md and all Markdown pages that it leads to, directly or through others."""
    found, waiting = dict[Path, None](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        found[page] = None
        targets = {(page.parent / link.partition("#")[0]).resolve() for link in links(page)}
        waiting += [target for target in targets - found.keys() if target.suffix == ".md" and target.is_file()]
    return sorted({*found})


def shown_raw(text: str) -> list[str]:
    """Return what a code host would show as it is."""
    return DIRECTIVE.findall(text)


def ignored(paths: Iterable[Path]) -> set[Path]:
    """Return the files that are not part of the repository."""
    command = ["git", "check-ignore", *map(str, paths)]
    return {
        Path(line)
        for line in subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
    }


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_code_host_shows_nothing_raw_or_broken(page: Path) -> None:
    assert shown_raw(page.read_text(encoding="utf-8")) == []
    targets = set[Path]()
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        targets.add(target)
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link
    assert ignored(targets) == set()


def test_the_pages_of_the_documentation_are_found_and_so_is_what_is_raw() -> None:
    assert len(pages()) > 30
    assert ignored([DOCS / "gallery" / "index.md", ROOT / "README.md"]) == {DOCS / "gallery" / "index.md"}
    raw = ["```{image} a.svg", ":::{grid}", ":::", "{download}`a.csv`", "(target)=", "    ```{toctree}", "{doc}`a <b>`"]
    for line in raw:
        assert shown_raw(f"Text\n\n{line}\n") == [line]
    for line in ("```python", "x = {key}", "`${budget}`; `b`", "![a](b.svg)", "a::b"):
        assert shown_raw(f"{line}\n") == [], line


@pytest.mark.parametrize("command", sorted(RUNS))
def test_a_run_is_valid(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(DOCS / "_static" / "customers.csv", tmp_path / "mine.csv")
    (tmp_path / "part-1.svm.gz").write_bytes(gzip.compress(b"+1 1:1\n-1 1:2\n"))
    words = shlex.split(command)[1:]
    assert main([*words, "data.cache=cache", *([] if "--dry-run" in words else ["--dry-run"])]) == 0


def test_the_link_to_the_source_of_a_page_needs_the_address_of_the_repository() -> None:
    template = jinja2.Template((DOCS / "_templates" / "edit_page.html").read_text(encoding="utf-8"))
    page = {"pagename": "results", "page_source_suffix": ".md"}
    address = "https://example.org/klr-bench"
    assert f'href="{address}/edit/main/docs/results.md"' in template.render(page, repository=address)
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
    assert extension("code_links").is_public(code) is linked
