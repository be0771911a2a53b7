"""Sphinx extension that converts docstrings in plain text to reStructuredText.

f_t, n_support_, |a_i| and 2 * x are escaped.  `name` becomes a link if the name has a page, and otherwise code;
docs/PAGE.md becomes a link to that page.  Formulas (``.. math::``), examples, lists and literal text in double
backticks are already reStructuredText.  The docstring of `score`, which scikit-learn writes for its own pages, is
replaced.
"""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

PACKAGE = "klr_bench"
BEFORE_NUMPYDOC = 400
"""Priority of the handler; numpydoc has 500, and smaller priorities run first."""
MARKED = re.compile(r"(``.+?``|:\w+(?::\w+)*:`[^`]+`|`[^`]+`)")
HEAD = re.compile(r"(?P<names>\*{0,2}\w+(?:, \w+)*)(?P<type> : .+)?")
SCORE = "Return the accuracy of `predict` for the rows of X and their classes y, weighted by ``sample_weight``."


def plain(line: str) -> str:
    """Return a line with all markup escaped except names, roles and double backticks."""
    return "".join(marked(part) if MARKED.fullmatch(part) else escaped(part) for part in MARKED.split(line))


def escaped(text: str) -> str:
    """Return text with special characters escaped and paths of pages as links."""
    text = re.sub(r"[*|]|(?<=\w)_(?!\w)", r"\\\g<0>", text)
    return re.sub(r"\bdocs/(\S+)\.md\b", r":doc:`/\1`", text)


def escaped_names(names: str) -> str:
    """Return the names of an entry with trailing underscores escaped.

    Otherwise numpydoc would replace the text of an attribute by the docstring of its property.
    """
    return re.sub(r"_(?!\w)", r"\\_", names)


def marked(text: str) -> str:
    """Return a name in backticks as a link or as code; leave roles and literals unchanged."""
    if text.startswith((":", "``")):
        return text
    name = text.strip("`")
    public, _, method = name.partition(".")
    if public in importlib.import_module(PACKAGE).__all__:
        role = "meth" if method else "class" if public[0].isupper() else "func"
        return f":{role}:`~{PACKAGE}.{name}`" if not method else f":{role}:`{name} <{PACKAGE}.{name}>`"
    return f"``{name}``"


def as_markup(lines: list[str]) -> list[str]:
    """Return the lines of a docstring as reStructuredText for numpydoc."""
    text: list[str] = []
    block: int | None = None  # indentation of the line that began the current directive or literal block
    example = False
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if block is not None and line.strip() and indent <= block:
            block = None
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        heading = re.fullmatch("-{3,}", line) or (i + 1 < len(lines) and re.fullmatch("-{3,}", lines[i + 1]))
        if block is not None or example or heading or not line.strip():
            text.append(line)
        elif line.lstrip().startswith(".. ") or line.endswith("::"):
            block = indent
            text.append(line)
        elif (head := HEAD.fullmatch(line)) and indent == 0:
            text.append(escaped_names(head["names"]) + plain(head["type"] or ""))
        else:
            text.append(plain(line))
    return text


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Convert the plain text of a docstring to markup."""
    if what == "method" and name.endswith(".score"):
        lines[:] = [SCORE, ""]
    if what in ("class", "method", "function", "module", "property", "attribute", "data"):
        lines[:] = as_markup(lines)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the handler."""
    app.connect("autodoc-process-docstring", process, priority=BEFORE_NUMPYDOC)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
