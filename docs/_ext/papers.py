"""Sphinx extension that generates the pages of *Reproduce a paper*.

`paper_pages.write_pages` writes a page for each paper of configs/paper, a page of all experiments, and the cards and
contents of the first page of the section.  After the build, the interactive pages (`klr-bench site`) are written to
the folder `pages` of the documentation.  Both steps are skipped if their inputs have not changed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paper_pages import write_pages
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.typing import ExtensionMetadata

from klr_bench.files import write_atomic
from klr_bench.report.page.site import write_site

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "reference"
INPUTS = ("configs/**/*.yaml", "configs/**/*.csv", "results/reference/**/*.*", "klr_bench/**/*.*", "docs/_ext/*.py")
"""Glob patterns of the files that the pages depend on."""
STAMP, CARDS = "made_of", re.compile("<!-- cards -->.*<!-- end of cards -->", re.DOTALL)
log = logging.getLogger(__name__)


def _write(app: Sphinx) -> None:
    """Write the pages of papers, unless they are up to date."""
    target = Path(app.srcdir) / "papers" / "generated"
    with _input_changes(target) as changed:
        if changed:
            log.info("writing the pages of papers ...")
            write_pages(target, RESULTS)


def _add_cards(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace the list of papers on the first page of the section by cards and contents."""
    if name == "papers/index":
        path = Path(app.srcdir) / "papers" / "generated" / "_papers.md"
        app.env.note_dependency(str(path))
        source[0] = CARDS.sub(lambda _: path.read_text(encoding="utf-8"), source[0])


def _write_site(app: Sphinx, error: Exception | None) -> None:
    """Write the interactive pages to the documentation, unless they are up to date."""
    if error is not None or app.builder.format != "html":
        return
    target = Path(app.outdir) / "pages"
    with _input_changes(target) as changed:
        if changed:
            log.info("writing the interactive pages ...")
            write_site(target, RESULTS)


@contextmanager
def _input_changes(target: Path) -> Iterator[bool]:
    """Yield True if an input has changed since `target` was written; then update the stamp."""
    paths = sorted(path for pattern in INPUTS for path in ROOT.glob(pattern) if path.suffix != ".pyc")
    states = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths if path.is_file()]
    now, stamp = hashlib.sha256(repr(states).encode()).hexdigest(), target / STAMP
    yield not (stamp.is_file() and stamp.read_text(encoding="utf-8") == now)
    write_atomic(stamp, now.encode())


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the handlers: pages before Sphinx reads, interactive pages after the build."""
    app.connect("builder-inited", _write)
    app.connect("source-read", _add_cards)
    app.connect("build-finished", _write_site)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
