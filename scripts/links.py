"""Report broken links and external resources in built HTML pages.

    python scripts/links.py build/docs

A link is broken if its file is not in the folder or has no element with the id.  All resources of a page (pictures,
styles, scripts, fonts) must be files in the folder, so that pages work without a network.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}


class Page(HTMLParser):
    """Ids, links and resources of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the id, link and resource of a tag."""
        named = {name: value for name, value in attrs if value is not None}
        self.ids |= {named[name] for name in ("id", "name") if name in named}
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        elif tag in LOADED and LOADED[tag] in named:
            self.loads.append(named[LOADED[tag]])


page = cache(Page)


def broken(file: Path) -> Iterator[str]:
    """Yield a message for each broken link or external resource of a page."""
    for address in page(file).links + page(file).loads:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            if address in page(file).loads and parts.scheme != "data":
                yield f"{file}: loads {address}, which needs a network."
            continue
        target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
        if not target.is_file():
            yield f"{file}: {address}: no such file."
        elif target.suffix == ".html" and parts.fragment and unquote(parts.fragment) not in page(target).ids:
            yield f"{file}: {address}: no such id in {target.name}."


if __name__ == "__main__":
    root = Path(sys.argv[1]).resolve()
    files = [file for file in sorted(root.rglob("*.html")) if root / "_static" not in file.parents]
    messages = [line for file in files for line in broken(file)]
    sys.exit("\n".join(messages) or None)
