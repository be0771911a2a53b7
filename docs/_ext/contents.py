"""Sphinx extension that adds hidden tables of contents to pages.

A page names its parts in a line ``<!-- contents: PAGE PAGE -->``, which is invisible where it is read without Sphinx.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

LINE = re.compile(r"^<!-- contents: (.*) -->$", re.MULTILINE)


def with_contents(text: str) -> str:
    """Return the text of a page with a directive in place of the line."""
    return LINE.sub(lambda line: "\n".join(["```{toctree}", ":hidden:", "", *line[1].split(), "```"]), text)


def _add_contents(app: Sphinx, name: str, source: list[str]) -> None:
    source[0] = with_contents(source[0])


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the handler."""
    app.connect("source-read", _add_contents)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
