"""The pages of *Reproduce a paper*, made when the documentation is built: nothing of them is written by hand.

`paper_pages.write_pages` makes a page for each paper of configs/paper, one of all experiments, and the fragments that
the first page of the section includes.  After the build the pages to look into (`klr-bench site`) are put beside the
documentation, in `pages`.  Neither is done where nothing has changed that they are made of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paper_pages import write_pages
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.typing import ExtensionMetadata

from klr_bench.files import write_atomic
from klr_bench.report.page.html import write_site

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "reference"
MADE_OF = ("configs/**/*.yaml", "configs/**/*.csv", "results/reference/**/*.*", "klr_bench/**/*.*", "docs/_ext/*.py")
"""What all pages are made of."""
STAMP = "made_of"
log = logging.getLogger(__name__)


def _write(app: Sphinx) -> None:
    """Write the pages, if they are not there or not up to date."""
    target = Path(app.srcdir) / "papers" / "generated"
    with _only_where_changed(target) as changed:
        if changed:
            log.info("writing the pages of papers ...")
            write_pages(target, RESULTS)


def _write_site(app: Sphinx, error: Exception | None) -> None:
    """Put the pages to look into beside the documentation, if they are not there or not up to date."""
    if error is not None or app.builder.format != "html":
        return
    target = Path(app.outdir) / "pages"
    with _only_where_changed(target) as changed:
        if changed:
            log.info("writing the pages to look into ...")
            write_site(target, RESULTS)


@contextmanager
def _only_where_changed(target: Path) -> Iterator[bool]:
    """Give whether what the pages are made of has changed since a folder was written; note it when that is done."""
    paths = sorted(path for pattern in MADE_OF for path in ROOT.glob(pattern) if path.suffix != ".pyc")
    found = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths if path.is_file()]
    now, stamp = hashlib.sha256(repr(found).encode()).hexdigest(), target / STAMP
    yield not (stamp.is_file() and stamp.read_text(encoding="utf-8") == now)
    write_atomic(stamp, now.encode())


def setup(app: Sphinx) -> ExtensionMetadata:
    """Write the pages before Sphinx reads them, and those to look into after it has written all."""
    app.connect("builder-inited", _write)
    app.connect("build-finished", _write_site)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
